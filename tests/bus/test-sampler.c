/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Samplers: ticks on a grid that holds, and every one that is missed counted. */

#include "bus-util.h"

#include <fcntl.h>
#include <perfalloc/sample.h>
#include <sys/socket.h>
#include <time.h>

#define SAMPLER PERFALLOC_SAMPLER_INTERFACE

#define MSEC         USEC_PER_MSEC
#define COUNTERS_MAX 4

#define NO_COUNTERS       ((const char *const[]){ NULL })
#define ONE_COUNTER(path) ((const char *const[]){ (path), NULL })

typedef struct Sampler {
        Client *client;
        char *path;
        int stream;
        uint64_t interval, start;
        uint64_t next;         /* the tick that comes if none is missed */
        uint64_t told, missed; /* so far */
} Sampler;

typedef struct Record {
        struct perfalloc_sample head;
        struct perfalloc_reading readings[COUNTERS_MAX];
} Record;

static uint64_t boottime_usec(void) {
        struct timespec t;

        g_assert_cmpint(clock_gettime(CLOCK_BOOTTIME, &t), ==, 0);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

static void await_time(uint64_t usec) {
        await(boottime_usec() >= usec);
}

/* ---- making and reading them ---- */

static sd_bus_message *create_message(Client *c, const char *const *counters, uint64_t interval,
                                      const char *types, va_list ap) {
        sd_bus_message *m = client_message(c, MANAGER, "CreateSampler");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "o"), >=, 0);
        for (; *counters; counters++)
                g_assert_cmpint(sd_bus_message_append_basic(m, 'o', *counters), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append_basic(m, 't', &interval), >=, 0);
        g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
        return m;
}

/* types is "a{sv}". */
static Sampler *sampler_create(Client *c, const char *const *counters, uint64_t interval,
                               const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        Sampler *s = g_new0(Sampler, 1);
        const char *path;
        va_list ap;

        va_start(ap, types);
        m = create_message(c, counters, interval, types, ap);
        va_end(ap);
        reply = client_call_message(c, m);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &s->stream), >, 0);
        s->stream = fcntl(s->stream, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(s->stream, >=, 0);
        s->client = c;
        s->path = g_strdup(path);
        s->interval = interval;
        s->start = client_get_number(c, path, SAMPLER, "StartUSec", 't');
        g_assert_cmpuint(client_get_number(c, path, SAMPLER, "IntervalUSec", 't'), ==, interval);
        return s;
}

static void sampler_refused(Client *c, const char *error, const char *const *counters,
                            uint64_t interval, const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        va_start(ap, types);
        m = create_message(c, counters, interval, types, ap);
        va_end(ap);
        client_refused_message(c, error, m);
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

static void sampler_close(const Sampler *s) {
        sd_bus_message_unref(client_call(s->client, s->path, SAMPLER, "Close", NULL));
}

static void samplers_do(Client *c, const char *method) {
        sd_bus_message_unref(client_call(c, MANAGER, method, NULL));
}

static bool samplers_any(Client *c) {
        g_autoptr(sd_bus_message) reply = client_call(c, MANAGER, "HasSamplers", NULL);
        int has;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 'b', &has), >, 0);
        return has;
}

/* What holds for each record, whatever happened before it. */
static void record_check(Sampler *s, const Record *r, ssize_t size) {
        uint64_t usec = r->head.boottime_nsec / NSEC_PER_USEC;

        g_assert_cmpint(size, ==, PERFALLOC_SAMPLE_SIZE(r->head.n_readings));
        g_assert_cmpuint(r->head.tick, ==, s->next + r->head.missed);
        /* not early, and the latest one that was due */
        g_assert_cmpuint(usec, >=, s->start + r->head.tick * s->interval);
        if (s->interval > 0)
                g_assert_cmpuint(usec, <, s->start + (r->head.tick + 1) * s->interval);
        s->next = r->head.tick + 1;
        s->missed += r->head.missed;
        s->told++;
}

