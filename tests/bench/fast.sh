#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/bench/fast.sh [BENCHMARK...]
#
# The benchmarks that need a bus, polkitd and the service, beside the peers. Run by tests/rig/fast; prints samples for
# tests/bench/table.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/bench/pcp.sh
. "$PERFALLOC_SOURCE/tests/bench/pcp.sh"

bench=$PERFALLOC_BUILD/tests/bench
log=/run/bench
status=0
[[ ! ${PERFALLOC_TEST_QUICK:-} ]] || export BENCH_QUICK=1

# Higher limits than the default, for the benchmarks.
configure() {
        # PCP is the peer here: it is not to give way to us as well.
        cat >/etc/perfalloc/perfallocd.conf <<'END'
[Limits]
HoldsPerUser=100000
CountersPerUser=100000
DescriptorsPerUser=100000

[Bridges]
PcpLock=no
END
        mkdir -p $log
        peers=()
        for file in /usr/share/dbus-1/system.d/{org.gnome.Sysprof2,org.gnome.Sysprof3,net.hadess.PowerProfiles}.conf; do
                [[ -f $file ]] && peers+=("<include>$file</include>")
        done
        limits='<limit name="max_connections_per_user">4096</limit>
                <limit name="max_completed_connections">4096</limit>
                <limit name="max_match_rules_per_connection">4096</limit>'
        sed -i "s#</busconfig>#${peers[*]}${limits//$'\n'/}&#" "$PERFALLOC_RIG_DIR/bus.conf"
        polkit-stop
        # The rig hides the machine's actions: they are seen through another mount of the same files.
        mkdir -p /run/machine && mount --bind / /run/machine
        cp /run/machine/usr/share/polkit-1/actions/{org.gnome.sysprof3,net.hadess.PowerProfiles}.policy \
                "$PERFALLOC_RIG_DIR/polkit/actions/" || :
        cat >/etc/polkit-1/rules.d/01-bench.rules <<'END'
polkit.addRule(function(action, subject) {
        if (subject.user == "alice" && (action.id.indexOf("net.hadess.PowerProfiles.") == 0 ||
            action.id.indexOf("org.gnome.sysprof") == 0))
                return polkit.Result.YES;
});
END
        chown polkitd: /etc/polkit-1/rules.d/01-bench.rules
        polkit-start
        service-stop
        service-start
}

has_owner() {
        busctl --system call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus GetNameOwner s "$1"
}

# peer_start NAME PROGRAM [ARG...]
peer_start() {
        local name=$1
        shift

        [[ -x $1 ]] || return
        ! has_owner "$name" >/dev/null 2>&1 || return 0
        "$@" >"$log/$name" 2>&1 &
        wait_until has_owner "$name" >/dev/null || {
                cat "$log/$name" >&2
                return 1
        }
}

# skip WHY ROW...: these cannot be measured, under the load that there is.
skip() {
        local row

        for row in "${@:2}"; do
                printf '%s\tskip\t%s\n' "${BENCH_PREFIX:-}$row" "$1"
        done
}

