#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Bridges to software that knows nothing of this service: PCP's own monitor, unmodified, and lock files that are
# not what they should be. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/hold.sh
. "$PERFALLOC_SOURCE/tests/hold.sh"
# shellcheck source=tests/pcp.sh
. "$PERFALLOC_SOURCE/tests/pcp.sh"

conf=/etc/perfalloc/perfallocd.conf

manager() {
        busctl --timeout=infinity call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager "$@"
}

# Bridges that are active now; the rest of Features is of the build and the kernel.
bridges_are() {
        [[ $(busctl get-property org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager Features |
                grep -o '[a-z]*-lock') == "$1" ]]
}

# configure LINE...: [Bridges], read again.
configure() {
        local n

        n=$(log_count 'Configuration read again')
        printf '%s\n' '[Bridges]' "$@" >$conf
        service-signal HUP
        wait_until log_counts 'Configuration read again' $((n + 1))
}

log_count() {
        service-log | grep -cF -- "$1"
}

log_counts() {
        [[ $(log_count "$1") -eq $2 ]]
}

# locked FILE: as pmdaperfevent asks.
locked() {
        python3 - "$1" <<'END'
import fcntl, struct, sys
lock = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 1, 0)
with open(sys.argv[1], 'r+b') as f:
    kind = struct.unpack('hhqqi4x', fcntl.fcntl(f, fcntl.F_GETLK, lock))[0]
sys.exit(kind == fcntl.F_UNLCK)
END
}

# ---- PCP ----

# Of the events that pmdaperfevent has: how many count. What it says after they were off is 0 once more.
pcp_active() {
        local n

        n=$(grep -c '^   value ' $pcp/said)
        echo 'fetch perfevent.active' >&5
        wait_until pcp_said $((n + 1))
        sed -n 's/^   value \([0-9]*\) .*/\1/p' $pcp/said | tail -n 1
}

pcp_said() {
        [[ $(grep -c '^   value ' $pcp/said) -ge $1 ]]
}

pcp_counts() {
        [[ $(pcp_active) -gt 0 ]]
}

pcp_is_off() {
        [[ $(pcp_active) -eq 0 ]]
}

pcp_gives_way() {
        local hold

        hold=$(hold_take alice 0) && hold_call "$hold" Wait || return
        [[ $(pcp_active) -eq 0 ]] && hold_call "$hold" Release
}

# Its fault that is not ours: in 79 of 80 trials its own perfalloc started the command before the events were off.
pcp_gives_way_before_command() {
        local i

        export pcp
        export -f pcp_active pcp_said wait_until
        for i in 1 2 3 4 5; do
                wait_until pcp_counts || return
                [[ $(perfalloc --quiet bash -c pcp_active) == 0 ]] || return
        done
}

yielding_is() {
        [[ $(busctl get-property org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager Yielding) == "b $1" ]]
}

# holds_of PID: how many have not ended.
holds_of() {
        local hold n=0

        for hold in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/hold/[0-9]'); do
                [[ $(busctl get-property org.perfalloc1 "$hold" org.perfalloc1.Hold Pid) == "u $1" &&
                        $(busctl get-property org.perfalloc1 "$hold" org.perfalloc1.Hold State) != *ended* ]] &&
                        n=$((n + 1))
        done
        echo $n
}

# old_perfalloc USER [COMMAND...]: PCP's own, unmodified, in place of this shell; COMMAND starts it.
old_perfalloc() {
        LD_LIBRARY_PATH="$pcp_libraries" exec as "$@" $pcp/usr/lib/pcp/pmdas/perfevent/perfalloc -f $perflock
}

# Ended by a signal, which it handles or not.
old_perfalloc_holds() {
        local pid

        yielding_is false || return
        old_perfalloc alice >/dev/null 2>&1 &
        pid=$!
        wait_until yielding_is true && [[ $(holds_of $pid) -eq 1 ]] || return
        kill -s "$1" $pid
        wait_until yielding_is false && [[ $(holds_of $pid) -eq 0 ]]
}

# Its lock makes PCP disable its events, and is no hold for whom polkit refuses one.
old_perfalloc_denied() {
        local pid n

        wait_until pcp_counts || return
        n=$(log_count 'Only PCP yields')
        old_perfalloc "$@" >/dev/null 2>&1 &
        pid=$!
        wait_until log_counts 'Only PCP yields' $((n + 1)) || return
        yielding_is false && [[ $(holds_of $pid) -eq 0 ]] && wait_until pcp_is_off || return
        # nor after another look, nor after a restart
        touch $perflock && service-restart && yielding_is false && [[ $(holds_of $pid) -eq 0 ]] || return
        kill $pid
        wait_until unlocked && wait_until pcp_counts
}