/* False when there is none now. */
static bool record_get(Sampler *s, Record *ret) {
        ssize_t size = recv(s->stream, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);

        if (size < 0) {
                g_assert_cmpint(errno, ==, EAGAIN);
                return false;
        }
        g_assert_cmpint(size, >, 0);
        record_check(s, ret, size);
        return true;
}

static void record_await(Sampler *s, Record *ret) {
        await(record_get(s, ret));
}

static bool stream_is_at_end(const Sampler *s) {
        char byte;

        return recv(s->stream, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* ---- the grid ---- */

static void test_grid(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 2 * MSEC, "a{sv}", 0);
        Record r;

        for (int i = 0; i < 200; i++)
                record_await(s, &r); /* which checks it */
        g_assert_cmpuint(s->told + s->missed, ==, s->next);
}

static void test_start(void) {
        g_autoptr(Client) alice = client_new("alice");
        uint64_t begin = boottime_usec();
        g_autoptr(Sampler) later = sampler_create(alice, NO_COUNTERS, 50 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) now = sampler_create(alice, NO_COUNTERS, 3600 * USEC_PER_SEC, "a{sv}", 1,
                                                "start_usec", "t", (uint64_t) 0);
        g_autoptr(Sampler) then = sampler_create(alice, NO_COUNTERS, 3600 * USEC_PER_SEC, "a{sv}",
                                                 1, "start_usec", "t", (uint64_t) 30 * MSEC);
        uint64_t end = boottime_usec();
        Record r;

        g_assert_cmpuint(later->start, >=, begin + 50 * MSEC);
        g_assert_cmpuint(later->start, <=, end + 50 * MSEC);
        g_assert_cmpuint(now->start, >=, begin);
        g_assert_cmpuint(now->start, <=, end);
        g_assert_cmpuint(then->start, >=, begin + 30 * MSEC);
        g_assert_cmpuint(then->start, <=, end + 30 * MSEC);
        record_await(now, &r);
        record_await(then, &r);
        record_await(later, &r);
}

static void test_one_tick(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) once = sampler_create(alice, NO_COUNTERS, 0, "a{sv}", 0);
        g_autoptr(Sampler) many = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        Record r;

        record_await(once, &r);
        g_assert_cmpuint(r.head.tick, ==, 0);
        for (int i = 0; i < 5; i++)
                record_await(many, &r);
        g_assert_false(record_get(once, &r));
        g_assert_cmpuint(sampler_number(once, "Ticks"), ==, 1);
        sampler_close(once); /* it is there until then */
}

static void test_stopped_service(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        Record r;

        record_await(s, &r);
        rig("service-signal STOP", NULL);
        while (record_get(s, &r))
                ;
        await_time(s->start + (s->next + 40) * s->interval);
        rig("service-signal CONT", NULL);
        record_await(s, &r);
        g_assert_cmpuint(r.head.missed, >=, 39);
        /* and no burst: each of the following is the latest at its own time, see record_check() */
        for (int i = 0; i < 5; i++)
                record_await(s, &r);
}

/* ---- blocking ---- */

static void test_block(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) free_one = sampler_create(other, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        uint64_t before;
        Record r;

        record_await(s, &r);
        samplers_do(alice, "BlockSamplers");
        samplers_do(alice, "BlockSamplers"); /* a flag, not a count */
        g_assert_true(client_get_number(alice, s->path, SAMPLER, "Blocked", 'b'));
        g_assert_false(client_get_number(alice, free_one->path, SAMPLER, "Blocked", 'b'));
        while (record_get(s, &r))
                ;
        before = s->next;
        await_time(s->start + (before + 20) * s->interval);
        g_assert_false(record_get(s, &r));
        record_await(free_one, &r);
        samplers_do(alice, "UnblockSamplers");
        record_await(s, &r);
        g_assert_cmpuint(r.head.missed, >=, 20);
        g_assert_false(client_get_number(alice, s->path, SAMPLER, "Blocked", 'b'));
        g_assert_cmpuint(sampler_number(s, "Missed"), >=, 20);
}

