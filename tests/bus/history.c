/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history.h"

#include "cpu-switch.h"

#include <fcntl.h>

#define STEPS    10
#define CPUS     2u
#define MONITORS 6
#define COUNTERS 4
#define HOLDS    5
#define CLIENTS  4
#define OWN      2

static const char *const cpu_lists[] = { NULL, "0", "1", "0-1" };

/* Root is not asked for by polkit, which takes most of the time here. Of root's programs those are
 * the holder's that the holder has started, as this process has started all of them: so where
 * others may, strangers are others. */
static const char *const client_users[CLIENTS] = { "root", "alice", "root", "carol" };
static const char *const own_users[OWN] = { "root", "alice" };

typedef struct Held {
        char *path; /* NULL: none */
        unsigned client;
        int lease;
        unsigned cpus; /* a bit for each */
        unsigned counters;
        bool exclusive, best_effort;
        bool waits;        /* its Wait is not answered */
        uint64_t asked;    /* when it was, or may have begun to be measured */
        uint64_t answered; /* 0: not, or it is judged */
        int confirmed;
        bool ended;
        Claim claim; /* granted 0: not confirmed */
} Held;

typedef struct Opened {
        char *path; /* NULL: none */
        unsigned client;
        Take *takes[CPUS];
} Opened;

typedef struct Figures {
        unsigned confirmed, refused, best_effort; /* best effort: granted, not confirmed */
        unsigned full, partial, exclusive, queued, beside;
        unsigned measured, races, unknowable;
        unsigned named, in_vain;
        unsigned kills, deaths, cpu_changes;
        unsigned orders[_ORDER_TARGET_MAX], pinned, groups, samples, blinks, comes_and_goes;
} Figures;

static const HistoryHost *host;
static TakeLog *takes;
static Client *clients[CLIENTS];
static char *monitors[MONITORS];
static unsigned monitor_clients[MONITORS];
static Opened opened[COUNTERS];
static Held holds[HOLDS];
static Actor *strangers[STRANGERS], *own[OWN];
static bool cpu_is_gone;
static Figures figures;

static unsigned any(unsigned n) {
        return (unsigned) g_test_rand_int_range(0, (gint32) n);
}

static unsigned online(void) {
        return cpu_is_gone ? 1 : (1u << CPUS) - 1;
}

/* ---- strangers ---- */

static void order_random(Order *o, const char *user) {
        bool root = strcmp(user, "root") == 0;

        *o = (Order){ .what = 'o', .cpu = any(CPUS), .n = 1 + any(4), .times = 1 };
        do
                o->target = (OrderTarget) any(_ORDER_TARGET_MAX);
        while (!host->targets[o->target] || (o->target == ORDER_SPINNER && any(10) > 0) ||
               (!root && !host->users_may && o->target == ORDER_CPU));
        if (any(3) == 0)
                o->n = 1 + any(host->machine.general + 1);
        o->cycles = host->cycles && any(2);
        o->pinned = any(3) == 0;
        o->group = any(4) == 0 && o->n <= host->machine.general;
        o->period = any(4) == 0 && !o->group ? 10000000 : 0;
        if (cpu_is_gone)
                o->cpu = 0;
}

static void order_count(const Order *o) {
        figures.orders[o->target]++;
        figures.pinned += o->pinned;
        figures.groups += o->group;
        figures.samples += o->period > 0;
        figures.blinks += o->times > 1;
        figures.comes_and_goes += o->stay_usec > 0;
}

static void actor_order_and_wait(Actor *a, Order *o) {
        o->answers = true;
        history_actor_order(a, o);
        history_actor_sync(a);
}

static void stranger_leaves(Actor *a) {
        Order o = { .what = 'c' };

        actor_order_and_wait(a, &o);
}

/* One that stands, one that comes and goes once, or one that blinks, while others go on. */
static void stranger_step(void) {
        unsigned i = any(STRANGERS);
        Order o;

        if (any(3) == 0) {
                stranger_leaves(strangers[i]);
                return;
        }
        order_random(&o, host->strangers[i]);
        if (any(2)) {
                order_count(&o);
                actor_order_and_wait(strangers[i], &o);
                return;
        }
        o.delay_usec = any(60000);
        o.stay_usec = any(2) ? 100 + any(3000) : 1000 + any(60000);
        o.gap_usec = 100 + any(5000);
        o.times = any(2) ? 1 : 2 + any(20);
        order_count(&o);
        history_actor_order(strangers[i], &o);
}

