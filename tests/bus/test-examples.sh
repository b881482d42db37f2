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
tap_end
