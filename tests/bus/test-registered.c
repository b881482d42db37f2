/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Registered monitors: programs that yield when they are asked. */

#include "bus-util.h"
#include "foreigner.h"

#include <unistd.h>

#include "core/clock.h"

#define MONITOR PERFALLOC_MONITOR_INTERFACE

typedef struct Program {
        Client *client;
        char *path;
        int lease;
} Program;

static void program_clear(Program *p) {
        g_clear_pointer(&p->client, client_free);
        g_clear_pointer(&p->path, g_free);
        p->lease = close_fd(p->lease);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Program, program_clear)

/* Registers for the breakpoints of these CPUs; NULL: of all. */
static Program program_new_on(const char *cpus, const char *name, uint32_t priority) {
        Program p = { .client = client_new("alice") };
        g_autoptr(sd_bus_message) reply = NULL;
        const char *path;
        int lease;

        client_watch(p.client);
        reply = client_call(p.client, MANAGER, "RegisterMonitor", "sa{sv}", name, cpus ? 3 : 2,
                            BREAKPOINTS, "priority", "u", priority, "cpus", "s", cpus);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
        p.path = g_strdup(path);
        p.lease = dup(lease);
        return p;
}

static Program program_new(const char *name, uint32_t priority) {
        return program_new_on(NULL, name, priority);
}

/* Waits for a signal of the monitor's object; for Yield returns the hold's path and the deadline.
 */
static char *program_hear_yield(Program *p, const char *member, uint64_t *ret_deadline) {
        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(p->client, AWAIT_SEC * USEC_PER_SEC);
                const char *hold = NULL;
                uint64_t deadline = 0;

                if (!m)
                        g_error("no %s came", member);
                if (sd_bus_message_is_signal(m, MONITOR, member) <= 0)
                        continue;
                g_assert_cmpstr(sd_bus_message_get_path(m), ==, p->path);
                if (strcmp(member, "Yield") == 0) {
                        g_assert_cmpint(sd_bus_message_read(m, "ot", &hold, &deadline), >, 0);
                        g_assert_cmpuint(deadline, >, 0);
                }
                *ret_deadline = deadline;
                return g_strdup(hold);
        }
}

static char *program_hear(Program *p, const char *member) {
        uint64_t deadline;

        return program_hear_yield(p, member, &deadline);
}

static void program_answer(Program *p, const char *hold) {
        g_autoptr(sd_bus_message) reply G_GNUC_UNUSED =
                client_call(p->client, p->path, MONITOR, "Yielded", "o", hold);
}

/* What PropertiesChanged tells of that monitor next; "Yield" and "Resume" for its own signals. */
static char *program_next(Client *c, const Program *p) {
        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(c, AWAIT_SEC * USEC_PER_SEC);

                g_assert_nonnull(m);
                if (g_strcmp0(sd_bus_message_get_path(m), p->path) != 0)
                        continue;
                if (sd_bus_message_is_signal(m, MONITOR, NULL) > 0)
                        return g_strdup(sd_bus_message_get_member(m));
                if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Properties",
                                             "PropertiesChanged") <= 0)
                        continue;
                bus_check(sd_bus_message_skip(m, "s"), "PropertiesChanged");
                return properties_read(m, "State");
        }
}

static bool program_tells(Client *c, const Program *p, const char *what) {
        g_autofree char *next = program_next(c, p);

        g_test_message("%s", next);
        return g_strcmp0(next, what) == 0;
}

static bool program_is(Program *p, const char *state) {
        return client_reads(p->client, p->path, MONITOR, "State", state);
}

static char *hold_of(Client *c, uint64_t yield_usec) {
        return hold_take_unattended(c, 0, "a{sv}", 2, BREAKPOINTS, "yield_usec", "t", yield_usec);
}

static void test_grant_waits_for_answer(void) {
        g_auto(Program) p = program_new("one", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_of(holder, 10 * USEC_PER_SEC);
        g_autofree char *asked = program_hear(&p, "Yield");

        g_assert_cmpstr(asked, ==, hold);
        g_assert_true(hold_is(holder, hold, "yielding"));
        g_assert_true(program_is(&p, "asked"));
        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, hold));
        g_assert_true(program_is(&p, "yielded"));
        hold_release(holder, hold);
        g_free(program_hear(&p, "Resume"));
        g_assert_true(program_is(&p, "counting"));
}

