/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test-kernel-model.h"

#include <glib.h>
#include <string.h>

#define EVENTS_MAX  1024
#define FD_FIRST    100000
#define CALL_NSEC   UINT64_C(4000)
#define SLICE_NSEC  UINT64_C(3000000)
#define OPENER_NSEC UINT64_C(30000)
#define NONE        (-1)

typedef enum State { STATE_OFF, STATE_INACTIVE, STATE_ACTIVE, STATE_ERROR } State;

typedef struct Ev {
        bool used;
        const ModelPmu *pmu; /* NULL: software */
        int own;             /* fixed counter that serves it, or NONE */
        unsigned needs;      /* general ones */
        bool some;           /* only of the first four */
        unsigned cpu, task;
        bool pinned, on_exec;
        bool gone; /* its CPU went */
        int leader;
        State state;
        uint64_t order; /* among the groups of its CPU */
        uint64_t enabled, running;
} Ev;

/* What a set of events takes of a PMU. */
typedef struct Taken {
        uint32_t fixed, mask;
        unsigned general, some;
} Taken;

static struct {
        const ModelMachine *machine;
        Ev events[EVENTS_MAX];
        unsigned limit;
        uint64_t now, next_order;
        struct {
                bool offline, hogged, dozes;
                unsigned task, blocked;
                uint64_t turn; /* when the next one is */
                int watchdog;
        } cpus[MODEL_CPUS_MAX];
        int opener;       /* where the process is that opens events; NONE: it is this one */
        uint64_t opening; /* until when it runs there */
        unsigned here;    /* where the thread under test is */
        uint32_t allowed; /* where it may be */
        bool asleep;
        uint64_t slice;
        void (*each_call)(void *userdata);
        void *userdata;
        bool calling;
        size_t n_calls;
} model;

static Ev *ev_of(int fd) {
        g_assert_cmpint(fd, >=, FD_FIRST);
        g_assert_cmpint(fd, <, FD_FIRST + EVENTS_MAX);
        g_assert_true(model.events[fd - FD_FIRST].used);
        return &model.events[fd - FD_FIRST];
}

static int fd_of(const Ev *e) {
        return FD_FIRST + (int) (e - model.events);
}

/* ---- counters ---- */

/* Two side by side, the first with an even number (armv8pmu_get_chain_idx()). */
static bool take_mask(Taken *t, unsigned needs, unsigned n) {
        uint32_t want = (1u << needs) - 1;

        for (unsigned i = 0; i + needs <= n; i += needs)
                if (!(t->mask & want << i)) {
                        t->mask |= want << i;
                        return true;
                }
        return false;
}

static bool take(Taken *t, const Ev *e, unsigned blocked) {
        unsigned n = e->pmu->general - MIN(blocked, e->pmu->general);

        if (e->own != NONE && !(t->fixed & 1u << e->own)) {
                t->fixed |= 1u << e->own;
                return true;
        }
        if (e->own != NONE && e->pmu->fixed[e->own].only)
                return false;
        if (e->pmu->pairs)
                return take_mask(t, e->needs, n);
        if (t->general + e->needs > n || (e->some && t->some == 4))
                return false;
        t->general += e->needs;
        t->some += e->some;
        return true;
}

/* A driver counts who is in the group and is not off, as it is known at that moment. */
static bool is_validated(const Ev *e) {
        if (e->state != STATE_OFF)
                return true;
        return e->pmu->pairs ? e->on_exec : e->leader == fd_of(e);
}

static bool group_validates(const Ev *e, int leader) {
        Taken t = {};

        if (e->pmu->takes_all)
                return true;
        for (int i = 0; leader != NONE && i < EVENTS_MAX; i++) {
                const Ev *member = &model.events[i];

                if (member->used && member->leader == leader && is_validated(member) &&
                    !take(&t, member, 0))
                        return false;
        }
        return take(&t, e, 0);
}

/* ---- scheduling ---- */

static bool is_opening(unsigned cpu) {
        return model.opener == (int) cpu && model.now < model.opening;
}

static unsigned running(unsigned cpu) {
        bool own = (cpu == model.here && !model.asleep) || is_opening(cpu);

        return own ? MODEL_NO_TASK : model.cpus[cpu].task;
}

