/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/config.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/util/config-file.h"

typedef struct Place {
        char *directory, *file, *log; /* log: standard error while a file is read */
} Place;

static void place_up(Place *p, gconstpointer unused) {
        p->directory = g_dir_make_tmp("perfalloc-config-XXXXXX", NULL);
        p->file = g_build_filename(p->directory, "perfallocd.conf", NULL);
        p->log = g_build_filename(p->directory, "log", NULL);
}

static void place_down(Place *p, gconstpointer unused) {
        (void) g_remove(p->file);
        (void) g_remove(p->log);
        g_assert_cmpint(g_rmdir(p->directory), ==, 0);
        g_free(p->directory);
        g_free(p->file);
        g_free(p->log);
}

/* Reads the file over the defaults. Returns what was logged; the caller frees it. */
static char *load(const Place *p, Config *ret) {
        _cleanup_close_ int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        _cleanup_close_ int log = open(p->log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        char *text;

        g_assert_cmpint(saved, >=, 0);
        g_assert_cmpint(log, >=, 0);
        config_default(ret);
        g_assert_cmpint(dup2(log, STDERR_FILENO), ==, STDERR_FILENO);
        config_load(ret, p->file);
        g_assert_cmpint(dup2(saved, STDERR_FILENO), ==, STDERR_FILENO);
        g_assert_true(g_file_get_contents(p->log, &text, NULL, NULL));
        return text;
}

static char *load_text(const Place *p, const char *text, Config *ret) {
        g_assert_true(g_file_set_contents(p->file, text, -1, NULL));
        return load(p, ret);
}

static void assert_default(const Config *c) {
        Config defaults;

        config_default(&defaults);
        g_assert_cmpmem(c, sizeof(*c), &defaults, sizeof(defaults));
}

/* The text, logged for that line and for no other. */
static void assert_said(const char *log, unsigned line, const char *words) {
        g_autofree char *place = g_strdup_printf("perfallocd.conf:%u: ", line);
        const char *said = strstr(log, place);

        g_assert_nonnull(said);
        g_assert_nonnull(g_strstr_len(said, (gssize) strcspn(said, "\n"), words));
        g_assert_null(strstr(said + 1, place));
}

static unsigned count_lines(const char *text) {
        unsigned n = 0;

        for (; (text = strchr(text, '\n')); text++)
                n++;
        return n;
}

static void test_missing_file_is_fine(Place *p, gconstpointer unused) {
        g_autofree char *log = NULL;
        Config c;

        log = load(p, &c);
        assert_default(&c);
        g_assert_cmpstr(log, ==, "");
}

static void test_every_setting_is_read(Place *p, gconstpointer unused) {
        g_autoptr(GString) text = g_string_new("# comment\n; comment\n\n[Limits]\n");
        g_autofree char *log = NULL;
        Config c;

        g_string_append(text, "HoldMaxSec=1h 30min\nWaitMaxSec = 7\nIdleExitSec=infinity\n"
                              "KeptDescriptors=9\n");
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++)
                if (quota_setting(good))
                        g_string_append_printf(text, "%s=%d\n", quota_setting(good), 10 + good);
        log = load_text(p, text->str, &c);
        g_assert_cmpstr(log, ==, "");
        g_assert_cmpuint(c.hold_max_usec, ==, 5400 * USEC_PER_SEC);
        g_assert_cmpuint(c.wait_max_usec, ==, 7 * USEC_PER_SEC);
        g_assert_cmpuint(c.idle_exit_usec, ==, UINT64_MAX);
        g_assert_cmpuint(c.kept_descriptors, ==, 9);
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++)
                if (quota_setting(good))
                        g_assert_cmpuint(c.limits[good], ==, 10 + good);
}

static void test_wrong_lines_are_named_and_good_ones_kept(Place *p, gconstpointer unused) {
        g_autofree char *log = NULL;
        Config c;

        log = load_text(p,
                        "[Limits]\n"
                        "HoldsPerUser=5\n"
                        "HoldMaxSec=never\n"
                        "\n"
                        "Nonsense=1\n"
                        "no setting at all\n"
                        "WaitMaxSec=9\n"
                        "[Other]\n"
                        "HoldsPerUser=6\n"
                        "[Limits\n"
                        "[Limits]\n"
                        "CountersPerUser=7\n",
                        &c);
        assert_said(log, 3, "HoldMaxSec=never");
        assert_said(log, 5, "Nonsense");
        assert_said(log, 6, "not a line");
        assert_said(log, 9, "[Other]");
        assert_said(log, 10, "not a line");
        g_assert_cmpuint(count_lines(log), ==, 5);
        g_assert_cmpuint(c.limits[QUOTA_HOLDS], ==, 5);
        g_assert_cmpuint(c.limits[QUOTA_COUNTERS], ==, 7);
        g_assert_cmpuint(c.wait_max_usec, ==, 9 * USEC_PER_SEC);
        g_assert_cmpuint(c.hold_max_usec, ==, 8 * 3600 * USEC_PER_SEC);
}