static void test_block_before(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = NULL;
        Record r;

        samplers_do(alice, "BlockSamplers");
        s = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 1, "start_usec", "t",
                           (uint64_t) 0);
        await_time(s->start + 10 * s->interval);
        g_assert_false(record_get(s, &r));
        samplers_do(alice, "UnblockSamplers");
        record_await(s, &r);
        g_assert_cmpuint(r.head.missed, >=, 10);
        g_assert_cmpuint(r.head.missed, ==, r.head.tick);
}

static void test_has(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autoptr(Sampler) s = NULL;

        g_assert_false(samplers_any(alice));
        samplers_do(alice, "BlockSamplers");
        g_assert_false(samplers_any(alice));
        s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_assert_true(samplers_any(alice));
        g_assert_false(samplers_any(other));
        sampler_close(s);
        g_assert_false(samplers_any(alice));
}

/* The scenario of PCP's own test of its timers: four of them registered while blocked, one for a
 * single trip, one too long to come; handlers that run one at a time with the timers blocked, each
 * slower than the one before; in the end all are taken out, the spent one too. A second of theirs
 * is 10 ms here. */
static void test_slow_handlers(void) {
        g_autoptr(Client) alice = client_new("alice");
        const uint64_t second = 10 * MSEC;
        g_autoptr(Sampler) a = NULL, b = NULL, once = NULL, late = NULL;
        Sampler **const all[] = { &a, &b, &once, &late };
        unsigned handled = 0;

        samplers_do(alice, "BlockSamplers");
        a = sampler_create(alice, NO_COUNTERS, second * 5 / 2, "a{sv}", 0);
        b = sampler_create(alice, NO_COUNTERS, second * 3 / 2, "a{sv}", 0);
        once = sampler_create(alice, NO_COUNTERS, 0, "a{sv}", 1, "start_usec", "t", second * 4);
        late = sampler_create(alice, NO_COUNTERS, second * 6000, "a{sv}", 0);
        samplers_do(alice, "UnblockSamplers");
        while (a->missed == 0 || b->missed == 0 || once->told == 0)
                for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                        Record r;

                        if (!record_get(*all[i], &r))
                                continue;
                        g_assert_cmpuint(++handled, <, 40);
                        samplers_do(alice, "BlockSamplers");
                        await_time(boottime_usec() + handled * second / 2);
                        samplers_do(alice, "UnblockSamplers");
                }
        g_assert_cmpuint(a->told, >, 1);
        g_assert_cmpuint(b->told, >, 1);
        g_assert_cmpuint(once->told, ==, 1);
        g_assert_cmpuint(late->told, ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                sampler_close(*all[i]);
        g_assert_false(samplers_any(alice));
}

/* ---- readings ---- */

static void test_readings(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0), *other = watched_event(1);
        g_autofree char *counted = counter_open(alice, event, "a{sv}", 0);
        g_autofree char *stopped = counter_open(alice, other, "a{sv}", 1, "start", "b", 0);
        const char *const counters[] = { stopped, counted, NULL };
        g_autoptr(Sampler) s = NULL;
        g_auto(Measured) m = {};
        Record r;

        watched_write(0, 1234);
        s = sampler_create(alice, counters, 0, "a{sv}", 1, "start_usec", "t", (uint64_t) 0);
        record_await(s, &r);
        m = counter_read(alice, counted);
        g_assert_cmpuint(r.head.n_readings, ==, 2);
        g_assert_cmpuint(r.readings[0].value, ==, 0);
        g_assert_cmpuint(r.readings[0].quality, ==, PERFALLOC_QUALITY_UNMEASURED);
        g_assert_cmpuint(r.readings[1].value, ==, 1234);
        g_assert_cmpuint(r.readings[1].quality, ==, PERFALLOC_QUALITY_EXACT);
        g_assert_cmpuint(r.readings[1].enabled_nsec, >, 0);
        g_assert_cmpuint(r.readings[1].enabled_nsec, ==, r.readings[1].running_nsec);
        g_assert_cmpuint(r.readings[1].enabled_nsec, <=, m.enabled);
}

