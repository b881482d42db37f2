/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "polkit-check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* How long a cancelled check counts as pending, unless polkit answers before. */
#define CANCEL_USEC (2 * USEC_PER_SEC)

/* How long to wait when the bus accepts no more calls, unless polkit answers before. */
#define RETRY_USEC (100 * USEC_PER_MSEC)

struct Check {
        Checks *checks;
        FairItem item;
        TAILQ_ENTRY(Check) entry;     /* in checks->cancelled, once cancelled or pausing */
        TAILQ_ENTRY(Check) quick;     /* in checks->quick, while slow_usec is not 0 */
        uint64_t slow_usec;           /* CLOCK_MONOTONIC: it is slow from then on */
        const PolkitSubject *subject; /* NULL once cancelled or pausing */
        uid_t uid;
        uint64_t sent_usec; /* CLOCK_MONOTONIC */
        Action action;
        const Details *details;
        bool prompt;
        CheckDone done;
        void *userdata;
        sd_bus_slot *slot; /* while polkit has it */
        char id[32];       /* by which polkit cancels it */
        uint64_t deadline; /* CLOCK_MONOTONIC, µs: of the answer, or in checks->cancelled */
};

static uint64_t checks_now(const Checks *c) {
        uint64_t now = 0;

        (void) sd_event_now(sd_bus_get_event(c->bus), CLOCK_MONOTONIC, &now);
        return now;
}

static void check_leave_quick(Check *check) {
        if (check->slow_usec == 0)
                return;
        TAILQ_REMOVE(&check->checks->quick, check, quick);
        check->slow_usec = 0;
}

static Check *check_free(Check *check) {
        Checks *c = check->checks;

        check_leave_quick(check);
        fairqueue_remove(&c->queue, &check->item);
        sd_bus_slot_unref(check->slot);
        if (!check->subject)
                TAILQ_REMOVE(&c->cancelled, check, entry);
        free(check);
        return NULL;
}

/* Frees the checks in cancelled whose deadline has passed. */
static void checks_reap(Checks *c) {
        uint64_t now = checks_now(c);
        Check *check;

        while ((check = TAILQ_FIRST(&c->cancelled)) && check->deadline <= now)
                check_free(check);
        if (check && sd_event_source_set_time(c->reaper, check->deadline) >= 0)
                (void) sd_event_source_set_enabled(c->reaper, SD_EVENT_ONESHOT);
}

/* The check is over, but counts as pending until the deadline. */
static void check_keep_place(Check *check, uint64_t deadline) {
        Checks *c = check->checks;
        Check *after;

        check->subject = NULL;
        check->details = NULL;
        check->deadline = deadline;
        TAILQ_FOREACH (after, &c->cancelled, entry)
                if (after->deadline > deadline)
                        break;
        if (after)
                TAILQ_INSERT_BEFORE(after, check, entry);
        else
                TAILQ_INSERT_TAIL(&c->cancelled, check, entry);
        checks_reap(c);
}

/* Whether polkit has worked so long for the user that the check counts as pending for a while,
 * before the next one that waits. The time that a person takes does not count. */
static bool check_pause_user(Check *check) {
        Checks *c = check->checks;
        uint64_t now = checks_now(c), cost;

        if (check->sent_usec == 0 || check->item.slow)
                return false;
        cost = now - check->sent_usec;
        if (rate_limit_add(&c->used, check->uid, now, cost) < CHECKS_FREE_USEC ||
            check->item.user->n_waiting == 0)
                return false;
        check->slot = sd_bus_slot_unref(check->slot);
        check_leave_quick(check); /* beside a slow check another one could start */
        check_keep_place(check, now + CHECKS_PAUSE * cost);
        return true;
}

static void check_finish(Check *check, int r, const PolkitAnswer *answer,
                         const sd_bus_error *error) {
        CheckDone done = check->done;
        void *userdata = check->userdata;

        if (!check_pause_user(check))
                check_free(check);
        done(userdata, r, answer, error);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error);

static int check_send(Check *check) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Checks *c = check->checks;
        uint64_t now = checks_now(c);
        int r;

        if (check->deadline == 0)
                check->deadline = check->prompt ? UINT64_MAX : now + CHECK_ANSWER_USEC;
        if (now >= check->deadline) /* the bus has refused it until now */
                return -ETIMEDOUT;

        check->sent_usec = now;
        (void) snprintf(check->id, sizeof(check->id), "perfalloc-%" PRIu64, ++c->last_id);
        r = polkit_check_new(c->bus, check->subject, action_name(check->action), check->details,
                             check->prompt, check->id, &m);
        if (r < 0)
                return r;
        return sd_bus_call_async(c->bus, &check->slot, m, on_answer, check,
                                 check->prompt ? UINT64_MAX : check->deadline - now);
}