static void test_bridges_are_read(Place *p, gconstpointer unused) {
        g_autofree char *log = NULL;
        Config c;

        log = load_text(p,
                        "[Bridges]\nPcpLock=/a/perflock\nLikwidLock=no\nNmiWatchdog=yes\n"
                        "PcpGraceSec=0.25\nLikwidGraceSec=1min\n",
                        &c);
        g_assert_cmpstr(log, ==, "");
        g_assert_cmpint(c.bridges.pcp.mode, ==, BRIDGE_PATH);
        g_assert_cmpstr(c.bridges.pcp.path, ==, "/a/perflock");
        g_assert_cmpint(c.bridges.likwid.mode, ==, BRIDGE_NO);
        g_assert_true(c.bridges.nmi_watchdog);
        g_assert_cmpuint(c.bridges.pcp_grace_usec, ==, 250 * USEC_PER_MSEC);
        g_assert_cmpuint(c.bridges.likwid_grace_usec, ==, 60 * USEC_PER_SEC);
        free(g_steal_pointer(&log));
        log = load_text(p, "[Bridges]\nPcpLock=/a\nPcpLock=auto\n", &c);
        assert_default(&c);
}

static void test_wrong_bridges_have_no_effect(Place *p, gconstpointer unused) {
        static const char *const lines[] = { "PcpLock=perflock", "PcpLock=",      "LikwidLock=yes",
                                             "NmiWatchdog=auto", "PcpGraceSec=0", "HoldsPerUser=1",
                                             "Colour=red" };

        for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
                g_autofree char *text = g_strconcat("[Bridges]\n", lines[i], "\n", NULL),
                                *log = NULL;
                Config c;

                log = load_text(p, text, &c);
                g_assert_cmpuint(count_lines(log), ==, 1);
                assert_default(&c);
        }
}

static void test_wrong_values_have_no_effect(Place *p, gconstpointer unused) {
        static const char *const lines[] = {
                "HoldsPerUser=",
                "HoldsPerUser=-1",
                "HoldsPerUser=+1",
                "HoldsPerUser=0x10",
                "HoldsPerUser=1.5",
                "HoldsPerUser=10 holds",
                "HoldsPerUser=1000000001",
                "HoldsPerUser=18446744073709551617",
                "HoldsPerUser=99999999999999999999999",
                "HoldsPerUser=infinity",
                "holdsperuser=5",
                "HoldMaxSec=",
                "HoldMaxSec=0",
                "HoldMaxSec=-1s",
                "HoldMaxSec=1 parsec",
                "HoldMaxSec=99999999999999999999",
                "=5",
                "HoldsPerUser",
                "KeptDescriptors=infinity",
                "KeptDescriptors=-1",
                "(null)=5",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
                g_autofree char *text = g_strdup_printf("[Limits]\n%s\n", lines[i]);
                g_autofree char *log = NULL;
                Config c;

                log = load_text(p, text, &c);
                assert_default(&c);
                g_assert_cmpuint(count_lines(log), ==, 1);
                assert_said(log, 2, "");
        }
}

static void test_extreme_values_are_taken(Place *p, gconstpointer unused) {
        g_autofree char *log = NULL;
        Config c;

        log = load_text(p,
                        "[Limits]\nHoldsPerUser=0\nCountersPerUser=1000000000\nHoldMaxSec=1us\n"
                        "WaitMaxSec=18446744073709551614us",
                        &c);
        g_assert_cmpstr(log, ==, "");
        g_assert_cmpuint(c.limits[QUOTA_HOLDS], ==, 0);
        g_assert_cmpuint(c.limits[QUOTA_COUNTERS], ==, 1000000000);
        g_assert_cmpuint(c.hold_max_usec, ==, 1);
        g_assert_cmpuint(c.wait_max_usec, ==, UINT64_MAX - 1);
}

static void test_setting_without_a_section_has_no_effect(Place *p, gconstpointer unused) {
        g_autofree char *log = NULL;
        Config c;

        log = load_text(p, "HoldsPerUser=5\n", &c);
        assert_default(&c);
        assert_said(log, 1, "section");
}

static void test_last_of_several_holds(Place *p, gconstpointer unused) {
        g_autofree char *log = NULL;
        Config c;

        log = load_text(p, "[Limits]\nHoldsPerUser=5\n[Limits]\nHoldsPerUser=6\r\n", &c);
        g_assert_cmpstr(log, ==, "");
        g_assert_cmpuint(c.limits[QUOTA_HOLDS], ==, 6);
}

/* The end of a long line is not read as a line. */
static void test_long_line_is_one_line(Place *p, gconstpointer unused) {
        g_autofree char *spaces = g_strnfill(5000, ' '), *text = NULL, *log = NULL;
        Config c;

        text = g_strdup_printf("[Limits]\n"
                               "#%sHoldsPerUser=1\n"
                               "HoldsPerUser=2%sHoldsPerUser=3\n"
                               "CountersPerUser=%s4\n"
                               "CountersPerUser=5\n"
                               "Nonsense\n",
                               spaces, spaces, spaces);
        log = load_text(p, text, &c);
        assert_said(log, 3, "too long");
        assert_said(log, 4, "too long");
        assert_said(log, 6, "not a line");
        g_assert_cmpuint(count_lines(log), ==, 3);
        g_assert_cmpuint(c.limits[QUOTA_HOLDS], ==, 1024);
        g_assert_cmpuint(c.limits[QUOTA_COUNTERS], ==, 5);
}

