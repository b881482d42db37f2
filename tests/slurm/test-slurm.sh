#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The plugin for Slurm, in a cluster of three nodes. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$PERFALLOC_SOURCE/tests/slurm/cluster.sh"
# shellcheck source=tests/slurm/step.sh
. "$PERFALLOC_SOURCE/tests/slurm/step.sh"

all=(as alice srun -N3 --immediate=20 "$hold")
show='perfallocctl --no-legend --json holds'

tasks_start_with_all_held() {
        run 0 "${all[@]}" bash -c "$show" && [[ $(grep -c '"state": "granted"' $dir/said) -eq 3 ]] &&
                [[ $(grep -c '"confirmed": true' $dir/said) -eq 3 ]] && [[ $(grep -c '"user": 2001' $dir/said) -eq 3 ]] &&
                [[ $(grep -c '"tag": "slurm-' $dir/said) -eq 3 ]] && nothing_is_left
}

without_the_option_nothing_is_held() {
        run 0 as alice srun -N3 --immediate=20 bash -c "$show" && ! said '"hold"'
}

one_node_that_cannot_stops_all() {
        node_run node2 perfallocctl -q hold --pmu=software --exclusive --uid=carol --tag=hers --reason=hog >/dev/null || return
        run 1 "${all[@]}" bash -c 'echo it ran' && said 'node2' && said "uid 2003 (tag hers, 'hog'" && said 'no task is started' && said 'wait=TIME' &&
                ! said 'it ran' && wait_until eval '[[ $(holds node1) -eq 0 && $(holds node3) -eq 0 ]]'
        set -- $?
        [[ ${2:-} ]] || node_run node2 perfallocctl release --tag=hers
        [[ $1 -eq 0 ]] && nothing_is_left
}

best_effort_runs_and_says_what_is_missing() {
        node_run node2 perfallocctl -q hold --pmu=software --exclusive --uid=carol --tag=hers >/dev/null || return
        run 0 as alice srun -N3 --immediate=20 $hold,best-effort bash -c 'echo it ran' && [[ $(grep -c 'it ran' $dir/said) -eq 3 ]] &&
                said 'perfalloc: node2: ' && ! said 'node1' && ! said 'node3'
        set -- $?
        node_run node2 perfallocctl release --tag=hers
        [[ $1 -eq 0 ]] && nothing_is_left
}

node_that_does_not_answer_is_waited_for_in_bounds() {
        node_run node3 service-signal STOP
        "${all[@]}" bash -c 'echo it ran' >$dir/said 2>&1 </dev/null &
        pid=$!
        wait_until grep -q 'only 2 of 3 nodes' $dir/said
        node_run node3 service-signal CONT
        ended 1 && said 'node1' && said 'node2' && ! said 'it ran' && nothing_is_left
}

wrong_words_are_refused_at_once() {
        run 255 as alice srun -N3 --perfalloc=exclusiv true && said "'exclusiv'" &&
                run 255 as alice sbatch --perfalloc=counters=-1 --wrap=true && said "'-1'"
}

cancelled_step_gives_back() {
        step "$hold" && hold_count 1 && step_cancel
        nothing_is_left
}

node2_is_free() {
        [[ $(holds node2) -eq 0 && $(holds node1) -eq 1 ]]
}

killed_slurmstepd_gives_back() {
        local status=0

        step "$hold" && hold_count 1 && slurmstepd_kill node2 && wait_until node2_is_free || status=1
        step_cancel
        pkill -9 -u alice sleep
        nothing_is_left && return $status
}

killed_slurmd_changes_nothing() {
        local status=0

        step "$hold" && kill -9 "$(<$cluster/node1/pid)" && hold_count 1 && node_start_slurmd node1 && hold_count 1 || status=1
        step_cancel
        nothing_is_left && return $status
}

restarted_service_changes_nothing() {
        local status=0

        step "$hold" && node_run node1 service-restart && node_run node2 service-kill --again && hold_count 1 || status=1
        step_cancel
        nothing_is_left && return $status
}

batch_job_holds_in_its_steps() {
        cat >$dir/script <<END
#!/bin/bash
echo "outside: \$($show | grep -c granted)"
srun bash -c '$show'
END
        run 0 as alice sbatch --wait -N3 -o $dir/out "$hold" $dir/script && cp $dir/out $dir/said && said 'outside: 0' &&
                [[ $(grep -c '"state": "granted"' $dir/said) -eq 3 ]] && nothing_is_left
}

