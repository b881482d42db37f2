/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/metrics-totals.h"
#include "client/ctl/verbs.h"
#include "client/ctl/words.h"

/*
 * metrics: the service and all its objects, for Prometheus and similar programs.
 */

typedef struct Label {
        const char *name;     /* NULL: no more */
        const char *property; /* NULL: the object's number */
} Label;

static const Label hold_labels[] = {
        { "hold", NULL },   { "state", "State" },   { "mode", "Mode" }, { "user", "Uid" },
        { "cpus", "Cpus" }, { "reason", "Reason" }, { "tag", "Tag" },   {},
};
static const Label hold_label[] = { { "hold", NULL }, {} };
static const Label monitor_labels[] = {
        { "monitor", NULL }, { "name", "Name" }, { "state", "State" }, { "user", "Uid" }, {},
};
static const Label counter_labels[] = {
        { "counter", NULL },
        { "event", "Event" },
        { "scope", "Scope" },
        { "role", "Role" },
        { "state", "State" },
        { "name", "Name" },
        {},
};
static const Label value_labels[] = {
        { "counter", NULL },
        { "event", "Event" },
        { "name", "Name" },
        {},
};
static const Label amount_labels[] = {
        { "counter", NULL }, { "event", "Event" }, { "name", "Name" }, { "unit", "Unit" }, {},
};
static const Label sampler_label[] = { { "sampler", NULL }, {} };
static const Label pmu_labels[] = { { "pmu", "Name" }, { "kind", "Kind" }, {} };

#define COUNTER PERFALLOC_COUNTER_INTERFACE
#define HOLD    PERFALLOC_HOLD_INTERFACE
#define SAMPLER PERFALLOC_SAMPLER_INTERFACE

typedef struct Family {
        const char *name;
        MetricType type;
        const char *interface; /* one sample for each object of it... */
        const char *property;  /* that has this property, whose value it is; NULL: all, with 1 */
        uint64_t per_second;   /* of a time: the units in a second; else 0 */
        const Label *labels;
        const char *help;
} Family;

static const Family families[] = {
        { "perfalloc_holds", METRIC_GAUGE, HOLD, NULL, 0, hold_labels,
          "Holds that are granted or wanted." },
        { "perfalloc_hold_confirmed", METRIC_GAUGE, HOLD, "Confirmed", 0, hold_label,
          "Whether the counters were measured to be free." },
        { "perfalloc_hold_request_timestamp_seconds", METRIC_GAUGE, HOLD, "RequestTimestamp",
          USEC_PER_SEC, hold_label, "When it was asked for." },
        { "perfalloc_hold_grant_timestamp_seconds", METRIC_GAUGE, HOLD, "GrantTimestamp",
          USEC_PER_SEC, hold_label, "When it was granted; 0: not yet." },
        { "perfalloc_hold_latency_seconds", METRIC_GAUGE, HOLD, "LatencyUSec", USEC_PER_SEC,
          hold_label, "From authorization to the grant." },
        { "perfalloc_monitors", METRIC_GAUGE, PERFALLOC_MONITOR_INTERFACE, NULL, 0, monitor_labels,
          "Registered monitors." },
        { "perfalloc_counters", METRIC_GAUGE, COUNTER, NULL, 0, counter_labels,
          "Counters that the service has open." },
        { "perfalloc_sampler_ticks", METRIC_COUNTER, SAMPLER, "Ticks", 0, sampler_label,
          "Records on the stream." },
        { "perfalloc_sampler_missed", METRIC_COUNTER, SAMPLER, "Missed", 0, sampler_label,
          "Ticks that were skipped." },
        { "perfalloc_pmu_counters", METRIC_GAUGE, PERFALLOC_PMU_INTERFACE, "Counters", 0,
          pmu_labels, "Events that count at once on one CPU; 0: unknown or unlimited." },
        { "perfalloc_events_counted", METRIC_COUNTER, COUNTER, "Value", 0, value_labels,
          "What was counted, raw." },
        { "perfalloc_events_enabled_seconds", METRIC_COUNTER, COUNTER, "EnabledNSec", NSEC_PER_SEC,
          value_labels, "For how long it was to count." },
        { "perfalloc_events_running_seconds", METRIC_COUNTER, COUNTER, "RunningNSec", NSEC_PER_SEC,
          value_labels, "For how long it really counted." },
        { "perfalloc_events_estimated", METRIC_GAUGE, COUNTER, "Estimate", 0, value_labels,
          "What was counted, scaled for the time without a counter." },
        { "perfalloc_events_amount", METRIC_GAUGE, COUNTER, "Amount", 0, amount_labels,
          "The estimate in the event's unit, where it has one." },
};

