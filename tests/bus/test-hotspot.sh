#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# hotspot under Xvfb and the broker: a user without privileges records a program, the kernel with it, and looks at the
# result. Run by tests/rig/fast. A picture of it is left in the build directory, as hotspot.png.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

for tool in Xvfb hotspot xdotool import; do
        command -v $tool >/dev/null || {
                echo "1..0 # SKIP $tool is not installed"
                exit 0
        }
done

work=$(mktemp -d)
chmod 777 "$work"
cd "$work" || exit
export NO_AT_BRIDGE=1 QT_X11_NO_MITSHM=1
start=561,469 record=290,375 view=830,375 # its buttons

# The fields of its page for recording are filled with what was recorded last.
settings() {
        mkdir -p .config
        cat >.config/hotspotrc <<END
[RecordPage]
applications=$work/busy
callGraph=fp
eventType=cpu-clock:ku

[RecordPage][Application $work/busy]
params=
workingDir=$work
END
        cat >busy <<'END'
#!/bin/sh
i=0
while [ $i -lt 50000 ]; do i=$((i + 1)); : </dev/null; done
END
        chmod 755 busy
        chown -R alice: .config busy
}

# colour X,Y: the pixel there, as #RRGGBB.
colour() {
        import -window root -crop "1x1+${1/,/+}" txt:- 2>/dev/null | grep -oE '#[0-9A-F]{6}' | head -n 1
}

click() {
        xdotool mousemove "${1%,*}" "${1#*,}" click 1
}

# The area for what perf says, where it has no text; and no text beside the options above.
recording_is_shown() {
        [[ $(colour 1050,500) == '#FFFFFF' && $(colour 600,280) != '#FFFFFF' ]]
}

recording_is_chosen() {
        recording_is_shown || { click $start && false; }
}

# perf writes the header last.
recording_has_ended() {
        as alice perf script -i perf.data -F comm,event | grep -q .
}

result_is_shown() {
        ! recording_is_shown || click $view
        # the area for what its parser says
        [[ $(colour 600,280) == '#FFFFFF' ]]
}

records() {
        wait_until xdotool search --onlyvisible --class hotspot &&
                wait_until recording_is_chosen && click $record && wait_until test -s perf.data &&
                wait_until recording_has_ended
}

samples_are_there() {
        as alice perf script -G -i perf.data -F comm,ip >script 2>&1
        tail -n 20 script
        grep -qE '^ *busy +ffff' script && grep -qE '^ *busy +[0-9a-e]' script
}

shows() {
        [[ -s perf.data ]] && wait_until result_is_shown
        set -- $?
        import -window root "$PERFALLOC_BUILD/hotspot.png"
        return "$1"
}

settings
Xvfb -displayfd 3 -screen 0 1280x900x24 -nolisten tcp 3>display >xvfb 2>&1 &
screen=$!
wait_until grep -q . display
DISPLAY=:$(<display)
export DISPLAY
as alice env HOME="$work" perfallocctl run --allow=sample-own,count-kernel hotspot >hotspot 2>&1 </dev/null &
program=$!
check 'hotspot records a program' records
check 'with samples of the program and of the kernel' samples_are_there
check 'and shows them' shows
[[ $tap_failures -eq 0 ]] || sed 's/^/# /' hotspot
kill $program $screen
wait
tap_end