/* Each once, and to everyone: before the grant and after it. */
static void test_changes_of_state_are_signalled(void) {
        g_auto(Program) p = program_new("one", 0);
        g_autoptr(Client) holder = client_new("root"), bob = client_new("bob");
        g_autofree char *hold = NULL, *second = NULL, *third = NULL;

        client_watch(bob);
        hold = hold_of(holder, 10 * USEC_PER_SEC);
        g_assert_true(program_tells(p.client, &p, "Yield"));
        g_assert_true(program_tells(p.client, &p, "asked"));
        second = hold_of(holder, 10 * USEC_PER_SEC);
        program_answer(&p, hold);
        program_answer(&p, hold);
        g_assert_true(program_tells(p.client, &p, "yielded"));
        g_assert_true(hold_wait(holder, second));
        hold_release(holder, hold);
        hold_release(holder, second);
        g_assert_true(program_tells(p.client, &p, "Resume"));
        g_assert_true(program_tells(p.client, &p, "counting"));

        third = hold_of(holder, 10 * USEC_PER_SEC); /* whatever came before it came once */
        g_assert_true(program_tells(p.client, &p, "Yield"));
        for (const char *const *state =
                     (const char *const[]){ "asked", "yielded", "counting", "asked", NULL };
             *state; state++)
                g_assert_true(program_tells(bob, &p, *state));
        hold_release(holder, third);
}

/* It is told what it is from the moment it is there. */
static void test_newcomer_is_announced_before_its_state_changes(void) {
        g_autoptr(Client) holder = client_new("root"), bob = client_new("bob");
        g_autofree char *hold = hold_take_unattended(holder, 0, "a{sv}", 1, BREAKPOINTS),
                        *state = NULL;
        g_auto(Program) p = {};

        g_assert_true(hold_wait(holder, hold));
        client_watch(bob);
        p = program_new("newcomer", 0);
        while (!state) {
                g_autoptr(sd_bus_message) m = client_next(bob, AWAIT_SEC * USEC_PER_SEC);

                g_assert_nonnull(m);
                g_assert_cmpstr(sd_bus_message_get_path(m), !=, p.path);
                if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.ObjectManager",
                                             "InterfacesAdded") <= 0)
                        continue;
                bus_check(sd_bus_message_skip(m, "o"), "InterfacesAdded");
                state = object_read(m, MONITOR, "State");
        }
        g_assert_true(program_tells(bob, &p, "asked"));
        program_answer(&p, hold);
        g_assert_true(program_tells(bob, &p, "yielded"));
        hold_release(holder, hold);
        g_assert_true(program_tells(bob, &p, "counting"));
}

static void test_all_are_asked_at_once(void) {
        g_auto(Program) one = program_new("one", 0);
        g_auto(Program) two = program_new("two", 1);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_of(holder, 10 * USEC_PER_SEC);
        g_autofree char *asked_one = program_hear(&one, "Yield");
        g_autofree char *asked_two = program_hear(&two, "Yield");

        program_answer(&two, asked_two);
        g_assert_true(hold_is(holder, hold, "yielding"));
        program_answer(&one, asked_one);
        g_assert_true(hold_wait(holder, hold));
        hold_release(holder, hold);
}

/* The probe finds that one more has to yield, when the time of the first one is nearly over. */
static void test_late_one_has_its_time(void) {
        const uint64_t time = 10 * USEC_PER_SEC;
        g_autoptr(Actor) foreigner G_GNUC_UNUSED = foreigner_new(),
                                   other G_GNUC_UNUSED = foreigner_new();
        g_auto(Program) first = program_new("first", 0);
        g_auto(Program) second = program_new("second", 1);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *asked_first = NULL, *asked_second = NULL, *hold = NULL;
        uint64_t first_until, second_until;

        hold = hold_take_unattended(holder, 0, "a{sv}", 3, BREAKPOINTS, "counters", "u", 3,
                                    "yield_usec", "t", time);
        asked_first = program_hear_yield(&first, "Yield", &first_until);
        g_assert_true(program_is(&second, "counting"));
        service_clock_forward(time - USEC_PER_SEC);
        program_answer(&first, asked_first);
        asked_second = program_hear_yield(&second, "Yield", &second_until);
        g_assert_cmpuint(second_until, >=, first_until + time - USEC_PER_SEC);
        hold_release(holder, hold);
}

