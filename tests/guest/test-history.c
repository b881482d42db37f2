/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random histories of holds, monitors, clients that die, and strangers. At each grant the service's
 * confirmation is measured again, in another way: a group of the promised shape (instructions,
 * which take general counters, and one of cycles) has to stay on each CPU for several rotations.
 * Without strangers every hold must be confirmed.
 *
 * The clients are alice's, and this process, root's, is the strangers: what holders have open
 * themselves may be missing.
 *
 * PERFALLOC_TEST_HISTORIES is the number of histories; --seed repeats one run of them.
 */

#include "guest-util.h"

#include <fcntl.h>

#define HISTORIES 150
#define STEPS     10
#define CPUS      2u
#define MONITORS  10
#define HOLDS     4
#define STRANGERS 4
#define CLIENTS   3

static const char *const cpu_lists[] = { NULL, "0", "1", "0-1" };

typedef struct Held {
        char *path; /* NULL: none */
        unsigned client;
        int lease;
        unsigned cpus; /* a bit for each */
        unsigned counters;
        bool exclusive, confirmed;
} Held;

typedef struct Taken { /* by a stranger */
        unsigned cpu, n;
        char what[64];
        int fds[COUNTERS];
} Taken;

typedef struct History {
        Client *clients[CLIENTS];
        char *monitors[MONITORS];
        unsigned monitor_clients[MONITORS];
        Held holds[HOLDS];
        Taken strangers[STRANGERS];
        unsigned n_confirmed, n_not;
} History;

static unsigned any(unsigned n) {
        return (unsigned) g_test_rand_int_range(0, (gint32) n);
}

/* ---- what may happen ---- */

static void monitor_step(History *h) {
        unsigned i = any(MONITORS), client = any(CLIENTS);

        if (h->monitors[i]) {
                counter_do(h->clients[h->monitor_clients[i]], h->monitors[i], "Close");
                g_clear_pointer(&h->monitors[i], g_free);
                return;
        }
        h->monitors[i] = counter_open(h->clients[client], any(2) ? "cycles" : "instructions",
                                      "a{sv}", 3, "scope", "s", "cpu", "role", "s", "monitor",
                                      "priority", "u", (uint32_t) any(5));
        h->monitor_clients[i] = client;
}

static void stranger_leaves(Taken *t) {
        while (t->n > 0)
                close_fd(t->fds[--t->n]);
}

static void stranger_step(History *h) {
        Taken *t = &h->strangers[any(STRANGERS)];
        EventSpec e = { .kind = any(2) ? CYCLES : INSTRUCTIONS, .pid = -1 };
        unsigned n = 1 + any(COUNTERS);
        bool group = any(3) == 0 && n <= GENERAL;

        if (t->n > 0) {
                stranger_leaves(t);
                return;
        }
        t->cpu = any(CPUS);
        e.cpu = (int) t->cpu;
        e.pinned = any(3) == 0;
        e.period = any(4) == 0 && !group ? 10000000 : 0;
        (void) snprintf(t->what, sizeof(t->what), "%s%s%s%s",
                        e.kind == CYCLES ? "cycles" : "instructions", e.pinned ? ", pinned" : "",
                        e.period ? ", sampling" : "", group ? ", a group" : "");
        for (; t->n < n; t->n++) {
                t->fds[t->n] = event_open(&e, group && t->n > 0 ? t->fds[0] : -1);
                g_assert_cmpint(t->fds[t->n], >=, 0);
        }
}

static void hold_forget(Held *held) {
        held->lease = close_fd(held->lease);
        g_clear_pointer(&held->path, g_free);
}

static void hold_over(History *h, Held *held) {
        Client *c = h->clients[held->client];

        if (any(2))
                hold_release(c, held->path);
        else
                held->lease = close_fd(held->lease);
        await(hold_is(c, held->path, "ended"));
        hold_forget(held);
}

/* Its monitors and its holds end with it. */
static void client_dies(History *h) {
        unsigned client = any(CLIENTS);
        Client *other = h->clients[(client + 1) % CLIENTS];

        for (unsigned i = 0; i < HOLDS; i++)
                if (h->holds[i].path && h->holds[i].client == client)
                        h->holds[i].lease = close_fd(h->holds[i].lease);
        client_free(h->clients[client]);
        h->clients[client] = client_new("alice");
        for (unsigned i = 0; i < HOLDS; i++)
                if (h->holds[i].path && h->holds[i].client == client) {
                        await(hold_is(other, h->holds[i].path, "ended"));
                        hold_forget(&h->holds[i]);
                }
        for (unsigned i = 0; i < MONITORS; i++)
                if (h->monitors[i] && h->monitor_clients[i] == client) {
                        await(!client_finds(other, h->monitors[i], COUNTER));
                        g_clear_pointer(&h->monitors[i], g_free);
                }
}

/* ---- the promise ---- */

/* General counters that must be free on a CPU, for this hold and what others were promised. Holders
 * have nothing open here. Sets whether the one of cycles must be free too. */
static unsigned promised_on(const History *h, const Held *held, unsigned cpu, bool *ret_cycles) {
        unsigned sum = 0;

        *ret_cycles = false;
        for (unsigned i = 0; i < HOLDS; i++) {
                const Held *other = &h->holds[i];

                if (!other->path || !(other->cpus & 1u << cpu))
                        continue;
                /* of the others only those that were true when they were granted */
                if (other != held && !other->confirmed)
                        continue;
                if (other->counters == 0 || other->exclusive)
                        *ret_cycles = true;
                else
                        sum += other->counters;
        }
        return *ret_cycles ? GENERAL : sum;
}

