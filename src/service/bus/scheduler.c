/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scheduler.h"

#include <inttypes.h>
#include <search.h>
#include <string.h>

#include "core/clock.h"
#include "service/bus/message-size.h"
#include "service/daemon/service.h"
#include "service/util/log.h"
#include "service/util/reply.h"

typedef struct Turn Turn;
typedef struct SchedulerUser SchedulerUser;

/* A call in line. */
struct Turn {
        sd_bus_message *m;
        Peer *peer;
        QuotaCharge call, bytes;
        TAILQ_ENTRY(Turn) entry;
};

TAILQ_HEAD(TurnLine, Turn);

struct SchedulerUser {
        uid_t uid;
        struct TurnLine line;
        uint64_t used_usec;        /* at as_of_usec */
        uint64_t as_of_usec;       /* CLOCK_MONOTONIC, as all times here */
        uint64_t rests_until_usec; /* not served before */
        TAILQ_ENTRY(SchedulerUser) users;
};

TAILQ_HEAD(SchedulerUserList, SchedulerUser);

struct Scheduler {
        Service *service;
        struct SchedulerUserList waiting; /* who has a line, in the order of their turns */
        struct SchedulerUserList others;  /* whose use is remembered, the latest one first */
        size_t n_others;
        size_t n_waiting;
        unsigned n_read;        /* since somebody was served */
        void *due;              /* tree of messages that have had their turn and come again */
        SchedulerUser *current; /* whose call is being handled */
        uint64_t since_usec;
        sd_event_source *serve; /* when there is nothing else to do */
        sd_event_source *clock; /* when somebody has rested */
        uint64_t unsent_usec;   /* since when the bus has not taken all that we send; 0: it has */
        bool said;              /* that it does not */
};

#define OTHERS_MAX 256u

/* ---- users ---- */

static SchedulerUser *list_find(const struct SchedulerUserList *list, uid_t uid) {
        SchedulerUser *u;

        TAILQ_FOREACH (u, list, users)
                if (u->uid == uid)
                        break;
        return u;
}

static void user_free(Scheduler *t, SchedulerUser *u) {
        if (t->current == u)
                t->current = NULL;
        free(u);
}

static void others_trim(Scheduler *t) {
        while (t->n_others > OTHERS_MAX) {
                SchedulerUser *u = TAILQ_LAST(&t->others, SchedulerUserList);

                TAILQ_REMOVE(&t->others, u, users);
                t->n_others--;
                user_free(t, u);
        }
}

static void others_add(Scheduler *t, SchedulerUser *u) {
        TAILQ_INSERT_HEAD(&t->others, u, users);
        t->n_others++;
        others_trim(t);
}

/* NULL: no memory. */
static SchedulerUser *user_get(Scheduler *t, uid_t uid) {
        SchedulerUser *u = list_find(&t->others, uid) ?: list_find(&t->waiting, uid);

        if (u)
                return u;
        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;
        u->uid = uid;
        TAILQ_INIT(&u->line);
        others_add(t, u);
        return u;
}

/* What one has used is forgotten as time goes by. */
static uint64_t user_used(SchedulerUser *u, uint64_t now) {
        uint64_t eased = now > u->as_of_usec ? (now - u->as_of_usec) / SCHEDULER_EASE : 0;

        u->used_usec -= MIN(u->used_usec, eased);
        u->as_of_usec = now;
        return u->used_usec;
}

/* ---- what calls cost ---- */

static void turn_begin(Scheduler *t, SchedulerUser *u) {
        t->current = u;
        t->since_usec = now_usec(CLOCK_MONOTONIC);
}

/* The call has been handled. */
static void turn_end(Scheduler *t) {
        SchedulerUser *u = t->current;
        uint64_t now, cost, used;

        if (!u)
                return;
        t->current = NULL;
        now = now_usec(CLOCK_MONOTONIC);
        cost = now - t->since_usec;
        used = user_used(u, now);
        u->used_usec = used + cost;
        if (cost >= SCHEDULER_COSTLY_USEC && u->used_usec >= SCHEDULER_REST_USEC)
                u->rests_until_usec = now + SCHEDULER_REST * cost;
}