/* A holder's own program; what it opens it opens now. */
static void own_step(void) {
        unsigned i = any(OWN);
        Order o;

        if (any(3) == 0) {
                stranger_leaves(own[i]);
                return;
        }
        order_random(&o, own_users[i]);
        if (o.target != ORDER_CPU && o.target != ORDER_TASK)
                return;
        o.period = 0;
        o.pinned = o.group = false;
        actor_order_and_wait(own[i], &o);
}

/* ---- the service's own ---- */

static const char *event_any(bool *ret_cycles) {
        *ret_cycles = host->cycles && any(2);
        return *ret_cycles ? host->cycles : host->instructions;
}

static char *counter_try(Client *c, const char *event, const char *cpus, const char *role) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters"), reply = NULL;
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        const char *path;

        g_assert_cmpint(sd_bus_message_append(m, "asa{sv}", 1, event, 4, "scope", "s", "cpu",
                                              "cpus", "s", cpus, "role", "s", role, "name", "s",
                                              "a history"),
                        >=, 0);
        if (sd_bus_call(c->bus, m, UINT64_MAX, &error, &reply) < 0)
                return NULL; /* no room for a breakpoint, or an exclusive hold */
        g_assert_cmpint(sd_bus_message_read(reply, "ao", 1, &path), >, 0);
        return g_strdup(path);
}

static void monitor_step(void) {
        unsigned i = any(MONITORS), client = 2 * any(CLIENTS / 2);
        bool cycles;

        if (monitors[i]) {
                counter_do(clients[monitor_clients[i]], monitors[i], "Close");
                g_clear_pointer(&monitors[i], g_free);
                return;
        }
        monitors[i] = counter_try(clients[client], event_any(&cycles), "0-1", "monitor");
        monitor_clients[i] = client;
}

static void opened_closing(Opened *o) {
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                if (o->takes[cpu])
                        log_close(o->takes[cpu]);
}

static void opened_closed(Opened *o) {
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                if (o->takes[cpu] && o->takes[cpu]->closed == LOG_NEVER)
                        o->takes[cpu]->closed = log_now();
        g_clear_pointer(&o->path, g_free);
        *o = (Opened){};
}

static void opened_close(Opened *o) {
        opened_closing(o);
        counter_do(clients[o->client], o->path, "Close");
        opened_closed(o);
}

/* One that was never on may come on later. */
static bool counts_at_once(Client *c, const char *path) {
        g_auto(Measured) m = counter_read(c, path);

        return m.enabled > 0 && m.running == m.enabled;
}

static void counter_step(void) {
        Opened *o = &opened[any(COUNTERS)];
        unsigned cpus = (1 + any(3)) & online();
        Take take = { .pid = getpid(), .of_service = true };
        bool cycles;
        const char *event = event_any(&cycles);

        if (o->path) {
                opened_close(o);
                return;
        }
        if (cpus == 0)
                return;
        o->client = any(CLIENTS);
        take.uid = user_id(client_users[o->client]);
        *(cycles ? &take.cycles : &take.instructions) = 1;
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                if (cpus & 1u << cpu) {
                        take.cpu = cpu;
                        o->takes[cpu] = log_open(takes, &take);
                }
        o->path = counter_try(clients[o->client], event, cpu_lists[cpus], "foreground");
        if (!o->path) {
                opened_closing(o);
                opened_closed(o);
                return;
        }
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                if (o->takes[cpu]) {
                        if (!counts_at_once(clients[o->client], o->path))
                                o->takes[cpu]->when = TAKE_NOW_AND_THEN;
                        o->takes[cpu]->opened = log_now();
                }
}

/* ---- judging ---- */

/* The other confirmed holds that had been granted by then. */
static size_t claims_beside(const Held *held, uint64_t until, Claim *ret) {
        size_t n = 0;

        for (unsigned i = 0; i < HOLDS; i++)
                if (&holds[i] != held && holds[i].path && holds[i].claim.granted > 0 &&
                    holds[i].claim.granted <= until)
                        ret[n++] = holds[i].claim;
        return n;
}

