/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "managed.h"

#include "core/clock.h"
#include "service/bus/request.h"
#include "service/util/options.h"
#include "service/util/reply.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

typedef struct ManagedCall ManagedCall;
TAILQ_HEAD(ManagedCalls, ManagedCall);

struct Managed {
        Context *context;
        sd_bus_slot *slot;
        struct ManagedCalls calls; /* the first one is being answered */
};

struct ManagedCall {
        Managed *all;
        Request *call;
        sd_bus_message *reply;
        ObjectNode *node; /* that is told, or put into the reply; NULL: all those are there */
        char **paths;     /* of node, NULL while it is told */
        size_t n_done;
        TAILQ_ENTRY(ManagedCall) calls;
};

/* ---- one call ---- */

static void managed_thaw(const Managed *all) {
        ObjectNode *n;

        LIST_FOREACH (n, &all->context->objects->nodes, nodes)
                n->frozen = false;
}

/* The next call goes on by itself. */
static void managed_call_end(void *work) {
        ManagedCall *c = work;
        Managed *all = c->all;
        bool answered = c == TAILQ_FIRST(&all->calls);

        TAILQ_REMOVE(&all->calls, c, calls);
        strings_free(c->paths);
        sd_bus_message_unref(c->reply);
        request_done(c->call);
        free(c);
        if (!answered)
                return;
        managed_thaw(all);
        if (!TAILQ_EMPTY(&all->calls))
                request_resume(TAILQ_FIRST(&all->calls)->call);
}

static int managed_call_new(Managed *all, sd_bus_message *m, ManagedCall **ret, Refusal *why) {
        ManagedCall *c = calloc(1, sizeof(*c));
        Peer *peer = peers_sender(all->context->peers, m);
        int r;

        if (!c)
                return -ENOMEM;
        *c = (ManagedCall){ .all = all, .node = LIST_FIRST(&all->context->objects->nodes) };
        TAILQ_INSERT_TAIL(&all->calls, c, calls);
        r = request_begin(all->context, peer, m, c, managed_call_end, &c->call, why);
        if (r == 0)
                r = MIN(sd_bus_message_new_method_return(m, &c->reply), 0);
        if (r == 0)
                r = MIN(sd_bus_message_open_container(c->reply, 'a', "{oa{sa{sv}}}"), 0);
        if (r == 0)
                *ret = c;
        else
                managed_call_end(c);
        return r;
}

/* ---- the last slice ---- */

static int managed_call_append_all(const ManagedCall *c, const ObjectNode *n, sd_bus_error *error) {
        _cleanup_(strings_freep) char **paths = NULL;
        int r = object_node_enumerate(n, c->all->context->bus, &paths, error);

        for (size_t i = 0; r >= 0 && paths && paths[i]; i++)
                r = object_node_append(n, paths[i], c->reply, error);
        return r;
}

/* What is signalled at once: no signal comes between this and the reply. */
static int managed_call_finish(ManagedCall *c, sd_bus_error *error) {
        const ObjectNode *n;
        int r = 0;

        LIST_FOREACH (n, &c->all->context->objects->nodes, nodes)
                if (!n->tell && r >= 0)
                        r = managed_call_append_all(c, n, error);
        if (r >= 0)
                r = sd_bus_message_close_container(c->reply);
        if (r >= 0)
                r = sd_bus_send(NULL, c->reply, NULL);
        if (r >= 0)
                managed_call_end(c);
        return r;
}

/* ---- the other slices ---- */

static void managed_call_next_node(ManagedCall *c) {
        c->paths = strings_free(c->paths);
        c->n_done = 0;
        c->node = LIST_NEXT(c->node, nodes);
}

/* A few signals, or one object. */
static int managed_call_step(ManagedCall *c, sd_bus_error *error) {
        ObjectNode *n = c->node;

        if (c->paths && c->paths[c->n_done])
                return object_node_append(n, c->paths[c->n_done++], c->reply, error);
        if (c->paths || !n->tell)
                managed_call_next_node(c);
        else if (!n->tell(n->userdata)) {
                n->frozen = true;
                return object_node_enumerate(n, c->all->context->bus, &c->paths, error);
        }
        return 0;
}

static int managed_call_go_on(ManagedCall *c, sd_bus_error *error) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + SLICE_USEC;

        while (c->node) {
                int r = managed_call_step(c, error);

                if (r < 0)
                        return r;
                if (now_usec(CLOCK_MONOTONIC) < until)
                        continue;
                request_pause(c->call);
                return 0;
        }
        return managed_call_finish(c, error);
}

/* ---- the method ---- */

/* Before libsystemd's handlers of this object. What it does not answer they do. */
static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Managed *all = userdata;
        Refusal why = REFUSAL_NULL;
        ManagedCall *c;
        int r = 0;

        if (!sd_bus_message_is_method_call(m, OBJECT_MANAGER, "GetManagedObjects") ||
            *sd_bus_message_get_signature(m, true))
                return 0;
        c = request_work(all->context, m, managed_call_end);
        if (!c)
                r = managed_call_new(all, m, &c, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        if (c == TAILQ_FIRST(&all->calls))
                r = managed_call_go_on(c, error);
        if (r >= 0)
                return 1;
        managed_call_end(c);
        return reply_failure(r, NULL, error);
}

int managed_new(Context *context, Managed **ret) {
        Managed *all = calloc(1, sizeof(*all));
        int r;

        if (!all)
                return -ENOMEM;
        all->context = context;
        TAILQ_INIT(&all->calls);
        r = sd_bus_add_object(context->bus, &all->slot, PERFALLOC_OBJECT_PATH, on_call, all);
        if (r < 0) {
                free(all);
                return r;
        }
        *ret = all;
        return 0;
}

Managed *managed_free(Managed *all) {
        if (!all)
                return NULL;
        sd_bus_slot_unref(all->slot);
        free(all);
        return NULL;
}
