#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A person who is asked: an agent in a real, local, active session. Run by tests/rig/nspawn.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

agent=$PERFALLOC_BUILD/tests/systemd/polkit-agent
place=/run/prompt

# join PID COMMAND...: runs it in the session of that process, where polkit lets an agent speak for it.
join() {
        local cgroup

        cgroup=$(sed -n "s/^0:://p" "/proc/$1/cgroup")
        echo "$BASHPID" >"/sys/fs/cgroup$cgroup/cgroup.procs" || exit
        shift
        exec "$@"
}

# asked ANSWER COMMAND...: runs it as bob, in a local session, with an agent that gives this answer. What the
# agent was asked is in $place/asked.
asked() {
        local answer=$1 status=0 session runner asker
        shift

        rm -rf $place
        mkdir -m 777 $place
        # systemd-run makes one dollar sign of two, so the shell learns its number from /proc.
        # shellcheck disable=SC2016
        session bob sh -c 'read -r pid rest </proc/self/stat
                echo "$pid $XDG_SESSION_ID" >/run/prompt/session.new
                mv /run/prompt/session.new /run/prompt/session
                until [ -e /run/prompt/go ]; do sleep 0.01; done
                [ ! -e /run/prompt/no-agent ] || exit 9
                "$@"' - "$@" </dev/null &
        runner=$!
        wait_until test -s $place/session || return 9
        read -r -a session <$place/session
        join "${session[0]}" "$agent" "${session[1]}" "$answer" >$place/asked &
        asker=$!
        wait_until grep -q ready $place/asked || touch $place/no-agent
        touch $place/go
        wait $runner || status=$?
        kill $asker
        wait $asker 2>/dev/null
        return $status
}

was_asked_for() {
        grep -q "^org.perfalloc1.$1: " $place/asked || {
                cat $place/asked
                false
        }
}

yes_grants() {
        asked yes perfalloc --exclusive --pmu=breakpoint --reason='a test' sh -c 'echo it runs' | grep -x 'it runs' &&
                was_asked_for hold-exclusive && grep -q 'a test' $place/asked
}

no_refuses() {
        local said

        said=$(asked no perfalloc --exclusive --pmu=breakpoint sh -c 'echo it runs' 2>&1)
        echo "$said"
        was_asked_for hold-exclusive && ! grep -qx 'it runs' <<<"$said"
}

not_asked_without_leave() {
        asked yes busctl call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended \
                'sta{sv}' test 0 0 --allow-interactive-authorization=no
        [[ $? -ne 0 ]] && ! was_asked_for hold-unattended
}

asked_with_leave() {
        asked yes busctl --timeout=infinity --allow-interactive-authorization=yes call org.perfalloc1 /org/perfalloc1 \
                org.perfalloc1.Manager HoldUnattended 'sta{sv}' test 0 0 && was_asked_for hold-unattended
}

perfallocctl_asks() {
        asked yes perfallocctl -q hold --reason='a test' | grep -qx '[1-9][0-9]*' && was_asked_for hold-unattended &&
                grep -q 'a test' $place/asked
}

perfallocctl_takes_no_for_an_answer() {
        asked no perfallocctl -q hold
        [[ $? -eq 3 ]] && was_asked_for hold-unattended
}

not_asked_for_what_is_allowed() {
        asked no perfalloc --pmu=breakpoint true && ! was_asked_for hold
}

check 'somebody who authenticates gets an exclusive hold, and is shown the reason' yes_grants
check 'who does not is refused, and the command never starts' no_refuses
check 'nobody is asked when the message does not allow it' not_asked_without_leave
check 'and is when it does' asked_with_leave
check 'perfallocctl lets somebody be asked' perfallocctl_asks
check 'and is not permitted when the answer is no' perfallocctl_takes_no_for_an_answer
check 'nobody is asked for what an active session may do' not_asked_for_what_is_allowed
tap_end
