/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/verbs.h"
#include "client/ctl/words.h"

/*
 * metrics: OpenMetrics for Prometheus and similar programs
 * (https://github.com/OpenObservability/OpenMetrics): all samples of a family together, the type
 * before them, "# EOF" at the end.
 */

typedef struct Label {
        const char *name;
        const char *property;
} Label;

#define LABELS_MAX 6u

typedef struct Family {
        const char *name, *type, *help;
        const char *suffix;    /* of the samples */
        const char *interface; /* one sample for each object of it... */
        const char *property;  /* with this value; NULL: 1 */
        double factor;         /* to the base unit; 0: none */
        Label labels[LABELS_MAX];
} Family;

static const Family families[] = {
        { "perfalloc_hold",
          "gauge",
          "Holds that are granted or wanted.",
          "",
          PERFALLOC_HOLD_INTERFACE,
          NULL,
          0,
          { { "hold", NULL },
            { "state", "State" },
            { "mode", "Mode" },
            { "user", "Uid" },
            { "cpus", "Cpus" } } },
        { "perfalloc_hold_confirmed",
          "gauge",
          "Whether the counters were measured to be free.",
          "",
          PERFALLOC_HOLD_INTERFACE,
          "Confirmed",
          0,
          { { "hold", NULL } } },
        { "perfalloc_hold_request_timestamp_seconds",
          "gauge",
          "When it was asked for.",
          "",
          PERFALLOC_HOLD_INTERFACE,
          "RequestTimestamp",
          1e-6,
          { { "hold", NULL } } },
        { "perfalloc_hold_grant_timestamp_seconds",
          "gauge",
          "When it was granted; 0: not yet.",
          "",
          PERFALLOC_HOLD_INTERFACE,
          "GrantTimestamp",
          1e-6,
          { { "hold", NULL } } },
        { "perfalloc_hold_latency_seconds",
          "gauge",
          "From authorization to the grant.",
          "",
          PERFALLOC_HOLD_INTERFACE,
          "LatencyUSec",
          1e-6,
          { { "hold", NULL } } },
        { "perfalloc_monitor",
          "gauge",
          "Registered monitors.",
          "",
          PERFALLOC_MONITOR_INTERFACE,
          NULL,
          0,
          { { "monitor", NULL }, { "name", "Name" }, { "state", "State" }, { "user", "Uid" } } },
        { "perfalloc_counter",
          "gauge",
          "Counters that the service has open.",
          "",
          PERFALLOC_COUNTER_INTERFACE,
          NULL,
          0,
          { { "counter", NULL },
            { "event", "Event" },
            { "scope", "Scope" },
            { "role", "Role" },
            { "state", "State" },
            { "name", "Name" } } },
        { "perfalloc_sampler_ticks",
          "counter",
          "Records on the stream.",
          "_total",
          PERFALLOC_SAMPLER_INTERFACE,
          "Ticks",
          0,
          { { "sampler", NULL } } },
        { "perfalloc_sampler_missed",
          "counter",
          "Ticks that were skipped.",
          "_total",
          PERFALLOC_SAMPLER_INTERFACE,
          "Missed",
          0,
          { { "sampler", NULL } } },
        { "perfalloc_pmu_counters",
          "gauge",
          "Events that count at once on one CPU; 0: unknown or unlimited.",
          "",
          PERFALLOC_PMU_INTERFACE,
          "Counters",
          0,
          { { "pmu", "Name" }, { "kind", "Kind" } } },
};

static void print_head(const char *name, const char *type, const char *help) {
        printf("# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

static int print_labels(const Object *o, const Label labels[]) {
        for (size_t i = 0; i < LABELS_MAX && labels[i].name; i++) {
                const Value *v = labels[i].property ? object_value(o, labels[i].property) : NULL;
                _cleanup_free_ char *text = NULL;

                if (!v)
                        (void) asprintf(&text, "%" PRIu64, o->number);
                else if (v->kind == VALUE_NUMBER)
                        text = words_user((uid_t) v->number);
                else
                        text = words_label(v->text ?: "");
                if (!text)
                        return -ENOMEM;
                printf("%c%s=\"%s\"", i == 0 ? '{' : ',', labels[i].name, text);
        }
        putchar('}');
        return 0;
}

static int print_family(const Objects *all, const Family *family) {
        int r = 0;

        print_head(family->name, family->type, family->help);
        OBJECTS_FOREACH(o, all, family->interface) {
                uint64_t n = family->property ? object_number(o, family->property) : 1;

                if (r < 0 || object_is(o, "State", "ended"))
                        continue;
                printf("%s%s", family->name, family->suffix);
                r = print_labels(o, family->labels);
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

        r = object_fetch(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, &manager, why);
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

/* Other users' counters cannot be read, and are left out. */
static int sample_read(Ctl *c, const Object *o, Sample *ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *quality;
        int r = ctl_call_plain(c, o->path, PERFALLOC_COUNTER_INTERFACE, "Read", &reply, why);

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
        static const Label labels[LABELS_MAX] = { { "counter", NULL },
                                                  { "event", "Event" },
                                                  { "name", "Name" } };
        int r = 0;

        for (size_t v = 0; v < ELEMENTSOF(values); v++) {
                print_head(values[v].name, "counter", values[v].help);
                for (size_t i = 0; i < n_samples && r >= 0; i++) {
                        const uint64_t *n =
                                (const uint64_t *) ((const char *) &samples[i] + values[v].offset);

                        printf("%s_total", values[v].name);
                        r = print_labels(samples[i].counter, labels);
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

        OBJECTS_FOREACH(o, all, PERFALLOC_COUNTER_INTERFACE) {
                if (r != 0)
                        return r;
                r = sample_read(c, o, &samples[n], why);
                n += samples[n].counter && r == 0;
        }
        return r == 0 ? print_values(samples, n) : r;
}

int verb_metrics(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r = objects_fetch(c, &all, why);

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
