/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/tree.h"

#include <sys/mman.h>

#include "machine.h"
#include "perf/process/test-child.h"
#include "perf/process/test-target.h"

static Threads threads_of(pid_t pid) {
        Threads threads = THREADS_NULL;

        g_assert_cmpint(threads_list(pid, &threads, NULL), ==, 0);
        return threads;
}

static bool is_that(const void *userdata, pid_t pid) {
        return pid == *(const pid_t *) userdata;
}

static bool descends(pid_t pid, pid_t from) {
        return tree_descends(pid, is_that, &from);
}

/* Three generations; the pid of the last one is sent. */
static void bear_two(void *userdata) {
        pid_t *grandchild = userdata;

        if (child_fork()) {
                if (child_fork())
                        *grandchild = getpid();
                for (;;)
                        pause();
        }
        while (*(volatile pid_t *) grandchild == 0)
                g_usleep(1000);
}

static void test_descends_from_all_above(void) {
        pid_t child, parent;
        pid_t *shared = mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        g_assert_true(shared != MAP_FAILED);
        child = child_start(bear_two, shared);
        parent = tree_parent(*shared);
        g_assert_cmpint(tree_parent(parent), ==, child);
        g_assert_cmpint(tree_parent(child), ==, getpid());
        g_assert_true(descends(*shared, parent));
        g_assert_true(descends(*shared, child));
        g_assert_true(descends(*shared, getpid()));
        g_assert_false(descends(*shared, *shared));
        g_assert_false(descends(child, *shared));
        child_end(child);
        munmap(shared, sizeof(pid_t));
}

static void test_nobody_has_no_parent(void) {
        g_assert_cmpint(tree_parent(4194304), ==, 0);
        g_assert_false(descends(4194304, getpid()));
}

static void test_children_are_seen(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(threads_done) Threads own = THREADS_NULL;
        pid_t shared_parent;

        target_add_thread(&s, 0, 1);
        own = threads_of(s.pid);
        g_assert_false(tree_has_children(s.pid, &own));
        target_end(&s);

        threads_done(&own);
        shared_parent = child_start(NULL, NULL);
        own = threads_of(getpid());
        g_assert_true(tree_has_children(getpid(), &own));
        child_end(shared_parent);
}

static void test_a_birth_changes_the_last_number(void) {
        pid_t last = tree_last_born(), child;

        if (last == 0) {
                g_test_skip("/proc/loadavg does not tell");
                return;
        }
        child = child_start(NULL, NULL);
        g_assert_cmpint(tree_last_born(), !=, last);
        child_end(child);
}

static void test_all_threads_are_all(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(threads_done) Threads before = THREADS_NULL;
        bool all;

        target_add_thread(&s, 0, 1);
        before = threads_of(s.pid);
        g_assert_cmpint(threads_are_all(&before, s.pid, &all), ==, 0);
        g_assert_true(all);
        target_add_thread(&s, 0, 2);
        g_assert_cmpint(threads_are_all(&before, s.pid, &all), ==, 0);
        g_assert_false(all);
        threads_done(&before);
        before = threads_of(s.pid);
        target_end_thread(&s, 1);
        g_assert_cmpint(threads_are_all(&before, s.pid, &all), ==, 0);
        g_assert_false(all);
        target_kill(&s);
        g_assert_cmpint(threads_are_all(&before, s.pid, &all), ==, 0);
        g_assert_false(all);
        target_close(&s);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/tree/descends-from-all-above", test_descends_from_all_above);
        g_test_add_func("/tree/nobody-has-no-parent", test_nobody_has_no_parent);
        g_test_add_func("/tree/children-are-seen", test_children_are_seen);
        g_test_add_func("/tree/a-birth-changes-the-last-number",
                        test_a_birth_changes_the_last_number);
        g_test_add_func("/threads/all-are-all", test_all_threads_are_all);
        return g_test_run();
}
