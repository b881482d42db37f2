/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Everything at once: clients' holds, monitors, samplers, counters and attachments to a tree that
 * forks, a hostile user, kills and restarts of the service, a CPU that goes and comes; and nothing
 * is left of it.
 *
 * $PERFALLOC_TEST_SEC is how long it lasts (8 s). In a shared rig it uses no breakpoints and
 * switches no CPU while it waits for the machine's lock, which it has for a round at a time.
 */

#include "cpu-switch.h"
#include "hostile.h"
#include "killer.h"
#include "world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SEC          8
#define ROUND_SEC    4
#define ACTS         40 /* between two disturbances */
#define ACTS_LESS    5  /* while a CPU is off: all that runs here has one less */
#define DISTURBANCES 8  /* before everything is looked at */
#define WARM_UP      200
#define MEMORY_SLACK (256u << 10)

/* What the service has when nobody has anything of it, just restarted. */
typedef struct Rest {
        unsigned descriptors, processes, stored;
        uint64_t memory;
} Rest;

static GThread *waiter;
static int machine = -1;
static gint machine_is_ours;
static unsigned n_kills, n_restarts, n_cpu_switches, n_rounds, n_soft_rounds;

/* ---- disturbances ---- */

static void acts(World *w, unsigned n) {
        while (n-- > 0)
                world_act(w);
}

static void disturb_not(World *w) {
        acts(w, ACTS);
}

static void disturb_kill(World *w) {
        Killer killer;

        killer_start(&killer);
        while (!killer_is_done(&killer))
                world_act(w);
        n_kills += killer_end(&killer);
}

static void disturb_restart(World *w) {
        acts(w, ACTS);
        rig("service-restart", NULL);
        n_restarts++;
}

static void disturb_cpu(World *w) {
        if (w->soft || !cpu_switch(false))
                return;
        acts(w, ACTS_LESS);
        while (!cpu_switch(true))
                g_assert_cmpint(errno, ==, EBUSY);
        n_cpu_switches++;
}

/* Half of the rounds have one process of the service, which nobody kills. */
static void disturb(World *w, bool deadly) {
        static void (*const ways[])(World * w) = { disturb_not, disturb_cpu, disturb_kill,
                                                   disturb_restart };

        ways[g_test_rand_int_range(0, deadly ? 4 : 2)](w);
}

/* ---- a tree that forks ---- */

static void forker(void) {
        for (;;) {
                pid_t child = fork();

                if (child == 0)
                        _exit(0);
                (void) waitpid(child, NULL, 0);
                g_usleep(1000); /* else there is no time for anybody else */
        }
}

static int play_tree(int fd, const void *data) {
        for (int i = 0; i < 2; i++)
                if (fork() == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        forker();
                }
        act_say(fd, 't');
        (void) act_hear(fd);
        return 0;
}

/* ---- rounds ---- */

static void stretch(World *w, bool deadly) {
        g_autoptr(Actor) hostile = actor_new("bob", play_hostile, &w->soft);

        g_assert_cmpint(actor_hear(hostile), ==, 'h');
        for (unsigned i = 0; i < DISTURBANCES; i++)
                disturb(w, deadly);
}

static void round_of(World *w, bool deadly) {
        g_autoptr(Actor) tree = actor_new("alice", play_tree, NULL);
        gint64 end = g_get_monotonic_time() + ROUND_SEC * G_USEC_PER_SEC;

        g_assert_cmpint(actor_hear(tree), ==, 't');
        w->tree = tree->pid;
        do {
                stretch(w, deadly);
                world_check(w);
        } while (g_get_monotonic_time() < end);
        world_end(w);
        w->tree = 0;
}

static void *waiter_run(void *userdata) {
        machine = machine_lock();
        g_atomic_int_set(&machine_is_ours, 1);
        return NULL;
}

static void machine_want(void) {
        if (!waiter)
                waiter = g_thread_new("waiter", waiter_run, NULL);
}

static void machine_wait(void) {
        machine_want();
        g_thread_join(waiter);
        waiter = NULL;
}

static void machine_unlock(void) {
        if (waiter)
                machine_wait();
        machine = close_fd(machine);
        machine_is_ours = 0;
}

static void any_round(World *w) {
        machine_want();
        if (!rig_is_shared())
                machine_wait();
        w->soft = !g_atomic_int_get(&machine_is_ours);
        n_soft_rounds += w->soft;
        round_of(w, n_rounds++ % 2 == 0);
        if (!w->soft)
                machine_unlock();
}

/* ---- what is left ---- */

static Rest rest(void) {
        Rest r;

        rig("service-restart", NULL);
        r.descriptors = service_descriptors();
        r.processes = service_processes();
        r.stored = (unsigned) service_number("stored");
        r.memory = service_memory();
        return r;
}

static void assert_nothing_is_left(const Rest *before) {
        Rest after;

        await(service_processes() == before->processes);
        after = rest();
        g_test_message("descriptors %u, stored %u, private memory %" G_GUINT64_FORMAT " B; before: "
                       "%u, %u, %" G_GUINT64_FORMAT " B",
                       after.descriptors, after.stored, after.memory, before->descriptors,
                       before->stored, before->memory);
        g_assert_cmpuint(after.descriptors, ==, before->descriptors);
        g_assert_cmpuint(after.processes, ==, before->processes);
        g_assert_cmpuint(after.stored, ==, before->stored);
        g_assert_cmpuint(after.memory, <=, before->memory + MEMORY_SLACK);
}

static void assert_hold_is_granted(void) {
        g_autoptr(Client) alice = client_new("alice");
        _cleanup_close_ int lease = -1;
        g_autofree char *hold = NULL;

        machine_wait();
        hold = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        g_assert_true(hold_wait(alice, hold));
}

static void test_at_once(void) {
        const char *sec = g_getenv("PERFALLOC_TEST_SEC");
        gint64 end = g_get_monotonic_time() + (gint64) (sec ? atoi(sec) : SEC) * G_USEC_PER_SEC;
        World w = world_new();
        Rest before;

        w.soft = w.crowded = true;
        acts(&w, WARM_UP);
        world_end(&w);
        before = rest();
        while (g_get_monotonic_time() < end)
                any_round(&w);
        g_test_message("%u rounds, %u without breakpoints: %u kills, %u restarts, %u times a CPU "
                       "less; %u calls were answered, %u refused, %u cut off",
                       n_rounds, n_soft_rounds, n_kills, n_restarts, n_cpu_switches, w.n_done,
                       w.n_refused, w.n_lost);
        assert_nothing_is_left(&before);
        assert_hold_is_granted();
        world_done(&w);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        cpu_back_at_end();
        g_test_add_func("/everything/at-once-leaves-nothing", test_at_once);
        return g_test_run();
}