static void test_silent_one_is_an_obstacle(void) {
        g_auto(Program) p = program_new("silent", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_of(holder, 50 * USEC_PER_MSEC);

        g_free(program_hear(&p, "Yield"));
        client_refused(holder, PERFALLOC_ERROR_OBSTRUCTED, hold, HOLD, "Wait", "");
        g_assert_true(hold_names(holder, hold, getpid()));
        g_free(program_hear(&p, "Resume"));
}

static void test_silent_one_does_not_stop_best_effort(void) {
        g_auto(Program) p G_GNUC_UNUSED = program_new("silent", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold =
                hold_take_unattended(holder, 0, "a{sv}", 3, BREAKPOINTS, "yield_usec", "t",
                                     (uint64_t) 50 * USEC_PER_MSEC, "best_effort", "b", true);

        g_assert_false(hold_wait(holder, hold));
        g_assert_true(hold_names(holder, hold, getpid()));
        hold_release(holder, hold);
}

static void test_death_while_asked_is_no_obstacle(void) {
        g_auto(Program) p = program_new("mortal", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_of(holder, 60 * USEC_PER_SEC);

        g_free(program_hear(&p, "Yield"));
        g_clear_pointer(&p.client, client_free);
        g_assert_true(hold_wait(holder, hold));
        g_assert_cmpuint(client_count(holder, "monitor"), ==, 0);
        hold_release(holder, hold);
}

static void test_closed_lease_ends_it(void) {
        g_auto(Program) p = program_new("leaving", 0);

        p.lease = close_fd(p.lease);
        await(!client_finds(p.client, p.path, MONITOR));
}

/* An answer that comes when its hold is over does not count for the next one. */
static void test_late_answer_changes_nothing(void) {
        g_auto(Program) p = program_new("late", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *first = hold_of(holder, 60 * USEC_PER_SEC);
        g_autofree char *asked_first = program_hear(&p, "Yield"), *asked_second = NULL;
        g_autofree char *second = NULL;

        hold_release(holder, first);
        g_free(program_hear(&p, "Resume"));
        program_answer(&p, asked_first);
        g_assert_true(program_is(&p, "counting"));

        second = hold_of(holder, 60 * USEC_PER_SEC);
        asked_second = program_hear(&p, "Yield");
        program_answer(&p, asked_first);
        g_assert_true(hold_is(holder, second, "yielding"));
        program_answer(&p, asked_second);
        program_answer(&p, asked_second);
        g_assert_true(hold_wait(holder, second));
        hold_release(holder, second);
}

/* Its hold ends while another one waits for the same: it is asked for that one, and an answer for
 * the first one is not for the second. */
static void test_asked_again_when_its_hold_ends_before_another(void) {
        const uint64_t time = 60 * USEC_PER_SEC;
        g_auto(Program) p = program_new("slow", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *elsewhere = hold_take_unattended(holder, 0, "a{sv}", 1, "pmus", "as", 1,
                                                          "software"),
                        *first = hold_of(holder, time), *second = hold_of(holder, time);
        g_autofree char *asked_first = NULL, *asked_second = NULL;
        uint64_t first_until, second_until;

        g_assert_true(hold_wait(holder, elsewhere));
        asked_first = program_hear_yield(&p, "Yield", &first_until);
        g_assert_cmpstr(asked_first, ==, first);
        hold_release(holder, first);
        asked_second = program_hear_yield(&p, "Yield", &second_until);
        g_assert_cmpstr(asked_second, ==, second);
        g_assert_cmpuint(second_until, >=, first_until);
        g_assert_cmpuint(second_until, <, first_until + time);
        program_answer(&p, asked_first);
        g_assert_true(program_is(&p, "asked"));
        g_assert_true(hold_is(holder, second, "yielding"));
        program_answer(&p, asked_second);
        g_assert_true(hold_wait(holder, second));
        hold_release(holder, second);
        g_free(program_hear(&p, "Resume"));
        hold_release(holder, elsewhere);
}

static char *hold_behind(Client *c, const char *cpus) {
        return hold_take_unattended(c, 0, "a{sv}", 3, BREAKPOINTS, "cpus", "s", cpus, "wait_usec",
                                    "t", 60 * USEC_PER_SEC);
}

/* Two holds begin at once: it is told the one that is on its CPU. */
static void test_named_is_a_hold_that_is_in_its_way(void) {
        g_auto(Program) p = {};
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *first = NULL, *elsewhere = NULL, *here = NULL, *asked = NULL;

        if (n_cpus() < 2) {
                g_test_skip("one CPU only");
                return;
        }
        p = program_new_on("1", "slow", 0);
        first = hold_take_unattended(holder, 0, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive",
                                     "yield_usec", "t", 60 * USEC_PER_SEC);
        g_free(program_hear(&p, "Yield"));
        elsewhere = hold_behind(holder, "0");
        here = hold_behind(holder, "1");
        hold_release(holder, first);
        asked = program_hear(&p, "Yield");
        g_assert_cmpstr(asked, ==, here);
        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, elsewhere));
        g_assert_true(hold_wait(holder, here));
        hold_release(holder, elsewhere);
        hold_release(holder, here);
}

static void test_second_hold_asks_nobody_again(void) {
        g_auto(Program) p = program_new("one", 0);
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *first = hold_take_unattended(holder, 0, "a{sv}", 1, BREAKPOINTS);
        g_autofree char *asked = program_hear(&p, "Yield"), *second = NULL;

        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, first));
        second = hold_take_unattended(holder, 0, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(holder, second));
        hold_release(holder, first);
        g_assert_true(program_is(&p, "yielded"));
        hold_release(holder, second);
        g_free(program_hear(&p, "Resume"));
}

/* Whose own monitors are free, or late, waits for nobody else's. */
static void test_no_hold_waits_for_anothers_monitors(void) {
        g_auto(Program) p = program_new_on("0", "silent", 0);
        g_autoptr(Client) patient = client_new("root"), holder = client_new("carol");
        g_autofree char *long_one = hold_of(patient, UINT64_C(3600000000)), *free = NULL,
                        *obstructed = NULL;
        _cleanup_close_ int a = -1, b = -1;

        g_free(program_hear(&p, "Yield"));
        free = hold_take(holder, &a, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "1");
        g_assert_true(hold_wait(holder, free));
        obstructed = hold_take(holder, &b, "a{sv}", 2, BREAKPOINTS, "yield_usec", "t",
                               (uint64_t) 50 * USEC_PER_MSEC);
        client_refused(holder, PERFALLOC_ERROR_OBSTRUCTED, obstructed, HOLD, "Wait", "");
        g_assert_true(hold_names(holder, obstructed, getpid()));
        g_assert_true(hold_is(patient, long_one, "yielding"));
        hold_release(patient, long_one);
        g_free(program_hear(&p, "Resume"));
}

static void test_registered_while_held_is_asked(void) {
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_take_unattended(holder, 0, "a{sv}", 1, BREAKPOINTS);
        g_auto(Program) p = {};
        g_autofree char *asked = NULL;

        g_assert_true(hold_wait(holder, hold));
        p = program_new("newcomer", 0);
        asked = program_hear(&p, "Yield");
        g_assert_cmpstr(asked, ==, hold);
        program_answer(&p, asked);
        g_assert_true(program_is(&p, "yielded"));
        hold_release(holder, hold);
        g_free(program_hear(&p, "Resume"));
}

/* In a hold of a number of counters, one of lower priority makes room. */
static void test_registered_while_held_takes_anothers_place(void) {
        g_autoptr(Client) holder = client_new("root");
        g_auto(Program) low = program_new("low", 0), high = {};
        g_autofree char *hold = NULL, *asked = NULL;

        hold = hold_take_unattended(holder, 0, "a{sv}", 2, BREAKPOINTS, "counters", "u", 3);
        g_assert_true(hold_wait(holder, hold));
        g_assert_true(program_is(&low, "counting"));
        high = program_new("high", 5);
        asked = program_hear(&low, "Yield");
        g_assert_cmpstr(asked, ==, hold);
        g_assert_true(program_is(&high, "counting"));
        hold_release(holder, hold);
}

static char *hold_waiting(Client *c, uint64_t yield_usec) {
        return hold_take_unattended(c, 0, "a{sv}", 3, BREAKPOINTS, "wait_usec", "t",
                                    (uint64_t) 600 * USEC_PER_SEC, "yield_usec", "t", yield_usec);
}

/* Two holds begin at once: it is asked for the one that gives it less time. */
static void test_asked_for_the_more_urgent(void) {
        g_autoptr(Client) holder = client_new("root");
        g_auto(Program) p = program_new_on("1", "one", 0);
        g_autofree char *ahead = NULL, *slow = NULL, *fast = NULL, *asked = NULL;
        uint64_t deadline;

        ahead = hold_take_unattended(holder, 0, "a{sv}", 3, BREAKPOINTS, "cpus", "s", "0", "mode",
                                     "s", "exclusive");
        g_assert_true(hold_wait(holder, ahead));
        slow = hold_waiting(holder, 3600 * USEC_PER_SEC);
        fast = hold_waiting(holder, 60 * USEC_PER_SEC);
        hold_release(holder, ahead);
        asked = program_hear_yield(&p, "Yield", &deadline);
        g_assert_cmpstr(asked, ==, fast);
        g_assert_cmpuint(deadline, <, now_usec(CLOCK_MONOTONIC) + 1800 * USEC_PER_SEC);
        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, slow));
        hold_release(holder, slow);
        hold_release(holder, fast);
}

