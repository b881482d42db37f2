# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# TAP for tests that are shell scripts. To be sourced.

tap_cases=0
tap_failures=0

# check PROMISE COMMAND [ARG...]: one case. What the command says is shown when it fails.
check() {
        local promise=$1 said
        shift

        tap_cases=$((tap_cases + 1))
        if said=$("$@" 2>&1); then
                printf 'ok %d %s\n' "$tap_cases" "$promise"
        else
                printf 'not ok %d %s\n' "$tap_cases" "$promise"
                printf '# failed: %s\n' "$*"
                [[ -z $said ]] || sed 's/^/# /' <<<"$said"
                tap_failures=$((tap_failures + 1))
        fi
}

# check_not PROMISE COMMAND [ARG...]: the command has to fail.
check_not() {
        local promise=$1
        shift

        check "$promise" tap_fails "$@"
}

tap_fails() {
        ! "$@"
}

# skip PROMISE REASON
skip() {
        tap_cases=$((tap_cases + 1))
        printf 'ok %d %s # SKIP %s\n' "$tap_cases" "$1" "$2"
}

# wait_until COMMAND [ARG...]: until it succeeds; fails after 20 s.
wait_until() {
        local i

        for ((i = 0; i < 2000; i++)); do
                "$@" >/dev/null 2>&1 && return
                sleep 0.01
        done
        printf 'never happened: %s\n' "$*"
        return 1
}

tap_end() {
        printf '1..%d\n' "$tap_cases"
        [[ $tap_failures -eq 0 ]]
        exit
}
