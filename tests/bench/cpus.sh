#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/bench/cpus.sh
#
# What a hold of all takes on machines with 16 to 1,024 CPUs, six monitors on each, where a call that interrupts another
# CPU takes 5, 20 or 100 µs: simulated (tests/sim/sim.h), by threads side by side and by one alone. Run by
# tests/rig/fast; prints samples for tests/bench/table.
set -eu

# shellcheck source=tests/sim/machine.sh
. "$PERFALLOC_SOURCE/tests/sim/machine.sh"

# hold CPUS USEC SIDE
hold() {
        simulate "$@" "$PERFALLOC_BUILD/tests/bench/bench-cpus" "cpus-$1-$2" "$3"
}

begin
for n in 16 64 256 1024; do
        machine $n
        for usec in 5 20 100; do
                hold $n $usec ours
                [[ $n -gt 256 ]] || hold $n $usec theirs
        done
        unmachine
done
