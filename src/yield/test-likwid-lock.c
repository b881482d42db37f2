/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The bridge to LIKWID. Needs root, as owners are changed. */

#include "yield/likwid-lock.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "machine.h"
#include "test-stage.h"

static void stage_likwid(Stage *s) {
        g_assert_cmpint(likwid_lock_new(&s->host, s->path, s->saved, GRACE, &s->bridge), ==, 0);
}

static uid_t stage_owner(const Stage *s) {
        struct stat st;

        g_assert_cmpint(stat(s->path, &st), ==, 0);
        return st.st_uid;
}

static void test_file_is_the_holders_while_held(Stage *s, gconstpointer unused) {
        if (machine_lacks(MACHINE_ROOT))
                return;
        stage_file(s);
        g_assert_cmpint(chown(s->path, 99, 98), ==, 0);
        stage_likwid(s);
        g_assert_true(bridge_is_active(s->bridge));
        stage_hold(s);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER);
        stage_run_until_yielded(s);
        stage_end(s);
        g_assert_cmpuint(stage_owner(s), ==, 99);
}

static void test_file_passes_to_the_next_holder(Stage *s, gconstpointer unused) {
        if (machine_lacks(MACHINE_ROOT))
                return;
        stage_file(s);
        stage_likwid(s);
        stage_hold(s);
        bridge_hand_over(s->bridge, HOLDER + 1);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER + 1);
        stage_end(s);
        g_assert_cmpuint(stage_owner(s), ==, 0);
}

static void test_owner_that_another_has_set_stays(Stage *s, gconstpointer unused) {
        if (machine_lacks(MACHINE_ROOT))
                return;
        stage_file(s);
        stage_likwid(s);
        stage_hold(s);
        g_assert_cmpint(chown(s->path, 55, (gid_t) -1), ==, 0);
        stage_end(s);
        g_assert_cmpuint(stage_owner(s), ==, 55);
}

static void test_file_is_given_back_after_a_crash(Stage *s, gconstpointer unused) {
        pid_t child;

        if (machine_lacks(MACHINE_ROOT))
                return;
        stage_file(s);
        g_assert_cmpint(chown(s->path, 99, (gid_t) -1), ==, 0);
        child = fork();
        if (child == 0) {
                /* a loop is not for children of its process */
                g_assert_cmpint(sd_event_new(&s->host.event), >=, 0);
                stage_likwid(s);
                stage_hold(s);
                _exit(0);
        }
        g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER);
        stage_likwid(s);
        g_assert_cmpuint(stage_owner(s), ==, 99);
        g_assert_false(g_file_test(s->saved, G_FILE_TEST_EXISTS));
}

static void test_file_that_a_user_planted_is_left_alone(Stage *s, gconstpointer unused) {
        if (machine_lacks(MACHINE_ROOT))
                return;
        stage_file(s);
        g_assert_cmpint(chown(s->path, 99, (gid_t) -1), ==, 0);
        g_assert_cmpint(chmod(s->directory, 01777), ==, 0);
        stage_likwid(s);
        g_assert_false(bridge_is_active(s->bridge));
        stage_hold(s);
        g_assert_cmpuint(stage_owner(s), ==, 99);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpuint(s->said->len, ==, 1);
}

static void test_link_is_left_alone(Stage *s, gconstpointer unused) {
        g_autofree char *victim = g_build_filename(s->directory, "victim", NULL);
        struct stat st;

        if (machine_lacks(MACHINE_ROOT))
                return;
        g_assert_true(g_file_set_contents(victim, "", 0, NULL));
        g_assert_cmpint(symlink(victim, s->path), ==, 0);
        stage_likwid(s);
        stage_hold(s);
        g_assert_cmpint(stat(victim, &st), ==, 0);
        g_assert_cmpuint(st.st_uid, ==, 0);
        (void) g_unlink(s->path);
        g_assert_cmpint(link(victim, s->path), ==, 0); /* a second link to it */
        stage_end(s);
        stage_hold(s);
        g_assert_cmpint(stat(victim, &st), ==, 0);
        g_assert_cmpuint(st.st_uid, ==, 0);
        (void) g_unlink(victim);
}

