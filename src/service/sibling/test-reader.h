/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For tests of the reader: a real one, and an event loop. */

#include "service/sibling/reader.h"

#include <glib.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "perf/process/proof.h"

#define TIMEOUT_USEC (20 * USEC_PER_SEC)

typedef struct Answer {
        unsigned n_calls;
        int r;
        bool complete, neighbour;
        ProcessFacts facts;
        GArray *users;
        size_t n_processes, n_threads;
} Answer;

typedef struct Fixture {
        sd_event *event;
        Reader *reader;
        unsigned n_died;
} Fixture;

_unused_ static void on_died(void *userdata) {
        Fixture *f = userdata;

        f->n_died++;
}

_unused_ static void fixture_set_up(Fixture *f, const void *userdata) {
        g_assert_cmpint(reader_fork(&f->reader), ==, 0);
        g_assert_cmpint(sd_event_new(&f->event), >=, 0);
        g_assert_cmpint(reader_attach_event(f->reader, f->event, on_died, f), ==, 0);
}

_unused_ static void fixture_tear_down(Fixture *f, const void *userdata) {
        reader_free(f->reader);
        sd_event_unref(f->event);
        g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1); /* nobody is left */
}

_unused_ static void run_until(Fixture *f, const unsigned *n, unsigned wanted) {
        gint64 end = g_get_monotonic_time() + (gint64) TIMEOUT_USEC;

        while (*n < wanted) {
                g_assert_cmpint(g_get_monotonic_time(), <, end);
                g_assert_cmpint(sd_event_run(f->event, USEC_PER_SEC), >=, 0);
        }
}

_unused_ static void on_inspected(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                  const Refusal *why) {
        Answer *a = userdata;

        a->neighbour = neighbour;

        a->n_calls++;
        a->r = r;
        g_assert_cmpint(facts == NULL, ==, r != 0);
        if (r > 0) {
                g_assert_cmpint(why->code, ==, r);
                g_assert_cmpint(strlen(why->text), >, 0);
        }
        if (facts)
                a->facts = *facts;
}

_unused_ static int wait_for(pid_t pid) {
        int status;

        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Process 1 may have a capability that root lacks here, which hides its root. Then one of our own
 * takes its place, in namespaces that the tests go on in. */
_unused_ static void reach_process_1(void) {
        pid_t pid;

        if (geteuid() != 0 || access(PROOF_HOST "/self", X_OK) == 0 ||
            unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
                return;
        pid = fork();
        g_assert_cmpint(pid, >=, 0);
        if (pid > 0)
                _exit(wait_for(pid)); /* LeakSanitizer cannot fork there any more */
        g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
        g_assert_cmpint(mount("proc", "/proc", "proc", 0, NULL), ==, 0);
        pid = fork();
        g_assert_cmpint(pid, >=, 0);
        if (pid > 0)
                _exit(wait_for(pid));
}

#define READER_TEST(prefix, name)                                                                  \
        g_test_add(prefix #name, Fixture, NULL, fixture_set_up, test_##name, fixture_tear_down)
