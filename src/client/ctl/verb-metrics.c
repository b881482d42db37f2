/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/verbs.h"
#include "client/ctl/words.h"

/*
 * metrics: for Prometheus and its like, in the format of OpenMetrics
 * (https://github.com/OpenObservability/OpenMetrics): all samples of a family together, the type
 * before them, "# EOF" at the end.
 */

typedef struct Label {
        const char *name;     /* NULL: no more */
        const char *property; /* NULL: the object's number */
} Label;

static const Label hold_labels[] = {
        { "hold", NULL },  { "state", "State" }, { "mode", "Mode" },
        { "user", "Uid" }, { "cpus", "Cpus" },   {},
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
static const Label sampler_label[] = { { "sampler", NULL }, {} };
static const Label pmu_labels[] = { { "pmu", "Name" }, { "kind", "Kind" }, {} };

#define HOLD    PERFALLOC_HOLD_INTERFACE
#define SAMPLER PERFALLOC_SAMPLER_INTERFACE

typedef struct Family {
        const char *name, *type;
        const char *interface; /* one sample for each object of it... */
        const char *property;  /* with this value; NULL: 1 */
        double factor;         /* to the base unit; 0: none */
        const Label *labels;
        const char *help;
} Family;

static const Family families[] = {
        { "perfalloc_hold", "gauge", HOLD, NULL, 0, hold_labels,
          "Holds that are granted or wanted." },
        { "perfalloc_hold_confirmed", "gauge", HOLD, "Confirmed", 0, hold_label,
          "Whether the counters were measured to be free." },
        { "perfalloc_hold_request_timestamp_seconds", "gauge", HOLD, "RequestTimestamp", 1e-6,
          hold_label, "When it was asked for." },
        { "perfalloc_hold_grant_timestamp_seconds", "gauge", HOLD, "GrantTimestamp", 1e-6,
          hold_label, "When it was granted; 0: not yet." },
        { "perfalloc_hold_latency_seconds", "gauge", HOLD, "LatencyUSec", 1e-6, hold_label,
          "From authorization to the grant." },
        { "perfalloc_monitor", "gauge", PERFALLOC_MONITOR_INTERFACE, NULL, 0, monitor_labels,
          "Registered monitors." },
        { "perfalloc_counter", "gauge", PERFALLOC_COUNTER_INTERFACE, NULL, 0, counter_labels,
          "Counters that the service has open." },
        { "perfalloc_sampler_ticks", "counter", SAMPLER, "Ticks", 0, sampler_label,
          "Records on the stream." },
        { "perfalloc_sampler_missed", "counter", SAMPLER, "Missed", 0, sampler_label,
          "Ticks that were skipped." },
        { "perfalloc_pmu_counters", "gauge", PERFALLOC_PMU_INTERFACE, "Counters", 0, pmu_labels,
          "Events that count at once on one CPU; 0: unknown or unlimited." },
};

static void print_head(const char *name, const char *type, const char *help) {
        printf("# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

/* A sample, but for its value. Those of counters end in _total. */
static int print_sample(const char *name, const char *type, const Object *o, const Label *labels) {
        printf("%s%s", name, strcmp(type, "counter") == 0 ? "_total" : "");
        for (const Label *label = labels; label->name; label++) {
                const Value *v = label->property ? object_value(o, label->property) : NULL;
                _cleanup_free_ char *text = NULL;

                if (!v)
                        (void) asprintf(&text, "%" PRIu64, o->number);
                else if (v->kind == VALUE_NUMBER)
                        text = words_user((uid_t) v->number);
                else
                        text = words_label(v->text ?: "");
                if (!text)
                        return -ENOMEM;
                printf("%c%s=\"%s\"", label == labels ? '{' : ',', label->name, text);
        }
        putchar('}');
        return 0;
}

static int print_family(const Objects *all, const Family *family) {
        int r = 0;

        print_head(family->name, family->type, family->help);
        OBJECTS_FOREACH (o, all, family->interface) {
                uint64_t n = family->property ? object_number(o, family->property) : 1;

                if (r < 0 || object_is(o, "State", "ended"))
                        continue;
                r = print_sample(family->name, family->type, o, family->labels);
                if (family->factor > 0)
                        printf(" %.6f\n", (double) n * family->factor);
                else
                        printf(" %" PRIu64 "\n", n);
        }
        return r;
}

/* ---- the service ---- */

static int print_service(Ctl *c, Refusal *why) {
        _cleanup_(object_done) Object manager = OBJECT_NULL;
        _cleanup_free_ char *version = NULL;
        int r;

        r = ctl_fetch(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, &manager, why);
        if (r != 0)
                return r;
        version = words_label(object_text(&manager, "Version"));
        if (!version)
                return -ENOMEM;
        print_head("perfalloc", "info", "The service.");
        printf("perfalloc_info{version=\"%s\"} 1\n", version);
        print_head("perfalloc_yielding", "gauge", "Whether monitors have given way to a hold.");
        printf("perfalloc_yielding %" PRIu64 "\n", object_number(&manager, "Yielding"));
        return 0;
}

/* ---- values ---- */

typedef struct Sample {
        const Object *counter;
        uint64_t value, enabled_nsec, running_nsec;
} Sample;

/* Those of others cannot be read, and are left out. */
static int sample_read(Ctl *c, const Object *o, Sample *ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *quality;
        int r = ctl_call_method(c, o->path, PERFALLOC_COUNTER_INTERFACE, "Read", &reply, why, "");

        if (r == CTL_E_DENIED || r == CTL_E_UNKNOWN)
                return 0;
        if (r == 0)
                r = MIN(sd_bus_message_read(reply, "ttts", &ret->value, &ret->enabled_nsec,
                                            &ret->running_nsec, &quality),
                        0);
        ret->counter = o;
        return r;
}

static const struct {
        const char *name, *help;
        size_t offset;
        bool seconds;
} values[] = {
        { "perfalloc_counter_events", "What was counted, raw.", offsetof(Sample, value), false },
        { "perfalloc_counter_enabled_seconds", "For how long it was to count.",
          offsetof(Sample, enabled_nsec), true },
        { "perfalloc_counter_running_seconds", "For how long it really counted.",
          offsetof(Sample, running_nsec), true },
};

static int print_values(const Sample *samples, size_t n_samples) {
        int r = 0;

        for (size_t v = 0; v < ELEMENTSOF(values); v++) {
                print_head(values[v].name, "counter", values[v].help);
                for (size_t i = 0; i < n_samples && r >= 0; i++) {
                        const uint64_t *n =
                                (const uint64_t *) ((const char *) &samples[i] + values[v].offset);

                        r = print_sample(values[v].name, "counter", samples[i].counter,
                                         value_labels);
                        if (values[v].seconds)
                                printf(" %.9f\n", (double) *n * 1e-9);
                        else
                                printf(" %" PRIu64 "\n", *n);
                }
        }
        return r;
}

static int print_counters(Ctl *c, const Objects *all, Refusal *why) {
        size_t n = 0, n_counters = objects_count(all, PERFALLOC_COUNTER_INTERFACE);
        _cleanup_free_ Sample *samples = calloc(n_counters + 1, sizeof(Sample));
        int r = samples ? 0 : -ENOMEM;

        OBJECTS_FOREACH (o, all, PERFALLOC_COUNTER_INTERFACE) {
                if (r != 0)
                        return r;
                r = sample_read(c, o, &samples[n], why);
                n += samples[n].counter && r == 0;
        }
        return r == 0 ? print_values(samples, n) : r;
}

int verb_metrics(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r = ctl_fetch_all(c, &all, why);

        if (r == 0)
                r = print_service(c, why);
        for (size_t i = 0; i < ELEMENTSOF(families) && r == 0; i++)
                r = print_family(&all, &families[i]);
        if (r == 0)
                r = print_counters(c, &all, why);
        if (r == 0)
                printf("# EOF\n");
        return r;
}
