/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-store.h"

#include "service/hold/hold-obstacles.h"

static const PackField hold_fields[] = {
        PACK_FIELD(PACK_U32, "uid", Hold, object.uid),
        PACK_FIELD(PACK_U32, "maker", Hold, maker),
        PACK_FIELD(PACK_U32, "pid", Hold, pid),
        PACK_FIELD(PACK_STRING, "client", Hold, client),
        PACK_FIELD(PACK_STRING, "tag", Hold, request.tag),
        PACK_FIELD(PACK_U32, "tie", Hold, request.tie.kind),
        PACK_FIELD(PACK_STRING, "reason", Hold, request.reason),
        PACK_FIELD(PACK_U32, "counters", Hold, request.counters),
        PACK_FIELD(PACK_BOOL, "exclusive", Hold, request.exclusive),
        PACK_FIELD(PACK_BOOL, "best-effort", Hold, request.best_effort),
        PACK_FIELD(PACK_BOOL, "unattended", Hold, request.unattended),
        PACK_FIELD(PACK_U64, "wait", Hold, request.wait_usec),
        PACK_FIELD(PACK_U64, "yield", Hold, request.yield_usec),
        PACK_FIELD(PACK_U64, "lifetime", Hold, request.lifetime_usec),
        PACK_FIELD(PACK_U64, "age", Hold, request.age_usec),
        PACK_FIELD(PACK_U32, "state", Hold, state),
        PACK_FIELD(PACK_U32, "result", Hold, result),
        PACK_FIELD(PACK_BOOL, "confirmed", Hold, confirmed),
        PACK_FIELD(PACK_U64, "requested", Hold, requested_usec),
        PACK_FIELD(PACK_U64, "granted", Hold, granted_usec),
        PACK_FIELD(PACK_U64, "expires", Hold, expires_usec),
        PACK_FIELD(PACK_U64, "expires-boottime", Hold, expires_boottime_usec),
        PACK_FIELD(PACK_BOOL, "warned", Hold, warned),
        PACK_FIELD(PACK_U64, "admitted", Hold, admitted_usec),
        PACK_FIELD(PACK_U64, "latency", Hold, latency_usec),
        PACK_FIELD(PACK_U64, "ended", Hold, ended_usec),
        PACK_FIELD(PACK_U64, "since", Hold, since),
};

static void pack_joined(Pack *p, const Hold *h) {
        _cleanup_free_ char *cpus = NULL;

        if (cpuset_is_empty(&h->joined))
                return;
        if (cpuset_format(&h->joined, &cpus) < 0)
                p->failed = true;
        pack_string(p, "joined", cpus);
}

static void pack_obstacles(Pack *p, const Hold *h) {
        for (size_t i = 0; i < h->n_obstacles; i++) {
                size_t begin = pack_begin(p, "obstacle");

                pack_u64(p, "pid", (uint32_t) h->obstacles[i].pid);
                pack_string(p, "who", h->obstacles[i].who);
                pack_end(p, begin);
        }
}

/* The lease, then what it is tied to. */
static void hold_keep(Hold *h) {
        int fds[2];
        size_t n = 0;

        if (h->lease >= 0)
                fds[n++] = h->lease;
        if (h->request.tie.fd >= 0)
                fds[n++] = h->request.tie.fd;
        store_keep(&h->item, fds, n, STORE_SOON);
}

/* In a hold of N counters: how many more have to yield. */
static void pack_extra(void *userdata, size_t number, uint64_t extra) {
        Pack *p = userdata;
        size_t begin = pack_begin(p, "extra");

        pack_u64(p, "slot", number);
        pack_u64(p, "more", extra);
        pack_end(p, begin);
}

void hold_save(Hold *h) {
        Holds *holds = h->holds;
        Pack *p;

        if (!h->item.store)
                return;
        if (h->item.lost)
                hold_keep(h);
        p = store_pack(holds->context->store);
        pack_struct(p, hold_fields, ELEMENTSOF(hold_fields), h);
        scope_request_pack(p, &h->request.what, &holds->context->pmus);
        ledger_each_extra(&holds->context->ledger, &h->ledger, pack_extra, p);
        for (size_t i = 0; h->promised && i < h->request.what.scope.n_parts; i++) {
                size_t begin = pack_begin(p, "promised");

                pack_u64(p, "general", h->promised[i].general);
                pack_u64(p, "fixed", h->promised[i].fixed);
                pack_end(p, begin);
        }
        pack_joined(p, h);
        pack_obstacles(p, h);
        store_save(&h->item, p);
}

static int hold_unpack_promised(Hold *h, const Unpack *u) {
        size_t place = 0;
        Unpack part;

        for (size_t i = 0; unpack_next(u, "promised", &place, &part); i++) {
                if (!h->promised)
                        h->promised = calloc(MAX(h->request.what.scope.n_parts, 1u), sizeof(Shape));
                if (!h->promised)
                        return -ENOMEM;
                if (i < h->request.what.scope.n_parts)
                        h->promised[i] =
                                (Shape){ .general = (unsigned) unpack_u64(&part, "general", 0),
                                         .fixed = (uint32_t) unpack_u64(&part, "fixed", 0) };
        }
        return 0;
}

static int hold_unpack_joined(Hold *h, const Unpack *u) {
        _cleanup_(cpuset_done) CpuSet joined = CPUSET_NULL;
        const char *cpus = unpack_string(u, "joined");
        int r = cpuset_make_room(&h->joined, &h->context->pmus.possible);

        if (r == 0 && cpus)
                r = cpuset_parse(&joined, cpus, NULL) == 0 ? 0 : -EBADMSG;
        CPU_FOREACH (cpu, &joined)
                if (r == 0)
                        r = cpuset_add(&h->joined, (unsigned) cpu);
        return r;
}

int hold_unpack(Hold *h, const Unpack *u) {
        Unpack obstacle;
        size_t place = 0;
        int r;

        r = unpack_struct(u, hold_fields, ELEMENTSOF(hold_fields), h);
        if (r < 0)
                return r;
        if (h->state >= _HOLD_STATE_MAX || h->result >= _HOLD_RESULT_MAX || !h->request.reason ||
            h->request.tie.kind >= _HOLD_TIE_MAX)
                return -EBADMSG;
        h->request.uid = h->object.uid;
        while (unpack_next(u, "obstacle", &place, &obstacle))
                (void) hold_add_obstacle(h, (pid_t) unpack_u64(&obstacle, "pid", 0),
                                         unpack_string(&obstacle, "who") ?: "");
        r = scope_request_unpack(u, &h->context->pmus, &h->request.what);
        if (r >= 0)
                r = hold_unpack_joined(h, u);
        return r < 0 ? r : hold_unpack_promised(h, u);
}

static void hold_save_again(StoreItem *item) {
        hold_save(container_of(item, Hold, item));
}

void hold_enter_store(Hold *h) {
        store_enter(h->context->store, &h->item, STORE_HOLD, h->object.id, hold_save_again);
        if (h->lease >= 0 || h->request.tie.fd >= 0)
                hold_keep(h);
        hold_save(h);
}
