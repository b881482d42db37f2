/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampled.h"

#include "service/counter.h"

int sampled_new(Counter *c, Sampled **ret) {
        if (!c->sampled) {
                c->sampled = malloc(sizeof(Sampled));
                if (!c->sampled)
                        return -ENOMEM;
                *c->sampled = (Sampled){ .id = c->id, .counter = c, .quality = QUALITY_UNMEASURED };
        }
        c->sampled->n_ref++;
        *ret = c->sampled;
        return 0;
}

int sampled_new_closed(uint64_t id, const Reading *last, Sampled **ret) {
        Sampled *s = malloc(sizeof(Sampled));

        if (!s)
                return -ENOMEM;
        *s = (Sampled){ .n_ref = 1, .id = id, .reading = *last, .quality = QUALITY_UNMEASURED };
        *ret = s;
        return 0;
}

Sampled *sampled_unref(Sampled *s) {
        if (--s->n_ref > 0)
                return NULL;
        if (s->counter)
                s->counter->sampled = NULL;
        free(s);
        return NULL;
}

void sampled_read(Sampled *s, uint64_t instant) {
        if (s->instant == instant)
                return;
        s->instant = instant;
        if (s->counter)
                counter_read(s->counter, &s->reading, &s->quality);
}

void sampled_forget_counter(Counter *c) {
        if (!c->sampled)
                return;
        c->sampled->counter = NULL;
        c->sampled->quality = QUALITY_UNMEASURED;
        c->sampled = NULL;
}
