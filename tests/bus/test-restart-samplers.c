/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Samplers, registered monitors and bridges go on when the service is restarted or killed. */

#include "bus-util.h"
#include "restart-util.h"

#include <fcntl.h>
#include <perfalloc/sample.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SAMPLER PERFALLOC_SAMPLER_INTERFACE
#define MONITOR PERFALLOC_MONITOR_INTERFACE

#define MSEC USEC_PER_MSEC

/* Stops it first, so that it notices nothing until it is killed. */
static void service_pause(void) {
        rig("service-signal STOP", NULL);
}

static void service_come_back(void) {
        rig(KILLED, NULL);
}

/* ---- samplers ---- */

typedef struct Sampler {
        Client *client;
        char *path;
        int stream;
        uint64_t interval, start;
        uint64_t next, told, missed; /* as the records say */
        uint64_t value;              /* of the first reading, which never falls */
} Sampler;

typedef union Record {
        struct perfalloc_sample head;
        struct {
                uint64_t words[4]; /* the head's */
                struct perfalloc_reading readings[2];
        };
} Record;

/* Of at most two counters; types is "a{sv}". */
static Sampler *sampler_create(Client *c, const char *first, const char *second, uint64_t interval,
                               const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "CreateSampler"), reply = NULL;
        Sampler *s = g_new0(Sampler, 1);
        const char *path;
        va_list ap;

        g_assert_cmpint(
                sd_bus_message_append(m, "ao", (first != NULL) + (second != NULL), first, second),
                >=, 0);
        g_assert_cmpint(sd_bus_message_append_basic(m, 't', &interval), >=, 0);
        va_start(ap, types);
        g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
        va_end(ap);
        reply = client_call_message(c, m);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &s->stream), >, 0);
        s->stream = fcntl(s->stream, F_DUPFD_CLOEXEC, 3);
        s->client = c;
        s->path = g_strdup(path);
        s->interval = interval;
        s->start = client_get_number(c, path, SAMPLER, "StartUSec", 't');
        return s;
}

static void sampler_free(Sampler *s) {
        if (!s)
                return;
        close_fd(s->stream);
        g_free(s->path);
        g_free(s);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sampler, sampler_free)

static uint64_t sampler_number(const Sampler *s, const char *property) {
        return client_get_number(s->client, s->path, SAMPLER, property, 't');
}

/* Opens the two counters that it reads. */
static char *sampler_counters(const Sampler *s) {
        g_autoptr(sd_bus_message) m = NULL;
        const char *first, *second;

        g_assert_cmpint(sd_bus_get_property(s->client->bus, PERFALLOC_BUS_NAME, s->path, SAMPLER,
                                            "Counters", NULL, &m, "ao"),
                        >=, 0);
        g_assert_cmpint(sd_bus_message_read(m, "ao", 2, &first, &second), >, 0);
        return g_strconcat(first, " ", second, NULL);
}

static void samplers_do(Client *c, const char *method) {
        sd_bus_message_unref(client_call(c, MANAGER, method, NULL));
}

/* False: there is no record now. Whatever happened before it, a record is on the grid, and reports
 * what was missed. */
static bool record_get(Sampler *s, Record *ret) {
        ssize_t size = recv(s->stream, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);
        uint64_t usec = ret->head.boottime_nsec / NSEC_PER_USEC;

        if (size < 0) {
                g_assert_cmpint(errno, ==, EAGAIN);
                return false;
        }
        g_assert_cmpint(size, ==, PERFALLOC_SAMPLE_SIZE(ret->head.n_readings));
        g_assert_cmpuint(ret->head.tick, ==, s->next + ret->head.missed);
        g_assert_cmpuint(usec, >=, s->start + ret->head.tick * s->interval);
        if (s->interval > 0)
                g_assert_cmpuint(usec, <, s->start + (ret->head.tick + 1) * s->interval);
        s->next = ret->head.tick + 1;
        s->missed += ret->head.missed;
        s->told++;
        if (ret->head.n_readings > 0) {
                g_assert_cmpuint(ret->readings[0].value, >=, s->value);
                s->value = ret->readings[0].value;
        }
        return true;
}

static void record_await(Sampler *s, Record *ret) {
        await(record_get(s, ret));
}

/* The service's count is what was read, no more and no less. The client blocks its samplers for
 * that. */
