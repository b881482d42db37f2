#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Holds on simulated machines with many CPUs (sim.h), six monitors on each. Run in tests/rig/fast with perfallocd-sim.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/sim/machine.sh
. "$PERFALLOC_SOURCE/tests/sim/machine.sh"

export BENCH_QUICK=1

# hold CPUS SIDE: some holds, all of them confirmed; how long they took goes to a file.
hold() {
        simulate "$1" 20 "$2" "$PERFALLOC_BUILD/tests/bench/bench-cpus" row "$2" >"/run/$2-$1"
        [[ -s /run/$2-$1 ]]
}

# shortest FILE: in microseconds.
shortest() {
        sort -n -k 3 "$1" | awk 'NR == 1 { printf "%.0f\n", $3 }'
}

threads_are_faster() {
        local threads one

        threads=$(shortest /run/ours-64) one=$(shortest /run/theirs-64)
        echo "64 CPUs: $threads us by threads, $one us by one thread"
        [[ $((threads * 3)) -lt $one ]]
}

begin
for n in 16 64 256; do
        machine $n
        check "holds of $n CPUs are confirmed" hold $n ours
        [[ $n -ne 64 ]] || check 'by one thread too' hold $n theirs
        unmachine
done
check 'threads take less than a third' threads_are_faster
tap_end
