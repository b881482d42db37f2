#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The command perfallocctl, but for its verb open. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/bus/perfallocctl.sh
. "$PERFALLOC_SOURCE/tests/bus/perfallocctl.sh"

# on_terminal COMMAND: what it prints is in $dir/said.
on_terminal() {
        script -qec "$1" /dev/null >$dir/said </dev/null 2>&1
}

property() {
        busctl get-property org.perfalloc1 "/org/perfalloc1/$1" "org.perfalloc1.$2" "$3"
}

# ---- status ----

status_is_the_default() {
        run 0 perfallocctl && said 'The counters are not held' && said breakpoint
}

status_says_who_holds_and_who_waits() {
        local holder waiting

        holder=$(as alice perfallocctl -q hold --pmu=breakpoint --exclusive --reason='why not') || return
        start as carol perfallocctl -q hold --pmu=breakpoint --wait=infinity
        waiting=$((holder + 1))
        wait_until property hold/$waiting Hold State || return
        run 0 perfallocctl status && said 'held by 1 hold; 1 waits' && grep -qE "^ *$holder +granted +yes +alice " $dir/said && said COMMAND &&
                said 'why not' && grep -qE "^ *$waiting +1 +$holder +carol " $dir/said &&
                run 0 perfallocctl status --json &&
                json "j['holds'][0]['hold'] == $holder and j['waiting'][0]['behind'] == [$holder]" &&
                json "[p['holds'] for p in j['pmus'] if p['name'] == 'breakpoint'] == [[$holder]]"
        set -- $?
        as alice perfallocctl release "$holder"
        wait $pid
        as carol perfallocctl release $waiting
        return "$1"
}

status_says_who_has_yielded() {
        local monitor hold

        monitor=$(perfallocctl open --persistent --all-cpus --role=monitor --name=all-day "mem:$((0x1000))/8:w") || return
        hold=$(perfallocctl -q hold --pmu=breakpoint) && run 0 perfallocctl status &&
                grep -qE "^counter +$monitor all-day .* yielded$" $dir/said &&
                run 0 perfallocctl monitors --json && json "[m['state'] for m in j['monitors']] == ['yielded']" &&
                run 0 perfallocctl release "$hold" && run 0 perfallocctl monitors && said counting
        set -- $?
        perfallocctl close "$monitor"
        return "$1"
}

# at_width COLUMNS COMMAND: on a terminal so wide; what is printed is in $dir/said.
at_width() {
        on_terminal "stty cols $1; TERM=dumb $2"
        tr -d '\r' <$dir/said >$dir/plain && mv $dir/plain $dir/said
}

