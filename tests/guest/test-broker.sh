#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The broker on a stock Debian, whose kernel lets ordinary users count nothing at all, with true hardware
# counters. Run by tests/rig/guest.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/broker.sh
. "$PERFALLOC_SOURCE/tests/broker.sh"

# shellcheck disable=SC2034
event=instructions:u second=cycles:u sampled=cycles:u

check_not 'the kernel refuses an ordinary user' as alice perf stat -e "$event" true
check 'perf stat' stat_own
check 'perf stat -r' stat_repeated
check 'perf stat of a group' stat_group
check 'perf stat -a' stat_everybody
check 'perf stat -a is not among what was asked for' stat_refused
check 'perf record' record_own
check 'perf record -g' record_chains
check 'perf stat -p' stat_process
check 'perf record -p' record_process
check 'perf record -a' record_everybody
check 'perfalloc perf stat, in a hold' in_a_hold
tap_end
