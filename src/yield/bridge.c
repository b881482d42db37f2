/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bridge.h"

#include <string.h>

#define RETRY_MIN_USEC (10 * USEC_PER_MSEC)
#define RETRY_MAX_USEC USEC_PER_SEC

/* The deadline of a hold is that much behind the end of the grace: timers are late. */
#define GRACE_SLACK_USEC (100 * USEC_PER_MSEC)

static Bridge *bridge_of(const Yielder *y) {
        return container_of(y, Bridge, yielder);
}

static void bridge_set_timer(Bridge *b, uint64_t usec) {
        (void) sd_event_source_set_time_relative(b->timer, usec);
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT);
}

/* 0: given way; 1: not yet, see the timer. */
static int bridge_take(Bridge *b) {
        BridgeAnswer answer = b->ops->take(b, b->host->holder(b->host->userdata));

        b->taken = answer == BRIDGE_TAKEN || answer == BRIDGE_ASKED;
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
        b->taken = false;
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

int bridge_init(Bridge *b, const BridgeOps *ops, const BridgeHost *host, uint64_t grace_usec) {
        bool yielded;
        int r;

        b->yielder.ops = &bridge_ops;
        b->yielder.every_hold = true;
        b->yielder.plan = (PlanMonitor){ .use = 1 };
        b->ops = ops;
        b->host = host;
        b->grace_usec = grace_usec;
        b->retry_usec = RETRY_MIN_USEC;
        r = sd_event_add_time_relative(host->event, &b->timer, CLOCK_MONOTONIC, 0, 1, bridge_timed,
                                       b);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(b->timer, SD_EVENT_OFF);
        r = roster_enroll(host->roster, &b->yielder, &yielded);
        if (r < 0) {
                b->timer = sd_event_source_disable_unref(b->timer);
                return r;
        }
        if (yielded)
                (void) bridge_take(b);
        return 0;
}

Bridge *bridge_free(Bridge *b) {
        if (!b)
                return NULL;
        bridge_release(b);
        if (b->yielder.roster)
                roster_dismiss(b->yielder.roster, &b->yielder);
        sd_event_source_disable_unref(b->timer);
        free(b->said);
        b->ops->free(b);
        return NULL;
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
