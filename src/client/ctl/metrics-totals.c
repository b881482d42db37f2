/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "metrics-totals.h"

#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

/* Those of a family stand together; its head is that of the first. */
static const struct {
        const char *total;  /* in the property */
        const char *family; /* without "_total" */
        const char *labels;
        uint64_t per_second; /* of a time: the units in a second; else 0 */
        const char *help;
} rows[] = {
        { "holds_released", "perfalloc_holds_ended", "{result=\"released\"}", 0,
          "Holds that have ended, by how." },
        { "holds_lease_closed", "perfalloc_holds_ended", "{result=\"lease-closed\"}", 0, NULL },
        { "holds_expired", "perfalloc_holds_ended", "{result=\"expired\"}", 0, NULL },
        { "holds_timed_out", "perfalloc_holds_ended", "{result=\"timed-out\"}", 0, NULL },
        { "holds_obstructed", "perfalloc_holds_ended", "{result=\"obstructed\"}", 0, NULL },
        { "holds_revoked", "perfalloc_holds_ended", "{result=\"revoked\"}", 0, NULL },
        { "grants_confirmed", "perfalloc_grants", "{confirmed=\"yes\"}", 0,
          "Holds that were granted, by whether the counters were measured to be free." },
        { "grants_unconfirmed", "perfalloc_grants", "{confirmed=\"no\"}", 0, NULL },
        { "latency_usec", "perfalloc_grant_latency_seconds", "", USEC_PER_SEC,
          "From authorization to the grant, summed over the grants." },
        { "held_usec", "perfalloc_held_seconds", "", USEC_PER_SEC,
          "How long holds have been granted, summed over them." },
        { "yielded_usec", "perfalloc_yielded_seconds", "", USEC_PER_SEC,
          "Time that monitors have yielded, summed over them." },
        { "counters_opened", "perfalloc_counters_opened", "", 0,
          "Counters that the service has opened for itself and others." },
        { "events_opened", "perfalloc_events_opened", "", 0,
          "Events whose descriptors it has handed out." },
        { "denials", "perfalloc_denials", "", 0, "Calls that were not authorized." },
        { "ticks", "perfalloc_ticks", "", 0, "Records of all samplers." },
        { "ticks_missed", "perfalloc_ticks_missed", "", 0, "Ticks that samplers have skipped." },
        { "starts", "perfalloc_starts", "", 0, "How often the service was started." },
};

typedef struct Totals {
        bool known[ELEMENTSOF(rows)];
        uint64_t values[ELEMENTSOF(rows)];
} Totals;

static void totals_set(Totals *t, const char *name, uint64_t value) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (strcmp(rows[i].total, name) == 0) {
                        t->known[i] = true;
                        t->values[i] = value;
                }
}

static int totals_read(Totals *t, sd_bus_message *m) {
        const char *name;
        uint64_t value;
        int r = sd_bus_message_enter_container(m, 'v', "a{st}");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{st}");
        while (r >= 0 && (r = sd_bus_message_read(m, "{st}", &name, &value)) > 0)
                totals_set(t, name, value);
        return r;
}

static void totals_print(const Totals *t, MetricsFormat format) {
        const char *family = "";

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                if (!t->known[i])
                        continue;
                if (strcmp(rows[i].family, family) != 0)
                        metrics_head(format, rows[i].family, METRIC_COUNTER, rows[i].help);
                family = rows[i].family;
                printf("%s%s%s", family, metric_suffix(METRIC_COUNTER), rows[i].labels);
                metrics_value(t->values[i], rows[i].per_second);
        }
}

int metrics_print_totals(Ctl *c, MetricsFormat format, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Totals totals = {};
        int r = ctl_call_method(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.Properties", "Get",
                                &reply, why, "ss", PERFALLOC_MANAGER_INTERFACE, "Totals");

        if (r == 0)
                r = MIN(totals_read(&totals, reply), 0);
        if (r == 0)
                totals_print(&totals, format);
        return r;
}
