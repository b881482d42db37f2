/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The bridge to PCP, with real locks. */

#include "yield/pcp-lock.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test-stage.h"
#include "yield/lock-file.h"

static void stage_pcp(Stage *s) {
        g_assert_cmpint(pcp_lock_new(&s->host, s->path, GRACE, &s->bridge), ==, 0);
}

/* As pmdaperfevent does: another process asks which lock conflicts with a write lock. */
static short pcp_sees(const char *path) {
        pid_t child = fork();
        int status;

        if (child == 0) {
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
                int fd = open(path, O_RDWR | O_CLOEXEC);

                _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 ? lock.l_type : 99);
        }
        g_assert_cmpint(waitpid(child, &status, 0), ==, child);
        g_assert_true(WIFEXITED(status));
        return (short) WEXITSTATUS(status);
}

/* A lock of another process, until the descriptor that is returned is closed. */
static int other_locks(const char *path, short type, pid_t *ret_pid) {
        int up[2], down[2];
        char c;

        g_assert_cmpint(pipe2(up, O_CLOEXEC), ==, 0);
        g_assert_cmpint(pipe2(down, O_CLOEXEC), ==, 0);
        *ret_pid = fork();
        if (*ret_pid == 0) {
                struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
                int fd = open(path, O_RDWR | O_CLOEXEC);

                (void) close(down[1]);
                if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0 || write(up[1], "", 1) != 1)
                        _exit(1);
                _exit(read(down[0], &c, 1) < 0);
        }
        (void) close(up[1]);
        (void) close(down[0]);
        g_assert_cmpint(read(up[0], &c, 1), ==, 1);
        (void) close(up[0]);
        return down[1];
}

static void other_unlocks(int fd, pid_t pid) {
        (void) close(fd);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void test_pcp_sees_a_lock_while_held(Stage *s, gconstpointer unused) {
        stage_file(s);
        stage_pcp(s);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
        stage_hold(s);
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
        stage_end(s);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
}

static void test_it_counts_as_yielded_after_the_grace_and_not_before(Stage *s,
                                                                     gconstpointer unused) {
        gint64 start = g_get_monotonic_time();

        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_ASKED);
        stage_run_until_yielded(s);
        g_assert_cmpint(g_get_monotonic_time() - start, >=, (gint64) GRACE);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
}

static void test_deadline_is_behind_the_grace_of_who_is_there(Stage *s, gconstpointer unused) {
        stage_pcp(s);
        g_assert_cmpuint(yielders_grace(&s->yielders), ==, 0);
        stage_file(s);
        g_assert_cmpuint(yielders_grace(&s->yielders), >, GRACE);
}

static void test_nobody_waits_where_there_is_no_pcp(Stage *s, gconstpointer unused) {
        stage_pcp(s);
        g_assert_false(bridge_is_active(s->bridge));
        stage_hold(s);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpuint(s->said->len, ==, 0);
}

static void test_lock_lasts_although_another_descriptor_is_closed(Stage *s, gconstpointer unused) {
        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        (void) close(open(s->path, O_RDONLY | O_CLOEXEC));
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
}

static void test_write_lock_is_tried_again_and_said_once(Stage *s, gconstpointer unused) {
        char who[256];
        pid_t pid, told;
        int other;

        stage_file(s);
        other = other_locks(s->path, F_WRLCK, &pid);
        stage_pcp(s);
        stage_hold(s);
        for (unsigned i = 0; i < 3; i++) /* attempts */
                g_assert_cmpint(sd_event_run(s->event, 10 * USEC_PER_SEC), >, 0);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_ASKED);
        g_assert_cmpuint(s->said->len, ==, 1);
        s->bridge->yielder.ops->describe(&s->bridge->yielder, &told, who, sizeof(who));
        g_assert_cmpint(told, ==, pid);
        g_assert_nonnull(strstr(who, s->path));
        other_unlocks(other, pid);
        stage_run_until_yielded(s);
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
        g_assert_cmpuint(s->said->len, ==, 1);
}

