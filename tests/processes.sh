#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What each process of the service has, as the kernel says in /proc/PID/status: a table, that of perfallocd(8).
# Sourced by tests in rigs with systemd.

# Capability sets. The bounding set is that of the unit.
declare -A capability_sets=([none]=0000000000000000 [perfmon]=0000004000000000 [perfmon+admin]=0000004000200000
        [ptrace+read]=0000000000080004 [chown]=0000000000000001 [unit]=0000004000280004 [unit+chown]=0000004000280005)

# Every line of it that says what a process may, or who may do something to it.
process_lines=(Name Umask TracerPid Uid Gid Groups Threads CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp)

# row NAME SET BOUNDING
row() {
        local uid gid none=${capability_sets[none]} has=${capability_sets[$2]}

        uid=$(id -u perfalloc)
        gid=$(id -g perfalloc)
        printf '%s|' "$1" 0077 0 "$uid $uid $uid $uid" "$gid $gid $gid $gid" "$gid" 1 "$none" "$has" "$has" \
                "${capability_sets[$3]}" "$none" 1 2
        echo
}

# processes_expected OPENER [SERVICE [BOUNDING]]: capability sets; the service has none, usually
processes_expected() {
        row perfalloc-opene "$1" "${3-unit}"
        row perfalloc-reade ptrace+read "${3-unit}"
        row perfallocd "${2-none}" "${3-unit}"
}

process_seen() {
        local line

        for line in "${process_lines[@]}"; do
                # seccomp mode 2 is a filter
                sed -n "s/^$line:[[:space:]]*//p" "/proc/$1/status" | sed -e 's/[[:space:]]*$//' -e 's/\t/ /g' |
                        tr '\n' '|'
        done
        echo
}

processes_seen() {
        local pid

        while read -r pid; do
                process_seen "$pid"
        done <"/sys/fs/cgroup$(systemctl show -P ControlGroup perfallocd.service)/cgroup.procs" | sort
}

# processes_are OPENER [SERVICE [BOUNDING]]
processes_are() {
        local seen expected

        seen=$(processes_seen)
        expected=$(processes_expected "$@")
        printf '%s\nwanted:\n%s\n' "$seen" "$expected"
        [[ $seen == "$expected" ]]
}
