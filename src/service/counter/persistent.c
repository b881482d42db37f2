/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "persistent.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/auth/auth.h"
#include "service/auth/trace-rule.h"
#include "service/counter/counter-user.h"
#include "service/counter/open-request.h"
#include "service/util/reply.h"

#define INSPECT_ROUNDS 3 /* while the owner attaches further processes */

/* An OpenPersistent call by another user than the owner: every target is inspected. */
typedef struct PersistentCall {
        Request *call;

        uint64_t id;
        uint64_t attached; /* set->attached when the inspection began */
        int *pidfds;       /* of the targets at that time */
        size_t n_pidfds, n_inspected;
        ReaderJob *job;
        bool other; /* count-other is needed */
        unsigned rounds;
} PersistentCall;

const char *persistent_id(const Counter *c, char buffer[static PERSISTENT_ID_SIZE]) {
        buffer[0] = '\0';
        if (c->set->persistent)
                (void) snprintf(buffer, PERSISTENT_ID_SIZE, "%" PRIu64, c->object.id);
        return buffer;
}

static int persistent_find(Counters *counters, const char *id, Counter **ret, Refusal *why) {
        char again[PERSISTENT_ID_SIZE];
        Counter *c = counter_find(counters, strtoull(id, NULL, 10));

        /* only canonical numbers: not "007" or " 7" */
        if (!c || !c->set->persistent || strcmp(persistent_id(c, again), id) != 0)
                return refuse(why, REFUSAL_UNKNOWN_OBJECT,
                              "there is no persistent counter '%.64s' (ListPersistent lists them)",
                              id);
        *ret = c;
        return 0;
}

/* ---- Persist and Adopt ---- */

int persist_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Counters *counters = c->set->counters;
        Peer *peer = peers_sender(counters->context->peers, m);
        char id[PERSISTENT_ID_SIZE];
        Refusal why = REFUSAL_NULL;
        Asked asked;
        int r = auth_check_owner(counters->context->auth, peer, m, c->set->uid, c->object.path,
                                 &why);

        if (r == 0 && c->set->configured)
                r = refuse(&why, REFUSAL_NOT_PERMITTED,
                           "%s is a configured monitor: it stays as long as it is configured",
                           c->object.path);
        counter_set_ask(c->set, &asked);
        if (r == 0)
                r = auth_check(counters->context->auth, peer, m, ACTION_PERSIST, &asked, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        counter_set_persist(c->set, true);
        return sd_bus_reply_method_return(m, "s", persistent_id(c, id));
}

int adopt_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Counters *counters = c->set->counters;
        Peer *peer = peers_sender(counters->context->peers, m);
        Refusal why = REFUSAL_NULL;
        int r = auth_check_owner(counters->context->auth, peer, m, c->set->uid, c->object.path,
                                 &why);

        if (r == 0 && c->set->configured)
                r = refuse(&why, REFUSAL_NOT_PERMITTED,
                           "%s is a configured monitor: it belongs to no connection",
                           c->object.path);
        if (r == 0)
                r = counter_set_add_user(c->set, peer, false, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        counter_set_persist(c->set, false);
        return sd_bus_reply_method_return(m, NULL);
}

/* ---- OpenPersistent ---- */

static void persistent_call_forget_targets(PersistentCall *c) {
        c->job = reader_job_cancel(c->job);
        for (size_t i = 0; i < c->n_pidfds; i++)
                close_fd(c->pidfds[i]);
        free(c->pidfds);
        c->pidfds = NULL;
        c->n_pidfds = c->n_inspected = 0;
}

static void persistent_call_end(void *work) {
        PersistentCall *c = work;

        persistent_call_forget_targets(c);
        request_done(c->call);
        free(c);
}

static int persistent_call_next(PersistentCall *c);

static void persistent_call_inspected(void *userdata, int r, const ProcessFacts *facts,
                                      const Refusal *why) {
        PersistentCall *c = userdata;

        c->job = NULL;
        c->n_inspected++;
        /* an ended target counts no more; one that cannot be inspected may not be traced */
        if (r == 0 && !facts->zombie)
                c->other |= trace_rule_denies(c->call->peer, facts) != NULL;
        else if (r == REFUSAL_NOT_PERMITTED)
                c->other = true;
        r = MIN(r, 0);
        if (r == 0)
                r = persistent_call_next(c);
        if (r < 0)
                request_fail(c->call, r, NULL);
}

/* Inspects the next target. After the last one the message goes back to its handler. */
static int persistent_call_next(PersistentCall *c) {
        if (c->other || c->n_inspected == c->n_pidfds) {
                request_resume(c->call);
                return 0;
        }
        return reader_inspect(c->call->context->reader, c->pidfds[c->n_inspected],
                              persistent_call_inspected, c, &c->job);
}

