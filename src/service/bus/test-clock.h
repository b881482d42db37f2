/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: a monotonic clock that the test puts forward, so that no test waits for a time-out of
 * 25 s. It is included by one file of a program: it defines clock_gettime() and timerfd_settime()
 * for the whole program, with its libraries.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/util.h"

#define TEST_CLOCK_FDS 1024

static int64_t test_clock_ahead_nsec; /* ahead of the kernel's clocks; GLib's threads read it too */
static struct itimerspec test_clock_set[TEST_CLOCK_FDS]; /* of each timer, as it was asked for */

static inline bool test_clock_is_ours(clockid_t clock) {
        return clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

static inline void test_clock_add(struct timespec *t, int64_t nsec) {
        int64_t sum = (int64_t) t->tv_sec * 1000000000 + t->tv_nsec + nsec;

        if (sum < 1)
                sum = 1; /* 0 would disarm a timer */
        t->tv_sec = (time_t) (sum / 1000000000);
        t->tv_nsec = (long) (sum % 1000000000);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ret) {
        int r = (int) syscall(SYS_clock_gettime, clock, ret);

        if (r == 0 && test_clock_is_ours(clock))
                test_clock_add(ret, __atomic_load_n(&test_clock_ahead_nsec, __ATOMIC_SEQ_CST));
        return r;
}

/* The clock may be put forward by a signal handler in the middle of it. */
static inline int test_clock_arm(int fd, const struct itimerspec *value,
                                 struct itimerspec *ret_old) {
        int64_t ahead;
        int r;

        do {
                struct itimerspec ours = *value;

                ahead = __atomic_load_n(&test_clock_ahead_nsec, __ATOMIC_SEQ_CST);
                test_clock_add(&ours.it_value, -ahead);
                r = (int) syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &ours, ret_old);
        } while (ahead != __atomic_load_n(&test_clock_ahead_nsec, __ATOMIC_SEQ_CST));
        return r;
}

/* The event loop's timers, which are absolute. */
__attribute__((visibility("default"))) int timerfd_settime(int fd, int flags,
                                                           const struct itimerspec *value,
                                                           struct itimerspec *ret_old) {
        bool is_ours =
                (flags & TFD_TIMER_ABSTIME) && (value->it_value.tv_sec || value->it_value.tv_nsec);

        if (fd >= 0 && fd < TEST_CLOCK_FDS)
                test_clock_set[fd] = is_ours ? *value : (struct itimerspec){};
        return is_ours ? test_clock_arm(fd, value, ret_old)
                       : (int) syscall(SYS_timerfd_settime, fd, flags, value, ret_old);
}

/* Timers are armed anew, so those that are due wake up their loop. A number that is another file by
 * now is no timer, or one that was set itself. */
static inline void test_clock_forward(uint64_t usec) {
        __atomic_add_fetch(&test_clock_ahead_nsec, (int64_t) (usec * 1000), __ATOMIC_SEQ_CST);
        for (int fd = 0; fd < TEST_CLOCK_FDS; fd++)
                if (test_clock_set[fd].it_value.tv_sec || test_clock_set[fd].it_value.tv_nsec)
                        (void) test_clock_arm(fd, &test_clock_set[fd], NULL);
}
