/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What was sent is counted, whenever the sender is killed. */

#include "service/sampler/send-log.h"

#include <glib.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define N_READINGS 3

typedef struct Stage {
        SendLog log;
        int fd;      /* of the log */
        int ends[2]; /* of the stream: the service's, the client's */
} Stage;

static void stage_up(Stage *s, gconstpointer unused) {
        g_assert_cmpint(send_log_new(N_READINGS, NULL, &s->log, &s->fd), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->ends), ==, 0);
}

static void stage_down(Stage *s, gconstpointer unused) {
        send_log_done(&s->log);
        close_fd(s->fd);
        close_fd(s->ends[0]);
        close_fd(s->ends[1]);
}

/* As a sampler does. */
static int send_slot(Stage *s, TickCount *count, uint64_t slot) {
        TickCount after = *count;
        int r;

        s->log.record->tick = slot;
        s->log.record->missed = tick_count_missed(count, slot);
        tick_count_tell(&after, slot);
        r = send_log_send(&s->log, s->ends[0], &after);
        if (r >= 0)
                *count = after;
        return r;
}

/* Reads all that is there; false when nothing was. */
static bool read_all(const Stage *s, struct perfalloc_sample *ret, TickCount *read) {
        uint8_t record[PERFALLOC_SAMPLE_SIZE(N_READINGS)];
        bool any = false;

        while (recv(s->ends[1], record, sizeof(record), MSG_DONTWAIT) > 0) {
                memcpy(ret, record, sizeof(*ret));
                g_assert_cmpuint(ret->missed, ==, tick_count_missed(read, ret->tick));
                tick_count_tell(read, ret->tick);
                any = true;
        }
        return any;
}

static void assert_counts(const SendLog *t, const TickCount *read) {
        TickCount count = send_log_count(t);

        g_assert_cmpuint(count.told, ==, read->told);
        g_assert_cmpuint(count.missed, ==, read->missed);
        g_assert_cmpuint(count.next, ==, read->next);
}

static void test_counts_what_was_sent(Stage *s, gconstpointer unused) {
        TickCount count = {}, read = {};
        struct perfalloc_sample last;

        assert_counts(&s->log, &count);
        for (uint64_t slot = 0; slot < 30; slot += 3) {
                g_assert_cmpint(send_slot(s, &count, slot), ==, 0);
                assert_counts(&s->log, &count);
        }
        g_assert_true(read_all(s, &last, &read));
        assert_counts(&s->log, &read);
        g_assert_cmpuint(last.n_readings, ==, N_READINGS);
}

static void test_does_not_count_what_was_not_sent(Stage *s, gconstpointer unused) {
        TickCount count = {}, read = {};
        struct perfalloc_sample last;
        uint64_t slot = 0;

        while (send_slot(s, &count, slot) == 0)
                slot++;
        for (unsigned i = 0; i < 3; i++)
                g_assert_cmpint(send_slot(s, &count, ++slot), ==, -EAGAIN);
        g_assert_true(read_all(s, &last, &read));
        assert_counts(&s->log, &read);
        g_assert_cmpint(send_slot(s, &count, ++slot), ==, 0);
        g_assert_true(read_all(s, &last, &read));
        g_assert_cmpuint(last.missed, ==, 4);
        assert_counts(&s->log, &read);
        close_fd(s->ends[1]);
        s->ends[1] = -1;
        g_assert_cmpint(send_slot(s, &count, ++slot), ==, -EPIPE);
        assert_counts(&s->log, &read);
}

/* Sends records for ever. None may be lost or counted twice. */
static void play_sender(Stage *s) {
        TickCount count = send_log_count(&s->log);

        for (uint64_t slot = count.next;; slot++)
                (void) send_slot(s, &count, slot);
}