/* ---- messages that come again ---- */

static int compare_messages(const void *a, const void *b) {
        return ((uintptr_t) a > (uintptr_t) b) - ((uintptr_t) a < (uintptr_t) b);
}

/* Whether it has come before, and waits for its turn in the queue of the bus. */
static bool turn_comes_again(const Scheduler *t, const sd_bus_message *m) {
        return t->due && tfind(m, &t->due, compare_messages);
}

static bool turn_is_due(Scheduler *t, sd_bus_message *m) {
        return t->due && tdelete(m, &t->due, compare_messages);
}

int scheduler_again(Scheduler *t, sd_bus_message *m) {
        int r;

        if (!tsearch(m, &t->due, compare_messages))
                return -ENOMEM;
        r = sd_bus_enqueue_for_read(t->service->bus, m);
        if (r < 0)
                (void) tdelete(m, &t->due, compare_messages);
        return MIN(r, 0);
}

/* ---- lines ---- */

static void turn_free(Scheduler *t, SchedulerUser *u, Turn *turn) {
        TAILQ_REMOVE(&u->line, turn, entry);
        t->n_waiting--;
        quota_release(&turn->call);
        quota_release(&turn->bytes);
        sd_bus_message_unref(turn->m);
        peer_unref(turn->peer);
        free(turn);
        if (TAILQ_EMPTY(&u->line)) {
                TAILQ_REMOVE(&t->waiting, u, users);
                others_add(t, u);
        }
}

static int turn_charge(Scheduler *t, Turn *turn, Refusal *why) {
        uint64_t weight;
        int r = message_size(turn->m, MESSAGE_SIZE_MAX, &weight);

        if (r >= 0)
                r = quota_charge(&t->service->quota, turn->peer->uid, QUOTA_QUEUED, 1, &turn->call,
                                 why);
        if (r == 0)
                r = quota_charge(&t->service->quota, turn->peer->uid, QUOTA_QUEUED_BYTES, weight,
                                 &turn->bytes, why);
        return r;
}

static int turn_new(Scheduler *t, SchedulerUser *u, Peer *peer, sd_bus_message *m, Refusal *why) {
        Turn *turn = calloc(1, sizeof(*turn));
        int r;

        if (!turn)
                return -ENOMEM;
        turn->m = m;
        turn->peer = peer;
        r = turn_charge(t, turn, why);
        if (r != 0) {
                quota_release(&turn->call);
                free(turn);
                return r;
        }
        (void) sd_bus_message_ref(m);
        (void) peer_ref(peer);
        if (TAILQ_EMPTY(&u->line)) {
                TAILQ_REMOVE(&t->others, u, users);
                t->n_others--;
                TAILQ_INSERT_TAIL(&t->waiting, u, users);
        }
        TAILQ_INSERT_TAIL(&u->line, turn, entry);
        t->n_waiting++;
        return 0;
}

/* The next who may be served; otherwise when somebody may. */
static SchedulerUser *scheduler_next(Scheduler *t, uint64_t now, uint64_t *ret_usec) {
        SchedulerUser *u;

        *ret_usec = UINT64_MAX;
        TAILQ_FOREACH (u, &t->waiting, users) {
                if (u->rests_until_usec <= now)
                        break;
                *ret_usec = MIN(*ret_usec, u->rests_until_usec);
        }
        return u;
}

/* The first in line gets its turn, and its user is the last then. */
static void user_serve(Scheduler *t, SchedulerUser *u) {
        Turn *turn = TAILQ_FIRST(&u->line);
        int r = scheduler_again(t, turn->m);

        if (r < 0)
                reply_failure_later(turn->m, r, NULL);
        TAILQ_REMOVE(&t->waiting, u, users);
        TAILQ_INSERT_TAIL(&t->waiting, u, users);
        turn_free(t, u, turn);
        t->n_read = 0;
}

