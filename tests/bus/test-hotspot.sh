#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# hotspot under Xvfb and the broker: a user without privileges records a program, the kernel with it, and looks at the
# result. Run by tests/rig/fast. A picture of it is left in the build directory, as hotspot.png.
set -u

# shellcheck source=tests/tap.sh
. "$PERFALLOC_SOURCE/tests/tap.sh"

for tool in Xvfb hotspot dbus-run-session import; do
        command -v $tool >/dev/null || {
                echo "1..0 # SKIP $tool is not installed"
                exit 0
        }
done

work=$(mktemp -d)
chmod 777 "$work"
cd "$work" || exit

# The fields of its page for recording are filled with what was recorded last. mmapPages=0 is perf's own default: those
# of newer versions, 16 MB for each CPU, are more than an ordinary user may lock (perf_event_mlock_kb, RLIMIT_MEMLOCK).
settings() {
        mkdir -p .config
        cat >.config/hotspotrc <<END
[RecordPage]
applications=$work/busy
callGraph=fp
eventType=cpu-clock:ku
mmapPages=0

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

# In alice's session: hotspot records the shell and shows what it did.
cat >session <<'END'
#!/bin/sh
perfallocctl run --allow=sample-own,count-kernel hotspot &
program=$!
"$PERFALLOC_SOURCE/tests/bus/press-buttons.py" dash 'Record Data' 'Start Recording' 'View Results'
shown=$?
import -window root "$1"
kill $program
exit $shown
END
chmod 755 session

records_and_shows() {
        as alice env HOME="$work" QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1 \
                dbus-run-session -- ./session "$work/hotspot.png" >said 2>&1 </dev/null
        set -- $?
        cp hotspot.png "$PERFALLOC_BUILD/hotspot.png"
        [[ $1 -eq 0 ]] || cat said
        return "$1"
}

samples_are_there() {
        as alice perf script -G -i perf.data -F comm,ip >script 2>&1
        tail -n 20 script
        grep -qE '^ *busy +ffff' script && grep -qE '^ *busy +[0-9a-e]' script
}

settings
Xvfb -displayfd 3 -noreset -screen 0 1280x900x24 -nolisten tcp 3>display >xvfb 2>&1 &
screen=$!
wait_until grep -q . display
DISPLAY=:$(<display)
export DISPLAY
check 'hotspot records a program and shows it' records_and_shows
check 'with samples of the program and of the kernel' samples_are_there
kill $screen
wait
tap_end
