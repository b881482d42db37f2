/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random histories of holds in the ledger and in a model: a list that is searched for each
 * question. g_test_rand's seed is printed; --seed= gives the same histories again.
 */

#include "core/ledger.h"

#include <glib.h>

#define N_PMUS      3u
#define N_HOLDS     14u
#define N_STEPS     60u
#define N_HISTORIES 4000u

/* Few, so that holds meet often; in three words. */
static const unsigned cpu_numbers[] = { 0, 1, 63, 64, 130 };

#define N_CPUS  ELEMENTSOF(cpu_numbers)
#define N_SLOTS (N_PMUS * N_CPUS)

typedef struct Client {
        LedgerHold hold;
        bool slots[N_SLOTS];
        LedgerState state; /* in the model */
} Client;

typedef struct History {
        Ledger ledger;
        GPtrArray *clients; /* of the admitted holds, by arrival */
        uint64_t capacity[N_PMUS];
        bool capacity_changes;
} History;

/* The model. */

static bool is_full(const Client *c) {
        return c->hold.exclusive || c->hold.counters == 0;
}

static bool overlap(const Client *a, const Client *b) {
        for (size_t i = 0; i < N_SLOTS; i++)
                if (a->slots[i] && b->slots[i])
                        return true;
        return false;
}

/* Counters promised on a slot to active holds that ask for a number of them. */
static uint64_t promised(const History *y, size_t slot) {
        uint64_t sum = 0;

        for (guint i = 0; i < y->clients->len; i++) {
                const Client *c = y->clients->pdata[i];

                if (c->state == LEDGER_ACTIVE && c->slots[slot] && !is_full(c))
                        sum += c->hold.counters;
        }
        return sum;
}

static bool too_tight(const History *y, const Client *c, size_t slot) {
        uint64_t capacity = y->capacity[slot / N_CPUS], sum = promised(y, slot);

        return !is_full(c) && c->slots[slot] && capacity > 0 && sum > 0 &&
               sum + c->hold.counters > capacity;
}

/* Whether b, which is active or an earlier waiting hold, keeps a from being active. */
static bool in_the_way(const History *y, const Client *b, const Client *a) {
        if (!overlap(a, b))
                return false;
        if (b->state == LEDGER_WAITING || a->hold.exclusive || b->hold.exclusive)
                return true;
        for (size_t i = 0; i < N_SLOTS; i++)
                if (!is_full(b) && b->slots[i] && too_tight(y, a, i))
                        return true;
        return false;
}

/* Active later ones count too: c waits for another hold then. */
static bool admissible(const History *y, const Client *c) {
        bool earlier = true;

        for (guint i = 0; i < y->clients->len; i++) {
                const Client *b = y->clients->pdata[i];

                if (b == c)
                        earlier = false;
                else if ((earlier || b->state == LEDGER_ACTIVE) && in_the_way(y, b, c))
                        return false;
        }
        return true;
}

static bool too_many(const History *y, const Client *c) {
        for (size_t i = 0; i < N_SLOTS; i++)
                if (c->slots[i] && !is_full(c) && y->capacity[i / N_CPUS] > 0 &&
                    c->hold.counters > y->capacity[i / N_CPUS])
                        return true;
        return false;
}

static Client *model_next(History *y) {
        for (guint i = 0; i < y->clients->len; i++) {
                Client *c = y->clients->pdata[i];

                if (c->state == LEDGER_WAITING && admissible(y, c)) {
                        c->state = LEDGER_ACTIVE;
                        return c;
                }
        }
        return NULL;
}

static size_t model_position(const History *y, const Client *c) {
        size_t worst = 0;

        for (size_t slot = 0; slot < N_SLOTS && c->state == LEDGER_WAITING; slot++) {
                size_t n = 1;

                for (guint i = 0; y->clients->pdata[i] != c; i++) {
                        const Client *b = y->clients->pdata[i];

                        n += b->state == LEDGER_WAITING && b->slots[slot];
                }
                if (c->slots[slot])
                        worst = MAX(worst, n);
        }
        return worst;
}

static bool model_is_first(const History *y, const Client *c) {
        for (guint i = 0; i < y->clients->len; i++) {
                const Client *b = y->clients->pdata[i];

                if (b != c && b->state == LEDGER_ACTIVE && overlap(b, c))
                        return false;
        }
        return true;
}

/* Ledger and model together. */

static void client_free(gpointer p) {
        Client *c = p;

        scope_done(&c->hold.scope);
        g_free(c);
}

