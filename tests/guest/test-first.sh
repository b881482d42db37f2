#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
set -u
. "$PERFALLOC_SOURCE/tests/tap.sh"
hold() {
  h=$(busctl --timeout=100 call org.perfalloc1 /org/perfalloc1 org.perfalloc1.Manager HoldUnattended 'sta{sv}' try 0 0) || return
  h=${h#o \"}; h=${h%\"}
  echo "$h"
  busctl --timeout=100 call org.perfalloc1 $h org.perfalloc1.Hold Wait
  busctl get-property org.perfalloc1 $h org.perfalloc1.Hold State Confirmed Pmus Cpus LatencyUSec Obstacles 
  busctl get-property org.perfalloc1 /org/perfalloc1/pmu/armv8_5fpmuv3 org.perfalloc1.Pmu Name Kind Counters Probed
  ls /sys/bus/event_source/devices 
  systemd-analyze blame | head
  grep Cap /proc/$(systemctl show -P MainPID perfallocd)/status
  false
}
check 'first' hold
tap_end