static void test_many_lines_are_read(Place *p, gconstpointer unused) {
        g_autoptr(GString) text = g_string_new("[Limits]\n");
        g_autofree char *log = NULL;
        unsigned n = 0;
        Config c;

        while (text->len < CONFIG_FILE_MAX - 40)
                g_string_append_printf(text, "HoldsPerUser=%u\n", ++n);
        g_string_append(text, "wrong\n");
        log = load_text(p, text->str, &c);
        g_assert_cmpuint(c.limits[QUOTA_HOLDS], ==, n);
        assert_said(log, n + 2, "not a line");
        g_assert_cmpuint(count_lines(log), ==, 1);
}

/* ---- files that cannot be used: the defaults hold, and it is said why ---- */

static void assert_unusable(Place *p, const char *words) {
        g_autofree char *log = NULL;
        Config c;

        log = load(p, &c);
        assert_default(&c);
        g_assert_cmpuint(count_lines(log), ==, 1);
        g_assert_nonnull(strstr(log, "perfallocd.conf"));
        g_assert_nonnull(strstr(log, words));
}

static void test_huge_file_is_not_used(Place *p, gconstpointer unused) {
        _cleanup_close_ int fd = open(p->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        static const char text[] = "[Limits]\nHoldsPerUser=5\n";

        g_assert_cmpint(write(fd, text, sizeof(text) - 1), ==, sizeof(text) - 1);
        g_assert_cmpint(ftruncate(fd, 1LL << 33), ==, 0); /* a hole */
        assert_unusable(p, "large");
        g_assert_cmpint(ftruncate(fd, CONFIG_FILE_MAX + 1), ==, 0);
        assert_unusable(p, "large");
}

static void test_file_with_zeros_is_not_used(Place *p, gconstpointer unused) {
        static const char text[] = "[Limits]\nHoldsPerUser=5\n\0HoldsPerUser=6\n";

        g_assert_true(g_file_set_contents(p->file, text, sizeof(text) - 1, NULL));
        assert_unusable(p, "not a regular text file");
}

static void test_directory_is_not_used(Place *p, gconstpointer unused) {
        g_assert_cmpint(g_mkdir(p->file, 0700), ==, 0);
        assert_unusable(p, "directory");
}

/* A FIFO is not waited for: it has no writer. */
static void test_fifo_is_not_used(Place *p, gconstpointer unused) {
        g_assert_cmpint(mkfifo(p->file, 0600), ==, 0);
        assert_unusable(p, "not a regular text file");
}

static void test_file_that_may_not_be_read_is_not_used(Place *p, gconstpointer unused) {
        int status;
        pid_t pid;

        g_assert_true(g_file_set_contents(p->file, "[Limits]\nHoldsPerUser=5\n", -1, NULL));
        g_assert_cmpint(g_chmod(p->file, 0000), ==, 0);
        g_assert_cmpint(g_chmod(p->directory, 0777), ==, 0);
        /* the effective user is that of a whole process here */
        pid = fork();
        if (pid == 0) {
                if (geteuid() == 0 && seteuid(65534) < 0)
                        _exit(99);
                assert_unusable(p, "denied");
                _exit(0);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*test)(Place *p, gconstpointer unused);
        } tests[] = {
                { "missing-file-is-fine", test_missing_file_is_fine },
                { "every-setting-is-read", test_every_setting_is_read },
                { "wrong-lines-are-named-and-good-ones-kept",
                  test_wrong_lines_are_named_and_good_ones_kept },
                { "bridges-are-read", test_bridges_are_read },
                { "wrong-bridges-have-no-effect", test_wrong_bridges_have_no_effect },
                { "wrong-values-have-no-effect", test_wrong_values_have_no_effect },
                { "extreme-values-are-taken", test_extreme_values_are_taken },
                { "setting-without-a-section-has-no-effect",
                  test_setting_without_a_section_has_no_effect },
                { "last-of-several-holds", test_last_of_several_holds },
                { "long-line-is-one-line", test_long_line_is_one_line },
                { "many-lines-are-read", test_many_lines_are_read },
                { "huge-file-is-not-used", test_huge_file_is_not_used },
                { "file-with-zeros-is-not-used", test_file_with_zeros_is_not_used },
                { "directory-is-not-used", test_directory_is_not_used },
                { "fifo-is-not-used", test_fifo_is_not_used },
                { "file-that-may-not-be-read-is-not-used",
                  test_file_that_may_not_be_read_is_not_used },
        };

        g_unsetenv("JOURNAL_STREAM"); /* the log is standard error then */
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/config/", tests[i].name, NULL);

                g_test_add(path, Place, NULL, place_up, tests[i].test, place_down);
        }
        return g_test_run();
}