static void assert_counted(Sampler *s) {
        Record r;

        samplers_do(s->client, "BlockSamplers");
        while (record_get(s, &r))
                ;
        g_assert_cmpuint(sampler_number(s, "Ticks"), ==, s->told);
        g_assert_cmpuint(sampler_number(s, "Missed"), ==, s->missed);
        g_assert_cmpuint(s->told + s->missed, ==, s->next);
        samplers_do(s->client, "UnblockSamplers");
}

static void test_grid_goes_on(const void *command) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(Sampler) s = sampler_create(alice, counter, NULL, 2 * MSEC, "a{sv}", 0);
        Record r;

        watched_write(0, 7);
        do
                record_await(s, &r);
        while (s->value < hits(7));
        for (unsigned i = 0; i < 3; i++) {
                uint64_t before = s->missed;

                rig(command, NULL);
                watched_write(0, 1);
                do
                        record_await(s, &r);
                while (hits(1) > 0 ? s->value < 8 + i : s->missed == before);
                g_assert_cmpuint(s->missed, >, before); /* a restart takes longer than a tick */
                assert_counted(s);
        }
        g_assert_cmpuint(s->value, ==, hits(10));
        g_assert_cmpuint(sampler_number(s, "StartUSec"), ==, s->start);
        g_assert_cmpuint(sampler_number(s, "IntervalUSec"), ==, s->interval);
        g_assert_cmpuint(client_count(alice, "sampler"), ==, 1);
}

static void test_no_tick_is_lost_or_told_twice(void) {
        const char *kills = g_getenv("PERFALLOC_TEST_KILLS");
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(Sampler) fast = sampler_create(alice, NULL, NULL, MSEC, "a{sv}", 0);
        g_autoptr(Sampler) slow = sampler_create(bob, NULL, NULL, 300 * MSEC, "a{sv}", 0);
        Record r;

        for (int i = kills ? atoi(kills) : 10; i > 0; i--) {
                record_await(fast, &r);
                g_usleep((gulong) g_test_rand_int_range(0, 3000));
                rig(KILLED, NULL);
                while (record_get(slow, &r))
                        ;
                assert_counted(fast);
        }
        record_await(slow, &r);
        assert_counted(slow);
}

static void test_only_tick_is_told_once(const void *command) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) told = sampler_create(alice, NULL, NULL, 0, "a{sv}", 0);
        g_autoptr(Sampler) later = sampler_create(alice, NULL, NULL, 0, "a{sv}", 1, "start_usec",
                                                  "t", (uint64_t) 500 * MSEC);
        Record r;

        record_await(told, &r);
        rig(command, NULL);
        record_await(later, &r);
        g_assert_cmpuint(r.head.missed, ==, 0);
        g_assert_false(record_get(told, &r));
        assert_counted(told);
}

static void test_closed_counter_keeps_its_reading(const void *command) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *closed = counter_open(alice, event, "a{sv}", 0);
        g_autofree char *open = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(Sampler) s = sampler_create(alice, closed, open, 2 * MSEC, "a{sv}", 0);
        g_autofree char *before = NULL, *after = NULL;
        Record r;

        watched_write(0, 5);
        do
                record_await(s, &r);
        while (s->value < hits(5));
        counter_do(alice, closed, "Close");
        before = sampler_counters(s);
        rig(command, NULL);
        watched_write(0, 2);
        do
                record_await(s, &r);
        while (r.readings[1].value < hits(7));
        g_assert_cmpuint(r.readings[0].value, ==, hits(5));
        g_assert_cmpuint(r.readings[0].quality, ==, PERFALLOC_QUALITY_NOT_COUNTED);
        g_assert_cmpuint(r.readings[1].quality, ==, PERFALLOC_QUALITY_EXACT);
        after = sampler_counters(s);
        g_assert_cmpstr(after, ==, before);
}

static void test_who_blocks_goes_on_to(const void *command) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(Sampler) blocked = sampler_create(alice, NULL, NULL, 2 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) later = NULL, free_one G_GNUC_UNUSED = NULL;
        Record r;

        record_await(blocked, &r);
        samplers_do(alice, "BlockSamplers");
        samplers_do(bob, "BlockSamplers"); /* who has none */
        while (record_get(blocked, &r))
                ;
        rig(command, NULL);
        later = sampler_create(bob, NULL, NULL, 2 * MSEC, "a{sv}", 0);
        g_assert_true(client_get_number(alice, blocked->path, SAMPLER, "Blocked", 'b'));
        g_assert_true(client_get_number(bob, later->path, SAMPLER, "Blocked", 'b'));
        samplers_do(bob, "UnblockSamplers");
        for (unsigned i = 0; i < 5; i++)
                record_await(later, &r);
        g_assert_false(record_get(blocked, &r));
        samplers_do(alice, "UnblockSamplers");
        record_await(blocked, &r);
        g_assert_cmpuint(r.head.missed, >, 0);
}

