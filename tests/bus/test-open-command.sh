#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# perfallocctl open, and commands under it. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/bus/perfallocctl.sh
. "$PERFALLOC_SOURCE/tests/bus/perfallocctl.sh"

counters_are() {
        perfallocctl counters --json >$dir/counters && [[ $(grep -c '"counter":' $dir/counters) -eq $1 ]]
}

output_is_opened_first() {
        run 1 as alice perfallocctl open -o /nowhere/readings task-clock:u -- touch $dir/was-run && said /nowhere &&
                [[ ! -e $dir/was-run ]]
}

command_is_counted() {
        run 0 as alice perfallocctl open --json -o $dir/readings task-clock:u page-faults:u -- true && [[ ! -s $dir/said ]] &&
                cp $dir/readings $dir/said && json "[r['quality'] for r in j['readings']] == ['exact', 'exact']" &&
                json "j['readings'][1]['value'] > 10" && counters_are 0
}

# The grandchild uses 0.2 s; what is waited for is not counted.
descendants_of_the_command_are_counted() {
        run 0 as alice perfallocctl open --json -o $dir/readings task-clock:u -- sh -c "python3 -c '
import time
while time.process_time() < 0.2:
    pass'; :" && cp $dir/readings $dir/said && json "j['readings'][0]['value'] > 2e8"
}

command_has_its_status_and_output() {
        run 7 as alice perfallocctl open task-clock:u -- sh -c 'exit 7' &&
                run 139 as alice perfallocctl open task-clock:u -- sh -c 'kill -SEGV $$' && said task-clock &&
                run 127 perfallocctl open task-clock -- /no/such/command && run 126 perfallocctl open task-clock -- /etc/passwd &&
                [[ $(as alice perfallocctl open task-clock:u -- echo hello --json 2>/dev/null) == 'hello --json' ]]
}

refused_command_is_not_run() {
        run 5 perfallocctl open nosuch -- echo not-run && ! said not-run &&
                run 3 as bob perfallocctl open --no-fallback page-faults -- echo not-run && ! said not-run &&
                run 2 perfallocctl open task-clock -p 1 -- echo not-run && ! said not-run
}

# Without count-kernel it counts user space, as perf does, and says so.
fallback_is_user_space() {
        run 0 as bob perfallocctl open page-faults task-clock:u -- true && said page-faults:u &&
                said 'counting user space only (:u)' && said --no-fallback &&
                run 0 as bob perfallocctl open page-faults:u -- true && ! said fallback &&
                run 0 as alice perfallocctl open page-faults -- true && ! said page-faults:u && ! said fallback
}

# As perf takes them: each event of a word is one of its own.
events_are_lists() {
        local lists=page-faults:u,task-clock:u,context-switches:u list

        run 0 as alice perfallocctl open --json -o $dir/readings $lists cpu-clock:u -- true && cp $dir/readings $dir/said &&
                json "[r['event'] for r in j['readings']] == '$lists,cpu-clock:u'.split(',')" &&
                run 0 as bob perfallocctl open page-faults,task-clock -- true && grep -q ' page-faults:u ' $dir/said &&
                grep -q ' task-clock:u ' $dir/said || return
        start perfallocctl open --all-cpus page-faults,mem:0x1000/8:w,task-clock
        wait_until said ': task-clock' && grep -q 'counter [0-9]*: mem:0x1000/8:w$' $dir/said && kill $pid && ended 0 || return
        run 0 perfallocctl watch --all-cpus task-clock,page-faults -i 20ms -n 1 && [[ $(wc -l <$dir/said) -eq 3 ]] || return
        for list in 'task-clock,,page-faults' 'task-clock,' ',' ',task-clock'; do
                run 2 perfallocctl open "$list" -- true && said 'is empty' &&
                        run 2 perfallocctl watch -a "$list" && said 'is empty' || return
        done
}