static void test_nobody_waits_where_there_is_no_likwid(Stage *s, gconstpointer unused) {
        stage_likwid(s);
        g_assert_cmpuint(yielders_grace(&s->yielders), ==, 0);
        stage_hold(s);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
        g_assert_cmpuint(s->said->len, ==, 0);
}

/* ---- a restart of the service ---- */

/* A lock file that belongs to another user. */
static bool stage_lend(Stage *s) {
        if (machine_lacks(MACHINE_ROOT))
                return false;
        stage_file(s);
        g_assert_cmpint(chown(s->path, 99, (gid_t) -1), ==, 0);
        stage_likwid(s);
        stage_hold(s);
        return true;
}

static void test_file_stays_lent_in_a_restart(Stage *s, gconstpointer unused) {
        g_auto(Kept) k = {};

        if (!stage_lend(s))
                return;
        stage_run_until_yielded(s);
        k = stage_drop(s);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER);
        stage_restore(s, &k, stage_likwid);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER);
        g_assert_cmpint(s->bridge->yielder.state, ==, YIELDER_YIELDED);
        bridge_hand_over(s->bridge, HOLDER + 1);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER + 1);
        stage_end(s);
        g_assert_cmpuint(stage_owner(s), ==, 99);
        g_assert_false(g_file_test(s->saved, G_FILE_TEST_EXISTS));
}

static void test_file_is_given_back_when_the_hold_ended_meanwhile(Stage *s, gconstpointer unused) {
        g_auto(Kept) k = {};

        if (!stage_lend(s))
                return;
        k = stage_drop(s);
        stage_end(s);
        stage_restore(s, &k, stage_likwid);
        g_assert_cmpuint(stage_owner(s), ==, 99);
        g_assert_false(g_file_test(s->saved, G_FILE_TEST_EXISTS));
}

/* Killed between the record of the new owner and the change. */
static void test_file_goes_to_whom_it_was_to_go(Stage *s, gconstpointer unused) {
        g_auto(Kept) k = {};

        if (!stage_lend(s))
                return;
        bridge_hand_over(s->bridge, HOLDER + 1);
        k = stage_drop(s);
        g_assert_cmpint(chown(s->path, HOLDER, (gid_t) -1), ==, 0);
        stage_restore(s, &k, stage_likwid);
        g_assert_cmpuint(stage_owner(s), ==, HOLDER + 1);
        stage_end(s);
        g_assert_cmpuint(stage_owner(s), ==, 99);
}

int main(int argc, char **argv) {
        static const StageTest tests[] = {
                { "file-is-the-holders-while-held", test_file_is_the_holders_while_held },
                { "file-passes-to-the-next-holder", test_file_passes_to_the_next_holder },
                { "owner-that-another-has-set-stays", test_owner_that_another_has_set_stays },
                { "file-is-given-back-after-a-crash", test_file_is_given_back_after_a_crash },
                { "file-that-a-user-planted-is-left-alone",
                  test_file_that_a_user_planted_is_left_alone },
                { "link-is-left-alone", test_link_is_left_alone },
                { "nobody-waits-where-there-is-no-likwid",
                  test_nobody_waits_where_there_is_no_likwid },
                { "file-stays-lent-in-a-restart", test_file_stays_lent_in_a_restart },
                { "file-is-given-back-when-the-hold-ended-meanwhile",
                  test_file_is_given_back_when_the_hold_ended_meanwhile },
                { "file-goes-to-whom-it-was-to-go", test_file_goes_to_whom_it_was_to_go },
        };

        g_test_init(&argc, &argv, NULL);
        return stage_run_tests("likwid-lock", tests, G_N_ELEMENTS(tests));
}
