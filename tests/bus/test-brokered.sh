#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The commands that run a program under the broker, and perf under it. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/broker.sh
. "$PERFALLOC_SOURCE/tests/broker.sh"

# shellcheck disable=SC2034
event=task-clock second=page-faults sampled=cpu-clock
# shellcheck disable=SC2034
forking=("$PERFALLOC_BUILD/tests/bus/forking" 1 2) # page faults

filtered='grep -q "^Seccomp:.*2" /proc/self/status'

# The kernel lets everybody count their own programs here.
auto_is_no_more_than_needed() {
        run 1 as alice perfalloc sh -c "$filtered" &&
                run 0 as alice perfalloc --allow=count-kernel sh -c "$filtered"
}

# root, and whoever has CAP_PERFMON, may do everything without.
auto_is_nothing_for_who_may_everything() {
        local all=sample-own,count-kernel,count-system,count-other,count-raw

        run 1 perfalloc --allow=$all sh -c "$filtered" && run 1 as alice +perfmon perfalloc --allow=$all sh -c "$filtered" &&
                run 0 as alice perfalloc --allow=count-other sh -c "$filtered" &&
                run 0 as alice perfalloc --allow=count-raw sh -c "$filtered"
}

yes_and_no() {
        run 0 as alice perfalloc --broker=yes sh -c "$filtered" &&
                run 1 as alice perfalloc --broker=no --allow=count-kernel sh -c "$filtered"
}

wrong_word_is_named() {
        run 1 as alice perfalloc --broker=maybe true && said "invalid value 'maybe' (one of auto, yes, no)"
}

nested_runs_without() {
        run 0 as alice perfalloc --broker=yes perfalloc --broker=yes echo run &&
                said 'echo runs without the broker: it is under a broker already' && said run
}

refused_runs_without() {
        rules 00-raw <<<"polkit.addRule(function(action, subject) {
                if (action.id == 'org.perfalloc1.count-raw') return polkit.Result.NO; });" &&
                run 0 as alice perfalloc --broker=yes --allow=count-raw echo run &&
                said "echo runs without the broker: " && said org.perfalloc1.count-raw && said run
        set -- $?
        rules --remove 00-raw
        return "$1"
}

# In any mode, before anything is held or asked for.
wrong_action_is_named() {
        run 1 as alice perfalloc --allow=sample-own,manage echo run && said "--allow: invalid value 'manage' (one of sample-own" &&
                ! said run && run 1 as alice perfalloc --broker=no --allow= true && said "invalid value ''" &&
                run 2 as alice perfallocctl run --allow=manage true && said "--allow: invalid value 'manage'"
}

run_is_the_broker() {
        run 0 as dave perfallocctl run sh -c "$filtered"
}

run_is_refused() {
        run 3 as dave perfallocctl run --allow=count-system echo run && said org.perfalloc1.count-system && ! said run
}

run_ends_as_command() {
        run 7 as alice perfallocctl run sh -c 'exit 7' &&
                run 139 as alice perfallocctl run sh -c 'kill -SEGV $$' &&
                run 127 as alice perfallocctl run /no/such/command && run 2 as alice perfallocctl run
}

run_leaves_options() {
        run 0 as alice perfallocctl run ls -d / && said / && run 0 as alice perfallocctl run -- ls -d /
}

sysctl=/proc/sys/kernel/perf_event_paranoid

paranoid_is_a_view() {
        local before
        before=$(<$sysctl)

        run 0 as alice perfallocctl run --paranoid=3 cat $sysctl && said 3 &&
                run 0 as alice perfalloc --broker=no --paranoid=-1 cat $sysctl && said -1 &&
                run 0 as root perfallocctl run --paranoid=4 cat $sysctl && said 4 &&
                [[ $(<$sysctl) == "$before" && $before == 2 ]]
}

paranoid_changes_nothing_else() {
        # shellcheck disable=SC2016
        run 0 as alice perfallocctl run --paranoid=1 sh -c 'echo "uid $(id -u)"; grep CapPrm: /proc/self/status; pwd' &&
                said "uid $(id -u alice)" && said $'CapPrm:\t0000000000000000' && said "$PWD"
}

paranoid_is_checked() {
        run 1 as alice perfalloc --paranoid=5 echo run && said "--paranoid: invalid value '5' (from -1 to 4)" && ! said run &&
                run 2 as alice perfallocctl run --paranoid=x echo run && said "--paranoid: invalid value 'x'" && ! said run
}

# perf itself adds :u at 2.
perf_counts_the_kernel() {
        stat_counts 1 --allow=count-kernel --paranoid=1 -- perf stat -x, -e context-switches sleep 0.01
}

