/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-store.h"

#include "service/bus/host-state.h"

static const PackField sampler_fields[] = {
        PACK_FIELD(PACK_U64, "start_usec", Sampler, tick.start_usec),
        PACK_FIELD(PACK_U64, "interval_usec", Sampler, tick.interval_usec),
        PACK_FIELD(PACK_BOOL, "signal", Sampler, signal),
        PACK_FIELD(PACK_BOOL, "tagged", Sampler, tagged),
        PACK_FIELD(PACK_BOOL, "mapped", Sampler, mapped),
};

static void pack_counters(Pack *p, const Sampler *a) {
        uint64_t ids[PERFALLOC_READINGS_MAX];

        for (size_t i = 0; i < a->n_counters; i++)
                ids[i] = a->counters[i]->id;
        pack_bytes(p, "counters", ids, a->n_counters * sizeof(uint64_t));
}

static void sampler_save(Sampler *a) {
        Samplers *all = a->all;
        int fds[_SAMPLER_FD_MAX] = {
                [SAMPLER_FD_STREAM] = a->stream, [SAMPLER_FD_SEND_LOG] = a->unkept_log
        };
        Pack *p;

        store_keep(&a->item, fds, _SAMPLER_FD_MAX, STORE_SOON);
        p = store_pack(all->context->store);
        host_state_pack_peer(p, a->client->peer);
        pack_struct(p, sampler_fields, ELEMENTSOF(sampler_fields), a);
        pack_counters(p, a);
        store_save(&a->item, p);
        if (!a->item.lost)
                a->unkept_log = close_fd(a->unkept_log);
}

static void sampler_save_again(StoreItem *item) {
        sampler_save(container_of(item, Sampler, item));
}

void sampler_enter_store(Sampler *a, int send_log) {
        a->unkept_log = send_log;
        store_enter(a->all->context->store, &a->item, STORE_SAMPLER, a->object.id,
                    sampler_save_again);
        sampler_save(a);
}

void samplers_save_blocked(Samplers *all) {
        Store *store = all->context->store;
        const SamplerClient *c;
        bool any = false;
        Pack *p = store_pack(store);

        LIST_FOREACH (c, &all->clients, clients) {
                size_t begin;

                if (!c->blocked)
                        continue;
                any = true;
                begin = pack_begin(p, "client");
                host_state_pack_peer(p, c->peer);
                pack_end(p, begin);
        }
        if (!any) {
                store_leave(&all->blocked);
                return;
        }
        if (!all->blocked.store)
                store_enter(store, &all->blocked, STORE_BLOCKED, 1, NULL);
        store_save(&all->blocked, p);
}

int sampler_unpack(Sampler *a, const Unpack *u) {
        return unpack_struct(u, sampler_fields, ELEMENTSOF(sampler_fields), a);
}
