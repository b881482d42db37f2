#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The bridges that need more than the service has: the NMI watchdog's root unit, and the drop-in for LIKWID's
# lock. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/processes.sh
. "$PERFALLOC_SOURCE/tests/processes.sh"
# shellcheck source=tests/hold.sh
. "$PERFALLOC_SOURCE/tests/hold.sh"

unit=perfalloc-nmi-watchdog.service
watchdog=/run/nmi_watchdog

sysctl_is() {
        [[ $(<$watchdog) == "$1" ]]
}

feature() {
        busctl get-property org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager Features | grep -q "\"$1\""
}

log_says() {
        journalctl -u perfallocd.service -o cat | grep -qF -- "$1"
}

# A container may not write sysctls: a file takes the place of this one, for the service and for the unit.
replace_sysctl() {
        local name

        echo 1 >$watchdog
        chmod 644 $watchdog
        for name in perfallocd.service $unit; do
                mkdir -p /run/systemd/system/$name.d
                printf '[Service]\nBindPaths=%s:/proc/sys/kernel/nmi_watchdog\n' $watchdog \
                        >/run/systemd/system/$name.d/sysctl.conf
        done
        systemctl daemon-reload
}

configure() {
        printf '%s\n' '[Bridges]' "$@" >/etc/perfalloc/perfallocd.conf
        systemctl restart perfallocd.service
}

off_by_default() {
        local hold

        hold=$(hold_take carol 0) && hold_call "$hold" Wait && sysctl_is 1 && hold_call "$hold" Release
}

off_while_held() {
        local hold

        configure NmiWatchdog=yes && feature nmi-watchdog || return
        hold=$(hold_take carol 1 yield_usec t 10000000) && hold_call "$hold" Wait && sysctl_is 0 || return
        hold_call "$hold" Release && wait_until sysctl_is 1
}

no_job_is_left() {
        [[ -z $(systemctl list-jobs --no-legend 'perfalloc-nmi-watchdog*') ]]
}

# One hold after the other: the first one's end must not turn it on again in the second one. Turning it on takes a
# moment.
off_in_the_next_hold() {
        local hold next status

        printf '[Service]\nExecStopPost=\nExecStopPost=sleep 0.3\n%s\n' \
                "$(grep ^ExecStopPost= /lib/systemd/system/$unit)" >/run/systemd/system/$unit.d/slow.conf
        systemctl daemon-reload
        hold=$(hold_take carol 1 yield_usec t 10000000) && hold_call "$hold" Wait && hold_call "$hold" Release || return
        next=$(hold_take carol 1 yield_usec t 10000000) && hold_call "$next" Wait && wait_until no_job_is_left && sysctl_is 0
        status=$?
        rm /run/systemd/system/$unit.d/slow.conf
        systemctl daemon-reload
        hold_call "$next" Release && wait_until sysctl_is 1 && return $status
}

main_pid() {
        systemctl show -P MainPID perfallocd.service
}

came_back() {
        local pid

        pid=$(main_pid)
        [[ $pid != 0 && $pid != "$1" ]] && systemctl is-active perfallocd.service
}

crash() {
        local pid

        pid=$(main_pid)
        systemctl kill --kill-whom=main -s KILL perfallocd.service
        wait_until came_back "$pid"
}

off_after_a_crash() {
        local hold

        hold=$(hold_take carol 1 yield_usec t 10000000) && hold_call "$hold" Wait && sysctl_is 0 || return
        crash && wait_until sysctl_is 0 || return
        hold_call "$hold" Release && wait_until sysctl_is 1
}

# The unit does not run a second time, so the watchdog was never on.
off_over_restarts() {
        local hold started i

        hold=$(hold_take carol 1 yield_usec t 10000000) && hold_call "$hold" Wait && sysctl_is 0 || return
        started=$(started_at)
        for i in 1 2 3; do
                systemctl restart perfallocd.service && sysctl_is 0 && [[ $(started_at) == "$started" ]] || return
        done
        hold_call "$hold" Release && wait_until sysctl_is 1 && wait_until unit_is_inactive
}

unit_is_inactive() {
        ! systemctl is-active $unit && ! systemctl is-active ${unit%.service}.target
}

back_after() {
        local hold

        wait_until systemctl is-active perfallocd.service
        hold=$(hold_take carol 1 yield_usec t 10000000) && hold_call "$hold" Wait && sysctl_is 0 || return
        systemctl "$@" perfallocd.service && wait_until sysctl_is 1 && wait_until unit_is_inactive
}

