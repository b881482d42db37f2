/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/readings.h"
#include "client/ctl/verbs.h"

/* read: what counters have counted. All are read, or none. */

int verb_read(Ctl *c, Refusal *why) {
        _cleanup_(readings_done) Readings readings = READINGS_NULL;
        int r = 0;

        for (char **word = c->words; *word && r == 0; word++)
                r = readings_add(&readings, *word, why);
        if (r != 0)
                return r;
        return c->options->each ? readings_print_each(c, &readings, stdout, why)
                                : readings_print(c, &readings, stdout, why);
}
