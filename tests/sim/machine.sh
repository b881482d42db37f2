# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Machines with many CPUs, for perfallocd-sim. To be sourced in tests/rig/fast.

sysfs=/run/sim-sysfs

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

# begin: the clock of the simulated machine, and what the service may open.
begin() {
        service-stop
        head -c 8 /dev/zero >/run/rig/sim-clock
        chmod 666 /run/rig/sim-clock
        cat >/etc/perfalloc/perfallocd.conf <<'END'
[Limits]
DescriptorsPerUser=100000

[Bridges]
PcpLock=no
END
}

# simulate CPUS USEC SIDE COMMAND [ARG...]: SIDE is ours (threads), or theirs (one thread).
simulate() {
        local alone=

        [[ $3 == ours ]] || alone=PERFALLOC_SIM_ALONE=1
        service-start PERFALLOC_SIM_CPUS="$1" PERFALLOC_SIM_USEC="$2" PERFALLOC_RIG_STORE=0 $alone
        "${@:4}"
        service-stop
}