/* Reads on until the quality is this one; the value never falls meanwhile. */
static void await_quality(Sampler *s, uint64_t quality, uint64_t *value) {
        Record r;

        do {
                record_await(s, &r);
                g_assert_cmpuint(r.readings[0].value, >=, *value);
                *value = r.readings[0].value;
        } while (r.readings[0].quality != quality);
}

static void test_yielded(void) {
        g_autoptr(Client) alice = client_new("alice"), holder = client_new("alice");
        g_autofree char *monitor = monitor_open(alice, 0, 0), *hold = NULL;
        g_autoptr(Sampler) s = sampler_create(alice, ONE_COUNTER(monitor), 2 * MSEC, "a{sv}", 0);
        uint64_t value = 0, yielded;
        int lease;

        watched_write(0, 10);
        while (value < 10)
                await_quality(s, PERFALLOC_QUALITY_EXACT, &value);
        hold = hold_take(holder, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(holder, hold));
        await_quality(s, PERFALLOC_QUALITY_UNMEASURED, &value);
        yielded = value;
        watched_write(0, 10);
        close_fd(lease);
        await_quality(s, PERFALLOC_QUALITY_EXACT, &value);
        g_assert_cmpuint(value, ==, yielded);
}

static void test_closed_counter(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *first = counter_open(alice, event, "a{sv}", 0);
        g_autofree char *second = counter_open(alice, event, "a{sv}", 0);
        const char *const counters[] = { first, second, NULL };
        g_autoptr(Sampler) s = sampler_create(alice, counters, 2 * MSEC, "a{sv}", 0);
        uint64_t value = 0;
        Record r;

        watched_write(0, 7);
        while (value < 7)
                await_quality(s, PERFALLOC_QUALITY_EXACT, &value);
        counter_do(alice, first, "Close");
        await_quality(s, PERFALLOC_QUALITY_UNMEASURED, &value);
        g_assert_cmpuint(value, ==, 7);
        watched_write(0, 3);
        do
                record_await(s, &r);
        while (r.readings[1].value < 10);
        g_assert_cmpuint(r.readings[0].value, ==, 7);
        g_assert_cmpuint(r.readings[1].value, ==, 10);
        g_assert_cmpuint(r.readings[1].quality, ==, PERFALLOC_QUALITY_EXACT);
}

/* A clock shows it: two looks at it would differ. */
static void test_one_look(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *clock = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        g_autoptr(Sampler) a = NULL, b = NULL, c = NULL;
        Record of_a, of_b, of_c;

        samplers_do(alice, "BlockSamplers");
        a = sampler_create(alice, ONE_COUNTER(clock), 0, "a{sv}", 0);
        b = sampler_create(alice, ONE_COUNTER(clock), 600 * MSEC, "a{sv}", 1, "start_usec", "t",
                           (uint64_t) 0);
        c = sampler_create(alice, ONE_COUNTER(clock), 700 * MSEC, "a{sv}", 1, "start_usec", "t",
                           (uint64_t) 0);
        await_time(c->start);
        samplers_do(alice, "UnblockSamplers");
        record_await(a, &of_a);
        record_await(b, &of_b);
        record_await(c, &of_c);
        g_assert_cmpuint(of_a.readings[0].value, >, 0);
        g_assert_cmpuint(of_a.readings[0].value, ==, of_b.readings[0].value);
        g_assert_cmpuint(of_a.readings[0].value, ==, of_c.readings[0].value);
        g_assert_cmpuint(of_a.head.boottime_nsec, ==, of_b.head.boottime_nsec);
        g_assert_cmpuint(of_a.head.boottime_nsec, ==, of_c.head.boottime_nsec);
}

/* ---- the stream ---- */

/* No record is written any more although ticks are due. */
static bool stream_is_full(const Sampler *s) {
        uint64_t before = sampler_number(s, "Ticks");

        await_time(boottime_usec() + 10 * s->interval);
        return before > 0 && sampler_number(s, "Ticks") == before;
}