# An event that cannot be opened in user space either is what is wrong, not the permission.
fallback_refuses_what_cannot_be_counted() {
        run 2 as bob perfallocctl open page-faults mem:0x1000/8:r -- true && said 'use rw' && ! said count-kernel
}

# What less is permitted is named; where nothing less helps, there is no fallback.
refusals_name_what_needs_less() {
        run 3 as bob perfallocctl open --no-fallback page-faults -- true && said "':u' after the event" || return
        run 3 as bob perfallocctl open page-faults:k -- true && ! said fallback || return
        run 3 as bob perfallocctl open -a page-faults && said "one's own processes" && ! said fallback || return
        run 3 as bob perfallocctl open -p 1 page-faults && said count-other && said "one's own processes" || return
        run 3 as bob perfallocctl hold --pmu=breakpoint && said 'perfalloc COMMAND' || return
        run 3 as bob perfallocctl open --role=monitor page-faults:u -- true && said 'role foreground'
}

open_counts_until_interrupted() {
        local signal

        for signal in INT TERM HUP; do
                start perfallocctl open --all-cpus task-clock
                counter && kill -s $signal $pid && ended 0 && said exact && counters_are 0 || return
        done
}

open_counts_until_its_process_ends() {
        local target

        sleep 1000 &
        target=$!
        start perfallocctl open -p $target task-clock:u
        counter && kill $target && ended 0 && said task-clock:u && counters_are 0
}

# Runs a command when perfallocctl has read its counters while they count: a second call has been made, so the first
# one is answered.
after_a_reading() {
        calls_watch && forward_until $pid called ReadCounters 2 && "$@"
        set -- $?
        calls_ignore
        return "$1"
}

has_ended() {
        ! kill -0 "$pid" 2>/dev/null
}

# ends STATUS: what was started, by its clock.
ends() {
        forward_until $pid has_ended && ended "$1"
}

open_says_when_the_service_stops() {
        start as alice "$perfallocctl_clock" open --all-cpus task-clock
        counter >/dev/null && after_a_reading service-stop && ends 1 && said 'perfallocd has stopped' && said exact
}

# The service is not started again only to hear that the counters are gone.
command_goes_on_when_the_service_stops() {
        start as alice "$perfallocctl_clock" open task-clock:u -- sh -c "echo >$dir/begun; until [ -e $dir/go ]; do sleep 0.01; done"
        wait_until test -e $dir/begun && after_a_reading service-stop && forward_until $pid said exact &&
                said 'perfallocd has stopped' && kill -0 $pid && touch $dir/go && ended 1 && service-start
}

# behind_bridge COMMAND...: a process of its own has the connection to the bus.
behind_bridge() {
        start env DBUS_SYSTEM_BUS_ADDRESS="unixexec:path=$(command -v systemd-stdio-bridge)" "$@"
}

bridge_ends() {
        pkill -KILL -P "$pid" -x systemd-stdio-b
}

open_says_when_the_bus_stops() {
        behind_bridge "$perfallocctl_clock" open --all-cpus task-clock
        counter >/dev/null && after_a_reading bridge_ends && ended 1 && said 'connection to the bus was lost' && said exact
}

command_goes_on_when_the_bus_stops() {
        rm -f $dir/begun $dir/go
        behind_bridge "$perfallocctl_clock" open task-clock -- sh -c "echo >$dir/begun; until [ -e $dir/go ]; do sleep 0.01; done"
        wait_until test -e $dir/begun && after_a_reading bridge_ends && wait_until said exact &&
                said 'connection to the bus was lost' && kill -0 $pid && touch $dir/go && ended 1
}

sleeps() {
        grep -q '^State:.S' "/proc/$pid/status"
}

# When others are answered and it sleeps, it has heard of the new service too: its clock may go forward.
open_counts_through_restarts() {
        start "$perfallocctl_clock" open --all-cpus task-clock
        counter >/dev/null && service-restart && service-kill --again && counters_are 1 && wait_until sleeps &&
                after_a_reading kill $pid && ended 0 && said exact && ! said ended
}