static void test_signals_go_on(const void *command) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s G_GNUC_UNUSED =
                sampler_create(alice, NULL, NULL, 20 * MSEC, "a{sv}", 1, "signal", "b", 1);
        uint64_t next = 0, end = UINT64_MAX;

        client_watch(alice);
        while (next < end) {
                g_autoptr(sd_bus_message) m = client_next(alice, AWAIT_SEC * USEC_PER_SEC);
                uint64_t tick, nsec, missed;

                g_assert_nonnull(m);
                if (sd_bus_message_is_signal(m, SAMPLER, "Sample") <= 0)
                        continue;
                g_assert_cmpint(sd_bus_message_read(m, "ttt", &tick, &nsec, &missed), >, 0);
                g_assert_cmpuint(tick, >=, next);
                next = tick + 1;
                if (end == UINT64_MAX && next >= 3) {
                        rig(command, NULL);
                        end = next + 10;
                }
        }
}

static void test_what_ends_meanwhile_is_noticed(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autoptr(Sampler) closed = sampler_create(alice, NULL, NULL, 2 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) left = sampler_create(other, NULL, NULL, 2 * MSEC, "a{sv}", 0);
        char byte;

        service_pause();
        closed->stream = close_fd(closed->stream);
        g_clear_pointer(&other, client_free);
        service_come_back();
        await(client_count(alice, "sampler") == 0);
        /* the other's stream is at its end, behind what was still sent */
        await(recv(left->stream, &byte, 1, MSG_DONTWAIT) == 0);
}

static void test_sampler_ends_as_before(const void *command) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) one = sampler_create(alice, NULL, NULL, 2 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) two = sampler_create(alice, NULL, NULL, 2 * MSEC, "a{sv}", 0);
        char byte;

        rig(command, NULL);
        sd_bus_message_unref(client_call(alice, one->path, SAMPLER, "Close", NULL));
        await(recv(one->stream, &byte, 1, MSG_DONTWAIT) == 0);
        two->stream = close_fd(two->stream);
        await(client_count(alice, "sampler") == 0);
}

/* ---- registered monitors ---- */

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

static Program program_new(const char *name) {
        Program p = { .client = client_new("alice") };
        g_autoptr(sd_bus_message) reply = NULL;
        const char *path;
        int lease;

        client_watch(p.client);
        reply = client_call(p.client, MANAGER, "RegisterMonitor", "sa{sv}", name, 2, BREAKPOINTS,
                            "priority", "u", 7u);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
        p.path = g_strdup(path);
        p.lease = fcntl(lease, F_DUPFD_CLOEXEC, 3);
        return p;
}

/* The next signal of the monitor's object has to be this; for Yield returns the hold's path. */
static char *program_hear(Program *p, const char *member) {
        for (;;) {
                g_autoptr(sd_bus_message) m = client_next(p->client, AWAIT_SEC * USEC_PER_SEC);
                const char *hold = NULL;
                uint64_t deadline;

                if (!m)
                        g_error("no %s came", member);
                if (sd_bus_message_is_signal(m, MONITOR, NULL) <= 0)
                        continue;
                g_assert_cmpstr(sd_bus_message_get_path(m), ==, p->path);
                g_assert_cmpstr(sd_bus_message_get_member(m), ==, member);
                if (strcmp(member, "Yield") == 0) {
                        g_assert_cmpint(sd_bus_message_read(m, "ot", &hold, &deadline), >, 0);
                        g_assert_cmpuint(deadline, >, (uint64_t) g_get_monotonic_time());
                }
                return g_strdup(hold);
        }
}

static void program_answer(Program *p, const char *hold) {
        g_autoptr(sd_bus_message) reply G_GNUC_UNUSED =
                client_call(p->client, p->path, MONITOR, "Yielded", "o", hold);
}

static bool program_is(Program *p, const char *state) {
        return client_reads(p->client, p->path, MONITOR, "State", state);
}

static char *hold_of_breakpoints(Client *c) {
        return hold_take_unattended(c, 0, "a{sv}", 2, BREAKPOINTS, "yield_usec", "t",
                                    (uint64_t) 10 * USEC_PER_SEC);
}

