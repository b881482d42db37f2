/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds beside holds: promises add up, and what holders have open of theirs is not missing. */

#include "cpu-switch.h"
#include "guest-util.h"
#include "service-process.h"

#include <signal.h>
#include <sys/syscall.h>

static const Stranger three = { .kind = INSTRUCTIONS, .cpu = -1, .n = 3 };
static const Stranger two = { .kind = INSTRUCTIONS, .cpu = -1, .n = 2 };
static const Stranger one = { .kind = INSTRUCTIONS, .cpu = -1, .n = 1, .pinned = true };

typedef struct Held {
        Client *client;
        char *path;
        int lease;
} Held;

/* counters 0: all */
static Held *held_new(Client *c, unsigned counters) {
        Held *h = g_new0(Held, 1);

        h->client = c;
        h->path = hold_take(c, &h->lease, "a{sv}", 2, "counters", "u", (uint32_t) counters,
                            "best_effort", "b", 1);
        return h;
}

static void held_free(Held *h) {
        close_fd(h->lease);
        await(hold_is(h->client, h->path, "ended"));
        g_free(h->path);
        g_free(h);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Held, held_free)

/* Takes one and lets it go: whether it is confirmed. */
static bool is_confirmed(Client *c, unsigned counters) {
        g_autoptr(Held) h = held_new(c, counters);

        return hold_wait(c, h->path);
}

static bool is_confirmed_but_for(Client *c, unsigned counters, pid_t stranger) {
        g_autoptr(Held) h = held_new(c, counters);
        bool confirmed = hold_wait(c, h->path);

        g_assert_true(confirmed || hold_names(c, h->path, stranger));
        return confirmed;
}

static void events_open(Client *c, const char *event, unsigned n) {
        while (n-- > 0)
                g_free(counter_open(c, event, "a{sv}", 1, "scope", "s", "cpu"));
}

static void instructions_open(Client *c, unsigned n) {
        events_open(c, "instructions", n);
}

/* ---- what holders open through the service ---- */

static void test_known_beside_stranger(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = held_new(alice, 3);
        g_autoptr(Actor) stranger = NULL;

        g_assert_true(hold_wait(alice, part->path));
        stranger = stranger_new(&one);
        g_assert_false(is_confirmed_but_for(carol, 3, stranger->pid));
        instructions_open(alice, 3);
        g_assert_true(is_confirmed(carol, 2));
        g_assert_false(is_confirmed_but_for(carol, 3, stranger->pid));
        stranger_assert_alive(stranger, true);
}

/* Half of it is open: the other half is still promised. */
static void test_known_in_part(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = held_new(alice, 2);
        g_autoptr(Actor) stranger = NULL;

        g_assert_true(hold_wait(alice, part->path));
        instructions_open(alice, 1);
        stranger = stranger_new(&two);
        g_assert_true(is_confirmed(carol, 2));
        g_assert_false(is_confirmed_but_for(carol, 3, stranger->pid));
}

/* The counter of cycles counts for one of them, and nobody knows for whom. */
static void test_known_cycles(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) alices = held_new(alice, 1), carols = NULL;
        g_autoptr(Actor) stranger = NULL;

        g_assert_true(hold_wait(alice, alices->path));
        carols = held_new(carol, 3);
        g_assert_true(hold_wait(carol, carols->path));
        events_open(alice, "cycles", 1);
        events_open(carol, "cycles", 1);
        g_assert_true(is_confirmed(alice, 0));
        g_assert_true(is_confirmed(alice, 2));
        stranger = stranger_new(&one);
        g_assert_false(is_confirmed_but_for(alice, 2, stranger->pid));
}

/* The counters of a monitor that stays are nobody's promise. */
static void test_monitor_stays(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol"),
                          root = client_new("root");
        g_autofree char *monitor = counter_open(root, "instructions", "a{sv}", 2, "scope", "s",
                                                "cpu", "role", "s", "monitor");
        g_autoptr(Held) part = held_new(alice, 3);

        g_assert_true(hold_wait(alice, part->path));
        instructions_open(alice, 3);
        g_assert_true(is_confirmed(carol, 2));
        g_assert_true(counter_is(root, monitor, "counting"));
        g_assert_true(is_confirmed(carol, 3));
}

