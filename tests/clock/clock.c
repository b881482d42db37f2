/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Linked into perfallocd-clock and perfallocctl-clock, whose monotonic time tests put forward: a
 * signal brings the milliseconds. service_clock_forward() of the bus tests sends it, and
 * clock_forward of their scripts.
 */

#include "clock.h"

#include "service/bus/test-clock.h"

#include <stdlib.h>

static void on_forward(int signal, siginfo_t *info, void *context) {
        test_clock_forward((uint64_t) info->si_value.sival_int * USEC_PER_MSEC);
}

__attribute__((constructor)) static void clock_listen(void) {
        const struct sigaction forward = { .sa_sigaction = on_forward,
                                           .sa_flags = SA_SIGINFO | SA_RESTART };

        if (sigaction(CLOCK_SIGNAL, &forward, NULL) < 0)
                abort();
}
