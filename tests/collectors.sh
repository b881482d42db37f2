# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Prometheus, its node_exporter and PCP with pmdaopenmetrics, unmodified, below $collectors. To be sourced in the rig.

# shellcheck source=tests/pcp.sh
. "$PERFALLOC_SOURCE/tests/pcp.sh"

collectors=/run/collectors

# unpack NAME PACKAGE...: below $collectors/NAME. Debian's packages want a systemd to be installed, so they are
# unpacked instead, once for a build directory.
unpack() {
        local name=$1 cache=$PERFALLOC_BUILD/tests/collectors-$1
        shift

        if [[ ! -d $cache ]]; then
                mkdir -p "$cache.new/debs" && (
                        cd "$cache.new/debs" && apt-get download "$@" || exit
                        for deb in *.deb; do dpkg -x "$deb" .. || exit; done
                        rm -rf "$cache.new/debs"
                ) >/dev/null 2>&1 && mv "$cache.new" "$cache" || return
        fi
        mkdir -p $collectors
        rm -rf "${collectors:?}/$name"
        cp -a "$cache" "$collectors/$name"
}

# free_ports N: of the loopback device.
free_ports() {
        python3 -c 'import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

# ---- Prometheus ----

prometheus_unpack() {
        # shellcheck disable=SC2046
        unpack prometheus prometheus prometheus-node-exporter $(package_needs prometheus promtool) &&
                PATH=$PATH:$collectors/prometheus/usr/bin
}

# prometheus_start TEXTFILE-DIRECTORY: node_exporter, and a Prometheus that asks it five times a second.
prometheus_start() {
        local exporter here=$collectors/prometheus

        read -r exporter prometheus <<<"$(free_ports 2)"
        cat >$here/prometheus.yml <<END
scrape_configs:
  - job_name: node
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{ targets: ['127.0.0.1:$exporter'] }]
END
        prometheus-node-exporter --collector.disable-defaults --collector.textfile \
                --collector.textfile.directory="$1" --web.listen-address="127.0.0.1:$exporter" \
                >$here/exporter.log 2>&1 &
        prometheus --config.file=$here/prometheus.yml --storage.tsdb.path=$here/data \
                --web.listen-address="127.0.0.1:$prometheus" >$here/prometheus.log 2>&1 &
        # shellcheck disable=SC2034
        exporter_url=http://127.0.0.1:$exporter prometheus_url=http://127.0.0.1:$prometheus
}

# query EXPRESSION: prints what there is now.
query() {
        promtool query instant "$prometheus_url" "$1"
}

# ---- PCP ----

pcp_home=$collectors/pcp

pcp_unpack_openmetrics() {
        local library

        # shellcheck disable=SC2046
        unpack pcp pcp pcp-conf $(package_needs pcp libpcp) python3-pcp \
                python3-requests python3-urllib3 python3-chardet python3-charset-normalizer python3-idna \
                python3-certifi || return
        pcp_libraries=$(dirname "$(find $pcp_home/usr/lib -name 'libpcp.so.[0-9]' | head -n 1)")
        # Python finds libraries elsewhere by the names that a linker looks for.
        for library in "$pcp_libraries"/libpcp*.so.?; do
                ln -sf "${library##*/}" "${library%.?}"
        done
        sed -e "s#=/\(etc\|usr\|var\|run\)#=$pcp_home/\1#" -e 's/^PCP_\(USER\|GROUP\)=.*/PCP_\1=root/' \
                $pcp_home/etc/pcp.conf >$pcp_home/pcp.conf
        mkdir -p $pcp_home/run/pcp $pcp_home/config
        printf 'root {\nopenmetrics 144:*:*\n}\n' >$pcp_home/pmns
        printf 'openmetrics 144 pipe binary notready %s -n -u root -c %s -d 144 -l %s\n' \
                "/usr/bin/python3 $pcp_home/usr/lib/pcp/pmdas/openmetrics/pmdaopenmetrics.python" \
                $pcp_home/config $pcp_home/pmda.log >$pcp_home/pmcd.conf
}

pcp_run() {
        (cd $pcp_home/var/lib/pcp/pmdas/openmetrics && PCP_CONF=$pcp_home/pcp.conf \
                LD_LIBRARY_PATH=$pcp_libraries PYTHONPATH=$pcp_home/usr/lib/python3/dist-packages exec "$@")
}

pcp_start_openmetrics() {
        pcp_run $pcp_home/usr/lib/pcp/bin/pmcd -f -A -q 60 -c $pcp_home/pmcd.conf -n $pcp_home/pmns -U root \
                -s $pcp_home/socket -p "$(free_ports 1)" -i 127.0.0.1 -l $pcp_home/pmcd.log &
}

# pcp_value METRIC: below openmetrics.
pcp_value() {
        pcp_run $pcp_home/usr/bin/pminfo -h unix:$pcp_home/socket -f "openmetrics.$1"
}
