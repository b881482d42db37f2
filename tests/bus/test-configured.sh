#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Monitors of monitors.d, reload, and CPUs that come and go. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

directory=/etc/perfalloc/monitors.d
cpu=/sys/devices/system/cpu/cpu1/online

property() {
        busctl get-property org.perfalloc1 "/org/perfalloc1/$1" "org.perfalloc1.$2" "$3"
}

call() {
        busctl --timeout=infinity call org.perfalloc1 "/org/perfalloc1/$1" "org.perfalloc1.$2" "${@:3}"
}

counters() {
        busctl tree --list org.perfalloc1 | grep -c '^/org/perfalloc1/counter/[0-9]'
}

# counters_are N
counters_are() {
        [[ $(counters) -eq $1 ]]
}

# counter_of NAME: the first counter of the monitor.
counter_of() {
        local path

        for path in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/counter/[0-9]'); do
                path=${path#/org/perfalloc1/}
                if [[ $(property "$path" Counter Name) == "s \"$1\"" ]]; then
                        echo "$path"
                        return
                fi
        done
        return 1
}

value_of() {
        call "$1" Counter Read | cut -d' ' -f2
}

# each_of COUNTER CPU: what it has counted there.
each_of() {
        call "$1" Counter ReadEach | awk -v cpu="$2" '{for (i = 3; i < NF; i += 6) if ($i == cpu) print $(i + 2)}'
}

reload() {
        service-signal HUP
}

log_says() {
        service-log | grep -qF -- "$1"
}

counts_at_start() {
        wait_until counters_are 3 && property "$(counter_of clocks)" Counter State | grep -q counting &&
                property "$(counter_of clocks)" Counter Role | grep -q monitor &&
                property "$(counter_of clocks)" Counter Uid | grep -q 'u 0'
}

root_cannot_close() {
        call "$(counter_of clocks)" Counter Close 2>&1 | grep -q monitors.d
}

yields_and_goes_on() {
        local counter before hold

        counter=$(counter_of clocks)
        hold=$(as alice busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager \
                HoldUnattended 'sta{sv}' test 0 1 pmus as 1 software) || return
        hold=${hold#o \"/org/perfalloc1/}
        hold=${hold%\"}
        call "$hold" Hold Wait || return
        property "$counter" Counter State | grep -q yielded || return
        before=$(value_of "$counter")
        [[ $(value_of "$counter") == "$before" ]] || return
        call "$counter" Counter Read | grep -q not-counted || return
        call "$hold" Hold Release || return
        property "$counter" Counter State | grep -q counting && [[ $(value_of "$counter") -ge $before ]]
}

unchanged_file_goes_on() {
        local counter before

        counter=$(counter_of clocks)
        before=$(value_of "$counter")
        printf '[Monitor]\nEvents=context-switches\nCpus=0\n' >$directory/more.conf
        reload
        wait_until counters_are 4 && [[ $(counter_of clocks) == "$counter" ]] &&
                [[ $(value_of "$counter") -ge $before ]] && property "$(counter_of more)" Counter Cpus | grep -q '"0"'
}

changed_file_is_opened_anew() {
        local counter

        counter=$(counter_of more)
        printf '[Monitor]\nEvents=cpu-migrations context-switches\nCpus=0\n' >$directory/more.conf
        reload
        wait_until counters_are 5 && property "$counter" Counter State | grep -q counting || return
        printf '[Monitor]\nEvents=cpu-migrations\nCpus=0\n' >$directory/more.conf
        reload
        wait_until counters_are 4 && [[ $(counter_of more) != "$counter" ]]
}

# ---- where others have the counters ----

# take_slots N: of the four breakpoints of CPU 0, by another program.
take_slots() {
        rm -f /run/taken
        python3 - "$1" <<'END' &
import ctypes, os, platform, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
number = {'x86_64': 298, 'aarch64': 241}[platform.machine()]
# PERF_TYPE_BREAKPOINT, 72 bytes, HW_BREAKPOINT_W at an address, 8 bytes long
attr = struct.pack('IIQQQQQIIQQ', 5, 72, 0, 0, 0, 0, 0, 0, 2, 0x1000, 8)
for _ in range(int(sys.argv[1])):
    if libc.syscall(number, attr, -1, 0, -1, 0) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
open('/run/taken', 'w').close()
signal.pause()
END
        taker=$!
        wait_until test -e /run/taken
}

leave_slots() {
        kill "$taker"
        wait "$taker" 2>/dev/null
        true
}

# points EVENT...: configures the monitor of that name.
points() {
        printf '[Monitor]\nCpus=0\nEvents=%s\n' "$*" >$directory/points.conf
        reload
}

# points_are STATE...: the states of its counters, oldest first.
points_are() {
        local path states=

        for path in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/counter/[0-9]' | sort -V); do
                path=${path#/org/perfalloc1/}
                [[ $(property "$path" Counter Name) != 's "points"' ]] ||
                        states+="$(property "$path" Counter State | cut -d\" -f2) "
        done
        [[ ${states% } == "$*" ]]
}

points_wait_for_room() {
        local counter

        take_slots 4 || return
        points mem:0x8000/8:w
        wait_until points_are error && log_says 'Monitor points: cannot be opened, and is tried again' || return
        counter=$(counter_of points)
        leave_slots
        wait_until points_are counting && [[ $(counter_of points) == "$counter" ]]
}

points_wait_for_room_over_a_start() {
        service-stop
        take_slots 4 || return
        service-start
        wait_until points_are error && service-restart && wait_until points_are error || return
        leave_slots
        wait_until points_are counting
}

# The file is read again once this has been logged so often.
reads() {
        service-log | grep -c 'Configuration read again'
}

reads_are_more_than() {
        [[ $(reads) -gt $1 ]]
}

priority_changes_in_place() {
        local counter n

        counter=$(counter_of points)
        take_slots 3 || return
        n=$(reads)
        points "mem:0x8000/8:w
Priority=9"
        wait_until reads_are_more_than "$n" && points_are counting && [[ $(counter_of points) == "$counter" ]]
        set -- $?
        leave_slots
        return "$1"
}

what_has_no_room_beside_the_old_takes_its_place() {
        local counter

        counter=$(counter_of points)
        take_slots 3 || return
        points mem:0x9000/8:w
        wait_until more_points_is_another "$counter" && points_are counting
        set -- $?
        leave_slots
        return "$1"
}

more_points_is_another() {
        [[ $(counter_of points) != "$1" ]]
}

old_stays_until_the_new_counts() {
        local before counter

        counter=$(counter_of points)
        take_slots 2 || return
        before=$(call "$counter" Counter Read | cut -d' ' -f3)
        points mem:0xa000/8:w mem:0xb000/8:w mem:0xc000/8:w
        # one finds room beside the old one, which is the first here
        wait_until points_are counting counting error error || return
        [[ $(call "$counter" Counter Read | cut -d' ' -f3) -gt $before ]] || return
        leave_slots
        wait_until points_are counting counting counting && ! property "$counter" Counter State 2>/dev/null
}

points_are_taken_away() {
        rm $directory/points.conf
        reload
        wait_until points_are
}

wrong_change_keeps_the_old() {
        printf '[Monitor]\nEvents=no-such-event\n' >$directory/more.conf
        reload
        wait_until log_says "more.conf: not used because of an error; the monitor stays as it was" && counters_are 4
}

removed_file_is_closed() {
        rm $directory/more.conf
        reload
        wait_until counters_are 3
}

# goes_on_over COMMAND...: that starts the service anew.
goes_on_over() {
        local counter before

        counter=$(counter_of clocks)
        before=$(value_of "$counter")
        "$@" || return
        wait_until counters_are 3 && [[ $(counter_of clocks) == "$counter" ]] &&
                [[ $(value_of "$counter") -ge $before ]] && root_cannot_close
}

restart_goes_on() {
        goes_on_over service-restart && goes_on_over service-kill --again
}

more_is_another() {
        [[ $(counter_of more) != "$1" ]]
}

restart_sees_changes() {
        local counter

        printf '[Monitor]\nEvents=context-switches\n' >$directory/more.conf
        reload
        wait_until counters_are 4 || return
        counter=$(counter_of more)
        printf '[Monitor]\nEvents=no-such-event\n' >$directory/more.conf
        service-restart
        wait_until log_says "more.conf: not used because of an error" && [[ $(counter_of more) == "$counter" ]] || return
        printf '[Monitor]\nEvents=cpu-migrations\n' >$directory/more.conf
        service-kill --again
        wait_until more_is_another "$counter" && counters_are 4 || return
        rm $directory/more.conf
        service-restart
        wait_until counters_are 3
}

limits_are_read_again() {
        printf '[Limits]\nHoldsPerUser=1\n' >/etc/perfalloc/perfallocd.conf
        reload
        wait_until log_says 'Configuration read again' || return
        as alice busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended 'sta{sv}' a 0 0 &&
                as alice busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended \
                        'sta{sv}' b 0 0 2>&1 | grep -q HoldsPerUser
}

cpu_is_frozen() {
        [[ $(each_of "$1" 1) == "$(each_of "$1" 1)" ]]
}

grows_on_cpu() {
        [[ $(each_of "$1" 1) -gt $2 ]]
}

cpu_comes_and_goes() {
        local counter before hold

        counter=$(counter_of clocks)
        before=$(each_of "$counter" 1)
        echo 0 >$cpu || return
        wait_until cpu_is_frozen "$counter" || return
        [[ $(each_of "$counter" 1) -ge $before ]] || return
        before=$(each_of "$counter" 1)
        echo 1 >$cpu || return
        wait_until grows_on_cpu "$counter" "$before"
}

confirmed_is() {
        [[ $(property "$1" Hold Confirmed) == "b $2" ]]
}

confirmed_turns_false_until_probed() {
        local hold log=/run/confirmed

        echo 0 >$cpu || return
        wait_until grep -qx 0 /sys/devices/system/cpu/online || return
        hold=$(busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager \
                HoldUnattended 'sta{sv}' test 0 1 pmus as 1 breakpoint) || return
        hold=${hold#o \"/org/perfalloc1/}
        hold=${hold%\"}
        call "$hold" Hold Wait || return
        busctl --json=short --match "path=/org/perfalloc1/$hold" monitor >$log 2>&1 &
        wait_until grep -q Monitoring $log
        echo 1 >$cpu || return
        wait_until eval "[[ \$(grep -c Confirmed $log) -eq 2 ]]" || return
        kill %1
        wait %1 2>/dev/null
        grep -o '"Confirmed":{"type":"b","data":[a-z]*' $log | sed 's/.*://' | paste -sd' ' | grep -qx 'false true' &&
                wait_until confirmed_is "$hold" true && call "$hold" Hold Release
}

name_is_refused() {
        log_says 'monitors.d: a file is not used, because its name is not UTF-8' &&
                busctl call org.perfalloc1 /org/perfalloc1 org.freedesktop.DBus.ObjectManager GetManagedObjects >/dev/null
}

mkdir -p $directory/directory.conf
printf '[Monitor]\nEvents=cpu-clock\n' >$directory/$'latin1-\xfc'.conf
printf '[Monitor]\nEvents=cpu-clock page-faults\n' >$directory/clocks.conf
printf '[Monitor]\nEvents=task-clock\nGroup=yes\nPriority=7\nYield=never\n' >$directory/never.conf
printf '[Monitor]\nEvents=cpu-clock\nColour=red\nno setting\nYield=sometimes\n' >$directory/wrong.conf
printf '[Monitor]\nEvents=cpu-clock\n' >$directory/unreadable.conf
chmod 600 $directory/unreadable.conf
head -c 100000 /dev/zero | tr '\0' '#' >$directory/long.conf
service-stop
service-start

check 'configured monitors count from the start, and are root'"'"'s' counts_at_start
check 'a wrong setting is named by file and line' log_says "$directory/wrong.conf:3: unknown setting Colour="
check 'so is a line that is none' log_says "$directory/wrong.conf:4: not a line like Setting=value"
check 'and a wrong value' log_says "$directory/wrong.conf:5: Yield=sometimes: not one of"
check 'a directory is no configuration' log_says "$directory/directory.conf: not used: Is a directory"
check 'nor what cannot be read' log_says "$directory/unreadable.conf: not used: Permission denied"
check 'nor what is too long' log_says "$directory/long.conf: not used: File too large"
check 'nor a file whose name the bus would not take' name_is_refused
check 'nobody closes a configured monitor' root_cannot_close
check 'they yield to a hold and go on from where they stood' yields_and_goes_on
check 'reload opens what is new and leaves alone what has not changed' unchanged_file_goes_on
check 'reload opens what has changed, and nothing else' changed_file_is_opened_anew
check 'a change that is wrong leaves the old one in force' wrong_change_keeps_the_old
check 'reload closes what was taken away' removed_file_is_closed
check 'what finds its counters taken is in error, and counts once they are free' points_wait_for_room
check 'also from the start on' points_wait_for_room_over_a_start
check 'another priority closes nothing' priority_changes_in_place
check 'what has no room beside the old one takes its place' what_has_no_room_beside_the_old_takes_its_place
check 'the old one counts until the new one does' old_stays_until_the_new_counts
check 'and all goes with the file' points_are_taken_away
check 'a restart changes nothing' restart_goes_on
check 'and notices what has changed meanwhile' restart_sees_changes
check 'reload reads the limits again' limits_are_read_again
if [[ -w $cpu ]]; then
        check 'a CPU that goes offline keeps its value, and counts on when it is back' cpu_comes_and_goes
        check 'a hold is not confirmed on a CPU that comes until that is probed' \
                confirmed_turns_false_until_probed
else
        skip 'CPUs that come and go' 'no CPU of this machine can be taken offline'
fi
tap_end
