#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/packages/test-installed.sh deb|rpm
#
# A package, in a machine of its own: what it installs works, an upgrade and a downgrade lose nothing, and a purge
# leaves nothing. Run by tests/rig/nspawn, without the project, for tests/packages/deb and tests/packages/rpm.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

format=$1
first=$PERFALLOC_BUILD/packages/first.$format
next=$PERFALLOC_BUILD/packages/next.$format
devel=$PERFALLOC_BUILD/packages/devel.$format
devel_name='perfalloc-dev'
[[ $format != rpm ]] || devel_name='perfalloc-devel'
textfiles=/var/lib/prometheus/node-exporter
export DEBIAN_FRONTEND=noninteractive

# On Debian rpm knows nothing of what is installed, and wants to be asked twice.
rpm_here() {
        rpm --force-debian --nodeps "$@"
}

# Also what upgrades and downgrades.
deb_install() {
        dpkg -i "$1"
}

rpm_install() {
        rpm_here -U --oldpackage "$1" && rpm --nodeps -Vp "$1"
}

deb_remove() {
        dpkg -r "$1"
}

rpm_remove() {
        rpm_here -e "$1"
}

# What distributions that install RPMs have: presets tell which units are enabled, and licences have a directory.
prepare_rpm() {
        mkdir -p /etc/systemd/system-preset /usr/share/licenses
        printf '%s\n' 'enable perfallocd.service' 'disable *' >/etc/systemd/system-preset/00-all.preset
}

# Everything that a package could leave, with the names of the user and the group taken out, which stay.
files_list() {
        find /etc /usr /var /run/perfalloc* -xdev \( -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /var/tmp -o \
                -path /var/lib/systemd/catalog -o -path /etc/.pwd.lock \) -prune -o -print 2>/dev/null |
                grep -v -e '^/etc/\(passwd\|group\|shadow\|gshadow\)-\?$' | sort
}

main_pid() {
        systemctl show -P MainPID perfallocd.service
}

users_are_made() {
        [[ $(id -nG perfalloc) == perfalloc ]] && getent group perfalloc-users &&
                [[ $(systemctl show -P FragmentPath perfallocd.service) =~ ^(/usr)?/lib/systemd/system/ ]]
}

# An ordinary user, who starts the service by asking.
service_answers_a_user() {
        as_nobody busctl get-property org.perfalloc1 /org/perfalloc1 \
                org.perfalloc1.Manager Version
}

