/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault-operations.h"

/* Best effort: these tests do not depend on free breakpoints. */

void run_hold(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 3, BREAKPOINTS, "best_effort", "b",
                 1, "yield_usec", "t", (uint64_t) 5 * USEC_PER_SEC);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

static void run_hold_some(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 4, BREAKPOINTS, "cpus", "s", "0",
                 "counters", "u", 2, "best_effort", "b", 1);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

static void run_hold_exclusive(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 3, BREAKPOINTS, "mode", "s",
                 "exclusive", "best_effort", "b", 1);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

static void run_hold_unattended(Scene *s) {
        TRY_PATH(s, "o", MANAGER, "HoldUnattended", "sta{sv}", "to fail", 60 * USEC_PER_SEC, 2,
                 BREAKPOINTS, "best_effort", "b", 1);
}

/* It may be obstructed for lack of memory. */
static void release(Scene *s) {
        if (!hold_is(s->client, s->path, "ended"))
                hold_release(s->client, s->path);
}

static void prepare_monitor(Scene *s) {
        s->other = client_new("root");
        s->second = monitor_open(s->other, 0, 0);
}

static void monitor_goes_on(Scene *s) {
        settle(hold_is(s->client, s->path, "ended"));
        settle(counter_is(s->other, s->second, "counting"));
}

static void run_hold_monitor(Scene *s) {
        run_hold(s);
        calm();
        if (!s->failed)
                settle(counter_is(root, s->second, "yielded"));
}

static void after_hold_monitor(Scene *s) {
        s->fd = close_fd(s->fd);
        monitor_goes_on(s);
}

static void prepare_held(Scene *s) {
        prepare_monitor(s);
        s->path = hold_take(s->client, &s->fd, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        (void) hold_wait(s->client, s->path);
}

static void run_release(Scene *s) {
        TRY(s, s->path, HOLD, "Release", NULL);
        calm();
        /* It may be the answer that failed. */
        if (!s->failed)
                settle(hold_is(s->client, s->path, "ended"));
}

static void run_lease(Scene *s) {
        client_watch(s->other);
        s->fd = close_fd(s->fd);
        /* unless this fails */
        for (bool told = false; !told;) {
                g_autoptr(sd_bus_message) m = client_next(s->other, USEC_PER_SEC / 10);

                told = !m || sd_bus_message_is_signal(m, PERFALLOC_MANAGER_INTERFACE, "HoldEnded");
        }
        ping();
        calm();
        settle(hold_is(root, s->path, "ended"));
        settle(counter_is(root, s->second, "counting"));
}

static void prepare_queue(Scene *s) {
        s->other = client_new("root");
        s->second = hold_take(s->other, &s->fd2, "a{sv}", 3, BREAKPOINTS, "best_effort", "b", 1,
                              "mode", "s", "exclusive");
        (void) hold_wait(s->other, s->second);
}

static void run_queue(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 3, BREAKPOINTS, "best_effort", "b",
                 1, "wait_usec", "t", 60 * USEC_PER_SEC);
        calm();
        if (!s->failed)
                settle(hold_is(s->client, s->path, "queued"));
}

static void after_queue(Scene *s) {
        hold_release(s->other, s->second);
        settle(hold_is(s->client, s->path, "granted"));
}

static void prepare_queued(Scene *s) {
        prepare_queue(s);
        run_queue(s);
}

static void run_queued(Scene *s) {
        s->fd2 = close_fd(s->fd2);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

const Operation hold_operations[] = {
        { "hold", "alice", NULL, run_hold, release },
        { "hold-of-some", "alice", NULL, run_hold_some, release },
        { "hold-exclusive", "alice", NULL, run_hold_exclusive, release },
        { "hold-unattended", "alice", NULL, run_hold_unattended, release },
        { "hold-over-a-monitor", "alice", prepare_monitor, run_hold_monitor, after_hold_monitor },
        { "release", "alice", prepare_held, run_release, monitor_goes_on },
        { "lease-closed", "alice", prepare_held, run_lease, NULL },
        { "queue", "alice", prepare_queue, run_queue, after_queue },
        { "next-in-the-queue", "alice", prepare_queued, run_queued, release },
        {},
};