static bool is_in(const Ev *e, unsigned cpu) {
        return e->used && e->pmu && !e->gone && e->cpu == cpu &&
               (e->task == MODEL_NO_TASK || e->task == running(cpu));
}

static bool group_take(Taken *t, const Ev *leader) {
        Taken with = *t;

        for (int i = 0; i < EVENTS_MAX; i++) {
                const Ev *e = &model.events[i];

                if (e->used && e->leader == fd_of(leader) && e->state != STATE_OFF &&
                    !take(&with, e, model.cpus[leader->cpu].blocked))
                        return false;
        }
        *t = with;
        return true;
}

static void group_set(const Ev *leader, State state) {
        for (int i = 0; i < EVENTS_MAX; i++) {
                Ev *e = &model.events[i];

                if (e->used && e->leader == fd_of(leader) && e->state != STATE_OFF)
                        e->state = state;
        }
}

/* The next group of a kind, in the order in which they are scheduled. */
static Ev *group_next(unsigned cpu, bool pinned, bool of_task, uint64_t after) {
        Ev *next = NULL;

        for (int i = 0; i < EVENTS_MAX; i++) {
                Ev *e = &model.events[i];

                if (is_in(e, cpu) && e->leader == fd_of(e) && e->pinned == pinned &&
                    (e->task != MODEL_NO_TASK) == of_task && e->state != STATE_OFF &&
                    e->state != STATE_ERROR && e->order > after &&
                    (!next || e->order < next->order))
                        next = e;
        }
        return next;
}

static void schedule_kind(unsigned cpu, Taken *t, bool pinned, bool of_task) {
        bool can_add = true; /* as group_can_go_on() */
        uint64_t after = 0;

        for (Ev *e; (e = group_next(cpu, pinned, of_task, after)); after = e->order) {
                bool fits = can_add && group_take(t, e);

                can_add &= fits || pinned;
                group_set(e, fits ? STATE_ACTIVE : pinned ? STATE_ERROR : STATE_INACTIVE);
        }
}

static void schedule(unsigned cpu) {
        Taken t = {};

        for (int i = 0; i < EVENTS_MAX; i++) {
                Ev *e = &model.events[i];

                if (e->used && e->cpu == cpu && e->state == STATE_ACTIVE)
                        e->state = STATE_INACTIVE;
        }
        if (model.cpus[cpu].dozes)
                return;
        schedule_kind(cpu, &t, true, false);
        schedule_kind(cpu, &t, true, true);
        schedule_kind(cpu, &t, false, false);
        schedule_kind(cpu, &t, false, true);
}

static void rotate(unsigned cpu, bool of_task) {
        Ev *first = group_next(cpu, false, of_task, 0);
        bool waits = false;

        for (Ev *e = first; e; e = group_next(cpu, false, of_task, e->order))
                waits |= e->state == STATE_INACTIVE;
        if (waits)
                first->order = ++model.next_order;
}

/* ---- time ---- */

static void account(uint64_t nsec) {
        for (int i = 0; i < EVENTS_MAX; i++) {
                Ev *e = &model.events[i];

                if (!e->used || !e->pmu || !is_in(e, e->cpu) || model.cpus[e->cpu].offline ||
                    model.cpus[e->cpu].dozes)
                        continue;
                if (e->state == STATE_ACTIVE || e->state == STATE_INACTIVE)
                        e->enabled += nsec;
                if (e->state == STATE_ACTIVE)
                        e->running += nsec;
        }
        model.now += nsec;
}

static void pass(uint64_t nsec) {
        const uint64_t end = model.now + nsec, turn = MODEL_TURN_USEC * NSEC_PER_USEC;

        while (model.now < end) {
                uint64_t next = end;

                for (unsigned cpu = 0; cpu < model.machine->n_cpus; cpu++)
                        next = MIN(next, model.cpus[cpu].turn);
                if (model.now < model.opening)
                        next = MIN(next, model.opening);
                account(next - model.now);
                if (model.now == model.opening && model.opener != NONE)
                        schedule((unsigned) model.opener);
                for (unsigned cpu = 0; cpu < model.machine->n_cpus; cpu++)
                        if (model.cpus[cpu].turn == model.now) {
                                model.cpus[cpu].turn += turn;
                                rotate(cpu, false);
                                rotate(cpu, true);
                                schedule(cpu);
                        }
        }
}

