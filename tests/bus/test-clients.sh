#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The clients among the examples, in C, Python and Go, as an ordinary user runs them. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

examples=$PERFALLOC_SOURCE/examples
here=$(mktemp -d)
chmod 755 "$here"
# The rig has a command named "as", which is not what a compiler expects.
tools=/usr/local/bin:/usr/bin:/bin

each_is_short() {
        local file

        for file in profile.c samples.py monitor.py count.go; do
                [[ $(wc -l <"$examples/$file") -lt 80 ]] || {
                        wc -l "$examples/$file"
                        return 1
                }
        done
        [[ $(wc -l <"$examples/profile-tree.c") -le 60 ]]
}

profile_tree_compiles() {
        # shellcheck disable=SC2046
        PATH=$tools cc -Wall -Wextra -Werror "$examples/profile-tree.c" -I"$PERFALLOC_SOURCE/include" \
                $(pkg-config --cflags --libs libsystemd) -o "$here/profile-tree"
}

# A shell with a child that lives and others that it starts later.
tree() {
        # shellcheck disable=SC2016
        as alice sh -c '
                sh -c "while :; do :; done" &
                echo $$ >"$0"
                while :; do sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i + 1)); done"; done' "$here/tree/pid"
}

samples_a_tree() {
        local parent children said

        parent=$(<"$here/tree/pid")
        # shellcheck disable=SC2016
        said=$(as alice sh -c '"$1" <"/proc/$2/maps"' sh "$here/profile-tree" "$parent") || return
        children=$(cut -d ' ' -f 2 <<<"$said" | sort -u | grep -vxc "$parent")
        [[ $(grep -cE '^0x[0-9a-f]+ [0-9]+$' <<<"$said") == 1000 && $children -ge 3 ]]
}

profile_compiles() {
        # shellcheck disable=SC2046
        PATH=$tools cc -Wall -Wextra -Werror "$examples/profile.c" -I"$PERFALLOC_SOURCE/include" \
                $(pkg-config --cflags --libs gio-unix-2.0) -o "$here/profile"
}

# As a program's own module would; Debian has the library's source, and nothing is fetched.
count_compiles() {
        mkdir "$here/go" && cp "$examples/count.go" "$here/go/" && cat >"$here/go/go.mod" <<END || return
module count
go 1.19
require github.com/godbus/dbus/v5 v5.0.0
replace github.com/godbus/dbus/v5 => $library
END
        (cd "$here/go" && PATH=$tools GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$here/cache go build -o "$here/count" .)
}

prints_samples() {
        local n=$1 said
        shift

        said=$(as alice "$@") && [[ $(grep -cE '^0x[0-9a-f]+' <<<"$said") -ge $n ]]
}

counts_a_command() {
        local said

        said=$(as alice "$here/count" task-clock:u sh -c 'i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done' 2>&1) &&
                [[ $said =~ ^[1-9][0-9]*\ task-clock:u\ \(exact\)$ ]]
}

refused_without_an_action() {
        ! as bob "$examples/samples.py" $$ 1 && ! as bob "$here/profile" $busy
}

monitor_said() {
        [[ $(paste -sd' ' "$here/monitor") == "$1" ]]
}

as alice sh -c 'while :; do :; done' &
busy=$!
wait_until pgrep -u alice sh >/dev/null
busy=$(pgrep -u alice sh | tail -n 1)

check 'each example has less than 80 lines' each_is_short
check 'profile.c compiles without a warning' profile_compiles
check 'it samples a process' prints_samples 1000 "$here/profile" "$busy"
mkdir -m 777 "$here/tree"
tree &
wait_until test -s "$here/tree/pid"
check 'profile-tree.c compiles without a warning' profile_tree_compiles
check 'it samples a process, its children and later ones' samples_a_tree
if /usr/bin/python3 -c 'import dbus, gi' 2>/dev/null; then
        check 'samples.py holds the counters and samples a process' prints_samples 20 "$examples/samples.py" "$busy" 20
        as alice "$examples/monitor.py" >"$here/monitor" 2>&1 &
        check 'monitor.py registers' wait_until monitor_said 'counting'
        check 'while somebody holds the counters' as alice perfalloc --quiet --pmu=breakpoint true
        check 'it yields, and carries on afterwards' wait_until monitor_said 'counting yielded counting'
        check 'a user without the actions is refused' refused_without_an_action
else
        skip 'samples.py and monitor.py' 'no python3-dbus or python3-gi here'
fi
library=/usr/share/gocode/src/github.com/godbus/dbus
if PATH=$tools command -v go >/dev/null && [[ -d $library ]]; then
        check 'count.go compiles' count_compiles
        check 'it holds the counters, counts a command and says how well' counts_a_command
else
        skip 'count.go' 'no go or no golang-github-godbus-dbus-dev here'
fi
pkill -u alice
rm -rf "$here"
tap_end
