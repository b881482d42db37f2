/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "action.h"

#include <string.h>

#include <perfalloc/dbus.h>

const ActionInfo action_table[] = {
        { ACTION_HOLD, "org.perfalloc1.hold", "reserve counters" },
        { ACTION_HOLD_EXCLUSIVE, "org.perfalloc1.hold-exclusive", "reserve counters exclusively",
          "a shared hold needs org.perfalloc1.hold only" },
        { ACTION_HOLD_UNATTENDED, "org.perfalloc1.hold-unattended",
          "reserve counters without staying connected",
          "a hold that ends with its process (perfalloc COMMAND) needs org.perfalloc1.hold only" },
        { ACTION_COUNT_OWN, "org.perfalloc1.count-own", "count one's own processes" },
        { ACTION_SAMPLE_OWN, "org.perfalloc1.sample-own",
          "sample one's own processes, or get descriptors of events",
          "values without descriptors (perfallocctl open) need org.perfalloc1.count-own only" },
        { ACTION_COUNT_KERNEL, "org.perfalloc1.count-kernel", "count the kernel",
          "counting user space only (':u' after the event) does not need this" },
        { ACTION_COUNT_OTHER, "org.perfalloc1.count-other",
          "count processes that the caller may not trace",
          "counting one's own processes does not need this" },
        { ACTION_COUNT_SYSTEM, "org.perfalloc1.count-system",
          "count or measure whole CPUs, cgroups or uncore units",
          "counting one's own processes does not need this" },
        { ACTION_COUNT_RAW, "org.perfalloc1.count-raw",
          "open tracepoints and other events that may tell about other users" },
        { ACTION_PERSIST, "org.perfalloc1.persist", "leave counters open after disconnecting",
          "counters that are closed with their connection do not need this" },
        { ACTION_MONITOR, "org.perfalloc1.monitor", "count as a monitor",
          "role foreground does not need this" },
        { ACTION_MANAGE, "org.perfalloc1.manage", "use other users' objects" },
};
const size_t n_action_table = ELEMENTSOF(action_table);

#define MANAGER    PERFALLOC_MANAGER_INTERFACE
#define HOLD       PERFALLOC_HOLD_INTERFACE
#define COUNTER    PERFALLOC_COUNTER_INTERFACE
#define SAMPLER    PERFALLOC_SAMPLER_INTERFACE
#define MONITOR    PERFALLOC_MONITOR_INTERFACE
#define PMU        PERFALLOC_PMU_INTERFACE
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define OBJECTS    "org.freedesktop.DBus.ObjectManager"

/* With manage, users may use objects of others, without being their owner or reading user. */
#define OWNED ACTION_MANAGE

const MethodActions method_table[] = {
        /* manage: a hold longer than HoldMaxSec, a wait longer than WaitMaxSec, one on behalf of
         * others */
        { MANAGER, "Hold", ACTION_HOLD | ACTION_HOLD_EXCLUSIVE | ACTION_MANAGE },
        { MANAGER, "HoldUnattended", ACTION_HOLD_UNATTENDED | ACTION_MANAGE },
        { MANAGER, "OpenCounters", ACTIONS_COUNT | ACTION_MONITOR | ACTION_PERSIST },
        { MANAGER, "ReadCounters", OWNED },
        { MANAGER, "OpenPersistent", ACTIONS_COUNT | ACTION_MONITOR | ACTION_PERSIST },
        { MANAGER, "ListPersistent", OWNED },
        { MANAGER, "OpenEvent", ACTIONS_SAMPLE },
        { MANAGER, "OpenEvents", ACTIONS_SAMPLE },
        { MANAGER, "CreateSampler", OWNED },
        { MANAGER, "BlockSamplers", ACTION_NONE },
        { MANAGER, "UnblockSamplers", ACTION_NONE },
        { MANAGER, "HasSamplers", ACTION_NONE },
        { MANAGER, "RegisterMonitor", ACTION_MONITOR },
        { MANAGER, "Broker", ACTIONS_SAMPLE },
        { MANAGER, "ListEvents", ACTION_NONE },
        { MANAGER, "EncodeEvent", ACTION_NONE },
        { MANAGER, "ListUsers", ACTION_MANAGE },

        { HOLD, "Wait", OWNED },
        { HOLD, "Release", OWNED },
        { HOLD, "Extend", OWNED },

        { COUNTER, "Start", OWNED },
        { COUNTER, "Stop", OWNED },
        { COUNTER, "Reset", OWNED },
        { COUNTER, "Read", OWNED },
        { COUNTER, "ReadEach", OWNED },
        { COUNTER, "ReadParts", OWNED },
        { COUNTER, "AttachProcess", ACTION_COUNT_OTHER | OWNED },
        { COUNTER, "DetachProcess", OWNED },
        { COUNTER, "Persist", ACTION_PERSIST | OWNED },
        { COUNTER, "Adopt", OWNED },
        { COUNTER, "GetFds", ACTIONS_SAMPLE | OWNED },
        { COUNTER, "Close", OWNED },

        { SAMPLER, "Refresh", OWNED },
        { SAMPLER, "Close", OWNED },

        /* only the connection that registered the monitor may answer, whatever polkit says */
        { MONITOR, "Yielded", ACTION_NONE },

        { PMU, "Probe", ACTION_COUNT_SYSTEM },

        /* properties that tell about a user's program are for that user and manage */
        { PROPERTIES, "Get", ACTION_MANAGE },
        { PROPERTIES, "GetAll", ACTION_MANAGE },
        { OBJECTS, "GetManagedObjects", ACTION_MANAGE },
};
const size_t n_method_table = ELEMENTSOF(method_table);

const ActionInfo *action_info(unsigned action) {
        for (size_t i = 0; i < n_action_table; i++)
                if (action_table[i].action == action)
                        return &action_table[i];
        return NULL;
}

const char *action_name(Action action) {
        const ActionInfo *info = action_info(action);

        return info ? info->name : NULL;
}

const MethodActions *method_actions(const char *interface, const char *member) {
        if (!interface || !member)
                return NULL;

        for (size_t i = 0; i < n_method_table; i++)
                if (strcmp(method_table[i].member, member) == 0 &&
                    strcmp(method_table[i].interface, interface) == 0)
                        return &method_table[i];
        return NULL;
}
