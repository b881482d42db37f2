/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* perfallocd.conf. */

#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "service/util/config-file.h"
#include "service/util/config.h"

static int setting_look(void *userdata, const char *section, const char *name, const char *value,
                        Refusal *why) {
        unsigned *n = userdata;

        promise(section && name && value);
        return ++*n % 2 ? 0
                        : refuse(why, REFUSAL_INVALID_ARGS, "%s=%s in [%s]", name, value, section);
}

static void path_look(const BridgePath *p) {
        size_t n = strnlen(p->path, sizeof(p->path));

        promise(n < sizeof(p->path));
        promise(p->mode == BRIDGE_PATH ? *p->path == '/' : n == 0);
}

/* A file in memory: the reader wants a path. */
static void file_look(const uint8_t *data, size_t size) {
        _cleanup_close_ int fd = memfd_create("perfallocd.conf", MFD_CLOEXEC);
        char path[64];
        Config c;

        promise(fd >= 0 && write(fd, data, size) == (ssize_t) size);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        config_default(&c);
        config_load(&c, path);
        promise(c.hold_max_usec > 0 && c.wait_max_usec > 0 && c.idle_exit_usec > 0);
        promise(c.sampler_interval_min_usec > 0 && c.sampler_signal_min_usec > 0);
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++)
                promise(!quota_setting(good) || c.limits[good] <= 1000000000);
        path_look(&c.bridges.pcp);
        path_look(&c.bridges.likwid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = fuzz_text(data, size);
        char name[] = "fuzzed";
        ConfigFile file = { .path = name, .text = text };
        unsigned n = 0;

        promise(config_file_parse(&file, setting_look, &n) >= 0);
        file_look(data, size);
        return 0;
}
