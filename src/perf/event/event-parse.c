/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-parse.h"

#include <fnmatch.h>
#include <string.h>

#include "perf/event/breakpoint-event.h"
#include "perf/event/event-units.h"
#include "perf/event/generic-event.h"
#include "perf/event/pfm-event.h"
#include "perf/event/sysfs-event.h"
#include "perf/event/tracepoint-event.h"

/* Strings come from clients, and messages and logs contain them. */
static int check_string(const char *string, Refusal *why) {
        size_t length = strnlen(string, EVENT_NAME_MAX + 1);

        if (length == 0)
                return refuse(why, REFUSAL_INVALID_EVENT, "an event without a name");
        if (length > EVENT_NAME_MAX)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%.32s...': the name is longer than %u bytes", string,
                              EVENT_NAME_MAX);
        for (const char *p = string; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return refuse(why, REFUSAL_INVALID_EVENT,
                                      "event '%.*s' contains blanks or other invalid characters",
                                      (int) (p - string), string);
        return 0;
}

static int refuse_no_pmu(const PmuTable *pmus, const Event *e, Refusal *why) {
        bool core = e->attr.type == PERF_TYPE_HARDWARE || e->attr.type == PERF_TYPE_HW_CACHE ||
                    e->attr.type == PERF_TYPE_RAW;

        if (core && !pmu_table_find_event(pmus, PERF_TYPE_HARDWARE, 0))
                return refuse(
                        why, REFUSAL_NO_SUCH_EVENT,
                        "event '%s' needs the CPU's counters, and this machine has no core PMU "
                        "(virtual machines often have none): give the machine a PMU, or count "
                        "software events such as task-clock",
                        e->name);
        return refuse(why, REFUSAL_NO_SUCH_EVENT,
                      "event '%s' belongs to a PMU (type %u) that this machine does not have",
                      e->name, e->attr.type);
}

/* A tracepoint, or a name of libpfm4. */
static int parse_name(const PmuTable *pmus, Event *e, Refusal *why) {
        _cleanup_free_ char *path = NULL;
        int r = tracepoint_event_parse(pmus, e->name, e, &path, why);

        if (r != -ENOENT)
                return r;
        r = pfm_event_parse(e->name, &e->attr, why);
        if (r == REFUSAL_NO_SUCH_EVENT && path)
                r = tracepoint_event_explain(e->name, path, why) ?: r;
        return r;
}

static int parse_string(const PmuTable *pmus, Event *e, Refusal *why) {
        const char *string = e->name;

        if (strncmp(string, BREAKPOINT_EVENT_PREFIX, strlen(BREAKPOINT_EVENT_PREFIX)) == 0)
                return breakpoint_event_parse(string, &e->attr, why);
        if (strchr(string, '/'))
                return sysfs_event_parse(pmus, string, e, why);
        if (generic_event_parse(string, &e->attr))
                return 0;
        return parse_name(pmus, e, why);
}

static int parse_one(const PmuTable *pmus, const char *string, Event *ret, Refusal *why) {
        _cleanup_(event_done) Event e = { .scale = 1, .attr.size = sizeof(e.attr) };
        int r;

        e.name = strdup(string);
        e.unit = strdup("");
        if (!e.name || !e.unit)
                return -ENOMEM;
        r = parse_string(pmus, &e, why);
        if (r != 0)
                return r;
        if (!e.pmu)
                e.pmu = pmu_table_find_event(pmus, e.attr.type, e.attr.config);
        if (!e.pmu)
                return refuse_no_pmu(pmus, &e, why);
        *ret = e;
        e = EVENT_NULL;
        return 0;
}

int event_parse(const PmuTable *pmus, const char *string, Event *ret, Refusal *why) {
        _cleanup_(event_done) Event e = EVENT_NULL;
        int r;

        r = check_string(string, why);
        if (r == 0)
                r = event_parse_instances(pmus, string, parse_one, &e, why);
        if (r == -ENOENT)
                r = parse_one(pmus, string, &e, why);
        if (r == 0)
                r = event_spread(pmus, &e);
        if (r != 0)
                return r;
        *ret = e;
        e = EVENT_NULL;
        return 0;
}

typedef struct Listing {
        const PmuTable *pmus;
        const char *pattern;
        EventVisitor visitor;
        void *userdata;
} Listing;

static int list_generic(void *userdata, const char *name, uint32_t type, uint64_t config,
                        const char *description) {
        Listing *l = userdata;
        const Pmu *pmu = pmu_table_find_event(l->pmus, type, config);

        if (!pmu || fnmatch(l->pattern, name, FNM_CASEFOLD) != 0)
                return 0;
        return l->visitor(l->userdata, name, pmu->name, description);
}

int event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata) {
        Listing listing = { pmus, pattern, f, userdata };
        int r;

        if (strnlen(pattern, EVENT_NAME_MAX + 1) > EVENT_NAME_MAX)
                return 0; /* longer than any name */
        r = generic_event_visit(list_generic, &listing);
        if (r == 0)
                r = sysfs_event_list(pmus, pattern, f, userdata);
        if (r == 0)
                r = pfm_event_list(pmus, pattern, f, userdata);
        return r;
}
