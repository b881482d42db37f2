/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters as they are kept for the next run of the service.
 *
 * The copies of their descriptors that are kept have the kernel count on, and also keep what an
 * operation closes until what it changed is written down: so a kill in the middle of one leaves
 * base and descriptor as they were together before it, and no value falls back or counts twice.
 */

#include "service/counter/counter-object.h"

typedef struct SavedSet SavedSet;

/* A set as it is written to the store. */
struct SavedSet {
        uint32_t uid;
        bool persistent, handed_out, configured, monitor, by_hold;
        char *name, *cpus;
        uint32_t priority, yields_to; /* of a monitor */
        uint64_t seq;                 /* likewise */
};

/* Reads it back: -EBADMSG, -ENOMEM; saved_set_done() is due in any case. */
int saved_set_read(SavedSet *saved, const Unpack *u);
void saved_set_done(SavedSet *saved);

/* From now on this is what is known of it; before anybody is told. Of a set that is still being
 * opened nothing is. */
void counter_set_save(CounterSet *set);

/* The two halves of saving: its descriptors, then what is known of it. */
void counter_set_keep_current(CounterSet *set);
void counter_set_write(CounterSet *set);

/* All of them, for less than one after the other costs. */
void counter_sets_save(Counters *counters, CounterSet *const *sets, size_t n);

/* It is no more. */
void counter_set_forget(CounterSet *set);

/* How many descriptors of an earlier run's set count against KeptDescriptors=; by_hold: none, for
 * their user holds counters. */
void counter_set_count_kept(CounterSet *set, uint64_t limited, bool by_hold);

/* The user holds counters now, or does not any more: what is theirs is kept for that, or was. */
void counters_hold_changed(Counters *counters, uid_t uid);
