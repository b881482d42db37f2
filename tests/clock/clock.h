/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <signal.h>

/* Puts the clock of a program with clock.c forward by so many milliseconds as its value says. */
#ifndef CLOCK_SIGNAL
#define CLOCK_SIGNAL SIGRTMIN
#endif
