/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-restore.h"

#include <string.h>

#include "service/bus/host-state.h"
#include "service/sampler/sampler-store.h"
#include "service/util/log.h"

/* -ESTALE: the client is not on this bus. */
static int unpack_client(Samplers *all, const Unpack *u, SamplerClient **ret) {
        _cleanup_(peer_unrefp) Peer *peer = NULL;
        int r = host_state_unpack_peer(all->context, u, &peer);

        return r < 0 ? r : peer ? sampler_client_get(all, peer, ret) : -ESTALE;
}

/* A counter that was closed before or during the restart keeps its last reading. */
static int sampler_restore_counter(Sampler *a, uint64_t id) {
        const struct perfalloc_reading *last = &a->send_log.record->readings[a->n_counters];
        Counter *c = counter_find(a->all->counters, id);
        Reading reading = { .value = last->value,
                            .enabled = last->enabled_nsec,
                            .running = last->running_nsec,
                            .estimate = last->estimate };
        int r = c ? reading_cache_new(c, &a->counters[a->n_counters])
                  : reading_cache_new_closed(id, &reading, &a->counters[a->n_counters]);

        if (r >= 0)
                a->n_counters++;
        return r;
}

static int sampler_restore_counters(Sampler *a, const StoreRecord *record) {
        uint64_t ids[PERFALLOC_READINGS_MAX];
        size_t size, n;
        const void *bytes = unpack_bytes(&record->state, "counters", &size);
        int r;

        if (!bytes || size > sizeof(ids) || size % sizeof(uint64_t) != 0)
                return -EBADMSG;
        memcpy(ids, bytes, size);
        n = size / sizeof(uint64_t);
        r = send_log_open(record->fds[SAMPLER_FD_SEND_LOG], n, a->tagged, &a->send_log);
        if (r < 0)
                return r;
        a->counters = calloc(MAX(n, 1u), sizeof(ReadingCache *));
        if (!a->counters)
                return -ENOMEM;
        while (r >= 0 && a->n_counters < n)
                r = sampler_restore_counter(a, ids[a->n_counters]);
        return r;
}

/* The last slot that was sent is known exactly. Slots that were read since then and not sent count
 * as skipped. */
static int sampler_restore_ticks(Sampler *a) {
        uint64_t far;

        a->streamed = send_log_count(&a->send_log);
        a->signalled = (TickCount){ .next = send_log_signalled(&a->send_log) };
        a->tick.next = MAX(a->streamed.next, a->signalled.next);
        if (__builtin_mul_overflow(a->tick.next, a->tick.interval_usec, &far) ||
            __builtin_add_overflow(far, a->tick.start_usec, &far))
                return -EBADMSG;
        return 0;
}

/* The sampler has fd now, if it succeeds. */
static int sampler_restore_stream(Sampler *a, int fd) {
        int r;

        if (!a->mapped)
                return sampler_watch_stream(a, fd);
        r = mapping_open(fd, a->send_log.record, a->send_log.record_size, &a->mapping);
        if (r >= 0)
                a->stream = fd;
        return r;
}

static int sampler_restore(void *userdata, StoreRecord *record) {
        Samplers *all = userdata;
        _cleanup_(sampler_discardp) Sampler *a = sampler_allocate(all);
        SamplerClient *client;
        int r;

        if (!a)
                return -ENOMEM;
        if (record->n_fds != _SAMPLER_FD_MAX)
                return -EBADMSG;
        r = sampler_unpack(a, &record->state);
        if (r >= 0)
                r = sampler_restore_counters(a, record);
        if (r >= 0)
                r = sampler_restore_ticks(a);
        if (r >= 0)
                r = unpack_client(all, &record->state, &client);
        if (r >= 0) {
                sampler_set_client(a, client);
                r = quota_charge_anyway(&all->context->quota, client->peer->uid, QUOTA_SAMPLERS, 1,
                                        &a->charge);
        }
        if (r >= 0)
                r = sampler_restore_stream(a, record->fds[SAMPLER_FD_STREAM]);
        if (r < 0)
                return r;
        record->fds[SAMPLER_FD_STREAM] = -1;
        r = sampler_enter(a, record->id);
        if (r < 0)
                return r;
        a->announced = true;
        sampler_enter_store(TAKE_PTR(a), TAKE_FD(record->fds[SAMPLER_FD_SEND_LOG]));
        return 0;
}

/* ---- those that are blocked ---- */

static int samplers_restore_blocked(Samplers *all) {
        StoreRecord *record;
        size_t at = 0, place = 0;
        Unpack u;

        record = store_next(all->context->store, STORE_BLOCKED, &at);
        while (record && unpack_next(&record->state, "client", &place, &u)) {
                SamplerClient *c;
                int r = unpack_client(all, &u, &c);

                if (r == -ENOMEM)
                        return r;
                if (r >= 0)
                        c->blocked = true;
                else if (r != -ESTALE)
                        log_plain(LOG_ERR,
                                  "A client that blocks its samplers is lost in the restart: %s",
                                  strerror(-r));
        }
        samplers_save_blocked(all);
        return 0;
}

int samplers_restore(Samplers *all) {
        int r = samplers_restore_blocked(all);

        return r < 0 ? r
                     : store_restore_each(all->context->store, STORE_SAMPLER, "Sampler",
                                          sampler_restore, all);
}