static void test_slow_reader(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(Sampler) s = sampler_create(alice, ONE_COUNTER(counter), 500, "a{sv}", 0);
        uint64_t full;
        Record r;

        await(stream_is_full(s));
        full = sampler_number(s, "Ticks");
        for (uint64_t i = 0; i < full; i++)
                record_await(s, &r); /* all whole, and in a row: record_check() */
        while (r.head.missed == 0)
                record_await(s, &r);
        samplers_do(alice, "BlockSamplers");
        while (record_get(s, &r))
                ;
        g_assert_cmpuint(s->missed, >=, 9); /* what stream_is_full() waited for */
        g_assert_cmpuint(sampler_number(s, "Ticks"), ==, s->told);
        g_assert_cmpuint(sampler_number(s, "Missed"), ==, s->missed);
}

static void test_stream_closed(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) often = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) never =
                sampler_create(alice, NO_COUNTERS, 3600 * USEC_PER_SEC, "a{sv}", 0);

        often->stream = close_fd(often->stream);
        await(!client_finds(alice, often->path, SAMPLER));
        g_assert_true(samplers_any(alice));
        g_assert_cmpint(shutdown(never->stream, SHUT_RD), ==, 0);
        await(!client_finds(alice, never->path, SAMPLER));
        g_assert_false(samplers_any(alice));
}

static void test_end_of_stream(void) {
        g_autoptr(Client) alice = client_new("alice"), short_lived = client_new("alice");
        g_autoptr(Sampler) closed = sampler_create(alice, NO_COUNTERS, 0, "a{sv}", 0);
        g_autoptr(Sampler) left =
                sampler_create(short_lived, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        Record r;

        await(sampler_number(closed, "Ticks") == 1);
        sampler_close(closed);
        record_await(closed, &r);
        g_assert_true(stream_is_at_end(closed));
        g_assert_false(client_finds(alice, closed->path, SAMPLER));
        g_clear_pointer(&short_lived, client_free);
        await(stream_is_at_end(left));
        g_assert_false(client_finds(alice, left->path, SAMPLER));
}

static void test_nothing_to_write(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);

        g_assert_cmpint(send(s->stream, "x", 1, MSG_NOSIGNAL), <, 0);
        g_assert_cmpint(errno, ==, EPIPE);
        g_assert_true(client_finds(alice, s->path, SAMPLER));
}

/* ---- signals ---- */

static sd_bus_message *sample_get(Client *c) {
        sd_bus_message *m;

        while ((m = client_next(c, 0))) {
                if (sd_bus_message_is_signal(m, SAMPLER, "Sample"))
                        return m;
                sd_bus_message_unref(m);
        }
        return NULL;
}

static void test_signal(void) {
        g_autoptr(Client) alice = client_new("alice"), bystander = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(Sampler) s = NULL;
        uint64_t next = 0;

        client_watch(bystander);
        watched_write(0, 5);
        s = sampler_create(alice, ONE_COUNTER(counter), 10 * MSEC, "a{sv}", 1, "signal", "b", 1);
        for (int i = 0; i < 5; i++) {
                g_autoptr(sd_bus_message) m = NULL;
                uint64_t tick, nsec, missed, value;
                const char *quality;

                await((m = sample_get(alice)));
                g_assert_cmpstr(sd_bus_message_get_path(m), ==, s->path);
                g_assert_cmpstr(sd_bus_message_get_destination(m), ==, alice->name);
                g_assert_cmpint(sd_bus_message_read(m, "ttt", &tick, &nsec, &missed), >, 0);
                g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "(ttts)"), >, 0);
                g_assert_cmpint(sd_bus_message_read(m, "(ttts)", &value, NULL, NULL, &quality), >,
                                0);
                g_assert_cmpint(sd_bus_message_at_end(m, false), >, 0);
                g_assert_cmpuint(tick, ==, next + missed);
                next = tick + 1;
                g_assert_cmpuint(nsec, >=, (s->start + tick * s->interval) * NSEC_PER_USEC);
                g_assert_cmpuint(value, ==, 5);
                g_assert_cmpstr(quality, ==, "exact");
        }
        (void) samplers_any(bystander); /* what was sent before the answer is here by now */
        g_assert_null(sample_get(bystander));
}

