/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/serial.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/clock.h"

#define FILE_LENGTH (4 * 21) /* four numbers of 20 digits, a line each */

typedef struct Place {
        char *directory, *file;
} Place;

static void place_up(Place *p, gconstpointer unused) {
        p->directory = g_dir_make_tmp("perfalloc-serial-XXXXXX", NULL);
        p->file = g_build_filename(p->directory, "serials", NULL);
        g_assert_cmpint(_SERIAL_KIND_MAX, ==, 4);
}

static void place_down(Place *p, gconstpointer unused) {
        (void) g_chmod(p->directory, 0700);
        (void) g_remove(p->file);
        g_assert_cmpint(g_rmdir(p->directory), ==, 0);
        g_free(p->directory);
        g_free(p->file);
}

/* As by a crash: unused numbers are not returned. */
static void serial_crash(Serial *s) {
        s->fd = close_fd(s->fd);
}

static void write_text(const char *file, const char *text, size_t n) {
        g_assert_true(g_file_set_contents(file, text, (gssize) n, NULL));
}

/* A file with this text has to be refused, and numbers come from the clock. */
static void assert_unusable(const Place *p, const char *text, size_t n, int error) {
        uint64_t before = now_usec(CLOCK_BOOTTIME);
        Serial s;

        write_text(p->file, text, n);
        g_assert_cmpint(serial_open(&s, p->directory), ==, error);
        g_assert_cmpint(s.fd, ==, -1);
        g_assert_cmpuint(serial_next(&s, SERIAL_HOLD), >=, before);
        g_assert_cmpuint(serial_next(&s, SERIAL_COUNTER), <=, now_usec(CLOCK_BOOTTIME));
        serial_close(&s);
}

static void test_numbers_start_at_1_for_each_kind(Place *p, gconstpointer unused) {
        Serial s;

        g_assert_cmpint(serial_open(&s, p->directory), ==, 0);
        for (int kind = 0; kind < _SERIAL_KIND_MAX; kind++)
                for (uint64_t n = 1; n <= 200; n++)
                        g_assert_cmpuint(serial_next(&s, kind), ==, n);
        serial_close(&s);
}

static void test_clean_exit_skips_none(Place *p, gconstpointer unused) {
        uint64_t expected[_SERIAL_KIND_MAX] = { 1, 1, 1, 1 };

        for (unsigned run = 0; run < 30; run++) {
                Serial s;

                g_assert_cmpint(serial_open(&s, p->directory), ==, 0);
                for (unsigned i = 0; i < run * 7; i++) {
                        SerialKind kind = i % _SERIAL_KIND_MAX;

                        g_assert_cmpuint(serial_next(&s, kind), ==, expected[kind]++);
                }
                serial_close(&s);
        }
}

static void test_crash_skips_some_and_repeats_none(Place *p, gconstpointer unused) {
        uint64_t last[_SERIAL_KIND_MAX] = {};

        for (unsigned run = 0; run < 60; run++) {
                unsigned n = (unsigned) g_test_rand_int_range(0, 300);
                Serial s;

                g_assert_cmpint(serial_open(&s, p->directory), ==, 0);
                for (unsigned i = 0; i < n; i++) {
                        SerialKind kind = g_test_rand_int_range(0, _SERIAL_KIND_MAX);
                        uint64_t number = serial_next(&s, kind);

                        g_assert_cmpuint(number, >, last[kind]);
                        g_assert_cmpuint(number, <, last[kind] + 100); /* some, not many */
                        last[kind] = number;
                }
                if (run % 3 == 0)
                        serial_close(&s);
                else
                        serial_crash(&s);
        }
}

/* A crash of the machine before the number is used. */
static void test_numbers_are_reserved_before_they_are_given(Place *p, gconstpointer unused) {
        Serial s, next;

        g_assert_cmpint(serial_open(&s, p->directory), ==, 0);
        for (unsigned i = 0; i < 300; i++) {
                uint64_t number = serial_next(&s, SERIAL_HOLD);

                g_assert_cmpint(serial_open(&next, p->directory), ==, 0);
                g_assert_cmpuint(next.next[SERIAL_HOLD], >, number);
                serial_crash(&next);
        }
        serial_close(&s);
}

static void test_garbage_is_not_believed(Place *p, gconstpointer unused) {
        g_autoptr(GString) good = g_string_new("");

        for (int i = 0; i < _SERIAL_KIND_MAX; i++)
                g_string_append(good, "00000000000000000007\n");
        g_assert_cmpuint(good->len, ==, FILE_LENGTH);

        assert_unusable(p, "x", 1, -EBADMSG);
        assert_unusable(p, good->str, good->len - 1, -EBADMSG);
        for (size_t i = 0; i < good->len; i++) {
                static const char wrong[] = { 'x', '-', '+', ' ', '\n', '\0' };

                for (size_t j = 0; j < sizeof(wrong); j++) {
                        g_autofree char *bad = g_memdup2(good->str, good->len);

                        if (bad[i] == wrong[j])
                                continue;
                        bad[i] = wrong[j];
                        assert_unusable(p, bad, good->len, -EBADMSG);
                }
        }
}