static Client *client_new(void) {
        Client *c = g_new0(Client, 1);
        unsigned wide = (unsigned) g_test_rand_int_range(1, 10); /* of 10 */

        c->hold.exclusive = g_test_rand_int_range(0, 4) == 0;
        c->hold.counters = g_test_rand_bit() ? (unsigned) g_test_rand_int_range(1, 7) : 0;
        for (size_t i = 0; i < N_SLOTS; i++) {
                _cleanup_(cpuset_done) CpuSet cpu = CPUSET_NULL;

                if ((unsigned) g_test_rand_int_range(0, 20) >= wide)
                        continue;
                c->slots[i] = true;
                g_assert_cmpint(cpuset_add(&cpu, cpu_numbers[i % N_CPUS]), ==, 0);
                g_assert_cmpint(scope_add(&c->hold.scope, (unsigned) (i / N_CPUS), &cpu), ==, 0);
        }
        return c;
}

static void history_begin(History *y, bool capacity_changes) {
        *y = (History){ .capacity_changes = capacity_changes };
        ledger_init(&y->ledger);
        y->clients = g_ptr_array_new_with_free_func(client_free);
        for (unsigned pmu = 0; pmu < N_PMUS; pmu++) {
                y->capacity[pmu] = (uint64_t) g_test_rand_int_range(0, 7);
                g_assert_cmpint(ledger_set_capacity(&y->ledger, pmu, y->capacity[pmu]), ==, 0);
        }
}

static void history_end(History *y) {
        ledger_done(&y->ledger);
        g_ptr_array_unref(y->clients);
}

/* Calls ledger_next() until it is NULL, and compares with the model. */
static void history_drain(History *y) {
        LedgerHold *h;

        do {
                Client *c = model_next(y);

                h = ledger_next(&y->ledger);
                g_assert_true(h == (c ? &c->hold : NULL));
        } while (h);
}

static void history_admit(History *y) {
        Client *c = client_new();
        bool may_wait = g_test_rand_int_range(0, 5) > 0, at_once;
        int r;

        g_ptr_array_add(y->clients, c);
        at_once = admissible(y, c);
        r = ledger_admit(&y->ledger, &c->hold, may_wait);
        g_assert_cmpint(r, ==,
                        too_many(y, c) ? LEDGER_E_TOO_MANY
                        : at_once      ? 0
                        : may_wait     ? LEDGER_E_WAITS
                                       : LEDGER_E_WOULD_WAIT);
        if (r == 0)
                c->state = LEDGER_ACTIVE;
        else if (r == LEDGER_E_WAITS)
                c->state = LEDGER_WAITING;
        else
                g_ptr_array_remove_index(y->clients, y->clients->len - 1);
}

static void history_remove(History *y, guint i) {
        ledger_remove(&y->ledger, &((Client *) y->clients->pdata[i])->hold);
        g_ptr_array_remove_index(y->clients, i);
}

static void history_change_capacity(History *y) {
        unsigned pmu = (unsigned) g_test_rand_int_range(0, N_PMUS);

        y->capacity[pmu] = (uint64_t) g_test_rand_int_range(0, 7);
        g_assert_cmpint(ledger_set_capacity(&y->ledger, pmu, y->capacity[pmu]), ==, 0);
}

static void history_step(History *y) {
        guint n = y->clients->len;

        if (y->capacity_changes && g_test_rand_int_range(0, 12) == 0)
                history_change_capacity(y);
        else if (n == 0 || (n < N_HOLDS && g_test_rand_bit()))
                history_admit(y);
        else
                history_remove(y, (guint) g_test_rand_int_range(0, (gint32) n));
        if (g_test_rand_int_range(0, 4) > 0) /* else several changes come together */
                history_drain(y);
}

typedef struct Promise {
        const char *name;
        void (*check)(History *y, bool at_end);
        bool capacity_changes;
} Promise;

static void run_histories(gconstpointer userdata) {
        const Promise *promise = userdata;

        for (unsigned i = 0; i < N_HISTORIES; i++) {
                History y;

                history_begin(&y, promise->capacity_changes);
                for (unsigned step = 0; step < N_STEPS; step++) {
                        history_step(&y);
                        promise->check(&y, false);
                }
                history_drain(&y);
                promise->check(&y, true);
                history_end(&y);
        }
}

static int collect(void *userdata, LedgerHold *h) {
        g_ptr_array_add(userdata, h);
        return 0;
}

static void check_blockers(History *y, const Client *c) {
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        guint n = 0;

        ledger_blockers(&y->ledger, &c->hold, collect, found);
        for (guint i = 0; y->clients->pdata[i] != c; i++) {
                Client *b = y->clients->pdata[i];

                if (!in_the_way(y, b, c))
                        continue;
                g_assert_cmpuint(n, <, found->len);
                g_assert_true(found->pdata[n++] == &b->hold);
        }
        g_assert_cmpuint(n, ==, found->len);
}

