/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bridges, with real locks, files and event loop. Needs root, as owners are changed. */

#include "core/util.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "machine.h"
#include "yield/likwid-lock.h"
#include "yield/lock-file.h"
#include "yield/pcp-lock.h"

#define HOLDER 4711u
#define GRACE  (20 * USEC_PER_MSEC)

typedef struct Stage {
        Ledger ledger;
        Yielders yielders;
        sd_event *event;
        BridgeHost host;
        uid_t holder;
        unsigned n_acknowledged;
        GPtrArray *said;
        LedgerHold hold;
        char *directory, *path, *saved;
        Bridge *bridge;
} Stage;

static void acknowledged(void *userdata) {
        ((Stage *) userdata)->n_acknowledged++;
}

static uid_t holder(void *userdata) {
        return ((Stage *) userdata)->holder;
}

static void say(void *userdata, int priority, const char *text) {
        g_ptr_array_add(((Stage *) userdata)->said, g_strdup(text));
}

static void stage_up(Stage *s, gconstpointer unused) {
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

static void stage_down(Stage *s, gconstpointer unused) {
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

static void stage_file(const Stage *s) {
        g_assert_true(g_file_set_contents(s->path, "", 0, NULL));
}

static void stage_pcp(Stage *s) {
        g_assert_cmpint(pcp_lock_new(&s->host, s->path, GRACE, &s->bridge), ==, 0);
}

static void stage_likwid(Stage *s) {
        g_assert_cmpint(likwid_lock_new(&s->host, s->path, s->saved, GRACE, &s->bridge), ==, 0);
}

/* A hold with an empty scope: bridges yield to every hold. */
static void stage_hold(Stage *s) {
        g_assert_cmpint(ledger_admit(&s->ledger, &s->hold, false), ==, 0);
        g_assert_cmpint(yielders_apply(&s->yielders, 1, 0, NULL), ==, 0);
}

static void stage_end(Stage *s) {
        ledger_remove(&s->ledger, &s->hold);
        g_assert_cmpint(yielders_apply(&s->yielders, 0, 0, NULL), ==, 0);
}

static void stage_run_until_yielded(Stage *s) {
        while (s->bridge->yielder.state != YIELDER_YIELDED)
                g_assert_cmpint(sd_event_run(s->event, 10 * USEC_PER_SEC), >, 0);
}

static uid_t stage_owner(const Stage *s) {
        struct stat st;

        g_assert_cmpint(stat(s->path, &st), ==, 0);
        return st.st_uid;
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

/* ---- pcp-lock ---- */

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

/* ---- likwid-lock ---- */

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

/* Stores the bridge's state, and drops it without a release. */
typedef struct Kept {
        Pack pack;
        BridgePast past;
} Kept;

static void kept_clear(Kept *k) {
        pack_done(&k->pack);
        close_fd(k->past.fd);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Kept, kept_clear)

static Kept stage_drop(Stage *s) {
        int fd = bridge_fd(s->bridge);
        Kept k = { .past.fd = fd >= 0 ? dup(fd) : -1 };

        bridge_pack(s->bridge, &k.pack);
        g_assert_false(k.pack.failed);
        bridge_drop(s->bridge);
        s->bridge = NULL;
        return k;
}

static void stage_restore(Stage *s, Kept *k, void (*make)(Stage *s)) {
        k->past.state = (Unpack){ k->pack.data, k->pack.n };
        s->host.past = &k->past;
        make(s);
        s->host.past = NULL;
}

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

typedef struct BridgeTest {
        const char *name;
        void (*test)(Stage *s, gconstpointer unused);
} BridgeTest;

static void tests_add(const char *above, const BridgeTest *tests, size_t n) {
        for (size_t i = 0; i < n; i++) {
                g_autofree char *path = g_strconcat(above, tests[i].name, NULL);

                g_test_add(path, Stage, NULL, stage_up, tests[i].test, stage_down);
        }
}

int main(int argc, char **argv) {
        static const BridgeTest tests[] = {
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
                { "nobody-waits-where-there-is-no-likwid",
                  test_nobody_waits_where_there_is_no_likwid },
                { "lock-is-never-free-in-a-restart", test_lock_is_never_free_in_a_restart },
                { "grace-goes-on-after-a-restart", test_grace_goes_on_after_a_restart },
                { "lock-is-let-go-when-the-hold-ended-meanwhile",
                  test_lock_is_let_go_when_the_hold_ended_meanwhile },
                { "lost-lock-is-taken-anew", test_lost_lock_is_taken_anew },
        };
        /* They change owners. */
        static const BridgeTest of_root[] = {
                { "file-is-the-holders-while-held", test_file_is_the_holders_while_held },
                { "file-passes-to-the-next-holder", test_file_passes_to_the_next_holder },
                { "owner-that-another-has-set-stays", test_owner_that_another_has_set_stays },
                { "file-is-given-back-after-a-crash", test_file_is_given_back_after_a_crash },
                { "file-that-a-user-planted-is-left-alone",
                  test_file_that_a_user_planted_is_left_alone },
                { "link-is-left-alone", test_link_is_left_alone },
                { "file-stays-lent-in-a-restart", test_file_stays_lent_in_a_restart },
                { "file-is-given-back-when-the-hold-ended-meanwhile",
                  test_file_is_given_back_when_the_hold_ended_meanwhile },
                { "file-goes-to-whom-it-was-to-go", test_file_goes_to_whom_it_was_to_go },
        };

        g_test_init(&argc, &argv, NULL);
        tests_add("/bridge/", tests, G_N_ELEMENTS(tests));
        tests_add("/machine/bridge/", of_root, G_N_ELEMENTS(of_root));
        return g_test_run();
}
