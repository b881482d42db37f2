#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: monitor.py

A program that counts all the time and has counters of its own. It registers as a monitor: while somebody holds the counters
it stops counting, and carries on afterwards. It prints what it does. With dbus-python (python3-dbus, python3-gi)."""

import sys

import dbus
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

MONITOR = 'org.perfalloc1.Monitor'


class Monitor:
    """Stands for a program with counters of its own."""

    def __init__(self, bus):
        manager = dbus.Interface(bus.get_object('org.perfalloc1', '/org/perfalloc1'), 'org.perfalloc1.Manager')
        # Registering while the counters are held is followed by Yield at once: so listen first.
        bus.add_signal_receiver(self.on_yield, 'Yield', MONITOR, 'org.perfalloc1', path_keyword='path')
        bus.add_signal_receiver(self.on_resume, 'Resume', MONITOR, 'org.perfalloc1')
        options = dbus.Dictionary({'pmus': dbus.Array(['breakpoint'], signature='s')}, signature='sv')
        self.bus = bus
        self.path, self.lease = manager.RegisterMonitor('monitor.py', options, timeout=2 ** 31 / 1000 - 1)
        self.count()

    def count(self):
        """A real monitor enables its events here."""
        print('counting', flush=True)

    def stop(self):
        """And disables them here; on PMUs like breakpoint it closes them. It has until the deadline."""
        print('yielded', flush=True)

    def on_yield(self, hold, deadline_usec, path):
        self.stop()
        monitor = dbus.Interface(self.bus.get_object('org.perfalloc1', path), MONITOR)
        monitor.Yielded(hold, ignore_reply=True)

    def on_resume(self):
        self.count()


def main():
    bus = dbus.SystemBus(mainloop=DBusGMainLoop())
    loop = GLib.MainLoop()
    # A monitor ends with its connection. When the service is gone for good, so are its holds.
    bus.call_on_disconnection(lambda _: loop.quit())
    monitor = Monitor(bus)
    loop.run()
    return monitor


if __name__ == '__main__':
    main() if len(sys.argv) == 1 else sys.exit(__doc__)