/* The thread under test does not run for a while; its CPU's task does. */
static void sleep_for(uint64_t nsec) {
        model.asleep = true;
        schedule(model.here);
        pass(nsec);
        model.asleep = false;
        model.slice = 0;
        schedule(model.here);
}

static void call(void) {
        model.n_calls++;
        pass(CALL_NSEC);
        model.slice += CALL_NSEC;
        if (model.cpus[model.here].task != MODEL_NO_TASK && model.slice >= SLICE_NSEC)
                sleep_for(SLICE_NSEC);
        if (model.each_call && !model.calling) {
                model.calling = true;
                model.each_call(model.userdata);
                model.calling = false;
        }
}

/* ---- events ---- */

static const ModelPmu *pmu_of(const struct perf_event_attr *attr, unsigned cpu) {
        uint32_t type = attr->type;

        if (type == PERF_TYPE_HARDWARE)
                type = (uint32_t) (attr->config >> PERF_PMU_TYPE_SHIFT);
        for (unsigned i = 0; i < MODEL_PMUS_MAX; i++) {
                const ModelPmu *p = &model.machine->pmus[i];

                if (p->name && cpu >= p->first && cpu <= p->last && (type == 0 || type == p->type))
                        return p;
        }
        return NULL;
}

static bool is_served(const ModelFixed *f, const struct perf_event_attr *attr) {
        if (attr->type == PERF_TYPE_HARDWARE)
                return f->generic & 1u << (uint32_t) attr->config;
        return f->raw != 0 && f->raw == attr->config;
}

static bool ev_init(Ev *e, const struct perf_event_attr *attr, unsigned cpu) {
        uint32_t bit = attr->type == PERF_TYPE_HARDWARE ? 1u << (uint32_t) attr->config : 0;

        *e = (Ev){ .pmu = pmu_of(attr, cpu), .own = NONE, .needs = 1, .cpu = cpu };
        if (!e->pmu || (bit & ~e->pmu->has))
                return false;
        for (unsigned i = 0; i < MODEL_FIXED_MAX; i++)
                if (is_served(&e->pmu->fixed[i], attr))
                        e->own = (int) i;
        e->some = bit & e->pmu->some;
        if (e->pmu->pairs && (attr->config1 & 1))
                e->needs = 2;
        return true;
}

static int ev_install(const Ev *what, const struct perf_event_attr *attr, int leader) {
        if (model_n_open() >= model.limit)
                return -EMFILE;
        for (int i = 0; i < EVENTS_MAX; i++) {
                Ev *e = &model.events[i];

                if (e->used)
                        continue;
                *e = *what;
                e->used = true;
                e->pinned = attr->pinned;
                e->on_exec = attr->enable_on_exec;
                e->leader = leader == NONE ? fd_of(e) : leader;
                e->order = ++model.next_order;
                e->state = attr->disabled ? STATE_OFF : STATE_INACTIVE;
                return fd_of(e);
        }
        return -EMFILE;
}

static int open_event(const struct perf_event_attr *attr, unsigned task, int cpu, int leader) {
        Ev e = { .own = NONE };
        int fd;

        g_assert_cmpint(cpu, >=, 0);
        if (attr->type != PERF_TYPE_SOFTWARE && (unsigned) cpu < model.machine->n_cpus &&
            !ev_init(&e, attr, (unsigned) cpu))
                return -ENOENT;
        if ((unsigned) cpu >= model.machine->n_cpus || model.cpus[cpu].offline)
                return -ENODEV;
        if (e.pmu && !group_validates(&e, leader))
                return -EINVAL;
        e.task = task;
        fd = ev_install(&e, attr, leader);
        if (fd < 0)
                return fd;
        if (leader == NONE && !attr->disabled)
                model.cpus[cpu].dozes = false;
        schedule((unsigned) cpu);
        return fd;
}