# What perf stat shows: values in groups of digits, what they mean, times.
command_is_reported() {
        run 0 as alice perfallocctl open task-clock page-faults -- sh -c 'ls -R /usr/lib >/dev/null' && said "Counted for 'sh':" &&
                grep -qE '^ +[0-9.]+ ms  task-clock +# 0\.[0-9]{3} CPUs used$' $dir/said &&
                grep -qE '^ +[0-9]+(,[0-9]{3})*  page-faults +# [0-9.k]+/s$' $dir/said &&
                grep -qE '^ +[0-9.]+  seconds elapsed$' $dir/said && said 'seconds user' && said 'seconds system'
}

command_is_counted_without_events() {
        run 0 as alice perfallocctl open -- true && said task-clock && said context-switches && said page-faults &&
                run 0 as bob perfallocctl open -- true && said task-clock:u && [[ $(grep -c 'user space only' $dir/said) -eq 1 ]]
}

command_is_repeated() {
        run 3 as alice perfallocctl open -r 4 page-faults -o $dir/readings -- sh -c 'echo ran; exit 3' &&
                [[ $(grep -cx ran $dir/said) -eq 4 ]] && grep -q '(4 runs, means)' $dir/readings &&
                grep -qE 'page-faults .*\(\+- [0-9.]+%\)$' $dir/readings && counters_are 0 &&
                [[ $(as bob perfallocctl open -r 3 page-faults -- true 2>&1 | grep -c 'user space only') -eq 1 ]]
}

# has_no_child: COMMAND has ended, and perfallocctl has seen that.
has_no_child() {
        [[ ! $(<"/proc/$pid/task/$pid/children") ]]
}

# The counters cannot be read, as the service hangs.
reading_is_interrupted() {
        local signal

        for signal in INT TERM HUP; do
                rm -f $dir/ran
                start perfallocctl open -r 2 page-faults -- sh -c "echo >>$dir/ran; service-signal STOP"
                wait_until test -e $dir/ran && wait_until has_no_child && kill -s $signal $pid && wait_until has_ended
                set -- $?
                service-signal CONT
                [[ $1 -eq 0 ]] && ended $((128 + $(kill -l $signal))) && [[ $(wc -l <$dir/ran) -eq 1 ]] &&
                        wait_until counters_are 0 || return
        done
}

command_is_reported_to_programs() {
        run 0 as alice perfallocctl open -x '|' page-faults task-clock -- true && [[ $(wc -l <$dir/said) -eq 5 ]] &&
                grep -qE '^[0-9]+\|page-faults\|exact\|0\.00$' $dir/said && grep -qE '^[0-9.]+\|elapsed\|' $dir/said &&
                run 0 as alice perfallocctl open --json -r 2 page-faults -- true &&
                json "j['runs'] == 2 and j['times']['elapsed'] > 0 and j['readings'][0]['spread'] >= 0"
}

# Where the result goes too, the events themselves tell it.
programs_read_no_note() {
        run 0 as bob perfallocctl open --json page-faults task-clock -- true &&
                json "[r['event'] for r in j['readings']] == ['page-faults:u', 'task-clock:u']" &&
                run 0 as bob perfallocctl open -x , page-faults -- true && ! said 'user space only' &&
                run 0 as bob perfallocctl open --json -o /dev/null page-faults -- true && said 'user space only'
}

something_has_to_be_counted() {
        run 2 perfallocctl open && run 2 perfallocctl open -r 2 -a task-clock && run 2 perfallocctl open --pinned task-clock -- true &&
                said '--pinned cannot be used with a command' || return
        run 2 perfallocctl open cycles && said --all-cpus && run 2 perfallocctl open --all-cpus --cpus=0 cycles
}

cgroup_is_counted() {
        run 5 perfallocctl open --cgroup no/such/group task-clock && said /sys/fs/cgroup/no/such/group
}