static void test_is_right_whenever_it_is_killed(Stage *s, gconstpointer unused) {
        unsigned rounds = g_getenv("PERFALLOC_TEST_KILLS")
                                  ? (unsigned) atoi(g_getenv("PERFALLOC_TEST_KILLS"))
                                  : 300;
        TickCount read = {};
        struct perfalloc_sample last;

        for (unsigned i = 0; i < rounds; i++) {
                uint64_t before = read.told;
                SendLog again;
                pid_t child = fork();

                if (child == 0)
                        play_sender(s);
                while (read.told == before)
                        (void) read_all(s, &last, &read);
                g_usleep((gulong) g_test_rand_int_range(0, 300));
                g_assert_cmpint(kill(child, SIGKILL), ==, 0);
                g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
                (void) read_all(s, &last, &read);
                g_assert_cmpint(send_log_open(s->fd, N_READINGS, false, &again), ==, 0);
                assert_counts(&again, &read);
                send_log_done(&again);
        }
}

static void test_keeps_the_last_readings(Stage *s, gconstpointer unused) {
        SendLog again;

        s->log.record->readings[N_READINGS - 1].value = 4711;
        send_log_set_signalled(&s->log, 12);
        g_assert_cmpint(send_log_open(s->fd, N_READINGS, false, &again), ==, 0);
        g_assert_cmpuint(again.record->readings[N_READINGS - 1].value, ==, 4711);
        g_assert_cmpuint(send_log_signalled(&again), ==, 12);
        send_log_done(&again);
}

static void test_keeps_the_tag(Stage *s, gconstpointer unused) {
        const uint64_t tag = 0xfedcba9876543210;
        TickCount count = {};
        SendLog again = {};
        _Alignas(struct perfalloc_sample) uint8_t record[200];

        g_assert_cmpint(send_log_open(s->fd, N_READINGS, true, &again), ==, -EBADMSG);
        send_log_done(&s->log);
        s->fd = close_fd(s->fd);
        g_assert_cmpint(send_log_new(N_READINGS, &tag, &s->log, &s->fd), ==, 0);
        g_assert_cmpint(send_log_open(s->fd, N_READINGS, false, &again), ==, -EBADMSG);
        g_assert_cmpint(send_log_open(s->fd, N_READINGS, true, &again), ==, 0);
        send_log_done(&s->log);
        s->log = again;
        g_assert_cmpint(send_slot(s, &count, 1), ==, 0);
        g_assert_cmpint(recv(s->ends[1], record, sizeof(record), 0), ==,
                        PERFALLOC_SAMPLE_TAGGED_SIZE(N_READINGS));
        g_assert_cmphex(perfalloc_sample_tag((const struct perfalloc_sample *) record), ==, tag);
}

static void test_what_is_no_send_log_is_refused(Stage *s, gconstpointer unused) {
        SendLog again = {};
        int fd = s->fd;

        g_assert_cmpint(send_log_open(fd, N_READINGS + 1, false, &again), ==, -EBADMSG);
        g_assert_cmpint(send_log_open(s->ends[0], N_READINGS, false, &again), ==, -EBADMSG);
        g_assert_cmpint(pwrite(fd, "\377\377\377", 3, 0), ==, 3);
        g_assert_cmpint(send_log_open(fd, N_READINGS, false, &again), ==, -EBADMSG);
        g_assert_cmpint(ftruncate(fd, 10), ==, 0);
        g_assert_cmpint(send_log_open(fd, N_READINGS, false, &again), ==, -EBADMSG);
        g_assert_null(again.state);
}

int main(int argc, char *argv[]) {
        static const struct {
                const char *path;
                void (*test)(Stage *s, gconstpointer unused);
        } tests[] = {
                { "/send-log/counts-what-was-sent", test_counts_what_was_sent },
                { "/send-log/does-not-count-what-was-not-sent",
                  test_does_not_count_what_was_not_sent },
                { "/send-log/is-right-whenever-it-is-killed", test_is_right_whenever_it_is_killed },
                { "/send-log/keeps-the-last-readings", test_keeps_the_last_readings },
                { "/send-log/keeps-the-tag", test_keeps_the_tag },
                { "/send-log/what-is-no-send-log-is-refused", test_what_is_no_send_log_is_refused },
        };

        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
                g_test_add(tests[i].path, Stage, NULL, stage_up, tests[i].test, stage_down);
        return g_test_run();
}