# While polkit says nothing there is no hold; and what it then says of somebody who has left makes none.
old_perfalloc_leaves_while_asked() {
        local pid

        polkit-signal STOP
        old_perfalloc alice >/dev/null 2>&1 &
        pid=$!
        wait_until locked $perflock && touch $perflock && yielding_is false && kill $pid && wait_until unlocked
        polkit-signal CONT
        perfalloc --quiet true && yielding_is false
}

old_perfalloc_was_there_before() {
        local pid

        configure PcpLock=no || return
        old_perfalloc alice >/dev/null 2>&1 &
        pid=$!
        wait_until locked $perflock || return
        configure && wait_until yielding_is true && configure PcpLock=no && wait_until yielding_is false || return
        configure && wait_until yielding_is true && kill $pid && wait_until yielding_is false
}

# Numbers of holds are from the clock where the file for them cannot be written, from then on.
full_file_system_changes_nothing() {
        mkdir -p /run/full && mount -t tmpfs -o size=4k,mode=777 tmpfs /run/full || return
        head -c 4096 /dev/zero >/run/full/zeros
        service-stop
        service-start RUNTIME_DIRECTORY=/run/full && old_perfalloc_holds HUP
        set -- $?
        service-stop
        service-start
        umount /run/full
        return "$1"
}

# A hold that an administrator has ended does not come back by itself.
revoked_stays_revoked() {
        local pid hold

        old_perfalloc alice >/dev/null 2>&1 &
        pid=$!
        wait_until yielding_is true || return
        for hold in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/hold/[0-9]'); do
                hold_call "$hold" Release
        done
        yielding_is false && locked $perflock && touch $perflock && yielding_is false && kill $pid || return
        wait_until unlocked && old_perfalloc_holds KILL
}

unlocked() {
        ! locked $perflock
}

# Our own perfalloc with -f has a hold of its own, and one only.
own_perfalloc_holds_once() {
        local pid

        perfalloc --quiet -f $perflock >/dev/null 2>&1 &
        pid=$!
        wait_until yielding_is true && [[ $(holds_of $pid) -eq 1 ]] && touch $perflock || return
        [[ $(holds_of $pid) -eq 1 ]] && kill $pid && wait_until yielding_is false
}

wakeups() {
        awk '/voluntary_ctxt_switches/ {n += $2} END {print n}' "/proc/$(service-pid)/status"
}

# Ended holds and clients that have left wake it for some seconds more; polling would for ever.
nothing_wakes_it() {
        local before i

        for ((i = 0; i < 20; i++)); do
                before=$(wakeups)
                sleep 1
                [[ $(wakeups) -ne $before ]] || return 0
        done
        return 1
}

if pcp_unpack; then
        pcp_configure /etc/pcp.conf
        configure
        check 'a PCP whose monitor never ran is not waited for' bridges_are ''
        pcp_start
        check 'pmdaperfevent, as PCP has it, counts' wait_until pcp_counts
        check 'its lock is found by its configuration, and the bridge says that it is active' \
                bridges_are pcp-lock
        check 'a hold makes it disable its events before the grant' pcp_gives_way
        check 'and it goes on after the release' wait_until pcp_counts
        check 'so does perfalloc, before it runs its command' pcp_gives_way_before_command
        check "PCP's own perfalloc, run by whom polkit allows one, has a hold until it ends" old_perfalloc_holds HUP
        check 'or until it is killed' old_perfalloc_holds KILL
        check 'also where no number can be written down' full_file_system_changes_nothing
        check 'whom polkit does not allow a hold stops PCP alone' old_perfalloc_denied bob
        check 'so does a root without capabilities' old_perfalloc_denied root \
                setpriv --inh-caps=-all --bounding-set=-all
        check 'who has left when polkit answers has no hold' old_perfalloc_leaves_while_asked
        check 'it is noticed too when it was there before' old_perfalloc_was_there_before
        check 'its hold can be revoked, and does not come back by itself' revoked_stays_revoked
        check 'perfalloc -f has one hold, not two' own_perfalloc_holds_once
        exec 5>&-
        wait $dbpmda
        check 'the lock is watched without polling' nothing_wakes_it
else
        skip 'a hold makes pmdaperfevent yield' "Debian's package pcp cannot be had"