steps_of_an_allocation_hold() {
        run 0 as alice salloc -N3 --immediate=60 "$hold" bash -c "$show; srun bash -c '$show'; srun bash -c '$show'" &&
                [[ $(grep -c '"state": "granted"' $dir/said) -eq 6 ]] && nothing_is_left
}

arrays_hold_each_for_itself() {
        printf '#!/bin/bash\nsrun bash -c "%s" >%s/array.$SLURM_ARRAY_TASK_ID\n' "$show" $dir >$dir/script
        run 0 as alice sbatch --wait -N1 -c8 --array=1-4 -o /dev/null "$hold" $dir/script || return
        for i in 1 2 3 4; do
                grep -q '"state": "granted"' $dir/array.$i || return
        done
        nothing_is_left
}

# job_is JOB STATE
job_is() {
        [[ $(squeue -h -j "$1" -o %T) == "$2" ]]
}

no_slurmstepd_runs() {
        ! pgrep -x slurmstepd
}

# Slurm puts a job that is requeued off, for two minutes, and takes what the slurmstepd of its script reports late
# for the end of the new one. A slurmd launches nothing of a job that it was told to end in the same second.
start_again() {
        wait_until job_is "$1" PENDING && wait_until no_slurmstepd_runs &&
                scontrol update "jobid=$1" StartTime=now+2seconds && wait_until running && return
        scontrol show job "$1"
        return 1
}

requeued_job_holds_again() {
        local job

        rm -rf $dir/run
        as alice mkdir $dir/run
        # shellcheck disable=SC2016
        printf '#!/bin/bash\nsrun bash -c '\''perfallocctl --json holds >"$HOME/run/held.$SLURM_RESTART_COUNT.$SLURMD_NODENAME"; touch "$HOME/run/$SLURMD_NODENAME"; sleep 1000'\''\n' >$dir/script
        job=$(as alice sbatch --parsable --requeue -N3 -o /dev/null "$hold" $dir/script) && wait_until running && hold_count 1 &&
                as alice scontrol requeue "$job" || return
        rm -f $dir/run/node*
        start_again "$job" && hold_count 1 && grep -q granted $dir/run/held.1.node2
        set -- $?
        as alice scancel "$job"
        [[ $1 -eq 0 ]] && nothing_is_left
}

components_wait_for_each_other() {
        run 0 as alice srun -N1 --immediate=20 "$hold" bash -c "$show" : -N2 "$hold" bash -c "$show" &&
                [[ $(grep -c '"state": "granted"' $dir/said) -eq 3 ]] && nothing_is_left
}

# median COMMAND...: of eleven, in milliseconds.
median() {
        local i began

        for i in {1..11}; do
                began=$(date +%s%N)
                "$@" >/dev/null 2>&1 || return
                echo $((($(date +%s%N) - began) / 1000000))
        done | sort -n | sed -n 6p
}

costs_are_measured() {
        echo "# srun -N3 true: $(median as alice srun -N3 true) ms; with --perfalloc: $(median as alice srun -N3 "$hold" true) ms" >&3
}

exec 3>&1
cluster_start_or_skip
check 'tasks start when the counters of all nodes are held for the user' tasks_start_with_all_held
check 'without the option nothing is held' without_the_option_nothing_is_held
check 'one node that cannot stops all, and is named with its obstacle' one_node_that_cannot_stops_all
check 'best-effort runs, and says what is missing where' best_effort_runs_and_says_what_is_missing
check 'a node that does not answer is waited for in bounds' node_that_does_not_answer_is_waited_for_in_bounds
check 'wrong words are refused before anything is allocated' wrong_words_are_refused_at_once
check 'a step that is cancelled gives back' cancelled_step_gives_back
check 'a slurmstepd that is killed gives back' killed_slurmstepd_gives_back
check 'a slurmd that is killed changes nothing' killed_slurmd_changes_nothing
check 'a perfallocd that is started anew changes nothing' restarted_service_changes_nothing
check 'a batch job holds in its steps' batch_job_holds_in_its_steps
check 'each srun in an allocation of salloc holds' steps_of_an_allocation_hold
check 'the jobs of an array hold each for itself' arrays_hold_each_for_itself
check 'a job that is requeued holds again' requeued_job_holds_again
check 'components of a heterogeneous step wait for each other' components_wait_for_each_other
check 'what it costs is measured' costs_are_measured
[[ $tap_failures -eq 0 ]] || cluster_logs
tap_end
