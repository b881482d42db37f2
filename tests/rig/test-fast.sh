#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Whether tests/rig/fast keeps its promises, for every bus test relies on it. Argument: the build directory.
set -u

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/tap.sh
. "$here/../tap.sh"

if [[ $(id -u) -ne 0 ]]; then
        echo '1..0 # SKIP the rig needs root'
        exit 0
fi

fast() {
        "$here/fast" --build "$build" -- "$@"
}

# status_is STATUS COMMAND...
status_is() {
        local wanted=$1 status=0
        shift

        "$@" || status=$?
        echo "exit status $status"
        [[ $status -eq $wanted ]]
}

# running NAME: whether a process goes by that name, as its argv[0].
running() {
        local command

        for command in /proc/[0-9]*/cmdline; do
                IFS= read -r -d '' command <"$command" 2>/dev/null || continue
                [[ $command != "$1" ]] || return 0
        done
        return 1
}

leaves_nothing() {
        fast bash -c 'setsid bash -c "exec -a rig-test-left sleep 1000" & sleep 0.1' &&
                ! running rig-test-left
}

dies_whole() {
        local pid

        "$here/fast" --build "$build" -- bash -c 'exec -a rig-test-within sleep 1000' >/dev/null 2>&1 &
        pid=$!
        wait_until running rig-test-within || return
        kill -KILL $pid
        wait $pid 2>/dev/null
        wait_until tap_fails running rig-test-within
}

shares() {
        local pid status=0

        (
                exec 8>>/run/perfalloc-rig.lock
                flock 8
                exec sleep 1000
        ) &
        pid=$!
        wait_until tap_fails flock -n /run/perfalloc-rig.lock true || return
        "$here/fast" --shared --build "$build" -- sh -c '! flock -n /run/rig/machine true' || status=$?
        kill $pid
        wait $pid 2>/dev/null
        return $status
}

build=${1:?the build directory}
check 'the exit status is that of the command' status_is 7 fast sh -c 'exit 7'
check 'a good run is good' status_is 0 fast true
check 'a crash of the service spoils a good run' \
        status_is 1 fast sh -c 'service-signal SEGV; until test -e $PERFALLOC_RIG_DIR/state/service.failures; do sleep 0.01; done'
check 'a service that was killed on purpose is started anew by the next call' \
        fast sh -c 'service-kill && busctl --system introspect org.perfalloc1 /org/perfalloc1'
check 'killed with --again it is started anew by itself, as it is after a failure' \
        fast sh -c 'pid=$(service-pid) && service-kill --again && test $pid -ne $(service-pid)'
check 'restarted it is another process' \
        fast sh -c 'pid=$(service-pid) && service-restart && test $pid -ne $(service-pid)'
check_not 'a masked service is not' \
        fast sh -c 'service-stop; service-mask; busctl --system introspect org.perfalloc1 /org/perfalloc1'
check 'polkit says yes to alice' \
        fast sh -c 'as alice sh -c "pkcheck -a org.perfalloc1.hold -p \$\$"'
check_not 'polkit does not say yes to bob' \
        fast sh -c 'as bob sh -c "pkcheck -a org.perfalloc1.hold -p \$\$"'
check 'rules are in force when the command returns' \
        fast sh -c 'echo "polkit.addRule(function(a, s) { return \"yes\"; });" | rules zz &&
                as bob sh -c "pkcheck -a org.perfalloc1.hold -p \$\$"'
check_not 'without polkitd nobody says yes' \
        fast sh -c 'polkit-stop; as alice sh -c "pkcheck -a org.perfalloc1.hold -p \$\$"'
check 'the /etc of the machine is not touched' \
        sh -c "'$here/fast' --build '$build' -- touch /etc/perfalloc-rig-was-here && test ! -e /etc/perfalloc-rig-was-here"
check 'what a command leaves running ends with the rig' leaves_nothing
check 'a shared rig runs beside others, and has their lock to take' shares
check 'a rig that is killed takes everything along' dies_whole
tap_end
