#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A graphical session's own authentication agent, under Xvfb: it asks for the password that perfalloc needs. Run by
# tests/rig/nspawn. A picture of it is left in the build directory, as agent.png.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

for tool in Xvfb lxpolkit xdotool import; do
        command -v $tool >/dev/null || {
                echo "1..0 # SKIP $tool is not installed"
                exit 0
        }
done

place=/run/agent
mkdir -m 777 $place
# polkit asks for root's password where nobody is in the group sudo
echo root:opensesame | chpasswd
gpasswd --members '' sudo >/dev/null 2>&1

# In bob's local, active session: a screen, the agent, and what is typed into its window.
cat >$place/session <<'END'
#!/bin/bash
export HOME=/run/rig/home/bob NO_AT_BRIDGE=1
# It refuses clients while it resets itself, which it does when its last one leaves.
Xvfb -displayfd 3 -noreset -screen 0 640x320x24 -nolisten tcp 3>/run/agent/display >/run/agent/xvfb 2>&1 &
screen=$!
until grep -qs . /run/agent/display; do sleep 0.05; done
DISPLAY=:$(cat /run/agent/display)
export DISPLAY
lxpolkit >/run/agent/lxpolkit 2>&1 &
agent=$!
# Nobody tells when polkit knows the agent: until then it says that there is none.
window=
for ((i = 0; i < 100; i++)); do
        perfalloc --exclusive --pmu=breakpoint --reason='a test' sh -c 'echo it runs' >/run/agent/said 2>&1 </dev/null &
        asker=$!
        while kill -0 $asker 2>/dev/null && [[ -z $window ]]; do
                window=$(xdotool search --onlyvisible --name Authent 2>/dev/null | tail -n 1)
                sleep 0.05
        done
        grep -q 'has no agent' /run/agent/said || break
        wait $asker
done
if [[ $window ]]; then
        import -window root /run/agent/agent.png 2>/run/agent/import
        xdotool windowfocus --sync "$window" 2>/dev/null
        xdotool type "$1"
        xdotool key Return
        for ((i = 0; i < 200; i++)); do
                kill -0 $asker 2>/dev/null || break
                sleep 0.05
        done
        # a wrong password: the agent asks again, until it is told to stop
        for ((i = 0; i < 200; i++)); do
                kill -0 $asker 2>/dev/null || break
                xdotool key Escape
                sleep 0.05
        done
fi
wait $asker
status=$?
kill $agent $screen
wait $agent $screen
exit $status
END
chmod 755 $place/session

with_password() {
        rm -f $place/said $place/display
        session bob $place/session "$1"
        set -- $?
        cat $place/said $place/lxpolkit
        return "$1"
}

right_password_grants() {
        with_password opensesame && grep -qx 'it runs' $place/said && cp $place/agent.png "$PERFALLOC_BUILD/agent.png"
}

wrong_password_is_told() {
        with_password wrong
        ! grep -qx 'it runs' $place/said && grep -qE 'the authentication (failed|was dismissed)' $place/said
}

check 'the agent of a graphical session asks, and the right password grants the hold' right_password_grants
check 'a wrong one does not, and that is said' wrong_password_is_told
tap_end