/* Sets the timer to when the oldest quick check becomes slow. */
static void checks_watch_quick(Checks *c) {
        const Check *first = TAILQ_FIRST(&c->quick);

        (void) sd_event_source_set_time(c->slow, first ? first->slow_usec : UINT64_MAX);
        (void) sd_event_source_set_enabled(c->slow, first ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void check_enter_quick(Check *check) {
        Checks *c = check->checks;

        check->slow_usec = checks_now(c) + CHECK_SLOW_USEC;
        TAILQ_INSERT_TAIL(&c->quick, check, quick);
        if (TAILQ_FIRST(&c->quick) == check)
                checks_watch_quick(c);
}

/* Starts the next check. False: none may start. */
static bool checks_start_one(Checks *c) {
        FairItem *item = fairqueue_next(&c->queue);
        Check *check;
        int r;

        if (!item)
                return false;
        check = container_of(item, Check, item);
        r = check_send(check);
        if (r < 0)
                check_finish(check, r, NULL, NULL);
        else
                check_enter_quick(check);
        return true;
}

static void checks_pump(Checks *c) {
        while (!c->paused && checks_start_one(c))
                ;
}

static int on_slow(sd_event_source *source, uint64_t usec, void *userdata) {
        Checks *c = userdata;
        uint64_t now = checks_now(c);
        Check *check;

        while ((check = TAILQ_FIRST(&c->quick)) && check->slow_usec <= now) {
                check_leave_quick(check);
                fairqueue_slow(&check->item);
        }
        checks_watch_quick(c);
        checks_pump(c);
        return 0;
}

static void checks_pause(Checks *c) {
        c->paused = sd_event_source_set_time_relative(c->retry, RETRY_USEC) >= 0 &&
                    sd_event_source_set_enabled(c->retry, SD_EVENT_ONESHOT) >= 0;
}

static void checks_resume(Checks *c) {
        c->paused = false;
        (void) sd_event_source_set_enabled(c->retry, SD_EVENT_OFF);
        checks_pump(c);
}

/* One check at a time until polkit answers: the bus may still be full. */
static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Checks *c = userdata;

        if (checks_start_one(c))
                checks_pause(c);
        else
                c->paused = false;
        return 0;
}

/* Whether m is the bus's refusal of a further pending reply. */
static bool is_bus_full(sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m);

        return sender && strcmp(sender, "org.freedesktop.DBus") == 0 &&
               sd_bus_message_is_method_error(m, SD_BUS_ERROR_LIMITS_EXCEEDED);
}

static void check_read_answer(Check *check, sd_bus_message *m) {
        PolkitAnswer answer;
        int r;

        if (sd_bus_message_is_method_error(m, NULL)) {
                check_finish(check, 0, NULL, sd_bus_message_get_error(m));
                return;
        }
        r = polkit_answer_read(m, &answer);
        if (r >= 0)
                check_finish(check, 0, &answer, NULL);
        else if (r == -ENOMEM)
                check_finish(check, r, NULL, NULL);
        else
                check_finish(check, 0, NULL,
                             &SD_BUS_ERROR_MAKE_CONST(SD_BUS_ERROR_INCONSISTENT_MESSAGE,
                                                      "its reply is invalid"));
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Check *check = userdata;
        Checks *c = check->checks;

        check->slot = sd_bus_slot_unref(check->slot);
        if (!check->subject)
                check_free(check);
        else if (is_bus_full(m)) {
                check_leave_quick(check);
                fairqueue_return(&c->queue, &check->item);
                checks_pause(c);
                return 1;
        } else
                check_read_answer(check, m);
        checks_resume(c);
        return 1;
}

static int on_reap(sd_event_source *source, uint64_t usec, void *userdata) {
        checks_reap(userdata);
        checks_pump(userdata);
        return 0;
}

Check *check_cancel(Check *check) {
        Checks *c;

        if (!check)
                return NULL;
        if (!check->item.running)
                return check_free(check);

        /* It counts as pending until polkit drops it. Otherwise clients that call and leave could
         * have any number of checks pending. */
        c = check->checks;
        (void) polkit_cancel(c->bus, check->id);
        check_keep_place(check, checks_now(c) + CANCEL_USEC);
        return NULL;
}

int checks_ask(Checks *c, const PolkitSubject *subject, Action action, const Details *details,
               bool prompt, bool first, CheckDone done, void *userdata, Check **ret) {
        Check *check;
        int r;

        check = malloc(sizeof(*check));
        if (!check)
                return -ENOMEM;
        *check = (Check){
                .checks = c,
                .subject = subject,
                .uid = subject->uid,
                .action = action,
                .details = details,
                .prompt = prompt,
                .done = done,
                .userdata = userdata,
        };
        r = first ? fairqueue_add_first(&c->queue, &check->item, subject->uid)
                  : fairqueue_add(&c->queue, &check->item, subject->uid);
        if (r != 0) {
                free(check);
                return r;
        }
        *ret = check;
        checks_pump(c);
        return 0;
}

int checks_init(Checks *c, sd_bus *bus) {
        sd_event *event = sd_bus_get_event(bus);
        int r;

        *c = (Checks){ .bus = sd_bus_ref(bus) };
        fairqueue_init(&c->queue, CHECKS_USER_MAX, CHECKS_TOTAL_MAX, CHECKS_WAITING_MAX);
        c->queue.quick_max = CHECKS_QUICK_MAX;
        c->used.per_sec = CHECKS_PER_SEC;
        TAILQ_INIT(&c->quick);
        TAILQ_INIT(&c->cancelled);
        r = sd_event_add_time(event, &c->retry, CLOCK_MONOTONIC, UINT64_MAX, RETRY_USEC / 10,
                              on_retry, c);
        if (r < 0)
                return r;
        r = sd_event_add_time(event, &c->slow, CLOCK_MONOTONIC, UINT64_MAX, USEC_PER_MSEC, on_slow,
                              c);
        if (r < 0)
                return r;
        return sd_event_add_time(event, &c->reaper, CLOCK_MONOTONIC, UINT64_MAX, USEC_PER_MSEC,
                                 on_reap, c);
}

void checks_done(Checks *c) {
        while (!TAILQ_EMPTY(&c->cancelled))
                check_free(TAILQ_FIRST(&c->cancelled));
        sd_event_source_disable_unref(c->retry);
        sd_event_source_disable_unref(c->reaper);
        sd_event_source_disable_unref(c->slow);
        sd_bus_unref(c->bus);
}
