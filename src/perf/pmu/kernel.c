/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "perf/pmu/perf-open.h"

#define CPUS_MAX     65536u /* more than any kernel is built for */
#define STACK_BYTES  ((size_t) 128 * 1024)
#define ASLEEP_USEC  20u
#define ASLEEP_TRIES 100u

static _Thread_local unsigned opened_from = KERNEL_NOWHERE;

int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader) {
        PerfOpen o;

        perf_open_init(&o, attr);
        o.pid = pid;
        o.cpu = cpu;
        o.group = leader;
        perf_open_all(&o, 1);
        opened_from = o.from;
        return o.fd;
}

static int open_together(const struct perf_event_attr *attrs, unsigned n, bool counting,
                         unsigned cpu, int *ret_fds) {
        PerfOpen opens[KERNEL_OPEN_MAX];
        int r = 0;

        for (unsigned i = 0; i < n; i++) {
                bool last = counting && i == n - 1;

                perf_open_init(&opens[i], &attrs[i]);
                opens[i].cpu = (int) cpu;
                opens[i].leader = i == 0 || last ? PERF_OPEN_NO_LEADER : 0;
                opens[i].enables_first = i > 0 && last;
        }
        perf_open_all(opens, n);
        for (unsigned i = 0; i < n; i++) {
                r = r == 0 ? MIN(opens[i].fd, 0) : r;
                ret_fds[i] = opens[i].fd;
        }
        for (unsigned i = n; r < 0 && i-- > 0;)
                kernel_close(ret_fds[i]);
        opened_from = n > 0 ? opens[0].from : kernel_cpu();
        return r;
}

int kernel_open_group(const struct perf_event_attr *attrs, unsigned n, unsigned cpu, int *ret_fds) {
        return open_together(attrs, n, false, cpu, ret_fds);
}

int kernel_open_counting(const struct perf_event_attr *attrs, unsigned n, unsigned cpu,
                         int *ret_fds) {
        return open_together(attrs, n, true, cpu, ret_fds);
}

unsigned kernel_opened_from(void) {
        return opened_from;
}

void kernel_close(int fd) {
        close_fd(fd);
}

