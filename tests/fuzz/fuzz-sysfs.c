/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Trees of /sys: what a driver may report about its PMU. The lines of the input are the contents of
 * the files below, in order. An empty line is no file; '\1' stands for a newline.
 */

#include "fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "perf/event/event-parse.h"
#include "perf/pmu/test-fixture.h"

static const char *const files[] = {
        "devices/system/cpu/possible",
        "devices/system/cpu/present",
        "devices/system/cpu/online",
        "bus/event_source/devices/cpu/type",
        "bus/event_source/devices/cpu/cpus",
        "bus/event_source/devices/cpu/cpumask",
        "bus/event_source/devices/cpu/events/some",
        "bus/event_source/devices/cpu/events/some.scale",
        "bus/event_source/devices/cpu/events/some.unit",
        "bus/event_source/devices/cpu/format/event",
        "bus/event_source/devices/cpu/format/umask",
        "bus/event_source/devices/other/type",
        "bus/event_source/devices/other/cpumask",
        "bus/event_source/devices/other/format/event",
};

static const char *const directories[] = {
        "devices",
        "devices/system",
        "devices/system/cpu",
        "bus/event_source/devices/cpu",
        "bus/event_source/devices/cpu/events",
        "bus/event_source/devices/cpu/format",
        "bus/event_source/devices/other",
        "bus/event_source/devices/other/format",
};

static const char *const strings[] = {
        "cpu/some/", "cpu/event=1,umask=0x7/u", "cpu/umask,some/", "other/event=3,config1=2/",
        "cycles",
};

static char *tree;
static int tree_fd;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        tree = fixture_empty();
        tree_fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        promise(tree_fd >= 0);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                promise(mkdirat(tree_fd, directories[i], 0755) == 0);
        return 0;
}

static void file_write(const char *path, char *text, size_t n) {
        _cleanup_close_ int fd = -1;

        (void) unlinkat(tree_fd, path, 0);
        if (n == 0)
                return;
        for (char *p = text; p < text + n; p++)
                if (*p == '\1')
                        *p = '\n';
        fd = openat(tree_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        promise(fd >= 0 && write(fd, text, n) == (ssize_t) n);
}

static void tree_write(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = fuzz_text(data, size);
        char *p = text, *end = text + size;

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                char *newline = memchr(p, '\n', (size_t) (end - p)) ?: end;

                file_write(files[i], p, (size_t) (newline - p));
                p = MIN(newline + 1, end);
        }
}

static int event_see(void *userdata, const char *name, const char *pmu, const char *description) {
        const PmuTable *pmus = userdata;

        promise(name && *name && pmu_table_find(pmus, pmu) && description);
        return 0;
}

static void events_look(PmuTable *pmus) {
        for (size_t i = 0; i < ELEMENTSOF(strings); i++) {
                _cleanup_(event_done) Event e = EVENT_NULL;
                Refusal why = REFUSAL_NULL;
                int r = event_parse(pmus, strings[i], &e, &why);

                fuzz_outcome(r, &why);
                promise(r > 0 || (e.pmu >= pmus->pmus && e.pmu < pmus->pmus + pmus->n_pmus));
        }
        promise(event_list(pmus, "*/*", event_see, pmus) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(pmu_table_done) PmuTable pmus = {};
        int r;

        tree_write(data, size);
        r = pmu_table_load(&pmus, tree);
        if (r < 0) {
                promise(r != -ENOMEM && pmus.n_pmus == 0);
                return 0;
        }
        for (size_t i = 0; i < pmus.n_pmus; i++)
                promise(pmus.pmus[i].index == i && pmus.pmus[i].kind < _PMU_KIND_MAX);
        events_look(&pmus);
        return 0;
}