/* ---- what they open by themselves ---- */

static void test_hidden(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = held_new(alice, 3);
        g_autoptr(Actor) own = NULL;

        g_assert_true(hold_wait(alice, part->path));
        own = stranger_of("alice", &three);
        g_assert_true(is_confirmed(carol, 3));
        g_assert_true(is_confirmed(carol, 2));
        stranger_assert_alive(own, false);
}

static void test_hidden_beside_stranger(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = held_new(alice, 2);
        g_autoptr(Actor) own = NULL, stranger = NULL;

        g_assert_true(hold_wait(alice, part->path));
        own = stranger_of("alice", &two);
        stranger = stranger_new(&one);
        g_assert_true(is_confirmed(carol, 2));
        g_assert_false(is_confirmed_but_for(carol, 4, stranger->pid));
}

/* No monitor makes room for what a holder has already. */
static void test_hidden_beside_monitor(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol"),
                          root = client_new("root");
        g_autofree char *monitor = counter_open(root, "instructions", "a{sv}", 2, "scope", "s",
                                                "cpu", "role", "s", "monitor");
        g_autoptr(Held) part = held_new(alice, 3), second = NULL;
        g_autoptr(Actor) own = NULL;

        g_assert_true(hold_wait(alice, part->path));
        own = stranger_of("alice", &three);
        second = held_new(carol, 2);
        g_assert_true(hold_wait(carol, second->path));
        g_assert_true(counter_is(root, monitor, "counting"));
}

static unsigned promised(Client *c, const char *hold) {
        g_autoptr(sd_bus_message) m = client_get_variant(c, hold, HOLD, "Promised", "a(suas)");
        const char *pmu;
        uint32_t n;

        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "(suas)"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(m, 'r', "suas"), >, 0);
        g_assert_cmpint(sd_bus_message_read(m, "su", &pmu, &n), >, 0);
        return n;
}

static void test_all_beside_all(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) all = held_new(alice, 0);
        g_autoptr(Actor) own = NULL;

        g_assert_true(hold_wait(alice, all->path));
        g_assert_cmpuint(promised(alice, all->path), ==, GENERAL);
        own = stranger_of("alice", &three);
        {
                g_autoptr(Held) second = held_new(carol, 0);

                g_assert_true(hold_wait(carol, second->path));
                g_assert_cmpuint(promised(carol, second->path), ==, 3);
        }
        g_assert_true(is_confirmed(carol, 3));
        g_assert_false(is_confirmed_but_for(carol, 4, own->pid));
}

/* Seven by number, used: nothing is left of all. */
static void test_all_beside_a_number(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = held_new(alice, GENERAL), all = NULL;

        g_assert_true(hold_wait(alice, part->path));
        instructions_open(alice, GENERAL);
        all = held_new(carol, 0);
        g_assert_true(hold_wait(carol, all->path));
        g_assert_cmpuint(promised(carol, all->path), ==, 0);
}

/* Promised and unused, beside a stranger. */
static void test_unused_beside_stranger(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = held_new(alice, 3);
        g_autoptr(Actor) stranger = NULL;

        g_assert_true(hold_wait(alice, part->path));
        stranger = stranger_new(&two);
        g_assert_false(is_confirmed_but_for(carol, 2, stranger->pid));
        g_assert_true(is_confirmed(carol, 1));
}

/* ---- what was measured before ---- */

/* Somebody comes after the first hold, and goes again; the service dies in between. */
static void test_measured_anew(gconstpointer killed) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) all = held_new(alice, 0);
        Stranger s = { .kind = INSTRUCTIONS, .cpu = -1, .n = GENERAL, .pinned = true };
        g_autoptr(Actor) stranger = NULL;

        g_assert_true(hold_wait(alice, all->path));
        stranger = stranger_new(&s);
        if (killed)
                service_kill(carol);
        g_assert_false(is_confirmed_but_for(carol, 0, stranger->pid));
        g_assert_false(is_confirmed_but_for(carol, 1, stranger->pid));
        stranger_assert_alive(stranger, true);
        actor_free(g_steal_pointer(&stranger));
        g_assert_true(is_confirmed(carol, 0));
}

