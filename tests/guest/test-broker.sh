#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The broker on a stock Debian, whose kernel lets ordinary users count nothing at all, with true hardware
# counters. Run by tests/rig/guest.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/broker.sh
. "$PERFALLOC_SOURCE/tests/broker.sh"

# shellcheck disable=SC2034
event=instructions:u second=cycles:u sampled=cycles:u
# shellcheck disable=SC2034
forking=("$PERFALLOC_BUILD/tests/guest/forking" 0 1) # instructions

# Without a broker COMMAND runs all the same.
says_what_cannot_be() {
        as alice perfalloc --broker=no echo run >"$work/said" 2>&1
        cat "$work/said"
        grep -q 'echo will not be able to open perf events' "$work/said" && grep -qx run "$work/said"
}

# Eight of an event that six counters can count: pinned, some of them count all the time and the others never;
# not pinned, they would take turns.
pinned_in_a_hold() {
        local events=instructions:u

        for _ in 2 3 4 5 6 7 8; do
                events+=,instructions:u
        done
        (cd "$work" && as alice perfalloc perf stat -x, --no-inherit -e "$events" "${busy[@]}") >"$work/said" 2>&1
        cat "$work/said"
        [[ $(grep -c '^<not counted>' "$work/said") -eq 2 ]] &&
                [[ $(grep -c '^[1-9][0-9]*,,instructions:u,[0-9]*,100.00' "$work/said") -eq 6 ]]
}

nothing_in_others_exclusive_hold() {
        local hold status=0

        hold=$(busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended 'sta{sv}' test 0 \
                1 mode s exclusive) || return
        hold=${hold#o \"}
        brokered -- perf stat -x, -e "$event" true >"$work/said" 2>&1 || status=$?
        cat "$work/said"
        busctl call org.perfalloc1 "${hold%\"}" org.perfalloc1.Hold Release
        ! grep -qE '^[1-9]' "$work/said"
}

check_not 'the kernel refuses an ordinary user' as alice perf stat -e "$event" true
check 'perf stat' stat_own
check 'perf stat -r' stat_repeated
check 'perf stat of a group' stat_group
check 'perf stat -a' stat_everybody
check 'perf stat -a is not among what was asked for' stat_refused
check 'perf record' record_own
check 'perf record -g' record_chains
check 'perf stat -p' stat_process
check 'perf record -p' record_process
check 'perf record -a' record_everybody
check 'threads that open events while they fork and are signalled' forking_program
check 'perfalloc perf stat, in a hold' in_a_hold
check 'events are pinned in a hold' pinned_in_a_hold
check 'there are none in an exclusive hold of somebody else' nothing_in_others_exclusive_hold
check 'perfalloc says so if COMMAND can open nothing' says_what_cannot_be
tap_end
