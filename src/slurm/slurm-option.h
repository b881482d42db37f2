/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The value of --perfalloc, an option of srun, sbatch and salloc (perfalloc-slurm(7)): words
 * separated by commas, or nothing.
 */

#include "core/refusal.h"

typedef struct SlurmOption SlurmOption;

#define SLURM_PMUS_MAX 8u

struct SlurmOption {
        bool given;
        bool exclusive, best_effort;
        uint32_t counters; /* 0: all */
        uint64_t wait_usec;
        char *pmus[SLURM_PMUS_MAX + 1]; /* NULL-terminated; none: the core PMUs */
};

#define SLURM_OPTION_NULL ((SlurmOption){})

/* text NULL or empty: the option has no value. REFUSAL_INVALID_ARGS names the word; -ENOMEM. */
int slurm_option_parse(const char *text, SlurmOption *ret, Refusal *why);
void slurm_option_done(SlurmOption *o);