static void check_same(History *y, bool at_end) {
        size_t n_active = 0;

        for (guint i = 0; i < y->clients->len; i++) {
                const Client *c = y->clients->pdata[i];

                g_assert_cmpint(c->hold.state, ==, c->state);
                g_assert_cmpuint(ledger_position(&c->hold), ==, model_position(y, c));
                g_assert_true(ledger_is_first(&y->ledger, &c->hold) == model_is_first(y, c));
                if (c->state == LEDGER_WAITING)
                        check_blockers(y, c);
                n_active += c->state == LEDGER_ACTIVE;
        }
        g_assert_cmpuint(y->ledger.n_active, ==, n_active);
        g_assert_cmpuint(y->ledger.n_waiting, ==, y->clients->len - n_active);
}

/* Promises, checked by the ledger's own states. */

static void check_fits(History *y, bool at_end) {
        for (size_t slot = 0; slot < N_SLOTS; slot++) {
                uint64_t capacity = y->capacity[slot / N_CPUS], sum = 0;
                size_t n = 0, n_exclusive = 0;

                for (guint i = 0; i < y->clients->len; i++) {
                        const Client *c = y->clients->pdata[i];

                        if (c->hold.state != LEDGER_ACTIVE || !c->slots[slot])
                                continue;
                        n++;
                        n_exclusive += c->hold.exclusive;
                        sum += c->hold.exclusive ? 0 : c->hold.counters;
                }
                g_assert_true(n_exclusive == 0 || n == 1);
                if (capacity > 0)
                        g_assert_cmpuint(sum, <=, capacity);
        }
}

/* An active hold that came after a waiting one it overlaps with would have overtaken it. */
static void check_order(History *y, bool at_end) {
        for (guint i = 0; i < y->clients->len; i++)
                for (guint j = i + 1; j < y->clients->len; j++) {
                        const Client *earlier = y->clients->pdata[i], *later = y->clients->pdata[j];

                        g_assert_false(earlier->hold.state == LEDGER_WAITING &&
                                       later->hold.state == LEDGER_ACTIVE &&
                                       overlap(earlier, later));
                }
}

/* When all earlier holds have gone, a waiting hold is active, whatever came later. */
static void check_progress(History *y, bool at_end) {
        guint n;

        if (!at_end || y->clients->len == 0)
                return;
        for (n = (guint) g_test_rand_int_range(0, (gint32) y->clients->len); n > 0; n--)
                history_remove(y, 0);
        history_drain(y);
        g_assert_cmpint(((Client *) y->clients->pdata[0])->hold.state, ==, LEDGER_ACTIVE);
}

static void check_given_back(History *y, bool at_end) {
        if (!at_end)
                return;
        while (y->clients->len > 0) {
                history_remove(y, (guint) g_test_rand_int_range(0, (gint32) y->clients->len));
                history_drain(y);
        }
        g_assert_cmpuint(y->ledger.n_active, ==, 0);
        g_assert_cmpuint(y->ledger.n_waiting, ==, 0);
        g_assert_cmpuint(y->ledger.n_partial, ==, 0);
        g_assert_null(y->ledger.ready.first);
        for (size_t i = 0; i < N_SLOTS; i++) {
                unsigned cpu = cpu_numbers[i % N_CPUS];
                const SlotChunk *chunk = slot_table_chunk(&y->ledger.slots, (unsigned) (i / N_CPUS),
                                                          cpu / CHUNK_SLOTS);
                const Slot *slot = chunk ? &chunk->slots[cpu % CHUNK_SLOTS] : NULL;

                if (!slot)
                        continue;
                g_assert_cmpuint(slot->n_active + slot->n_full + slot->n_exclusive, ==, 0);
                g_assert_cmpuint(slot->sum + slot->extra, ==, 0);
                g_assert_true(TAILQ_EMPTY(&slot->waiting));
                for (int demand = 0; demand < _SLOT_DEMAND_MAX; demand++)
                        g_assert_cmphex(chunk->demand[demand], ==, 0);
        }
}

static const Promise promises[] = {
        { "agrees", check_same, false },
        { "agrees-when-capacities-change", check_same, true },
        { "nothing-that-does-not-fit", check_fits, false },
        { "nobody-overtakes", check_order, true },
        { "nobody-starves", check_progress, true },
        { "everything-is-given-back", check_given_back, true },
};

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < ELEMENTSOF(promises); i++) {
                g_autofree char *path = g_strconcat("/ledger/model/", promises[i].name, NULL);

                g_test_add_data_func(path, &promises[i], run_histories);
        }
        return g_test_run();
}