# run ROW,... COMMAND [ARG...]
run() {
        "${@:2}" || {
                # shellcheck disable=SC2086
                skip 'the benchmark failed' ${1//,/ }
                status=1
        }
}

# pcp_begin ROW...: says of each that it cannot be measured where PCP cannot be had.
pcp_begin() {
        if pcp_unpack && pcp_run >&2; then
                return
        fi
        skip 'PCP cannot be had (it is unpacked from its Debian package)' "$@"
        return 1
}

hold() {
        local pcp_words=()

        peer_start net.hadess.PowerProfiles /usr/libexec/power-profiles-daemon || :
        if pcp_begin hold-user hold-root release; then
                pcp_words=("$pcp_pid" "$perflock")
        fi
        run hold-user,hold-root,hold-profile,hold-polkit,release "$bench/bench-hold" "${pcp_words[@]}"
        [[ ${#pcp_words[@]} -eq 0 ]] || pcp_stop
}

yield() {
        run yield-6,yield-64,yield-1024,yield-breakpoints,yield-probed,resume-6,resume-64,resume-1024,resume-breakpoints "$bench/bench-yield"
}

counters() {
        run open-counters,read-counters,read-mapped as alice "$bench/bench-counters"
        events
}

events() {
        local words=()

        if peer_start org.gnome.Sysprof3 /usr/libexec/sysprofd; then
                words=(sysprofd)
        else
                skip 'sysprofd is not installed' event-first event-later
        fi
        run event-first,event-later as alice "$bench/bench-counters" events "${words[@]}"
}

# race [OURS THEIRS]: so many times each. Six monitors of ours; those of PCP.
race() {
        local i ours=${1:-1000} theirs=${2:-80}

        for i in 1 2 3 4 5 6; do
                printf '[Monitor]\nEvents=context-switches\n' >/etc/perfalloc/monitors.d/bench-$i.conf
        done
        service-signal HUP
        wait_until monitors_are 6
        run race,race-start "$bench/bench-start" race race ours "$(service-pid)" "$ours" \
                as alice perfalloc --quiet --pmu=software "$bench/bench-start" stamp
        rm /etc/perfalloc/monitors.d/bench-*
        service-signal HUP
        wait_until monitors_are 0
        if pcp_begin race race-start; then
                run race,race-start "$bench/bench-start" race race theirs "$pcp_pid" "$theirs" \
                        env PCP_CONF="$pcp_conf" LD_LIBRARY_PATH="$pcp_libraries" $pcp/usr/lib/pcp/pmdas/perfevent/perfalloc -f $perflock \
                        "$bench/bench-start" stamp
                pcp_stop
        fi
}

monitors_are() {
        [[ $(busctl tree --list org.perfalloc1 | grep -c '^/org/perfalloc1/counter/[0-9]') -eq $1 ]]
}

# under NAME ARG...: holds, COMMANDs and events while stress-ng loads the machine so.
under() {
        local stress

        export BENCH_PREFIX=$1-
        if ! command -v stress-ng >/dev/null; then
                skip 'stress-ng is not installed' hold-user hold-root race-start event-first
                unset BENCH_PREFIX
                return
        fi
        # a disk, and no memory of the rig's
        mkdir -p /var/tmp/bench-stress
        stress-ng --quiet --temp-path /var/tmp/bench-stress "${@:2}" >&2 &
        stress=$!
        sleep 2 # until there is something on the disk
        hold
        race 200 60
        events
        kill "$stress"
        wait "$stress"
        rm -rf /var/tmp/bench-stress
        unset BENCH_PREFIX
}

busy() {
        under cpu --cpu "$(nproc)"
        under memory --vm "$(nproc)" --vm-bytes 512M --hdd 2 --hdd-bytes 256M
}

crowd() {
        run crowd-memory,crowd-wait "$bench/bench-crowd"
}

holds() {
        run holds-1000,holds-10000 "$bench/bench-crowd" holds
        service-stop
        service-start
}

# Others' waits while the service does much for one client; restarts.
turns() {
        run turn-open,turn-objects,turn-close,turn-leave,turn-attach,turn-detach,turn-yield,turn-resume "$bench/bench-turns" client leave attach held
        run restart-0,restart-4096,restart-8192,restart-processes,restart-monitors,restart-held "$bench/bench-turns" \
                restart restart-processes restart-monitors
}

# Others' waits while one user does the worst they can.
hostile() {
        local load rows=()

        for load in holds checks opens samplers counters lists probes objects rubbish events flood huge unread \
                descriptors signals elsewhere; do
                rows+=("hostile-$load")
        done
        run "$(IFS=, && echo "${rows[*]}")" "$bench/bench-hostile" pings
}

# In turns, for the machine's speed changes.
broker() {
        local i

        for i in 1 2 3 4 5; do
                run broker-open,broker-call,broker-calls as alice "$bench/bench-broker" theirs
                run broker-open,broker-call,broker-calls as alice perfallocctl run "$bench/bench-broker" ours
        done
        if command -v perf >/dev/null; then
                run broker-perf as alice "$bench/bench-start" pairs broker-perf 100 \
                        'perfalloc --quiet --pmu=software --broker=yes perf stat -o /dev/null true' 'perf stat -o /dev/null true'
        else
                skip 'perf is not installed' broker-perf
        fi
}

configure
[[ $# -gt 0 ]] || set -- hold yield counters race crowd holds turns hostile broker busy
for benchmark; do
        "$benchmark"
done
exit $status
