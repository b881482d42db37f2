/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The cgroup of a job step, as Slurm's plugin cgroup/v2 makes it:
 * .../slurmstepd.scope/job_7/step_0/slurm has the slurmstepd, .../step_0/user the tasks.
 * Slurm 26.05 names the job by its SLUID, as sD45M828RBYW00.
 */

#include "core/util.h"

/* The path of the step's cgroup below the root of cgroup2, by the text of /proc/PID/cgroup
 * (cgroups(7)) of its slurmstepd. The caller frees it. NULL: it has none, or there is no memory. */
char *step_cgroup_path(const char *text);

/* Opens the directory for the calling slurmstepd. -1: it has none. */
int step_cgroup_open(void);