static Demand demand_of(const Held *held, uint64_t until, Claim *claims) {
        return (Demand){ .cpus = held->cpus & online(),
                         .counters = held->exclusive ? 0 : held->counters,
                         .claims = claims,
                         .n_claims = claims_beside(held, until, claims) };
}

static void history_tell(const Held *held, const Demand *d, uint64_t from) {
        unsigned n = atomic_load(&takes->n);

        g_test_message("hold %s: cpus %s, %u counters%s, asked at 0", held->path,
                       cpu_lists[held->cpus], held->counters, held->exclusive ? ", exclusive" : "");
        for (size_t i = 0; i < d->n_claims; i++)
                g_test_message("beside: uid %u, cpus %s, %u counters, granted at %" G_GINT64_FORMAT,
                               (unsigned) d->claims[i].uid, cpu_lists[d->claims[i].cpus],
                               d->claims[i].counters, (gint64) (d->claims[i].granted - from));
        for (unsigned i = 0; i < n; i++) {
                const Take *t = &takes->takes[i];

                if (t->closed < from - 100000)
                        continue;
                g_test_message("pid %d of uid %u, cpu %u, %u instructions, %u cycles, when %d%s: "
                               "%" G_GINT64_FORMAT " %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                               " %" G_GINT64_FORMAT,
                               (int) t->pid, (unsigned) t->uid, t->cpu, t->instructions, t->cycles,
                               (int) t->when, t->of_service ? ", of the service" : "",
                               (gint64) (t->opening - from), (gint64) (t->opened - from),
                               t->closing == LOG_NEVER ? -1 : (gint64) (t->closing - from),
                               t->closed == LOG_NEVER ? -1 : (gint64) (t->closed - from));
        }
        for (unsigned i = 0; i < MONITORS; i++)
                if (monitors[i]) {
                        g_autofree char *state = client_get(clients[monitor_clients[i]],
                                                            monitors[i], COUNTER, "State");

                        g_test_message("monitor %s: %s", monitors[i], state);
                }
}

/* Another process asks the PMU, while all others stand still. */
static void grant_measure(const Held *held, const Demand *d) {
        uint64_t from = held->claim.granted - LOG_RACE_USEC;

        for (unsigned cpu = 0; cpu < CPUS; cpu++) {
                unsigned n;
                bool cycles, fits;

                if (!(d->cpus & 1u << cpu))
                        continue;
                n = log_needs(takes, &host->machine, d, cpu, &cycles);
                fits = host->fits(cpu, n, cycles);
                if (!log_is_still(takes, from, log_now()))
                        return;
                figures.measured++;
                if (fits)
                        continue;
                history_tell(held, d, held->asked);
                g_error("confirmed at %" G_GINT64_FORMAT ", and no %u counters%s can be had on CPU "
                        "%u",
                        (gint64) (held->claim.granted - held->asked), n,
                        cycles ? " and that of cycles" : "", cpu);
        }
}

static unsigned pmu_free(unsigned cpu) {
        unsigned n = host->machine.general;

        while (n > 0 && !host->fits(cpu, n, false))
                n--;
        return n;
}

/* What the PMU says a moment later; the service's log has what it found. */
static void pmu_tell(const Demand *d) {
        Order tell = { .what = 't' };

        for (unsigned i = 0; i < STRANGERS; i++)
                actor_order_and_wait(strangers[i], &tell);
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                if (d->cpus & 1u << cpu)
                        g_test_message("now %u counters of CPU %u are free", pmu_free(cpu), cpu);
        g_test_message("CPUs went or came %u times", figures.cpu_changes);
}

static void grant_judge(Held *held) {
        Claim claims[HOLDS];
        Demand d = demand_of(held, held->claim.granted, claims);
        Verdict v = log_judge_grant(takes, &host->machine, &d, held->claim.granted);

        figures.confirmed++;
        figures.beside += d.n_claims > 0;
        figures.races += v == VERDICT_RACE;
        if (v == VERDICT_FALSE) {
                pmu_tell(&d);
                history_tell(held, &d, held->asked);
                g_error("confirmed at %" G_GINT64_FORMAT ", and it cannot have been free",
                        (gint64) (held->claim.granted - held->asked));
        }
        if (v == VERDICT_TRUE && any(2))
                grant_measure(held, &d);
}

