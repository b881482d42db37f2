/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "killer.h"

#include <signal.h>

static void *killer_run(void *data) {
        Killer *k = data;

        for (size_t i = 0; i < k->n; i++) {
                pid_t pid;

                g_usleep(k->delays[i]);
                pid = service_number("pid");
                if (pid > 0)
                        (void) kill(pid, SIGKILL);
                k->last = pid;
        }
        g_atomic_int_set(&k->done, 1);
        return NULL;
}

void killer_start(Killer *k) {
        *k = (Killer){ .n = chance(70) ? 1 : chance(70) ? 2 : 3 };
        for (size_t i = 0; i < k->n; i++)
                k->delays[i] = (guint) g_test_rand_int_range(0, i == 0 ? 12000 : 25000);
        k->thread = g_thread_new("killer", killer_run, k);
}

bool killer_is_done(Killer *k) {
        return g_atomic_int_get(&k->done);
}

static bool is_back(const Killer *k) {
        pid_t pid = service_number("ready");

        return pid > 0 && pid != k->last;
}

unsigned killer_end(Killer *k) {
        g_thread_join(k->thread);
        await(is_back(k));
        return (unsigned) k->n;
}
