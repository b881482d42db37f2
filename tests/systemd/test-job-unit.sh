#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# perfalloc@.service, on which a job depends that is a unit. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

tags() {
        perfallocctl holds --json | sed -n 's/.*"tag": *"\(.*\)",.*/\1/p'
}

# job NAME COMMAND: runs it as a unit that needs counters.
job() {
        systemd-run --quiet --wait --collect --pipe -p Requires=perfalloc@"$1".service \
                -p After=perfalloc@"$1".service "${@:2}"
}

gone() {
        [[ -z $(tags) ]]
}

# options NAME OPTION...: of its hold.
options() {
        mkdir -p /run/perfalloc-jobs
        echo "PERFALLOC_OPTIONS=${*:2}" >"/run/perfalloc-jobs/$1"
}

job_has_its_counters() {
        options job-7 --pmu=breakpoint
        [[ $(job job-7 perfallocctl --no-legend holds) == *unit-job-7* ]] && wait_until gone
}

options_are_the_jobs() {
        options job-8 --uid=alice --pmu=breakpoint --counters=2
        [[ $(job job-8 perfallocctl --json holds) == *'"counters": 2'* ]] && wait_until gone
}

job_without_counters_does_not_start() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint --exclusive) || return
        job job-8 touch /run/started 2>&1
        systemctl is-failed perfalloc@job-8.service && [[ ! -e /run/started ]]
        set -- $?
        perfallocctl release "$hold"
        return "$1"
}

check 'a job that needs it has its counters, and they are released with it' job_has_its_counters
check 'what it holds stands in a file of the job' options_are_the_jobs
check 'a job does not start without its counters' job_without_counters_does_not_start
tap_end
