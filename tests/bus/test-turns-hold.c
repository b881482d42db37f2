/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Many monitors yield to a hold, and resume, in slices. */

#include "bus-util.h"
#include "cpu-switch.h"
#include "foreigner.h"
#include "restart-util.h"
#include "turns-util.h"

#include <signal.h>

enum { CROWDS = 4 }; /* of monitors */

/* A client with monitors that count, on CPU 0 (or another one); first and last are told first and
 * last. */
typedef struct Crowd {
        Client *client;
        char *first, *last;
        uint64_t enabled; /* of the last, when it was looked at */
} Crowd;

static char *crowd_counter(Client *c, const char *cpus) {
        return counter_open(c, "dummy", "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", cpus, "role",
                            "s", "monitor");
}

static void crowd_up(Crowd *crowd, const char *cpus) {
        crowd->client = client_new("root");
        crowd->first = crowd_counter(crowd->client, cpus);
        for (unsigned i = 0; i < CROWDS; i++)
                many_open(crowd->client, cpus, "monitor", true);
        crowd->last = crowd_counter(crowd->client, cpus);
        crowd->enabled = 0;
}

static void crowd_down(Crowd *crowd) {
        if (crowd->client)
                client_free(crowd->client);
        g_free(crowd->first);
        g_free(crowd->last);
}

/* Values never go back. */
static void crowd_look(Crowd *crowd) {
        g_auto(Measured) m = counter_read(crowd->client, crowd->last);

        g_assert_cmpuint(m.enabled, >=, crowd->enabled);
        crowd->enabled = m.enabled;
}

static void crowd_assert_stands(Crowd *crowd) {
        uint64_t before;

        g_assert_true(counter_is(crowd->client, crowd->first, "yielded"));
        g_assert_true(counter_is(crowd->client, crowd->last, "yielded"));
        crowd_look(crowd);
        before = crowd->enabled;
        crowd_look(crowd);
        g_assert_cmpuint(crowd->enabled, ==, before);
}

static void crowd_await(Crowd *crowd) {
        await(counter_is(crowd->client, crowd->last, "counting"));
        g_assert_true(counter_is(crowd->client, crowd->first, "counting"));
        crowd_look(crowd);
}

static char *crowd_hold(Client *c, int *ret_lease) {
        return hold_take(c, ret_lease, "a{sv}", 1, "pmus", "as", 1, "software");
}

/* When all have yielded. */
static char *crowd_hold_granted(Client *c, int *ret_lease) {
        char *path = crowd_hold(c, ret_lease);

        g_assert_true(hold_wait(c, path));
        return path;
}

static void hold_end_by_lease(Client *c, const char *path, int lease) {
        close_fd(lease);
        await(!hold_is(c, path, "granted"));
}

/* To yield takes only a few slices: a slow client may come too late. */
static void crowd_note_midway(Crowd *crowd) {
        bool midway = counter_is(crowd->client, crowd->last, "counting");

        g_test_message("%s", midway ? "midway" : "all have yielded already");
}

/* Calls that are answered before the last monitor has resumed. */
static unsigned answers_until_counting(Client *other, Crowd *crowd) {
        unsigned n = 0;

        for (; counter_is(crowd->client, crowd->last, "yielded"); n++)
                client_greet(other);
        return n;
}

/* Calls that arrive together with Hold and are answered before the grant. In one turn it would be
 * none. */
static unsigned answers_until_granted(Client *holder, char **ret_path) {
        unsigned n = 0;

        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(holder, AWAIT_SEC * G_USEC_PER_SEC);
                const char *path;

                g_assert_nonnull(m);
                if (sd_bus_message_is_signal(m, NULL, "HoldGranted")) {
                        bus_check(sd_bus_message_read_basic(m, 'o', &path), "HoldGranted");
                        *ret_path = g_strdup(path);
                        return n;
                }
                n += sd_bus_message_get_reply_cookie(m, &(uint64_t){ 0 }) >= 0;
        }
}

static void test_yielding(TurnsFixture *f, const void *data) {
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *path = NULL;
        Crowd crowd;
        unsigned n;

        crowd_up(&crowd, n_cpus() > 1 ? "0-1" : "0");
        client_watch(holder);
        client_greet(holder);
        g_assert_cmpint(kill(service_pid(), SIGSTOP), ==, 0);
        (void) client_send(holder, MANAGER, "HoldUnattended", "sta{sv}", "test", (uint64_t) 0, 1,
                           "pmus", "as", 1, "software");
        for (unsigned i = 0; i < ANSWERS_MIN; i++)
                (void) client_send(holder, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.Peer",
                                   "Ping", NULL);
        service_go_on(holder);
        n = answers_until_granted(holder, &path);
        g_test_message("%u answers while monitors yield", n);
        g_assert_cmpuint(n, >, 1); /* one is Hold's */
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        n = answers_until_counting(f->other, &crowd);
        g_test_message("%u answers while they resume", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
        crowd_await(&crowd);
        crowd_down(&crowd);
}

/* A user who is queued comes to their turn too. */
static void test_resuming_beside_a_queue(TurnsFixture *f, const void *data) {
        g_autoptr(Client) busy = client_new("alice");
        g_autofree char *path = NULL;
        Crowd crowd;
        unsigned n;
        int lease;

        crowd_up(&crowd, "0");
        path = crowd_hold_granted(f->other, &lease);
        for (unsigned i = 0; i < 4; i++)
                many_open(busy, "0", "foreground", false);
        hold_release(f->other, path);
        n = answers_until_counting(busy, &crowd);
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
        crowd_await(&crowd);
        close_fd(lease);
        crowd_down(&crowd);
}

static void test_yielding_hold_ends(TurnsFixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd, "0");
        path = crowd_hold(f->other, &lease);
        crowd_note_midway(&crowd);
        hold_end_by_lease(f->other, path, lease);
        crowd_await(&crowd);
        crowd_down(&crowd);
}

