#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the unit and the bus policy keep from the service and from others. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/processes.sh
. "$PERFALLOC_SOURCE/tests/processes.sh"

unit_file=/lib/systemd/system/perfallocd.service
exposed=/run/exposed

show() {
        systemctl show -P "$1" perfallocd.service
}

# What systemd-analyze counts against the unit, one a line: SystemCallFilter=~@debug
list_exposed() {
        systemd-analyze security --json=short perfallocd.service | sed 's/},{/}\n{/g' |
                sed -n '/"exposure":"/s/.*"name":"\([^"]*\)".*/\1/p' >$exposed
        [[ -s $exposed ]]
}

# Each has its words in a comment of the unit: of a list, those that it names.
all_explained() {
        local line name status=0

        while IFS= read -r line; do
                name=${line%%=*}=
                [[ $line != *~* ]] || name=${line##*~}
                grep '^#' $unit_file | grep -qF -- "$name" || {
                        echo "$line ($name) is not explained in $unit_file"
                        status=1
                }
        done < <(sed -e 's/=\/.*/=/' -e 's/~CAP_(DAC_.*/~CAP_DAC_READ_SEARCH/' $exposed)
        return $status
}

# Where CAP_PERFMON is enough the opener has this one alone.
table_is_right() {
        processes_are perfmon ||
                { [[ $(</proc/sys/kernel/perf_event_paranoid) -gt 2 ]] && processes_are perfmon+admin; }
}

# may_call NAME: the filter lets it through.
may_call() {
        systemctl show -P SystemCallFilter perfallocd.service | tr ' ' '\n' | grep -qx "$1"
}

filter_is_tight() {
        may_call perf_event_open && may_call ptrace && may_call pidfd_getfd && may_call getpriority && ! may_call lookup_dcookie
}

# refused WORD COMMAND...
refused() {
        local word=$1 said
        shift

        said=$("$@" 2>&1) && return 1
        echo "$said"
        grep -q -- "$word" <<<"$said"
}

requests_name() {
        as "$1" busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus RequestName \
                su "$2" 4
}

# A forged signal of ours is ignored: perfalloc waits for the true one.
forged_is_ignored() {
        local status=0 hold pid

        hold=$(busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended 'sta{sv}' test 0 \
                2 pmus as 1 breakpoint mode s exclusive) || return
        hold=${hold#o \"}
        hold=${hold%\"}
        as alice perfalloc --wait=1min --pmu=breakpoint sh -c 'echo started >/run/rig/home/alice/started' &
        pid=$!
        wait_until queued || return
        for ((i = 1; i <= 10; i++)); do
                as bob busctl emit "/org/perfalloc1/hold/$i" org.freedesktop.DBus.Properties PropertiesChanged \
                        'sa{sv}as' org.perfalloc1.Hold 1 State s granted 0 || return
                as bob busctl emit /org/perfalloc1 org.perfalloc1.Manager HoldGranted obt \
                        "/org/perfalloc1/hold/$i" true 1 || return
                as bob busctl emit /org/perfalloc1 org.perfalloc1.Manager HoldEnded os \
                        "/org/perfalloc1/hold/$i" revoked || return
                as bob busctl emit /org/freedesktop/DBus org.freedesktop.DBus NameOwnerChanged sss \
                        org.perfalloc1 :1.1 '' || return
        done
        [[ ! -e /run/rig/home/alice/started ]] || status=1
        busctl call org.perfalloc1 "$hold" org.perfalloc1.Hold Release || return
        wait $pid && [[ -e /run/rig/home/alice/started && $status -eq 0 ]]
}

queued() {
        busctl --json=short call org.perfalloc1 /org/perfalloc1 org.freedesktop.DBus.ObjectManager \
                GetManagedObjects | grep -q '"State":{"type":"s","data":"queued"}'
}

# The service ignores a forged message that a client has left.
forged_leaving_is_ignored() {
        local name

        as alice perfalloc --pmu=breakpoint sh -c 'until [ -e /run/rig/home/alice/go ]; do sleep 0.01; done' &
        wait_until granted || return
        for name in $(busctl list --acquired --unique --no-legend | awk '{ print $1 }'); do
                as bob busctl emit /org/freedesktop/DBus org.freedesktop.DBus NameOwnerChanged sss \
                        "$name" "$name" '' || return
        done
        granted || return
        as alice touch /run/rig/home/alice/go
        wait $!
}

granted() {
        busctl --json=short call org.perfalloc1 /org/perfalloc1 org.freedesktop.DBus.ObjectManager \
                GetManagedObjects | grep -q '"State":{"type":"s","data":"granted"}'
}

systemctl start perfallocd.service
check 'systemd-analyze can judge the unit' list_exposed
check 'its verdict is OK' systemd-analyze security --threshold=17 perfallocd.service
check 'what it counts against the unit is explained in there' all_explained
check 'each process has what the table says, and the one on the bus nothing' table_is_right
check 'the filter lets nothing through that nobody calls' filter_is_tight
check 'nobody can take the name' refused 'Access denied' requests_name alice org.perfalloc1
check 'nor one below it' refused 'Access denied' requests_name alice org.perfalloc1.Manager
check 'signals that somebody else makes up grant nothing' forged_is_ignored
check 'nor do they end anything' forged_leaving_is_ignored
check 'it stops well' systemctl stop perfallocd.service
tap_end
