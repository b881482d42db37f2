/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The service is killed at random times, under load, and no client loses anything.
 *
 * PERFALLOC_TEST_KILLS is the number of kills (150).
 */

#include "killer.h"
#include "world.h"

#define KILLS 150

static unsigned n_kills(void) {
        const char *n = g_getenv("PERFALLOC_TEST_KILLS");

        return n ? (unsigned) g_ascii_strtoull(n, NULL, 10) : KILLS;
}

static unsigned world_disturb(World *w) {
        Killer killer;

        killer_start(&killer);
        while (!killer_is_done(&killer))
                world_act(w);
        return killer_end(&killer);
}

static void test_kill(void) {
        World w = world_new();
        unsigned n = 0, before, stored;

        /* memory that is kept after its first use is not counted */
        for (unsigned i = 0; i < 200; i++)
                world_act(&w);
        world_end(&w);
        before = service_descriptors();
        stored = (unsigned) service_number("stored");
        while (n < n_kills()) {
                n += world_disturb(&w);
                world_check(&w);
        }
        world_end(&w);
        g_test_message("%u kills: %u calls were answered, %u refused, %u cut off", n, w.n_done,
                       w.n_refused, w.n_lost);
        await(service_descriptors() <= before + 4);
        await((unsigned) service_number("stored") <= stored + 2);
        world_done(&w);
}

/* A breakpoint counts exactly: what happens while the service is dead is counted once, and what
 * happens during a hold is not. */
static void test_exact(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *monitor = monitor_open(root, 0, 0);
        uint64_t n_written = 0;

        for (unsigned n = 0; n < n_kills() / 5;) {
                g_autofree char *hold =
                        chance(50) ? hold_take_unattended(root, 0, "a{sv}", 1, BREAKPOINTS) : NULL;
                Killer killer;

                if (hold)
                        (void) hold_wait(root, hold);
                killer_start(&killer);
                while (!killer_is_done(&killer)) {
                        watched_write(0, 10);
                        n_written += hold ? 0 : 10;
                        g_usleep(100);
                }
                n += killer_end(&killer);
                g_assert_true(counter_is(root, monitor, hold ? "yielded" : "counting"));
                if (hold)
                        hold_release(root, hold);
                await(counter_is(root, monitor, "counting"));
                watched_write(0, 7);
                n_written += 7;
                g_assert_cmpuint(counter_value(root, monitor), ==, hits(n_written));
        }
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/kill/under-load", test_kill);
        g_test_add_func("/kill/exact", test_exact);
        return g_test_run();
}
