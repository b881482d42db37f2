/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tick.h"

uint64_t tick_due(const Tick *t) {
        if (t->interval_usec == 0)
                return t->next == 0 ? t->start_usec : TICK_NEVER;
        return t->start_usec + t->next * t->interval_usec;
}

bool tick_take(Tick *t, uint64_t now_usec, uint64_t *ret_slot) {
        uint64_t slot = 0;

        if (now_usec < tick_due(t))
                return false;
        if (t->interval_usec > 0)
                slot = (now_usec - t->start_usec) / t->interval_usec;
        t->next = slot + 1;
        *ret_slot = slot;
        return true;
}

uint64_t tick_count_missed(const TickCount *c, uint64_t slot) {
        return slot - c->next;
}

void tick_count_tell(TickCount *c, uint64_t slot) {
        c->missed += tick_count_missed(c, slot);
        c->next = slot + 1;
        c->told++;
}
