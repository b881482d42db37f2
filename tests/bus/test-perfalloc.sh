#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The command perfalloc. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"

# held N: so many holds have not ended. One that has ended may be forgotten at any moment.
held() {
        local n=0 path state

        for path in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/hold/[0-9]'); do
                state=$(busctl get-property org.perfalloc1 "$path" org.perfalloc1.Hold State 2>/dev/null) || continue
                [[ $state == *ended* ]] || n=$((n + 1))
        done
        [[ $n -eq $1 ]]
}

# The newest hold that is granted, without its prefix.
granted() {
        local path

        for path in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/hold/[0-9]'); do
                [[ $(busctl get-property org.perfalloc1 "$path" org.perfalloc1.Hold State) != *granted* ]] ||
                        echo "$path"
        done | sort -t/ -k5 -n | tail -n 1
}

revoke() {
        busctl call org.perfalloc1 "$(granted)" org.perfalloc1.Hold Release
}

# start COMMAND...: as alice, in the background; its pid is in pid, what it says in $dir/said.
start() {
        rm -f $dir/ready $dir/said
        as alice "$@" >$dir/said 2>&1 &
        pid=$!
}

# holds: what was started says that it holds; what it says instead is shown.
holds() {
        wait_until grep -q holding $dir/said || {
                cat $dir/said
                return 1
        }
}

status_of_command() {
        run 7 as alice perfalloc sh -c 'exit 7' && run 0 as alice perfalloc true
}

signal_of_command() {
        run 139 as alice perfalloc sh -c 'kill -SEGV $$' && run 143 as alice perfalloc sh -c 'kill $$'
}

# On a terminal, in the foreground: the shell's view of a COMMAND that stops itself.
stopped_command_is_seen() {
        timeout 60 python3 - <<'END'
import os, pty, signal, sys

pid, _ = pty.fork()
if pid == 0:
    os.execvp('perfalloc', ['perfalloc', '--pmu=software', 'sh', '-c', 'kill -STOP $$; exit 7'])
_, status = os.waitpid(pid, os.WUNTRACED)
if not os.WIFSTOPPED(status):
    sys.exit(f'not stopped: {status:#x}')
os.kill(pid, signal.SIGCONT)
_, status = os.waitpid(pid, 0)
sys.exit(0 if os.waitstatus_to_exitcode(status) == 7 else f'{status:#x}')
END
}

says_what_it_holds() {
        run 0 as alice perfalloc --pmu=breakpoint --cpus=0 echo run &&
                said 'perfalloc: holding all counters of breakpoint on CPU 0 (confirmed in ' && said run
}

nothing_to_reserve() {
        run 0 as alice perfalloc echo run && said 'no core PMU, so there is nothing to hold' && said run &&
                run 1 as alice perfalloc --counters=2 echo run && said 'nothing to hold; --pmu holds' && ! grep -qx run $dir/said &&
                run 1 as alice perfalloc --require echo run && said 'nothing to hold' && ! grep -qx run $dir/said
}

help_fits_on_the_screen() {
        run 0 perfalloc --help && said '--broker' && ! grep '^.\{81\}' $dir/said
}

cut_lifetime_is_said() {
        run 0 as alice perfalloc --pmu=breakpoint true && said 'the hold ends after 8h, the limit' && said HoldMaxSec &&
                run 0 perfalloc --pmu=breakpoint true && ! said HoldMaxSec
}

# warned N: so many ends were told; each is less than a minute away.
warned() {
        [[ $(grep -c "warning: the hold ends in [0-9.]*s, at .*: perfallocctl extend $number\$" $dir/said) -eq $1 ]]
}

# hold_max TIME: without manage. None: the default.
hold_max() {
        printf '%s\n' ${1:+'[Limits]' "HoldMaxSec=$1"} >/etc/perfalloc/perfallocd.conf
        service-restart
}

