/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/store/statelog.h"

#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static uint64_t append(StateLog *l, uint64_t id, const char *text) {
        StateEntry e = { .kind = 1, .id = id, .n_state = (uint32_t) strlen(text) };
        uint64_t place;

        g_assert_cmpint(statelog_append(l, &e, text, &place), ==, 0);
        return place;
}

/* What another process finds in the file. */
static StateLog *reopen(const StateLog *l) {
        StateLog *ret;

        g_assert_cmpint(statelog_open(fcntl(l->fd, F_DUPFD_CLOEXEC, 3), &ret), ==, 0);
        return ret;
}

static char *all_of(const StateLog *l) {
        GString *s = g_string_new(NULL);
        const StateEntry *e;
        uint64_t place = 0;

        while ((e = statelog_next(l, &place)))
                g_string_append_printf(s, "%" PRIu64 "=%.*s ", e->id, (int) e->n_state,
                                       (const char *) e->state);
        return g_string_free(s, FALSE);
}

static void assert_read(const StateLog *l, const char *expected) {
        _cleanup_(statelog_freep) StateLog *other = reopen(l);
        g_autofree char *found = all_of(other);

        g_assert_cmpstr(found, ==, expected);
}

static void records_are_read_in_order(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL;

        g_assert_cmpint(statelog_new(3, &l), ==, 0);
        g_assert_cmpuint(statelog_generation(l), ==, 3);
        assert_read(l, "");
        append(l, 1, "one");
        append(l, 2, "");
        append(l, 1, "uno");
        assert_read(l, "1=one 2= 1=uno ");
}

static void forgotten_records_are_not_read(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL;
        uint64_t one, two;

        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        one = append(l, 1, "one");
        two = append(l, 2, "two");
        append(l, 3, "three");
        statelog_forget(l, one);
        statelog_forget(l, 0); /* nothing */
        assert_read(l, "2=two 3=three ");
        statelog_forget(l, two);
        assert_read(l, "3=three ");
}

static void completeness_is_seen(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL, *other = NULL;

        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        other = reopen(l);
        g_assert_false(statelog_is_complete(other));
        statelog_complete(l);
        g_assert_true(statelog_is_complete(other));
}

static void copying_keeps_what_counts(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL;
        uint64_t kept = 0, last = 0;
        unsigned n = 0;

        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        kept = append(l, 7, "kept");
        while (!statelog_is_stale(l)) {
                statelog_forget(l, last);
                last = append(l, 8, "changes all the time");
                n++;
        }
        g_assert_cmpuint(n, >, 1000);
        statelog_copy_begin(l);
        g_assert_cmpint(statelog_copy(l, &kept), ==, 0);
        /* killed here, the old half counts */
        assert_read(l, "7=kept 8=changes all the time ");
        g_assert_cmpint(statelog_copy(l, &last), ==, 0);
        statelog_copy_end(l);
        assert_read(l, "7=kept 8=changes all the time ");
        g_assert_false(statelog_is_stale(l));
        statelog_forget(l, kept);
        append(l, 9, "goes on");
        assert_read(l, "8=changes all the time 9=goes on ");
}

/* A writer that is killed at any moment leaves whole records, in order, without a gap. */
static void killed_writer_leaves_whole_records(void) {
        for (int round = 0; round < 30; round++) {
                _cleanup_(statelog_freep) StateLog *l = NULL, *other = NULL;
                const StateEntry *e;
                uint64_t place = 0, expected = 1;
                pid_t pid;

                g_assert_cmpint(statelog_new(1, &l), ==, 0);
                pid = fork();
                if (pid == 0)
                        for (uint64_t id = 1;; id++) {
                                char text[32] = {};
                                StateEntry entry = { .kind = 1, .id = id, .n_state = sizeof(text) };

                                (void) snprintf(text, sizeof(text), "number %" PRIu64, id);
                                if (statelog_append(l, &entry, text, &place) < 0)
                                        for (;;)
                                                pause();
                        }
                g_assert_cmpint(pid, >, 0);
                other = reopen(l);
                for (uint64_t seen = 0; seen < (uint64_t) round;) {
                        uint64_t at = 0;

                        seen = 0;
                        while (statelog_next(other, &at))
                                seen++;
                }
                g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
                g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
                while ((e = statelog_next(other, &place))) {
                        g_autofree char *text = g_strdup_printf("number %" PRIu64, expected);

                        g_assert_cmpuint(e->id, ==, expected++);
                        g_assert_cmpstr((const char *) e->state, ==, text);
                }
        }
}

