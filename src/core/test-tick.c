/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/tick.h"

#include <glib.h>

#define SCHEDULES 2000000
#define WAKES     12
#define SLOTS_MAX 2048

/* The fate of each slot, one by one: a slow reference. */
typedef enum Fate {
        NOT_YET,
        SKIPPED,
        TAKEN, /* taken, but lost before the receiver */
        TOLD,
} Fate;

typedef struct Reference {
        uint64_t start, interval;
        uint8_t fates[SLOTS_MAX]; /* Fate */
        uint64_t n;               /* slots with a fate */
} Reference;

static uint64_t reference_due(const Reference *f, uint64_t slot) {
        uint64_t due = f->start;

        if (f->interval == 0)
                return slot == 0 ? due : TICK_NEVER;
        return due + slot * f->interval;
}

/* The slot to take now, the ones before it skipped; -1 when none is due. */
static int64_t reference_take(Reference *f, uint64_t now) {
        int64_t slot = -1;

        while (reference_due(f, f->n) <= now) {
                g_assert_cmpuint(f->n, <, SLOTS_MAX - 1);
                if (slot >= 0)
                        f->fates[slot] = SKIPPED;
                slot = (int64_t) f->n;
                f->fates[f->n++] = TAKEN;
        }
        return slot;
}

/* The slots before this one, back to the last one told. */
static uint64_t reference_missed(const Reference *f, uint64_t slot) {
        uint64_t missed = 0;

        while (slot-- > 0 && f->fates[slot] != TOLD)
                missed++;
        return missed;
}

static uint32_t random_below(GRand *rand, uint32_t n) {
        return (uint32_t) (g_rand_int(rand) % n);
}

/* The time of the next look: mostly about when the sampler is due, sometimes much later, as after a
 * suspend or while blocked. */
static uint64_t next_wake(GRand *rand, uint64_t now, uint64_t due, uint64_t interval) {
        uint64_t step = MAX(interval, 1u);

        switch (random_below(rand, 8)) {
        case 0:
                return now + random_below(rand, 3);
        case 1:
                return now + random_below(rand, (uint32_t) step);
        case 2:
                return now + random_below(rand, (uint32_t) step * 100 + 1);
        case 3:
                return due == TICK_NEVER || due == 0 ? now : MAX(now, due - 1);
        default:
                return due == TICK_NEVER ? now + 1 : MAX(now, due + random_below(rand, 3));
        }
}

static void run_schedule(GRand *rand) {
        Reference f = { .start = random_below(rand, 1000),
                        .interval = random_below(rand, 10) == 0 ? 0 : random_below(rand, 300) + 1 };
        Tick tick = { .start_usec = f.start, .interval_usec = f.interval };
        TickCount count = {};
        uint64_t now = 0, told = 0, missed = 0;

        for (int i = 0; i < WAKES; i++) {
                uint64_t slot = UINT64_MAX, due = tick_due(&tick);
                int64_t expected;
                bool taken;

                now = next_wake(rand, now, due, f.interval);
                if (random_below(rand, 6) == 0)
                        continue; /* blocked */
                expected = reference_take(&f, now);
                taken = tick_take(&tick, now, &slot);
                g_assert_cmpint(taken, ==, expected >= 0);
                g_assert_cmpuint(tick_due(&tick), ==, reference_due(&f, f.n));
                if (!taken)
                        continue;
                g_assert_cmpuint(slot, ==, (uint64_t) expected);
                g_assert_cmpuint(now, >=, due);
                g_assert_cmpuint(tick_count_missed(&count, slot), ==, reference_missed(&f, slot));
                if (random_below(rand, 4) == 0)
                        continue; /* the record is lost */
                missed += reference_missed(&f, slot);
                tick_count_tell(&count, slot);
                f.fates[slot] = TOLD;
                told++;
                g_assert_cmpuint(count.told, ==, told);
                g_assert_cmpuint(count.missed, ==, missed);
                g_assert_cmpuint(count.told + count.missed, ==, slot + 1);
        }
}

