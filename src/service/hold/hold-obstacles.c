/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-obstacles.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/hold/hold-claims.h"

int hold_add_obstacle(void *hold, pid_t pid, const char *who) {
        Hold *h = hold;
        HoldObstacle *obstacles;
        char *copy;

        if (h->n_obstacles >= HOLD_OBSTACLES_MAX)
                return 0;
        for (size_t i = 0; i < h->n_obstacles; i++)
                if (h->obstacles[i].pid == pid && strcmp(h->obstacles[i].who, who) == 0)
                        return 0; /* as with many counters of one client */
        obstacles = reallocarray(h->obstacles, h->n_obstacles + 1, sizeof(HoldObstacle));
        if (!obstacles)
                return 0;
        h->obstacles = obstacles;
        copy = strdup(who);
        if (copy)
                h->obstacles[h->n_obstacles++] = (HoldObstacle){ pid, copy };
        return 0;
}

typedef struct ObstacleVisit {
        int (*f)(void *userdata, pid_t pid, const char *who);
        void *userdata;
} ObstacleVisit;

static int visit_asked(void *userdata, const Yielder *y) {
        const ObstacleVisit *visit = userdata;
        char who[128];
        pid_t pid;

        y->ops->describe(y, &pid, who, sizeof(who));
        return visit->f(visit->userdata, pid, who);
}

static int visit_blocker(void *userdata, LedgerHold *l) {
        const Hold *h = container_of(l, Hold, ledger);
        const ObstacleVisit *visit = userdata;
        char who[160];

        (void) snprintf(who, sizeof(who), "hold %" PRIu64 " of uid %u (%s, %s)", h->object.id,
                        (unsigned) h->object.uid, h->request.exclusive ? "exclusive" : "shared",
                        hold_state_name(h->state));
        return visit->f(visit->userdata, h->pid, who);
}

int hold_obstacles(const Hold *h, int (*f)(void *userdata, pid_t pid, const char *who),
                   void *userdata) {
        ObstacleVisit visit = { f, userdata };
        int r = 0;

        if (h->state == HOLD_YIELDING)
                r = yielders_asked(&h->context->yielders, &h->request.what.scope, visit_asked,
                                   &visit);
        else if (h->state == HOLD_QUEUED)
                r = ledger_blockers(&h->context->ledger, &h->ledger, visit_blocker, &visit);
        if (r < 0)
                return r;
        for (size_t i = 0; i < h->n_obstacles; i++) {
                r = f(userdata, h->obstacles[i].pid, h->obstacles[i].who);
                if (r < 0)
                        return r;
        }
        return 0;
}

void hold_add_asked(Hold *h) {
        ObstacleVisit visit = { hold_add_obstacle, h };

        (void) yielders_asked(&h->context->yielders, &h->request.what.scope, visit_asked, &visit);
}

void hold_add_blockers(Hold *h) {
        ObstacleVisit visit = { hold_add_obstacle, h };

        (void) ledger_blockers(&h->context->ledger, &h->ledger, visit_blocker, &visit);
}

void hold_add_users(Hold *h, const User *users, size_t n_users, bool holders) {
        for (size_t i = 0; i < n_users; i++) {
                const User *u = &users[i];
                char who[sizeof(u->command) + sizeof(u->unit) + 64];

                if (hold_is_holders(h, u->uid, u->pid, u->oldest) != holders)
                        continue;
                (void) snprintf(who, sizeof(who), "%s%s%s%s, %u perf events", u->command,
                                u->unit[0] ? " (" : "", u->unit, u->unit[0] ? ")" : "",
                                u->n_descriptors);
                (void) hold_add_obstacle(h, u->pid, who);
        }
}
