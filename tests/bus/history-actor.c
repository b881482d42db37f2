/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history-actor.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "await.h"

#define FDS_MAX 8u

static TakeLog *actors_log;
static OrderOpen actors_open;

void history_actors_init(TakeLog *log, OrderOpen open) {
        actors_log = log;
        actors_open = open;
}

/* ---- the actor's side ---- */

typedef struct Playing {
        int fd;
        Take *take; /* NULL: nothing is open */
        unsigned n;
        int fds[FDS_MAX];
        pid_t child;
        bool roams; /* the child: its CPU is offline */
        int cgroup;
} Playing;

/* The guest's emulator runs one CPU at a time, and goes on with the next one at a yield. */
static void rest_awake(void) {
#if defined(__aarch64__)
        __asm__ volatile("yield" ::: "memory");
#else
        __asm__ volatile("" ::: "memory");
#endif
}

static pid_t child_new(const Order *o) {
        pid_t pid = fork();

        if (pid != 0)
                return pid;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (o->target == ORDER_SPINNER)
                rest_awake();
        for (;;)
                (void) pause();
}

/* From then on it runs nowhere else; it would, before it could do that by itself. False: the CPU is
 * offline. */
static bool child_keep_on(pid_t child, unsigned cpu) {
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        return sched_setaffinity(child, sizeof(cpus), &cpus) == 0;
}

static void playing_find_target(Playing *p, const Order *o, pid_t *ret_pid, int *ret_cpu) {
        *ret_pid = -1;
        *ret_cpu = (int) o->cpu;
        if (o->target == ORDER_CGROUP) {
                p->cgroup = open(HISTORY_CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                *ret_pid = p->cgroup;
        } else if (o->target == ORDER_SLEEPER || o->target == ORDER_SPINNER) {
                p->child = child_new(o);
                if (o->target == ORDER_SLEEPER)
                        await(process_is_asleep(p->child)); /* until then it would count */
                else
                        p->roams = !child_keep_on(p->child, o->cpu);
                *ret_pid = p->child;
        } else if (o->target == ORDER_TASK)
                *ret_pid = 0;
        if (o->target != ORDER_CPU && o->target != ORDER_CGROUP)
                *ret_cpu = -1;
}

static void playing_close(Playing *p) {
        if (p->take)
                log_close(p->take);
        while (p->n > 0)
                (void) close(p->fds[--p->n]);
        if (p->child > 0) {
                (void) kill(p->child, SIGKILL);
                (void) waitpid(p->child, NULL, 0);
        }
        p->child = 0;
        p->roams = false;
        p->cgroup = close_fd(p->cgroup);
        if (p->take && p->take->closed == LOG_NEVER)
                p->take->closed = log_now();
        p->take = NULL;
}

/* A pinned event that is dropped takes nothing, and reads as the end of the file. */
static bool is_dead(int fd) {
        char buffer[256];

        return read(fd, buffer, sizeof(buffer)) == 0;
}

/* A member that does not fit is the end of its whole group. */
static void playing_drop_dead(Playing *p, bool group) {
        unsigned first = group ? 0 : p->n - 1;

        if (!is_dead(p->fds[first]))
                return;
        while (p->n > first)
                (void) close(p->fds[--p->n]);
}

static TakeWhen order_when(const Order *o) {
        static const TakeWhen when[_ORDER_TARGET_MAX] = {
                [ORDER_CPU] = TAKE_ALWAYS,    [ORDER_TASK] = TAKE_OF_TASK,
                [ORDER_SLEEPER] = TAKE_NEVER, [ORDER_SPINNER] = TAKE_NOW_AND_THEN,
                [ORDER_CGROUP] = TAKE_NEVER,
        };

        return when[o->target];
}

static void playing_count(Playing *p, const Order *o) {
        *(o->cycles ? &p->take->cycles : &p->take->instructions) = p->n;
        p->take->opened = log_now();
}

static void playing_open(Playing *p, const Order *o) {
        Take take = { .pid = getpid(), .uid = getuid(), .cpu = o->cpu, .when = order_when(o) };
        bool group = o->group && o->target == ORDER_CPU;
        pid_t pid;
        int cpu;

        take.instructions = o->cycles ? 0 : o->n;
        take.cycles = o->cycles ? o->n : 0;
        playing_find_target(p, o, &pid, &cpu);
        take.roams = p->roams;
        p->take = log_open(actors_log, &take);
        for (unsigned i = 0; i < MIN(o->n, FDS_MAX); i++) {
                int fd = actors_open(o, pid, o->target == ORDER_CGROUP, cpu,
                                     group && p->n > 0 ? p->fds[0] : -1);

                if (fd < 0)
                        break;
                p->fds[p->n++] = fd;
                if (o->pinned && o->target == ORDER_CPU)
                        playing_drop_dead(p, group);
        }
        playing_count(p, o);
}

/* False: there is an order. */
static bool playing_rest(Playing *p, uint64_t usec) {
        const struct timespec t = { .tv_sec = (time_t) (usec / USEC_PER_SEC),
                                    .tv_nsec = (long) (usec % USEC_PER_SEC * NSEC_PER_USEC) };
        struct pollfd f = { .fd = p->fd, .events = POLLIN };

        return ppoll(&f, 1, usec == UINT64_MAX ? NULL : &t, NULL) == 0;
}

static void playing_do(Playing *p, const Order *o) {
        if (!playing_rest(p, o->delay_usec))
                return;
        for (unsigned i = 0; i < o->times; i++) {
                playing_open(p, o);
                if (o->stay_usec == 0 || !playing_rest(p, o->stay_usec))
                        return;
                playing_close(p);
                if (!playing_rest(p, o->gap_usec))
                        return;
        }
}

/* Value and times of each event, as a comment of TAP. */
static void playing_tell(const Playing *p) {
        for (unsigned i = 0; i < p->n; i++) {
                uint64_t count[3] = {};
                ssize_t n = read(p->fds[i], count, sizeof(count));

                (void) dprintf(STDOUT_FILENO,
                               "# pid %d, event %u: value %" G_GUINT64_FORMAT
                               ", enabled %" G_GUINT64_FORMAT ", running %" G_GUINT64_FORMAT
                               " (%zd bytes)\n",
                               (int) getpid(), i, count[0], count[1], count[2], n);
        }
}

static int play(int fd, const void *data) {
        Playing p = { .fd = fd, .cgroup = -1 };
        Order o;

        act_say(fd, '.');
        while (recv(fd, &o, sizeof(o), MSG_WAITALL) == sizeof(o)) {
                if (o.what == 't')
                        playing_tell(&p);
                else
                        playing_close(&p);
                if (o.what == 'o')
                        playing_do(&p, &o);
                if (o.answers)
                        act_say(fd, '.');
        }
        return 0;
}

/* ---- the test's side ---- */

Actor *history_actor_new(const char *user) {
        Actor *a = actor_new(user, play, NULL);

        g_assert_cmpint(actor_hear(a), ==, '.');
        return a;
}

void history_actor_order(Actor *a, const Order *o) {
        g_assert_cmpint(send(a->fd, o, sizeof(*o), MSG_NOSIGNAL), ==, sizeof(*o));
}

void history_actor_sync(Actor *a) {
        g_assert_cmpint(actor_hear(a), ==, '.');
}