static void test_reference(void) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int_range(0, G_MAXINT32));

        for (int i = 0; i < SCHEDULES; i++)
                run_schedule(rand);
}

static void test_never_early(void) {
        Tick tick = { .start_usec = 1000, .interval_usec = 10 };
        uint64_t slot;

        g_assert_false(tick_take(&tick, 0, &slot));
        g_assert_false(tick_take(&tick, 999, &slot));
        g_assert_true(tick_take(&tick, 1000, &slot));
        g_assert_cmpuint(slot, ==, 0);
        g_assert_false(tick_take(&tick, 1009, &slot));
        g_assert_true(tick_take(&tick, 1010, &slot));
        g_assert_cmpuint(slot, ==, 1);
}

static void test_one_trip(void) {
        Tick tick = { .start_usec = 1000, .interval_usec = 0 };
        uint64_t slot;

        g_assert_true(tick_take(&tick, 5000, &slot));
        g_assert_cmpuint(slot, ==, 0);
        g_assert_cmpuint(tick_due(&tick), ==, TICK_NEVER);
        g_assert_false(tick_take(&tick, UINT64_MAX - 1, &slot));
}

static void test_late_keeps_grid(void) {
        Tick tick = { .start_usec = 0, .interval_usec = 100 };
        uint64_t slot;

        g_assert_true(tick_take(&tick, 99, &slot));
        g_assert_true(tick_take(&tick, 199, &slot)); /* as late as possible */
        g_assert_cmpuint(slot, ==, 1);
        g_assert_cmpuint(tick_due(&tick), ==, 200);
}

static void test_no_burst(void) {
        Tick tick = { .start_usec = 0, .interval_usec = 100 };
        TickCount count = {};
        uint64_t slot;

        g_assert_true(tick_take(&tick, 0, &slot));
        tick_count_tell(&count, slot);
        g_assert_true(tick_take(&tick, 1050, &slot));
        g_assert_cmpuint(slot, ==, 10);
        g_assert_cmpuint(tick_count_missed(&count, slot), ==, 9);
        g_assert_false(tick_take(&tick, 1050, &slot));
        g_assert_cmpuint(tick_due(&tick), ==, 1100);
}

/* The clock goes on while the machine sleeps; a walk through that many slots would take minutes. */
static void test_suspend(void) {
        Tick tick = { .start_usec = 0, .interval_usec = 1 };
        TickCount count = {};
        uint64_t slot;

        g_assert_true(tick_take(&tick, 0, &slot));
        tick_count_tell(&count, slot);
        g_assert_true(tick_take(&tick, TICK_FAR_USEC, &slot));
        g_assert_cmpuint(tick_count_missed(&count, slot), ==, TICK_FAR_USEC - 1);
        g_assert_cmpuint(tick_due(&tick), ==, TICK_FAR_USEC + 1);
}

static void test_far(void) {
        Tick tick = { .start_usec = TICK_FAR_USEC * 2, .interval_usec = TICK_FAR_USEC };
        uint64_t slot;

        g_assert_true(tick_take(&tick, TICK_FAR_USEC * 2, &slot));
        g_assert_cmpuint(tick_due(&tick), ==, TICK_FAR_USEC * 3);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/tick/as-slot-by-slot-over-random-schedules", test_reference);
        g_test_add_func("/tick/never-early", test_never_early);
        g_test_add_func("/tick/interval-0-is-one-tick", test_one_trip);
        g_test_add_func("/tick/late-keeps-the-grid", test_late_keeps_grid);
        g_test_add_func("/tick/skips-and-never-bursts", test_no_burst);
        g_test_add_func("/tick/suspend-is-counted-at-once", test_suspend);
        g_test_add_func("/tick/farthest-start-and-interval-fit", test_far);
        return g_test_run();
}