# The limits are those of a user namespace.
paranoid_may_be_impossible() {
        # shellcheck disable=SC2016
        run 0 as alice unshare --user --map-current-user --keep-caps sh -c 'cd /proc/sys/user &&
                echo 0 >max_user_namespaces && echo 0 >max_mnt_namespaces && exec "$@"' sh \
                perfallocctl run --paranoid=1 cat $sysctl && said 2 &&
                said 'cat reads the true kernel.perf_event_paranoid: the kernel, or the container of this process'
}

listener_is_not_inherited() {
        # shellcheck disable=SC2016
        run 1 as alice perfalloc --broker=yes sh -c 'ls -l /proc/$$/fd | grep seccomp'
}

# The program that it was started under has ended.
orphan_counts() {
        run 0 as alice perfallocctl run --allow=count-kernel \
                sh -c "(read -r line <$work/go; perf stat -x, -e context-switches:k sleep 0.01 2>$work/orphan) &" &&
                echo >"$work/go" && wait_until grep -q '^[1-9]' "$work/orphan"
}

# It opens events of user space and kernel together, which it cannot without the broker.
profiler_built_in() {
        local said

        said=$(brokered "$@" -- stress-ng --temp-path "$work" --cpu 1 --cpu-ops 20 --perf 2>&1)
        echo "$said"
        grep -qE ' [0-9]*[1-9][0-9]* Page Faults Total' <<<"$said" && grep -qE ' [0-9]*[1-9][0-9]* CPU Clock' <<<"$said"
}

# What `perf test` has just said.
perf_is_ok() {
        cat "$work/said"
        grep -q ': Ok$' "$work/said" && ! grep -q ': FAILED' "$work/said"
}

# As root, without the broker.
perf_fails() {
        perf test -v "$1" 2>"$work/said.alone" || :
        ! grep -q ': Ok$' "$work/said.alone"
}

mkfifo "$work/go"
chmod 666 "$work/go"

check 'auto installs the filter only where the kernel would refuse something' auto_is_no_more_than_needed
check 'auto installs none for who may do everything' auto_is_nothing_for_who_may_everything
check 'yes installs it, no does not' yes_and_no
check 'any other word is named' wrong_word_is_named
check 'under a broker already, it says so and runs COMMAND without' nested_runs_without
check 'refused by the service, it says so and runs COMMAND without' refused_runs_without
check 'an action that does not exist is named, and the command is not run' wrong_action_is_named
check 'perfallocctl run is the broker without a hold' run_is_the_broker
check 'and runs nothing that polkit refuses' run_is_refused
check 'it ends as COMMAND does' run_ends_as_command
check 'COMMAND keeps its options' run_leaves_options
check 'COMMAND has no listener' listener_is_not_inherited
check 'what COMMAND has left behind goes on' orphan_counts

check '--paranoid: COMMAND alone reads another perf_event_paranoid' paranoid_is_a_view
check 'it is the same user without capabilities, in the same directory' paranoid_changes_nothing_else
check 'other levels are named' paranoid_is_checked
check 'perf counts the kernel then, without being told' perf_counts_the_kernel
check 'where there are no user namespaces, it says so' paranoid_may_be_impossible

check 'perf stat' stat_own
check 'perf stat -r' stat_repeated
check 'perf stat of a group' stat_group
check 'perf stat -a' stat_everybody
check 'perf stat -a, where that is not allowed' stat_refused
check 'perf stat -p' stat_process
check 'perf record' record_own
check 'perf record -g' record_chains
check 'perf record -a' record_everybody
check 'perf record -p' record_process
check 'perf top' top_everybody
check 'threads that open events while they fork and are signalled' forking_program
check 'a program with a profiler built in' profiler_built_in --allow=sample-own,count-kernel
check_not 'it needs what is not allowed by default' profiler_built_in
# Others of perf's own need hardware events, or tracepoints by name. 'Breakpoint overflow sampling' ends by SIGTRAP now
# and then (2 of 460 runs on a virtual machine, by root and without perfalloc): the kernel finds no event for a hit.
tests=('Software clock events period' 'Event times' 'PERF_RECORD_' 'Breakpoint overflow signal' 'Breakpoint accounting'
        Watchpoint 'Track with sched_switch' Sigtrap)
[[ $(uname -m) != x86_64 ]] || tests+=('x86 bp modify')
for name in "${tests[@]}"; do
        brokered --allow=sample-own,count-kernel,count-system -- perf test -v "$name" 2>"$work/said"
        if ! perf_is_ok >/dev/null && perf_fails "$name"; then
                skip "perf test '$name'" "not on this machine: it fails without perfalloc too"
        else
                check "perf test '$name'" perf_is_ok
        fi
done
tap_end
