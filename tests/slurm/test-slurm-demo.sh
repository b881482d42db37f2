#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What tools/try-slurm shows is what perfalloc-slurm(7) says that it does. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bus/command.sh
. "$PERFALLOC_SOURCE/tests/bus/command.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$PERFALLOC_SOURCE/tests/slurm/cluster.sh"
# shellcheck source=tests/slurm/step.sh
. "$PERFALLOC_SOURCE/tests/slurm/step.sh"

# Without what differs from run to run (times, pids) and where the page breaks lines.
plain() {
        sed -E 's/[0-9.]+(us|ms|s) ago/T ago/g; s/[0-9]+/N/g' | tr -s '[:space:]' '\n'
}

demo_is_the_transcript() {
        run 0 "$PERFALLOC_SOURCE/tests/slurm/demo.sh" &&
                diff <("$PERFALLOC_SOURCE/man/example" "$PERFALLOC_SOURCE/man/perfalloc-slurm.7" transcript | plain) \
                        <(sed 1d $dir/said | plain)
}

slurm_or_skip
check 'the transcript in perfalloc-slurm(7) is what tools/try-slurm shows' demo_is_the_transcript
tap_end