fits() {
        [[ $(LC_ALL=C.UTF-8 awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }' $dir/said) -le $1 ]] || {
                cat $dir/said
                return 1
        }
}

# What matters most is there at every width, and no line is broken by the terminal.
status_fits_the_screen() {
        local holder waiting width status=0

        holder=$(as alice perfallocctl -q hold --pmu=breakpoint --exclusive --lifetime=1h --reason='the nightly benchmark') || return
        start as carol perfallocctl -q hold --pmu=breakpoint --wait=1h --reason='also a benchmark'
        waiting=$((holder + 1))
        wait_until property hold/$waiting Hold State || return
        for width in 70 80 120 200; do
                at_width $width 'perfallocctl' && fits $width && said 'held by 1 hold; 1 waits' &&
                        grep -qE "^ *$holder +granted .*alice .*the nightly" $dir/said &&
                        grep -qE "^ *$waiting +1 +$holder +carol .*also a" $dir/said || status=1
        done
        at_width 80 'perfallocctl --no-pager holds' && fits 80 && said REASON && ! said QUEUE || status=1
        at_width 200 'perfallocctl' && grep -q 'HOLD .*PID .*EXPIRES .*MODE .*REASON' $dir/said &&
                grep -q 'HOLD PLACE BEHIND .*UNTIL .*REASON' $dir/said || status=1
        # scripts get everything
        run 0 perfallocctl status && grep -q 'HOLD .*CONFIRMED .*PID .*EXPIRES .*MODE .*REASON' $dir/said || status=1
        as alice perfallocctl release "$holder"
        wait $pid
        as carol perfallocctl release $waiting
        return $status
}

# The whole screen of an idle machine, as it is at 80 columns.
status_at_80_columns() {
        at_width 80 'perfallocctl status' && sed -i 's/0-[0-9]*\( \|$\)/0-1\1/' $dir/said && diff - $dir/said <<'END'
The counters are not held.
This machine has no core PMU; counters of other PMUs can be held.

PMUs
NAME       KIND       CPUS COUNTERS FIXED KERNEL HOLDS
breakpoint breakpoint 0-1         4 -     -      -
END
}

# A command's name is any bytes.
status_prints_any_command() {
        local name=$dir/h$'\xff\xc3\xa4\033'ld

        cp "$(command -v perfalloc)" "$name"
        start "$name" --pmu=breakpoint
        wait_until holds_are 1 && run 0 perfallocctl status --json && json "j['holds'][0]['command'] == 'h?\u00e4?ld'" &&
                run 0 perfallocctl status && said 'h?ä?ld'
        set -- $?
        kill $pid
        wait $pid
        rm "$name"
        return "$1"
}

status_is_watched() {
        local hold=''

        start perfallocctl status --watch --interval=1h
        wait_until grep -q 'not held' $dir/said && hold=$(perfallocctl -q hold --pmu=software) &&
                wait_until grep -q 'held by 1 hold' $dir/said && kill $pid && ended 0
        set -- $?
        perfallocctl release "$hold"
        return "$1"
}

ended_holds_are_listed_on_request() {
        local hold

        hold=$(perfallocctl -q hold --pmu=software --lifetime=1h) && perfallocctl release "$hold" &&
                run 0 perfallocctl holds && ! grep -qE "^ *$hold " $dir/said &&
                run 0 perfallocctl holds --all --json && json "[(h['state'], h['expires']) for h in j['holds'] if h['hold'] == $hold] == [('ended', 0)]"
}

# For its owner and root; others see that there is one.
registered_monitors_are_named() {
        local user status=0

        start as alice "$PERFALLOC_BUILD/tests/systemd/yielder"
        wait_until grep -q registered $dir/said || return
        for user in alice root; do
                run 0 as $user perfallocctl monitors --json && json "[m['name'] for m in j['monitors']] == ['yielder']" || status=1
        done
        run 0 as bob perfallocctl monitors --json && json "[(m['name'], m['pmus']) for m in j['monitors']] == [('', ['breakpoint'])]" || status=1
        kill $pid
        wait $pid 2>/dev/null
        return $status
}

# ---- hold ----

hold_stays_until_released() {
        local hold

        hold=$(as alice perfallocctl hold --pmu=breakpoint --cpus=0 2>$dir/said) || return
        said 'holding all counters of breakpoint on CPU 0 (confirmed in ' && holds_are 1 &&
                run 0 as alice perfallocctl release "$hold" && holds_are 0
}

hold_says_nothing_but_the_number_with_quiet() {
        run 0 perfallocctl -q hold --pmu=breakpoint && grep -qxE '[1-9][0-9]*' $dir/said &&
                [[ $(wc -l <$dir/said) -eq 1 ]] && run 0 perfallocctl release "$(cat $dir/said)"
}

hold_as_json() {
        run 0 perfallocctl -q hold --json --pmu=breakpoint --counters=2 --lifetime=1h &&
                json "j['holds'][0]['counters'] == 2 and j['holds'][0]['expires'] > j['holds'][0]['asked']" &&
                run 0 perfallocctl release "$(python3 -c "import json; print(json.load(open('$dir/said'))['holds'][0]['hold'])")"
}

hold_ends_after_its_lifetime() {
        run 0 perfallocctl hold --pmu=breakpoint --lifetime=50ms && wait_until holds_are 0
}

# Who, what command, why, since when, until when; on a terminal in place.
waiting_is_told() {
        local hold waiting

        hold=$(as alice perfallocctl -q hold --pmu=breakpoint --exclusive --reason='why not') || return
        start as carol perfallocctl hold --pmu=breakpoint --wait=1h
        wait_until grep -qE "waiting until .*, place 1 in the queue, behind alice, hold [0-9]*: all counters of breakpoint on CPUs .*, exclusive, granted since .*, 'why not'" $dir/said &&
                kill $pid && ended 143
        set -- $?
        start script -qec "stty cols 60; exec $perfallocctl_clock hold --pmu=breakpoint --wait=1h" /dev/null
        # again after a second, over the lines before
        wait_until said '  alice, hold ' && said 'waiting for ' && waiting=$(pgrep -P $pid) &&
                forward_until "$waiting" said $'\033[2A\033[J' && as alice perfallocctl release "$hold" && ended 0 && said 'holding all counters' || set -- 1
        perfallocctl release "$(tr -d '\r' <$dir/said | tail -n 1)"
        return "$1"
}

# In the background of a terminal it overwrites nothing that others print.
waiting_in_the_background_is_told_in_lines() {
        local hold first

        hold=$(as alice perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        as carol perfallocctl -q hold --pmu=breakpoint --wait=infinity >/dev/null 2>&1 </dev/null &
        first=$!
        wait_until holds_are 2
        start script -qec 'set -m; perfallocctl hold --pmu=breakpoint --wait=1h & wait' /dev/null
        wait_until said 'place 2 in the queue' && kill $first && wait_until said 'place 1 in the queue' &&
                as alice perfallocctl release "$hold" && ended 0 && said 'waiting until' && ! said $'\033['
        set -- $?
        perfallocctl release "$(tr -d '\r' <$dir/said | grep -xE '[0-9]+')"
        return "$1"
}

require_needs_something_to_hold() {
        run 1 perfallocctl hold --require && said 'nothing to hold' &&
                run 1 perfallocctl hold --counters=2 && said 'nothing to hold; --pmu holds' &&
                run 1 perfallocctl hold --exclusive && said 'nothing to hold; --pmu holds' && holds_are 0 && run 0 perfallocctl hold && said 'nothing to hold' &&
                run 0 perfallocctl release "$(tail -n 1 $dir/said)"
}

busy_is_4_and_leaves_nothing() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        run 4 as alice perfallocctl hold --pmu=breakpoint && run 4 as alice perfallocctl hold --pmu=breakpoint --wait=20ms &&
                holds_are 1
        set -- $?
        perfallocctl release "$hold"
        return "$1"
}

interrupted_hold_leaves_nothing() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        start as alice perfallocctl hold --pmu=breakpoint --wait=infinity
        wait_until holds_are 2 && kill $pid && ended 143 && holds_are 1
        set -- $?
        perfallocctl release "$hold"
        return "$1"
}

