/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/auth/trace-rule.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

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

        g_assert_null(trace_rule_denies(&root, &nobodys));
        g_assert_nonnull(trace_rule_denies(&powerless, &nobodys));
}

static void test_others_their_own(void) {
        ProcessFacts other = bobs;

        if (trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE)) {
                g_assert_nonnull(strstr(trace_rule_denies(&bob, &bobs), "suid_dumpable"));
                return;
        }
        g_assert_null(trace_rule_denies(&bob, &bobs));
        other.uid[2] = 0;
        g_assert_nonnull(trace_rule_denies(&bob, &other));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/trace-rule/void-where-setuid-programs-keep-their-events",
                        test_void_where_setuid_programs_keep_their_events);
        g_test_add_func("/trace-rule/void-where-nobody-knows", test_void_where_nobody_knows);
        g_test_add_func("/trace-rule/root-may-count-everybody", test_root_may_count_everybody);
        g_test_add_func("/trace-rule/others-their-own", test_others_their_own);
        return g_test_run();
}
