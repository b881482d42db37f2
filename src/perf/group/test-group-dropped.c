/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pinned events that the kernel has dropped from the PMU: what they missed is not hidden.
 */

#include "test-group.h"

/* What it missed is time in which it was enabled and did not run. */
static void test_time_in_which_a_pinned_event_was_dropped_counts_as_enabled(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = pinned_on(&s, 1);
        _cleanup_close_ int dropped = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int counting = open("/", O_RDONLY | O_CLOEXEC); /* a read of it fails */

        g_assert_false(group_revive(g));
        g_assert_cmpint(dup2(dropped, g->slots[0].fd), ==, g->slots[0].fd);
        g_assert_true(group_is_dropped(g));
        g_assert_true(group_revive(g));
        g_assert_cmpuint(g->slots[0].base.enabled, ==, 0);
        g_assert_cmpint(dup2(counting, g->slots[0].fd), ==, g->slots[0].fd);
        g_assert_true(group_revive(g));
        g_assert_cmpuint(g->slots[0].base.enabled, >, 0);
        g_assert_cmpuint(g->slots[0].base.running, ==, 0);
        g_assert_false(group_revive(g));
}

/* Its event is dropped after it has counted 10 writes. *kept is what group_undrop() takes. */
static Group *dropped_after_10(Target *s, int *kept) {
        Group *g = pinned_on(s, 1);

        target_write(s, 0, 10, 0);
        assert_exact(g, 10);
        *kept = group_drop(g, 0);
        return g;
}

/* Nobody has looked at it between the drop and the start. */
static void test_start_does_not_hide_that_it_was_dropped(void) {
        _cleanup_(target_done) Target s = target_new();
        int kept;
        _cleanup_(group_freep) Group *g = dropped_after_10(&s, &kept);

        group_start(g);
        group_undrop(g, 0, kept);
        assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
        g_assert_true(group_revive(g));
        assert_reads(g, 0, 10, QUALITY_SCALED);
}

static void test_stop_does_not_hide_that_it_was_dropped(void) {
        _cleanup_(target_done) Target s = target_new();
        int kept;
        _cleanup_(group_freep) Group *g = dropped_after_10(&s, &kept);

        group_stop(g);
        group_undrop(g, 0, kept);
        assert_reads(g, 0, 10, QUALITY_SCALED);
        group_start(g);
        assert_reads(g, 0, 10, QUALITY_SCALED);
}

/* The kernel lets a dropped event be read again when its thread has ended. */
static void test_end_does_not_hide_that_it_was_dropped(void) {
        _cleanup_(target_done) Target s = target_new();
        int kept;
        _cleanup_(group_freep) Group *g = dropped_after_10(&s, &kept);

        assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
        group_note_dropped(g); /* as whoever reads it for a client does */
        target_kill(&s);
        group_undrop(g, 0, kept);
        assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
        g_assert_true(group_revive(g));
        assert_reads(g, 0, 10, QUALITY_SCALED);
        target_close(&s);
}

static void test_reset_of_one_leaves_others_what_they_missed(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = pinned_on(&s, 2);
        Reading one, other;
        int kept = group_drop(g, 0);

        g_assert_true(group_revive(g));
        g->parts[0].dropped_nsec -= 1000 * NSEC_PER_SEC;
        group_reset(g, 0);
        group_undrop(g, 0, kept);
        g_assert_true(group_revive(g));
        group_read(g, 0, &one);
        group_read(g, 1, &other);
        g_assert_cmpuint(other.enabled - other.running, >=, 1000 * NSEC_PER_SEC);
        g_assert_cmpuint(one.enabled - one.running, <, 1000 * NSEC_PER_SEC);
        g_assert_cmpuint(one.enabled - one.running, >, 0);
}

/* A pinned event that the kernel has dropped reads as end of file. */
static void test_event_that_cannot_be_read_makes_all_unmeasured(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;
        _cleanup_close_ int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

        target_add_thread(&s, 0, 1);
        g = group_on(&s, 1);
        target_write(&s, 0, 5, 0);
        target_write(&s, 1, 5, 0);
        assert_exact(g, 10);
        g_assert_cmpint(dup2(nothing, g->slots[1].fd), ==, g->slots[1].fd);
        assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "time-in-which-a-pinned-event-was-dropped-counts-as-enabled",
                  test_time_in_which_a_pinned_event_was_dropped_counts_as_enabled },
                { "start-does-not-hide-that-it-was-dropped",
                  test_start_does_not_hide_that_it_was_dropped },
                { "stop-does-not-hide-that-it-was-dropped",
                  test_stop_does_not_hide_that_it_was_dropped },
                { "end-does-not-hide-that-it-was-dropped",
                  test_end_does_not_hide_that_it_was_dropped },
                { "reset-of-one-leaves-others-what-they-missed",
                  test_reset_of_one_leaves_others_what_they_missed },
                { "event-that-cannot-be-read-makes-all-unmeasured",
                  test_event_that_cannot_be_read_makes_all_unmeasured },
        };

        return group_tests_run(argc, argv, "/group-dropped/", tests, G_N_ELEMENTS(tests));
}
