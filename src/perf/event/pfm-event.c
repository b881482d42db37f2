/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pfm-event.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "perf/event/modifier.h"
#include "perf/event/pfm-encode.h"
#include "perf/event/pfm-explain.h"

/* Whether the string has "mh" (count the host alone), which libpfm4 also sets without it. */
static bool asks_for_host(const char *string) {
        for (const char *part = string; (part = strchr(part, ':'));)
                if (strncasecmp(++part, "mh", 2) == 0 && (!part[2] || strchr(":=", part[2])))
                        return true;
        return false;
}

/* Whether a privilege level is an attribute of the event: ":h", ":h=1", also ":H". */
static bool asks_for_hypervisor(const char *string) {
        for (const char *part = string; (part = strchr(part, ':'));)
                if ((*++part == 'h' || *part == 'H') &&
                    (!part[1] || part[1] == ':' || strncmp(part + 1, "=1", 2) == 0))
                        return true;
        return false;
}

void pfm_event_settle(const char *string, struct perf_event_attr *attr) {
        if (!asks_for_host(string))
                attr->exclude_guest = 0;
        if ((attr->exclude_user || attr->exclude_kernel) && !asks_for_hypervisor(string))
                attr->exclude_hv = 1;
}

/* As pfm_encode(), also with perf's modifiers at the end: "uk" is "u:k" to libpfm4. Letters that
 * libpfm4 knows, such as unit masks, keep its meaning. */
static int encode_with_modifiers(const Pfm *pfm, const char *string, struct perf_event_attr *ret,
                                 bool *ret_extras) {
        char event[EVENT_NAME_MAX + 1];
        const char *colon = strrchr(string, ':');
        int r;

        r = pfm_encode(pfm, string, ret, ret_extras);
        if (r == PFM_SUCCESS)
                pfm_event_settle(string, ret);
        if (r != PFM_ERR_ATTR || !colon || !colon[1] || (size_t) (colon - string) >= sizeof(event))
                return r;
        (void) snprintf(event, sizeof(event), "%.*s", (int) (colon - string), string);
        if (pfm_encode(pfm, event, ret, ret_extras) != PFM_SUCCESS)
                return r;
        pfm_event_settle(event, ret);
        return modifiers_apply(colon + 1, ret) ? PFM_SUCCESS : r;
}

int pfm_event_parse(const char *string, struct perf_event_attr *attr, Refusal *why) {
        struct perf_event_attr event;
        Refusal missing;
        const Pfm *pfm;
        bool extras;
        int r;

        r = pfm_load(&pfm, &missing);
        if (r > 0)
                return refuse(why, REFUSAL_NO_SUCH_EVENT,
                              "event '%s' is not an event of the kernel, and %s", string,
                              missing.text);
        if (r < 0)
                return r;
        r = encode_with_modifiers(pfm, string, &event, &extras);
        if (r != PFM_SUCCESS)
                return pfm_explain(pfm, string, r, why);
        if (extras)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': period, freq, pinned, excl and cpu cannot be part of an "
                              "event; use options instead",
                              string);
        event.size = attr->size;
        *attr = event;
        return 0;
}

typedef struct Listing {
        const Pfm *pfm;
        const PmuTable *pmus;
        const char *pattern;
        EventVisitor visitor;
        void *userdata;
} Listing;

/* Calls the visitor for a name that matches and that a PMU here counts. */
static int list_name(const Listing *l, const char *name, const char *description) {
        struct perf_event_attr attr;
        const Pmu *pmu;
        bool extras;

        if (fnmatch(l->pattern, name, FNM_CASEFOLD) != 0 ||
            pfm_encode(l->pfm, name, &attr, &extras) != PFM_SUCCESS)
                return 0;
        pmu = pmu_table_find_event(l->pmus, attr.type, attr.config);
        return pmu ? l->visitor(l->userdata, name, pmu->name, description ? description : "") : 0;
}

static int list_event(const Listing *l, const pfm_pmu_info_t *pmu, int index) {
        pfm_event_info_t event = { .size = sizeof(event) };
        char name[EVENT_NAME_MAX + 1];
        int length, r;

        if (l->pfm->get_event_info(index, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS)
                return 0;
        /* libpfm4's short names of what generic_event_visit() lists */
        if (pmu->pmu == PFM_PMU_PERF_EVENT && strncmp(event.name, "PERF_COUNT_", 11) != 0)
                return 0;
        length = snprintf(name, sizeof(name), "%s::%s", pmu->name, event.name);
        if (length >= (int) sizeof(name))
                return 0;
        r = list_name(l, name, event.desc);
        for (int i = 0; r == 0 && i < event.nattrs; i++) {
                pfm_event_attr_info_t part = { .size = sizeof(part) };

                if (l->pfm->get_event_attr_info(index, i, PFM_OS_PERF_EVENT_EXT, &part) !=
                            PFM_SUCCESS ||
                    part.type != PFM_ATTR_UMASK ||
                    snprintf(name + length, sizeof(name) - (size_t) length, ":%s", part.name) >=
                            (int) sizeof(name) - length)
                        continue;
                r = list_name(l, name, part.desc);
        }
        return r;
}

int pfm_event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata) {
        Listing listing = { .pmus = pmus, .pattern = pattern, .visitor = f, .userdata = userdata };
        bool has_core = pmu_table_find_event(pmus, PERF_TYPE_HARDWARE, 0);
        int r;

        r = pfm_load(&listing.pfm, NULL);
        if (r != 0)
                return MIN(r, 0); /* without libpfm4 there are the other names */
        for (int id = PFM_PMU_NONE; r == 0 && id < PFM_PMU_MAX; id++) {
                pfm_pmu_info_t pmu = { .size = sizeof(pmu) };

                if (listing.pfm->get_pmu_info((pfm_pmu_t) id, &pmu) != PFM_SUCCESS ||
                    !pmu.is_present || (pmu.type == PFM_PMU_TYPE_CORE && !has_core))
                        continue;
                for (int i = pmu.first_event; r == 0 && i != -1; i = listing.pfm->get_event_next(i))
                        r = list_event(&listing, &pmu, i);
        }
        return r;
}