persistent_counters_outlive_it() {
        local counter

        counter=$(as alice perfallocctl open --persistent --all-cpus task-clock) && counters_are 1 &&
                run 0 perfallocctl read --json "$counter" && json "j['readings'][0]['value'] > 0" &&
                run 0 perfallocctl read --json --each "$counter" && json "[(r['cpu'], r['pid'], r['pmu']) for r in j['readings']][0] == (0, None, None)" &&
                run 0 as carol perfallocctl read "$counter" && run 0 as carol perfallocctl read --each "$counter" &&
                run 3 as bob perfallocctl read "$counter" && said org.perfalloc1.count-system &&
                run 0 as alice perfallocctl adopt "$counter" && said task-clock && counters_are 0
}

persistent_counters_that_nobody_hears_of_are_closed() {
        run 1 sh -c 'exec perfallocctl open --persistent -a task-clock page-faults >/dev/full' &&
                said 'standard output: No space left on device' && counters_are 0 &&
                run 1 sh -c 'exec perfallocctl open --persistent --json -a task-clock >/dev/full' && counters_are 0 || return
        rm -f $dir/readings
        run 2 perfallocctl open --persistent -o $dir/readings -a task-clock && said '--persistent and --output exclude each other' &&
                [[ ! -e $dir/readings ]] && counters_are 0
}

open_counters_can_be_made_persistent() {
        local counter

        start as alice perfallocctl open --all-cpus task-clock
        counter=$(counter) && as alice perfallocctl persist "$counter" | grep -qE "^ *$counter $counter\$" &&
                kill $pid && ended 0 && counters_are 1 && run 0 as alice perfallocctl close "$counter" && counters_are 0
}

other_hosts_process_ends() {
        local target

        ssh_bridge
        sleep 1000 &
        target=$!
        start env PATH=$dir/bin:$PATH "$perfallocctl_clock" -H there open -p $target task-clock:u
        counter >/dev/null && after_a_reading kill $target && ends 0 && said task-clock:u && counters_are 0
}

without_core_pmu
check 'a command does not run where the result cannot be written' output_is_opened_first
check 'a command is counted, and its readings go where they should' command_is_counted
check 'the counts of a command are reported with ratios and times' command_is_reported
check 'without events the usual ones are counted' command_is_counted_without_events
check 'a command is run several times, and the spread is told' command_is_repeated
check 'a signal ends the reading of what a command has counted' reading_is_interrupted
check 'fields and JSON have the times' command_is_reported_to_programs
check 'there is no note between fields or JSON' programs_read_no_note
check 'what the command starts is counted' descendants_of_the_command_are_counted
check 'the command has its exit status and its output' command_has_its_status_and_output
check 'the command is not run when it cannot be counted' refused_command_is_not_run
check 'user space is counted where the kernel may not be, and that is said' fallback_is_user_space
check 'a word may be a list of events' events_are_lists
check 'an event that cannot be counted at all is said to be the cause' fallback_refuses_what_cannot_be_counted
check 'a refusal names what needs less' refusals_name_what_needs_less
check 'open counts until a signal, and then prints' open_counts_until_interrupted
check 'open counts until its process ends' open_counts_until_its_process_ends
check 'open says so when the service stops, and prints what it read last' open_says_when_the_service_stops
check 'a command goes on then' command_goes_on_when_the_service_stops
check 'open says so when the bus stops, and ends' open_says_when_the_bus_stops
check 'a command goes on then too' command_goes_on_when_the_bus_stops
check 'open counts through restarts' open_counts_through_restarts
check 'open says what could be counted' something_has_to_be_counted
check 'a cgroup that is not there is named' cgroup_is_counted
check 'persistent counters outlive it, and are read by whoever may' persistent_counters_outlive_it
check 'persistent counters whose numbers cannot be printed are closed' persistent_counters_that_nobody_hears_of_are_closed
check 'open counters can be made persistent, and closed' open_counters_can_be_made_persistent
check '-H: open ends with the process there' other_hosts_process_ends
tap_end
