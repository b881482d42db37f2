#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A stock Debian kernel, which is stricter about perf_event_open than others. Run by tests/rig/guest.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

main_pid() {
        systemctl show -P MainPID perfallocd.service
}

kernel_refuses_users() {
        local said

        said=$(as alice perf stat -e instructions:u true 2>&1) && return 1
        grep -qi -e permission -e access -e perf_event_paranoid <<<"$said"
}

# has SET CAPABILITY: of the main process.
has() {
        capsh --decode="$(sed -n "s/^$1:\t//p" "/proc/$(main_pid)/status")" | grep -qw "$2"
}

has_not() {
        local caps

        caps=$(capsh --decode="$(sed -n "s/^$1:\t//p" "/proc/$(main_pid)/status")") && ! grep -qw "$2" <<<"$caps"
}

goes_without() {
        sysctl -q kernel.perf_event_paranoid=2 || return
        systemctl restart perfallocd.service
        has CapPrm cap_perfmon && has_not CapPrm cap_sys_admin
        set -- $?
        sysctl -q kernel.perf_event_paranoid=3
        systemctl restart perfallocd.service
        return "$1"
}

check 'perf_event_paranoid is what Debian made it' grep -qx 3 /proc/sys/kernel/perf_event_paranoid
check 'the kernel refuses an ordinary user its own counters' kernel_refuses_users
# not one that is about to leave
check 'the service starts' systemctl restart perfallocd.service
check 'it keeps CAP_SYS_ADMIN, which this kernel demands' has CapEff cap_sys_admin
check 'it has no CAP_SYS_PTRACE on the bus' has_not CapPrm cap_sys_ptrace
check 'it goes without CAP_SYS_ADMIN where CAP_PERFMON is enough' goes_without
check 'an ordinary user holds the counters' as alice perfalloc true
tap_end
