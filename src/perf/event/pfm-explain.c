/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pfm-explain.h"

#include <stdio.h>
#include <string.h>

#include "perf/event/event.h"
#include "perf/event/generic-event.h"
#include "perf/event/pfm-encode.h"
#include "perf/event/suggest.h"

#define PMU_NAME_MAX 64u

/* The parts of "pmu::EVENT:PART:PART". */
typedef struct Parts {
        const char *string;
        char pmu[PMU_NAME_MAX]; /* "" when there is none */
        char event[EVENT_NAME_MAX + 1];
        size_t base; /* length of "pmu::EVENT" */
} Parts;

static Parts parts_of(const char *string) {
        const char *colons = strstr(string, "::");
        size_t start = colons ? (size_t) (colons - string) + 2 : 0;
        size_t length = strcspn(string + start, ":");
        Parts p = { .string = string, .base = start + length };

        if (colons)
                (void) snprintf(p.pmu, sizeof(p.pmu), "%.*s", (int) (colons - string), string);
        (void) snprintf(p.event, sizeof(p.event), "%.*s", (int) length, string + start);
        return p;
}

static bool get_pmu(const Pfm *pfm, int id, pfm_pmu_info_t *ret) {
        *ret = (pfm_pmu_info_t){ .size = sizeof(*ret) };
        return pfm->get_pmu_info((pfm_pmu_t) id, ret) == PFM_SUCCESS;
}

/* libpfm4's name of this machine's CPU. */
static const char *describe_cpu(const Pfm *pfm, char buffer[static 128]) {
        pfm_pmu_info_t pmu;

        for (int id = PFM_PMU_NONE; id < PFM_PMU_MAX; id++)
                if (get_pmu(pfm, id, &pmu) && pmu.is_present && pmu.type == PFM_PMU_TYPE_CORE) {
                        (void) snprintf(buffer, 128, "%s (%s)", pmu.desc, pmu.name);
                        return buffer;
                }
        return "one that libpfm4 does not know";
}

static void offer_events(const Pfm *pfm, const pfm_pmu_info_t *pmu, Suggestions *similar) {
        for (int i = pmu->first_event; i != -1; i = pfm->get_event_next(i)) {
                pfm_event_info_t event = { .size = sizeof(event) };

                if (pfm->get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event) == PFM_SUCCESS)
                        suggest_offer(similar, event.name);
        }
}

static int offer_generic(void *userdata, const char *name, uint32_t type, uint64_t config,
                         const char *description) {
        suggest_offer(userdata, name);
        return 0;
}

/* "EVENT", without "pmu::". */
static int explain_event(const Pfm *pfm, const Parts *p, Refusal *why) {
        Suggestions similar = suggest_begin(p->event);
        char text[SUGGEST_TEXT_MAX], cpu[128];
        pfm_pmu_info_t pmu;

        if (generic_event_is_name(p->event))
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': invalid modifier after '%s'; modifiers are u, k, h "
                              "(user, kernel, hypervisor), G, H (guests, host), I (not idle), p to "
                              "ppp (precise)",
                              p->string, p->event);
        (void) generic_event_visit(offer_generic, &similar);
        for (int id = PFM_PMU_NONE; id < PFM_PMU_MAX; id++)
                if (get_pmu(pfm, id, &pmu) && pmu.is_present)
                        offer_events(pfm, &pmu, &similar);
        return refuse(
                why, REFUSAL_NO_SUCH_EVENT,
                "unknown event '%s': '%.64s' is not an event of the kernel or of this CPU, %s%s",
                p->string, p->event, describe_cpu(pfm, cpu), suggest_text(&similar, text));
}

/* "pmu::EVENT", where libpfm4 knows the PMU. */
static int explain_pmu_event(const Pfm *pfm, const Parts *p, const pfm_pmu_info_t *pmu,
                             Refusal *why) {
        Suggestions similar = suggest_begin(p->event);
        char text[SUGGEST_TEXT_MAX], cpu[128];

        if (!pmu->is_present)
                return refuse(why, REFUSAL_NO_SUCH_EVENT,
                              "event '%s': PMU '%s' is that of %s, and this machine's CPU is %s",
                              p->string, pmu->name, pmu->desc, describe_cpu(pfm, cpu));
        offer_events(pfm, pmu, &similar);
        return refuse(why, REFUSAL_NO_SUCH_EVENT, "event '%s': %s (%s) has no event '%.64s'%s",
                      p->string, pmu->desc, pmu->name, p->event, suggest_text(&similar, text));
}

