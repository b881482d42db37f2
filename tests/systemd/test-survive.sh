#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What outlasts the service, under the systemd that keeps it. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

dir=/run/survive
mkdir -p $dir
cd $dir || exit

show() {
        systemctl show -P "$1" perfallocd.service
}

property() {
        local value

        value=$(busctl get-property org.perfalloc1 "/org/perfalloc1/$1" "org.perfalloc1.$2" "$3") || return
        value=${value#* }
        value=${value#\"}
        echo "${value%\"}"
}

is() {
        [[ $(property "$1" "$2" "$3") == "$4" ]]
}

value() {
        local answer

        answer=$(busctl call org.perfalloc1 "/org/perfalloc1/counter/$1" org.perfalloc1.Counter Read) || return
        read -r _ answer _ <<<"$answer"
        echo "$answer"
}

# Writes to a variable all the time, and says where that is.
writer() {
        python3 -u -c '
import ctypes, time
variable = ctypes.c_uint64()
print(hex(ctypes.addressof(variable)))
while True:
    variable.value += 1
    time.sleep(0.001)'
}

said() {
        [[ -s $1 ]] && grep -q -- "$2" "$1"
}

# holder NAME COMMAND...: in the background; what it says is in the file NAME, its pid in NAME.pid.
holder() {
        local name=$1
        shift

        "$@" >"$name" 2>&1 </dev/null &
        echo $! >"$name.pid"
}

# The newest hold that is in this state.
newest() {
        busctl tree --list org.perfalloc1 | sed -n 's|^/org/perfalloc1/hold/||p' | sort -n | while read -r n; do
                ! is "hold/$n" Hold State "$1" 2>/dev/null || echo "$n"
        done | tail -n 1
}

newest_is_new() {
        local n

        n=$(newest "$1") && [[ $n && $n != "${2:-}" ]]
}

# Whether breakpoints count (tests/hits.h); asked for while they are free.
hits=
! "$PERFALLOC_BUILD/tests/systemd/hits" || hits=yes

# counts_more MONITOR VALUE
counts_more() {
        [[ $(value "$1") -gt $2 || ! $hits ]]
}

everything_is_there() {
        local address

        writer >address 2>&1 </dev/null &
        wait_until test -s address && address=$(<address) || return
        monitor=$(perfallocctl -q open --persistent --all-cpus --role=monitor "mem:$address/8:w")
        counter=$(perfallocctl -q open --persistent --all-cpus cpu-clock)
        [[ $monitor && $counter ]] || return
        holder watch perfallocctl watch --json --interval=20ms "$counter"
        holder yielder "$PERFALLOC_BUILD/tests/systemd/yielder"
        wait_until said yielder registered || return
        program=$(sed -n 's|^registered .*/||p' yielder)
        wait_until counts_more "$monitor" 0 || return

        holder lease as alice perfalloc --pmu=breakpoint sleep infinity
        wait_until said lease holding || return
        leased=$(newest granted)
        unattended=$(perfallocctl -q hold --pmu=breakpoint --reason='by night') || return
        holder first as carol perfalloc --exclusive --wait=infinity --pmu=breakpoint sleep infinity
        wait_until newest_is_new queued || return
        first=$(newest queued)
        holder second as alice perfalloc --wait=infinity --pmu=breakpoint sleep infinity
        wait_until newest_is_new queued "$first" || return
        second=$(newest queued)
        declare -p monitor counter program leased unattended first second | tee names
        is "counter/$monitor" Counter State yielded && is "monitor/$program" Monitor State yielded
}

# What may not change: of the holds that are granted everything.
picture() {
        local n

        for n in "$leased" "$unattended"; do
                busctl call org.perfalloc1 "/org/perfalloc1/hold/$n" org.freedesktop.DBus.Properties GetAll s \
                        org.perfalloc1.Hold
        done
        for n in "$first" "$second"; do
                property "hold/$n" Hold State
                property "hold/$n" Hold QueuePosition
                property "hold/$n" Hold Uid
                property "hold/$n" Hold Pid
                property "hold/$n" Hold RequestTimestamp
        done
        property "counter/$monitor" Counter State
        property "counter/$monitor" Counter Uid
        property "counter/$monitor" Counter Id
        property "counter/$counter" Counter State
        property "counter/$counter" Counter Id
        property "monitor/$program" Monitor State
        grep -c yield yielder
}

# Clients that call meanwhile are told by the bus that the service cannot be started.
start_fails() {
        local n drop_in=/run/systemd/system/perfallocd.service.d

        mkdir -p $drop_in && touch fails || return
        printf '[Service]\nExecStartPre=+/usr/bin/test ! -e %s/fails\n' $dir >$drop_in/fails.conf
        systemctl daemon-reload
        n=$(show NRestarts)
        systemctl kill --kill-whom=main -s KILL perfallocd.service
        wait_until eval "[[ \$(show NRestarts) -ge $((n + 3)) ]]"
        n=$?
        rm -r fails $drop_in && systemctl daemon-reload
        return $n
}

disturb() {
        case $1 in
        failing-start) start_fails || return ;;
        restart) systemctl restart perfallocd.service ;;
        opener | reader) kill -KILL "$(pgrep -P "$2" "perfalloc-${1:0:5}")" ;;
        *) systemctl kill --kill-whom=main -s "$1" perfallocd.service ;;
        esac
        wait_until another_main "$2"
}

