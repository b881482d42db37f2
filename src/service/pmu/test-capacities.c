/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/pmu/capacity.h"

#include <glib.h>

#include "perf/pmu/capacity.h"
#include "perf/pmu/kernel-share.h"
#include "service/bus/host-state.h"

/* ---- a machine that has what the test says (-Wl,--wrap) ---- */

enum { CORE, ATOM, SOFTWARE, N_PMUS };

static struct {
        int answer; /* of ATOM */
        unsigned n_measured[N_PMUS], n_saved;
} machine;

int __wrap_capacity_measure(const PmuTable *t, Pmu *pmu);
int __wrap_capacity_measure(const PmuTable *t, Pmu *pmu) {
        int r = pmu->index == ATOM ? machine.answer : 0;

        machine.n_measured[pmu->index]++;
        pmu->measured = r == 0;
        pmu->counters = r == 0 ? 6 : 0;
        return r;
}

int __wrap_host_state_pmus(Context *context);
int __wrap_host_state_pmus(Context *context) {
        return 0;
}

void __wrap_host_state_save(Context *context);
void __wrap_host_state_save(Context *context) {
        machine.n_saved++;
}

Shape __wrap_kernel_share(const Pmu *pmu, const char *path);
Shape __wrap_kernel_share(const Pmu *pmu, const char *path) {
        return SHAPE_NULL;
}

void __wrap_kernel_share_look(Pmu *pmu, const char *path);
void __wrap_kernel_share_look(Pmu *pmu, const char *path) {
}

typedef struct Stage {
        Pmu pmus[N_PMUS];
        Context context;
        Capacities *capacities;
} Stage;

static void stage_up(Stage *s, gconstpointer unused) {
        machine.n_saved = 0;
        for (unsigned i = 0; i < N_PMUS; i++) {
                machine.n_measured[i] = 0;
                s->pmus[i] = (Pmu){ .index = i, .kind = i == SOFTWARE ? PMU_SOFTWARE : PMU_CORE };
        }
        s->context = (Context){ .pmus = { .pmus = s->pmus, .n_pmus = N_PMUS } };
        ledger_init(&s->context.ledger);
        g_assert_cmpint(sd_event_new(&s->context.event), ==, 0);
        g_assert_cmpint(capacities_new(&s->context, &s->capacities), ==, 0);
}

static void stage_down(Stage *s, gconstpointer unused) {
        capacities_free(s->capacities);
        sd_event_unref(s->context.event);
        ledger_done(&s->context.ledger);
}

static uint64_t capacity_of(const Stage *s, unsigned pmu) {
        return s->context.ledger.slots.pmus[pmu].capacity;
}

/* ---- */

static void test_all_is_measured_once(Stage *s, gconstpointer unused) {
        machine.answer = 0;
        for (int i = 0; i < 2; i++)
                g_assert_cmpint(capacities_refresh(s->capacities), ==, 0);
        for (unsigned i = 0; i < N_PMUS; i++)
                g_assert_cmpuint(machine.n_measured[i], ==, 1);
        g_assert_cmpuint(machine.n_saved, ==, 1);
        g_assert_cmpuint(capacity_of(s, ATOM), ==, 6);
}

/* And what is known is not measured again meanwhile. */
static void test_pmu_without_a_cpu_is_measured_when_it_has_one(Stage *s, gconstpointer unused) {
        machine.answer = CAPACITY_E_OFFLINE;
        for (int i = 0; i < 2; i++)
                g_assert_cmpint(capacities_need(s->capacities), ==, 0);
        g_assert_cmpuint(capacity_of(s, CORE), ==, 6);
        g_assert_cmpuint(capacity_of(s, ATOM), ==, SLOT_UNKNOWN);
        g_assert_cmpuint(machine.n_measured[CORE], ==, 1);
        g_assert_cmpuint(machine.n_saved, ==, 1);
        machine.answer = 0;
        for (int i = 0; i < 2; i++)
                g_assert_cmpint(capacities_need(s->capacities), ==, 0);
        g_assert_cmpuint(capacity_of(s, ATOM), ==, 6);
        g_assert_cmpuint(machine.n_measured[CORE], ==, 1);
        g_assert_cmpuint(machine.n_measured[ATOM], ==, 3);
        g_assert_cmpuint(machine.n_saved, ==, 2);
}

static void test_want_of_memory_is_told_and_tried_again(Stage *s, gconstpointer unused) {
        machine.answer = -ENOMEM;
        g_assert_cmpint(capacities_need(s->capacities), ==, -ENOMEM);
        machine.answer = 0;
        g_assert_cmpint(capacities_need(s->capacities), ==, 0);
        g_assert_cmpuint(capacity_of(s, ATOM), ==, 6);
        g_assert_cmpuint(machine.n_measured[SOFTWARE], ==, 1);
}

#define ADD(name, test) g_test_add("/capacities/" name, Stage, NULL, stage_up, test, stage_down)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        ADD("all-is-measured-once", test_all_is_measured_once);
        ADD("pmu-without-a-cpu-is-measured-when-it-has-one",
            test_pmu_without_a_cpu_is_measured_when_it_has_one);
        ADD("want-of-memory-is-told-and-tried-again", test_want_of_memory_is_told_and_tried_again);
        return g_test_run();
}