static void test_only_its_connection_answers(void) {
        g_auto(Program) p = program_new("one", 0);
        g_autoptr(Client) other = client_new("alice");

        client_refused(other, PERFALLOC_ERROR_NOT_OWNER, p.path, MONITOR, "Yielded", "o",
                       "/org/perfalloc1/hold/1");
        client_refused(p.client, SD_BUS_ERROR_INVALID_ARGS, p.path, MONITOR, "Yielded", "o",
                       "/org/perfalloc1");
}

/* Its signals are for its client only. */
static void test_others_hear_nothing(void) {
        g_auto(Program) p = program_new("one", 0);
        g_autoptr(Client) holder = client_new("root"), other = client_new("bob");
        g_autofree char *hold = NULL, *asked = NULL;
        sd_bus_message *m;

        client_watch(other);
        hold = hold_take_unattended(holder, 0, "a{sv}", 1, BREAKPOINTS);
        asked = program_hear(&p, "Yield");
        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, hold));
        hold_release(holder, hold);
        g_free(program_hear(&p, "Resume"));
        /* HoldEnded came after both */
        do {
                m = client_next(other, AWAIT_SEC * USEC_PER_SEC);
                g_assert_nonnull(m);
                g_assert_cmpint(sd_bus_message_is_signal(m, MONITOR, NULL), ==, 0);
        } while (!sd_bus_message_is_signal(m, PERFALLOC_MANAGER_INTERFACE, "HoldEnded") &&
                 sd_bus_message_unref(m) == NULL);
        sd_bus_message_unref(m);
}

