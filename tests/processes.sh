#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What each process of the service has, as the kernel says: a table. Sourced by tests in rigs with systemd.

# Capability sets as in /proc/PID/status. The bounding set is that of the unit.
declare -A capability_sets=([none]=0000000000000000 [perfmon]=0000004000000000 [perfmon+admin]=0000004000200000
        [ptrace+read]=0000000000080004 [unit]=0000004000280004)

# row NAME SET: CapInh, CapPrm, CapEff, CapBnd, CapAmb, NoNewPrivs, Seccomp (2: a filter)
row() {
        local none=${capability_sets[none]} has=${capability_sets[$2]}

        echo "$1 $none $has $has ${capability_sets[unit]} $none 1 2"
}

# processes_expected SET: that the opener has
processes_expected() {
        row perfalloc-opene "$1"
        row perfalloc-reade ptrace+read
        row perfallocd none
}

processes_seen() {
        local pid

        while read -r pid; do
                awk -v OFS=' ' '{ sub(":", "", $1); has[$1] = $2 }
                        END { print has["Name"], has["CapInh"], has["CapPrm"], has["CapEff"], has["CapBnd"],
                                has["CapAmb"], has["NoNewPrivs"], has["Seccomp"] }' "/proc/$pid/status"
        done <"/sys/fs/cgroup$(systemctl show -P ControlGroup perfallocd.service)/cgroup.procs" | sort
}

# processes_are SET: that the opener has
processes_are() {
        local seen

        seen=$(processes_seen)
        echo "$seen"
        [[ $seen == "$(processes_expected "$1")" ]]
}
