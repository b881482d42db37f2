/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: groups of breakpoints over processes and CPUs. A breakpoint counts exactly, so values
 * are compared, not estimated.
 */

#include "perf/group/group.h" /* before GLib, which has a MIN of its own */

#include <fcntl.h>
#include <glib.h>
#include <sched.h>

#include "hits.h"
#include "machine.h"
#include "perf/event/test-fake-sysfs.h"
#include "perf/group/group-cpu.h"
#include "perf/group/group-open.h"
#include "perf/group/group-pinned.h"
#include "perf/group/group-read.h"
#include "perf/group/group-save.h"
#include "perf/group/group-start.h"
#include "perf/group/group-target.h"
#include "perf/group/group-yield.h"
#include "perf/process/test-target.h"
#include "perf/process/threads.h"

#define SLOTS 4u /* breakpoints of an x86 or most arm64 CPUs */

typedef struct GroupTest {
        const char *name;
        void (*test)(void);
} GroupTest;

static FakeSysfs sysfs;

_unused_ static char *word_event(unsigned word) {
        return g_strdup_printf("mem:0x%" G_GINTPTR_MODIFIER "x/8:w:u",
                               (guintptr) &target_words[word]);
}

/* A group of breakpoints on the first words, or of one event. */
_unused_ static Group *group_of(GroupScope scope, unsigned n_words, const char *event) {
        unsigned n = event ? 1 : n_words;
        Event *events = g_malloc0_n(n, sizeof(Event)); /* malloc() since GLib 2.46 */
        Group *g;

        for (unsigned i = 0; i < n; i++) {
                g_autofree char *word = word_event(i);

                events[i] = parse(&sysfs, event ? event : word);
        }
        g_assert_cmpint(group_new(scope, events, n, &g, NULL), ==, 0);
        return g;
}

/* It is the same process, whatever else of the target is given. */
_unused_ static void attach_threads(Group *g, const Target *s, GroupTarget target,
                                    const Threads *threads) {
        _cleanup_(shared_fd_unrefp) SharedFd *process = shared_fd_new(dup(s->pidfd));

        target.pid = s->pid;
        target.process = process;
        g_assert_cmpint(group_attach(g, &target, threads->tids, NULL, threads->n_tids), ==, 0);
}

_unused_ static void attach_target(Group *g, const Target *s, GroupTarget target) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;

        g_assert_cmpint(threads_list(s->pid, &threads, NULL), ==, 0);
        attach_threads(g, s, target, &threads);
}

_unused_ static void add_target(Group *g, const Target *s) {
        attach_target(g, s, (GroupTarget){ .descendants = g->descendants });
}

_unused_ static void assert_opens(Group *g) {
        Refusal why = REFUSAL_NULL;
        int r = group_open(g, &why);

        if (r != 0)
                g_error("%d: %s", r, why.text);
}

/* On its current threads. */
_unused_ static void group_start_on(Group *g, const Target *s) {
        add_target(g, s);
        assert_opens(g);
        group_start(g);
}

_unused_ static Group *group_on(const Target *s, unsigned n_words) {
        Group *g = group_of(GROUP_PROCESS, n_words, NULL);

        group_start_on(g, s);
        return g;
}

_unused_ static Group *pinned_on(const Target *s, unsigned n_words) {
        Group *g = group_of(GROUP_PROCESS, n_words, NULL);

        g->pinned = true;
        group_start_on(g, s);
        return g;
}

_unused_ static CpuSet cpus_of(const char *list) {
        CpuSet cpus;

        g_assert_cmpint(cpuset_parse(&cpus, list, NULL), ==, 0);
        return cpus;
}

/* One breakpoint on each CPU of the list, not open yet; NULL: this user may not count CPUs. */
_unused_ static Group *group_on_cpus(const char *list) {
        _cleanup_(cpuset_done) CpuSet cpus = cpus_of(list);
        g_autofree char *word = word_event(0);
        Event event = parse(&sysfs, word);
        int fd = open_event(&event, false, -1);
        Group *g;

        event_done(&event);
        if (fd < 0) {
                g_test_skip("this user may not count on CPUs");
                return NULL;
        }
        close_fd(fd);
        g = group_of(GROUP_CPU, 1, NULL);
        g_assert_cmpint(group_add_cpus(g, &cpus, &sysfs.pmus.online), ==, 0);
        return g;
}