another_main() {
        local pid

        [[ $(show ActiveState) == active ]] && pid=$(show MainPID) && [[ $pid -ne 0 && $pid -ne $1 ]]
}

ticks() {
        wc -l <watch
}

survives() {
        local before stood counted lines main

        main=$(show MainPID)
        before=$(picture)
        stood=$(value "$monitor")
        counted=$(value "$counter")
        lines=$(ticks)
        disturb "$1" "$main" || return
        diff <(echo "$before") <(picture) || return
        echo "monitor $stood, then $(value "$monitor"); counter $counted, then $(value "$counter")"
        [[ $(value "$monitor") -eq $stood && $(value "$counter") -ge $counted ]] || return
        wait_until eval "[[ \$(ticks) -gt $((lines + 3)) ]]"
}

# Each line tells how many ticks there were between the one before and itself.
no_tick_is_lost() {
        python3 -c '
import json
before = None
missed = 0
for line in open("watch"):
    if not line.endswith("\n"):
        break
    j = json.loads(line)
    if before is not None and j["tick"] != before + 1 + j["missed"]:
        raise SystemExit("%d came before %s" % (before, line))
    before = j["tick"]
    missed += j["missed"]
print(before, "ticks,", missed, "missed")'
}

store_does_not_grow() {
        local before after i

        before=$(show NFileDescriptorStore)
        for i in 1 2 3 4 5; do
                disturb KILL "$(show MainPID)" || return
                value "$counter" || return
        done
        after=$(show NFileDescriptorStore)
        echo "$before, then $after"
        [[ $before -gt 0 && $after -le $((before + 2)) ]]
}

# While the service is stopped, a waiting client leaves; then the service is killed.
leaving_is_noticed() {
        local main

        main=$(show MainPID)
        kill -STOP "$main"
        kill -KILL "$(<first.pid)"
        disturb KILL "$main" && wait_until hold_is_over "$first" && wait_until is "hold/$second" Hold State granted
}

hold_is_over() {
        ! property "hold/$1" Hold State >state 2>&1 || [[ $(<state) == ended ]]
}

resumes() {
        local stood n

        stood=$(value "$monitor")
        for n in lease second; do
                kill "$(pgrep -P "$(<$n.pid)" -x sleep)" || return
        done
        perfallocctl release "$unattended" || return
        wait_until is "counter/$monitor" Counter State counting && wait_until said yielder resume &&
                wait_until counts_more "$monitor" "$stood"
}

# systemctl asks PID 1, which must have time for it.
# longest FILE: in ms, until FILE is there, and 20 times at least.
longest() {
        python3 -c '
import os, subprocess, sys, time
longest = 0
n = 0
while n < 20 or not os.path.exists(sys.argv[1]):
    begin = time.monotonic()
    subprocess.run(["systemctl", "is-active", "--quiet", "dbus.service"])
    longest = max(longest, time.monotonic() - begin)
    n += 1
print(round(longest * 1000))' "$1"
}

# many: 4,000 counters, of which each is a descriptor for each CPU.
many() {
        local i event=()

        for ((i = 0; i < 500; i++)); do
                event+=(page-faults)
        done
        for ((i = 0; i < 8; i++)); do
                perfallocctl -q open --persistent --all-cpus "${event[@]}" >/dev/null || return
        done
}

systemd_has_time() {
        local idle busy status=0

        printf '[Limits]\nCountersPerUser=10000\nDescriptorsPerUser=100000\n' >/etc/perfalloc/perfallocd.conf
        systemctl reload perfallocd.service
        idle=$(longest /)
        longest stored >busy &
        many || status=$?
        : >stored
        wait $!
        busy=$(<busy)
        echo "# systemctl took $idle ms at most, $busy ms while 4,000 counters were stored; the store has" \
                "$(show NFileDescriptorStore) descriptors" | tee latency
        [[ $status -eq 0 ]] && disturb KILL "$(show MainPID)" && [[ $(perfallocctl counters --no-legend | wc -l) -ge 4000 ]]
}

stop_and_start() {
        local hold

        holder stopped as alice perfalloc --pmu=breakpoint sleep infinity
        wait_until said stopped holding || return
        hold=$(newest granted)
        systemctl stop perfallocd.service
        systemctl start perfallocd.service
        wait_until said stopped 'no longer' && hold_is_over "$hold" && ! value "$counter"
}

check 'counters, a sampler, a registered monitor, holds and a queue' everything_is_there
# shellcheck source=/dev/null
. $dir/names
for how in restart KILL SEGV restart opener reader failing-start KILL; do
        check "nothing of that changes by $how" survives $how
done
check 'the sampler says what it has missed' no_tick_is_lost
check 'the descriptor store does not grow by it' store_does_not_grow
check 'who leaves meanwhile is noticed' leaving_is_noticed
check 'at the end of the holds monitors resume' resumes
check 'systemd has time for others while 4,000 counters are stored, and they survive' systemd_has_time
cat $dir/latency
check 'a stop ends everything' stop_and_start
tap_end
