/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of events: a table of PMUs, of a tree of tests/sysfs or of /sys itself.
 */

#include <dirent.h>
#include <glib.h>
#include <string.h>
#include <sys/syscall.h>

#include "perf/event/event-parse.h"
#include "perf/pmu/test-fixture.h"

typedef struct FakeSysfs {
        char *tree; /* NULL: /sys */
        PmuTable pmus;
        const char *name; /* for fake_sysfs_change() */
} FakeSysfs;

_unused_ static FakeSysfs fake_sysfs_of(char *tree) {
        FakeSysfs m = { .tree = tree };

        g_assert_cmpint(pmu_table_load(&m.pmus, tree ? tree : "/sys"), ==, 0);
        return m;
}

_unused_ static void fake_sysfs_done(FakeSysfs *m) {
        pmu_table_done(&m->pmus);
        if (m->tree)
                fixture_done(m->tree);
}

/* Changes to another tree, unless it is the same: the rows of a table are grouped by tree. */
_unused_ static void fake_sysfs_change(FakeSysfs *m, const char *name) {
        if (m->name && strcmp(m->name, name) == 0)
                return;
        if (m->name)
                fake_sysfs_done(m);
        *m = fake_sysfs_of(fixture_tree(name));
        m->name = name;
}

_unused_ static Event parse(const FakeSysfs *m, const char *string) {
        Refusal why = REFUSAL_NULL;
        Event e = EVENT_NULL;
        int r = event_parse(&m->pmus, string, &e, &why);

        if (r != 0)
                g_error("%s: %d, %s", string, r, why.text);
        g_assert_cmpstr(e.name, ==, string);
        g_assert_nonnull(e.pmu);
        return e;
}

/* Each of the words, separated by '|', must be in the message. */
_unused_ static void assert_refused(const FakeSysfs *m, const char *string, int code,
                                    const char *words) {
        g_auto(GStrv) all = g_strsplit(words, "|", -1);
        Refusal why = REFUSAL_NULL;
        Event e = { .scale = 77 };

        g_assert_cmpint(event_parse(&m->pmus, string, &e, &why), ==, code);
        g_test_message("%s", why.text);
        g_assert_cmpint(why.code, ==, code);
        for (char **word = all; *word; word++)
                g_assert_nonnull(strstr(why.text, *word));
        g_assert_null(e.name);
        g_assert_cmpfloat(e.scale, ==, 77);
        g_assert_cmpint(event_parse(&m->pmus, string, &e, NULL), ==, code);
}

/* Opens it on the first CPU, disabled or not; -1: this user or kernel cannot. */
_unused_ static int open_event(const Event *e, bool enabled, pid_t pid) {
        struct perf_event_attr attr = e->attr;
        int fd;

        attr.disabled = !enabled;
        fd = (int) syscall(SYS_perf_event_open, &attr, pid, pid < 0 ? 0 : -1, -1,
                           PERF_FLAG_FD_CLOEXEC);
        if (fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS))
                return -1;
        if (fd < 0)
                g_error("%s: %s", e->name, strerror(errno));
        return fd;
}

_unused_ static unsigned count_descriptors(void) {
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        g_assert_nonnull(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}