static void test_yielded_stays_yielded(const void *command) {
        g_auto(Program) p = program_new("one");
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_of_breakpoints(holder);
        g_autofree char *asked = program_hear(&p, "Yield");

        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, hold));
        for (unsigned i = 0; i < 2; i++) {
                rig(command, NULL);
                g_assert_true(program_is(&p, "yielded"));
        }
        g_assert_true(client_reads(p.client, p.path, MONITOR, "Name", "one"));
        g_assert_cmpuint(client_get_number(p.client, p.path, MONITOR, "Priority", 'u'), ==, 7);
        g_assert_cmpuint(client_get_number(p.client, p.path, MONITOR, "Pid", 'u'), ==, getpid());
        hold_release(holder, hold);
        g_free(program_hear(&p, "Resume")); /* and no Yield before it */
        g_assert_true(program_is(&p, "counting"));
}

static void test_who_has_not_answered_is_asked_again(const void *command) {
        g_auto(Program) p = program_new("one");
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = hold_of_breakpoints(holder);
        g_autofree char *asked = program_hear(&p, "Yield"), *again = NULL;

        rig(command, NULL);
        g_assert_true(program_is(&p, "asked"));
        again = program_hear(&p, "Yield");
        g_assert_cmpstr(again, ==, asked);
        g_assert_true(hold_is(holder, hold, "yielding"));
        program_answer(&p, again);
        g_assert_true(hold_wait(holder, hold));
        g_assert_true(program_is(&p, "yielded"));
        hold_release(holder, hold);
        g_free(program_hear(&p, "Resume"));
}

static void test_it_goes_on_when_the_hold_ended_meanwhile(void) {
        g_auto(Program) p = program_new("one");
        g_autoptr(Client) holder = client_new("root");
        int lease;
        g_autofree char *hold = hold_take(holder, &lease, "a{sv}", 2, BREAKPOINTS, "yield_usec",
                                          "t", (uint64_t) 10 * USEC_PER_SEC);
        g_autofree char *asked = program_hear(&p, "Yield");

        program_answer(&p, asked);
        g_assert_true(hold_wait(holder, hold));
        service_pause();
        close_fd(lease);
        service_come_back();
        g_free(program_hear(&p, "Resume"));
        g_assert_true(program_is(&p, "counting"));
}

static void test_monitor_ends_as_before(const void *command) {
        g_autoptr(Client) alice = client_new("alice");
        g_auto(Program) one = program_new("one");
        g_auto(Program) two = program_new("two");

        rig(command, NULL);
        g_assert_cmpuint(client_count(alice, "monitor"), ==, 2);
        one.lease = close_fd(one.lease);
        await(client_count(alice, "monitor") == 1);
        g_clear_pointer(&two.client, client_free);
        await(client_count(alice, "monitor") == 0);
}

static void test_monitor_that_left_meanwhile_is_gone(void) {
        g_autoptr(Client) alice = client_new("alice"), holder = client_new("root");
        g_auto(Program) one = program_new("one");
        g_auto(Program) two = program_new("two");
        g_autofree char *hold = hold_of_breakpoints(holder);

        g_free(program_hear(&one, "Yield"));
        g_free(program_hear(&two, "Yield"));
        service_pause();
        one.lease = close_fd(one.lease);
        g_clear_pointer(&two.client, client_free);
        service_come_back();
        await(client_count(alice, "monitor") == 0);
        g_assert_true(hold_wait(holder, hold)); /* nothing blocks it */
        hold_release(holder, hold);
}

/* ---- bridges ---- */

#define PERFLOCK "/run/perflock"

/* As pmdaperfevent, but as fast as possible: from now on some process must hold the lock. */
static int play_pcp(int fd, const void *data) {
        struct pollfd p = { fd, POLLIN, 0 };
        int file = open(PERFLOCK, O_RDWR | O_CLOEXEC);

        act_say(fd, 'r');
        while (poll(&p, 1, 0) == 0) {
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

                if (file < 0 || fcntl(file, F_GETLK, &lock) < 0 || lock.l_type != F_RDLCK)
                        return 1;
        }
        return 0;
}

static bool perflock_is_locked(void) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        int fd = open(PERFLOCK, O_RDWR | O_CLOEXEC);

        g_assert_cmpint(fcntl(fd, F_OFD_GETLK, &lock), ==, 0);
        close_fd(fd);
        return lock.l_type != F_UNLCK;
}

