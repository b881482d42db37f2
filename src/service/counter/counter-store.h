/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stores counters for the next run of the service.
 *
 * The stored copies of their descriptors make the kernel count on. They also keep what an operation
 * closes until its result is saved. So a kill in the middle of an operation leaves base values and
 * descriptors as they were before it, and no value falls back or counts twice.
 */

#include "service/counter/counter-object.h"

typedef struct SavedSet SavedSet;

/* A set as it is written to the store. */
struct SavedSet {
        uint32_t uid;
        bool persistent, handed_out, configured, monitor, by_hold, pins;
        char *name, *cpus;
        uint32_t priority, yields_to; /* of monitor counters */
        uint64_t seq;                 /* of monitor counters */
};

/* Reads it back: -EBADMSG, -ENOMEM. Call saved_set_done() in any case. */
int saved_set_read(SavedSet *saved, const Unpack *u);
void saved_set_done(SavedSet *saved);

/* Saves its present state. To be called before anybody is told. Does nothing for a set that is
 * still being opened. */
void counter_set_save(CounterSet *set);

/* The same when targets came or went: stores only what is new, if nothing else has changed. */
void counter_set_save_targets(CounterSet *set);

/* The two halves of saving: its descriptors, then its record. */
void counter_set_keep_current(CounterSet *set);
void counter_set_write(CounterSet *set);

/* Saves all sets, at less cost than one after another. */
void counter_sets_save(Counters *counters, CounterSet *const *sets, size_t n);

/* The set has gone. */
void counter_set_forget(CounterSet *set);

/* A hold of the user was granted or has ended: which of their counters are stored changes with
 * it. */
void counters_hold_changed(Counters *counters, uid_t uid);