near_end_is_told() {
        local number

        hold_max 50s
        start perfalloc --quiet --pmu=breakpoint
        wait_until grep -q 'warning: ' $dir/said && number=$(granted) && number=${number##*/} && warned 1 &&
                as alice perfallocctl -q extend "$number" && wait_until warned 2 && kill $pid && ended 0 &&
                [[ $(wc -l <$dir/said) -eq 2 ]]
        set -- $?
        hold_max
        return "$1"
}

# The bus carries signals from everybody to everybody.
forged_end_is_not_told() {
        local number client

        start perfalloc --pmu=breakpoint
        holds && number=$(granted) && number=${number##*/} || return
        client=$(busctl list --no-legend | awk -v pid=$pid '$2 == pid { print $1 }')
        as bob dbus-send --system --type=signal --dest="$client" "/org/perfalloc1/hold/$number" \
                org.perfalloc1.Hold.Expiring uint64:1 && as alice perfallocctl -q extend "$number" --lifetime=50s &&
                wait_until grep -q warning $dir/said && warned 1 && kill $pid && ended 0 && [[ $(grep -c warning $dir/said) -eq 1 ]]
}

quiet_says_nothing() {
        run 0 as alice perfalloc --quiet --pmu=breakpoint true && [[ ! -s $dir/said ]]
}

denied_is_not_run() {
        run 1 as bob perfalloc --pmu=breakpoint echo not-run &&
                said org.perfalloc1.hold && said perfalloc-users && ! said not-run
}

member_of_group_is_run() {
        run 0 as carol perfalloc --pmu=breakpoint true
}

holder_is_the_process_that_stays() {
        start perfalloc --pmu=breakpoint
        holds || return
        busctl get-property org.perfalloc1 "$(granted)" org.perfalloc1.Hold Pid | grep -qx "u $pid" &&
                kill $pid && ended 0
}

ends_by() {
        local signal

        for signal in INT TERM HUP; do
                start perfalloc --pmu=breakpoint
                holds || return
                # sh has told what it starts in the background to ignore SIGINT
                kill -s $signal $pid && ended 0 && held 0 || return
        done
}

killed_holder_holds_no_more() {
        start perfalloc --pmu=breakpoint
        holds && kill -KILL $pid && ended 137 && wait_until held 0
}

busy_names_the_holder() {
        start perfalloc --exclusive --pmu=breakpoint
        holds || return
        as carol perfalloc --pmu=breakpoint echo not-run >$dir/other 2>&1
        [[ $? -eq 1 ]] && cat $dir/other && grep -q "pid $pid" $dir/other && ! grep -q not-run $dir/other &&
                kill $pid && ended 0
}

waits_and_says_for_whom() {
        local holder

        start perfalloc --exclusive --pmu=breakpoint
        holds || return
        holder=$pid
        rm -f $dir/other
        as carol perfalloc --pmu=breakpoint --wait=infinity echo run >$dir/other 2>&1 &
        wait_until grep -q "place 1 in the queue, behind alice, perfalloc (pid $holder): " $dir/other || return
        ! grep -q run $dir/other && kill $holder && ended 0 && wait $! && grep -qx run $dir/other
}

interrupted_while_waiting() {
        local holder

        start perfalloc --exclusive --pmu=breakpoint
        holds || return
        holder=$pid
        start perfalloc --pmu=breakpoint --wait=infinity echo not-run
        wait_until grep -q 'in the queue' $dir/said && kill $pid && ended 143 && ! said not-run &&
                pid=$holder && kill $pid && wait $pid && held 0
}

timed_out_is_not_run() {
        start perfalloc --exclusive --pmu=breakpoint
        holds || return
        as carol perfalloc --pmu=breakpoint --wait=50ms echo not-run >$dir/other 2>&1
        [[ $? -eq 1 ]] && ! grep -q not-run $dir/other && kill $pid && ended 0
}

slow_polkit_is_told() {
        polkit-signal STOP || return
        start perfalloc --pmu=breakpoint echo run
        wait_until grep -q 'waiting for perfallocd and polkit' $dir/said && ! grep -qx run $dir/said
        set -- $?
        polkit-signal CONT
        ended 0 && [[ $1 -eq 0 ]] && grep -qx run $dir/said
}

signal_is_handed_on() {
        start perfalloc sh -c "trap 'exit 9' USR1; >$dir/ready; while :; do sleep 0.01; done"
        wait_until test -e $dir/ready && kill -USR1 $pid && ended 9
}

not_found_is_127() {
        run 127 perfalloc /no/such/command && held 0
}

cannot_be_run_is_126() {
        run 126 perfalloc /etc/passwd && held 0
}

command_keeps_its_options() {
        run 0 as alice perfalloc ls -d / && said /
}

# Descriptors of the bus, of the lease, of the event loop; all processes have those of the rig.
command_inherits_nothing() {
        as alice ls /proc/self/fd >$dir/without &&
                as alice perfalloc --quiet ls /proc/self/fd >$dir/with && cmp $dir/without $dir/with
}

early_end_is_a_warning() {
        start perfalloc --pmu=breakpoint sh -c "while ! test -e $dir/ready; do sleep 0.01; done; exit 4"
        holds && revoke && wait_until grep -q 'revoked); sh continues' $dir/said &&
                touch $dir/ready && ended 4
}

# polkit takes its time to permit the broker, and the hold is revoked meanwhile.
end_before_the_command_runs_nothing() {
        rm -f /run/lock/asked /run/lock/go
        rules 00-asked <<'END' || return
polkit.addRule(function(action, subject) {
    if (action.id == 'org.perfalloc1.sample-own')
        polkit.spawn(['/bin/sh', '-c', 'touch /run/lock/asked; until test -e /run/lock/go; do sleep 0.1; done']);
});
END
        start perfalloc --pmu=breakpoint --broker=yes echo not-run
        wait_until test -e /run/lock/asked && revoke && wait_until said 'revoked)'
        set -- $?
        touch /run/lock/go
        ended 1 && [[ $1 -eq 0 ]] && said 'echo is not run' && ! grep -qx not-run $dir/said
        set -- $?
        rules --remove 00-asked
        return "$1"
}

# The service remembers it no more, as of one that has ended long ago.
end_is_told_late() {
        start perfalloc --pmu=breakpoint
        holds && kill -STOP $pid && revoke && service-stop && service-start
        set -- $?
        kill -CONT $pid
        ended 1 && [[ $1 -eq 0 ]] && said 'the hold has ended' && ! said 'has stopped'
}

early_end_without_command_fails() {
        start perfalloc --pmu=breakpoint
        holds && revoke && ended 1 && said revoked
}

end_of_the_service_is_noticed() {
        start perfalloc --pmu=breakpoint
        holds && service-kill && ended 1 && said 'perfallocd has stopped'
}

restart_is_not_noticed() {
        start perfalloc --pmu=breakpoint sh -c "while ! test -e $dir/ready; do sleep 0.01; done; exit 4"
        holds && service-restart && held 1 && service-kill --again && held 1 &&
                touch $dir/ready && ended 4 && ! said 'no longer' && held 0
}

released_after_restart() {
        start perfalloc --pmu=breakpoint
        holds && service-kill --again && kill $pid && ended 0 && held 0
}

restarts_in_the_queue() {
        local holder i

        start perfalloc --exclusive --pmu=breakpoint
        holds || return
        holder=$pid
        start perfalloc --pmu=breakpoint --wait=infinity echo run
        wait_until grep -q 'in the queue' $dir/said || return
        for i in restart 'kill --again' restart; do
                # shellcheck disable=SC2086
                service-$i || return
        done
        held 2 && ! grep -qx run $dir/said && kill "$holder" && ended 0 && grep -qx run $dir/said && held 0
}

restart_while_polkit_is_asked() {
        polkit-signal STOP || return
        start perfalloc --pmu=breakpoint echo run
        wait_until grep -q 'waiting for perfallocd and polkit' $dir/said && service-kill --again
        set -- $?
        polkit-signal CONT
        ended 0 && [[ $1 -eq 0 ]] && grep -qx run $dir/said
}

background() {
        local holder status

        run 0 as alice perfalloc -d --pmu=breakpoint || return
        holder=$(busctl get-property org.perfalloc1 "$(granted)" org.perfalloc1.Hold Pid) || return
        holder=${holder#u }
        [[ $(readlink "/proc/$holder/cwd") == / && $(readlink "/proc/$holder/fd/2") == /dev/null ]] || return
        # a session of its own
        status=$(ps -o sid= -p "$holder") && [[ $((status)) -eq $holder ]] || return
        kill "$holder" && wait_until held 0
}

background_keeps_no_descriptor() {
        exec 7>$dir/lock
        run 0 flock 7 as alice perfalloc -d --pmu=breakpoint || return
        exec 7>&-
        flock -n $dir/lock true || return
        kill "$(busctl get-property org.perfalloc1 "$(granted)" org.perfalloc1.Hold Pid | cut -c3-)" && wait_until held 0
}

background_that_fails() {
        run 1 as bob perfalloc -d --pmu=breakpoint && said org.perfalloc1.hold
}

background_is_ignored_with_command() {
        run 5 as alice perfalloc -d sh -c 'exit 5'
}

lock_file_is_locked() {
        true >$dir/perflock
        chmod 666 $dir/perflock
        run 0 as alice perfalloc -f $dir/perflock python3 -c "
import fcntl
try:
    fcntl.lockf(open('$dir/perflock', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
except BlockingIOError:
    print('locked')" && said locked
}

lock_that_fails_is_not_run() {
        run 1 as alice perfalloc -f /dev/null echo not-run && said 'not a regular file' && ! said not-run
}

# Takes a breakpoint of every CPU, as a program does that the service does not know.
squat() {
        python3 - "$dir/squatting" <<'END'
import ctypes, os, platform, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
number = {'x86_64': 298, 'aarch64': 241}[platform.machine()]
word = ctypes.c_uint64()
for cpu in os.sched_getaffinity(0):
    # a struct perf_event_attr of 72 bytes: PERF_TYPE_BREAKPOINT, bp_type, bp_addr, bp_len
    attr = struct.pack('IIQQQQQIIQQ', 5, 72, 0, 0, 0, 0, 0, 0, 2, ctypes.addressof(word), 8)
    if libc.syscall(number, attr, -1, cpu, -1, 0) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
open(sys.argv[1], 'w').close()
signal.pause()
END
}

squatter_is_named() {
        local squatter

        rm -f $dir/squatting
        squat &
        wait_until test -e $dir/squatting || return
        squatter=$(pgrep -P $!)
        run 1 as alice perfalloc --pmu=breakpoint echo not-run &&
                said "(pid $squatter)" && ! said not-run &&
                run 0 as alice perfalloc --pmu=breakpoint --best-effort echo run &&
                said 'warning: ' && said "(pid $squatter)" && said run
        set -- $?
        kill "$squatter"
        wait $! 2>/dev/null
        return "$1"
}

# On a terminal ^C is for COMMAND, which gets it once. perfalloc takes its signals in order: when it hands SIGUSR1
# on, it is done with its own SIGINT.
interrupt_of_the_terminal_comes_once() {
        mkfifo $dir/typed
        cat >$dir/count.py <<'END'
import signal
n = 0
def count(*_):
    global n
    n += 1
    print('interrupted', flush=True)
def tell(*_):
    raise SystemExit(f'counted {n}')
signal.signal(signal.SIGINT, count)
signal.signal(signal.SIGUSR1, tell)
print('ready', flush=True)
while True:
    signal.pause()
END
        rm -f $dir/said
        as alice script -qec "exec perfalloc --quiet python3 $dir/count.py" /dev/null <$dir/typed >$dir/said 2>&1 &
        pid=$!
        exec 7>$dir/typed
        wait_until grep -q ready $dir/said && printf '\003' >&7 && wait_until grep -q interrupted $dir/said &&
                kill -USR1 "$(pgrep -P $pid -x perfalloc)" && wait_until grep -q counted $dir/said && said 'counted 1'
        set -- $?
        exec 7>&-
        [[ $1 -eq 0 ]] || kill $pid
        wait $pid
        cat $dir/said
        return "$1"
}

no_service() {
        service-stop
        service-mask
        run 1 as alice perfalloc echo not-run && said 'systemctl status perfallocd' && ! said not-run
}

no_bus() {
        run 1 env DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/such/socket perfalloc echo not-run &&
                said 'cannot connect to the system bus' && ! said not-run
}

wrong_option_is_named() {
        run 1 perfalloc --colour echo not-run && said "'--colour'" && ! said not-run
}

refused_value_is_named() {
        run 1 as alice perfalloc --cpus=99999 echo not-run && said 99999 && ! said not-run &&
                run 1 as alice perfalloc --pmu=nosuch echo not-run && said nosuch && ! said not-run &&
                run 1 as alice perfalloc --reason=$'\xff' echo not-run && said UTF-8 && ! said not-run
}

without_core_pmu
check 'exits as COMMAND does' status_of_command
check 'dies of the signal that COMMAND died of' signal_of_command
check 'stops with a COMMAND that stops itself, and goes on with it' stopped_command_is_seen
check 'says what it holds' says_what_it_holds
check 'says so where there is nothing to hold' nothing_to_reserve
check 'says that the hold will be cut' cut_lifetime_is_said
check 'warns before the hold expires, once for each end, also with --quiet' near_end_is_told
check 'a forged signal that the hold expires is not believed' forged_end_is_not_told
check 'help fits into 80 columns' help_fits_on_the_screen
check 'says nothing with --quiet' quiet_says_nothing
check 'who is denied learns the action and the group, and COMMAND is not run' denied_is_not_run
check 'a member of the group may' member_of_group_is_run
check 'the holder is the process that stays' holder_is_the_process_that_stays
check 'SIGINT, SIGTERM and SIGHUP end it with 0, and the hold with it' ends_by
check 'killed, it holds no more' killed_holder_holds_no_more
check 'who is in the way is named, and COMMAND is not run' busy_names_the_holder
check 'COMMAND does not start in the queue; who is before it is told' waits_and_says_for_whom
check 'a signal ends the waiting' interrupted_while_waiting
check 'COMMAND is not run when the wait was too short' timed_out_is_not_run
check 'while polkit takes its time it says so' slow_polkit_is_told
check 'a signal from a process is handed on' signal_is_handed_on
check 'a signal from the terminal is not' interrupt_of_the_terminal_comes_once
check 'COMMAND that is not found is 127' not_found_is_127
check 'COMMAND that cannot be run is 126' cannot_be_run_is_126
check 'COMMAND keeps its options' command_keeps_its_options
check 'COMMAND inherits no descriptor' command_inherits_nothing
check 'an early end is a warning, and COMMAND goes on' early_end_is_a_warning
check 'an end before COMMAND has begun is a failure, and COMMAND is not run' end_before_the_command_runs_nothing
check 'an end that is noticed late is no end of the service' end_is_told_late
check 'without COMMAND an early end is a failure' early_end_without_command_fails
check 'the end of the service is noticed' end_of_the_service_is_noticed
check 'that it is started anew is not' restart_is_not_noticed
check 'nor afterwards, when the counters are given back' released_after_restart
check 'nor in the queue, where the place is kept' restarts_in_the_queue
check 'while polkit is asked the question is put again' restart_while_polkit_is_asked
check '-d returns when the counters are held, and lets go of everything' background
check '-d keeps nothing open that was the caller'"'"'s' background_keeps_no_descriptor
check '-d fails when the hold does' background_that_fails
check '-d is ignored with COMMAND' background_is_ignored_with_command
check '-f takes the lock that pmdaperfevent looks at' lock_file_is_locked
check 'COMMAND is not run when the lock cannot be had' lock_that_fails_is_not_run
check 'a stranger on the counters is named; --best-effort goes on with a warning' squatter_is_named
check 'a wrong option is named' wrong_option_is_named
check 'a refused value is named' refused_value_is_named
check 'without the bus it says so' no_bus
check 'without the service it says where to look' no_service
tap_end