/* What was missing on CPU 0 for one hold is not missing on CPU 1 for another. */
static void test_measured_elsewhere(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        Stranger s = { .kind = INSTRUCTIONS, .cpu = 0, .n = 2 };
        g_autoptr(Actor) stranger = stranger_new(&s);
        g_autoptr(Held) all = held_new(alice, 0);
        g_autofree char *other = NULL;
        _cleanup_close_ int lease = -1;

        g_assert_false(hold_wait(alice, all->path));
        other = hold_take(carol, &lease, "a{sv}", 1, "cpus", "s", "1");
        g_assert_true(hold_wait(carol, other));
}

/* ---- what is not a holder's ---- */

static void test_older(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Actor) own = stranger_of("alice", &three);
        g_autoptr(Held) part = held_new(alice, 2);

        g_assert_true(hold_wait(alice, part->path));
        g_assert_true(is_confirmed(carol, 1));
        g_assert_false(is_confirmed_but_for(carol, 2, own->pid));
        stranger_assert_alive(own, false);
}

/* The same of counters that the service opened. */
static void test_older_known(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = NULL;

        instructions_open(alice, 3);
        part = held_new(alice, 2);
        g_assert_true(hold_wait(alice, part->path));
        g_assert_true(is_confirmed(carol, 1));
        g_assert_false(is_confirmed_but_for(carol, 2, getpid()));
}

static void test_unconfirmed(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Actor) stranger = stranger_new(&one), own = NULL;
        g_autoptr(Held) all = held_new(alice, 0);

        g_assert_false(hold_wait(alice, all->path));
        actor_free(g_steal_pointer(&stranger));
        own = stranger_of("alice", &two);
        g_assert_false(is_confirmed_but_for(carol, 0, own->pid));
        /* nothing was promised by it */
        g_assert_true(is_confirmed(carol, 4));
}

/* A hold of CPU 0 makes nobody a holder on CPU 1. */
static void test_elsewhere(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autofree char *part = NULL, *other = NULL;
        _cleanup_close_ int a = -1, b = -1;
        Stranger s = three;
        g_autoptr(Actor) own = NULL;

        s.cpu = 1;
        part = hold_take(alice, &a, "a{sv}", 1, "cpus", "s", "0");
        g_assert_true(hold_wait(alice, part));
        own = stranger_of("alice", &s);
        other = hold_take(carol, &b, "a{sv}", 1, "cpus", "s", "1");
        client_refused(carol, PERFALLOC_ERROR_OBSTRUCTED, other, HOLD, "Wait", NULL);
        g_assert_true(hold_names(carol, other, own->pid));
}

static bool hold_is_confirmed(const Held *h) {
        g_autoptr(sd_bus_message) m =
                client_get_variant(h->client, h->path, HOLD, "Confirmed", "b");
        int confirmed;

        g_assert_cmpint(sd_bus_message_read(m, "b", &confirmed), >, 0);
        return confirmed;
}

/* By the thread that looks, which is another one where the first is on that CPU. */
static bool service_waits_for_opener(void) {
        g_autofree char *tasks = g_strdup_printf("/proc/%d/task", (int) service_pid());
        g_autoptr(GDir) dir = g_dir_open(tasks, 0, NULL);
        const char *tid;
        bool waits = false;

        while (dir && !waits && (tid = g_dir_read_name(dir))) {
                g_autofree char *path = g_build_filename(tasks, tid, "syscall", NULL), *text = NULL;

                waits = g_file_get_contents(path, &text, NULL, NULL) && atoi(text) == SYS_recvmsg;
        }
        return waits;
}

/* A CPU that has come online is measured for the hold that stands. Such a look was slow, so its
 * group stays on the CPU for longer than another probe lasts. */