static void test_number_without_a_successor_is_not_believed(Place *p, gconstpointer unused) {
        static const char *const numbers[] = { "00000000000000000000", "18446744073709551615",
                                               "18446744073709551616", "99999999999999999999",
                                               "09223372036854775808" };

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
                g_autofree char *text = g_strdup_printf(
                        "00000000000000000007\n%s\n00000000000000000007\n00000000000000000007\n",
                        numbers[i]);

                assert_unusable(p, text, strlen(text), -EBADMSG);
        }
}

static void test_without_a_directory_numbers_come_from_the_clock(Place *p, gconstpointer unused) {
        g_autofree char *missing = g_build_filename(p->directory, "none", NULL);
        uint64_t before = now_usec(CLOCK_BOOTTIME);
        Serial first, second;

        g_assert_cmpint(serial_open(&first, NULL), ==, -ENOENT);
        g_assert_cmpuint(serial_next(&first, SERIAL_HOLD), >=, before);
        serial_close(&first);
        g_assert_cmpint(serial_open(&second, missing), ==, -ENOENT);
        g_assert_cmpuint(serial_next(&second, SERIAL_HOLD), >, before);
        serial_close(&second);
}

/* In a process of its own, because the effective user belongs to the whole process here. */
static int open_as_nobody(const char *directory) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                Serial s;

                if (geteuid() == 0 && seteuid(65534) < 0)
                        _exit(99);
                _exit(-serial_open(&s, directory));
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void test_directory_that_is_read_only_is_no_place(Place *p, gconstpointer unused) {
        g_assert_cmpint(g_chmod(p->directory, 0555), ==, 0);
        g_assert_cmpint(open_as_nobody(p->directory), ==, EACCES);
        g_assert_cmpint(g_chmod(p->directory, 0777), ==, 0);
        g_assert_cmpint(open_as_nobody(p->directory), ==, 0);
}

static void test_what_is_no_file_is_not_used(Place *p, gconstpointer unused) {
        g_autofree char *aim = g_build_filename(p->directory, "aim", NULL);
        Serial s;

        write_text(aim, "", 0);
        g_assert_cmpint(symlink(aim, p->file), ==, 0);
        g_assert_cmpint(serial_open(&s, p->directory), ==, -ELOOP);
        g_assert_cmpint(g_remove(p->file), ==, 0);
        g_assert_cmpint(g_remove(aim), ==, 0);

        g_assert_cmpint(mkfifo(p->file, 0600), ==, 0);
        g_assert_cmpint(serial_open(&s, p->directory), ==, -ESPIPE);
        g_assert_cmpint(g_remove(p->file), ==, 0);

        g_assert_cmpint(g_mkdir(p->file, 0700), ==, 0);
        g_assert_cmpint(serial_open(&s, p->directory), ==, -EISDIR);
}

/* A full file system, here by a limit that cuts the text: numbers that could not be reserved are
 * not used. */
static void test_failed_reservation_repeats_nothing(Place *p, gconstpointer unused) {
        uint64_t before = now_usec(CLOCK_BOOTTIME), number = 0;
        struct rlimit limit, none;
        Serial s;

        g_assert_cmpint(serial_open(&s, p->directory), ==, 0);
        for (unsigned i = 0; i < 10; i++)
                number = serial_next(&s, SERIAL_HOLD);
        (void) signal(SIGXFSZ, SIG_IGN);
        g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        none = (struct rlimit){ .rlim_cur = 30, .rlim_max = limit.rlim_max };
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &none), ==, 0);
        for (unsigned i = 0; i < 200; i++) {
                uint64_t last = number;

                number = serial_next(&s, SERIAL_HOLD);
                g_assert_cmpuint(number, >, last);
        }
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        g_assert_cmpuint(number, >, before);
        serial_close(&s);

        g_assert_cmpint(serial_open(&s, p->directory), ==, 0);
        number = serial_next(&s, SERIAL_HOLD);
        g_assert_cmpuint(number, >, 64); /* the block of the first ten */
        g_assert_cmpuint(number, <, before);
        serial_close(&s);
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*test)(Place *p, gconstpointer unused);
        } tests[] = {
                { "numbers-start-at-1-for-each-kind", test_numbers_start_at_1_for_each_kind },
                { "clean-exit-skips-none", test_clean_exit_skips_none },
                { "crash-skips-some-and-repeats-none", test_crash_skips_some_and_repeats_none },
                { "numbers-are-reserved-before-they-are-given",
                  test_numbers_are_reserved_before_they_are_given },
                { "garbage-is-not-believed", test_garbage_is_not_believed },
                { "number-without-a-successor-is-not-believed",
                  test_number_without_a_successor_is_not_believed },
                { "without-a-directory-numbers-come-from-the-clock",
                  test_without_a_directory_numbers_come_from_the_clock },
                { "directory-that-is-read-only-is-no-place",
                  test_directory_that_is_read_only_is_no_place },
                { "what-is-no-file-is-not-used", test_what_is_no_file_is_not_used },
                { "failed-reservation-repeats-nothing", test_failed_reservation_repeats_nothing },
        };

        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/serial/", tests[i].name, NULL);

                g_test_add(path, Place, NULL, place_up, tests[i].test, place_down);
        }
        return g_test_run();
}
