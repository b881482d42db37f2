#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The broker of the installed service, for ordinary users, whom the kernel lets count no whole CPU. Run by
# tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

work=$(mktemp -d)
chmod 777 "$work"
cd "$work" || exit

# counts COMMAND...: perf's line of one event, which has counted something.
counts() {
        "$@" >said 2>&1 </dev/null
        cat said
        [[ $(grep -cE '^[0-9.]*[1-9][0-9.]*,' said) -eq 1 ]]
}

kernel_refuses() {
        grep -qx 2 /proc/sys/kernel/perf_event_paranoid && ! counts as alice perf stat -x, -a -e cpu-clock true
}

whole_cpus() {
        counts session alice perfallocctl run --allow=count-system perf stat -x, -a -e cpu-clock sleep 0.05
}

samples_of_whole_cpus() {
        session alice perfallocctl run --allow=count-system perf record -a -o "$work/all.data" -e cpu-clock \
                sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' &&
                as alice perf report -i all.data --stdio 2>&1 | grep -E '^ +[0-9.]+% +.*sh '
}

in_a_hold() {
        counts session alice perfalloc --pmu=software --allow=count-system perf stat -x, -a -e cpu-clock sleep 0.05
}

only_if_polkit_says_so() {
        local status=0

        session bob perfallocctl run --allow=count-system echo run >said 2>&1 </dev/null || status=$?
        cat said
        [[ $status -ne 0 ]] && grep -q org.perfalloc1.count-system said && ! grep -qx run said
}

# The worker of a program in a user namespace of its own looks at that.
view_of_the_sysctl() {
        counts session alice perfallocctl run --allow=count-kernel --paranoid=1 perf stat -x, -e context-switches sleep 0.01
}

restart_while_it_runs() {
        local pid status

        mkfifo -m 666 go
        # shellcheck disable=SC2016
        counts session alice perfallocctl run --allow=count-system sh -c 'echo >"$1/begun"; read -r line <"$1/go"
                exec perf stat -x, -a -e cpu-clock sleep 0.05' sh "$work" &
        pid=$!
        wait_until test -e begun && systemctl restart perfallocd.service
        echo >go
        wait $pid
        status=$?
        cat said
        return $status
}

check 'the kernel lets ordinary users count no whole CPU' kernel_refuses
check 'perf stat -a' whole_cpus
check 'perf record -a' samples_of_whole_cpus
check 'perf stat -a in a hold' in_a_hold
check 'who may not by polkit does not run' only_if_polkit_says_so
check '--paranoid' view_of_the_sysctl
check 'the service is restarted while the program runs' restart_while_it_runs
tap_end
