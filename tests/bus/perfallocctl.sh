# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# perfallocctl in tests: what it says as JSON, in the background, by a clock of its own, and of another host. To be
# sourced after tests/tap.sh and tests/bus/command.sh.

# json EXPRESSION: of what was said, as the Python object j, is true.
json() {
        python3 -c "
import json, sys
j = json.load(open('$dir/said'))
sys.exit(0 if ($1) else f'not so: {j}')"
}

# in the background; its pid is in pid.
start() {
        rm -f $dir/said
        "$@" >$dir/said 2>&1 </dev/null &
        pid=$!
}

# holds_are N: so many have not ended.
holds_are() {
        perfallocctl holds --json >$dir/holds && [[ $(grep '"state":' $dir/holds | grep -vc '"ended"') -eq $1 ]]
}

# perfallocctl with a clock that is put forward: what it does every second is not waited for.
# shellcheck disable=SC2034
perfallocctl_clock=$PERFALLOC_BUILD/tests/clock/perfallocctl-clock

# clock_forward PID: by 3 s, after which whatever it waits for is due.
clock_forward() {
        env kill -s TTIN -q 3000 "$1"
}

# forward_until PID COMMAND [ARG...]: until it succeeds. The process must have said something: earlier, the signal
# stops it.
forward_until() {
        wait_until succeeds_or_forward "$@"
}

succeeds_or_forward() {
        "${@:2}" || {
                clock_forward "$1"
                return 1
        }
}

# From now on the calls of the service are in $dir/calls.
calls_watch() {
        rm -f $dir/calls # those of an earlier time
        busctl monitor --match="type='method_call',destination='org.perfalloc1'" >$dir/calls 2>&1 &
        monitor=$!
        wait_until grep -q '^Monitoring' $dir/calls
}

calls_ignore() {
        kill $monitor
        wait $monitor 2>/dev/null
}

# called METHOD [N]: so many times since.
called() {
        [[ $(grep -c "Member=$1\$" $dir/calls) -ge ${2:-1} ]]
}

# counter: the number of the newest counter, once it is there.
counter() {
        wait_until grep -q '^perfallocctl: counter [0-9]' $dir/said &&
                sed -n 's/^perfallocctl: counter \([0-9]*\):.*/\1/p' $dir/said | tail -n 1
}

# ssh as it is used here: a bridge from its standard streams to the bus over there.
ssh_bridge() {
        mkdir -p $dir/bin
        printf '#!/bin/sh\nexec systemd-stdio-bridge\n' >$dir/bin/ssh
        chmod +x $dir/bin/ssh
}
