/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sim.h"

#include "service/bus/test-clock.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "perf/pmu/perf-open.h"

#define FDS_MAX     65536
#define MEMBERS_MAX 64
#define IDS_MAX     (1 << 20)

/* A descriptor of the service. */
typedef struct Event {
        bool is_event, enabled;
        unsigned cpu;
        int leader; /* -1: it leads */
        uint64_t id, read_format;
        uint64_t since_nsec, enabled_nsec; /* when it was enabled; how long before that */
        unsigned n_members;
        int members[MEMBERS_MAX]; /* of a leader */
} Event;

static Event events[FDS_MAX];
static unsigned n_cpus;
static int64_t cost_nsec;

_Thread_local unsigned sim_cpu = 2; /* errands, which run elsewhere than the main thread */

static unsigned environment(const char *name) {
        const char *value = getenv(name);

        return value ? (unsigned) atoi(value) : 0;
}

static int64_t *told_ahead_nsec;

static void clock_map(void) {
        _cleanup_close_ int fd = open(SIM_CLOCK, O_RDWR | O_CLOEXEC);
        void *p = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (p != MAP_FAILED)
                told_ahead_nsec = p;
}

__attribute__((constructor)) static void sim_begin(void) {
        cost_nsec = (int64_t) environment("PERFALLOC_SIM_USEC") * 1000;
        n_cpus = environment("PERFALLOC_SIM_CPUS") ?: 2;
        sim_cpu = 1;
        clock_map();
}

bool sim_is_alone(void) {
        return environment("PERFALLOC_SIM_ALONE") != 0;
}

/* ---- the clock ---- */

uint64_t sim_now_nsec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static void clock_put_ahead(int64_t nsec) {
        int64_t ahead = __atomic_add_fetch(&test_clock_ahead_nsec, nsec, __ATOMIC_SEQ_CST);

        if (told_ahead_nsec)
                __atomic_store_n(told_ahead_nsec, ahead, __ATOMIC_SEQ_CST);
}

void sim_set_now_nsec(uint64_t now) {
        clock_put_ahead((int64_t) (now - sim_now_nsec()));
        test_clock_forward(0); /* timers are armed anew */
}

/* ---- work of a simulated thread ---- */

static struct {
        bool under_way;
        uint64_t begun, processor;
        int64_t waited; /* for interrupts and messages */
} work;

/* The siblings, of which the opener alone does anything meanwhile. */
static clockid_t siblings[2];
static unsigned n_siblings;

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void) {
        pid_t pid = __real_fork();

        if (pid > 0 && n_siblings < ELEMENTSOF(siblings) &&
            clock_getcpuclockid(pid, &siblings[n_siblings]) == 0)
                n_siblings++;
        return pid;
}

static uint64_t clock_read(clockid_t clock) {
        struct timespec t = {};

        (void) syscall(SYS_clock_gettime, clock, &t);
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

/* Without what it takes to ask for it: the kernel adds up the opener's threads, of which there are
 * hundreds. */
static uint64_t processor_time(void) {
        static uint64_t asking;
        uint64_t sum = 0, begun = clock_read(CLOCK_THREAD_CPUTIME_ID), now;

        for (unsigned i = 0; i < n_siblings; i++)
                sum += clock_read(siblings[i]);
        now = clock_read(CLOCK_THREAD_CPUTIME_ID);
        asking += now - begun;
        return sum + now - asking;
}

static uint64_t work_now(void) {
        return work.begun + (processor_time() - work.processor) + (uint64_t) work.waited;
}

void sim_work_begin(uint64_t now) {
        work.under_way = true;
        work.begun = now;
        work.processor = processor_time();
        work.waited = 0;
}

uint64_t sim_work_end(void) {
        work.under_way = false;
        return work_now();
}

static void wait_nsec(int64_t nsec) {
        if (work.under_way)
                work.waited += nsec;
        else
                clock_put_ahead(nsec);
}

uint64_t __real_kernel_now_usec(void);
uint64_t __wrap_kernel_now_usec(void);
uint64_t __wrap_kernel_now_usec(void) {
        return work.under_way ? work_now() / 1000 : __real_kernel_now_usec();
}

static void interrupt(unsigned cpu) {
        if (cpu != sim_cpu)
                wait_nsec(cost_nsec);
}

/* ---- CPUs ---- */

int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void) {
        return (int) sim_cpu;
}

/* Each simulated thread has a lane of the opener on its own CPU. */
unsigned __wrap_kernel_opened_from(void);
unsigned __wrap_kernel_opened_from(void) {
        return sim_cpu;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret) {
        memset(ret, 0, size);
        for (unsigned i = 0; i < n_cpus; i++)
                CPU_SET_S(i, size, ret);
        return 0;
}

/* ---- events ---- */

static Event *event_of(int fd) {
        return fd >= 0 && fd < FDS_MAX && events[fd].is_event ? &events[fd] : NULL;
}

static bool event_is_on(const Event *e) {
        const Event *leader = event_of(e->leader);

        return e->enabled && (!leader || leader->enabled);
}

static void event_switch(Event *e, bool on) {
        uint64_t now = sim_now_nsec();

        if (e->enabled)
                e->enabled_nsec += now - e->since_nsec;
        e->since_nsec = now;
        e->enabled = on;
}