# The service hangs, and is killed and started anew while it is asked to release the hold.
interrupted_hold_is_released_after_a_restart() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        start as alice perfallocctl hold --pmu=breakpoint --wait=infinity
        wait_until holds_are 2 && service-signal STOP && calls_watch && kill $pid && wait_until called Release &&
                service-kill --again && ended 143 && holds_are 1
        set -- $?
        calls_ignore
        perfallocctl release "$hold" $((hold + 1)) 2>/dev/null
        [[ $1 -eq 0 ]] && holds_are 0
}

# A second signal ends the waiting: the hold that may be left is named.
hold_that_may_be_left_is_named() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        start as alice perfallocctl -q hold --pmu=breakpoint --wait=infinity
        wait_until holds_are 2 && service-signal STOP && calls_watch && kill $pid && wait_until called Release &&
                kill -0 $pid && kill -INT $pid && ended 143 &&
                said "hold $((hold + 1)) could not be released" && said "perfallocctl release $((hold + 1))"
        set -- $?
        service-signal CONT
        calls_ignore
        perfallocctl release "$hold" $((hold + 1))
        [[ $1 -eq 0 ]] && wait_until holds_are 0
}

# The service has not answered yet, and makes nothing afterwards.
unanswered_hold_leaves_nothing() {
        service-signal STOP
        calls_watch
        start as alice perfallocctl hold --pmu=breakpoint
        wait_until called HoldUnattended && kill $pid && wait_until called GetManagedObjects
        set -- $?
        service-signal CONT
        calls_ignore
        [[ $1 -eq 0 ]] && ended 143 && holds_are 0
}

hold_waits_through_restarts() {
        local hold waiting='' status=0

        hold=$(perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        start as alice perfallocctl -q hold --pmu=breakpoint --wait=infinity
        wait_until holds_are 2 && service-restart && service-kill --again && holds_are 2 &&
                perfallocctl release "$hold" && ended 0 && waiting=$(<$dir/said) &&
                property "hold/$waiting" Hold State | grep -q granted || status=1
        [[ ! $waiting ]] || perfallocctl release "$waiting"
        return $status
}

hold_that_nobody_hears_of_is_not_there() {
        run 1 sh -c 'exec perfallocctl -q hold --pmu=breakpoint >/dev/full' && holds_are 0
}

denied_is_3() {
        local hold

        run 3 as bob perfallocctl hold --pmu=breakpoint && said org.perfalloc1.hold-unattended || return
        hold=$(as alice perfallocctl -q hold --pmu=breakpoint) || return
        run 3 as bob perfallocctl release "$hold" && holds_are 1 && run 0 as alice perfallocctl release "$hold"
}

unknown_is_5() {
        run 5 perfallocctl release 999999 && said 999999 && run 5 perfallocctl encode nosuch && said nosuch &&
                run 5 perfallocctl open -p 999999999 cpu-clock:u
}

# Neither the bus nor a file becomes a standard stream.
closed_streams_stay_closed() {
        run 1 sh -c 'exec perfallocctl holds >&-' && said 'standard output: Bad file descriptor' &&
                run 1 sh -c 'exec perfallocctl -q hold --pmu=breakpoint >&-' && holds_are 0 &&
                run 0 sh -c "exec perfallocctl open -o $dir/readings page-faults -- true <&- >&- 2>&-" &&
                grep -q page-faults $dir/readings && rm $dir/readings
}

paths_are_as_good_as_numbers() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint) && run 0 perfallocctl release "/org/perfalloc1/hold/$hold" &&
                run 2 perfallocctl release /org/perfalloc1/counter/1 && run 2 perfallocctl release 0 &&
                run 2 perfallocctl release 1x && run 2 perfallocctl release ''
}

one_of_several_may_fail() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint) &&
                run 5 perfallocctl release 999998 "$hold" 999999 && said 999998 && said 999999 && holds_are 0
}

# ---- lists ----

lists_are_json() {
        local verb

        for verb in holds monitors pmus users counters samplers 'events page-faults' 'encode page-faults' probe; do
                # shellcheck disable=SC2086
                run 0 perfallocctl --json $verb && cp $dir/said "$dir/list $verb" || return
        done
        python3 -c '
import json, sys
for name in sys.argv[1:]:
    assert len(json.load(open(name))) == 1, name' $dir/list\ *
}

headings_can_be_left_out() {
        run 0 perfallocctl pmus && said NAME && run 0 perfallocctl pmus --no-legend && ! said NAME && said breakpoint
}

probe_measures() {
        run 0 perfallocctl probe --json breakpoint && json "all(p['free'] == p['counters'] > 0 for p in j['probe'])" &&
                run 1 perfallocctl probe software && run 5 perfallocctl probe nosuch
}

