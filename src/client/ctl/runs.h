/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * open EVENT... -- COMMAND: counts a command from its first instruction on, once or several times.
 */

#include "client/ctl/ctl.h"

/* Runs and counts the command of the options, and writes the result to output. events:
 * NULL-terminated; without any, the usual ones. c->status becomes the command's exit status, or
 * c->signo the signal that has killed it. */
int runs_count(Ctl *c, char **events, FILE *output, Refusal *why);