fi
rm -rf $pcp /etc/pcp.conf
mkdir -p "${perflock%/*}"

# ---- a lock file by path ----

hold_locks() {
        local hold

        : >$perflock
        configure "PcpLock=$perflock" && ! locked $perflock || return
        hold=$(hold_take alice 0) && hold_call "$hold" Wait && locked $perflock || return
        hold_call "$hold" Release && ! locked $perflock
}

# A scope that has nothing to do with it gives no exemption.
locks_whatever_the_scope() {
        local hold

        hold=$(hold_take alice 1 pmus as 1 breakpoint) && hold_call "$hold" Wait && locked $perflock &&
                hold_call "$hold" Release
}

crash_unlocks() {
        local hold

        hold=$(hold_take alice 0) && hold_call "$hold" Wait && locked $perflock || return
        service-kill
        ! locked $perflock && service-start
}

# The deadline is not before the grace, though the caller says so.
grace_is_waited_for() {
        local hold before

        configure "PcpLock=$perflock" PcpGraceSec=0.3 || return
        before=$(date +%s%3N)
        hold=$(hold_take alice 1 yield_usec t 1000) && hold_call "$hold" Wait || return
        [[ $(($(date +%s%3N) - before)) -ge 300 ]] && hold_call "$hold" Release
}

writer_start() {
        python3 - $perflock "$1" <<'END' >/dev/null 2>&1 &
import fcntl, sys, time
with open(sys.argv[1], 'r+b') as f:
    fcntl.lockf(f, fcntl.LOCK_EX, 1)
    open(sys.argv[2], 'w').close()
    time.sleep(1000)
END
        writer=$!
        wait_until test -e "$1"
}

writer_is_an_obstacle() {
        local hold

        configure "PcpLock=$perflock" && test -e /run/writes || return
        hold=$(hold_take alice 1 yield_usec t 300000) || return
        ! hold_call "$hold" Wait || return
        busctl get-property org.perfalloc1 "$hold" org.perfalloc1.Hold Obstacles | grep -F "$writer" | grep -F $perflock &&
                [[ $(log_count "somebody has a write lock on $perflock") -eq 1 ]]
}

best_effort_goes_on() {
        local hold

        hold=$(hold_take alice 2 yield_usec t 100000 best_effort b true) && hold_call "$hold" Wait | grep 'false' &&
                hold_call "$hold" Release
}


odd_files_are_said_once() {
        local what hold i

        for what in 'ln -s /etc/passwd' mkfifo mkdir; do
                rm -rf $perflock
                $what $perflock
                configure "PcpLock=$perflock" && bridges_are '' || return
                for i in 1 2 3; do
                        hold=$(hold_take alice 0) && hold_call "$hold" Wait && hold_call "$hold" Release || return
                done
        done
        [[ $(log_count "$perflock cannot be used as a lock file") -eq 3 ]]
}

reload_in_a_hold() {
        local hold

        rm -rf $perflock
        : >$perflock
        configure PcpLock=no || return
        hold=$(hold_take alice 0) && hold_call "$hold" Wait && ! locked $perflock || return
        configure "PcpLock=$perflock" && locked $perflock || return
        configure PcpLock=no && ! locked $perflock && hold_call "$hold" Release
}

likwid_without_capability() {
        local hold

        : >/run/likwid.lock
        configure || return
        hold=$(hold_take alice 0) && hold_call "$hold" Wait && hold_call "$hold" Release || return
        [[ $(stat -c %u /run/likwid.lock) -eq 0 ]] && bridges_are '' &&
                [[ $(log_count 'likwid-lock.conf') -ge 1 ]]
}

check 'a hold locks the configured file and its end unlocks it' hold_locks
check 'whatever the scope of the hold' locks_whatever_the_scope
check 'a service that crashes leaves no lock' crash_unlocks
check 'the grace is waited for, however short the deadline' grace_is_waited_for
writer_start /run/writes
check 'who has a write lock is an obstacle with pid and path, said once' writer_is_an_obstacle
check 'a hold that asks for the best effort is granted, unconfirmed' best_effort_goes_on
kill $writer
wait $writer 2>/dev/null
check 'and once the writer is gone all is well' hold_locks
check 'links, FIFOs and directories are not used, and that is said once each' odd_files_are_said_once
check 'reload switches it on and off while somebody holds' reload_in_a_hold
check 'LIKWID'"'"'s file stays whose it is without the capability, and the log says what gives it' \
        likwid_without_capability
tap_end