static void perflock_make(void) {
        g_assert_true(g_file_set_contents(PERFLOCK, "", 0, NULL));
        g_assert_cmpint(chmod(PERFLOCK, 0666), ==, 0);
        rig_configure("[Bridges]\nPcpLock=" PERFLOCK "\n");
}

static void test_pcp_lock_is_never_free(const void *command) {
        g_autoptr(Client) holder = client_new("root");
        g_autoptr(Actor) pcp = NULL;
        g_autofree char *hold = NULL;

        perflock_make();
        g_assert_false(perflock_is_locked());
        hold = hold_of_breakpoints(holder);
        g_assert_true(hold_wait(holder, hold));
        pcp = actor_new("root", play_pcp, NULL);
        g_assert_cmpint(actor_hear(pcp), ==, 'r');
        for (unsigned i = 0; i < 3; i++)
                rig(command, NULL);
        g_assert_true(hold_is(holder, hold, "granted"));
        g_assert_cmpint(actor_join(pcp), ==, 0);
        hold_release(holder, hold);
        g_assert_false(perflock_is_locked());
}

static void test_pcp_lock_is_free_when_the_hold_ended_meanwhile(void) {
        g_autoptr(Client) holder = client_new("root");
        g_autofree char *hold = NULL;
        int lease;

        perflock_make();
        hold = hold_take(holder, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(holder, hold));
        service_pause();
        close_fd(lease);
        service_come_back();
        await(!perflock_is_locked());
}

/* A process that has PCP's lock, as PCP's own perfalloc does. */
static int play_perfalloc(int fd, const void *data) {
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1 };
        int file = open(PERFLOCK, O_RDONLY | O_CLOEXEC);

        if (file < 0 || fcntl(file, F_SETLK, &lock) < 0)
                return 1;
        act_say(fd, 'l');
        (void) act_hear(fd);
        return 0;
}

static void test_pcps_perfalloc_has_one_hold(const void *command) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) perfalloc = NULL;

        perflock_make();
        perfalloc = actor_new("alice", play_perfalloc, NULL);
        g_assert_cmpint(actor_hear(perfalloc), ==, 'l');
        await(client_get_number(root, MANAGER, "Yielding", 'b'));
        rig(command, NULL);
        g_assert_true(client_get_number(root, MANAGER, "Yielding", 'b'));
        g_assert_cmpuint(client_count(root, "hold"), ==, 1);
        g_assert_cmpint(actor_join(perfalloc), ==, 0);
        await(!client_get_number(root, MANAGER, "Yielding", 'b'));
        g_assert_false(perflock_is_locked());
}

int main(int argc, char *argv[]) {
        static const RestartTest both[] = {
                { "sampler/grid-goes-on", test_grid_goes_on },
                { "sampler/only-tick-is-told-once", test_only_tick_is_told_once },
                { "sampler/closed-counter-keeps-its-reading",
                  test_closed_counter_keeps_its_reading },
                { "sampler/who-blocks-goes-on-to", test_who_blocks_goes_on_to },
                { "sampler/signals-go-on", test_signals_go_on },
                { "sampler/ends-as-before", test_sampler_ends_as_before },
                { "monitor/yielded-stays-yielded", test_yielded_stays_yielded },
                { "monitor/who-has-not-answered-is-asked-again",
                  test_who_has_not_answered_is_asked_again },
                { "monitor/ends-as-before", test_monitor_ends_as_before },
                { "bridge/pcp-lock-is-never-free", test_pcp_lock_is_never_free },
                { "bridge/pcp's-perfalloc-has-one-hold", test_pcps_perfalloc_has_one_hold },
        };

        g_test_init(&argc, &argv, NULL);
        restart_tests_add(both, G_N_ELEMENTS(both));
        g_test_add_func("/killed/sampler/no-tick-is-lost-or-told-twice",
                        test_no_tick_is_lost_or_told_twice);
        g_test_add_func("/killed/sampler/what-ends-meanwhile-is-noticed",
                        test_what_ends_meanwhile_is_noticed);
        g_test_add_func("/killed/monitor/goes-on-when-the-hold-ended-meanwhile",
                        test_it_goes_on_when_the_hold_ended_meanwhile);
        g_test_add_func("/killed/monitor/that-left-meanwhile-is-gone",
                        test_monitor_that_left_meanwhile_is_gone);
        g_test_add_func("/killed/bridge/pcp-lock-is-free-when-the-hold-ended-meanwhile",
                        test_pcp_lock_is_free_when_the_hold_ended_meanwhile);
        return g_test_run();
}