/* For debugging. */
static void history_tell(const History *h, const Held *held) {
        for (unsigned i = 0; i < HOLDS; i++)
                if (h->holds[i].path)
                        g_test_message("%s %s: cpus %s, %u counters, confirmed %d",
                                       &h->holds[i] == held ? "this hold" : "hold",
                                       h->holds[i].path, cpu_lists[h->holds[i].cpus],
                                       h->holds[i].counters, h->holds[i].confirmed);
        for (unsigned i = 0; i < STRANGERS; i++)
                if (h->strangers[i].n > 0)
                        g_test_message("stranger: cpu %u, %u events of %s", h->strangers[i].cpu,
                                       h->strangers[i].n, h->strangers[i].what);
        for (unsigned i = 0; i < MONITORS; i++)
                if (h->monitors[i]) {
                        Client *c = h->clients[h->monitor_clients[i]];
                        g_autofree char *state = client_get(c, h->monitors[i], COUNTER, "State");

                        g_test_message("monitor %s: %s", h->monitors[i], state);
                }
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                g_test_message("cpu %u: %u free", cpu, free_on((int) cpu));
}

static void check_promise(const History *h, const Held *held) {
        bool strangers = false;

        for (unsigned cpu = 0; cpu < CPUS; cpu++) {
                bool cycles;
                unsigned promised = promised_on(h, held, cpu, &cycles);

                if (!(held->cpus & 1u << cpu))
                        continue;
                for (unsigned i = 0; i < STRANGERS; i++)
                        strangers |= h->strangers[i].n > 0 && h->strangers[i].cpu == cpu;
                if (held->confirmed && !shape_fits((int) cpu, promised, cycles)) {
                        history_tell(h, held);
                        g_error("confirmed, but there are no %u counters%s on CPU %u", promised,
                                cycles ? " and that of cycles" : "", cpu);
                }
        }
        if (!held->confirmed && !strangers) {
                history_tell(h, held);
                g_error("not confirmed, and nobody is in the way");
        }
}

/* False: it would have to wait for others. */
static bool hold_try(History *h, Held *held) {
        Client *c = h->clients[held->client];
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "Hold"), reply = NULL;
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        const char *path;
        int lease;

        g_assert_cmpint(sd_bus_message_append(
                                m, "sa{sv}", "a history", 4, "cpus", "s", cpu_lists[held->cpus],
                                "counters", "u", (uint32_t) held->counters, "mode", "s",
                                held->exclusive ? "exclusive" : "shared", "best_effort", "b", 1),
                        >=, 0);
        if (sd_bus_call(c->bus, m, UINT64_MAX, &error, &reply) < 0) {
                g_assert_cmpstr(error.name, ==, PERFALLOC_ERROR_BUSY);
                return false;
        }
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &lease), >, 0);
        held->lease = fcntl(lease, F_DUPFD_CLOEXEC, 3);
        held->path = g_strdup(path);
        return true;
}

static void hold_step(History *h) {
        Held *held = &h->holds[any(HOLDS)];

        if (held->path) {
                hold_over(h, held);
                return;
        }
        *held = (Held){ .client = any(CLIENTS),
                        .lease = -1,
                        .cpus = 1 + any(3),
                        .exclusive = any(4) == 0,
                        .counters = any(2) ? 0 : 1 + any(GENERAL) };
        if (!hold_try(h, held))
                return;
        held->confirmed = hold_wait(h->clients[held->client], held->path);
        if (held->confirmed)
                h->n_confirmed++;
        else
                h->n_not++;
        check_promise(h, held);
}

/* ---- one after the other ---- */

static void history_end(History *h) {
        for (unsigned i = 0; i < HOLDS; i++)
                if (h->holds[i].path)
                        hold_over(h, &h->holds[i]);
        for (unsigned i = 0; i < STRANGERS; i++)
                stranger_leaves(&h->strangers[i]);
        for (unsigned i = 0; i < MONITORS; i++)
                if (h->monitors[i]) {
                        counter_do(h->clients[h->monitor_clients[i]], h->monitors[i], "Close");
                        g_clear_pointer(&h->monitors[i], g_free);
                }
        for (unsigned cpu = 0; cpu < CPUS; cpu++)
                g_assert_true(group_fits((int) cpu, COUNTERS));
}

static void history(History *h) {
        for (unsigned step = 0; step < STEPS; step++)
                switch (any(8)) {
                case 0:
                case 1:
                        monitor_step(h);
                        break;
                case 2:
                case 3:
                        stranger_step(h);
                        break;
                case 4:
                        client_dies(h);
                        break;
                default:
                        hold_step(h);
                }
        history_end(h);
}

static void test_histories(void) {
        const char *asked = g_getenv("PERFALLOC_TEST_HISTORIES");
        unsigned n = asked ? (unsigned) atoi(asked) : HISTORIES;
        History h = {};

        for (unsigned i = 0; i < CLIENTS; i++)
                h.clients[i] = client_new("alice");
        for (unsigned i = 0; i < n; i++)
                history(&h);
        g_test_message("%u histories: %u grants were confirmed, %u not", n, h.n_confirmed, h.n_not);
        g_assert_cmpuint(h.n_confirmed, >, 0);
        g_assert_cmpuint(h.n_not, >, 0);
        for (unsigned i = 0; i < CLIENTS; i++)
                client_free(h.clients[i]);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/history/no-grant-is-confirmed-wrongly", test_histories);
        return g_test_run();
}
