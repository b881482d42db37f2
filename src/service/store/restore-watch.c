/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "restore-watch.h"

#include <fcntl.h>
#include <signal.h>

#define FILE_NAME "restore-crashes"

static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

/* The handler has no other way to them. */
static volatile sig_atomic_t watch_fd = -1;
static volatile unsigned char n_crashed;
static struct sigaction before[ELEMENTSOF(crashes)];

static void watch_write(unsigned char n) {
        (void) !pwrite(watch_fd, &n, 1, 0);
}

void restore_watch_failed(void) {
        if (watch_fd >= 0)
                watch_write((unsigned char) MIN(n_crashed + 1u, 255u));
}

/* A fault happens again after the handler; a signal that was sent does not. */
static void on_crash(int signo, siginfo_t *info, void *context) {
        restore_watch_failed();
        for (size_t i = 0; i < ELEMENTSOF(crashes); i++)
                if (crashes[i] == signo)
                        (void) sigaction(signo, &before[i], NULL);
        if (info->si_code <= 0)
                (void) raise(signo);
}

static int watch_open(const char *directory) {
        _cleanup_close_ int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

        return dir < 0 ? -1
                       : openat(dir, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

unsigned restore_watch_begin(const char *directory) {
        struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
        unsigned char n = 0;

        watch_fd = directory ? watch_open(directory) : -1;
        if (watch_fd < 0)
                return 0;
        n_crashed = pread(watch_fd, &n, 1, 0) == 1 ? n : 0;
        for (size_t i = 0; i < ELEMENTSOF(crashes); i++)
                (void) sigaction(crashes[i], &action, &before[i]);
        return n_crashed;
}

void restore_watch_end(void) {
        if (watch_fd < 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(crashes); i++)
                (void) sigaction(crashes[i], &before[i], NULL);
        if (n_crashed > 0)
                watch_write(0);
        (void) close_fd(watch_fd);
        watch_fd = -1;
}
