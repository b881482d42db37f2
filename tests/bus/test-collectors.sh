#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What perfallocctl metrics prints, collected by the real programs: Prometheus by way of node_exporter, and PCP's
# pmdaopenmetrics; and each query of the dashboard for Grafana, asked of that Prometheus. Run by tests/rig/fast.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"
# shellcheck source=tests/collectors.sh
. "$PERFALLOC_SOURCE/tests/collectors.sh"

text=/run/textfiles
dashboard=$PERFALLOC_SOURCE/data/perfalloc-dashboard.json

# As perfalloc-metrics.service does.
collect() {
        perfallocctl metrics >$text/perfalloc.prom.new && mv $text/perfalloc.prom.new $text/perfalloc.prom
}

collect_on() {
        while collect; do
                sleep 0.1
        done
}

promtool_is_content() {
        local said

        said=$(perfallocctl metrics | promtool check metrics 2>&1) && [[ -z $said ]] || {
                echo "$said"
                return 1
        }
}

exporter_exports() {
        local said

        said=$(python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$exporter_url/metrics")
        grep -qx 'node_textfile_scrape_error 0' <<<"$said" && grep -qx 'perfalloc_yielding 1' <<<"$said"
}

# value_of EXPRESSION: the value of its only sample.
value_of() {
        query "$1" | sed -n 's/.* => \([^ ]*\) @.*/\1/p'
}

is_above() {
        local value

        value=$(value_of "$1")
        [[ -n $value && $value != NaN ]] && python3 -c "assert $value > $2"
}

# The queries of the dashboard, one a line, its variables set.
dashboard_queries() {
        python3 - "$dashboard" <<'END'
import json, sys
for panel in json.load(open(sys.argv[1]))['panels']:
    for target in panel['targets']:
        print(target['expr'].replace('$instance', '.*').replace('$__rate_interval', '1m'))
END
}

every_query_has_an_answer() {
        local expression none=0

        while IFS= read -r expression; do
                wait_until query_answers "$expression" >/dev/null || {
                        echo "no answer to: $expression"
                        none=1
                }
        done < <(dashboard_queries)
        [[ $none -eq 0 && $(dashboard_queries | wc -l) -gt 10 ]]
}

query_answers() {
        [[ $(query "$1") == *' => '* ]]
}

who_holds_and_who_waits() {
        local said

        said=$(dashboard_queries | while IFS= read -r expression; do
                [[ $expression != *group_left* ]] || query "$expression"
        done)
        echo "$said"
        [[ $(wc -l <<<"$said") -eq 2 ]] && grep -q 'reason="first".*user="alice"' <<<"$said" &&
                grep -q 'reason="second".*state="queued".*user="root"' <<<"$said"
}

totals_outlive_a_crash() {
        local before

        before=$(value_of 'sum(perfalloc_grants_total)')
        service-kill --again && hold_as root third 1 pmus as 1 software >/dev/null &&
                wait_until is_above 'sum(perfalloc_grants_total)' "$before" &&
                [[ $(value_of 'resets(perfalloc_grants_total{confirmed="yes"}[10m])') -eq 0 ]]
}

pcp_has() {
        pcp_value "perfalloc.$1" | grep -q "$2"
}

# hold_as USER REASON OPTIONS...
hold_as() {
        as "$1" busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended 'sta{sv}' "$2" 0 "${@:3}"
}

# Somebody holds, somebody waits, and a monitor has given way.
people_come() {
        perfallocctl open --persistent --all-cpus --role=monitor mem:0x1000/8:w &&
                hold_as alice first 2 pmus as 1 breakpoint mode s exclusive &&
                hold_as root second 2 pmus as 1 breakpoint wait_usec t 600000000 &&
                wait_until is_granted
}

is_granted() {
        [[ $(perfallocctl metrics) == *'state="granted"'* ]]
}

test_prometheus() {
        prometheus_start $text
        collect_on &
        check 'promtool finds nothing wrong with the text' promtool_is_content
        check 'node_exporter reads the file and passes it on' wait_until exporter_exports
        check 'Prometheus has the seconds that monitors have yielded' \
                wait_until is_above 'rate(perfalloc_yielded_seconds_total[1m])' 0
        check 'every query of the dashboard has an answer' every_query_has_an_answer
        check 'the dashboard tells who holds and who waits' who_holds_and_who_waits
        check 'no counter of Prometheus is reset by a crash' totals_outlive_a_crash
}

test_pcp() {
        install -m 755 "$PERFALLOC_SOURCE/data/perfalloc-openmetrics" $pcp_home/config/perfalloc
        pcp_start_openmetrics
        check 'pmdaopenmetrics runs the program and has its values' \
                wait_until pcp_has perfalloc_yielding 'value 1$'
        check 'and the totals with their labels' pcp_has perfalloc_grants_total 'confirmed:yes.* value [1-9]'
}

check 'somebody holds, somebody waits, a monitor yields' people_come
mkdir -p $text
if prometheus_unpack; then
        test_prometheus
else
        skip 'Prometheus collects' "Debian's packages of it cannot be had"
fi
if pcp_unpack_openmetrics; then
        test_pcp
else
        skip 'PCP collects' "Debian's packages of it cannot be had"
fi
for job in $(jobs -p); do
        kill "$job"
done
tap_end
