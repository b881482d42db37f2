/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bridges of section [Bridges] in perfallocd.conf(5): made from the configuration, and made
 * anew when that has changed.
 */

#include "service/service.h"

typedef enum BridgeKind {
        BRIDGE_PCP_LOCK,
        BRIDGE_LIKWID_LOCK,
        BRIDGE_NMI_WATCHDOG,
        _BRIDGE_KIND_MAX,
} BridgeKind;

/* Makes them as the configuration says; those whose part of it has not changed stay. Bridges that
 * cannot be made are said in the journal. -ENOMEM. */
int bridges_load(Service *s);

/* This process asks for a hold of its own: if it has PCP's lock too, that is no reason for another
 * one. */
void bridges_forget_lock(Service *s, pid_t pid);

/* The oldest hold may be another one now. */
void bridges_hold_changed(Service *s);

/* Appends the names of those that would do their part in a hold that is granted now. */
int bridges_append_features(Service *s, sd_bus_message *reply);

void bridges_done(Service *s);
