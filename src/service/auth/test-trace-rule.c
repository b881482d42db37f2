/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/auth/trace-rule.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "perf/process/test-child.h"

#define BOB 1001u

static gid_t gids[] = { BOB, 100 };

static const Peer bob = { .uid = BOB, .gids = gids, .n_gids = G_N_ELEMENTS(gids) };
static const Peer root = { .root = true };
static const Peer powerless = { .uid = 0 };

static const ProcessFacts bobs = {
        .pid = 77,
        .uid = { BOB, BOB, BOB },
        .gid = { BOB, BOB, BOB },
        .uniform = true,
        .dumpable = true,
        .same_pid_ns = true,
        .same_user_ns = true,
};

static bool is_void(const char *text) {
        g_autofree char *path = g_build_filename(g_get_tmp_dir(), "suid-dumpable-XXXXXX", NULL);
        int fd = g_mkstemp(path);
        bool r;

        g_assert_cmpint(fd, >=, 0);
        close(fd);
        g_assert_true(g_file_set_contents(path, text, -1, NULL));
        r = trace_rule_is_void(path);
        g_assert_cmpint(g_unlink(path), ==, 0);
        return r;
}

static void test_void_where_setuid_programs_keep_their_events(void) {
        g_assert_false(is_void("0\n"));
        g_assert_true(is_void("1\n"));
        g_assert_false(is_void("2\n"));
}

static void test_void_where_nobody_knows(void) {
        g_assert_true(is_void(""));
        g_assert_true(is_void("3\n"));
        g_assert_true(trace_rule_is_void("/nonexistent/suid_dumpable"));
}

static void test_root_may_count_everybody(void) {
        ProcessFacts nobodys = {};

        g_assert_null(trace_rule_denies(&root, TRACE_UNPROVEN, false, &nobodys));
        g_assert_nonnull(trace_rule_denies(&powerless, TRACE_UNPROVEN, false, &nobodys));
}

static void test_others_their_own(void) {
        ProcessFacts other = bobs;

        if (trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE)) {
                g_assert_nonnull(strstr(trace_rule_denies(&bob, TRACE_ITSELF, true, &bobs),
                                        "suid_dumpable"));
                return;
        }
        g_assert_null(trace_rule_denies(&bob, TRACE_ITSELF, false, &bobs));
        g_assert_null(trace_rule_denies(&bob, TRACE_PROVEN, true, &bobs));
        other.uid[2] = 0;
        g_assert_nonnull(trace_rule_denies(&bob, TRACE_ITSELF, true, &other));
        g_assert_nonnull(trace_rule_denies(&bob, TRACE_PROVEN, true, &other));
}

static void test_others_with_a_proof(void) {
        if (trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE)) {
                g_test_skip("fs.suid_dumpable is 1");
                return;
        }
        g_assert_nonnull(strstr(trace_rule_denies(&bob, TRACE_UNPROVEN, true, &bobs), "procfd"));
        g_assert_nonnull(strstr(trace_rule_denies(&bob, TRACE_DISPROVED, true, &bobs), "procfd"));
        g_assert_nonnull(strstr(trace_rule_denies(&bob, TRACE_PROVEN, false, &bobs), "namespace"));
}

static void test_the_caller_itself(void) {
        Peer me = { .pid = getpid(), .pidfd = -1 };

        g_assert_cmpint(trace_rule_claim(&me, getpid()), ==, TRACE_UNPROVEN);
        g_assert_cmpint(process_open(getpid(), &me.pidfd, NULL), ==, 0);
        g_assert_cmpint(trace_rule_claim(&me, getpid()), ==, TRACE_ITSELF);
        g_assert_cmpint(trace_rule_claim(&me, getppid()), ==, TRACE_UNPROVEN);
        g_assert_cmpint(trace_rule_claim_proof(&me, getpid(), false), ==, TRACE_ITSELF);
        g_assert_cmpint(trace_rule_claim_proof(&me, getppid(), true), ==, TRACE_PROVEN);
        g_assert_cmpint(trace_rule_claim_proof(&me, getppid(), false), ==, TRACE_DISPROVED);
        close_fd(me.pidfd);
}

/* Its number may be anybody's. */
static void test_the_caller_that_has_ended(void) {
        pid_t child = child_start(NULL, NULL);
        Peer gone = { .pid = child, .pidfd = -1 };

        g_assert_cmpint(process_open(child, &gone.pidfd, NULL), ==, 0);
        child_end(child);
        g_assert_cmpint(trace_rule_claim(&gone, child), ==, TRACE_UNPROVEN);
        close_fd(gone.pidfd);
}

static void test_numbers_of_another_namespace(void) {
        const Peer near = { .numbers_like_us = true }, far = {};
        Refusal why;

        g_assert_cmpint(trace_rule_check_number(&near, 7, &why), ==, 0);
        g_assert_cmpint(trace_rule_check_number(&far, 7, &why), ==, REFUSAL_INVALID_ARGS);
        g_assert_nonnull(strstr(why.text, "pidfd"));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/trace-rule/void-where-setuid-programs-keep-their-events",
                        test_void_where_setuid_programs_keep_their_events);
        g_test_add_func("/trace-rule/void-where-nobody-knows", test_void_where_nobody_knows);
        g_test_add_func("/trace-rule/root-may-count-everybody", test_root_may_count_everybody);
        g_test_add_func("/trace-rule/others-their-own", test_others_their_own);
        g_test_add_func("/machine/trace-rule/others-with-a-proof", test_others_with_a_proof);
        g_test_add_func("/trace-rule/the-caller-itself", test_the_caller_itself);
        g_test_add_func("/trace-rule/the-caller-that-has-ended", test_the_caller_that_has_ended);
        g_test_add_func("/trace-rule/numbers-of-another-namespace",
                        test_numbers_of_another_namespace);
        return g_test_run();
}