static void test_joined_while_another_waits(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) all = NULL;
        pid_t opener;

        cpu_must_switch(false);
        all = held_new(alice, 0);
        g_assert_true(hold_wait(alice, all->path));
        opener = service_opener();
        (void) kill(opener, SIGSTOP);
        cpu_must_switch(true);
        await(service_waits_for_opener());
        g_usleep(100000); /* how slow it is */
        (void) kill(opener, SIGCONT);
        g_assert_true(is_confirmed(carol, 3));
        await(hold_is_confirmed(all));
}

/* One CPU has come online, and is another's: the promise on the others stands. */
static void test_joined_is_not_confirmed(void) {
        g_autoptr(Client) alice = client_new("alice"), carol = client_new("carol");
        g_autoptr(Held) part = NULL;
        g_autoptr(Actor) stranger = NULL;
        g_autofree char *rest = NULL;
        _cleanup_close_ int lease = -1;
        Stranger s = { .kind = INSTRUCTIONS, .cpu = 1, .n = GENERAL };
        pid_t service = service_pid();

        cpu_must_switch(false);
        part = held_new(alice, 4);
        g_assert_true(hold_wait(alice, part->path));
        g_assert_cmpint(kill(service, SIGSTOP), ==, 0);
        cpu_must_switch(true);
        stranger = stranger_new(&s);
        g_assert_cmpint(kill(service, SIGCONT), ==, 0);
        await(!hold_is_confirmed(part));
        rest = hold_take(carol, &lease, "a{sv}", 1, "cpus", "s", "0");
        g_assert_true(hold_wait(carol, rest));
        g_assert_cmpuint(promised(carol, rest), ==, GENERAL - 4);
        actor_free(g_steal_pointer(&stranger));
        lease = close_fd(lease);
        await(hold_is_confirmed(part));
}

int main(int argc, char **argv) {
        int r;

        g_test_init(&argc, &argv, NULL);
        strangers_may_count(true);
        g_test_add_func("/beside/what-the-service-opened-for-a-holder-is-not-missing",
                        test_known_beside_stranger);
        g_test_add_func("/beside/what-a-holder-has-not-opened-yet-is", test_known_in_part);
        g_test_add_func("/beside/the-event-of-one-of-two-has-the-fixed-counter", test_known_cycles);
        g_test_add_func("/beside/monitors-that-stay-are-nobodys-promise", test_monitor_stays);
        g_test_add_func("/beside/what-holders-opened-themselves-is-not-missing", test_hidden);
        g_test_add_func("/beside/nor-is-it-beside-a-stranger", test_hidden_beside_stranger);
        g_test_add_func("/beside/no-monitor-yields-for-it", test_hidden_beside_monitor);
        g_test_add_func("/beside/all-beside-all-is-what-is-left", test_all_beside_all);
        g_test_add_func("/beside/all-beside-a-number-is-the-rest", test_all_beside_a_number);
        g_test_add_func("/beside/unused-promises-must-fit-beside-strangers",
                        test_unused_beside_stranger);
        g_test_add_data_func("/beside/no-grant-is-looked-up", NULL, test_measured_anew);
        g_test_add_data_func("/beside/no-grant-is-looked-up-by-a-new-service",
                             GINT_TO_POINTER(true), test_measured_anew);
        g_test_add_func("/beside/what-is-missing-on-one-cpu-is-not-on-another",
                        test_measured_elsewhere);
        g_test_add_func("/beside/what-is-older-than-the-hold-is-a-strangers", test_older);
        g_test_add_func("/beside/so-is-what-the-service-opened-before", test_older_known);
        g_test_add_func("/beside/an-unconfirmed-hold-makes-no-holder", test_unconfirmed);
        g_test_add_func("/beside/nor-does-a-hold-of-other-cpus", test_elsewhere);
        g_test_add_func("/beside/a-cpu-that-came-and-is-taken-changes-nothing-elsewhere",
                        test_joined_is_not_confirmed);
        g_test_add_func("/beside/a-cpu-that-came-is-measured-for-one-at-a-time",
                        test_joined_while_another_waits);
        r = g_test_run();
        strangers_may_count(false);
        return r;
}
