/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "clock.h"

#include <glib.h>
#include <signal.h>
#include <sys/time.h>

#define INTERRUPTIONS 300
#define AWAY_USEC     2000

static volatile sig_atomic_t n_interruptions;

static void be_away(int signal) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + AWAY_USEC;

        while (now_usec(CLOCK_MONOTONIC) < until)
                ;
        n_interruptions++;
}

/* In place of a scheduler that takes the processor away between two readings. */
static void interrupt_every(suseconds_t usec) {
        const struct itimerval t = { .it_interval.tv_usec = usec, .it_value.tv_usec = usec };

        g_assert_no_errno(setitimer(ITIMER_REAL, &t, NULL));
}

static void test_realtime_of_a_monotonic_time(void) {
        const struct sigaction away = { .sa_handler = be_away };
        uint64_t apart = usec_realtime_of(0);
        unsigned n_wrong = 0;

        g_assert_no_errno(sigaction(SIGALRM, &away, NULL));
        interrupt_every(2 * AWAY_USEC);
        while (n_interruptions < INTERRUPTIONS) {
                int64_t off = (int64_t) (usec_realtime_of(0) - apart);

                n_wrong += ABS(off) >= (int64_t) AWAY_USEC / 2;
        }
        interrupt_every(0);
        g_assert_cmpuint(n_wrong, ==, 0);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/clock/realtime-of-a-monotonic-time", test_realtime_of_a_monotonic_time);
        return g_test_run();
}