static int persistent_call_inspect(PersistentCall *c, const CounterSet *set) {
        const Group *g = set->group;

        persistent_call_forget_targets(c);
        c->attached = set->attached;
        c->rounds++;
        c->pidfds = calloc(MAX(g->n_targets, 1u), sizeof(int));
        if (!c->pidfds)
                return -ENOMEM;
        for (size_t i = 0; i < g->n_targets; i++) {
                int fd = fcntl(g->targets[i].pidfd, F_DUPFD_CLOEXEC, 3);

                if (fd < 0)
                        return -errno;
                c->pidfds[c->n_pidfds++] = fd;
                /* it is not known which processes the descendants are */
                c->other |= g->targets[i].descendants;
        }
        return persistent_call_next(c);
}

static int persistent_call_new(Counters *counters, Peer *peer, sd_bus_message *m,
                               const Counter *counter, PersistentCall **ret, Refusal *why) {
        PersistentCall *c = calloc(1, sizeof(PersistentCall));
        int r;

        if (!c)
                return -ENOMEM;
        c->id = counter->object.id;
        r = request_begin(counters->context, peer, m, c, persistent_call_end, &c->call, why);
        if (r == 0)
                *ret = c;
        else
                persistent_call_end(c);
        return r;
}

/* A reading user is authorized as if they opened the counter now. 0, -EINPROGRESS, or the
 * failure. */
static int persistent_authorize(Counters *counters, Peer *peer, sd_bus_message *m, Counter *counter,
                                PersistentCall **call, Refusal *why) {
        const CounterSet *set = counter->set;
        const Group *g = set->group;
        PersistentCall *c = *call;
        Asked asked;
        int r;

        if (!c) {
                r = persistent_call_new(counters, peer, m, counter, call, why);
                if (r == 0)
                        r = persistent_call_inspect(*call, set);
                return r == 0 ? -EINPROGRESS : r;
        }
        if (!c->other && c->attached != set->attached) {
                if (c->rounds == INSPECT_ROUNDS)
                        return refuse(why, REFUSAL_BUSY,
                                      "%s: processes are being attached to it continuously",
                                      counter->object.path);
                r = persistent_call_inspect(c, set);
                return r == 0 ? -EINPROGRESS : r;
        }
        counter_set_ask(set, &asked);
        return auth_check(counters->context->auth, peer, m,
                          events_actions(&g->events[counter->event], 1, g->scope, c->other), &asked,
                          why);
}

int persistent_open_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counters *counters = userdata;
        Peer *peer = peers_sender(counters->context->peers, m);
        PersistentCall *c = request_work(counters->context, m, persistent_call_end);
        Refusal why = REFUSAL_NULL;
        Counter *counter = NULL;
        const char *id;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_basic(m, 's', &id);
        if (r >= 0)
                r = persistent_find(counters, id, &counter, &why);
        if (r == 0 && !peer->root && peer->uid != counter->set->uid)
                r = persistent_authorize(counters, peer, m, counter, &c, &why);
        if (r == -EINPROGRESS)
                return 1;
        if (r == 0 && peer->gone)
                r = -ESTALE;
        if (r == 0)
                r = counter_set_add_user(counter->set, peer, c && c->other, &why);
        if (c)
                persistent_call_end(c);
        return r == 0 ? sd_bus_reply_method_return(m, "o", counter->object.path)
                      : reply_failure(r, &why, error);
}

/* ---- ListPersistent ---- */

typedef struct Listing {
        sd_bus_message *reply;
        const Peer *peer;
        bool manages;
        bool foreign; /* one of them is another user's */
        int r;
} Listing;

static void listing_look(void *userdata, Object *o) {
        const Counter *c = counter_of_object(o);
        Listing *l = userdata;

        l->foreign |= c->set->persistent && c->set->uid != l->peer->uid;
}

static void listing_append(void *userdata, Object *o) {
        const Counter *c = counter_of_object(o);
        Listing *l = userdata;
        char id[PERSISTENT_ID_SIZE];
        bool seen;

        if (l->r < 0 || !c->set->persistent)
                return;
        seen = l->manages || c->set->uid == l->peer->uid;
        l->r = sd_bus_message_append(l->reply, "(sos)", persistent_id(c, id), c->object.path,
                                     seen ? c->set->group->events[c->event].name : "");
}

int persistent_list_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Counters *counters = userdata;
        Listing l = { .peer = peers_sender(counters->context->peers, m) };
        int r = 0;

        objects_walk(&counters->objects, listing_look, &l);
        l.manages = l.peer->root;
        if (l.foreign && !l.manages) {
                /* polkit is asked only if the answer makes a difference */
                r = auth_may_manage(counters->context->auth,
                                    peers_sender(counters->context->peers, m), m);
                l.manages = r > 0;
        }
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sos)");
        if (r >= 0) {
                l.reply = reply;
                objects_walk(&counters->objects, listing_append, &l);
                r = l.r < 0 ? l.r : sd_bus_message_close_container(reply);
        }
        return r < 0 ? reply_failure(r, NULL, error) : sd_bus_send(NULL, reply, NULL);
}