static void test_no_signal(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 10 * MSEC, "a{sv}", 0);
        Record r;

        record_await(s, &r);
        record_await(s, &r);
        (void) samplers_any(alice);
        g_assert_null(sample_get(alice));
}

/* ---- whose they are ---- */

static void test_owner(void) {
        g_autoptr(Client) alice = client_new("alice"), alice_too = client_new("alice");
        g_autoptr(Client) dave = client_new("dave"), root = client_new("root");
        g_autofree char *counter = counter_open(alice, "task-clock", "a{sv}", 0);
        g_autoptr(Sampler) s =
                sampler_create(alice, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0);
        g_autoptr(Sampler) other = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);

        sampler_refused(dave, PERFALLOC_ERROR_NOT_OWNER, ONE_COUNTER(counter), USEC_PER_SEC,
                        "a{sv}", 0);
        client_refused(dave, PERFALLOC_ERROR_NOT_OWNER, s->path, SAMPLER, "Close", NULL);
        sampler_free(sampler_create(alice_too, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0));
        sampler_free(sampler_create(root, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0));
        s->client = alice_too;
        sampler_close(s);
        other->client = root;
        sampler_close(other);
        g_assert_false(samplers_any(alice));
}

static void test_properties(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *counter = counter_open(alice, "task-clock", "a{sv}", 0);
        g_autoptr(Sampler) s =
                sampler_create(alice, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0);
        g_autoptr(sd_bus_message) reply = client_call(
                bob, s->path, "org.freedesktop.DBus.Properties", "Get", "ss", SAMPLER, "Counters");
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'v', "ao"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        g_assert_cmpstr(path, ==, counter);
        g_assert_cmpint(sd_bus_message_at_end(reply, false), >, 0);
        g_assert_cmpuint(client_count(bob, "sampler"), ==, 1);
}

/* ---- bad input ---- */

static void test_bad_times(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");

        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, 1, "a{sv}", 0);
        g_assert_nonnull(strstr(alice->refusal, "SamplerIntervalMinSec"));
        sampler_refused(root, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, 499, "a{sv}", 0);
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, UINT64_MAX, "a{sv}", 0);
        g_assert_nonnull(strstr(alice->refusal, "interval_usec"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1,
                        "start_usec", "t", UINT64_MAX);
        g_assert_nonnull(strstr(alice->refusal, "start_usec"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1, "signal",
                        "b", 1);
        g_assert_nonnull(strstr(alice->refusal, "SamplerSignalMinSec"));
        g_assert_false(samplers_any(alice));
}

static void test_bad_options(void) {
        g_autoptr(Client) alice = client_new("alice");

        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1,
                        "stop_usec", "t", (uint64_t) 0);
        g_assert_nonnull(strstr(alice->refusal, "stop_usec"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1,
                        "start_usec", "u", 0);
        g_assert_nonnull(strstr(alice->refusal, "start_usec"));
        g_assert_false(samplers_any(alice));
}

static void test_bad_counters(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *counter = counter_open(alice, "task-clock", "a{sv}", 0);
        g_autofree char *closed = counter_open(alice, "task-clock", "a{sv}", 0);
        const char *const twice[] = { counter, counter, NULL };
        const char *const gone[] = { counter, closed, NULL };

        counter_do(alice, closed, "Close");
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, twice, MSEC, "a{sv}", 0);
        g_assert_nonnull(strstr(alice->refusal, counter));
        sampler_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, gone, MSEC, "a{sv}", 0);
        sampler_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, ONE_COUNTER("/"), MSEC, "a{sv}", 0);
        sampler_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, ONE_COUNTER(PERFALLOC_OBJECT_PATH),
                        MSEC, "a{sv}", 0);
        g_assert_false(samplers_any(alice));
}

