# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# PCP's pmdaperfevent as a peer, unmodified, below $pcp. To be sourced in a rig.

pcp=/run/pcp
perflock=$pcp/var/lib/pcp/pmdas/perfevent/perflock

# Debian's package wants a systemd to be installed, so it is unpacked instead, once for a build directory.
pcp_unpack() {
        local cache=$PERFALLOC_BUILD/tests/pcp

        if [[ ! -d $cache ]]; then
                mkdir -p "$cache.new/debs" && (
                        cd "$cache.new/debs" && apt-get download pcp pcp-conf libpcp3 libpcp-pmda3 &&
                                for deb in *.deb; do dpkg -x "$deb" .. || exit; done
                ) >/dev/null 2>&1 && mv "$cache.new" "$cache" || return
        fi
        rm -rf $pcp
        mkdir -p $pcp && cp -a "$cache"/{etc,usr,var} $pcp/
}

# Two software events that its monitor counts on every CPU. Clocks, because they tell for how long they counted.
pcp_configure() {
        local directory=${perflock%/*}

        sed -e "s#=/\(etc\|usr\|var\|run\)#=$pcp/\1#" -e 's/^PCP_\(USER\|GROUP\)=.*/PCP_\1=root/' \
                $pcp/etc/pcp.conf >$pcp/pcp.conf || return
        rm -f "$directory"/*
        cp $pcp/usr/lib/pcp/pmdas/perfevent/pmdaperfevent "$directory/"
        printf '[perf]\nPERF_COUNT_SW_CPU_CLOCK\nPERF_COUNT_SW_TASK_CLOCK\n' | tee "$directory/perfevent.conf" \
                >$pcp/etc/pcp/perfevent/perfevent.conf
        printf 'root { perfevent }\nperfevent {\nversion 127:0:0\nactive 127:0:1\nhwcounters 127:*:*\nderived 127:*:*\n}\n' \
                >$pcp/pmns
        pcp_libraries=$(dirname "$(find $pcp/usr/lib -name libpcp.so.3)")
}

pcp_start() {
        mkfifo $pcp/commands
        (cd "${perflock%/*}" && PCP_CONF=$pcp/pcp.conf LD_LIBRARY_PATH=$pcp_libraries \
                exec $pcp/usr/bin/dbpmda -n $pcp/pmns -ie -q 5) <$pcp/commands >$pcp/said 2>&1 &
        dbpmda=$!
        exec 5>$pcp/commands
        echo "open pipe ./pmdaperfevent -d 127 -l $pcp/log" >&5
        echo 'fetch perfevent.active' >&5
        wait_until pcp_finds_pid && wait_until test -e $perflock && wait_until pcp_has_events && return
        cat $pcp/said $pcp/log >&2
        return 1
}

# The child of dbpmda that stays; others come and go.
pcp_finds_pid() {
        for pcp_pid in $(<"/proc/$dbpmda/task/$dbpmda/children"); do
                [[ $(<"/proc/$pcp_pid/comm") != pmdaperfevent ]] || return 0
        done
        return 1
}

pcp_has_events() {
        find "/proc/$pcp_pid/fd" -lname 'anon_inode:\[perf_event\]' | grep -q .
}

pcp_stop() {
        exec 5>&-
        wait "$dbpmda"
}