/* What Prometheus keeps grows with the number of values of a label, and every job has a tag of its
 * own. */
#define TAGS_MAX 64u

static bool label_is_left_out(const Label *label, const Value *v) {
        static unsigned n_tags;

        return v && label->property && strcmp(label->property, "Tag") == 0 && v->text && *v->text &&
               n_tags++ >= TAGS_MAX;
}

static int print_labels(const Object *o, const Label *labels) {
        for (const Label *label = labels; label->name; label++) {
                const Value *v = label->property ? object_value(o, label->property) : NULL;
                _cleanup_free_ char *text = NULL;

                if (!v)
                        text = words_format("%" PRIu64, o->number);
                else if (v->kind == VALUE_NUMBER)
                        text = words_user((uid_t) v->number);
                else
                        text = words_label(label_is_left_out(label, v) ? "..." : v->text ?: "");
                if (!text)
                        return -ENOMEM;
                printf("%c%s=\"%s\"", label == labels ? '{' : ',', label->name, text);
        }
        putchar('}');
        return 0;
}

static int print_sample(const Family *family, const Object *o) {
        int r;

        printf("%s%s", family->name, metric_suffix(family->type));
        r = print_labels(o, family->labels);
        if (family->property && object_value(o, family->property)->kind == VALUE_REAL)
                metrics_real(object_real(o, family->property));
        else
                metrics_value(family->property ? object_number(o, family->property) : 1,
                              family->per_second);
        return r;
}

static int print_family(MetricsFormat format, const Objects *all, const Family *family) {
        int r = 0;

        metrics_head(format, family->name, family->type, family->help);
        OBJECTS_FOREACH (o, all, family->interface)
                if (r == 0 && !object_is(o, "State", "ended") &&
                    (!family->property || object_value(o, family->property)->kind != VALUE_NONE))
                        r = print_sample(family, o);
        return r;
}

/* ---- the service ---- */

static int print_service(Ctl *c, MetricsFormat format, Refusal *why) {
        _cleanup_(object_done) Object manager = OBJECT_NULL;
        _cleanup_free_ char *version = NULL;
        int r;

        r = ctl_fetch(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, &manager, why);
        if (r != 0)
                return r;
        version = words_label(object_text(&manager, "Version"));
        if (!version)
                return -ENOMEM;
        metrics_head(format, "perfalloc", METRIC_INFO, "The service.");
        printf("perfalloc_info{version=\"%s\"} 1\n", version);
        metrics_head(format, "perfalloc_yielding", METRIC_GAUGE,
                     "Whether monitors have yielded to a hold.");
        printf("perfalloc_yielding %" PRIu64 "\n", object_number(&manager, "Yielding"));
        return metrics_print_totals(c, format, why);
}

/* ---- values ---- */

static int amount_add(Object *counter) {
        double scale = object_real(counter, "Scale");
        Value v = { .kind = VALUE_REAL,
                    .real = (double) object_number(counter, "Estimate") * scale };

        if (scale == 1 && !*object_text(counter, "Unit"))
                return 0;
        return object_add(counter, "Amount", v);
}

/* Reads a counter's values as if they were properties. Other users' counters cannot be read. */
static int values_read(Ctl *c, Object *counter, Refusal *why) {
        static const char *const names[] = { "Value", "EnabledNSec", "RunningNSec", "Estimate" };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = ctl_call_method(c, counter->path, PERFALLOC_COUNTER_INTERFACE, "Read", &reply, why,
                                "");

        if (r == CTL_E_DENIED || r == CTL_E_UNKNOWN)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(names) && r == 0; i++) {
                Value v;

                r = value_read_as(&v, reply, "t");
                if (r == 0)
                        r = object_add(counter, names[i], v);
        }
        return r == 0 ? amount_add(counter) : r;
}

int verb_metrics(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        MetricsFormat format = METRICS_PROMETHEUS;
        int r;

        if (c->options->format && !metrics_format_find(c->options->format, &format))
                return refuse(why, CTL_E_USAGE,
                              "--format: invalid value '%.64s' (one of prometheus, openmetrics)",
                              c->options->format);
        r = ctl_fetch_all(c, &all, why);
        for (size_t i = 0; i < all.n && r == 0; i++)
                if (strcmp(all.items[i].interface, PERFALLOC_COUNTER_INTERFACE) == 0)
                        r = values_read(c, &all.items[i], why);
        if (r == 0)
                r = print_service(c, format, why);
        for (size_t i = 0; i < ELEMENTSOF(families) && r == 0; i++)
                r = print_family(format, &all, &families[i]);
        if (r == 0)
                metrics_end(format);
        return r;
}
