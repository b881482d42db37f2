# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2154
# Steps in the cluster of cluster.sh, and what they hold. To be sourced after that and tests/bus/command.sh.
#
# What is held is the PMU software: it is always confirmed, and the nodes, which share the machine's other
# counters, are not in each other's way.

hold=--perfalloc=pmus=software,exclusive

# holds NODE: those that have not ended.
holds() {
        node_run "$1" perfallocctl --json holds | grep -c '"hold"'
}

# hold_count N: on each node.
hold_count() {
        local node

        for node in "${cluster_nodes[@]}"; do
                [[ $(holds "$node") -eq $1 ]] || return
        done
}

nothing_is_left() {
        wait_until hold_count 0 && wait_until cluster_is_up && [[ -z $(sinfo -h -R -o %E) ]]
}

# running: tasks of the step run on all nodes.
running() {
        [[ -e $dir/run/node1 && -e $dir/run/node2 && -e $dir/run/node3 ]]
}

# step ARG...: a step whose tasks stay, a bash and its sleep, in the background.
step() {
        rm -rf $dir/run
        as alice mkdir $dir/run
        # shellcheck disable=SC2016
        as alice srun -N3 --immediate=20 "$@" bash -c 'touch "$HOME/run/$SLURMD_NODENAME"; sleep 1000 & wait' \
                >$dir/said 2>&1 </dev/null &
        pid=$!
        wait_until running
}

step_cancel() {
        as alice scancel --user=alice
        wait $pid
}

# slurmstepd_kill NODE
slurmstepd_kill() {
        local pid

        for pid in $(pgrep slurmstepd); do
                [[ ! /proc/$pid/ns/mnt -ef /proc/$(<"$cluster/$1.ready")/ns/mnt ]] || kill -9 "$pid" || return
        done
}

slurm_or_skip() {
        if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null || [[ ! -e $PERFALLOC_BUILD/src/slurm/perfalloc.so ]]; then
                echo '1..0 # SKIP Slurm is not installed, or its plugin is not built'
                exit 0
        fi
}

# cluster_start_or_skip [cgroup]: with the plugin that was built.
cluster_start_or_skip() {
        slurm_or_skip
        chmod 711 /run/cluster 2>/dev/null
        if ! cluster_start "$PERFALLOC_BUILD/src/slurm/perfalloc.so" "$@"; then
                cluster_logs
                echo 'Bail out! the cluster did not start'
                exit 1
        fi
}
