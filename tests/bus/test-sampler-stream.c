/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What samplers send: the readings, on the stream and by signals. */

#include "sampler-util.h"

#include <fcntl.h>
#include <sys/socket.h>

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
        g_assert_cmpuint(r.readings[0].quality, ==, PERFALLOC_QUALITY_NOT_COUNTED);
        g_assert_cmpuint(r.readings[1].value, ==, hits(1234));
        g_assert_cmpuint(r.readings[1].quality, ==, PERFALLOC_QUALITY_EXACT);
        g_assert_cmpuint(r.readings[1].enabled_nsec, >, 0);
        g_assert_cmpuint(r.readings[1].enabled_nsec, ==, r.readings[1].running_nsec);
        g_assert_cmpuint(r.readings[1].enabled_nsec, <=, m.enabled);
}

typedef union TaggedRecord {
        struct perfalloc_sample head;
        uint8_t bytes[PERFALLOC_SAMPLE_TAGGED_SIZE(1)];
} TaggedRecord;

/* A record ends with the client's own number, also after a restart; others are not told it. */
static void test_tag(void) {
        const uint64_t tag = 0xfedcba9876543210;
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *counter = counter_open(alice, "task-clock:u", "a{sv}", 0);
        g_autoptr(Sampler) s =
                sampler_create(alice, ONE_COUNTER(counter), 10 * MSEC, "a{sv}", 1, "tag", "t", tag);
        TaggedRecord r;

        for (int run = 0; run < 2; run++) {
                g_assert_cmpint(recv(s->stream, &r, sizeof(r), MSG_TRUNC), ==, sizeof(r));
                g_assert_cmphex(perfalloc_sample_tag(&r.head), ==, tag);
                g_assert_cmphex(sampler_number(s, "Tag"), ==, tag);
                g_assert_cmphex(client_get_number(bob, s->path, SAMPLER, "Tag", 't'), ==, 0);
                while (recv(s->stream, &r, sizeof(r), MSG_DONTWAIT) > 0)
                        ;
                if (run == 0)
                        rig("service-restart", NULL);
        }
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, ONE_COUNTER(counter), 0, "a{sv}", 1,
                        "tag", "s", "mine");
}

static bool log_has_tick(const Sampler *s) {
        g_autofree char *pattern = g_strdup_printf("Sampler %s: tick [0-9]+, taken [0-9]+ us after "
                                                   "it was due, [0-9]+ missed before it: sent",
                                                   strrchr(s->path, '/') + 1);
        g_autofree char *log = NULL;

        g_assert_true(g_spawn_command_line_sync("service-log", &log, NULL, NULL, NULL));
        return g_regex_match_simple(pattern, log, 0, 0);
}

static void test_debug_trace(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = NULL;

        rig("service-stop", NULL);
        rig("service-start PERFALLOC_RIG_DEBUG=1", NULL);
        s = sampler_create(alice, NO_COUNTERS, 10 * MSEC, "a{sv}", 0);
        await(log_has_tick(s));
        rig("service-stop", NULL);
        rig("service-start", NULL);
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
        while (value < hits(10))
                await_quality(s, PERFALLOC_QUALITY_EXACT, &value);
        hold = hold_take(holder, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(holder, hold));
        await_quality(s, PERFALLOC_QUALITY_NOT_COUNTED, &value);
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
        while (value < hits(7))
                await_quality(s, PERFALLOC_QUALITY_EXACT, &value);
        counter_do(alice, first, "Close");
        await_quality(s, PERFALLOC_QUALITY_NOT_COUNTED, &value);
        g_assert_cmpuint(value, ==, hits(7));
        watched_write(0, 3);
        do
                record_await(s, &r);
        while (r.readings[1].value < hits(10));
        g_assert_cmpuint(r.readings[0].value, ==, hits(7));
        g_assert_cmpuint(r.readings[1].value, ==, hits(10));
        g_assert_cmpuint(r.readings[1].quality, ==, PERFALLOC_QUALITY_EXACT);
}

/* A clock shows it: two reads of it would differ. */
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
        g_assert_cmpuint(of_a.readings[0].value, >=, hits(1));
        g_assert_cmpuint(of_a.readings[0].value, ==, of_b.readings[0].value);
        g_assert_cmpuint(of_a.readings[0].value, ==, of_c.readings[0].value);
        g_assert_cmpuint(of_a.head.boottime_nsec, ==, of_b.head.boottime_nsec);
        g_assert_cmpuint(of_a.head.boottime_nsec, ==, of_c.head.boottime_nsec);
}

/* ---- the stream ---- */

static bool stream_is_at_end(const Sampler *s) {
        char byte;

        return recv(s->stream, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* No record is sent any more although ticks are due. */
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
                g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "(tttts)"), >, 0);
                g_assert_cmpint(
                        sd_bus_message_read(m, "(tttts)", &value, NULL, NULL, NULL, &quality), >,
                        0);
                g_assert_cmpint(sd_bus_message_at_end(m, false), >, 0);
                g_assert_cmpuint(tick, ==, next + missed);
                next = tick + 1;
                g_assert_cmpuint(nsec, >=, (s->start + tick * s->interval) * NSEC_PER_USEC);
                g_assert_cmpuint(value, ==, hits(5));
                g_assert_cmpstr(quality, ==, "exact");
        }
        (void) samplers_any(bystander); /* what was sent before the answer has arrived */
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

/* ---- the manual's example ---- */

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
        g_assert_cmpstr(output, ==, hits(42) > 0 ? "0 +0: 42\n" : "0 +0: 0\n");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/sampler/tag", test_tag);
        g_test_add_func("/sampler/debug-trace", test_debug_trace);
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
        g_test_add_func("/sampler/example/reader-of-the-manual", test_example);
        return g_test_run();
}
