/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-save.h"

#include <math.h>
#include <string.h>

static const PackField event_fields[] = {
        PACK_FIELD(PACK_STRING, "name", Event, name),
        PACK_FIELD(PACK_STRING, "unit", Event, unit),
        PACK_FIELD(PACK_STRING, "label", Event, label),
        PACK_FIELD(PACK_BOOL, "by-cpu", Event, by_cpu),
};

/* Without trailing zeros, which load_attr() restores. */
static void save_attr(const Attr *attr, Pack *p) {
        size_t n = sizeof(attr->bytes);

        while (n > PERF_ATTR_SIZE_VER0 && attr->bytes[n - 1] == 0)
                n--;
        pack_bytes(p, "attr", attr, n);
}

void event_save(const Event *e, Pack *p) {
        uint64_t scale;

        memcpy(&scale, &e->scale, sizeof(scale));
        pack_struct_set(p, event_fields, ELEMENTSOF(event_fields), e);
        pack_u64(p, "scale", scale);
        pack_string(p, "pmu", e->pmu->name);
        save_attr(&e->full, p);
        for (size_t i = 0; i < e->n_others; i++) {
                size_t begin = pack_begin(p, "other");

                event_save(&e->others[i], p);
                pack_end(p, begin);
        }
}

/* A shorter one may be of a build against older kernel headers: 0 is the default of all later
 * fields. */
static int load_attr(const Unpack *u, Attr *ret) {
        size_t n;
        const uint8_t *saved = unpack_bytes(u, "attr", &n);

        if (!saved || n < PERF_ATTR_SIZE_VER0)
                return -EBADMSG;
        for (size_t i = sizeof(*ret); i < n; i++)
                if (saved[i] != 0)
                        return -EBADMSG;
        memcpy(ret, saved, MIN(n, sizeof(*ret)));
        /* of another build, it may be larger than this one's for nothing */
        ret->known.size = MAX(sizeof(ret->known), (uint32_t) (n + 7) / 8 * 8);
        return 0;
}

static int load_one(const Unpack *u, const PmuTable *pmus, Event *ret) {
        _cleanup_(event_done) Event e = EVENT_NULL;
        const char *pmu = unpack_string(u, "pmu");
        uint64_t scale = unpack_u64(u, "scale", 0);
        int r = unpack_struct(u, event_fields, ELEMENTSOF(event_fields), &e);

        if (r == 0)
                r = load_attr(u, &e.full);
        if (r < 0)
                return r;
        if (!e.name || !e.unit || !pmu)
                return -EBADMSG;
        memcpy(&e.scale, &scale, sizeof(scale));
        if (!isfinite(e.scale) || e.scale == 0)
                return -EBADMSG;
        e.pmu = pmu_table_find(pmus, pmu);
        /* a loadable PMU has another type each time that it is loaded */
        if (!e.pmu || (e.attr.type >= PERF_TYPE_MAX && e.attr.type != e.pmu->type))
                return -ENODEV;
        *ret = e;
        e = EVENT_NULL;
        return 0;
}

/* Others of others are not read. */
static int load_others(const Unpack *u, const PmuTable *pmus, Event *e) {
        size_t place = 0;
        Unpack element;
        int r = 0;

        while (r == 0 && unpack_next(u, "other", &place, &element)) {
                Event other;

                r = load_one(&element, pmus, &other);
                if (r == 0)
                        r = event_add_other(e, &other);
        }
        return r;
}

int event_load(const Unpack *u, const PmuTable *pmus, Event *ret) {
        _cleanup_(event_done) Event e = EVENT_NULL;
        int r = load_one(u, pmus, &e);

        if (r == 0)
                r = load_others(u, pmus, &e);
        if (r < 0)
                return r;
        *ret = e;
        e = EVENT_NULL;
        return 0;
}
