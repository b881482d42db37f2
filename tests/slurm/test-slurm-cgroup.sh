#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The plugin for Slurm where that has a cgroup for each step. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$PERFALLOC_SOURCE/tests/slurm/cluster.sh"
# shellcheck source=tests/slurm/step.sh
. "$PERFALLOC_SOURCE/tests/slurm/step.sh"

# processes NODE user|slurm: those of the step's tasks, and its slurmstepd.
processes() {
        find "$cluster_cgroup/$1" -path "*/step_*/$2/*cgroup.procs" -exec cat {} +
}

# processes_are N NODE user|slurm
processes_are() {
        [[ $(processes "$2" "$3" | wc -l) -eq $1 ]]
}

# orphans COMMAND...: a step whose tasks on node2 have lost their slurmstepd, after COMMAND.
orphans() {
        step "$hold" && hold_count 1 && wait_until processes_are 2 node2 user && "$@" && slurmstepd_kill node2 &&
                wait_until processes_are 0 node2 slurm
}

node2_is_free() {
        [[ $(holds node2) -eq 0 && $(holds node1) -eq 1 ]]
}

last_process_ends_the_hold() {
        local status=0 pids

        orphans true && mapfile -t pids < <(processes node2 user) && hold_count 1 &&
                kill -9 "${pids[0]}" && wait_until processes_are 1 node2 user && hold_count 1 &&
                kill -9 "${pids[1]}" && wait_until node2_is_free || status=1
        step_cancel
        nothing_is_left && return $status
}

restart_keeps_the_tie() {
        local status=0

        orphans node_run node2 service-kill --again && hold_count 1 && processes node2 user | xargs kill -9 &&
                wait_until node2_is_free || status=1
        step_cancel
        nothing_is_left && return $status
}

end_of_the_step_gives_back() {
        run 0 as alice srun -N3 --immediate=20 "$hold" bash -c 'sleep 1000 & perfallocctl --no-legend holds' &&
                [[ $(grep -c granted $dir/said) -eq 3 ]] && nothing_is_left
}

cancelled_step_gives_back() {
        step "$hold" && hold_count 1 && step_cancel
        nothing_is_left
}

trap cluster_remove_cgroup EXIT
cluster_start_or_skip cgroup
check 'a hold lasts as long as a process is in the cgroup of the step' last_process_ends_the_hold
check 'likewise when perfallocd is killed meanwhile' restart_keeps_the_tie
check 'the end of the step ends what its tasks have left behind, and the hold' end_of_the_step_gives_back
check 'a step that is cancelled gives back' cancelled_step_gives_back
[[ $tap_failures -eq 0 ]] || cluster_logs
tap_end