void kernel_enable(int fd) {
        (void) ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

void kernel_disable(int fd) {
        (void) ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
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

#if defined(__x86_64__) || defined(__i386__)

/* DR0 to DR3 (Intel SDM, AMD APM). */
unsigned kernel_breakpoint_slots(void) {
        return 4;
}

#elif defined(__aarch64__)

#define NT_ARM_HW_WATCH 0x403

/* Lets its parent look at it. */
static _Noreturn void tracee(void) {
        (void) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void) raise(SIGSTOP);
        _exit(EXIT_SUCCESS);
}

/* struct user_hwdebug_state of asm/ptrace.h begins with the number in its lowest byte. */
static unsigned tracee_slots(pid_t pid) {
        uint32_t info[64] = {};
        struct iovec regs = { info, sizeof(info) };

        return ptrace(PTRACE_GETREGSET, pid, NT_ARM_HW_WATCH, &regs) == 0 ? info[0] & 0xff : 0;
}

/* ptrace(2) tells what the CPUs have, of a process that has nothing open. */
unsigned kernel_breakpoint_slots(void) {
        static unsigned slots;
        pid_t pid = slots == 0 ? fork() : -1;
        int status;

        if (pid == 0)
                tracee();
        if (pid > 0 && TEMP_FAILURE_RETRY(waitpid(pid, &status, WUNTRACED)) == pid &&
            WIFSTOPPED(status)) {
                slots = tracee_slots(pid);
                (void) kill(pid, SIGKILL);
                (void) TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
        }
        return slots;
}

#else

unsigned kernel_breakpoint_slots(void) {
        return 0;
}

#endif

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

unsigned kernel_cpu(void) {
        return (unsigned) sched_getcpu();
}

/* ---- from another CPU ---- */

/* This thread does not move there itself: where a task of real time has the CPU it would never come
 * back. One that is started for it can be called back. */
typedef struct Errand {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        int (*f)(void *userdata);
        void *userdata;
        int result;
        clockid_t waiting; /* the CPU time of the thread that waits */
        bool done, called_back;
} Errand;

/* Who waits is off its CPU, and others are on it, when it uses no time any more. */
static void wait_for_sleep(clockid_t thread) {
        struct timespec before = {}, now = { .tv_sec = -1 };

        for (unsigned i = 0;
             i < ASLEEP_TRIES && (now.tv_sec != before.tv_sec || now.tv_nsec != before.tv_nsec);
             i++) {
                before = now;
                kernel_rest(ASLEEP_USEC);
                (void) clock_gettime(thread, &now);
        }
}

static void *errand_run(void *userdata) {
        Errand *e = userdata;
        bool called_back;

        wait_for_sleep(e->waiting);
        (void) pthread_mutex_lock(&e->mutex);
        called_back = e->called_back;
        (void) pthread_mutex_unlock(&e->mutex);
        if (!called_back)
                e->result = e->f(e->userdata);
        (void) pthread_mutex_lock(&e->mutex);
        e->done = true;
        (void) pthread_cond_signal(&e->changed);
        (void) pthread_mutex_unlock(&e->mutex);
        return NULL;
}

/* What this process may run on without one CPU; NULL when that is nothing. The kernel refuses a
 * mask that is shorter than its own (sched_getaffinity(2), EINVAL). */
static cpu_set_t *cpus_without(unsigned cpu, size_t *ret_size) {
        for (size_t n = 1024; n <= CPUS_MAX; n *= 2) {
                cpu_set_t *cpus = CPU_ALLOC(n);
                size_t size = CPU_ALLOC_SIZE(n);

                if (cpus && sched_getaffinity(0, size, cpus) == 0) {
                        CPU_CLR_S(cpu, size, cpus);
                        if (CPU_COUNT_S(size, cpus) > 0) {
                                *ret_size = size;
                                return cpus;
                        }
                        n = CPUS_MAX;
                }
                CPU_FREE(cpus);
        }
        return NULL;
}

int kernel_allowed(CpuSet *ret) {
        size_t size;
        cpu_set_t *cpus = cpus_without(KERNEL_NOWHERE, &size);
        int r = cpus ? 0 : -ENOMEM;

        *ret = CPUSET_NULL;
        for (unsigned i = 0; r >= 0 && cpus && i < MIN(size * 8, CPUSET_CPUS_MAX); i++)
                if (CPU_ISSET_S(i, size, cpus))
                        r = cpuset_add(ret, i);
        CPU_FREE(cpus);
        if (r < 0)
                cpuset_done(ret);
        return r;
}

/* 0 or an errno. */
static int errand_start(Errand *e, unsigned cpu, pthread_t *ret) {
        size_t size;
        cpu_set_t *cpus = cpus_without(cpu, &size);
        pthread_attr_t attr;
        int r;

        if (!cpus)
                return ENODEV;
        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        r = pthread_attr_setaffinity_np(&attr, size, cpus);
        if (r == 0)
                r = pthread_create(ret, &attr, errand_run, e);
        (void) pthread_attr_destroy(&attr);
        CPU_FREE(cpus);
        return r;
}

static bool errand_wait(Errand *e) {
        uint64_t until = kernel_now_usec() + KERNEL_ELSEWHERE_USEC;
        const struct timespec t = { .tv_sec = (time_t) (until / USEC_PER_SEC),
                                    .tv_nsec = (long) (until % USEC_PER_SEC * NSEC_PER_USEC) };
        int r = 0;

        (void) pthread_mutex_lock(&e->mutex);
        while (!e->done && r == 0)
                r = pthread_cond_timedwait(&e->changed, &e->mutex, &t);
        e->called_back = !e->done;
        (void) pthread_mutex_unlock(&e->mutex);
        return !e->called_back;
}

/* A thread that waits for a CPU that it does not get is moved to one that this one gets. */
static void errand_call_back(pthread_t thread) {
        size_t size;
        cpu_set_t *cpus = cpus_without(KERNEL_NOWHERE, &size);

        if (!cpus)
                return;
        CPU_ZERO_S(size, cpus);
        CPU_SET_S(kernel_cpu(), size, cpus);
        (void) pthread_setaffinity_np(thread, size, cpus);
        CPU_FREE(cpus);
}

static void errand_init(Errand *e, int (*f)(void *userdata), void *userdata) {
        pthread_condattr_t clock;

        *e = (Errand){ .f = f, .userdata = userdata, .waiting = CLOCK_THREAD_CPUTIME_ID };
        (void) pthread_getcpuclockid(pthread_self(), &e->waiting);
        (void) pthread_mutex_init(&e->mutex, NULL);
        (void) pthread_condattr_init(&clock);
        (void) pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&e->changed, &clock);
        (void) pthread_condattr_destroy(&clock);
}

int kernel_elsewhere(unsigned cpu, int (*f)(void *userdata), void *userdata) {
        pthread_t thread;
        bool in_time;
        Errand e;

        errand_init(&e, f, userdata);
        if (errand_start(&e, cpu, &thread) != 0)
                in_time = false;
        else {
                in_time = errand_wait(&e);
                if (!in_time)
                        errand_call_back(thread);
                (void) pthread_join(thread, NULL);
        }
        (void) pthread_cond_destroy(&e.changed);
        (void) pthread_mutex_destroy(&e.mutex);
        return in_time ? e.result : -EAGAIN;
}