static void newer_format_is_refused_and_left_alone(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL;
        uint32_t format = STATELOG_FORMAT + 1;
        StateLog *other;

        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        append(l, 1, "one");
        g_assert_cmpint(pwrite(l->fd, &format, sizeof(format), 8), ==, sizeof(format));
        g_assert_cmpint(statelog_open(l->fd, &other), ==, -EPROTONOSUPPORT);
        format = STATELOG_FORMAT;
        g_assert_cmpint(pwrite(l->fd, &format, sizeof(format), 8), ==, sizeof(format));
        assert_read(l, "1=one ");
}

static void what_is_no_log_is_refused(void) {
        _cleanup_close_ int empty = memfd_create("empty", MFD_CLOEXEC);
        _cleanup_(statelog_freep) StateLog *l = NULL;
        uint64_t used = STATELOG_AREA_MAX + 8;
        StateLog *other;
        int fds[2];

        g_assert_cmpint(statelog_open(empty, &other), ==, -EBADMSG);
        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        g_assert_cmpint(statelog_open(fds[0], &other), ==, -EBADMSG);
        close_fd(fds[0]);
        close_fd(fds[1]);
        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        g_assert_cmpint(pwrite(l->fd, &used, sizeof(used), 24), ==, sizeof(used));
        g_assert_cmpint(statelog_open(l->fd, &other), ==, -EBADMSG);
}

/* Whatever the log says of itself, nothing is read beyond it. */
static void damage_ends_the_log(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL;
        uint64_t place = 0;
        uint32_t size;

        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        append(l, 1, "one");
        append(l, 2, "two");
        g_assert_nonnull(statelog_next(l, &place));
        for (size = 0; size < 64; size++) {
                g_autofree char *found = NULL;

                g_assert_cmpint(pwrite(l->fd, &size, sizeof(size), 4096), ==, sizeof(size));
                found = all_of(l);
                g_assert_cmpuint(strlen(found), <, 32);
        }
        size = UINT32_MAX - 7;
        g_assert_cmpint(pwrite(l->fd, &size, sizeof(size), 4096), ==, sizeof(size));
        place = 0;
        g_assert_null(statelog_next(l, &place));
}

static void too_much_is_refused(void) {
        _cleanup_(statelog_freep) StateLog *l = NULL;
        _cleanup_free_ char *much = calloc(1, 64ul << 20);
        StateEntry e = { .kind = 1, .id = 1, .n_state = 64u << 20 };
        uint64_t place;
        int r = 0, n = 0;

        g_assert_nonnull(much);
        g_assert_cmpint(statelog_new(1, &l), ==, 0);
        for (; n < 10 && r == 0; n++)
                r = statelog_append(l, &e, much, &place);
        g_assert_cmpint(r, ==, -ENOSPC);
        g_assert_cmpint(n, ==, 4);
        append(l, 2, "small");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/statelog/records-are-read-in-order", records_are_read_in_order);
        g_test_add_func("/statelog/forgotten-records-are-not-read", forgotten_records_are_not_read);
        g_test_add_func("/statelog/completeness-is-seen", completeness_is_seen);
        g_test_add_func("/statelog/copying-keeps-what-counts", copying_keeps_what_counts);
        g_test_add_func("/statelog/killed-writer-leaves-whole-records",
                        killed_writer_leaves_whole_records);
        g_test_add_func("/statelog/newer-format-is-refused-and-left-alone",
                        newer_format_is_refused_and_left_alone);
        g_test_add_func("/statelog/what-is-no-log-is-refused", what_is_no_log_is_refused);
        g_test_add_func("/statelog/damage-ends-the-log", damage_ends_the_log);
        g_test_add_func("/statelog/too-much-is-refused", too_much_is_refused);
        return g_test_run();
}
