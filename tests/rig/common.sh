# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What both rigs share. To be sourced.

rig_source=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)

rig_die() {
        printf '%s: %s\n' "${0##*/}" "$*" >&2
        exit 1
}

# A machine that cannot run the rig skips the test, with the reason; a person who asked for it gets an
# error instead.
rig_skip() {
        if [[ ${rig_tap:-} ]]; then
                printf '1..0 # SKIP %s\n' "$*"
                exit 0
        fi
        rig_die "$@"
}

# Puts the path of the build directory, absolute, into rig_build: --build, else $PERFALLOC_BUILD,
# else build/ in the tree.
rig_find_build() {
        local build=${1:-${PERFALLOC_BUILD:-$rig_source/build}}

        [[ -f $build/build.ninja ]] ||
                rig_die "$build is no build directory: give --build DIR or PERFALLOC_BUILD"
        # shellcheck disable=SC2034
        rig_build=$(cd -- "$build" && pwd -P)
}

# Whether the lock is held around this command, as in: flock /run/perfalloc-rig.lock meson test.
rig_is_locked() {
        local pid=$PPID fd

        while ((pid > 1)); do
                for fd in "/proc/$pid/fd/"*; do
                        [[ ! $fd -ef /run/perfalloc-rig.lock ]] || return 0
                done
                pid=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
        done
        return 1
}

# Breakpoint slots and CPU-wide events belong to the whole machine, so only one rig runs at a time,
# also when several builds are tested at once. The lock ends with the process that holds descriptor 9.
rig_lock() {
        ! rig_is_locked || return 0
        exec 9>/run/perfalloc-rig.lock
        if ! flock -n 9; then
                printf '# waiting for another rig on this machine\n' >&2
                flock 9
        fi
}

# The functions below write into the /etc of a root directory ('' is this one, where a rig has put an
# overlay over it). A user or group of the machine that has the name or the number is hidden.

rig_forget() {
        sed -i -e "/^$2:/d" -e "/^[^:]*:[^:]*:$3:/d" "$1"
}

rig_write_group() {
        rig_forget "$1/etc/group" "$2" "$3"
        echo "$2:x:$3:" >>"$1/etc/group"
}

rig_write_user() {
        rig_write_group "$@"
        rig_forget "$1/etc/passwd" "$2" "$3"
        echo "$2:x:$3:$3:$2:/run/rig/home/$2:/bin/sh" >>"$1/etc/passwd"
        if [[ -f $1/etc/shadow ]]; then
                sed -i "/^$2:/d" "$1/etc/shadow"
                echo "$2:*:19000::::::" >>"$1/etc/shadow"
        fi
}

rig_test_users=(alice bob carol dave)

rig_write_test_users() {
        local i

        for i in "${!rig_test_users[@]}"; do
                rig_write_user "$1" "${rig_test_users[i]}" $((2001 + i))
        done
        sed -i 's/^\(perfalloc-users:.*:\)[^:]*$/\1carol/' "$1/etc/group"
}

rig_make_homes() {
        local i

        mkdir -p "$1"
        for i in "${!rig_test_users[@]}"; do
                install -d -o $((2001 + i)) -g $((2001 + i)) "$1/${rig_test_users[i]}"
        done
}

# alice may do everything but manage; carol has what the package's example gives to the group.
rig_write_rules() {
        local directory=$1/etc/polkit-1/rules.d

        mkdir -p "$directory"
        find "$directory" -type f -delete
        find "$rig_source/polkit" -name '*.rules' -exec cp -t "$directory" {} +
        cat >"$directory/00-rig.rules" <<'END'
polkit.addRule(function(action, subject) {
        if (action.id.indexOf("org.perfalloc1.") == 0 && action.id != "org.perfalloc1.manage" &&
            subject.user == "alice")
                return polkit.Result.YES;
        if (action.id == "org.perfalloc1.sample-own" && subject.user == "dave")
                return polkit.Result.YES;
});
END
        chown -R polkitd: "$directory"
        chmod 700 "$directory"
}
