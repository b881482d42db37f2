#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The unit, activation, polkit and the service as installed, under systemd. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

show() {
        systemctl show -P "$1" perfallocd.service
}

shows() {
        local value

        value=$(show "$1")
        echo "$1 is '$value'"
        [[ $value == "$2" ]]
}

started_by_a_user() {
        shows ActiveState inactive && as bob busctl --system get-property org.perfalloc1 /org/perfalloc1 \
                org.perfalloc1.Manager Version && shows ActiveState active
}

main_user_is() {
        local user

        user=$(stat -c %U "/proc/$(show MainPID)")
        echo "$user"
        [[ $user == "$1" ]]
}

# capabilities_within SET CAPABILITY...: of the main process.
capabilities_within() {
        local set=$1 mask rest
        shift

        mask=$(sed -n "s/^$set:\t//p" "/proc/$(show MainPID)/status")
        rest=$(capsh --decode="$mask" | sed -e 's/^[^=]*=//' | tr , '\n' | grep -vxF "$(printf '%s\n' "$@")")
        echo "$set $mask, not allowed: $rest"
        [[ -z $rest ]]
}

name_is_guarded() {
        ! as alice busctl --system call org.freedesktop.DBus /org/freedesktop/DBus \
                org.freedesktop.DBus RequestName su org.perfalloc1 4
}

restarted_after() {
        local before after

        before=$(show MainPID)
        systemctl kill --kill-whom=main -s "$1" perfallocd.service
        wait_until another_main "$before" || return
        after=$(show MainPID)
        echo "$before, then $after"
}

another_main() {
        local pid

        [[ $(show ActiveState) == active ]] && pid=$(show MainPID) && [[ $pid -ne 0 && $pid -ne $1 ]]
}

monitors_say() {
        [[ $(tail -n 1 "$monitors") == "$1 "* ]]
}

# Whether breakpoints count (tests/hits.h); asked for while they are free.
hits=
! "$PERFALLOC_BUILD/tests/systemd/hits" || hits=0

service_serves_a_user() {
        local four=$PERFALLOC_BUILD/examples/four-breakpoints

        monitors=/run/monitors
        "$PERFALLOC_BUILD/examples/watch-writes" >$monitors 2>&1 &
        watch=$!
        wait_until monitors_say counting || return
        as alice "$four"
        [[ $? -eq 3 ]] || return
        as alice perfalloc --pmu=breakpoint "$four"
        [[ $? -eq ${hits:-5} ]] || return # 5: nothing was counted
        wait_until monitors_say counting || return
        kill $watch
        wait $watch 2>/dev/null
        return 0
}

metrics_are_written() {
        local directory=/var/lib/prometheus/node-exporter

        mkdir -p $directory && systemctl start perfalloc-metrics.service &&
                grep -q '^perfalloc_starts_total [1-9]' $directory/perfalloc.prom && [[ ! -e $directory/perfalloc.prom.new ]]
}

is_gone() {
        shows ActiveState inactive && shows Result success
}

check 'systemd has nothing to say against the unit' \
        systemd-analyze verify /lib/systemd/system/perfallocd.service
check "an ordinary user's call starts the service" started_by_a_user
check 'it runs as its own user' main_user_is perfalloc
check 'its bounding set is what the manual says' capabilities_within CapBnd \
        cap_perfmon cap_sys_ptrace cap_dac_read_search cap_sys_admin
check 'the process on the bus has no capability' capabilities_within CapPrm none
check 'its tasks are limited' shows TasksMax 1024
check 'systemd calls its exposure OK' systemd-analyze security --threshold=20 perfallocd.service
check 'nobody else can take its name' name_is_guarded
check 'somebody at the machine may hold counters' session bob perfalloc --pmu=breakpoint true
check_not 'somebody elsewhere may not' as bob perfalloc --pmu=breakpoint true
check 'a member of perfalloc-users may, from anywhere' as carol perfalloc --pmu=breakpoint true
check 'breakpoints are taken from monitors for an ordinary program, and given back' service_serves_a_user
check 'its metrics are written for node_exporter' metrics_are_written
check 'it is started again after SIGKILL' restarted_after KILL
check 'it is started again after SIGSEGV' restarted_after SEGV
check 'it stops well' sh -c 'systemctl stop perfallocd.service'
check 'and is gone then, not failed' is_gone
tap_end