users_are_named() {
        # a monitor of the service's own is not one
        python3 - $dir/ready <<'END' &
import ctypes, os, platform, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
number = {'x86_64': 298, 'aarch64': 241}[platform.machine()]
attr = struct.pack('IIQQQQQIIQQ', 1, 72, 0, 0, 0, 0, 0, 0, 0, 0, 0)
if libc.syscall(number, attr, 0, -1, -1, 0) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
open(sys.argv[1], 'w').close()
signal.pause()
END
        pid=$!
        wait_until test -e $dir/ready && run 0 perfallocctl users --json &&
                json "[(u['user'], u['descriptors']) for u in j['users'] if u['pid'] == $pid] == [(0, 1)]"
        set -- $?
        kill $pid
        wait $pid 2>/dev/null
        return "$1"
}

encode_says_what_the_kernel_gets() {
        run 0 perfallocctl encode --json mem:0x1000/8:w &&
                json "(j['codes'][0]['type'], j['codes'][0]['config1'], j['codes'][0]['config2']) == (5, 4096, 8)"
}

# ---- processes ----

processes_are_attached_and_detached() {
        local counter target

        python3 -c 'while True: pass' &
        target=$!
        start perfallocctl open --detached task-clock:u page-faults:u
        counter=$(counter) && perfallocctl attach "$counter" $((counter - 1)) $target && perfallocctl start "$counter" &&
                perfallocctl counters --json | grep -q "\[$target\]" &&
                wait_until sh -c "perfallocctl read $counter --json | grep -q '\"quality\": \"exact\"'" &&
                perfallocctl detach "$counter" $target && perfallocctl stop "$counter" &&
                ! perfallocctl read "$counter" | grep -q ' 0us' &&
                perfallocctl reset "$counter" && perfallocctl read "$counter" | grep -q ' 0us'
        set -- $?
        run 2 perfallocctl attach "$counter" x && run 5 perfallocctl attach "$counter" 4194304 || set -- 1
        kill $target $pid
        wait $target $pid 2>/dev/null
        return "$1"
}

# bob has count-own and nothing else: the processes are proven.
users_count_their_own_processes() {
        local counter mine hers

        as bob sleep infinity &
        mine=$!
        as alice sleep infinity &
        hers=$!
        start as bob perfallocctl open --detached task-clock:u
        counter=$(counter) && run 0 as bob perfallocctl attach "$counter" $mine &&
                run 3 as bob perfallocctl attach "$counter" $hers && said count-other &&
                run 0 as bob perfallocctl watch -p $mine -i 10ms -n 1 task-clock:u &&
                run 3 as bob perfallocctl watch -p $hers -i 10ms -n 1 task-clock:u && said count-other
        set -- $?
        kill $pid $mine $hers
        wait $pid $mine $hers 2>/dev/null
        return "$1"
}

# ---- watch ----

watch_prints_lines() {
        run 0 perfallocctl watch --all-cpus task-clock page-faults -i 20ms -n 3 && [[ $(wc -l <$dir/said) -eq 7 ]] &&
                head -n 1 $dir/said | grep -q '^TIME ' && [[ $(grep -c ' page-faults ' $dir/said) -eq 3 ]]
}

output_that_cannot_be_written_is_an_error() {
        run 1 sh -c 'exec perfallocctl watch -a task-clock -i 20ms >/dev/full' && said 'standard output: No space left on device' &&
                run 1 sh -c 'exec perfallocctl status --watch >/dev/full' && said 'standard output: No space left on device' &&
                run 0 bash -c 'set -o pipefail; perfallocctl watch -a task-clock -i 20ms | head -n 1' &&
                run 0 bash -c 'set -o pipefail; perfallocctl status --watch -i 20ms | head -n 1' && ! said 'standard output'
}

watch_prints_objects() {
        run 0 perfallocctl watch --json --all-cpus task-clock -i 20ms -n 2 && [[ $(wc -l <$dir/said) -eq 2 ]] &&
                tail -n 1 $dir/said >$dir/last && cp $dir/last $dir/said && json "j['readings'][0]['rate'] > 0"
}

watch_draws_bars() {
        on_terminal 'perfallocctl watch --all-cpus task-clock -i 20ms -n 2' && said /s && said $'\033[2A'
}

watch_draws_a_picture() {
        run 0 perfallocctl watch --all-cpus task-clock page-faults -i 5ms -n 20 --plot=$dir/plot.svg &&
                python3 - $dir/plot.svg <<'END' && run 1 perfallocctl watch -a task-clock -n 1 --plot=/no/such/directory/x
import sys, xml.etree.ElementTree
tree = xml.etree.ElementTree.parse(sys.argv[1])
lines = [e for e in tree.iter() if e.get('class') == 'line']
assert len(lines) == 2 and all(e.get('d').count('L') >= 15 for e in lines), [e.get('d') for e in lines]
END
}

watch_ends_when_told() {
        local counter

        counter=$(perfallocctl open --persistent --all-cpus task-clock) || return
        start perfallocctl watch "$counter" -i 10ms
        wait_until grep -q exact $dir/said && perfallocctl samplers --no-legend | grep -q "10ms .* $counter " &&
                kill -INT $pid && ended 0
        set -- $?
        perfallocctl close "$counter"
        return "$1"
}