static uint64_t scheduler_n_unsent(const Scheduler *t) {
        uint64_t n = 0;

        (void) sd_bus_get_n_queued_write(t->service->bus, &n);
        return n;
}

/* Since when there has always been something that the bus has not taken. */
static void scheduler_watch_unsent(Scheduler *t) {
        if (scheduler_n_unsent(t) > 0) {
                t->unsent_usec = t->unsent_usec ?: now_usec(CLOCK_MONOTONIC);
                return;
        }
        if (t->said)
                log_plain(LOG_NOTICE, "The bus takes what the service sends again.");
        t->unsent_usec = 0;
        t->said = false;
}

/* Whether the bus does not take what we send. That it lasts is said once, until it is over. */
static bool scheduler_are_stuck(Scheduler *t) {
        bool lasts;

        scheduler_watch_unsent(t);
        lasts = t->unsent_usec > 0 &&
                now_usec(CLOCK_MONOTONIC) - t->unsent_usec >= SCHEDULER_UNSENT_USEC;
        if (lasts && !t->said) {
                t->said = true;
                log_event(LOG_WARNING, LOG_ID_DEGRADED,
                          "The bus does not take what the service sends: some client does not read "
                          "its answers (see perfallocd(8)). Calls wait until it does.",
                          NULL);
        }
        return lasts || scheduler_n_unsent(t) >= SCHEDULER_UNSENT_MAX;
}

