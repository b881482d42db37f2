# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# perfallocctl in tests: what it says as JSON, in the background, and of another host. To be sourced after
# tests/tap.sh and tests/bus/command.sh.

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