static void refusal_count_names(const Held *held, const Demand *d, uint64_t until, GString *named) {
        g_autoptr(sd_bus_message) m =
                client_get_variant(clients[held->client], held->path, HOLD, "Obstacles", "a(us)");
        const char *who;
        uint32_t pid;

        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "(us)"), >, 0);
        while (sd_bus_message_read(m, "(us)", &pid, &who) > 0) {
                figures.named++;
                g_string_append_printf(named, " %u (%s)", pid, who);
                if (pid == 0 || (pid_t) pid == getpid())
                        continue;
                figures.in_vain += !log_had_open(takes, (pid_t) pid, d->cpus, held->asked, until);
                if (!log_had_open(takes, (pid_t) pid, 0, held->asked, until)) {
                        history_tell(held, d, held->asked);
                        g_error("pid %u (%s) was named, which had nothing open", pid, who);
                }
        }
}

static void refusal_judge(const Held *held) {
        uint64_t until = held->answered;
        Claim claims[HOLDS];
        Demand d = demand_of(held, until, claims);
        Verdict v = log_judge_refusal(takes, &host->machine, &d, held->asked, until);
        g_autoptr(GString) named = g_string_new(NULL);

        if (held->exclusive &&
            log_has_foreign(takes, user_id(client_users[held->client]), held->cpus))
                v = VERDICT_TRUE;
        if (held->best_effort)
                figures.best_effort++;
        else
                figures.refused++;
        figures.unknowable += v == VERDICT_UNKNOWABLE;
        refusal_count_names(held, &d, until, named);
        if (v == VERDICT_FALSE) {
                pmu_tell(&d);
                history_tell(held, &d, held->asked);
                g_test_message("named:%s", named->str);
                g_error("refused after %" G_GINT64_FORMAT ", and all was free",
                        (gint64) (until - held->asked));
        }
}

/* ---- holds ---- */

static void hold_forget(Held *held) {
        held->lease = close_fd(held->lease);
        g_clear_pointer(&held->path, g_free);
        held->waits = false;
        held->claim.granted = 0;
}

static void service_is_killed(void) {
        host->kill(clients[0]);
        figures.kills++;
        /* what a dead service had open is stored, and comes on again or not */
        for (unsigned i = 0; i < COUNTERS; i++)
                for (unsigned cpu = 0; cpu < CPUS; cpu++)
                        if (opened[i].takes[cpu])
                                opened[i].takes[cpu]->when = TAKE_NOW_AND_THEN;
}

/* Waits for its answer: granted, or ended. */
static void hold_hear(Held *held) {
        Client *c = clients[held->client];
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_autoptr(sd_bus_message) reply = NULL;

        if (sd_bus_call_method(c->bus, PERFALLOC_BUS_NAME, held->path, HOLD, "Wait", &error, &reply,
                               NULL) < 0)
                g_assert_cmpstr(error.name, ==, PERFALLOC_ERROR_OBSTRUCTED);
        else
                g_assert_cmpint(sd_bus_message_read(reply, "bt", &held->confirmed, NULL), >, 0);
        held->answered = log_now();
        held->waits = false;
        held->ended = !reply;
        if (held->confirmed)
                held->claim = (Claim){
                        .uid = user_id(client_users[held->client]),
                        .cpus = held->cpus,
                        .counters = held->exclusive ? 0 : held->counters,
                        .granted = client_get_number(c, held->path, HOLD, "GrantTimestamp", 't'),
                };
}

static void hold_judge(Held *held) {
        if (held->confirmed)
                grant_judge(held);
        else
                refusal_judge(held);
        held->answered = 0;
        if (held->ended)
                hold_forget(held);
}

static bool hold_is_queued(const Held *held) {
        return client_get_number(clients[held->client], held->path, HOLD, "QueuePosition", 'u') > 0;
}

/* Those that waited may go on: since then they may have been measured. They are judged when all of
 * them are heard, because what one was promised the next one may lack. */
