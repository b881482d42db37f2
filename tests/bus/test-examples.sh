#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The examples of the manual pages and of the README, run as they stand there. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

page() {
        "$PERFALLOC_SOURCE/man/example" "$PERFALLOC_SOURCE/man/$1" "$2"
}

# The indented busctl lines of the README.
readme() {
        sed -n '/^    hold=.(busctl/,/^$/p' "$PERFALLOC_SOURCE/README.md"
}

for name in hold options look; do
        script=$(page org.perfalloc1.5 $name)
        check "org.perfalloc1(5), example $name, runs as it stands" bash -e -c "$script"
done
check 'the README shows the main job in three lines of busctl' [ "$(readme | grep -c busctl)" -eq 3 ]
check 'and they run as they stand' bash -e -c "$(readme)"

monitor_said() {
        [[ $(paste -sd' ' "$monitor.log") == "$1" ]]
}

monitor_yields_and_goes_on() {
        wait_until monitor_said 'counting' && as alice perfalloc --quiet --pmu=breakpoint true &&
                wait_until monitor_said 'counting yielded counting'
}

# What the examples hold for a time yet.
release_all() {
        local hold

        for hold in $(busctl tree --list org.perfalloc1 | grep '^/org/perfalloc1/hold/[0-9]'); do
                busctl call org.perfalloc1 "$hold" org.perfalloc1.Hold Release 2>/dev/null || :
        done
}

release_all
monitor=$(mktemp -d)/monitor
page org.perfalloc1.5 monitor >"$monitor.c"
chmod 755 "${monitor%/*}"
# The rig has a command named "as", which is not what a compiler expects.
check 'the monitor of org.perfalloc1(5) compiles as it stands' \
        env PATH=/usr/bin:/bin cc -Wall -Wextra -Werror -Wno-unused-parameter -o "$monitor" "$monitor.c" -lsystemd
as alice "$monitor" >"$monitor.log" 2>&1 &
check 'it registers, yields to a hold and goes on afterwards' monitor_yields_and_goes_on
kill $!
wait $! 2>/dev/null
rm -r "${monitor%/*}"
tap_end
