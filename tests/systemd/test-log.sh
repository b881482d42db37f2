#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the journal and systemctl say, and perfallocctl log of it. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

status_is() {
        [[ $(systemctl show -P StatusText perfallocd.service) == "$1" ]]
}

systemctl_says_what_there_is() {
        local hold

        hold=$(perfallocctl -q hold --pmu=software) &&
                wait_until status_is 'Holds: 1 granted, 0 waiting. Counters: 0. Registered monitors: 0.' &&
                systemctl status --no-pager perfallocd | grep 'Status: "Holds: 1 granted' &&
                perfallocctl release "$hold" && wait_until status_is 'Nothing is held or counted.'
        set -- $?
        systemctl show -P StatusText perfallocd.service
        return "$1"
}

# entries EXPRESSION [OPTION...]: of what log lists, as the Python list e, is true.
entries() {
        local expression=$1
        shift

        perfallocctl log --json "$@" | python3 -c "
import json, sys
e = json.load(sys.stdin)['log']
sys.exit(0 if ($expression) else f'not so: {e}')"
}

# The journal takes its time.
past_is_listed() {
        local hold

        hold=$(as alice perfallocctl -q hold --pmu=software --reason='last night') && as alice perfallocctl release "$hold"
        as bob perfallocctl hold --pmu=software && return 1
        wait_until entries "any(x['what'] == 'denied' for x in e)" &&
                entries "[x['what'] for x in e if x['hold'] == $hold] == ['granted', 'ended']" &&
                entries "[x['reason'] for x in e if x['hold'] == $hold] == 2 * ['last night']" &&
                entries "[x['result'] for x in e if x['what'] == 'denied'] == ['org.perfalloc1.hold-unattended']" &&
                perfallocctl log --no-pager | grep -E "ended +$hold +alice .*released +last night"
}

past_is_filtered() {
        entries "{x['what'] for x in e} == {'denied'}" --user=bob && entries "len(e) == 1 and e[0]['what'] == 'denied'" -n 1 &&
                entries "len(e) >= 4" -n 1000 && entries 'e == []' --since=now && entries 'len(e) >= 4' --since=1h &&
                entries 'e == []' --until=yesterday && entries "len(e) >= 2" --until=now --user=alice
}

# Anybody may write to the journal.
forged_entry_is_not_listed() {
        printf '%s\n' MESSAGE_ID=8e1f7ad2c0b94a5b8d6a3f2e4c7b9d10 MESSAGE=forged PERFALLOC_HOLD=4711 PERFALLOC_UID=0 PERFALLOC_REASON=forged |
                as bob logger --journald && wait_until sh -c 'journalctl -q PERFALLOC_HOLD=4711 | grep forged' &&
                entries "all(x['hold'] != 4711 for x in e) and len(e) >= 4"
}

others_are_told_why_it_is_empty() {
        as bob perfallocctl log | grep systemd-journal
}

check 'systemctl status says what is held' systemctl_says_what_there_is
check 'log lists past holds and denials' past_is_listed
check 'log filters by user, time and number' past_is_filtered
check 'an entry of somebody else is not listed' forged_entry_is_not_listed
check 'who may not read the journal is told so' others_are_told_why_it_is_empty
tap_end
