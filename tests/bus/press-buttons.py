#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""usage: tests/bus/press-buttons.py CELL BUTTON...

Presses buttons of the graphical program of this session, each when it can be pressed, and then waits until one of its
tables shows CELL. AT-SPI finds them by their names, as a screen reader does, so that neither fonts nor positions
matter.
"""

import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

LIMIT_SEC = 60


def everything(of):
    yield of
    for i in range(of.get_child_count()):
        child = of.get_child_at_index(i)
        if child:
            yield from everything(child)


def shown(*roles):
    for widget in everything(Atspi.get_desktop(0)):
        if widget.get_role() in roles and widget.get_state_set().contains(Atspi.StateType.SHOWING):
            yield widget


def button(name):
    for widget in shown(Atspi.Role.PUSH_BUTTON, Atspi.Role.CHECK_BOX):
        if widget.get_name() == name and widget.get_state_set().contains(Atspi.StateType.ENABLED):
            return widget
    return None


def table_with(name):
    for table in shown(Atspi.Role.TREE):
        if any(cell.get_name() == name for cell in everything(table)):
            return table
    return None


def wait_for(what, *arguments):
    end = time.monotonic() + LIMIT_SEC
    while time.monotonic() < end:
        found = what(*arguments)
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"{what.__name__} {' '.join(arguments)}: not there after {LIMIT_SEC} s")


if len(sys.argv) < 3:
    sys.exit(__doc__)
for each in sys.argv[2:]:
    Atspi.Action.do_action(wait_for(button, each), 0)
wait_for(table_with, sys.argv[1])
