/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host-state.h"

#include <inttypes.h>
#include <string.h>

#include "service/util/log.h"

#define HOST_STATE_ID 1u /* of the only record */

static const PackField pmu_fields[] = {
        PACK_FIELD(PACK_U32, "counters", Pmu, counters),
        PACK_FIELD(PACK_BOOL, "measured", Pmu, measured),
        PACK_FIELD(PACK_STRING, "probed", Pmu, probed),
        PACK_FIELD(PACK_BOOL, "buddies", Pmu, buddies),
};

static const StoreRecord *host_state_record(Context *context) {
        size_t place = 0;

        return store_next(context->store, STORE_HOST, &place);
}

int host_state_pmus(Context *context) {
        const StoreRecord *record = host_state_record(context);
        size_t place = 0;
        Unpack element;

        if (!record)
                return 0;
        while (unpack_next(&record->state, "pmu", &place, &element)) {
                const char *name = unpack_string(&element, "name");
                Pmu *pmu = name ? pmu_table_find(&context->pmus, name) : NULL;
                int r;

                /* another PMU may have got this name since */
                if (!pmu || unpack_u64(&element, "type", UINT64_MAX) != pmu->type)
                        continue;
                r = unpack_struct(&element, pmu_fields, ELEMENTSOF(pmu_fields), pmu);
                if (r < 0)
                        return r;
        }
        return 1;
}

static void host_state_load_bus(Context *context, const StoreRecord *record, const char *bus) {
        const char *text = record ? unpack_string(&record->state, "bus") : NULL;

        context->host->same_bus = text && strcmp(text, bus) == 0;
        if (record && !context->host->same_bus)
                log_plain(LOG_NOTICE, "The bus is another one than before: its clients have gone.");
}

static void host_state_log_unkept(const StoreRecord *record) {
        uint64_t n = record ? unpack_u64(&record->state, "unkept", 0) : 0;

        if (n > 0)
                log_plain(LOG_WARNING,
                          "Counters beyond KeptDescriptors= of perfallocd.conf have ended: %" PRIu64
                          ".",

                          n);
}

/* Without a record, no CPU counts as having been offline. */
static int host_state_load_cpus(Context *context, const StoreRecord *record) {
        const char *list = record ? unpack_string(&record->state, "online") : NULL;
        _cleanup_(cpuset_done) CpuSet online = CPUSET_NULL;
        _cleanup_(cpu_generations_done) CpuGenerations generations = CPU_GENERATIONS_NULL;
        size_t size = 0;
        const void *ids = record ? unpack_bytes(&record->state, "lives", &size) : NULL;
        int r;

        if (!list || cpuset_parse(&online, list, NULL) != 0)
                return 0;
        r = cpu_generations_load(ids, ids ? size / sizeof(uint64_t) : 0, &generations);
        if (r < 0)
                return r;
        CPU_FOREACH (cpu, &context->pmus.online) {
                if (cpuset_has(&online, (unsigned) cpu) &&
                    !cpu_generations_differ(&generations, &context->pmus.generations,
                                            (unsigned) cpu))
                        continue;
                r = cpuset_add(&context->host->was_offline, (unsigned) cpu);
                if (r < 0)
                        return r;
        }
        return 0;
}

static const char *host_state_bus_name(Context *context, char text[static SD_ID128_STRING_MAX]) {
        sd_id128_t id = SD_ID128_NULL;

        (void) sd_bus_get_bus_id(context->bus, &id);
        return sd_id128_to_string(id, text);
}

int host_state_bus(Context *context) {
        const StoreRecord *record = host_state_record(context);
        char text[SD_ID128_STRING_MAX];
        int r;

        host_state_load_bus(context, record, host_state_bus_name(context, text));
        host_state_log_unkept(record);
        r = host_state_load_cpus(context, record);
        if (r < 0)
                return r;
        store_enter(context->store, &context->host->item, STORE_HOST, HOST_STATE_ID, NULL);
        host_state_save(context);
        return 0;
}

void host_state_save(Context *context) {
        _cleanup_free_ char *online = NULL;
        char bus[SD_ID128_STRING_MAX];
        Pack *p;

        if (!context->host->item.store)
                return;
        p = store_pack(context->store);
        pack_string(p, "bus", host_state_bus_name(context, bus));
        if (cpuset_format(&context->pmus.online, &online) >= 0)
                pack_string(p, "online", online);
        pack_u64(p, "unkept", context->host->n_unkept);
        pack_bytes(p, "lives", context->pmus.generations.ids,
                   context->pmus.generations.n * sizeof(uint64_t));
        for (size_t i = 0; i < context->pmus.n_pmus; i++) {
                const Pmu *pmu = &context->pmus.pmus[i];
                size_t begin = pack_begin(p, "pmu");

                pack_string(p, "name", pmu->name);
                pack_u64(p, "type", pmu->type);
                pack_struct(p, pmu_fields, ELEMENTSOF(pmu_fields), pmu);
                pack_end(p, begin);
        }
        store_save(&context->host->item, p);
}

void host_state_pack_peer(Pack *p, const Peer *peer) {
        pack_string(p, "peer", peer->name);
        pack_u64(p, "peer-uid", peer->uid);
        pack_u64(p, "peer-pid", (uint32_t) peer->pid);
}

int host_state_unpack_peer(Context *context, const Unpack *u, Peer **ret) {
        const char *name = unpack_string(u, "peer");

        *ret = NULL;
        if (!name || !name[0] || !context->host->same_bus)
                return 0;
        return peers_recall(context->peers, name, (uid_t) unpack_u64(u, "peer-uid", UINT32_MAX),
                            (pid_t) unpack_u64(u, "peer-pid", 0), ret);
}

int host_state_new(HostState **ret) {
        *ret = calloc(1, sizeof(HostState));
        return *ret ? 0 : -ENOMEM;
}

HostState *host_state_free(HostState *s) {
        if (s)
                cpuset_done(&s->was_offline);
        free(s);
        return NULL;
}
