/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reading-cache.h"

#include "service/counter/counter.h"

int reading_cache_new(Counter *c, ReadingCache **ret) {
        if (!c->sampled) {
                c->sampled = malloc(sizeof(ReadingCache));
                if (!c->sampled)
                        return -ENOMEM;
                *c->sampled =
                        (ReadingCache){ .id = c->id, .counter = c, .quality = QUALITY_UNMEASURED };
        }
        c->sampled->n_ref++;
        *ret = c->sampled;
        return 0;
}

int reading_cache_new_closed(uint64_t id, const Reading *last, ReadingCache **ret) {
        ReadingCache *s = malloc(sizeof(ReadingCache));

        if (!s)
                return -ENOMEM;
        *s = (ReadingCache){
                .n_ref = 1, .id = id, .reading = *last, .quality = QUALITY_UNMEASURED
        };
        *ret = s;
        return 0;
}

ReadingCache *reading_cache_unref(ReadingCache *s) {
        if (--s->n_ref > 0)
                return NULL;
        if (s->counter)
                s->counter->sampled = NULL;
        free(s);
        return NULL;
}

void reading_cache_read(ReadingCache *s, uint64_t instant) {
        if (s->instant == instant)
                return;
        s->instant = instant;
        if (s->counter)
                counter_read(s->counter, &s->reading, &s->quality);
}

void reading_cache_forget_counter(Counter *c) {
        if (!c->sampled)
                return;
        c->sampled->counter = NULL;
        c->sampled->quality = QUALITY_UNMEASURED;
        c->sampled = NULL;
}
