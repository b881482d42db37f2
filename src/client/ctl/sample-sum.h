/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The mean of several measurements, and how far they spread.
 */

#include "core/util.h"

typedef struct SampleSum {
        unsigned n;
        double mean, squares; /* of the distances from the mean (Welford's method) */
} SampleSum;

void sample_sum_add(SampleSum *s, double value);

/* The standard deviation of the mean in per cent of it, as perf-stat(1) shows it; 0 for a single
 * measurement. */
double sample_sum_spread(const SampleSum *s);
