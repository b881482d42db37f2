/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bridges of section [Bridges] in perfallocd.conf(5): made from the configuration, and made
 * anew when that has changed.
 */

#include "service/hold/hold-object.h"

typedef struct Bridges Bridges;

/* Written to the store: never renumber. */
typedef enum BridgeKind {
        BRIDGE_PCP_LOCK = 0,
        BRIDGE_LIKWID_LOCK = 1,
        BRIDGE_NMI_WATCHDOG = 2,
        _BRIDGE_KIND_MAX,
} BridgeKind;

int bridges_new(Context *context, Holds *holds, Bridges **ret); /* -ENOMEM */

/* Makes them as the configuration says; those whose part of it has not changed stay. Bridges that
 * cannot be made are said in the journal. -ENOMEM. */
int bridges_load(Bridges *all);

/* Instead of the first bridges_load(), when the holds are there: goes on with what an earlier run
 * had taken, then does the same. */
int bridges_restore(Bridges *all);

/* This process asks for a hold of its own: if it has PCP's lock too, that is no reason for another
 * one. */
void bridges_forget_lock(Bridges *all, pid_t pid);

/* The oldest hold may be another one now. */
void bridges_hold_changed(Bridges *all);

/* Appends the names of those that would do their part in a hold that is granted now. */
int bridges_append_features(Bridges *all, sd_bus_message *reply);

/* For the end of the service: what they have taken stays so, if the next run will know of it. */
Bridges *bridges_free(Bridges *all);
