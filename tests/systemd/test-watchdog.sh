#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# systemd's watchdog is fed by the loop itself, so a loop that is stuck is started anew. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

show() {
        systemctl show -P "$1" perfallocd.service
}

# The shipped time is for machines that are busy; this one keeps the test short.
watch_closely() {
        mkdir -p /run/systemd/system/perfallocd.service.d
        printf '[Service]\nWatchdogSec=1s\nLimitCORE=0\n' >/run/systemd/system/perfallocd.service.d/watchdog.conf
        systemctl daemon-reload && systemctl start perfallocd.service
}

fed() {
        local pid

        pid=$(show MainPID)
        sleep 3
        [[ $(show MainPID) == "$pid" && $(show NRestarts) == 0 ]]
}

another_main() {
        local pid

        pid=$(show MainPID)
        [[ $(show ActiveState) == active && $pid -ne 0 && $pid -ne $1 ]]
}

stuck_is_restarted() {
        local pid

        pid=$(show MainPID)
        kill -s STOP "$pid"
        wait_until another_main "$pid"
}

watchdog_did_it() {
        journalctl -u perfallocd.service -o cat | grep -F 'Watchdog timeout'
}

check 'systemd watches it' watch_closely
check 'a loop that runs feeds the watchdog' fed
check 'a loop that is stuck is started anew' stuck_is_restarted
check 'by the watchdog' wait_until watchdog_did_it
check 'it serves again' as alice perfalloc --pmu=breakpoint true
check 'and stops well' systemctl stop perfallocd.service
tap_end
