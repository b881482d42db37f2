/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test-stage.h"

#include <glib/gstdio.h>

static void acknowledged(void *userdata) {
        ((Stage *) userdata)->n_acknowledged++;
}

static uid_t holder(void *userdata) {
        return ((Stage *) userdata)->holder;
}

static void say(void *userdata, int priority, const char *text) {
        g_ptr_array_add(((Stage *) userdata)->said, g_strdup(text));
}

void stage_up(Stage *s, gconstpointer unused) {
        ledger_init(&s->ledger);
        yielders_init(&s->yielders, &s->ledger, acknowledged, s);
        g_assert_cmpint(sd_event_new(&s->event), >=, 0);
        s->host = (BridgeHost){ &s->yielders, s->event, holder, say, s };
        s->holder = HOLDER;
        s->said = g_ptr_array_new_with_free_func(g_free);
        s->directory = g_dir_make_tmp("perfalloc-bridge-XXXXXX", NULL);
        s->path = g_build_filename(s->directory, "lock", NULL);
        s->saved = g_build_filename(s->directory, "saved", NULL);
}

void stage_down(Stage *s, gconstpointer unused) {
        bridge_free(s->bridge);
        yielders_done(&s->yielders);
        ledger_remove(&s->ledger, &s->hold);
        ledger_done(&s->ledger);
        sd_event_unref(s->event);
        g_ptr_array_unref(s->said);
        (void) g_rmdir(s->path);
        (void) g_unlink(s->path);
        (void) g_unlink(s->saved);
        g_assert_cmpint(g_rmdir(s->directory), ==, 0);
        g_free(s->directory);
        g_free(s->path);
        g_free(s->saved);
}

void stage_file(const Stage *s) {
        g_assert_true(g_file_set_contents(s->path, "", 0, NULL));
}

void stage_hold(Stage *s) {
        g_assert_cmpint(ledger_admit(&s->ledger, &s->hold, false), ==, 0);
        g_assert_cmpint(yielders_apply(&s->yielders, 1, 0, NULL), ==, 0);
}

void stage_end(Stage *s) {
        ledger_remove(&s->ledger, &s->hold);
        g_assert_cmpint(yielders_apply(&s->yielders, 0, 0, NULL), ==, 0);
}

void stage_run_until_yielded(Stage *s) {
        while (s->bridge->yielder.state != YIELDER_YIELDED)
                g_assert_cmpint(sd_event_run(s->event, 10 * USEC_PER_SEC), >, 0);
}

void kept_clear(Kept *k) {
        pack_done(&k->pack);
        close_fd(k->past.fd);
}

Kept stage_drop(Stage *s) {
        int fd = bridge_fd(s->bridge);
        Kept k = { .past.fd = fd >= 0 ? dup(fd) : -1 };

        bridge_pack(s->bridge, &k.pack);
        g_assert_false(k.pack.failed);
        bridge_drop(s->bridge);
        s->bridge = NULL;
        return k;
}

void stage_restore(Stage *s, Kept *k, void (*make)(Stage *s)) {
        k->past.state = (Unpack){ k->pack.data, k->pack.n };
        s->host.past = &k->past;
        make(s);
        s->host.past = NULL;
}

int stage_run_tests(const char *unit, const StageTest *tests, size_t n) {
        for (size_t i = 0; i < n; i++) {
                g_autofree char *path = g_strdup_printf("/%s/%s", unit, tests[i].name);

                g_test_add(path, Stage, NULL, stage_up, tests[i].test, stage_down);
        }
        return g_test_run();
}