static void test_many(void) {
        g_autoptr(Client) bob = client_new("bob"), dave = client_new("dave");
        g_autoptr(GPtrArray) samplers =
                g_ptr_array_new_with_free_func((GDestroyNotify) sampler_free);
        g_autoptr(Sampler) one = NULL;
        unsigned before = service_descriptors();

        for (int i = 0; i < 64; i++)
                g_ptr_array_add(samplers,
                                sampler_create(bob, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0));
        for (int i = 64; i < 10000; i++)
                sampler_refused(bob, SD_BUS_ERROR_LIMITS_EXCEEDED, NO_COUNTERS, USEC_PER_SEC,
                                "a{sv}", 0);
        g_assert_nonnull(strstr(bob->refusal, "SamplersPerUser"));
        one = sampler_create(dave, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_clear_pointer(&bob, client_free);
        g_clear_pointer(&one, sampler_free);
        await(client_count(dave, "sampler") == 0);
        await(service_descriptors() == before);
}

/* ---- the service ---- */

/* Whether the next signal of this name is about the path. */
static bool next_is_about(Client *c, const char *member, const char *path) {
        for (;;) {
                g_autoptr(sd_bus_message) m = NULL;
                const char *about;

                await((m = client_next(c, 0)));
                if (!sd_bus_message_is_signal(m, "org.freedesktop.DBus.ObjectManager", member))
                        continue;
                g_assert_cmpint(sd_bus_message_read_basic(m, 'o', &about), >, 0);
                return strcmp(about, path) == 0;
        }
}

static void test_announced(void) {
        g_autoptr(Client) alice = client_new("alice"), bystander = client_new("bob");
        g_autoptr(Sampler) s = NULL;

        client_watch(bystander);
        s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_assert_true(next_is_about(bystander, "InterfacesAdded", s->path));
        sampler_close(s);
        g_assert_true(next_is_about(bystander, "InterfacesRemoved", s->path));
}

/* All that a user may have, at the floor, and none of it read. */
static void test_load(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(GPtrArray) samplers =
                g_ptr_array_new_with_free_func((GDestroyNotify) sampler_free);
        char *counters[17] = {};
        uint64_t worst = 0;

        for (int i = 0; i < 16; i++)
                counters[i] = counter_open(alice, "task-clock", "a{sv}", 1, "scope", "s", "cpu");
        for (int i = 0; i < 64; i++)
                g_ptr_array_add(samplers, sampler_create(alice, (const char *const *) counters, 500,
                                                         "a{sv}", 0));
        for (int i = 0; i < 100; i++) {
                uint64_t begin = boottime_usec();

                g_assert_false(samplers_any(bob));
                worst = MAX(worst, boottime_usec() - begin);
        }
        g_test_message("a call took %" G_GUINT64_FORMAT " us at most", worst);
        g_assert_cmpuint(worst, <, 500 * MSEC);
        for (int i = 0; i < 16; i++)
                g_free(counters[i]);
}

static void test_stays(void) {
        g_autoptr(Client) alice = NULL;
        g_autoptr(Sampler) s = NULL;
        pid_t pid;

        rig_configure("[Limits]\nIdleExitSec=20ms\n");
        alice = client_new("alice");
        samplers_do(alice, "BlockSamplers");
        pid = service_pid();
        await_time(boottime_usec() + 100 * MSEC);
        s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_assert_true(client_get_number(alice, s->path, SAMPLER, "Blocked", 'b'));
        samplers_do(alice, "UnblockSamplers");
        await_time(boottime_usec() + 100 * MSEC);
        g_assert_cmpint(service_pid(), ==, pid);
        rig_configure("");
}

static void test_floor(void) {
        g_autoptr(Client) alice = NULL;

        rig_configure("[Limits]\nSamplerIntervalMinSec=1s\nSamplerSignalMinSec=100ms\n");
        alice = client_new("alice");
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, 999 * MSEC, "a{sv}", 1,
                        "signal", "b", 1);
        g_assert_nonnull(strstr(alice->refusal, "SamplerIntervalMinSec"));
        sampler_free(sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0));
        rig_configure("");
}

