# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The broker with an unmodified perf. To be sourced; event,
# second and sampled are what is counted, as in perf's -e; forking what tests/forking.c counts.

work=$(mktemp -d)
chmod 777 "$work"
busy=('sh' '-c' 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done')

# brokered [OPTION...] -- COMMAND...: as alice, without a hold.
brokered() {
        local options=()

        while [[ $1 != -- ]]; do
                options+=("$1")
                shift
        done
        (cd "$work" && as alice perfallocctl run "${options[@]}" "${@:2}")
}

# stat_counts N [ARG...]: perf stat has so many events, and each counted something.
stat_counts() {
        local n=$1 status=0
        shift

        brokered "$@" 2>"$work/said" || status=$?
        cat "$work/said"
        [[ $status -eq 0 && $(grep -cE '^[0-9.]*[1-9][0-9.]*,' "$work/said") -eq $n ]]
}

stat_own() {
        stat_counts 1 -- perf stat -x, -e "$event" true
}

stat_repeated() {
        stat_counts 1 -- perf stat -x, -r 3 -e "$event" true
}

stat_everybody() {
        stat_counts 1 --allow=count-system -- perf stat -x, -a -e "$event" "${busy[@]}"
}

stat_group() {
        stat_counts 2 -- perf stat -x, -e "{$event,$second}" "${busy[@]}"
}

stat_refused() {
        brokered -- perf stat -x, -a -e "$event" true && return 1
        return 0
}

# samples_of FILE: perf report shows the program.
samples_of() {
        local report

        report=$(as alice perf report -i "$work/$1" --stdio 2>&1)
        echo "$report"
        grep -qE '^ +[0-9.]+% +.*sh ' <<<"$report"
}

record_own() {
        brokered -- perf record -o own.data -e "$sampled" "${busy[@]}" && samples_of own.data
}

record_chains() {
        brokered -- perf record -g -o chains.data -e "$sampled" "${busy[@]}" && samples_of chains.data &&
                as alice perf script -i "$work/chains.data" | grep -qE '^\s+[0-9a-f]+ .*\('
}

record_everybody() {
        brokered --allow=count-system -- perf record -a -o all.data -e "$sampled" "${busy[@]}" &&
                samples_of all.data
}

# with_target COMMAND...: while another process of alice's works, whose pid is TARGET in the arguments.
with_target() {
        local target status=0

        # shellcheck disable=SC2016
        as alice sh -c 'echo $$ >'"$work/target"'; while :; do :; done' &
        wait_until test -s "$work/target"
        target=$(<"$work/target")
        "${@//TARGET/$target}" || status=$?
        kill "$target"
        wait
        rm "$work/target"
        return $status
}

stat_process() {
        with_target stat_counts 1 -- perf stat -x, -p TARGET -e "$event" sleep 0.1
}

record_process() {
        with_target brokered -- perf record -p TARGET -o process.data -e "$sampled" sleep 0.2 &&
                samples_of process.data
}

# It reads keys: from a FIFO that nobody writes, for at the end of a file it asks again and again.
top_everybody() {
        local status=0

        mkfifo -m 666 "$work/keys"
        # shellcheck disable=SC2016
        brokered --allow=count-system -- sh -c 'echo $$ >top.pid; exec perf top --stdio -a -d 1 -e "$1"' sh "$sampled" \
                <>"$work/keys" >"$work/top" 2>&1 &
        wait_until grep -qE '^ +[0-9.]+%' "$work/top" || status=1
        kill -INT "$(<"$work/top.pid")"
        wait
        cat "$work/top"
        return $status
}

in_a_hold() {
        (cd "$work" && as alice perfalloc perf stat -x, -e "$event" "${busy[@]}") >"$work/said" 2>&1
        cat "$work/said"
        grep -qE '^[0-9.]*[1-9][0-9.]*,' "$work/said"
}

# Threads that open events while others fork, with signals all the time.
forking_program() {
        brokered -- "${forking[@]}"
}
