/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recall.h"

#include <string.h>

#include "service/hold.h"
#include "service/log.h"
#include "service/service.h"

#define RECALL_ID 1u /* there is one record */

static const PackField pmu_fields[] = {
        PACK_FIELD(PACK_U32, "counters", Pmu, counters),
        PACK_FIELD(PACK_BOOL, "measured", Pmu, measured),
        PACK_FIELD(PACK_STRING, "probed", Pmu, probed),
};

static const StoreRecord *recall_record(Service *s) {
        size_t place = 0;

        return store_next(s->store, STORE_HOST, &place);
}

int recall_pmus(Service *s) {
        const StoreRecord *record = recall_record(s);
        size_t place = 0;
        Unpack element;

        if (!record)
                return 0;
        while (unpack_next(&record->state, "pmu", &place, &element)) {
                const char *name = unpack_string(&element, "name");
                Pmu *pmu = name ? pmu_table_find(&s->pmus, name) : NULL;
                int r;

                /* it may be another one that was loaded since */
                if (!pmu || unpack_u64(&element, "type", UINT64_MAX) != pmu->type)
                        continue;
                r = unpack_struct(&element, pmu_fields, ELEMENTSOF(pmu_fields), pmu);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void recall_load(Service *s, const char *bus) {
        const StoreRecord *record = recall_record(s);
        const char *text = record ? unpack_string(&record->state, "bus") : NULL;
        const char *online = record ? unpack_string(&record->state, "online") : NULL;

        s->recall.same_bus = text && strcmp(text, bus) == 0;
        if (record && !s->recall.same_bus)
                log_plain(LOG_NOTICE, "The bus is another one than before: its clients have gone.");
        /* not to know means that none has come */
        if (!online || cpuset_parse(&s->recall.online, online, NULL) != 0)
                cpuset_done(&s->recall.online);
}

static const char *recall_bus_name(Service *s, char text[static SD_ID128_STRING_MAX]) {
        sd_id128_t id = SD_ID128_NULL;

        (void) sd_bus_get_bus_id(s->bus, &id);
        return sd_id128_to_string(id, text);
}

int recall_bus(Service *s) {
        char text[SD_ID128_STRING_MAX];

        recall_load(s, recall_bus_name(s, text));
        store_enter(s->store, &s->recall.item, STORE_HOST, RECALL_ID);
        recall_save(s);
        return 0;
}

void recall_save(Service *s) {
        _cleanup_free_ char *online = NULL;
        char bus[SD_ID128_STRING_MAX];
        Pack *p;

        if (!s->recall.item.store)
                return;
        p = store_pack(s->store);
        pack_string(p, "bus", recall_bus_name(s, bus));
        if (cpuset_format(&s->pmus.online, &online) >= 0)
                pack_string(p, "online", online);
        for (size_t i = 0; i < s->pmus.n_pmus; i++) {
                const Pmu *pmu = &s->pmus.pmus[i];
                size_t begin = pack_begin(p, "pmu");

                pack_string(p, "name", pmu->name);
                pack_u64(p, "type", pmu->type);
                pack_struct(p, pmu_fields, ELEMENTSOF(pmu_fields), pmu);
                pack_end(p, begin);
        }
        store_save(&s->recall.item, p);
}

int recall_peer(Service *s, const char *name, uid_t uid, pid_t pid, Peer **ret) {
        *ret = NULL;
        if (!name || !name[0] || !s->recall.same_bus)
                return 0;
        return peers_recall(s->peers, name, uid, pid, ret);
}

void recall_cpus(Service *s) {
        if (!cpuset_is_empty(&s->recall.online))
                CPU_FOREACH (cpu, &s->pmus.online)
                        if (!cpuset_has(&s->recall.online, (unsigned) cpu))
                                holds_cpu_joined(s, (unsigned) cpu);
        cpuset_done(&s->recall.online);
}

void recall_done(Service *s) {
        cpuset_done(&s->recall.online);
}
