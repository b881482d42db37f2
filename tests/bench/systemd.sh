#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/bench/systemd.sh [BENCHMARK...]
#
# The benchmarks that need the project installed under a real systemd, with logind and hostnamed. Run by
# tests/rig/nspawn; prints samples for tests/bench/table.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bench/pcp.sh
. "$PERFALLOC_SOURCE/tests/bench/pcp.sh"

bench=$PERFALLOC_BUILD/tests/bench
seconds=60
[[ ! ${PERFALLOC_TEST_QUICK:-} ]] || {
        seconds=10
        export BENCH_QUICK=1
}
status=0

# run ROW,... COMMAND [ARG...]
run() {
        "${@:2}" || {
                printf '%s\tskip\tthe benchmark failed\n' ${1//,/ }
                status=1
        }
}

get_version() {
        busctl --system get-property org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager Version
}

commands() {
        get_version >&2
        run perfalloc-true session alice env BENCH_QUICK="${BENCH_QUICK:-}" "$bench/bench-start" pairs perfalloc-true 200 \
                'perfalloc --quiet true' 'systemd-inhibit true'
}

activation() {
        run activation "$bench/bench-start" cold activation 40
}

# ---- at rest ----

unit_pids() {
        cat "/sys/fs/cgroup$(systemctl show -P ControlGroup perfallocd.service)/cgroup.procs"
}

# wakeups PID...: so far, of all their threads.
wakeups() {
        local pid

        for pid; do
                cat "/proc/$pid/task/"*/status
        done | awk '/ctxt_switches/ {n += $2} END {print n + 0}'
}

# private_bytes PID...
private_bytes() {
        local pid

        for pid; do
                cat "/proc/$pid/smaps_rollup"
        done | awk '/^Private_(Clean|Dirty):/ {n += $2} END {print n * 1024}'
}

counters_are() {
        [[ $(busctl --system tree --list org.perfalloc1 | grep -c '^/org/perfalloc1/counter/[0-9]') -eq $1 ]]
}

rest() {
        local i pids pcp_pids=() before pcp_before n watchdog

        mkdir -p /etc/perfalloc/monitors.d
        for ((i = 1; i <= 64; i++)); do
                printf '[Monitor]\nEvents=context-switches\n' >"/etc/perfalloc/monitors.d/bench-$i.conf"
        done
        systemctl restart perfallocd.service
        if ! wait_until counters_are 64; then
                printf '%s\tskip\tthe service does not have the 64 monitors\n' rest-wakeups rest-memory
                return
        fi
        if pcp_unpack && pcp_run >&2; then
                pcp_pids=("$pcp_pid")
        else
                printf 'rest-wakeups\tnote\tPCP cannot be had\n'
        fi
        # Who has just called is remembered for some seconds.
        sleep 15
        mapfile -t pids < <(unit_pids)
        before=$(wakeups "${pids[@]}")
        pcp_before=$(wakeups "${pcp_pids[@]}")
        sleep $seconds
        n=$(($(wakeups "${pids[@]}") - before))
        [[ ${#pcp_pids[@]} -eq 0 ]] ||
                printf 'rest-wakeups\ttheirs\t%s\n' $(($(wakeups "${pcp_pids[@]}") - pcp_before))
        # sd_event_set_watchdog(3) may wake up every half of it.
        watchdog=$(grep -o '[0-9]*' <<<"$(systemctl show -P WatchdogUSec perfallocd.service)" | head -n 1)
        watchdog=$((seconds * 2 / watchdog + 1))
        printf 'rest-wakeups\tours\t%s\n' $((n > watchdog ? n - watchdog : 0))
        printf 'rest-wakeups\tnote\t%s of %s processes in %s s, of which the watchdog has up to %s\n' \
                $n ${#pids[@]} $seconds $watchdog
        printf 'rest-memory\tours\t%s\n' "$(private_bytes "${pids[@]}")"
        printf 'rest-memory\tnote\t%s processes; the one on the bus alone has %s B\n' ${#pids[@]} \
                "$(private_bytes "$(systemctl show -P MainPID perfallocd.service)")"
        [[ ${#pcp_pids[@]} -eq 0 ]] || {
                printf 'rest-memory\ttheirs\t%s\n' "$(private_bytes "${pcp_pids[@]}")"
                pcp_stop
        }
}

[[ $# -gt 0 ]] || set -- commands activation rest
for benchmark; do
        "$benchmark"
done
exit $status