static int explain_name(const Pfm *pfm, const Parts *p, Refusal *why) {
        Suggestions similar = suggest_begin(p->pmu);
        char text[SUGGEST_TEXT_MAX];
        pfm_pmu_info_t pmu;

        if (!strstr(p->string, "::"))
                return explain_event(pfm, p, why);
        for (int id = PFM_PMU_NONE; id < PFM_PMU_MAX; id++) {
                if (!get_pmu(pfm, id, &pmu))
                        continue;
                if (strcasecmp(pmu.name, p->pmu) == 0)
                        return explain_pmu_event(pfm, p, &pmu, why);
                suggest_offer(&similar, pmu.name);
        }
        return refuse(why, REFUSAL_NO_SUCH_EVENT, "event '%s': libpfm4 knows no PMU '%.64s'%s",
                      p->string, p->pmu, suggest_text(&similar, text));
}

/* Offers what may follow an event's name as suggestions; lists unit masks, unless list is NULL. */
static void offer_parts(const Pfm *pfm, const Parts *p, Suggestions *similar, char *list,
                        size_t size) {
        char base[EVENT_NAME_MAX + 1];
        pfm_event_info_t event = { .size = sizeof(event) };
        size_t length = 0;
        int index;

        (void) snprintf(base, sizeof(base), "%.*s", (int) p->base, p->string);
        index = pfm->find_event(base);
        if (index < 0 || pfm->get_event_info(index, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS)
                return;
        for (int i = 0; i < event.nattrs; i++) {
                pfm_event_attr_info_t part = { .size = sizeof(part) };

                if (pfm->get_event_attr_info(index, i, PFM_OS_PERF_EVENT_EXT, &part) != PFM_SUCCESS)
                        continue;
                if (similar)
                        suggest_offer(similar, part.name);
                if (list && part.type == PFM_ATTR_UMASK && length < size)
                        length += (size_t) snprintf(list + length, size - length, "%s%s",
                                                    length > 0 ? ", " : "", part.name);
        }
}

/* The part that is wrong: the last one of the shortest beginning of the string that fails with the
 * same error. */
static const char *find_part(const Pfm *pfm, const Parts *p, int error,
                             char part[static EVENT_NAME_MAX + 1]) {
        char beginning[EVENT_NAME_MAX + 1];
        size_t start = p->base, end = p->base;
        struct perf_event_attr attr;
        bool extras;

        while (p->string[end]) {
                start = end + 1;
                end = start + strcspn(p->string + start, ":");
                (void) snprintf(beginning, sizeof(beginning), "%.*s", (int) end, p->string);
                if (pfm_encode(pfm, beginning, &attr, &extras) == error)
                        break;
        }
        (void) snprintf(part, EVENT_NAME_MAX + 1, "%.*s", (int) (end - start), p->string + start);
        return part;
}

static int explain_part(const Pfm *pfm, const Parts *p, int error, Refusal *why) {
        char part[EVENT_NAME_MAX + 1], name[EVENT_NAME_MAX + 1], text[SUGGEST_TEXT_MAX];
        Suggestions similar;

        find_part(pfm, p, error, part);
        if (error != PFM_ERR_ATTR)
                return refuse(why, REFUSAL_INVALID_EVENT, "event '%s': '%.64s': %s", p->string,
                              part, pfm->strerror(error));
        (void) snprintf(name, sizeof(name), "%.*s", (int) strcspn(part, "="), part);
        similar = suggest_begin(name);
        offer_parts(pfm, p, &similar, NULL, 0);
        return refuse(why, REFUSAL_NO_SUCH_EVENT,
                      "event '%s': '%.64s' has no unit mask or modifier '%.64s'%s", p->string,
                      p->event, name, suggest_text(&similar, text));
}

int pfm_explain(const Pfm *pfm, const char *string, int error, Refusal *why) {
        Parts p = parts_of(string);
        char masks[256] = "";

        switch (error) {
        case PFM_ERR_NOMEM:
                return -ENOMEM;
        case PFM_ERR_NOTFOUND:
                return explain_name(pfm, &p, why);
        case PFM_ERR_ATTR:
        case PFM_ERR_ATTR_VAL:
        case PFM_ERR_ATTR_SET:
                return explain_part(pfm, &p, error, why);
        case PFM_ERR_UMASK:
                offer_parts(pfm, &p, NULL, masks, sizeof(masks));
                return refuse(
                        why, REFUSAL_INVALID_EVENT,
                        "event '%s': unit masks are missing or exclude each other; it has: %s",
                        string, masks);
        default:
                return refuse(why, REFUSAL_INVALID_EVENT, "event '%s': %s", string,
                              pfm->strerror(error));
        }
}
