#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# PAPI's own tests, unmodified, as an ordinary user on a stock Debian. Run by tests/rig/guest.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

work=$(mktemp -d)
chmod 777 "$work"
cd "$work" || exit

# libpfm4 4.13 looks for the PMU of a Cortex-A57 by two names of the kernel's: that of boards that say which CPU
# they have, and that of machines with ACPI. QEMU's is neither, and PAPI as root and without perfalloc counts nothing
# there. So PAPI sees the second name too.
pmus=/sys/bus/event_source/devices
mkdir names
chmod 755 names
for pmu in "$pmus"/*; do
        ln -s "$(readlink -f "$pmu")" "names/${pmu##*/}"
done
ln -s "$(readlink -f "$pmus/armv8_pmuv3")" names/armv8_pmuv3_0

# named COMMAND...
named() {
        # shellcheck disable=SC2016
        unshare --mount sh -eu -c 'mount --bind "$0" "$1"; shift; exec "$@"' "$work/names" "$pmus" "$@"
}

# passes COMMAND...: a test of PAPI's that says it has passed; its exit status is 0 also if it was skipped.
passes() {
        "$@" >said 2>&1 </dev/null
        cat said
        grep -qE '(^|[^A-Z])PASSED' said && ! grep -qE 'FAILED|SKIPPED' said
}

under_the_broker() {
        passes named as alice perfallocctl run --paranoid=2 "$PERFALLOC_BUILD/tests/guest/papi/papi-$1"
}

# verdicts COMMAND...: how many of its processes say what at their end.
verdicts() {
        "$@" >said 2>&1 </dev/null
        grep -oE 'PASSED|FAILED|SKIPPED' said | sort | uniq -c
}

# For what PAPI itself may not be able to do: sid's adds no event after a fork.
as_without_broker() {
        local alone brokered paranoid

        paranoid=$(</proc/sys/kernel/perf_event_paranoid)
        echo -1 >/proc/sys/kernel/perf_event_paranoid
        alone=$(verdicts named as alice "$PERFALLOC_BUILD/tests/guest/papi/papi-$1")
        echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
        brokered=$(verdicts named as alice perfallocctl run --paranoid=2 "$PERFALLOC_BUILD/tests/guest/papi/papi-$1")
        cat said
        echo "alone: $alone, and under the broker: $brokered"
        [[ $alone == *PASSED* && $alone != *FAILED* && $brokered == "$alone" ]]
}

# Its own verdict is of floating-point instructions, which QEMU's PMU does not count.
inherited() {
        named as alice perfallocctl run --paranoid=2 "$PERFALLOC_BUILD/tests/guest/papi/papi-inherit" >said 2>&1 </dev/null
        cat said
        grep -qE '^PAPI_TOT_CYC:[[:space:]]*[1-9]' said
}

in_a_hold() {
        passes named as alice perfalloc --paranoid=2 "$PERFALLOC_BUILD/tests/guest/papi/papi-$1"
}

# The same, if --paranoid is left out.
gives_up() {
        ! passes named as alice perfallocctl run "$PERFALLOC_BUILD/tests/guest/papi/papi-$1"
}

check 'PAPI gives up where perf_event_paranoid is 3' gives_up zero
check 'PAPI counts its own process' under_the_broker zero
check 'PAPI counts processes that fork' as_without_broker zero_fork
check 'PAPI counts threads' under_the_broker zero_pthreads
check 'PAPI counts children with their parent' inherited
check 'PAPI samples, with a signal for each overflow' under_the_broker overflow_single_event
check 'PAPI multiplexes' under_the_broker multiplex1
check 'PAPI counts in a hold' in_a_hold zero
tap_end
