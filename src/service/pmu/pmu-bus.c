/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pmu-bus.h"

#include <perfalloc/dbus.h>
#include <string.h>

#include "perf/pmu/kernel-share.h"
#include "service/bus/object.h"
#include "service/pmu/capacity.h"
#include "service/pmu/probe-call.h"
#include "service/util/options.h"
#include "service/util/property.h"
#include "service/util/reply.h"

#define PMU_PATH PERFALLOC_OBJECT_PATH "/pmu"

PROPERTY_GETTER(get_kind) {
        return sd_bus_message_append(reply, "s", pmu_kind_name(((const Pmu *) userdata)->kind));
}

PROPERTY_GETTER(get_cpus) {
        const Pmu *pmu = userdata;
        _cleanup_free_ char *cpus = NULL;
        int r = cpuset_format(&pmu->cpus, &cpus);

        return r < 0 ? r : sd_bus_message_append(reply, "s", cpus);
}

PROPERTY_GETTER(get_counters) {
        return sd_bus_message_append(reply, "u", (uint32_t) ((const Pmu *) userdata)->counters);
}

PROPERTY_GETTER(get_fixed) {
        const Pmu *pmu = userdata;
        int r = sd_bus_message_open_container(reply, 'a', "s");

        for (unsigned i = 0; i < pmu->n_fixed && r >= 0; i++)
                r = sd_bus_message_append_basic(reply, 's', pmu->fixed[i].name);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

PROPERTY_GETTER(get_kernel) {
        bool keeps = !shape_is_empty(kernel_share(userdata, KERNEL_SHARE_PATH));

        return sd_bus_message_append(reply, "as", keeps ? 1 : 0, KERNEL_SHARE_NAME);
}

PROPERTY_GETTER(get_probed) {
        const char *names = ((const Pmu *) userdata)->probed ?: "";
        int r = sd_bus_message_open_container(reply, 'a', "s");

        while (*names && r >= 0) {
                size_t n = strcspn(names, " ");
                _cleanup_free_ char *name = strndup(names, n);

                r = name ? sd_bus_message_append_basic(reply, 's', name) : -ENOMEM;
                names += n + strspn(names + n, " ");
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* The objects are rows of the PMU table. The slot's userdata is the Probing. */
static int method_probe(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const Pmu *pmu = userdata;
        Probing *p = sd_bus_slot_get_userdata(sd_bus_get_current_slot(sd_bus_message_get_bus(m)));
        Refusal why = REFUSAL_NULL;
        int r = probe_call_begin(p, pmu, m, &why);

        return r == 0 ? 1 : reply_failure(r, &why, error);
}

/* What is measured is not constant: what one start of the service cannot measure, another may. */
static const sd_bus_vtable pmu_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", NULL, offsetof(Pmu, name), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Type", "u", NULL, offsetof(Pmu, type), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Kind", "s", get_kind, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Cpus", "s", get_cpus, 0, 0),
        SD_BUS_PROPERTY("Counters", "u", get_counters, 0, 0),
        SD_BUS_PROPERTY("Fixed", "as", get_fixed, 0, 0),
        SD_BUS_PROPERTY("Kernel", "as", get_kernel, 0, 0),
        SD_BUS_PROPERTY("Probed", "as", get_probed, 0, 0),
        SD_BUS_METHOD_WITH_ARGS("Probe", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(uu)", free), method_probe,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int pmu_find(sd_bus *bus, const char *path, const char *interface, void *userdata,
                    void **ret_found, sd_bus_error *error) {
        const Context *context = probing_context(userdata);
        _cleanup_free_ char *name = NULL;
        int r = sd_bus_path_decode(path, PMU_PATH, &name);

        if (r <= 0)
                return r;
        r = capacities_need(context->capacities);
        if (r < 0)
                return r;
        *ret_found = pmu_table_find(&context->pmus, name);
        return *ret_found != NULL;
}

static int pmu_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
                         sd_bus_error *error) {
        const Context *context = probing_context(userdata);
        _cleanup_(strings_freep) char **nodes = calloc(context->pmus.n_pmus + 1, sizeof(char *));

        if (!nodes)
                return -ENOMEM;
        for (size_t i = 0; i < context->pmus.n_pmus; i++) {
                int r = sd_bus_path_encode(PMU_PATH, context->pmus.pmus[i].name, &nodes[i]);

                if (r < 0)
                        return r;
        }
        *ret_nodes = TAKE_PTR(nodes);
        return 0;
}

int pmu_bus_register(Probing *p) {
        Context *context = probing_context(p);
        ObjectNode *node = probing_node(p);

        *node = (ObjectNode){ .interface = PERFALLOC_PMU_INTERFACE,
                              .vtable = pmu_vtable,
                              .find = pmu_find,
                              .enumerate = pmu_enumerate,
                              .userdata = p };
        LIST_INSERT_HEAD(&context->objects->nodes, node, nodes);
        return object_node_register(node, context->bus, PMU_PATH);
}