more_lines_than() {
        [[ $(wc -l <$dir/said) -gt $1 ]]
}

watch_goes_on_through_restarts() {
        local counter how

        counter=$(perfallocctl open --persistent --all-cpus task-clock) || return
        start perfallocctl watch --json "$counter" -i 10ms
        wait_until more_lines_than 2
        for how in '' --again --again; do
                if [[ $how ]]; then service-kill $how; else service-restart; fi
                wait_until more_lines_than $(($(wc -l <$dir/said) + 3))
        done
        kill -INT $pid && ended 0 && python3 - $dir/said <<'END'
import json, sys
before = None
for line in open(sys.argv[1]):
    j = json.loads(line)
    if before and j['tick'] != before + 1 + j['missed']:
        sys.exit('after tick %d came %s' % (before, line))
    before = j['tick']
END
        set -- $?
        perfallocctl close "$counter"
        return "$1"
}

# ---- metrics ----

# What a scraper demands: families together, their type first, every line a sample; of OpenMetrics an end.
metrics_are() {
        local counter format=$1

        counter=$(perfallocctl open --persistent --all-cpus --name='a "b\c' task-clock) || return
        run 0 perfallocctl metrics "${@:2}" && python3 - $dir/said "$counter" "$format" <<'END'
import re, sys

text, counter, openmetrics = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3] == 'openmetrics'
lines = text.split('\n')
assert lines.pop() == '', 'no end'
assert not openmetrics or lines.pop() == '# EOF', 'no end'
seen, family, kind = set(), None, None
value = None
for line in lines:
    if line.startswith(('# TYPE ', '# HELP ')):
        _, what, name, rest = line.split(' ', 3)
        if what == 'TYPE':
            kind = rest
        if name != family:
            assert name not in seen, f'{name} twice'
            seen.add(name)
            family = name
    else:
        label = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
        m = re.fullmatch(r'([a-z_]+)(?:\{(%s(?:,%s)*)\})? ([0-9.]+)' % (label, label), line)
        assert m, line
        suffix = {'counter': '_total', 'info': '_info'}.get(kind, '')
        assert m[1] == (family + suffix if openmetrics else family), line
        assert kind != 'counter' or m[1].endswith('_total'), line
        if m[1] == 'perfalloc_events_counted_total' and f'counter="{counter}"' in m[2]:
            value = float(m[3])
            assert r'name="a \"b\\c"' in m[2], line
assert value, 'the counter is not there'
END
        set -- $?
        perfallocctl close "$counter"
        return "$1"
}

# What a label keeps for good in a collector is bounded: with a tag for each job there would be no end of it.
tags_are_labels() {
        local i jobs

        perfallocctl -q hold --pmu=breakpoint --tag='a "b\c' >/dev/null || return
        for i in {1..64}; do
                perfallocctl -q hold --pmu=software --tag="job-$i" || break
        done >$dir/jobs
        mapfile -t jobs <$dir/jobs
        run 0 perfallocctl metrics && grep -q '^perfalloc_holds{.*,tag="a \\"b\\\\c"} 1$' $dir/said && said 'tag="job-63"' &&
                [[ $(grep -c '^perfalloc_holds{.*tag="job-[0-9]*"}' $dir/said) -eq 63 ]] &&
                [[ $(grep -c '^perfalloc_holds{.*tag="\.\.\."}' $dir/said) -eq 1 ]]
        set -- $?
        perfallocctl -q release --tag='a "b\c'
        perfallocctl -q release "${jobs[@]}"
        holds_are 0 && return "$1"
}

# A tag is public, what somebody counts is not.
others_metrics_are_redacted() {
        local counter hold

        counter=$(as alice perfallocctl open --persistent --pid=$$ --name=secret task-clock:u) ||
                counter=$(perfallocctl open --persistent --all-cpus --name=secret task-clock) || return
        hold=$(perfallocctl -q hold --pmu=breakpoint --tag=job-7)
        run 0 as bob perfallocctl metrics && said 'tag="job-7"' && said "perfalloc_counters{counter=\"$counter\",event=\"\"" &&
                ! said secret && ! said task-clock
        set -- $?
        perfallocctl -q release "$hold"
        perfallocctl close "$counter"
        return "$1"
}

# ---- units ----

# Another directory of events for msr, whose event has a scale and a unit, in this rig's mount namespace.
unit_is_there() {
        local events=/sys/bus/event_source/devices/msr/events

        [[ -d $events ]] && mount -t tmpfs none $events && echo event=0x00 >$events/tsc &&
                echo 0.5 >$events/tsc.scale && echo Joules >$events/tsc.unit
}

units_are_shown() {
        local counter

        counter=$(perfallocctl open --persistent --cpus=0 msr/tsc/) || return
        service-restart
        run 0 perfallocctl counters --json && json "j['counters'][0]['scale'] == 0.5 and j['counters'][0]['unit'] == 'Joules'" &&
                run 0 perfallocctl read --json "$counter" &&
                json "j['readings'][0]['amount'] == j['readings'][0]['estimate'] / 2 and j['readings'][0]['unit'] == 'Joules'" &&
                run 0 perfallocctl read "$counter" && said AMOUNT && said Joules &&
                run 0 perfallocctl metrics && grep -q '^perfalloc_events_amount{.*unit="Joules"} [0-9.e+]*$' $dir/said &&
                run 0 perfallocctl watch --json "$counter" -i 20ms -n 1 &&
                json "j['readings'][0]['unit'] == 'Joules' and j['readings'][0]['scale'] == 0.5" &&
                run 0 perfallocctl watch "$counter" -i 20ms -n 1 && said ' Joules ' &&
                on_terminal "perfallocctl watch $counter -i 20ms -n 1" && said 'Joules/s'
        set -- $?
        perfallocctl close "$counter"
        return "$1"
}

