/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bridges of section [Bridges] in perfallocd.conf(5): made from the configuration, and made
 * anew when that has changed.
 */

#include "service/daemon/service.h"

/* Written down as numbers (store.h): never change one. */
typedef enum BridgeKind {
        BRIDGE_PCP_LOCK,
        BRIDGE_LIKWID_LOCK,
        BRIDGE_NMI_WATCHDOG,
        _BRIDGE_KIND_MAX,
} BridgeKind;

/* Makes them as the configuration says; those whose part of it has not changed stay. Bridges that
 * cannot be made are said in the journal. -ENOMEM. */
int bridges_load(Service *s);

/* Instead of the first bridges_load(), when the holds are there: goes on with what an earlier run
 * had taken, then does the same. */
int bridges_restore(Service *s);

/* There is a process with PCP's lock, or none any more, or another hold on its behalf. */
void bridges_perfalloc_changed(Service *s);

/* This process asks for a hold of its own: if it has PCP's lock too, that is no reason for another
 * one. */
void bridges_forget_lock(Service *s, pid_t pid);

/* The oldest hold may be another one now. */
void bridges_hold_changed(Service *s);

/* Appends the names of those that would do their part in a hold that is granted now. */
int bridges_append_features(Service *s, sd_bus_message *reply);

/* For the end of the service: what they have taken stays so, if the next run will know of it. */
void bridges_done(Service *s);
