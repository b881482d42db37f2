/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>

#define PLACE_CPUS_MAX 65536u /* more than any kernel is built for */

int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader) {
        int fd = (int) syscall(SYS_perf_event_open, attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

void kernel_close(int fd) {
        close_fd(fd);
}

int kernel_enable(int fd) {
        return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

bool kernel_times(int fd, KernelTimes *ret) {
        return read(fd, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Every kernel has this event, on every CPU that is online. */
bool kernel_is_offline(unsigned cpu) {
        const struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .disabled = 1,
        };
        int fd = kernel_open(&attr, -1, (int) cpu, -1);

        kernel_close(fd);
        return fd == -ENODEV;
}

uint64_t kernel_now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

void kernel_rest(uint64_t usec) {
        struct timespec t = { .tv_sec = (time_t) (usec / USEC_PER_SEC),
                              .tv_nsec = (long) (usec % USEC_PER_SEC * NSEC_PER_USEC) };

        (void) nanosleep(&t, NULL);
}

/* The kernel refuses a mask that is shorter than its own (sched_getaffinity(2), EINVAL). */
static bool place_keep(KernelPlace *p) {
        for (size_t n = 1024; p->size == 0 && n <= PLACE_CPUS_MAX; n *= 2) {
                cpu_set_t *cpus = CPU_ALLOC(n);

                if (cpus && sched_getaffinity(0, CPU_ALLOC_SIZE(n), cpus) == 0)
                        *p = (KernelPlace){ .size = CPU_ALLOC_SIZE(n), .before = cpus };
                else
                        CPU_FREE(cpus);
        }
        return p->size > 0;
}

unsigned kernel_place_stay(KernelPlace *p) {
        int cpu = sched_getcpu();
        cpu_set_t *only;

        if (cpu < 0 || !place_keep(p) || (size_t) cpu >= p->size * 8 ||
            !(only = calloc(1, p->size)))
                return (unsigned) MAX(cpu, 0);
        CPU_SET_S((size_t) cpu, p->size, only);
        (void) sched_setaffinity(0, p->size, only);
        free(only);
        return (unsigned) sched_getcpu();
}

bool kernel_place_leave(KernelPlace *p, unsigned cpu) {
        cpu_set_t *others;
        bool left;

        if (!place_keep(p) || cpu >= p->size * 8 || !(others = malloc(p->size)))
                return (unsigned) sched_getcpu() != cpu;
        memcpy(others, p->before, p->size);
        CPU_CLR_S(cpu, p->size, others);
        left = sched_setaffinity(0, p->size, others) == 0;
        free(others);
        return left;
}

/* What the kernel told is what was online of what it might be: so where that was all, all is given
 * back. */
void kernel_place_back(KernelPlace *p) {
        if (p->size == 0)
                return;
        if (CPU_COUNT_S(p->size, p->before) == get_nprocs())
                memset(p->before, 0xff, p->size);
        (void) sched_setaffinity(0, p->size, p->before);
        CPU_FREE(p->before);
        *p = KERNEL_PLACE_NULL;
}
