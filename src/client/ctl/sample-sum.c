/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sample-sum.h"

#include <math.h>

void sample_sum_add(SampleSum *s, double value) {
        double distance = value - s->mean;

        s->n++;
        s->mean += distance / s->n;
        s->squares += distance * (value - s->mean);
}

double sample_sum_spread(const SampleSum *s) {
        double variance;

        if (s->n < 2 || s->mean <= 0)
                return 0;
        variance = s->squares / (s->n - 1);
        return 100 * sqrt(variance / s->n) / s->mean;
}