no_unit_no_column() {
        local counter

        counter=$(perfallocctl open --persistent --all-cpus task-clock) || return
        run 0 perfallocctl read "$counter" && ! said AMOUNT && ! said UNIT
        set -- $?
        perfallocctl close "$counter"
        return "$1"
}

# ---- locales ----

# A locale with a decimal comma, made here: none may be installed.
comma_locale() {
        printf '%s\n' LC_NUMERIC 'decimal_point "<U002C>"' 'thousands_sep "<U002E>"' 'grouping 3;3' 'END LC_NUMERIC' >$dir/comma
        localedef --quiet --force --no-archive --inputfile=$dir/comma $dir/comma_XX
        { export LOCPATH=$dir LC_NUMERIC=comma_XX; } 2>/dev/null # bash itself does not find it
        [[ $(env printf %.1f 1,5) == 1,5 ]]
}

metrics_on_a_terminal() {
        local counter

        counter=$(perfallocctl open --persistent --all-cpus task-clock) || return
        on_terminal 'perfallocctl metrics'
        perfallocctl close "$counter"
        grep '_seconds_total{' $dir/said
}

machines_read_no_decimal_comma() (
        comma_locale && watch_prints_objects && watch_prints_lines && ! grep -q , $dir/said && metrics_are openmetrics --format=openmetrics &&
                metrics_on_a_terminal | grep -q '} [0-9]*\.[0-9]' &&
                on_terminal 'perfallocctl watch --all-cpus task-clock -i 20ms -n 2' && grep -q 'after 0,' $dir/said
)

# ---- places ----

other_host_is_asked() {
        local hold

        ssh_bridge
        hold=$(PATH=$dir/bin:$PATH perfallocctl -q -H there hold --pmu=breakpoint) && holds_are 1 &&
                run 0 env PATH=$dir/bin:$PATH perfallocctl -H there holds && said breakpoint &&
                run 0 env PATH=$dir/bin:$PATH perfallocctl -H there release "$hold" && holds_are 0
}

# there STATUS WORD...: asked of another host.
there() {
        run "$1" env PATH=$dir/bin:$PATH perfallocctl -H there "${@:2}"
}

other_host_knows_every_verb() {
        local counter verb

        ssh_bridge
        for verb in status holds monitors pmus 'probe breakpoint' users 'events page-faults' 'encode page-faults' counters \
                samplers metrics; do
                # shellcheck disable=SC2086
                there 0 $verb || return
        done
        there 0 open --persistent --all-cpus task-clock && counter=$(tail -n 1 $dir/said) || return
        there 0 read "$counter" && there 0 stop "$counter" && there 0 start "$counter" && there 0 reset "$counter" &&
                there 0 adopt "$counter" && there 5 close "$counter" && there 0 hold --pmu=breakpoint --tag=job-7 &&
                there 0 extend --tag=job-7 && there 0 release --tag=job-7 && holds_are 0
}

# refused_at_once WORD...: there is no such host, and it is never contacted.
refused_at_once() {
        run 2 env PATH=/nonexistent "$(command -v perfallocctl)" -H there "$@"
}

what_needs_a_descriptor_says_so_at_once() {
        refused_at_once watch 1 && said descriptor && refused_at_once run ls && said 'this host' &&
                refused_at_once open cycles -- ls && refused_at_once open cycles --cgroup=x && said descriptor &&
                refused_at_once hold --cgroup=x && said descriptor && refused_at_once hold --pidfd=1 && said descriptor &&
                refused_at_once log && said journal
}

lost_host_is_named() {
        run 1 env PATH=/nonexistent "$(command -v perfallocctl)" -H there status && said 'bus of there'
}

local_container_is_asked() {
        run 0 perfallocctl -M .host pmus && said breakpoint
}

# ---- how it looks ----

escapes() {
        grep -q $'\033\\[[0-9;]*m' $dir/said
}

colors_are_for_terminals() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint) || return
        on_terminal 'TERM=xterm perfallocctl --no-pager holds' && said granted && escapes &&
                on_terminal 'TERM=xterm NO_COLOR=1 perfallocctl --no-pager holds' && said granted && ! escapes &&
                on_terminal 'TERM=dumb perfallocctl --no-pager holds' && said granted && ! escapes &&
                run 0 env TERM=xterm perfallocctl holds && said granted && ! escapes
        set -- $?
        perfallocctl release "$hold"
        return "$1"
}

pager_is_for_terminals() {
        on_terminal "PAGER='sed s/^/paged:/' perfallocctl pmus" && said 'paged:breakpoint' &&
                on_terminal "PAGER='sed s/^/paged:/' perfallocctl --no-pager pmus" && ! said paged &&
                run 0 env PAGER='sed s/^/paged:/' perfallocctl pmus && ! said paged
}

