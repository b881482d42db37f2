/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <signal.h>

/* Puts the clock of perfallocd-clock forward by so many milliseconds as its value says. */
#define CLOCK_SIGNAL SIGRTMIN
