# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# A command that is tested, in alice's home. To be sourced in the rig.

dir=/run/rig/home/alice
cd $dir || exit

# python3 in PATH may be a script that looks for the right one, and that takes longer than what is tested.
[[ ! -x /usr/bin/python3 ]] || hash -p /usr/bin/python3 python3

# run STATUS COMMAND...: what it says is in $dir/said.
run() {
        local wanted=$1 status=0
        shift

        "$@" >$dir/said 2>&1 </dev/null || status=$?
        cat $dir/said
        echo "exit status $status, wanted $wanted"
        [[ $status -eq $wanted ]]
}

said() {
        grep -qF -- "$1" $dir/said
}

# ended STATUS: what was started ends so.
ended() {
        local status=0

        wait $pid || status=$?
        cat $dir/said
        echo "exit status $status, wanted $1"
        [[ $status -eq $1 ]]
}

# From now on this machine has no core PMU, as many virtual machines have none. The service is started anew.
without_core_pmu() {
        local pmus=/run/no-core-pmu pmu

        mkdir -p $pmus/devices
        for pmu in /sys/bus/event_source/devices/*; do
                [[ ${pmu##*/} == cpu || -e $pmu/cpus ]] || ln -s "$(realpath "$pmu")" $pmus/devices
        done
        mount --bind $pmus /sys/bus/event_source
        service-stop
        service-start
}
