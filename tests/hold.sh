# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Holds from shell scripts. To be sourced.

# hold_take USER [OPTIONS...]: prints the hold's path below /org/perfalloc1.
hold_take() {
        local hold

        hold=$(as "$1" busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager \
                HoldUnattended 'sta{sv}' test 0 "${@:2}") || return
        hold=${hold#o \"}
        echo "${hold%\"}"
}

hold_call() {
        busctl --timeout=infinity call org.perfalloc1 "$1" org.perfalloc1.Hold "$2"
}
