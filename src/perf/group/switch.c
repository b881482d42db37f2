/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "switch.h"

#include <stdlib.h>
#include <sys/ioctl.h>

typedef struct Switch {
        int fd;
        unsigned long request;
} Switch;

#define CALLS_A_THREAD 8u /* with fewer, waking it takes longer than the calls themselves */

static Team *team;

static struct {
        unsigned n_gathers;
        size_t n, n_allocated;
        Switch *items; /* they stay allocated: the next hold switches as many */
} gathered;

void switches_set_team(Team *t) {
        team = t;
}

static void switch_now(void *userdata, size_t i) {
        const Switch *s = userdata;

        (void) ioctl(s[i].fd, s[i].request, 0);
}

static bool gathered_add(Switch s) {
        if (gathered.n == gathered.n_allocated) {
                size_t n = MAX(2 * gathered.n, UINT64_C(64));
                Switch *items = reallocarray(gathered.items, n, sizeof(Switch));

                if (!items)
                        return false;
                gathered.items = items;
                gathered.n_allocated = n;
        }
        gathered.items[gathered.n++] = s;
        return true;
}

void switch_event(int fd, unsigned long request) {
        Switch s = { fd, request };

        if (gathered.n_gathers == 0 || !team || !gathered_add(s))
                switch_now(&s, 0);
}

void switches_flush(void) {
        if (gathered.n == 0)
                return;
        team_run(team, gathered.n, CALLS_A_THREAD, switch_now, gathered.items);
        gathered.n = 0;
}

void switches_gather(void) {
        gathered.n_gathers++;
}

void switches_settle(void) {
        if (--gathered.n_gathers == 0)
                switches_flush();
}
