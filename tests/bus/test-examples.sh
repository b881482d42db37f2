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

# The commands that the examples run, where they are not ours.
examples_place() {
        place=$(mktemp -d)
        for name in prepare benchmark program; do
                printf '#!/bin/sh\necho "$0" >>ran\n' >"$place/$name"
        done
        mkdir "$place/bin"
        printf '#!/bin/sh\necho make >>ran\n' >"$place/bin/make"
        # these two run what they are given last
        for name in perf gdb; do
                printf '#!/bin/sh\nfor last; do :; done\nexec "$last"\n' >"$place/bin/$name"
        done
        chmod -R 755 "$place"
}

# runs_in_place PAGE NAME: the example, with the commands of the place.
runs_in_place() {
        (cd "$place" && PATH=$place/bin:$PATH bash -e -c "$(page "$1" "$2")")
}

ran() {
        [[ $(sort "$place/ran" | uniq -c | sed 's/^ *//' | paste -sd,) == "$1" ]] || {
                cat "$place/ran"
                return 1
        }
}

draws() {
        runs_in_place perfallocctl.1 plot && grep -q '<svg' "$place/out.svg"
}

# The configuration of the page, with its monitor; nothing in it is complained of.
configuration_is_read() {
        mkdir -p /etc/perfalloc/monitors.d
        page perfallocd.conf.5 conf >/etc/perfalloc/perfallocd.conf
        page perfallocd.conf.5 monitor >/etc/perfalloc/monitors.d/example.conf
        service-signal HUP
        wait_until sh -c 'service-log | grep -q "Configuration read again"' &&
                wait_until sh -c 'perfallocctl monitors | grep -q "example.*counting"' &&
                ! service-log | grep '/etc/perfalloc'
        set -- $?
        rm /etc/perfalloc/perfallocd.conf /etc/perfalloc/monitors.d/example.conf
        service-signal HUP
        return "$1"
}

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
examples_place
for name in status hold job open run persistent; do
        check "perfallocctl(1), example $name, runs as it stands" runs_in_place perfallocctl.1 $name
done
check 'perfallocctl(1), example plot, draws' draws
for name in stat breakpoints steps; do
        check "perfalloc(1), example $name, runs as it stands" runs_in_place perfalloc.1 $name
done
check 'what they should run has run' ran '3 ./benchmark,2 ./prepare,2 ./program,6 make'
check 'the examples of perfallocd.conf(5) are read' configuration_is_read
rm -r "$place"
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