static void test_hold_that_ends_ends_the_attempts(Stage *s, gconstpointer unused) {
        pid_t pid;
        int other;

        stage_file(s);
        other = other_locks(s->path, F_WRLCK, &pid);
        stage_pcp(s);
        stage_hold(s);
        stage_end(s);
        other_unlocks(other, pid);
        g_assert_cmpint(sd_event_run(s->event, 100 * USEC_PER_MSEC), ==, 0);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
}

static void make_link(const char *path) {
        g_assert_cmpint(symlink("/etc/passwd", path), ==, 0);
}

static void make_fifo(const char *path) {
        g_assert_cmpint(mkfifo(path, 0600), ==, 0);
}

static void make_directory(const char *path) {
        g_assert_cmpint(mkdir(path, 0700), ==, 0);
}

static void test_odd_file_is_not_used_and_said_once(Stage *s, gconstpointer unused) {
        static void (*const makes[])(const char *) = { make_link, make_fifo, make_directory };

        stage_pcp(s);
        for (size_t i = 0; i < G_N_ELEMENTS(makes); i++) {
                makes[i](s->path);
                for (unsigned times = 0; times < 2; times++) {
                        stage_hold(s);
                        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
                        g_assert_false(bridge_is_active(s->bridge));
                        g_assert_cmpuint(s->said->len, ==, i + 1);
                        stage_end(s);
                }
                g_assert_cmpint(g_remove(s->path), ==, 0);
        }
}

static void test_bridge_made_during_a_hold_takes_its_part(Stage *s, gconstpointer unused) {
        stage_file(s);
        stage_hold(s);
        stage_pcp(s);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
}

static void test_bridge_that_goes_lets_go(Stage *s, gconstpointer unused) {
        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        s->bridge = bridge_free(s->bridge);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
}

static void test_who_has_the_lock_is_found(Stage *s, gconstpointer unused) {
        pid_t pid;
        int other;

        stage_pcp(s);
        g_assert_cmpint(pcp_lock_holder(s->bridge), ==, 0);
        stage_file(s);
        g_assert_cmpint(pcp_lock_holder(s->bridge), ==, 0);
        other = other_locks(s->path, F_RDLCK, &pid);
        g_assert_cmpint(pcp_lock_holder(s->bridge), ==, pid);
        stage_hold(s); /* our own lock does not hide it */
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
        g_assert_cmpint(pcp_lock_holder(s->bridge), ==, pid);
        other_unlocks(other, pid);
        g_assert_cmpint(pcp_lock_holder(s->bridge), ==, 0);
}

static void assert_found(const Stage *s, const char *conf, const char *path) {
        char *found = NULL;

        g_assert_true(g_file_set_contents(s->path, conf, -1, NULL));
        g_assert_cmpint(pcp_lock_find(s->path, &found), ==, 0);
        g_assert_cmpstr(found, ==, path);
        free(found);
}

static void test_pcp_configuration_says_where_it_is(Stage *s, gconstpointer unused) {
        char *found = s->path;

        g_assert_cmpint(pcp_lock_find(s->path, &found), ==, 0);
        g_assert_null(found);
        assert_found(s, "# x\nPCP_VAR_DIR=/v\nPCP_PMDAS_DIR=/v/pmdas\nPCP_RUN_DIR=/r\n",
                     "/v/pmdas/perfevent/perflock");
        assert_found(s, "PCP_PMDAS_DIR=\"/v/pmdas\"", "/v/pmdas/perfevent/perflock");
        assert_found(s, "PCP_PMDASADM_DIR=/usr/lib/pcp\n", NULL);
        assert_found(s, "PCP_PMDAS_DIR=\n", NULL);
        assert_found(s, "PCP_PMDAS_DIR=relative\n", NULL);
        g_assert_cmpint(pcp_lock_find(s->directory, &found), ==, 0);
        g_assert_null(found);
}

