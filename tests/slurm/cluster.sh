# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# A Slurm cluster of three nodes on one machine. To be sourced in tests/rig/fast.
#
# Each node is a slurmd in a mount namespace of its own, with a bus and a perfallocd of its own at the usual
# places; what the rig's commands do in there is done to that node (node_run). With a cluster_cgroup it has a cgroup2
# of its own, too, and Slurm has a cgroup for each step.

cluster=/run/cluster
cluster_nodes=(node1 node2 node3)
export cluster_cgroup=${cluster_cgroup-}

cluster_conf() {
        local host proctrack=linuxproc select=cons_tres

        # later versions of Slurm do not have it
        ! compgen -G '/usr/lib/*/slurm*/select_cons_res.so' >/dev/null || select=cons_res
        [[ ! $cluster_cgroup ]] || proctrack=cgroup
        host=$(hostname -s)
        cat <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/$proctrack
TaskPlugin=task/none
SelectType=select/$select
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
SwitchType=switch/none
ReturnToService=2
MessageTimeout=30
KillWait=1
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/%n/pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/%n.log
SlurmdParameters=config_overrides
PlugStackConfig=$cluster/plugstack.conf
PrologFlags=Alloc
NodeName=node[1-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17003] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=node[1-3] Default=YES MaxTime=INFINITE OverSubscribe=YES:4 State=UP
END
}

# cluster_make_cgroup: below the machine's cgroup2.
cluster_make_cgroup() {
        local top

        top=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
        [[ $top ]] || return
        cluster_cgroup=$top/perfalloc-slurm
        cluster_remove_cgroup # of a run that was killed
        mkdir -p "${cluster_nodes[@]/#/$cluster_cgroup/}" &&
                printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >$cluster/cgroup.conf
}

cluster_cgroup_is_empty() {
        grep -qx 'populated 0' "$cluster_cgroup/cgroup.events"
}

# Ends all that is in it.
cluster_remove_cgroup() {
        [[ -d $cluster_cgroup ]] || return 0
        echo 1 >"$cluster_cgroup/cgroup.kill"
        wait_until cluster_cgroup_is_empty && find "$cluster_cgroup" -depth -type d -exec rmdir {} \;
}

# node_enter NODE: the calling shell is in the node's cgroup.
node_enter() {
        [[ ! $cluster_cgroup ]] || echo "$BASHPID" >"$cluster_cgroup/$1/cgroup.procs"
}

# As in a mount namespace of the node; the rig's places are the node's own.
node_namespace() {
        local node=$1 place

        for place in /run/dbus /run/rig/state /run/perfalloc; do
                mkdir -p "$cluster/$node$place" "$place"
        done
        cp /run/rig/state/environment "$cluster/$node/run/rig/state/"
        chown perfalloc: "$cluster/$node/run/perfalloc"
        for place in /run/dbus /run/rig/state /run/perfalloc; do
                mount --bind "$cluster/$node$place" "$place" || return
        done
        # its root is that of the cgroup namespace
        [[ ! $cluster_cgroup ]] || { mount -t cgroup2 none /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/system.slice; }
}

node_main() {
        node_namespace "$1" || return
        dbus-daemon --config-file=/run/rig/bus.conf --nofork --nopidfile --nosyslog </dev/null >/dev/null 2>&1 &
        until [[ -S /run/dbus/system_bus_socket ]]; do
                sleep 0.01
        done
        service-start && echo $$ >"$cluster/$1.ready" || return
        exec sleep infinity
}

# node_run NODE COMMAND...: in the node's namespace.
node_run() {
        local spaces

        spaces=/proc/$(<"$cluster/$1.ready")/ns
        shift
        nsenter --mount="$spaces/mnt" --cgroup="$spaces/cgroup" -- "$@"
}

# In the foreground: a daemon's first process ends while slurmd moves the processes of its cgroup, and it gives up then.
node_start_slurmd() {
        local env=("SLURM_CONF=$cluster/slurm.conf")

        mkdir -p "$cluster/$1"
        [[ ! $cluster_cgroup ]] || env+=(LD_PRELOAD="$PERFALLOC_BUILD/tests/slurm/libcgroup2-only.so")
        (node_enter "$1" && node_run "$1" env "${env[@]}" slurmd -D -N "$1") </dev/null >/dev/null 2>&1 9>&- &
}

# A node is no longer completing a job: it would not be given to the next one at once (-t idle looks at the base state).
cluster_is_up() {
        [[ $(sinfo -h -o %T -N | grep -cx idle) -eq ${#cluster_nodes[@]} ]]
}

# cluster_start PLUGIN [cgroup]
cluster_start() {
        local node

        mkdir -p $cluster/state $cluster/munge
        [[ ${2:-} != cgroup ]] || cluster_make_cgroup || return
        cluster_conf >$cluster/slurm.conf
        echo "required $1 timeout=5s" >$cluster/plugstack.conf
        export SLURM_CONF=$cluster/slurm.conf
        dd if=/dev/urandom of=$cluster/munge.key bs=128 count=1 status=none
        chmod 600 $cluster/munge.key
        munged --force --key-file=$cluster/munge.key --socket=$cluster/munge/socket --pid-file=$cluster/munge/pid \
                --log-file=$cluster/munge/log --seed-file=$cluster/munge/seed 9>&- || return
        for node in "${cluster_nodes[@]}"; do
                mkdir -p "$cluster/$node"
                (node_enter "$node" && exec unshare --mount --cgroup --propagation private bash -c "
                        . '$PERFALLOC_SOURCE/tests/slurm/cluster.sh'
                        node_main $node") >"$cluster/$node.out" 2>&1 9>&- &
        done
        slurmctld -c 9>&- || return
        for node in "${cluster_nodes[@]}"; do
                wait_until test -s "$cluster/$node.ready" && node_start_slurmd "$node" || return
        done
        wait_until cluster_is_up
}

cluster_logs() {
        tail -n 60 $cluster/*.log $cluster/*.out | sed 's/^/# /'
}
