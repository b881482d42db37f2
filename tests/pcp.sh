# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# PCP's monitor pmdaperfevent, unmodified, below $pcp. To be sourced in the rig.

pcp=/run/pcp
perflock=$pcp/var/lib/pcp/pmdas/perfevent/perflock

# package_needs PACKAGE START: the packages that it depends on and whose names start so. Debians differ in them.
package_needs() {
        apt-cache depends --no-recommends --no-suggests "$1" | sed -n "s/^ *Depends: \($2[^ ]*\)\$/\1/p"
}

# Debian's package wants a systemd to be installed, so it is unpacked instead, once for a build directory.
pcp_unpack() {
        local cache=$PERFALLOC_BUILD/tests/pcp

        if [[ ! -d $cache ]]; then
                # shellcheck disable=SC2046
                mkdir -p "$cache.new/debs" && (
                        cd "$cache.new/debs" && apt-get download pcp pcp-conf $(package_needs pcp libpcp) &&
                                for deb in *.deb; do dpkg -x "$deb" .. || exit; done
                ) >/dev/null 2>&1 && mv "$cache.new" "$cache" || return
        fi
        rm -rf $pcp
        mkdir -p $pcp && cp -a "$cache"/{etc,usr,var} $pcp/
}

# pcp_configure FILE: which will be its configuration. Two software events that its monitor counts on every CPU;
# clocks, because they tell for how long they counted.
pcp_configure() {
        local directory=${perflock%/*}

        pcp_conf=$1
        sed -e "s#=/\(etc\|usr\|var\|run\)#=$pcp/\1#" -e 's/^PCP_\(USER\|GROUP\)=.*/PCP_\1=root/' \
                $pcp/etc/pcp.conf >"$pcp_conf" || return
        rm -f "$directory"/*
        cp $pcp/usr/lib/pcp/pmdas/perfevent/pmdaperfevent "$directory/"
        printf '[perf]\nPERF_COUNT_SW_CPU_CLOCK\nPERF_COUNT_SW_TASK_CLOCK\n' | tee "$directory/perfevent.conf" \
                >$pcp/etc/pcp/perfevent/perfevent.conf
        printf 'root { perfevent }\nperfevent {\nversion 127:0:0\nactive 127:0:1\nhwcounters 127:*:*\nderived 127:*:*\n}\n' \
                >$pcp/pmns
        pcp_libraries=$(dirname "$(find $pcp/usr/lib -name 'libpcp.so.[0-9]' | head -n 1)")
}

# Commands for dbpmda go to $pcp/commands (descriptor 5), its answers to $pcp/said.
pcp_start() {
        mkfifo $pcp/commands
        (cd "${perflock%/*}" && PCP_CONF=$pcp_conf LD_LIBRARY_PATH=$pcp_libraries \
                exec $pcp/usr/bin/dbpmda -n $pcp/pmns -ie -q 5) <$pcp/commands >$pcp/said 2>&1 &
        dbpmda=$!
        exec 5>$pcp/commands
        echo "open pipe ./pmdaperfevent -d 127 -l $pcp/log" >&5
}