/* Somebody gets his turn, now or when he may. */
static void scheduler_serve(Scheduler *t) {
        uint64_t now = now_usec(CLOCK_MONOTONIC), next = UINT64_MAX;
        bool stuck = scheduler_are_stuck(t);
        SchedulerUser *u = stuck ? NULL : scheduler_next(t, now, &next);

        if (u)
                user_serve(t, u);
        else if (stuck)
                next = now + USEC_PER_SEC / 10;
        (void) sd_event_source_set_time(t->clock, u ? UINT64_MAX : next);
        (void) sd_event_source_set_enabled(t->serve,
                                           u && t->n_waiting > 0 ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int scheduler_have_time(sd_event_source *source, void *userdata) {
        scheduler_serve(userdata);
        return 0;
}

static int scheduler_rested(sd_event_source *source, uint64_t usec, void *userdata) {
        Scheduler *t = userdata;

        (void) sd_event_source_set_time(source, UINT64_MAX);
        if (t->n_waiting > 0)
                scheduler_serve(t);
        return 0;
}

/* Before each turn of the loop: what was handled in the last one has been handled by now. */
static int scheduler_prepare(sd_event_source *source, void *userdata) {
        turn_end(userdata);
        scheduler_watch_unsent(userdata);
        return 0;
}

/* ---- calls that arrive ---- */

/* The call is refused, unless nobody would hear it. */
static int turn_refuse(Scheduler *t, sd_bus_message *m, int r, const Refusal *why,
                       sd_bus_error *error) {
        if (sd_bus_message_get_expect_reply(m) == 0 ||
            scheduler_n_unsent(t) >= SCHEDULER_REFUSED_MAX)
                return 1;
        return reply_failure(r, why, error);
}

static bool user_may_go_ahead(Scheduler *t, SchedulerUser *u) {
        if (!TAILQ_EMPTY(&u->line) || scheduler_are_stuck(t))
                return false;
        return u->uid == 0 || user_used(u, now_usec(CLOCK_MONOTONIC)) < SCHEDULER_FREE_USEC;
}

static int scheduler_filter(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Scheduler *t = userdata;
        Refusal why = REFUSAL_NULL;
        SchedulerUser *u;
        Peer *peer;
        bool again;
        int r;

        turn_end(t);
        if (!sd_bus_message_is_method_call(m, NULL, NULL))
                return 0;
        peer = peers_sender(t->service->peers, m);
        again = turn_is_due(t, m) || auth_knows(t->service->auth, m);
        u = user_get(t, peer->uid);
        if (!u) /* what comes again is waited for by what it has begun */
                return again ? 0 : -ENOMEM;
        if (again || user_may_go_ahead(t, u)) {
                turn_begin(t, u);
                return 0;
        }
        r = turn_new(t, u, peer, m, &why);
        if (r != 0)
                return turn_refuse(t, m, r, &why, error);
        (void) sd_event_source_set_enabled(t->serve, SD_EVENT_ON);
        if (++t->n_read >= SCHEDULER_READ_MAX)
                scheduler_serve(t);
        return 1;
}

/* Before anything remembers it. */
static int scheduler_guard_filter(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Scheduler *t = userdata;
        Refusal why = REFUSAL_NULL;
        uint64_t weight;
        int r;

        if (!sd_bus_message_is_method_call(m, NULL, NULL) || turn_comes_again(t, m))
                return 0;
        r = message_size(m, MESSAGE_SIZE_MAX, &weight);
        if (r < 0 || weight <= MESSAGE_SIZE_MAX)
                return r;
        r = refuse(&why, REFUSAL_LIMITS_EXCEEDED,
                   "the call is larger than %u bytes, as much as one may be", MESSAGE_SIZE_MAX);
        return turn_refuse(t, m, r, &why, error);
}

/* ---- start and end ---- */

static int scheduler_add_sources(Scheduler *t) {
        sd_event *event = t->service->event;
        int r;

        r = sd_event_add_defer(event, &t->serve, scheduler_have_time, t);
        if (r >= 0)
                r = sd_event_source_set_enabled(t->serve, SD_EVENT_OFF);
        if (r >= 0) /* what has come on the bus is read first */
                r = sd_event_source_set_priority(t->serve, SD_EVENT_PRIORITY_NORMAL + 1);
        if (r >= 0)
                r = sd_event_add_time(event, &t->clock, CLOCK_MONOTONIC, UINT64_MAX, 1000,
                                      scheduler_rested, t);
        if (r >= 0)
                r = sd_event_source_set_enabled(t->clock, SD_EVENT_ON);
        if (r >= 0)
                r = sd_event_source_set_prepare(t->clock, scheduler_prepare);
        return r;
}

int scheduler_new(Service *s, Scheduler **ret) {
        Scheduler *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return -ENOMEM;
        t->service = s;
        TAILQ_INIT(&t->waiting);
        TAILQ_INIT(&t->others);
        r = scheduler_add_sources(t);
        if (r >= 0)
                r = sd_bus_add_filter(s->bus, NULL, scheduler_filter, t);
        if (r < 0) {
                scheduler_free(t);
                return r;
        }
        *ret = t;
        return 0;
}

int scheduler_guard(Scheduler *t) {
        return sd_bus_add_filter(t->service->bus, NULL, scheduler_guard_filter, t);
}

void scheduler_forget_peer(Scheduler *t, const Peer *peer) {
        SchedulerUser *u = list_find(&t->waiting, peer->uid);
        Turn *turn, *next;

        for (turn = u ? TAILQ_FIRST(&u->line) : NULL; turn; turn = next) {
                next = TAILQ_NEXT(turn, entry);
                if (turn->peer == peer)
                        turn_free(t, u, turn);
        }
}

size_t scheduler_n_waiting(const Scheduler *t) {
        return t ? t->n_waiting : 0;
}

static void due_forget(void *m) {
        /* the queue of the bus has them */
}

Scheduler *scheduler_free(Scheduler *t) {
        SchedulerUser *u;

        if (!t)
                return NULL;
        while ((u = TAILQ_FIRST(&t->waiting)))
                turn_free(t, u, TAILQ_FIRST(&u->line));
        while ((u = TAILQ_FIRST(&t->others))) {
                TAILQ_REMOVE(&t->others, u, users);
                user_free(t, u);
        }
        tdestroy(t->due, due_forget);
        sd_event_source_disable_unref(t->serve);
        sd_event_source_disable_unref(t->clock);
        free(t);
        return NULL;
}
