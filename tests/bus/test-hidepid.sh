#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A /proc that hides other users' processes (proc(5), hidepid=). Run by tests/rig/fast, which has a /proc of its own.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/hold.sh
. "$PERFALLOC_SOURCE/tests/hold.sh"

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

# and one that has ended, but that its parent does not reap; and a thread
numbers=$(mktemp)
as alice python3 -u - >"$numbers" <<'END' &
import os, signal, threading

pid = os.fork()
if pid == 0:
    os._exit(0)
thread = threading.Thread(target=signal.pause, daemon=True)
thread.start()
print(pid, thread.native_id)
thread.join()
END
others=$!

sleep infinity &
gone_pid=$!
kill $gone_pid
wait $gone_pid

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

# refusals USER PID: what each call says of the process, without its number
refusals() {
        local manager='org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager'
        # struct perf_event_attr: PERF_TYPE_SOFTWARE, 64 bytes, PERF_COUNT_SW_TASK_CLOCK, no kernel and no hypervisor
        local attr=(1 0 0 0 64 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 96 0 0 0 0 0 0 0
                0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0)

        # shellcheck disable=SC2086
        for call in "OpenCounters asa{sv} 1 task-clock:u 1 pid u $2" \
                "OpenCounters asa{sv} 1 task-clock:u 2 pid u $2 descendants b true" \
                "OpenCounters asa{sv} 1 task-clock 1 pid u $2" \
                "OpenEvent ayiita{sv} 64 ${attr[*]} $2 -1 0 0"; do
                as "$1" busctl call -- $manager $call 2>&1
                as "$1" busctl --allow-interactive-authorization=true call -- $manager $call 2>&1
        done | sed "s/\b$2\b/PID/g"
        as "$1" busctl call org.perfalloc1 "$counter" org.perfalloc1.Counter AttachProcess 'ua{sv}' "$2" 0 2>&1 |
                sed "s/\b$2\b/PID/g"
}

# hidden_is_as_gone PID: bob is told the same of it as of a process that does not exist
hidden_is_as_gone() {
        local hidden gone

        hidden=$(refusals bob "$1")
        gone=$(refusals bob "$gone_pid")
        echo "$hidden"
        [[ $(grep -c 'no process' <<<"$gone") -eq 9 && $hidden == "$gone" ]] || {
                echo "$gone"
                return 1
        }
}

# detach_refusal PID: what bob is told when they detach it, without its number
detach_refusal() {
        as bob busctl call org.perfalloc1 "$counter" org.perfalloc1.Counter DetachProcess u "$1" 2>&1 | sed "s/\b$1\b/PID/g"
}

# detached_is_as_gone PID: bob is told the same of it as of a process that does not exist
detached_is_as_gone() {
        local hidden gone

        hidden=$(detach_refusal "$1")
        gone=$(detach_refusal "$gone_pid")
        echo "$hidden"
        echo "$gone"
        [[ $gone == *'not attached'* && $hidden == "$gone" ]]
}

holds() {
        as alice perfalloc --pmu=breakpoint true
}

# Not attached, and it outlives the connection.
bob_opens_a_counter() {
        rules 05-bob <<<"polkit.addRule(function(action, subject) {
                if (subject.user == 'bob' && action.id == 'org.perfalloc1.persist') return polkit.Result.YES; });" &&
                as bob busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager OpenCounters 'asa{sv}' 1 \
                        task-clock:u 3 attach b false start b false persistent b true
}

# What an opener is told of who holds the PMU: a number only where they may see the process.
exclusive_is_told() {
        local hold told

        hold=$(hold_take alice 2 pmus as 1 breakpoint mode s exclusive) && hold_call "$hold" Wait || return
        told=$(as bob busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager OpenCounters 'asa{sv}' 1 \
                mem:0x1000/8:w:u 0 2>&1)
        hold_call "$hold" Release
        echo "$told"
        grep -q "$1 holds PMU breakpoint exclusively" <<<"$told"
}

wait_until test -s "$numbers"
read -r zombie thread <"$numbers"
counter=$(bob_opens_a_counter | cut -d'"' -f2)
check 'bob has a counter to attach processes to' test -n "$counter"
check 'as it is, alice counts her process' opens alice
check 'whoever has perf events open is listed for everybody, with the command' wait_until lists bob
check 'who holds counters exclusively is named' exclusive_is_told "uid $(id -u alice)"
check 'processes can be hidden' hides hidepid=invisible
check 'they are hidden from others' bob_sees_nothing
check 'counters are held' holds
check 'CPUs are counted' busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager OpenCounters 'asa{sv}' \
        1 cpu-clock 1 scope s cpu
check 'a process is refused with a true word' says_why opens alice
check 'to root too' says_why opens root
check 'and with its descendants' says_why opens_family alice
check 'a hidden process is refused as one that does not exist' hidden_is_as_gone $sleeper
check 'so is one that was not reaped' hidden_is_as_gone "$zombie"
check 'so is a thread' hidden_is_as_gone "$thread"
check 'with the group that may see them all is well' hides "hidepid=invisible,gid=$(id -g perfalloc)"
check 'whoever has perf events open is listed for themselves and root alone' bob_learns_nothing
check 'a hidden process is still refused as one that does not exist' hidden_is_as_gone $sleeper
check 'so is one that was not reaped' hidden_is_as_gone "$zombie"
check 'so is a thread' hidden_is_as_gone "$thread"
check 'nor does detaching tell of a hidden process' detached_is_as_gone $sleeper
check 'nor of one that was not reaped' detached_is_as_gone "$zombie"
check 'nor of a thread' detached_is_as_gone "$thread"
check 'nor is who holds counters exclusively named' exclusive_is_told 'another user'
check 'alice counts her process' opens alice
check 'and its descendants' opens_family alice
check 'root counts it' opens root
kill $sleeper $counting $others
tap_end
