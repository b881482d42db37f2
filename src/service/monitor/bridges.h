/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bridges of section [Bridges] in perfallocd.conf(5): created from the configuration, and
 * replaced when it changes.
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

/* Creates the bridges of the configuration; those whose settings have not changed stay. Failures
 * are logged. -ENOMEM. */
int bridges_load(Bridges *all);

/* To be called instead of the first bridges_load(), after the holds are restored: restores what an
 * earlier run had taken, then loads. */
int bridges_restore(Bridges *all);

/* The process asks for a hold of its own. If it has PCP's lock too, no other hold is taken for
 * that. */
void bridges_forget_lock(Bridges *all, pid_t pid);

/* The oldest hold may have changed. */
void bridges_hold_changed(Bridges *all);

/* Appends the names of the bridges that would act for a hold that is granted now. */
int bridges_append_features(Bridges *all, sd_bus_message *reply);

/* For the end of this process. What bridges have taken stays taken if the next run will know of it;
 * ends: there is none. */
Bridges *bridges_free(Bridges *all, bool ends);
