# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# PCP's pmdaperfevent as a peer. To be sourced in a rig.

# shellcheck source=tests/pcp.sh
. "$PERFALLOC_SOURCE/tests/pcp.sh"

# Until it counts.
pcp_run() {
        pcp_configure $pcp/pcp.conf && pcp_start || return
        echo 'fetch perfevent.active' >&5
        wait_until pcp_finds_pid && wait_until test -e $perflock && wait_until pcp_has_events && return
        cat $pcp/said $pcp/log >&2
        return 1
}

# The child of dbpmda that stays; others come and go.
pcp_finds_pid() {
        for pcp_pid in $(<"/proc/$dbpmda/task/$dbpmda/children"); do
                [[ $(<"/proc/$pcp_pid/comm") != pmdaperfevent ]] || return 0
        done
        return 1
}

pcp_has_events() {
        find "/proc/$pcp_pid/fd" -lname 'anon_inode:\[perf_event\]' | grep -q .
}

pcp_stop() {
        exec 5>&-
        wait "$dbpmda"
}
