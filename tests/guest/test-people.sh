#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What people see of true hardware counters. Run by tests/rig/guest.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

# The kernel lets ordinary users count nothing here, and the service their own user space.
command_is_reported() {
        local said

        said=$(as bob perfallocctl open -- sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done' 2>&1 </dev/null)
        echo "$said"
        grep -qE '^ +[0-9,]+  cycles:u +# [0-9.]+ GHz$' <<<"$said" &&
                grep -qE '^ +[0-9]+(,[0-9]{3})+  instructions:u +# [0-9.]+ insn per cycle$' <<<"$said" &&
                grep -q 'seconds elapsed' <<<"$said"
}

monitors_have_a_pmu() {
        local monitor said

        monitor=$(perfallocctl -q open --persistent --role=monitor -a cycles) && said=$(perfallocctl monitors)
        perfallocctl close "$monitor"
        echo "$said"
        grep -qE "^counter +$monitor cycles .* armv8_pmuv3[^ ]* .*counting$" <<<"$said"
}

status_says_what_there_is() {
        local said

        said=$(perfallocctl)
        echo "$said"
        grep -q 'The counters are not held' <<<"$said" && ! grep -q 'no core PMU' <<<"$said" &&
                grep -qE '^armv8_pmuv3[^ ]* +core +[0-9-]+ +6 +cycles' <<<"$said"
}

check 'a command is counted with the usual events, and their ratios are told' command_is_reported
check 'a monitor of a generic event has the PMU that counts it' monitors_have_a_pmu
check 'status shows the core PMU and its counters' status_says_what_there_is
tap_end