/* It is woken, opens, and answers; then its CPU is its tasks' again. */
static void opener_wake(void) {
        if (model.opener == NONE)
                return;
        model.opening = model.now + OPENER_NSEC;
        schedule((unsigned) model.opener);
}

int kernel_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader) {
        opener_wake();
        call();
        g_assert_cmpint(pid, ==, -1);
        g_assert_false(attr->pinned); /* that would kill other people's events */
        return open_event(attr, MODEL_NO_TASK, cpu, leader);
}

static void set_enabled(int fd, bool enabled) {
        Ev *e = ev_of(fd);

        call();
        e->state = enabled ? STATE_INACTIVE : STATE_OFF;
        schedule(e->cpu);
}

void kernel_enable(int fd) {
        set_enabled(fd, true);
}

void kernel_disable(int fd) {
        set_enabled(fd, false);
}

static int open_together(const struct perf_event_attr *attrs, unsigned n, bool counting,
                         unsigned cpu, int *ret_fds) {
        for (unsigned i = 0; i < n; i++) {
                bool last = counting && i == n - 1;
                int fd;

                if (i > 0 && last)
                        set_enabled(ret_fds[0], true);
                fd = kernel_open(&attrs[i], -1, (int) cpu, i == 0 || last ? -1 : ret_fds[0]);
                if (fd < 0) {
                        while (i > 0)
                                kernel_close(ret_fds[--i]);
                        return fd;
                }
                ret_fds[i] = fd;
        }
        return 0;
}

int kernel_open_group(const struct perf_event_attr *attrs, unsigned n, unsigned cpu, int *ret_fds) {
        return open_together(attrs, n, false, cpu, ret_fds);
}

int kernel_open_counting(const struct perf_event_attr *attrs, unsigned n, unsigned cpu,
                         int *ret_fds) {
        return open_together(attrs, n, true, cpu, ret_fds);
}

unsigned kernel_opened_from(void) {
        return model.opener == NONE ? model.here : (unsigned) model.opener;
}

void kernel_close(int fd) {
        Ev *e;

        if (fd < 0)
                return;
        call();
        e = ev_of(fd);
        e->used = false;
        if (e->pmu)
                schedule(e->cpu);
}

bool kernel_times(int fd, KernelTimes *ret) {
        const Ev *e = ev_of(fd);

        call();
        *ret = (KernelTimes){ .enabled = e->enabled, .running = e->running };
        return e->state != STATE_ERROR;
}

bool kernel_is_offline(unsigned cpu) {
        call();
        return cpu >= model.machine->n_cpus || model.cpus[cpu].offline;
}

unsigned kernel_breakpoint_slots(void) {
        call();
        return 0;
}

uint64_t kernel_now_usec(void) {
        call();
        return model.now / NSEC_PER_USEC;
}

/* Who is busy does not go at once. */
void kernel_rest(uint64_t usec) {
        bool busy = model.cpus[model.here].task != MODEL_NO_TASK;

        sleep_for(usec * NSEC_PER_USEC + (busy ? SLICE_NSEC + SLICE_NSEC / 2 : 0));
}

/* ---- where the thread under test is ---- */

unsigned kernel_cpu(void) {
        call();
        return model.here;
}

static void move(unsigned cpu) {
        unsigned before = model.here;

        model.here = cpu;
        schedule(before);
        schedule(cpu);
        if (model.cpus[cpu].task != MODEL_NO_TASK)
                sleep_for(SLICE_NSEC);
}

int kernel_elsewhere(unsigned cpu, int (*f)(void *userdata), void *userdata) {
        unsigned before = model.here;
        int r;

        for (unsigned i = 0; i < model.machine->n_cpus; i++) {
                if (i == cpu || !(model.allowed & 1u << i) || model.cpus[i].offline ||
                    model.cpus[i].hogged)
                        continue;
                move(i);
                r = f(userdata);
                move(before);
                return r;
        }
        sleep_for(KERNEL_ELSEWHERE_USEC * NSEC_PER_USEC);
        return -EAGAIN;
}

/* ---- for tests ---- */