static void holds_settle(uint64_t since) {
        for (bool again = true; again;) {
                again = false;
                for (unsigned i = 0; i < HOLDS; i++)
                        if (holds[i].path && holds[i].waits && !hold_is_queued(&holds[i])) {
                                holds[i].asked = since;
                                hold_hear(&holds[i]);
                                again = true;
                        }
        }
        for (unsigned i = 0; i < HOLDS; i++)
                if (holds[i].path && holds[i].answered > 0)
                        hold_judge(&holds[i]);
}

static void hold_over(Held *held) {
        Client *c = clients[held->client];
        uint64_t since = log_now();

        if (any(2))
                hold_release(c, held->path);
        else
                held->lease = close_fd(held->lease);
        await(hold_is(c, held->path, "ended"));
        hold_forget(held);
        holds_settle(since);
}

/* False: it would have to wait for others, and may not. */
static bool hold_try(Held *held) {
        Client *c = clients[held->client];
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "Hold"), reply = NULL;
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        uint64_t wait = any(3) == 0 ? 3600 * USEC_PER_SEC : 0;
        const char *path;
        int lease;

        g_assert_cmpint(sd_bus_message_append(m, "sa{sv}", "a history", 6, "pmus", "as", 1,
                                              host->pmu, "cpus", "s", cpu_lists[held->cpus],
                                              "counters", "u", (uint32_t) held->counters, "mode",
                                              "s", held->exclusive ? "exclusive" : "shared",
                                              "best_effort", "b", (int) held->best_effort,
                                              "wait_usec", "t", wait),
                        >=, 0);
        held->asked = log_now();
        if (sd_bus_call(c->bus, m, UINT64_MAX, &error, &reply) < 0) {
                g_assert_cmpstr(error.name, ==, PERFALLOC_ERROR_BUSY);
                return false;
        }
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
        held->lease = fcntl(lease, F_DUPFD_CLOEXEC, 3);
        held->path = g_strdup(path);
        held->waits = true;
        return true;
}

static void hold_step(void) {
        Held *held = &holds[any(HOLDS)];

        if (held->path) {
                hold_over(held);
                return;
        }
        *held = (Held){ .client = any(CLIENTS),
                        .lease = -1,
                        .cpus = 1 + any(3),
                        .exclusive = any(5) == 0,
                        .best_effort = any(2),
                        .counters = any(2) ? 0 : 1 + any(host->machine.general) };
        if (held->exclusive)
                held->counters = 0;
        if (!hold_try(held))
                return;
        figures.full += held->counters == 0;
        figures.partial += held->counters > 0;
        figures.exclusive += held->exclusive;
        if (any(150) == 0)
                service_is_killed();
        figures.queued += hold_is_queued(held);
        holds_settle(held->asked);
}

/* ---- what else happens ---- */

/* Its monitors, its counters and its holds end with it. */
static void client_dies(void) {
        unsigned client = any(CLIENTS);
        Client *other = clients[(client + 1) % CLIENTS];
        uint64_t since = log_now();

        figures.deaths++;
        for (unsigned i = 0; i < COUNTERS; i++)
                if (opened[i].path && opened[i].client == client)
                        opened_closing(&opened[i]);
        for (unsigned i = 0; i < HOLDS; i++)
                if (holds[i].path && holds[i].client == client)
                        holds[i].lease = close_fd(holds[i].lease);
        client_free(clients[client]);
        clients[client] = client_new(client_users[client]);
        for (unsigned i = 0; i < HOLDS; i++)
                if (holds[i].path && holds[i].client == client) {
                        await(hold_is(other, holds[i].path, "ended"));
                        hold_forget(&holds[i]);
                }
        for (unsigned i = 0; i < COUNTERS; i++)
                if (opened[i].path && opened[i].client == client) {
                        await(!client_finds(other, opened[i].path, COUNTER));
                        opened_closed(&opened[i]);
                }
        for (unsigned i = 0; i < MONITORS; i++)
                if (monitors[i] && monitor_clients[i] == client) {
                        await(!client_finds(other, monitors[i], COUNTER));
                        g_clear_pointer(&monitors[i], g_free);
                }
        holds_settle(since);
}