help_is_a_verb() {
        run 0 perfallocctl help && said 'Options for hold' && fits 80 && perfallocctl --help | diff - $dir/said &&
                run 0 perfallocctl -V && said perfallocctl && run 0 perfalloc -V && run 0 perfallocctl list 'page-fault*' &&
                said page-faults
}

a_verb_has_its_own_help() {
        run 0 perfallocctl watch --help && said 'Usage: perfallocctl [OPTION]... watch COUNTER' && said '--plot=FILE' &&
                said '--pid=PID' && ! said '--exclusive' && fits 80 &&
                perfallocctl help watch | diff - $dir/said && run 2 perfallocctl help nonesuch && said "'nonesuch'"
}

# What does not exist is said alike, and is status 5.
missing_objects_are_named_alike() {
        run 5 perfallocctl release 999999 && said 'there is no hold 999999' &&
                run 5 perfallocctl read 999999 && said 'there is no counter 999999' &&
                run 5 perfallocctl close 999999 && said 'there is no counter 999999' &&
                run 5 perfallocctl attach 999999 1 && said 'there is no counter 999999' &&
                run 5 perfallocctl probe nosuch && said 'there is no PMU nosuch' &&
                run 5 perfallocctl open -p 4194304 page-faults && said 'there is no process 4194304'
}

threads_are_no_processes() {
        local process thread

        python3 -c 'import threading; threading.Thread(target=threading.Event().wait).start()' &
        process=$!
        wait_until sh -c "ls /proc/$process/task | grep -vx $process"
        thread=$(find "/proc/$process/task" -mindepth 1 -maxdepth 1 ! -name "$process" -printf '%f\n')
        run 5 perfallocctl open -p "$thread" page-faults && said "$thread is a thread of process $process" &&
                run 5 perfallocctl hold --pmu=breakpoint --pidfd="$thread" && said "$thread is a thread of process $process"
        set -- $?
        kill $process
        wait $process 2>/dev/null
        return "$1"
}

errors_speak_of_options() {
        run 2 perfallocctl hold --pmu=nosuch && said "--pmu: this machine has no PMU 'nosuch'" && ! said pmus &&
                run 2 perfallocctl open -a --role=mon page-faults && said "--role: invalid value 'mon'" &&
                run 4 perfallocctl hold --pmu=msr && said --best-effort && ! said best_effort && ! said 'pid ' &&
                run 2 perfallocctl hold --wait=soon && said "--wait: invalid time 'soon' (for example 5s, 2min, infinity)" &&
                run 2 perfallocctl status extra && said "unexpected argument 'extra'" &&
                run 5 perfallocctl encode page-fautls && said 'did you mean page-faults?' &&
                run 2 perfallocctl open mem:0x1000/8:r -- true && said 'use rw'
}

command_line_is_checked() {
        run 2 perfallocctl frobnicate && said frobnicate && run 2 perfallocctl status more && said more &&
                run 2 perfallocctl release && run 2 perfallocctl --frobnicate && said --frobnicate &&
                run 2 perfallocctl status --lifetime=5 && said '--lifetime cannot be used with status' &&
                run 2 perfallocctl hold --lifetime=soon && said soon && run 2 perfallocctl hold --reason=$'\xff'
}

refused_value_is_named() {
        run 2 perfallocctl hold --cpus=99999 --pmu=breakpoint && said 99999 &&
                run 2 perfallocctl hold --pmu=nosuch && said nosuch && holds_are 0
}

# What bash would offer after these words; the last one is being typed.
offered() {
        # shellcheck disable=SC1091
        (
                . "$PERFALLOC_SOURCE/data/completions/bash/perfallocctl"
                COMP_WORDS=(perfallocctl "$@")
                COMP_CWORD=$#
                _perfallocctl
                printf '%s\n' "${COMPREPLY[@]}"
        ) 2>/dev/null
}

verbs_are_completed() {
        local verb

        perfallocctl --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | sort >$dir/verbs
        [[ -s $dir/verbs ]] && offered '' | sort | diff $dir/verbs - || return
        # zsh's are the same
        while read -r verb; do
                grep -qE "^ +'?$verb:" "$PERFALLOC_SOURCE/data/completions/zsh/_perfallocctl" || {
                        echo "zsh: $verb"
                        return 1
                }
        done <$dir/verbs
}

options_are_completed() {
        local option

        perfallocctl --help | grep -oE '^ .{6}--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort >$dir/options
        for option in $(cat $dir/options); do
                grep -q -- "$option" "$PERFALLOC_SOURCE/data/completions/bash/perfallocctl" &&
                        grep -q -- "$option" "$PERFALLOC_SOURCE/data/completions/zsh/_perfallocctl" || {
                        echo "$option"
                        return 1
                }
        done
        offered hold --li | grep -qx -- --lifetime= && ! offered status --li | grep -q lifetime
}

numbers_are_completed() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint) && offered release '' | grep -qx "$hold"
        set -- $?
        perfallocctl release "$hold"
        return "$1"
}

no_service() {
        service-stop
        service-mask
        run 1 perfallocctl && said 'systemctl status perfallocd'
}