started_at() {
        systemctl show -P ActiveEnterTimestampMonotonic $unit
}

what_was_off_stays_off() {
        local hold

        echo 0 >$watchdog
        hold=$(hold_take carol 0) && hold_call "$hold" Wait && hold_call "$hold" Release || return
        sysctl_is 0 && echo 1 >$watchdog && [[ $(started_at) == "$1" ]]
}

masked_is_an_obstacle() {
        local hold

        systemctl stop $unit
        systemctl mask --runtime $unit || return
        hold=$(hold_take carol 1 yield_usec t 300000) || return
        ! hold_call "$hold" Wait || return
        busctl get-property org.perfalloc1 "$hold" org.perfalloc1.Hold Obstacles | grep -q 'NMI watchdog' &&
                log_says "Bridge nmi-watchdog: $unit"
        status=$?
        systemctl unmask --runtime $unit
        return $status
}

owner_is() {
        [[ $(stat -c %U /run/likwid.lock) == "$1" ]]
}

likwid_drop_in() {
        : >/run/likwid.lock
        chmod 644 /run/likwid.lock
        mkdir -p /etc/systemd/system/perfallocd.service.d
        cp /usr/share/doc/perfalloc/examples/likwid-lock.conf /etc/systemd/system/perfallocd.service.d/
        systemctl daemon-reload
        configure LikwidGraceSec=50ms && feature likwid-lock
}

# As perfallocd(8) says: the process on the bus alone has one more.
likwid_table_is_right() {
        processes_are perfmon chown unit+chown ||
                { [[ $(</proc/sys/kernel/perf_event_paranoid) -gt 2 ]] && processes_are perfmon+admin chown unit+chown; }
}

likwid_is_the_holders() {
        local hold

        hold=$(hold_take carol 0) && hold_call "$hold" Wait && owner_is carol || return
        hold_call "$hold" Release && owner_is root
}

likwid_passes_on() {
        local first second

        first=$(hold_take carol 0) && hold_call "$first" Wait && second=$(as root busctl call org.perfalloc1 \
                /org/perfalloc1 org.perfalloc1.Manager HoldUnattended 'sta{sv}' test 0 0) || return
        second=${second#o \"}
        second=${second%\"}
        hold_call "$second" Wait && owner_is carol && hold_call "$first" Release && owner_is root &&
                hold_call "$second" Release && owner_is root
}

likwid_stays_the_holders_over_a_crash() {
        local hold

        chown daemon /run/likwid.lock
        hold=$(hold_take carol 0) && hold_call "$hold" Wait && owner_is carol || return
        crash && owner_is carol && hold_call "$hold" Release && wait_until owner_is daemon
}

likwid_comes_back_after_a_stop() {
        local hold

        hold=$(hold_take carol 0) && hold_call "$hold" Wait && owner_is carol || return
        systemctl restart perfallocd.service && owner_is carol || return
        systemctl stop perfallocd.service && owner_is daemon
}

replace_sysctl
check 'systemd has nothing to say against the unit' systemd-analyze verify /lib/systemd/system/$unit
check 'it can do little else' systemd-analyze security --threshold=30 $unit
check 'by default the watchdog is left alone' off_by_default
check 'NmiWatchdog=yes: it is off while somebody holds, and on again afterwards' off_while_held
check 'and in a hold that follows at once' off_in_the_next_hold
check 'it stays off when the service is restarted' off_over_restarts
check 'and is off again after a crash' off_after_a_crash
check 'on again when the service was stopped' back_after stop
check 'and when somebody has ended it' back_after kill
check 'a watchdog that was off stays off, and nothing is started' \
        what_was_off_stays_off "$(started_at)"
check 'a unit that cannot be started is an obstacle, with words' masked_is_an_obstacle
check_not 'nobody else may start it' as carol systemctl --no-ask-password start $unit
check_not 'and the service nothing else' as perfalloc systemctl --no-ask-password stop dbus.service
check 'with its drop-in the bridge to LIKWID is active' likwid_drop_in
check 'CAP_CHOWN is for the process on the bus alone' likwid_table_is_right
check 'the lock file is the holder'"'"'s while they hold' likwid_is_the_holders
check 'and passes to the next holder' likwid_passes_on
check 'it stays so over a crash, and goes back to whom it belonged' likwid_stays_the_holders_over_a_crash
check 'and when the service is stopped, but not when it is restarted' likwid_comes_back_after_a_stop
tap_end
