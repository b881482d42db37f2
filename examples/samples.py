#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: samples.py PID [N]

Holds the counters, samples a process a thousand times a second of its time, and prints where its threads were (address and
thread), N times. With dbus-python (python3-dbus)."""

import mmap
import os
import select
import struct
import sys

import dbus

INFINITY = 2 ** 31 / 1000 - 1  # seconds: a call may wait for a person or a queue
PAGE = mmap.PAGESIZE
PAGES = 8
SOFTWARE, TASK_CLOCK = 1, 1  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK
SAMPLE_IP_TID = 1 | 2  # PERF_SAMPLE_IP | PERF_SAMPLE_TID
EXCLUDE_KERNEL_AND_HV = 1 << 5 | 1 << 6
RECORD_SAMPLE = 9  # PERF_RECORD_SAMPLE
HEAD, TAIL = 1024, 1032  # data_head and data_tail of struct perf_event_mmap_page


def event_attr():
    """A struct perf_event_attr of 64 bytes, as perf_event_open(2) describes it: a sample each millisecond."""
    return struct.pack('=IIQQQQQIIQ', SOFTWARE, 64, TASK_CLOCK, 1000000, SAMPLE_IP_TID, 0,
                       EXCLUDE_KERNEL_AND_HV, 1, 0, 0)


def hold(manager, bus):
    """Waits until the counters are free; they stay so until the lease is closed."""
    path, lease = manager.Hold('samples.py', {}, timeout=INFINITY)
    confirmed, _ = dbus.Interface(bus.get_object('org.perfalloc1', path), 'org.perfalloc1.Hold').Wait(timeout=INFINITY)
    print('the counters are held,', 'confirmed' if confirmed else 'not confirmed', file=sys.stderr)
    return lease.take()


def open_event(manager, pid):
    """The open file proves that this user may trace the process; it also names it."""
    with open(f'/proc/{pid}/maps', 'rb') as proof:
        options = dbus.Dictionary({'procfd': dbus.types.UnixFd(proof.fileno())}, signature='sv')
        event = manager.OpenEvent(dbus.ByteArray(event_attr()), dbus.Int32(pid), dbus.Int32(-1), dbus.UInt64(0),
                                  options, timeout=INFINITY)
    return event.take()


def records(ring):
    """What is in the ring buffer now: the type and the bytes of each record."""
    head, = struct.unpack_from('=Q', ring, HEAD)
    tail, = struct.unpack_from('=Q', ring, TAIL)
    data = bytes(ring[PAGE + i % (PAGES * PAGE)] for i in range(tail, head))
    struct.pack_into('=Q', ring, TAIL, head)
    while data:
        kind, _, size = struct.unpack_from('=IHH', data)
        yield kind, data[8:size]
        data = data[size:]


def main(pid, count=10):
    bus = dbus.SystemBus()
    manager = dbus.Interface(bus.get_object('org.perfalloc1', '/org/perfalloc1'), 'org.perfalloc1.Manager')
    lease = hold(manager, bus)
    event = open_event(manager, int(pid))
    ring = mmap.mmap(event, (1 + PAGES) * PAGE)
    left = int(count)
    while left > 0 and select.select([event], [], [])[0]:
        for kind, data in records(ring):
            if kind == RECORD_SAMPLE and left > 0:
                print('{:#x} in thread {}'.format(*struct.unpack('=QxxxxI', data)))
                left -= 1
    os.close(event)
    os.close(lease)


if __name__ == '__main__':
    main(*sys.argv[1:]) if 2 <= len(sys.argv) <= 3 else sys.exit(__doc__)