_unused_ static bool has_two_cpus(void) {
        if (cpuset_has(&sysfs.pmus.online, 0) && cpuset_has(&sysfs.pmus.online, 1))
                return true;
        g_test_skip("needs CPUs 0 and 1");
        return false;
}

/* Takes at most max breakpoint slots of a CPU, or with -1 of this process; returns how many it
 * took. */
_unused_ static unsigned slots_take(int cpu, int *fds, unsigned max) {
        g_autofree char *word = word_event(7);
        Event event = parse(&sysfs, word);
        unsigned n = 0;

        event.attr.disabled = 1;
        while (n < max &&
               (fds[n] = (int) syscall(SYS_perf_event_open, &event.attr, cpu < 0 ? 0 : -1, cpu, -1,
                                       PERF_FLAG_FD_CLOEXEC)) >= 0)
                n++;
        if (n < max)
                g_assert_cmpint(errno, ==, ENOSPC);
        event_done(&event);
        return n;
}

_unused_ static void slots_give(int *fds, unsigned n) {
        while (n > 0)
                close_fd(fds[--n]);
}

_unused_ static unsigned slots_free(int cpu) {
        int fds[SLOTS + 1];
        unsigned n = slots_take(cpu, fds, SLOTS + 1);

        slots_give(fds, n);
        return n;
}

_unused_ static void write_on_cpu(int cpu, unsigned n) {
        cpu_set_t before, only;

        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        g_assert_cmpint(sched_getaffinity(0, sizeof(before), &before), ==, 0);
        g_assert_cmpint(sched_setaffinity(0, sizeof(only), &only), ==, 0);
        target_write_words(n, 0);
        g_assert_cmpint(sched_setaffinity(0, sizeof(before), &before), ==, 0);
}

/* What breakpoints count for so many writes. */
_unused_ static uint64_t hits(uint64_t n) {
        return hits_never ? 0 : n;
}

_unused_ static void assert_value(Group *g, size_t event, uint64_t value, Quality quality) {
        Reading reading;

        group_read(g, event, &reading);
        g_assert_cmpuint(reading.value, ==, value);
        g_assert_cmpstr(quality_name(reading.quality), ==, quality_name(quality));
}

_unused_ static void assert_reads(Group *g, size_t event, uint64_t n_writes, Quality quality) {
        assert_value(g, event, hits(n_writes), quality);
}

_unused_ static void assert_exact(Group *g, uint64_t n_writes) {
        assert_reads(g, 0, n_writes, QUALITY_EXACT);
}

/* End of file at a part's leader: its pinned events have been dropped. Returns what
 * group_undrop() takes. */
_unused_ static int group_drop(const Group *g, size_t part) {
        _cleanup_close_ int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int *fd = &group_slot(g, part, 0)->fd, kept = fcntl(*fd, F_DUPFD_CLOEXEC, 3);

        g_assert_cmpint(kept, >=, 0);
        g_assert_cmpint(dup2(nothing, *fd), ==, *fd);
        return kept;
}

/* They are enabled again, or can be read because their thread has ended. */
_unused_ static void group_undrop(const Group *g, size_t part, int kept) {
        int *fd = &group_slot(g, part, 0)->fd;

        g_assert_cmpint(dup2(kept, *fd), ==, *fd);
        close_fd(kept);
}

/* The main function of a test of groups. */
_unused_ static int group_tests_run(int argc, char **argv, const char *path, const GroupTest *tests,
                                    size_t n_tests) {
        int r;

        if (machine_skips_all(MACHINE_PROC | MACHINE_SYSFS | MACHINE_EVENTS | MACHINE_BREAKPOINTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        sysfs = fake_sysfs_of(NULL);
        for (size_t i = 0; i < n_tests; i++) {
                g_autofree char *name = g_strconcat(path, tests[i].name, NULL);

                g_test_add_func(name, tests[i].test);
        }
        r = g_test_run();
        fake_sysfs_done(&sysfs);
        return r;
}