/* ---- the manual's reader ---- */

static void test_example(void) {
        /* PATH: the rig has an as(1) of its own */
        static const char build[] =
                "cd /run && \"$PERFALLOC_SOURCE/man/example\" "
                "\"$PERFALLOC_SOURCE/man/perfalloc-sample.5\" reader >reader.c && "
                "PATH=/usr/bin:/bin cc -std=c99 -Wall -Wextra -Werror "
                "-I \"$PERFALLOC_SOURCE/include\" -o reader reader.c";
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *compiler = g_find_program_in_path("cc"), *event = watched_event(0);
        g_autofree char *command = NULL, *output = NULL;
        g_autofree char *counter = NULL;
        g_autoptr(Sampler) s = NULL;
        g_autoptr(GError) error = NULL;

        if (!compiler) {
                g_test_skip("no C compiler here");
                return;
        }
        rig(build, NULL);
        counter = counter_open(alice, event, "a{sv}", 0);
        watched_write(0, 42);
        s = sampler_create(alice, ONE_COUNTER(counter), 0, "a{sv}", 0);
        await(sampler_number(s, "Ticks") == 1);
        sampler_close(s);
        command = g_strdup_printf("/run/reader <&%d >/run/reader.out", s->stream);
        g_assert_cmpint(fcntl(s->stream, F_SETFD, 0), ==, 0);
        rig(command, NULL);
        (void) g_file_get_contents("/run/reader.out", &output, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(output, ==, "0 +0: 42\n");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/sampler/grid/never-early-always-the-latest-none-lost", test_grid);
        g_test_add_func("/sampler/grid/starts-when-asked-to", test_start);
        g_test_add_func("/sampler/grid/interval-0-ticks-once", test_one_tick);
        g_test_add_func("/sampler/grid/a-stopped-service-misses-and-counts", test_stopped_service);
        g_test_add_func("/sampler/block/time-runs-on-and-is-counted", test_block);
        g_test_add_func("/sampler/block/holds-for-samplers-made-later", test_block_before);
        g_test_add_func("/sampler/block/slow-handlers-skip-and-know-it", test_slow_handlers);
        g_test_add_func("/sampler/has-tells-of-one's-own", test_has);
        g_test_add_func("/sampler/readings/are-the-counters'", test_readings);
        g_test_add_func("/sampler/readings/tell-that-a-monitor-has-yielded", test_yielded);
        g_test_add_func("/sampler/readings/go-on-without-a-closed-counter", test_closed_counter);
        g_test_add_func("/sampler/readings/one-look-an-instant", test_one_look);
        g_test_add_func("/sampler/stream/slow-reader-loses-whole-records-counted",
                        test_slow_reader);
        g_test_add_func("/sampler/stream/ends-the-sampler", test_stream_closed);
        g_test_add_func("/sampler/stream/is-at-end-after-the-sampler", test_end_of_stream);
        g_test_add_func("/sampler/stream/takes-nothing", test_nothing_to_write);
        g_test_add_func("/sampler/signal/to-the-owner-alone", test_signal);
        g_test_add_func("/sampler/signal/only-if-asked-for", test_no_signal);
        g_test_add_func("/sampler/owner/same-uid-and-root", test_owner);
        g_test_add_func("/sampler/owner/everybody-may-read-properties", test_properties);
        g_test_add_func("/sampler/refused/times", test_bad_times);
        g_test_add_func("/sampler/refused/options", test_bad_options);
        g_test_add_func("/sampler/refused/counters", test_bad_counters);
        g_test_add_func("/sampler/refused/ten-thousand", test_many);
        g_test_add_func("/sampler/service/announces-them", test_announced);
        g_test_add_func("/sampler/service/answers-others-under-load", test_load);
        g_test_add_func("/sampler/service/stays-while-there-are-any", test_stays);
        g_test_add_func("/sampler/service/has-a-floor-that-can-be-set", test_floor);
        g_test_add_func("/sampler/example/reader-of-the-manual", test_example);
        return g_test_run();
}
