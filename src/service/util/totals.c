/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "totals.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "core/clock.h"

#define TOTALS_FILE    "totals"
#define TOTALS_VERSION 1u

static const char *const total_names[] = {
        [TOTAL_HOLDS_RELEASED] = "holds_released",
        [TOTAL_HOLDS_LEASE_CLOSED] = "holds_lease_closed",
        [TOTAL_HOLDS_EXPIRED] = "holds_expired",
        [TOTAL_HOLDS_TIMED_OUT] = "holds_timed_out",
        [TOTAL_HOLDS_OBSTRUCTED] = "holds_obstructed",
        [TOTAL_HOLDS_REVOKED] = "holds_revoked",
        [TOTAL_GRANTS_CONFIRMED] = "grants_confirmed",
        [TOTAL_GRANTS_UNCONFIRMED] = "grants_unconfirmed",
        [TOTAL_LATENCY_USEC] = "latency_usec",
        [TOTAL_HELD_USEC] = "held_usec",
        [TOTAL_YIELDED_USEC] = "yielded_usec",
        [TOTAL_COUNTERS_OPENED] = "counters_opened",
        [TOTAL_EVENTS_OPENED] = "events_opened",
        [TOTAL_DENIALS] = "denials",
        [TOTAL_TICKS] = "ticks",
        [TOTAL_TICKS_MISSED] = "ticks_missed",
        [TOTAL_STARTS] = "starts",
};

static const Total level_totals[] = {
        [LEVEL_HELD] = TOTAL_HELD_USEC,
        [LEVEL_YIELDED] = TOTAL_YIELDED_USEC,
};

/* Space is allocated at once: a store to a mapped page for which there is none is a SIGBUS. The
 * file of an earlier version of the service is shorter, and what it lacks reads as 0. */
static int totals_map(Totals *t, int fd) {
        void *page;
        int r = posix_fallocate(fd, 0, sizeof(TotalsPage));

        if (r != 0)
                return -r;
        page = mmap(NULL, sizeof(TotalsPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        t->file = page;
        if (t->file->version != TOTALS_VERSION)
                *t->file = (TotalsPage){ .version = TOTALS_VERSION };
        return 0;
}

static int totals_open_file(Totals *t, const char *directory) {
        _cleanup_close_ int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

        if (dir < 0)
                return -errno;
        fd = openat(dir, TOTALS_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        return fd < 0 ? -errno : totals_map(t, fd);
}

int totals_open(Totals *t, const char *directory) {
        int r = -ENOENT;

        *t = TOTALS_NULL;
        if (directory)
                r = totals_open_file(t, directory);
        totals_add(t, TOTAL_STARTS, 1);
        return r;
}

static TotalsPage *totals_page(Totals *t) {
        return t->file ?: &t->own;
}

void totals_add(Totals *t, Total total, uint64_t n) {
        totals_page(t)->values[total] += n;
}

/* Adds what there was until now. */
static void level_add_up(Totals *t, Level level) {
        TotalsLevel *l = &totals_page(t)->levels[level];
        uint64_t now = now_usec(CLOCK_BOOTTIME);

        totals_add(t, level_totals[level], l->n * (now - l->since_usec));
        l->since_usec = now;
}

void totals_level(Totals *t, Level level, int change) {
        t->n[level] += change;
        level_add_up(t, level);
        totals_page(t)->levels[level].n = (uint64_t) t->n[level];
}

void totals_settle(Totals *t) {
        for (int level = 0; level < _LEVEL_MAX; level++)
                if (t->n[level] == 0)
                        totals_page(t)->levels[level].n = 0;
}

uint64_t totals_value(Totals *t, Total total) {
        for (int level = 0; level < _LEVEL_MAX; level++)
                if (level_totals[level] == total)
                        level_add_up(t, (Level) level);
        return totals_page(t)->values[total];
}

void totals_close(Totals *t) {
        for (int level = 0; level < _LEVEL_MAX; level++)
                level_add_up(t, (Level) level);
        if (t->file)
                (void) munmap(t->file, sizeof(TotalsPage));
        t->file = NULL;
}

const char *total_name(Total total) {
        return total_names[total];
}