static void test_resuming_hold_comes(TurnsFixture *f, const void *data) {
        g_autofree char *path = NULL, *next = NULL;
        Crowd crowd;
        int lease, lease_of_next;

        crowd_up(&crowd, "0");
        path = crowd_hold_granted(f->other, &lease);
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        g_assert_true(counter_is(crowd.client, crowd.last, "yielded"));
        next = crowd_hold_granted(f->other, &lease_of_next);
        crowd_assert_stands(&crowd);
        hold_release(f->other, next);
        crowd_await(&crowd);
        close_fd(lease);
        close_fd(lease_of_next);
        crowd_down(&crowd);
}

/* Nobody waits for what has gone. */
static void test_yielding_monitors_leave(TurnsFixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd, "0");
        path = crowd_hold(f->other, &lease);
        client_free(TAKE_PTR(crowd.client));
        g_assert_true(hold_wait(f->other, path));
        hold_release(f->other, path);
        close_fd(lease);
        crowd_down(&crowd);
}

static void test_resuming_monitors_leave(TurnsFixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd, "0");
        path = crowd_hold_granted(f->other, &lease);
        hold_release(f->other, path);
        client_free(TAKE_PTR(crowd.client));
        close_fd(lease);
        crowd_down(&crowd);
}

/* Ways to restart: both in the midst. */
static void test_yielding_restart(TurnsFixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease;

        crowd_up(&crowd, "0");
        path = crowd_hold(f->other, &lease);
        crowd_note_midway(&crowd);
        rig(data, NULL);
        g_assert_true(hold_wait(f->other, path));
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        g_assert_true(counter_is(crowd.client, crowd.last, "yielded"));
        rig(data, NULL);
        crowd_await(&crowd);
        close_fd(lease);
        crowd_down(&crowd);
}

/* Monitors of two CPUs, of which one goes and comes back in the midst. */
static void test_yielding_cpu_goes(TurnsFixture *f, const void *data) {
        g_autofree char *path = NULL;
        Crowd crowd;
        int lease, lock;

        if (!cpu_switch(true)) {
                g_test_skip("no CPU can be switched off here");
                return;
        }
        lock = machine_lock();
        crowd_up(&crowd, "0-1");
        path = crowd_hold(f->other, &lease);
        cpu_must_switch(false);
        g_assert_true(hold_wait(f->other, path));
        crowd_assert_stands(&crowd);
        cpu_must_switch(true);
        client_greet(f->other);
        crowd_assert_stands(&crowd);
        hold_release(f->other, path);
        g_assert_true(counter_is(crowd.client, crowd.last, "yielded"));
        cpu_must_switch(false);
        crowd_await(&crowd);
        cpu_must_switch(true);
        crowd_await(&crowd);
        close_fd(lease);
        crowd_down(&crowd);
        close_fd(lock);
}

/* What the last ones are about to take is not free: beside a stranger one of them has to yield. */
static void test_resuming_number_is_held(TurnsFixture *f, const void *data) {
        g_autoptr(Client) carol = client_new("carol");
        Crowd crowd;
        char *slots[2];
        g_autoptr(Actor) stranger = NULL;
        g_autofree char *path = NULL, *event = watched_event(0);
        g_autofree char *number = NULL;
        _cleanup_close_ int lease = -1, next = -1;

        crowd_up(&crowd, "0");
        for (size_t i = 0; i < G_N_ELEMENTS(slots); i++)
                slots[i] = counter_open(crowd.client, event, "a{sv}", 3, "scope", "s", "cpu",
                                        "cpus", "s", "0", "role", "s", "monitor");
        path = hold_take(f->other, &lease, "a{sv}", 2, "pmus", "as", 2, "software", "breakpoint",
                         "cpus", "s", "0");
        g_assert_true(hold_wait(f->other, path));
        stranger = foreigner_new();
        lease = close_fd(lease);
        number = hold_take(carol, &next, "a{sv}", 3, BREAKPOINTS, "cpus", "s", "0", "counters", "u",
                           2);
        g_assert_true(hold_wait(carol, number));
        g_assert_true(counter_is(crowd.client, slots[0], "counting") !=
                      counter_is(crowd.client, slots[1], "counting"));
        next = close_fd(next);
        for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
                await(counter_is(crowd.client, slots[i], "counting"));
                g_free(slots[i]);
        }
        crowd_down(&crowd);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        cpu_back_at_end();
        TURNS_ADD("yielding-and-resuming", test_yielding);
        TURNS_ADD("resuming-beside-a-queue", test_resuming_beside_a_queue);
        TURNS_ADD("yielding-hold-ends", test_yielding_hold_ends);
        TURNS_ADD("resuming-hold-comes", test_resuming_hold_comes);
        TURNS_ADD("resuming-number-is-held", test_resuming_number_is_held);
        TURNS_ADD("yielding-monitors-leave", test_yielding_monitors_leave);
        TURNS_ADD("resuming-monitors-leave", test_resuming_monitors_leave);
        TURNS_ADD_WITH("yielding-restart", RESTARTED, test_yielding_restart);
        TURNS_ADD_WITH("yielding-kill", KILLED, test_yielding_restart);
        TURNS_ADD("yielding-cpu-goes", test_yielding_cpu_goes);
        return g_test_run();
}