no_bus() {
        run 1 env DBUS_SYSTEM_BUS_ADDRESS=unix:path=/no/such/socket perfallocctl && said 'system bus'
}

without_core_pmu
check 'without a verb it says that the counters are free' status_is_the_default
check 'status says who holds them, why, who waits and behind whom' status_says_who_holds_and_who_waits
check 'status and monitors say who has yielded' status_says_who_has_yielded
check 'a registered monitor has its name for its owner' registered_monitors_are_named
check 'status fits the screen, and the reason stays' status_fits_the_screen
check 'an idle machine at 80 columns' status_at_80_columns
check 'status prints any name of a command' status_prints_any_command
check 'status --watch prints it again when it changes' status_is_watched
check 'ended holds are listed with --all, without an expiry' ended_holds_are_listed_on_request
check 'what is waited for is told: who, why, since when, until when' waiting_is_told
check 'in the background of a terminal that is told in lines' waiting_in_the_background_is_told_in_lines
check 'with --require, --counters or --exclusive there has to be something to hold' require_needs_something_to_hold
check 'hold prints a number, and holds until release' hold_stays_until_released
check 'hold -q prints nothing but the number' hold_says_nothing_but_the_number_with_quiet
check 'hold --json prints the hold' hold_as_json
check 'a hold ends after its lifetime' hold_ends_after_its_lifetime
check 'counters that are taken are status 4, and no hold is left' busy_is_4_and_leaves_nothing
check 'a signal while hold waits leaves no hold' interrupted_hold_leaves_nothing
check 'so does one while the service hangs, and is started anew' interrupted_hold_is_released_after_a_restart
check 'a hold that may be left is named' hold_that_may_be_left_is_named
check 'a signal before the answer leaves no hold' unanswered_hold_leaves_nothing
check 'hold waits on while the service is started anew' hold_waits_through_restarts
check 'a hold whose number cannot be printed is given back' hold_that_nobody_hears_of_is_not_there
check 'what is not permitted is status 3' denied_is_3
check 'what is not there is status 5' unknown_is_5
check 'standard streams that are closed stay so' closed_streams_stay_closed
check 'objects are named by number or path, and by nothing else' paths_are_as_good_as_numbers
check 'one of several may fail' one_of_several_may_fail
check 'every list is JSON with --json' lists_are_json
check 'headings are left out with --no-legend' headings_can_be_left_out
check 'probe measures what can be measured' probe_measures
check 'users names whoever has perf events' users_are_named
check 'encode says what the kernel gets' encode_says_what_the_kernel_gets
check 'processes are attached and detached' processes_are_attached_and_detached
check 'users count their own processes, and not those of others' users_count_their_own_processes
check 'watch prints lines into a pipe' watch_prints_lines
check 'watch and status --watch say that their output cannot be written' output_that_cannot_be_written_is_an_error
check 'watch --json prints an object a line' watch_prints_objects
check 'watch draws on a terminal' watch_draws_bars
check 'watch --plot draws what was shown' watch_draws_a_picture
check 'watch ends when it is told to, and is among the samplers' watch_ends_when_told
check 'watch goes on when the service is started anew, and tells what it has missed' watch_goes_on_through_restarts
check 'metrics are Prometheus text' metrics_are prometheus
check 'metrics are OpenMetrics on request' metrics_are openmetrics --format=openmetrics
check 'tags are labels of metrics, escaped, and 64 at most' tags_are_labels
check 'metrics of others tell their tags, and not what they count' others_metrics_are_redacted
check 'metrics know no other format' run 2 perfallocctl metrics --format=json
check 'a counter without a unit has no column for one' no_unit_no_column
promise='the unit and the scale of an event are in tables, JSON, metrics and rates, also after a restart'
if unit_is_there; then
        check "$promise" units_are_shown
        umount /sys/bus/event_source/devices/msr/events
else
        skip "$promise" 'this machine has no PMU msr'
fi
check 'what machines read is the same under a locale with a decimal comma' machines_read_no_decimal_comma
check '-H asks another host' other_host_is_asked
check '-H is for every verb that needs no descriptor' other_host_knows_every_verb
check '-H is refused at once where a descriptor is needed' what_needs_a_descriptor_says_so_at_once
check 'a host that cannot be reached is named' lost_host_is_named
check '-M asks a local container' local_container_is_asked
check 'colours are for terminals, and not with NO_COLOR' colors_are_for_terminals
check 'a pager is for terminals, and not with --no-pager' pager_is_for_terminals
check 'help is a verb, and fits' help_is_a_verb
check 'a verb has its own help' a_verb_has_its_own_help
check 'what does not exist is named alike' missing_objects_are_named_alike
check 'a thread is no process, and that is said' threads_are_no_processes
check 'errors speak of options' errors_speak_of_options
check 'a wrong command line is status 2 and named' command_line_is_checked
check 'a refused value is named' refused_value_is_named
check 'bash and zsh complete every verb' verbs_are_completed
check 'bash and zsh complete every option, where it goes' options_are_completed
check 'bash completes numbers of holds' numbers_are_completed
check 'without the bus it says so' no_bus
check 'without the service it says where to look' no_service
tap_end