void model_boot(const char *name) {
        memset(&model, 0, sizeof(model));
        model.machine = model_machine(name);
        model.now = NSEC_PER_SEC;
        model.allowed = UINT32_MAX;
        model.opener = NONE;
        model.limit = EVENTS_MAX;
        for (unsigned i = 0; i < MODEL_CPUS_MAX; i++) {
                /* CPUs have no common clock for this */
                model.cpus[i].turn = model.now + (i + 1) * 700 * NSEC_PER_USEC;
                model.cpus[i].watchdog = NONE;
        }
}

void model_halt(void) {
        model_watchdog(false);
        g_assert_cmpuint(model_n_open(), ==, 0);
}

void model_attr(const char *name, struct perf_event_attr *attr) {
        static const struct {
                const char *name;
                uint64_t config, config1;
        } names[] = {
                { "cycles", PERF_COUNT_HW_CPU_CYCLES },
                { "instructions", PERF_COUNT_HW_INSTRUCTIONS },
                { "ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES },
                { "bus-cycles", PERF_COUNT_HW_BUS_CYCLES },
                { "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
                { "cache-misses", PERF_COUNT_HW_CACHE_MISSES },
                { "long-branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 1 },
                { "long-cycles", PERF_COUNT_HW_CPU_CYCLES, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strcmp(names[i].name, name) == 0) {
                        attr->config = names[i].config;
                        attr->config1 = names[i].config1;
                        return;
                }
        g_assert_not_reached();
}

int model_open(const ModelEvent *e) {
        struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .pinned = e->pinned };

        model_attr(e->name, &attr);
        return open_event(&attr, e->task, (int) e->cpu, e->leader > 0 ? e->leader : NONE);
}

void model_close(int fd) {
        Ev *e = ev_of(fd);

        e->used = false;
        schedule(e->cpu);
}

bool model_is_on(int fd) {
        return ev_of(fd)->state == STATE_ACTIVE;
}

bool model_is_dropped(int fd) {
        return ev_of(fd)->state == STATE_ERROR;
}

void model_watchdog(bool runs) {
        for (unsigned cpu = 0; cpu < model.machine->n_cpus; cpu++) {
                const ModelEvent e = { .name = "cycles", .cpu = cpu, .pinned = true };
                int *fd = &model.cpus[cpu].watchdog;

                if (*fd == NONE && runs && !model.cpus[cpu].offline)
                        *fd = model_open(&e);
                else if (*fd != NONE && !runs) {
                        model_close(*fd);
                        *fd = NONE;
                }
        }
}

void model_set_online(unsigned cpu, bool online) {
        model.cpus[cpu].offline = !online;
        for (int i = 0; !online && i < EVENTS_MAX; i++)
                if (model.events[i].used && model.events[i].cpu == cpu)
                        model.events[i].gone = true;
        schedule(cpu);
}

void model_limit(unsigned n) {
        model.limit = n;
}

void model_run(unsigned cpu, unsigned task) {
        model.cpus[cpu].task = task;
        schedule(cpu);
}

void model_hog(unsigned cpu, unsigned task) {
        model.cpus[cpu].hogged = task != MODEL_NO_TASK;
        model_run(cpu, task);
}

void model_put(unsigned cpu, uint32_t allowed) {
        model.here = cpu;
        model.allowed = allowed;
        for (unsigned i = 0; i < model.machine->n_cpus; i++)
                schedule(i);
}

void model_put_opener(unsigned cpu) {
        model.opener = (int) cpu;
}

void model_block(unsigned cpu, unsigned general) {
        model.cpus[cpu].blocked = general;
        schedule(cpu);
}

void model_doze(unsigned cpu) {
        model.cpus[cpu].dozes = true;
}

void model_pass(uint64_t usec) {
        pass(usec * NSEC_PER_USEC);
}

void model_each_call(void (*f)(void *userdata), void *userdata) {
        model.each_call = f;
        model.userdata = userdata;
}

size_t model_n_open(void) {
        size_t n = 0;

        for (int i = 0; i < EVENTS_MAX; i++)
                n += model.events[i].used;
        return n;
}

size_t model_n_calls(void) {
        return model.n_calls;
}