static void test_name_is_its_own_affair(void) {
        g_auto(Program) p = program_new("secret", 0);
        g_autoptr(Client) bob = client_new("bob"), root = client_new("root");

        g_assert_true(client_reads(p.client, p.path, MONITOR, "Name", "secret"));
        g_assert_true(client_reads(root, p.path, MONITOR, "Name", "secret"));
        g_assert_true(client_reads(bob, p.path, MONITOR, "Name", ""));
}

static void test_needs_to_be_allowed(void) {
        g_autoptr(Client) bob = client_new("bob");

        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "RegisterMonitor", "sa{sv}", "x", 0);
}

static void test_bad_input_is_named(void) {
        g_autoptr(Client) alice = client_new("alice");

        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "RegisterMonitor", "sa{sv}",
                       "a\nb", 0);
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "RegisterMonitor", "sa{sv}", "x",
                       1, "pmus", "as", 1, "nope");
        g_assert_nonnull(strstr(alice->refusal, "nope"));
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "RegisterMonitor", "sa{sv}", "x",
                       1, "cpus", "s", "4711");
        g_assert_nonnull(strstr(alice->refusal, "cpus"));
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "RegisterMonitor", "sa{sv}", "x",
                       1, "colour", "s", "red");
        g_assert_nonnull(strstr(alice->refusal, "colour"));
        g_assert_cmpuint(client_count(alice, "monitor"), ==, 0);
}

