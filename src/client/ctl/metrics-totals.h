/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The Manager's property Totals as counters.
 */

#include "client/ctl/ctl.h"
#include "client/ctl/metrics.h"

/* Asks the service, and prints them. A total that this program does not know is left out, as is one
 * that the service does not know. */
int metrics_print_totals(Ctl *c, MetricsFormat format, Refusal *why);