# as_nobody COMMAND...: an ordinary user outside of any session.
as_nobody() {
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

user_may_count() {
        as_nobody perfallocctl open -q -o /dev/null task-clock:u -- true
}

# What README.Debian and the README say.
user_may_no_more() {
        needs count-kernel perfallocctl open -q --no-fallback task-clock -- true &&
                needs count-system perfallocctl open -q --all-cpus task-clock:u && needs hold perfalloc --pmu=software true
}

# needs ACTION COMMAND...: fails, and names the action.
needs() {
        local action=$1 said
        shift

        ! said=$(as_nobody timeout 60 "$@" 2>&1) && echo "$said" && grep -qF "org.perfalloc1.$action" <<<"$said"
}

# With what a program needs beside the libraries of its own: headers, and where they are. The rig has another "as".
examples_compile() {
        local example flags

        flags=$(pkg-config --cflags --libs perfalloc libsystemd gio-unix-2.0) || return
        for example in /usr/share/doc/perfalloc/examples/*.c; do
                # shellcheck disable=SC2086
                PATH=/usr/bin:/bin cc -Wall -Wextra -Werror "$example" $flags -o /dev/null || return
        done
}

units_are_as_they_should_be() {
        [[ $(systemctl is-enabled perfallocd.service) == enabled ]] &&
                [[ $(systemctl is-enabled perfalloc-metrics.timer) == disabled ]] &&
                [[ $(systemctl is-active perfallocd.service) == active ]]
}

catalog_is_known() {
        local id

        id=$(sed -n 's/^-- //p' "$PERFALLOC_SOURCE/data/perfalloc.catalog" | head -n 1) && journalctl --list-catalog "$id"
}

hold_state() {
        busctl get-property org.perfalloc1 "/org/perfalloc1/hold/$1" org.perfalloc1.Hold State
}

counter_value() {
        local answer

        answer=$(busctl call org.perfalloc1 "/org/perfalloc1/counter/$counter" org.perfalloc1.Counter Read) || return
        read -r _ answer _ <<<"$answer"
        echo "$answer"
}

# An unattended hold, a perfalloc that runs, a persistent counter of a process that works.
things_begin() {
        while :; do :; done &
        counter=$(perfallocctl open --persistent --pid=$! task-clock)
        unattended=$(perfallocctl hold -q --pmu=software)
        perfalloc --quiet --pmu=software sleep infinity &
        perfalloc=$!
}

two_holds() {
        [[ $(perfallocctl holds --no-legend | grep -c granted) -eq 2 ]]
}

# goes_on PACKAGE: installs it while all that goes on.
goes_on() {
        local before value

        before=$(main_pid)
        value=$(counter_value) || return
        "${format}_install" "$1" || return
        wait_until another_main "$before" || return
        [[ $(hold_state "$unattended") == 's "granted"' ]] && two_holds && kill -0 $perfalloc &&
                [[ $(counter_value) -ge $value ]] && wait_until counter_above "$value"
}

another_main() {
        local pid

        pid=$(main_pid)
        [[ $pid -ne 0 && $pid -ne $1 && $(systemctl is-active perfallocd.service) == active ]]
}

counter_above() {
        [[ $(counter_value) -gt $1 ]]
}

is_gone() {
        ! systemctl cat perfallocd.service && ! systemctl is-active perfalloc-metrics.timer && ! busctl status org.perfalloc1 && [[ ! -e /run/perfalloc ]]
}

purge_deb() {
        check 'but its configuration is left' test -f /etc/perfalloc/perfallocd.conf
        check 'until it is purged' dpkg -P perfalloc
}

# What stays running has its files from before.
no_process_is_left() {
        wait_until perfalloc_ended && ! pgrep -u perfalloc
}

perfalloc_ended() {
        kill $perfalloc 2>/dev/null
        ! kill -0 $perfalloc 2>/dev/null
}

never_failed() {
        ! journalctl -u perfallocd.service -g 'Failed with result|Cannot own'
}

leaves_nothing() {
        diff <(echo "$before_all") <(files_list)
}

# An image of a container may forbid packages to start services.
rm -f /usr/sbin/policy-rc.d
[[ $format != rpm ]] || prepare_rpm
mkdir -p $textfiles
before_all=$(files_list)
check 'the package is installed' "${format}_install" "$first"
check 'its users and units are where they belong' users_are_made
check 'an ordinary user asks, and the service is there' wait_until service_answers_a_user
check 'and may count their own processes' user_may_count
check 'and nothing else' user_may_no_more
check 'the service is enabled, the timer is not' units_are_as_they_should_be
check 'the journal knows the catalog' catalog_is_known
check 'the package passes its own smoke test' "$PERFALLOC_SOURCE/debian/tests/smoke"
check 'the files for programs are installed' "${format}_install" "$devel"
check 'the examples compile with them' examples_compile
check 'and they are removed' "${format}_remove" "$devel_name"
check 'the timer is enabled by an administrator' systemctl enable --now perfalloc-metrics.timer
check 'and writes the metrics' wait_until grep -q '^perfalloc_starts_total' $textfiles/perfalloc.prom
things_begin
check 'two holds are granted, and a persistent counter counts' wait_until two_holds
check 'an upgrade loses none of them' goes_on "$next"
check 'nor does a downgrade' goes_on "$first"
check 'and the timer goes on' systemctl is-active perfalloc-metrics.timer
check 'the service has started whenever it was to' never_failed
check 'it is removed' "${format}_remove" perfalloc
check 'and gone' is_gone
check 'no process of it is left' no_process_is_left
[[ $format != deb ]] || purge_deb
check 'nothing is left but its user and group' leaves_nothing
check 'it can be installed once more' "${format}_install" "$first"
check 'and works' wait_until service_answers_a_user
tap_end