/* A CPU that comes back is measured for the holds that stand; whatever was open there is gone. */
static void cpu_step(void) {
        if (!host->cpus_go)
                return;
        for (unsigned i = 0; i < HOLDS; i++)
                if (holds[i].path)
                        return;
        figures.cpu_changes++;
        cpu_must_switch(cpu_is_gone);
        cpu_is_gone = !cpu_is_gone;
        if (cpu_is_gone)
                log_drop_cpu(takes, 1);
        for (unsigned i = 0; i < COUNTERS; i++)
                if (opened[i].takes[1])
                        opened[i].takes[1]->when = TAKE_NOW_AND_THEN;
}

/* ---- one after the other ---- */

static void history_end(void) {
        for (unsigned i = 0; i < HOLDS; i++)
                if (holds[i].path)
                        hold_over(&holds[i]);
        for (unsigned i = 0; i < COUNTERS; i++)
                if (opened[i].path)
                        opened_close(&opened[i]);
        for (unsigned i = 0; i < MONITORS; i++)
                if (monitors[i]) {
                        counter_do(clients[monitor_clients[i]], monitors[i], "Close");
                        g_clear_pointer(&monitors[i], g_free);
                }
        for (unsigned i = 0; i < STRANGERS; i++)
                stranger_leaves(strangers[i]);
        for (unsigned i = 0; i < OWN; i++)
                stranger_leaves(own[i]);
        if (cpu_is_gone)
                cpu_step();
        log_clear(takes);
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                await(host->fits(cpu, host->machine.general, host->machine.cycles));
}

static void history(void) {
        for (unsigned step = 0; step < STEPS; step++)
                switch (any(20)) {
                case 0:
                case 1:
                        monitor_step();
                        break;
                case 2:
                case 3:
                        counter_step();
                        break;
                case 4:
                case 5:
                case 6:
                case 7:
                case 8:
                        stranger_step();
                        break;
                case 9:
                case 10:
                        own_step();
                        break;
                case 11:
                        if (any(3) == 0)
                                client_dies();
                        break;
                case 12:
                        if (any(4) == 0)
                                cpu_step();
                        break;
                default:
                        hold_step();
                }
        history_end();
}

static void figures_tell(unsigned n) {
        const Figures *f = &figures;

        g_test_message("histories %u", n);
        g_test_message("holds: confirmed %u refused %u best-effort %u full %u partial %u exclusive "
                       "%u queued %u beside-others %u",
                       f->confirmed, f->refused, f->best_effort, f->full, f->partial, f->exclusive,
                       f->queued, f->beside);
        g_test_message("judged: measured %u races %u unknowable %u named %u in-vain %u",
                       f->measured, f->races, f->unknowable, f->named, f->in_vain);
        g_test_message(
                "strangers: cpu %u task %u sleeping %u spinning %u cgroup %u pinned %u group "
                "%u sampling %u coming-and-going %u blinking %u",
                f->orders[ORDER_CPU], f->orders[ORDER_TASK], f->orders[ORDER_SLEEPER],
                f->orders[ORDER_SPINNER], f->orders[ORDER_CGROUP], f->pinned, f->groups, f->samples,
                f->comes_and_goes, f->blinks);
        g_test_message("else: service-kills %u client-deaths %u cpu-changes %u", f->kills,
                       f->deaths, f->cpu_changes);
}

void histories_run(const HistoryHost *h, unsigned n_default) {
        const char *asked = g_getenv("PERFALLOC_TEST_HISTORIES");
        unsigned n = asked ? (unsigned) atoi(asked) : n_default;

        host = h;
        takes = log_new();
        history_actors_init(takes, host->open);
        for (unsigned i = 0; i < STRANGERS; i++)
                strangers[i] = history_actor_new(host->strangers[i]);
        for (unsigned i = 0; i < OWN; i++)
                own[i] = history_actor_new(own_users[i]);
        for (unsigned i = 0; i < CLIENTS; i++)
                clients[i] = client_new(client_users[i]);
        for (unsigned i = 0; i < n; i++)
                history();
        figures_tell(n);
        g_assert_cmpuint(figures.confirmed, >, 0);
        for (unsigned i = 0; i < CLIENTS; i++)
                client_free(clients[i]);
        for (unsigned i = 0; i < STRANGERS; i++)
                actor_free(strangers[i]);
        for (unsigned i = 0; i < OWN; i++)
                actor_free(own[i]);
}
