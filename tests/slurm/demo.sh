#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What tools/try-slurm shows. Run by tests/rig/fast.
set -eu

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$PERFALLOC_SOURCE/tests/slurm/cluster.sh"
cd /run/rig/home/alice

# show COMMAND...: as alice.
show() {
        local status=0

        wait_until cluster_is_up >/dev/null
        printf '\n$ %s\n' "$*"
        as alice "$@" 2>&1 </dev/null || status=$?
        [[ $status -eq 0 ]] || printf '(exit status %d)\n' "$status"
}

cluster_start "$PERFALLOC_BUILD/src/slurm/perfalloc.so"
show srun -N3 --perfalloc=pmus=software,exclusive perfallocctl --no-legend holds
node_run node2 perfallocctl -q hold --pmu=software --exclusive --uid=carol --tag=job-7 --reason=nightly >/dev/null
show srun -N3 --perfalloc=pmus=software echo it runs
show srun -N3 --perfalloc=pmus=software,best-effort echo it runs
show sinfo
