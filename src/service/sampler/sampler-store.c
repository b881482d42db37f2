/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-store.h"

#include "service/sampler/sampler-record.h"

static void pack_client(Pack *p, const Peer *peer) {
        const ClientName who = { peer->name, peer->uid, (uint32_t) peer->pid };

        pack_struct(p, client_fields, ELEMENTSOF(client_fields), &who);
}

/* ---- a sampler ---- */

static void pack_counters(Pack *p, const Sampler *a) {
        uint64_t ids[PERFALLOC_READINGS_MAX];

        for (size_t i = 0; i < a->n_counters; i++)
                ids[i] = a->counters[i]->id;
        pack_bytes(p, "counters", ids, a->n_counters * sizeof(uint64_t));
}

void sampler_enter_store(Sampler *a, int send_log) {
        Samplers *all = a->all;
        int fds[_SAMPLER_FD_MAX] = {
                [SAMPLER_FD_STREAM] = a->stream, [SAMPLER_FD_SEND_LOG] = send_log
        };
        Pack *p;

        store_enter(all->context->store, &a->item, STORE_SAMPLER, a->object.id);
        store_keep(&a->item, fds, _SAMPLER_FD_MAX, STORE_SOON);
        p = store_pack(all->context->store);
        pack_client(p, a->client->peer);
        pack_struct(p, sampler_fields, ELEMENTSOF(sampler_fields), a);
        pack_counters(p, a);
        store_save(&a->item, p);
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
                pack_client(p, c->peer);
                pack_end(p, begin);
        }
        if (!any) {
                store_leave(&all->blocked);
                return;
        }
        if (!all->blocked.store)
                store_enter(store, &all->blocked, STORE_BLOCKED, 1);
        store_save(&all->blocked, p);
}
