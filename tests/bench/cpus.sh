#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/bench/cpus.sh
#
# What a hold of all takes on machines with 16 to 1,024 CPUs, six monitors on each, where a call that interrupts another
# CPU takes 5, 20 or 100 µs: simulated (tests/sim/sim.h), by threads side by side and by one alone. Run by
# tests/rig/fast; prints samples for tests/bench/table.
set -eu

bench=$PERFALLOC_BUILD/tests/bench
sysfs=/run/bench-sysfs

# machine N: what /sys shows of it.
machine() {
        local n=$1 cpus=$sysfs/$1/cpu devices=$sysfs/$1/event_source/devices list cpu

        mkdir -p "$cpus" "$devices"/{cpu/events,software,breakpoint}
        for list in possible present online; do
                echo "0-$((n - 1))" >"$cpus/$list"
        done
        for ((cpu = 0; cpu < n; cpu++)); do
                mkdir -p "$cpus/cpu$cpu/topology"
        done
        echo 1 >"$devices/software/type"
        echo 4 >"$devices/cpu/type"
        echo 5 >"$devices/breakpoint/type"
        echo event=0x76 >"$devices/cpu/events/cpu-cycles"
        echo event=0xc0 >"$devices/cpu/events/instructions"
        mount --bind "$cpus" /sys/devices/system/cpu
        mount --bind "$sysfs/$n/event_source" /sys/bus/event_source
}

unmachine() {
        umount /sys/devices/system/cpu /sys/bus/event_source
}

# simulate CPUS USEC SIDE: SIDE is ours (threads), or theirs (one thread).
simulate() {
        local alone=

        [[ $3 == ours ]] || alone=PERFALLOC_SIM_ALONE=1
        service-start PERFALLOC_SIM_CPUS="$1" PERFALLOC_SIM_USEC="$2" PERFALLOC_RIG_STORE=0 $alone
        "$bench/bench-cpus" "cpus-$1-$2" "$3"
        service-stop
}

service-stop
head -c 8 /dev/zero >/run/rig/sim-clock
chmod 666 /run/rig/sim-clock
cat >/etc/perfalloc/perfallocd.conf <<'END'
[Limits]
DescriptorsPerUser=100000

[Bridges]
PcpLock=no
END
for n in 16 64 256 1024; do
        machine $n
        for usec in 5 20 100; do
                simulate $n $usec ours
                [[ $n -gt 256 ]] || simulate $n $usec theirs
        done
        unmachine
done