/* ---- a restart of the service ---- */

static void test_lock_is_never_free_in_a_restart(Stage *s, gconstpointer unused) {
        g_auto(Kept) k = {};

        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        stage_run_until_yielded(s);
        k = stage_drop(s);
        g_assert_cmpuint(s->n_acknowledged, ==, 1);
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
        stage_restore(s, &k, stage_pcp);
        g_assert_cmpint(k.past.fd, ==, -1);
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
        stage_end(s);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
}

static void test_grace_goes_on_after_a_restart(Stage *s, gconstpointer unused) {
        gint64 start = g_get_monotonic_time();
        g_auto(Kept) k = {};

        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        k = stage_drop(s);
        stage_restore(s, &k, stage_pcp);
        if (s->bridge->yielder.state == YIELDER_ASKED)
                stage_run_until_yielded(s);
        g_assert_cmpint(g_get_monotonic_time() - start, >=, (gint64) GRACE);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
}

static void test_lock_is_let_go_when_the_hold_ended_meanwhile(Stage *s, gconstpointer unused) {
        g_auto(Kept) k = {};

        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        k = stage_drop(s);
        stage_end(s);
        stage_restore(s, &k, stage_pcp);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
        g_assert_false(s->bridge->taken);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_COUNTING);
}

static void test_lost_lock_is_taken_anew(Stage *s, gconstpointer unused) {
        g_auto(Kept) k = {};

        stage_file(s);
        stage_pcp(s);
        stage_hold(s);
        k = stage_drop(s);
        k.past.fd = close_fd(k.past.fd);
        g_assert_cmpint(pcp_sees(s->path), ==, F_UNLCK);
        stage_restore(s, &k, stage_pcp);
        g_assert_cmpint(pcp_sees(s->path), ==, F_RDLCK);
}

int main(int argc, char **argv) {
        static const StageTest tests[] = {
                { "pcp-sees-a-lock-while-held", test_pcp_sees_a_lock_while_held },
                { "it-counts-as-yielded-after-the-grace-and-not-before",
                  test_it_counts_as_yielded_after_the_grace_and_not_before },
                { "deadline-is-behind-the-grace-of-who-is-there",
                  test_deadline_is_behind_the_grace_of_who_is_there },
                { "nobody-waits-where-there-is-no-pcp", test_nobody_waits_where_there_is_no_pcp },
                { "lock-lasts-although-another-descriptor-is-closed",
                  test_lock_lasts_although_another_descriptor_is_closed },
                { "write-lock-is-tried-again-and-said-once",
                  test_write_lock_is_tried_again_and_said_once },
                { "hold-that-ends-ends-the-attempts", test_hold_that_ends_ends_the_attempts },
                { "odd-file-is-not-used-and-said-once", test_odd_file_is_not_used_and_said_once },
                { "bridge-made-during-a-hold-takes-its-part",
                  test_bridge_made_during_a_hold_takes_its_part },
                { "bridge-that-goes-lets-go", test_bridge_that_goes_lets_go },
                { "who-has-the-lock-is-found", test_who_has_the_lock_is_found },
                { "pcp-configuration-says-where-it-is", test_pcp_configuration_says_where_it_is },
                { "lock-is-never-free-in-a-restart", test_lock_is_never_free_in_a_restart },
                { "grace-goes-on-after-a-restart", test_grace_goes_on_after_a_restart },
                { "lock-is-let-go-when-the-hold-ended-meanwhile",
                  test_lock_is_let_go_when_the_hold_ended_meanwhile },
                { "lost-lock-is-taken-anew", test_lost_lock_is_taken_anew },
        };

        g_test_init(&argc, &argv, NULL);
        return stage_run_tests("pcp-lock", tests, G_N_ELEMENTS(tests));
}
