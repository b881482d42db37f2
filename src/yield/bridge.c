/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bridge.h"

#include <string.h>

#define RETRY_MIN_USEC (10 * USEC_PER_MSEC)
#define RETRY_MAX_USEC USEC_PER_SEC

/* Timers are late, so a hold's deadline is this much after the end of the grace. */
#define GRACE_SLACK_USEC (100 * USEC_PER_MSEC)

static Bridge *bridge_of(const Yielder *y) {
        return container_of(y, Bridge, yielder);
}

static uint64_t bridge_now(const Bridge *b) {
        uint64_t usec = 0;

        (void) sd_event_now(b->host->event, CLOCK_MONOTONIC, &usec);
        return usec;
}

static void bridge_set_taken(Bridge *b, bool taken) {
        if (taken == b->taken)
                return;
        b->taken = taken;
        if (b->host->changed)
                b->host->changed(b->host->userdata, b);
}

static void bridge_set_timer(Bridge *b, uint64_t usec) {
        (void) sd_event_source_set_time_relative(b->timer, usec);
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT);
}

/* As YielderOps.yield(). */
static int bridge_take(Bridge *b) {
        BridgeAnswer answer = b->ops->take(b, b->host->holder(b->host->userdata));

        b->grace_until_usec = bridge_now(b);
        if (answer == BRIDGE_TAKEN)
                b->grace_until_usec += MIN(b->grace_usec, UINT64_MAX - b->grace_until_usec);
        bridge_set_taken(b, answer == BRIDGE_TAKEN || answer == BRIDGE_ASKED);
        yielder_set_absent(&b->yielder, answer == BRIDGE_ABSENT);
        switch (answer) {
        case BRIDGE_ABSENT:
                return 0;
        case BRIDGE_ASKED:
                return 1;
        case BRIDGE_TAKEN:
                bridge_set_timer(b, b->grace_usec);
                return 1;
        default:
                bridge_set_timer(b, b->retry_usec);
                b->retry_usec = MIN(b->retry_usec * 2, RETRY_MAX_USEC);
                return 1;
        }
}

static int bridge_timed(sd_event_source *source, uint64_t usec, void *userdata) {
        Bridge *b = userdata;

        if (b->taken || bridge_take(b) == 0)
                yielder_acknowledge(&b->yielder);
        return 0;
}

static int bridge_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        Bridge *b = bridge_of(y);

        b->retry_usec = RETRY_MIN_USEC;
        return bridge_take(b);
}

static void bridge_release(Bridge *b) {
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_OFF);
        if (b->taken)
                b->ops->release(b);
        bridge_set_taken(b, false);
}

static void bridge_resume(Yielder *y) {
        bridge_release(bridge_of(y));
}

static void bridge_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        const Bridge *b = bridge_of(y);

        b->ops->describe(b, ret_pid, buffer, size);
}

static uint64_t bridge_grace(const Yielder *y) {
        const Bridge *b = bridge_of(y);

        if (b->grace_usec == 0 || !bridge_is_active(b))
                return 0;
        return b->grace_usec > UINT64_MAX - GRACE_SLACK_USEC ? UINT64_MAX
                                                             : b->grace_usec + GRACE_SLACK_USEC;
}

static const YielderOps bridge_ops = {
        .yield = bridge_yield,
        .resume = bridge_resume,
        .describe = bridge_describe,
        .grace = bridge_grace,
};

/* Continues with what an earlier run took: it counts as yielded after its grace. */
static void bridge_restore(Bridge *b, BridgePast *past, bool yielded) {
        BridgeAnswer answer = b->ops->restore(b, past, yielded);
        uint64_t until = unpack_u64(&past->state, "grace_until_usec", 0), now = bridge_now(b);

        b->grace_until_usec = until;
        bridge_set_taken(b, answer == BRIDGE_TAKEN || answer == BRIDGE_ASKED);
        if (!b->taken)
                return;
        if (!yielded) {
                bridge_release(b);
                return;
        }
        if (answer == BRIDGE_TAKEN && until <= now)
                return;
        yielder_set_state(&b->yielder, YIELDER_ASKED);
        if (answer == BRIDGE_TAKEN)
                bridge_set_timer(b, MIN(until - now, b->grace_usec));
}

int bridge_init(Bridge *b, const BridgeOps *ops, const BridgeHost *host, uint64_t grace_usec) {
        bool yielded;
        int r;

        b->yielder.ops = &bridge_ops;
        b->yielder.every_hold = true;
        b->yielder.plan = (PlanMonitor){ .use.takes.general = 1 };
        b->ops = ops;
        b->host = host;
        b->grace_usec = grace_usec;
        b->retry_usec = RETRY_MIN_USEC;
        r = sd_event_add_time_relative(host->event, &b->timer, CLOCK_MONOTONIC, 0, 1, bridge_timed,
                                       b);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_OFF);
        r = yielders_enroll(host->yielders, &b->yielder);
        if (r < 0) {
                b->timer = sd_event_source_disable_unref(b->timer);
                return r;
        }
        yielded = b->yielder.state == YIELDER_YIELDED;
        if (host->past && unpack_u64(&host->past->state, "taken", false))
                bridge_restore(b, host->past, yielded);
        if (yielded && !b->taken)
                (void) bridge_take(b);
        return 0;
}

static void bridge_destroy(Bridge *b) {
        if (b->yielder.yielders)
                yielders_dismiss(b->yielder.yielders, &b->yielder);
        sd_event_source_disable_unref(b->timer);
        free(b->said);
        b->ops->free(b);
}

Bridge *bridge_free(Bridge *b) {
        if (!b)
                return NULL;
        bridge_release(b);
        bridge_destroy(b);
        return NULL;
}

void bridge_drop(Bridge *b) {
        if (!b)
                return;
        /* so that its end counts as no acknowledgement */
        yielder_set_state(&b->yielder, YIELDER_COUNTING);
        bridge_destroy(b);
}

void bridge_pack(const Bridge *b, Pack *p) {
        pack_u64(p, "taken", b->taken);
        pack_u64(p, "grace_until_usec", b->grace_until_usec);
}

int bridge_fd(const Bridge *b) {
        return b->taken && b->ops->fd ? b->ops->fd(b) : -1;
}

void bridge_answered(Bridge *b) {
        yielder_acknowledge(&b->yielder);
}

void bridge_try(Bridge *b) {
        if (b->yielder.state != YIELDER_COUNTING && !b->taken && bridge_take(b) == 0)
                yielder_acknowledge(&b->yielder);
}

void bridge_hand_over(Bridge *b, uid_t uid) {
        if (b->taken && b->ops->hand_over)
                b->ops->hand_over(b, uid);
}

void bridge_say(Bridge *b, int priority, const char *text) {
        if (text && b->said && strcmp(text, b->said) == 0)
                return;
        free(b->said);
        b->said = text ? strdup(text) : NULL;
        if (text)
                b->host->say(b->host->userdata, priority, text);
}
