#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the service needs of others goes away under it: the bus, room on the disk. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

show() {
        systemctl show -P "$1" perfallocd.service
}

# Something that counts all the time, which a service that starts anew has to take up again.
configured() {
        mkdir -p /etc/perfalloc/monitors.d
        printf '[Monitor]\nEvents=cpu-clock\n' >/etc/perfalloc/monitors.d/clock.conf
        systemctl start perfallocd.service && monitor_counts
}

monitor_counts() {
        busctl --json=short call org.perfalloc1 /org/perfalloc1 org.freedesktop.DBus.ObjectManager \
                GetManagedObjects | grep -q '"State":{"type":"s","data":"counting"}'
}

another_main() {
        local pid

        pid=$(show MainPID)
        [[ $(show ActiveState) == active && $pid -ne 0 && $pid -ne $1 ]]
}

# bus_restarted COMMAND...: and those who held counters release them.
bus_restarted() {
        local pid holder status=0

        pid=$(show MainPID)
        as alice perfalloc --pmu=breakpoint sleep infinity >/dev/null 2>&1 &
        holder=$!
        wait_until held && "$@" && wait_until another_main "$pid" && wait_until monitor_counts || status=1
        kill $holder
        wait $holder
        return $status
}

held() {
        busctl --json=short call org.perfalloc1 /org/perfalloc1 org.freedesktop.DBus.ObjectManager \
                GetManagedObjects | grep -q '"State":{"type":"s","data":"granted"}'
}

serves() {
        as alice perfalloc --exclusive --pmu=breakpoint true
}

# The directory that outlives the service is full: it starts all the same, and says what it cannot do.
disk_full() {
        local place=/run/perfalloc

        systemctl stop perfallocd.service || return
        rm -rf ${place:?}/* && mount -t tmpfs -o size=4k,mode=755 tmpfs $place || return
        chown perfalloc: $place
        head -c 4096 /dev/zero >$place/rubbish
        systemctl start perfallocd.service && serves && systemctl restart perfallocd.service && serves
}

check 'it counts' configured
check 'when the bus dies, the service is there again on the next one' bus_restarted systemctl kill -s KILL dbus.service
check 'and serves' serves
check 'when the bus is restarted, too' bus_restarted systemctl restart dbus.service
check 'and serves then' serves
check 'a full disk takes nothing from anybody' disk_full
check 'a full disk that nobody may write to neither' sh -c 'systemctl stop perfallocd.service &&
        mount -o remount,ro /run/perfalloc && systemctl start perfallocd.service'
check 'and it serves from there' serves
check 'it stops well' systemctl stop perfallocd.service
tap_end
