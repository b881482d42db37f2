/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lifetime.h"

#include "client/ctl/words.h"
#include "client/say.h"
#include "core/clock.h"
#include "core/timespan.h"

void lifetime_say_cut(const Object *hold, uint64_t since_usec, const CtlOptions *o) {
        uint64_t asked = o->lifetime_usec > 0 ? o->lifetime_usec : TIMESPAN_INFINITY;
        uint64_t expires = object_number(hold, "ExpireTimestamp");
        _cleanup_free_ char *lasts = NULL, *wanted = NULL;

        /* the service's clock reads a moment later than ours */
        if (expires == 0 || expires >= usec_add(since_usec, asked))
                return;
        lasts = words_span(expires - since_usec);
        wanted = words_span(asked);
        if (lasts && wanted)
                say_note("the hold ends after %s, not %s: without permission to manage it lasts no "
                         "longer (HoldMaxSec= in perfallocd.conf)",
                         lasts, wanted);
}
