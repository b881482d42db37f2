#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# perfallocctl hold on behalf of others, as a prolog and an epilog use it. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/bus/perfallocctl.sh
. "$PERFALLOC_SOURCE/tests/bus/perfallocctl.sh"

property() {
        busctl get-property org.perfalloc1 "/org/perfalloc1/hold/$1" org.perfalloc1.Hold "$2"
}

prolog_runs_twice() {
        local hold

        hold=$(perfallocctl -q hold --pmu=breakpoint --uid=alice --tag=job-7 --reason='srun ./app') &&
                run 0 perfallocctl -q hold --pmu=breakpoint --uid=2001 --tag=job-7 && said "$hold" && holds_are 1 &&
                run 0 property "$hold" Uid && said 'u 2001' && run 0 property "$hold" Tag && said 'job-7' &&
                run 5 perfallocctl -q hold --pmu=breakpoint --tag=job-7 --uid=nobody-here && holds_are 1
}

everybody_reads_for_which_job() {
        run 0 perfallocctl && said 'job-7' && said 'alice' && said 'srun ./app' && run 0 as bob perfallocctl holds &&
                said 'job-7' && run 4 as carol perfallocctl hold --pmu=breakpoint --exclusive &&
                said "uid 2001 (tag job-7, 'srun ./app', shared, granted)"
}

user_extends_it() {
        run 0 as alice perfallocctl extend --tag=job-7 --lifetime=1h && ! said 'HoldMaxSec' &&
                run 0 as alice perfallocctl extend --tag=job-7 && said 'ends after 8h, the limit' &&
                said 'HoldMaxSec' && run 0 perfallocctl extend --tag=job-7 && ! said 'HoldMaxSec' &&
                run 5 perfallocctl extend --tag=job-8 && said "'job-8'" && run 2 perfallocctl extend &&
                run 3 as bob perfallocctl extend --tag=job-7
}

epilog_runs_twice() {
        run 0 perfallocctl release --tag=job-7 && holds_are 0 && run 0 perfallocctl release --tag=job-7 &&
                said "no hold has the tag 'job-7'" && run 2 perfallocctl release --tag=job-7 1
}

cut_lifetime_is_said() {
        run 0 as alice perfallocctl hold --pmu=breakpoint --lifetime=2d && said 'ends after 8h, not 2d' || return
        run 0 as alice perfallocctl hold --pmu=breakpoint --lifetime=8h && ! said 'HoldMaxSec' &&
                run 0 perfallocctl hold --pmu=breakpoint && ! said 'HoldMaxSec'
        set -- $?
        for hold in $(perfallocctl holds --json | sed -n 's/.*"hold": \([0-9]*\),/\1/p'); do
                perfallocctl release "$hold" >/dev/null 2>&1
        done
        return "$1"
}

hold_ends_with_its_process() {
        sleep infinity &
        run 0 perfallocctl -q hold --pmu=breakpoint --pidfd=$! && holds_are 1 || return
        kill $!
        wait_until holds_are 0 && run 5 perfallocctl hold --pmu=breakpoint --pidfd=$!
}

what_is_wrong_is_named() {
        run 3 as alice perfallocctl hold --tag=job-7 && said org.perfalloc1.manage &&
                run 5 perfallocctl hold --cgroup=nonesuch && said nonesuch &&
                run 2 perfallocctl hold --cgroup=x --pidfd=1 && said --pidfd && run 2 perfallocctl hold --pidfd=x &&
                run 1 perfallocctl hold --cgroup=/proc && said '--cgroup' && run 2 perfallocctl hold --tag= &&
                said "'tag'" && run 2 perfallocctl -M there hold --pidfd=1 && run 2 perfallocctl -H there hold --uid=alice &&
                run 2 perfallocctl holds --tag=job-7 && holds_are 0
}

# The example of a prolog and an epilog, with stand-ins for Slurm's command and the journal's.
example() {
        env PATH="$dir/bin:$PATH" PERFALLOC_OPTIONS='--pmu=breakpoint --exclusive' SLURM_JOB_ID=7 \
                SLURM_JOB_UID=2001 SLURM_JOB_CONSTRAINTS="$2" \
                "$PERFALLOC_SOURCE/examples/slurm/$1"
}

examples_hold_for_the_job() {
        mkdir -p $dir/bin
        printf '#!/bin/sh\necho "$(basename "$0") $*"\n' >$dir/bin/scancel
        cp $dir/bin/scancel $dir/bin/logger
        chmod +x $dir/bin/*
        run 0 example prolog '' && holds_are 0 && run 0 example prolog 'big&perfalloc' && holds_are 1 &&
                run 0 example prolog perfalloc && ! said scancel && holds_are 1 &&
                run 0 perfallocctl holds && said slurm-7 && said alice &&
                run 0 example epilog perfalloc && holds_are 0 && run 0 example epilog perfalloc || return
        run 0 env PATH="$dir/bin:$PATH" SLURM_JOB_ID=7 SLURM_JOB_UID=nobody-here SLURM_JOB_CONSTRAINTS=perfalloc \
                "$PERFALLOC_SOURCE/examples/slurm/prolog" && said 'scancel 7' && said nobody-here
}

check 'a prolog that runs twice takes one hold' prolog_runs_twice
check 'status, holds and Busy name tag, user and reason' everybody_reads_for_which_job
check 'the user extends it, and a cut is said' user_extends_it
check 'an epilog that runs twice succeeds twice' epilog_runs_twice
check 'a lifetime that is cut is said' cut_lifetime_is_said
check 'a hold ends with its process' hold_ends_with_its_process
check 'the examples for Slurm hold for the job, and may run twice' examples_hold_for_the_job
check 'what is wrong is named' what_is_wrong_is_named
tap_end
