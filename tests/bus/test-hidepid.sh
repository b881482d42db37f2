#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A /proc that hides other users' processes (proc(5), hidepid=). Run by tests/rig/fast, which has a /proc of its own.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

# alice's, to be looked at by others
as alice sleep infinity &
sleeper=$!

# and alice's with a perf event open
as alice python3 - <<'END' &
import ctypes, os, platform, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
number = {'x86_64': 298, 'aarch64': 241}[platform.machine()]
attr = struct.pack('IIQQQQQIIQQ', 1, 72, 0, 0, 0, 0, 0x60, 0, 0, 0, 0)
if libc.syscall(number, attr, 0, -1, -1, 0) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
signal.pause()
END
counting=$!

hides() {
        mount -o "remount,$1" /proc
}

bob_sees_nothing() {
        [[ ! -d /proc/$sleeper ]] || as bob sh -c "[ ! -r /proc/$sleeper/stat ]"
}

# opens USER: a counter of the sleeper
opens() {
        as "$1" busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager OpenCounters 'asa{sv}' 1 \
                task-clock:u 1 pid u $sleeper
}

opens_family() {
        as "$1" busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager OpenCounters 'asa{sv}' 1 \
                task-clock:u 2 pid u $sleeper descendants b true
}

# says_why COMMAND...: refused, with what to do about it
says_why() {
        local said

        said=$("$@" 2>&1) && return 1
        echo "$said"
        grep -q 'hidepid=' <<<"$said" && grep -q 'SupplementaryGroups=' <<<"$said"
}


# lists USER: whether ListUsers tells that user of the process with perf events
lists() {
        as "$1" busctl --timeout=infinity call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager ListUsers |
                grep -q '"python3"'
}

bob_learns_nothing() {
        ! lists bob && lists alice && lists root
}

holds() {
        as alice perfalloc --pmu=breakpoint true
}

check 'as it is, alice counts her process' opens alice
check 'whoever has perf events open is listed for everybody, with the command' wait_until lists bob
check 'processes can be hidden' hides hidepid=invisible
check 'they are hidden from others' bob_sees_nothing
check 'counters are held' holds
check 'CPUs are counted' busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager OpenCounters 'asa{sv}' \
        1 cpu-clock 1 scope s cpu
check 'a process is refused with a true word' says_why opens alice
check 'to root too' says_why opens root
check 'and with its descendants' says_why opens_family alice
check 'with the group that may see them all is well' hides "hidepid=invisible,gid=$(id -g perfalloc)"
check 'whoever has perf events open is listed for themselves and root alone' bob_learns_nothing
check 'alice counts her process' opens alice
check 'and its descendants' opens_family alice
check 'root counts it' opens root
kill $sleeper $counting
tap_end
