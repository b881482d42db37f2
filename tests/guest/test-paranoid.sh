#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A stock Debian kernel, which is stricter about perf_event_open than others. Run by tests/rig/guest.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/processes.sh
. "$PERFALLOC_SOURCE/tests/processes.sh"

kernel_refuses_users() {
        local said

        said=$(as alice perf stat -e instructions:u true 2>&1) && return 1
        grep -qi -e permission -e access -e perf_event_paranoid <<<"$said"
}

goes_without() {
        local status

        sysctl -q kernel.perf_event_paranoid=2 || return
        systemctl restart perfallocd.service
        processes_are perfmon
        status=$?
        sysctl -q kernel.perf_event_paranoid=3
        systemctl restart perfallocd.service
        return $status
}

check 'perf_event_paranoid is what Debian made it' grep -qx 3 /proc/sys/kernel/perf_event_paranoid
check 'the kernel refuses an ordinary user its own counters' kernel_refuses_users
# not one that is about to leave
check 'the service starts' systemctl restart perfallocd.service
check 'the opener keeps CAP_SYS_ADMIN, which this kernel demands; nobody else does' processes_are perfmon+admin
check 'it goes without CAP_SYS_ADMIN where CAP_PERFMON is enough' goes_without
check 'an ordinary user holds the counters' as alice perfalloc true
tap_end
