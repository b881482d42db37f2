/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A pager for what may be long, as systemd's tools have it: $PAGER, else less(1), which leaves at
 * once what fits on the screen. PAGER=cat or empty: none.
 */

#include "client/signals.h"

typedef struct Pager {
        pid_t pid; /* 0: none */
} Pager;

#define PAGER_NULL ((Pager){})

/* From now on standard output is read by it. Without one it stays as it is. */
void pager_open(Pager *p, const Signals *signals);

/* Waits until whoever reads is done. */
void pager_close(Pager *p);
