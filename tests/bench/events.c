/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "bench.h"

static int compare_numbers(const void *a, const void *b) {
        return *(const int *) a - *(const int *) b;
}

static size_t numbers_find(pid_t pid, int numbers[], size_t max) {
        char directory[64], link[512], target[64];
        const struct dirent *entry;
        size_t n = 0;
        DIR *dir;

        (void) snprintf(directory, sizeof(directory), "/proc/%d/fd", (int) pid);
        dir = opendir(directory);
        check_errno(dir ? 0 : -1, directory);
        while (n < max && (entry = readdir(dir))) {
                ssize_t size;

                (void) snprintf(link, sizeof(link), "%s/%s", directory, entry->d_name);
                size = readlink(link, target, sizeof(target) - 1);
                target[MAX(size, 0)] = '\0';
                if (strcmp(target, "anon_inode:[perf_event]") == 0)
                        numbers[n++] = atoi(entry->d_name);
        }
        (void) closedir(dir);
        qsort(numbers, n, sizeof(numbers[0]), compare_numbers);
        return n;
}

size_t events_take(pid_t pid, int fds[], size_t max) {
        size_t n = numbers_find(pid, fds, max);
        int pidfd = check_errno((int) syscall(SYS_pidfd_open, pid, 0), "pidfd_open");

        for (size_t i = 0; i < n; i++)
                fds[i] = check_errno((int) syscall(SYS_pidfd_getfd, pidfd, fds[i], 0),
                                     "pidfd_getfd");
        close_fd(pidfd);
        return n;
}

void events_close(int fds[], size_t n) {
        for (size_t i = 0; i < n; i++)
                close_fd(fds[i]);
}

int event_open(uint32_t type, uint64_t config, uint64_t address, pid_t pid, int cpu) {
        struct perf_event_attr attr = {
                .type = type,
                .size = sizeof(attr),
                .config = config,
                .exclude_kernel = geteuid() != 0,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
        int fd;

        if (type == PERF_TYPE_BREAKPOINT) {
                attr.bp_type = HW_BREAKPOINT_W;
                attr.bp_addr = address;
                attr.bp_len = HW_BREAKPOINT_LEN_8;
        }
        fd = (int) syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        return check_errno(fd, "perf_event_open");
}

/* ---- when they went off and on ---- */

void watch_init(Watch *w, const int fds[], size_t n) {
        *w = (Watch){ .n = n,
                      .fds = fds,
                      .clock = calloc(MAX(n, 1u), sizeof(uint64_t)),
                      .enabled = calloc(MAX(n, 1u), sizeof(uint64_t)) };
        check(w->clock && w->enabled ? 0 : -ENOMEM, "watch");
}

void watch_done(Watch *w) {
        free(w->clock);
        free(w->enabled);
}

/* Events without times are clocks themselves: PCP's events are cpu-clock. */
static uint64_t event_enabled(int fd, uint64_t *ret_clock) {
        uint64_t data[3], before = clock_nsec(CLOCK_MONOTONIC_RAW);
        ssize_t n = read(fd, data, sizeof(data));

        check_errno((int) n, "read");
        *ret_clock = before + (clock_nsec(CLOCK_MONOTONIC_RAW) - before) / 2;
        return n >= (ssize_t) (2 * sizeof(uint64_t)) ? data[1] : data[0];
}

void watch_look(Watch *w) {
        for (size_t i = 0; i < w->n; i++)
                w->enabled[i] = event_enabled(w->fds[i], &w->clock[i]);
}

bool watch_is_off(Watch *w) {
        bool off = true;

        for (size_t i = 0; i < w->n; i++) {
                uint64_t clock, first = event_enabled(w->fds[i], &clock);

                if (event_enabled(w->fds[i], &clock) != first)
                        off = false;
        }
        return off;
}

uint64_t watch_last_off(Watch *w) {
        uint64_t last = 0, clock, enabled;

        for (size_t i = 0; i < w->n; i++) {
                enabled = event_enabled(w->fds[i], &clock);
                last = MAX(last, w->clock[i] + (enabled - w->enabled[i]));
                w->clock[i] = clock;
                w->enabled[i] = enabled;
        }
        return last;
}

uint64_t watch_last_on(Watch *w) {
        uint64_t last = 0, clock, enabled;

        for (size_t i = 0; i < w->n; i++) {
                enabled = event_enabled(w->fds[i], &clock);
                if (enabled == w->enabled[i])
                        return 0;
                last = MAX(last, clock - (enabled - w->enabled[i]));
        }
        return last;
}
