/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A pager for long output, as in systemd's tools: $PAGER, else less(1), which exits at once if all
 * fits on the screen. PAGER=cat or empty: none.
 */

#include "client/signals.h"

typedef struct Pager {
        pid_t pid; /* 0: none */
} Pager;

#define PAGER_NULL ((Pager){})

/* From now on the pager reads standard output. Without a pager it stays as it is. */
void pager_open(Pager *p, const Signals *signals);

/* Waits until the user leaves the pager. */
void pager_close(Pager *p);