static void event_note(const PerfOpen *o, const PerfOpen *opens) {
        static uint64_t id;
        Event *e = &events[o->fd], *leader;

        *e = (Event){ .is_event = true,
                      .cpu = (unsigned) o->cpu,
                      .leader = o->leader == PERF_OPEN_NO_LEADER ? o->group : opens[o->leader].fd,
                      .id = ++id,
                      .read_format = o->attr.known.read_format };
        event_switch(e, !o->attr.known.disabled);
        leader = event_of(e->leader);
        if (leader && leader->n_members < MEMBERS_MAX)
                leader->members[leader->n_members++] = o->fd;
        if (event_is_on(e))
                interrupt(e->cpu);
}

/* By the opener. */
static void event_enable(int fd) {
        Event *e = event_of(fd);

        if (!e)
                return;
        event_switch(e, true);
        interrupt(e->cpu);
}

void __real_perf_open_all(PerfOpen *opens, size_t n);
void __wrap_perf_open_all(PerfOpen *opens, size_t n);
void __wrap_perf_open_all(PerfOpen *opens, size_t n) {
        __real_perf_open_all(opens, n);
        if (work.under_way)
                wait_nsec(SIM_WAKE_NSEC);
        for (size_t i = 0; i < n; i++) {
                if (opens[i].enables_first)
                        event_enable(opens[0].fd);
                if (opens[i].cpu >= 0 && opens[i].fd >= 0 && opens[i].fd < FDS_MAX)
                        event_note(&opens[i], opens);
        }
}

static int event_ioctl(Event *e, unsigned long request, void *ret) {
        if (request == PERF_EVENT_IOC_ID)
                *(uint64_t *) ret = e->id;
        if (request != PERF_EVENT_IOC_ENABLE && request != PERF_EVENT_IOC_DISABLE)
                return 0;
        event_switch(e, request == PERF_EVENT_IOC_ENABLE);
        interrupt(e->cpu);
        return 0;
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
        Event *e = event_of(fd);
        va_list ap;
        void *word;

        va_start(ap, request);
        word = va_arg(ap, void *);
        va_end(ap);
        if (e)
                return event_ioctl(e, request, word);
        if (request == PERF_EVENT_IOC_ENABLE) /* in the opener; event_enable() notes it */
                return 0;
        return __real_ioctl(fd, request, word);
}

static uint64_t event_time(const Event *e) {
        return e->enabled_nsec + (event_is_on(e) ? sim_now_nsec() - e->since_nsec : 0);
}

/* As perf_event_open(2) has it: nothing is counted, and all that is enabled runs. */
static size_t event_read(const Event *e, uint64_t *words) {
        bool group = e->read_format & PERF_FORMAT_GROUP, id = e->read_format & PERF_FORMAT_ID;
        size_t n = 0;

        words[n++] = group ? 1 + e->n_members : 0;
        words[n++] = event_time(e);
        words[n++] = words[1];
        if (!group && id)
                words[n++] = e->id;
        for (unsigned i = 0; group && i <= e->n_members; i++) {
                const Event *member = i == 0 ? e : &events[e->members[i - 1]];

                words[n++] = 0;
                if (id)
                        words[n++] = member->id;
        }
        return n * sizeof(uint64_t);
}

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size) {
        const Event *e = event_of(fd);
        uint64_t words[3 + 2 * (1 + MEMBERS_MAX)];
        size_t n;

        if (!e)
                return __real_read(fd, data, size);
        if (event_is_on(e))
                interrupt(e->cpu);
        n = event_read(e, words);
        if (n > size)
                return errno = ENOSPC, -1;
        memcpy(data, words, n);
        return (ssize_t) n;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
        Event *e = event_of(fd), *leader;

        if (e) {
                interrupt(e->cpu);
                e->is_event = false;
                leader = event_of(e->leader);
                for (unsigned i = 0; leader && i < leader->n_members; i++)
                        if (leader->members[i] == fd)
                                leader->members[i] = leader->members[--leader->n_members];
        }
        return __real_close(fd);
}

/* ---- the kernel, in the opener ---- */

/* The members of each group that take a counter, by the inode of its leader. */
static uint8_t group_sizes[IDS_MAX];

static uint8_t *group_size(int leader) {
        struct stat st = {};

        (void) fstat(leader, &st);
        return &group_sizes[st.st_ino % IDS_MAX];
}

static bool is_core(const struct perf_event_attr *attr) {
        return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW;
}

/* Something that has a descriptor, can be polled, and has an inode of its own. */
static int event_open(const struct perf_event_attr *attr, int cpu, int leader) {
        int fd;

        if (cpu >= (int) n_cpus)
                return errno = ENODEV, -1;
        if (leader >= 0 && is_core(attr) && *group_size(leader) == SIM_COUNTERS)
                return errno = EINVAL, -1;
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && leader < 0)
                *group_size(fd) = 0;
        if (fd >= 0 && is_core(attr))
                ++*group_size(leader < 0 ? fd : leader);
        return fd;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
        long words[6];
        va_list ap;

        va_start(ap, number);
        for (int i = 0; i < 6; i++)
                words[i] = va_arg(ap, long);
        va_end(ap);
        if (number == SYS_perf_event_open && (int) words[2] >= 0)
                return event_open((struct perf_event_attr *) words[0], (int) words[2],
                                  (int) words[3]);
        return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
