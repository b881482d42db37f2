/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * No task of a step starts before the counters of all its nodes are held.
 *
 * srun collects what the nodes report and tells them the same answer: each node's slurmstepd opens
 * one TCP connection to it, sends one line and reads one line, so a node costs two messages
 * whatever the number of nodes. Slurm itself needs connections that way (SrunPortRange=).
 *
 * The barrier ends in any case: when all nodes have reported, at the first node that reports a
 * failure or whose connection breaks before the answer, after a time, and with srun. Unless all
 * have reported success, all are told to stop.
 *
 * The address has a random key, which is in the environment of the step, as other secrets of srun's
 * are: connections without it are dropped.
 */

#include "slurm/collector.h"

typedef struct Barrier Barrier;

#define BARRIER_ADDRESS_MAX 384 /* "HOST PORT KEY" */

/* In srun. */
struct Barrier {
        char address[BARRIER_ADDRESS_MAX];
        int control; /* to the collecting process, which ends when it is closed; -1: none */
};

#define BARRIER_NULL ((Barrier){ .control = -1 })

/* Starts a process that collects reports, says on standard error which nodes fail or lack
 * something, and ends with the barrier. nodes names all of them, for messages. */
int barrier_start(Barrier *b, const char *nodes, uint64_t timeout_usec);

/* So many nodes more will report; to be called before the first of them does. */
int barrier_expect(Barrier *b, uint32_t n_nodes);
void barrier_done(Barrier *b);

typedef struct BarrierReport BarrierReport;

/* In a slurmstepd. */
struct BarrierReport {
        const char *node;
        bool held;
        const char *words; /* what is missing; empty: nothing */
};

enum {
        BARRIER_E_STOP = 1,    /* the step must not run; srun has said why, and words says it */
        BARRIER_E_UNREACHABLE, /* likewise, but srun cannot be asked */
};

/* Waits for the answer. 0: all nodes have reported success. Takes a little longer than
 * timeout_usec at most. */
int barrier_report(const char *address, const BarrierReport *report, uint64_t timeout_usec,
                   char words[static BARRIER_LINE_MAX]);