static void test_ten_thousand_meet_the_quota(void) {
        g_autoptr(Client) alice = client_new("alice");
        unsigned descriptors = service_descriptors();
        g_autoptr(GArray) leases = g_array_new(false, false, sizeof(int));

        for (int i = 0; i < 64; i++) {
                g_autoptr(sd_bus_message) reply =
                        client_call(alice, MANAGER, "RegisterMonitor", "sa{sv}", "many", 0);
                const char *path;
                int lease;

                g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
                lease = dup(lease);
                g_array_append_val(leases, lease);
        }
        for (int i = 64; i < 10000; i++)
                client_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, MANAGER, "RegisterMonitor",
                               "sa{sv}", "many", 0);
        g_assert_nonnull(strstr(alice->refusal, "MonitorsPerUser"));
        for (guint i = 0; i < leases->len; i++)
                close(g_array_index(leases, int, i));
        await(client_count(alice, "monitor") == 0);
        await(service_descriptors() <= descriptors);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/registered/grant-waits-for-answer", test_grant_waits_for_answer);
        g_test_add_func("/registered/changes-of-state-are-signalled",
                        test_changes_of_state_are_signalled);
        g_test_add_func("/registered/newcomer-is-announced-before-its-state-changes",
                        test_newcomer_is_announced_before_its_state_changes);
        g_test_add_func("/registered/all-are-asked-at-once", test_all_are_asked_at_once);
        g_test_add_func("/registered/late-one-has-its-time", test_late_one_has_its_time);
        g_test_add_func("/registered/silent-one-is-an-obstacle", test_silent_one_is_an_obstacle);
        g_test_add_func("/registered/silent-one-does-not-stop-best-effort",
                        test_silent_one_does_not_stop_best_effort);
        g_test_add_func("/registered/no-hold-waits-for-the-monitors-of-another",
                        test_no_hold_waits_for_anothers_monitors);
        g_test_add_func("/registered/death-while-asked-is-no-obstacle",
                        test_death_while_asked_is_no_obstacle);
        g_test_add_func("/registered/closed-lease-ends-it", test_closed_lease_ends_it);
        g_test_add_func("/registered/late-answer-changes-nothing",
                        test_late_answer_changes_nothing);
        g_test_add_func("/registered/asked-again-when-its-hold-ends-before-another",
                        test_asked_again_when_its_hold_ends_before_another);
        g_test_add_func("/registered/named-is-a-hold-that-is-in-its-way",
                        test_named_is_a_hold_that_is_in_its_way);
        g_test_add_func("/registered/second-hold-asks-nobody-again",
                        test_second_hold_asks_nobody_again);
        g_test_add_func("/registered/registered-while-held-is-asked",
                        test_registered_while_held_is_asked);
        g_test_add_func("/registered/registered-while-held-takes-anothers-place",
                        test_registered_while_held_takes_anothers_place);
        g_test_add_func("/registered/asked-for-the-more-urgent", test_asked_for_the_more_urgent);
        g_test_add_func("/registered/only-its-connection-answers",
                        test_only_its_connection_answers);
        g_test_add_func("/registered/others-hear-nothing", test_others_hear_nothing);
        g_test_add_func("/registered/name-is-its-own-affair", test_name_is_its_own_affair);
        g_test_add_func("/registered/needs-to-be-allowed", test_needs_to_be_allowed);
        g_test_add_func("/registered/bad-input-is-named", test_bad_input_is_named);
        g_test_add_func("/registered/ten-thousand-meet-the-quota",
                        test_ten_thousand_meet_the_quota);
        return g_test_run();
}
