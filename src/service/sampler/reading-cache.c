/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reading-cache.h"

#include "service/counter/counter.h"

static void reading_cache_counter_closed(CounterListener *l, Counter *c) {
        ReadingCache *cache = container_of(l, ReadingCache, listener);

        cache->counter = NULL;
        cache->reading.quality = QUALITY_NOT_COUNTED;
}

static ReadingCache *reading_cache_find(const Counter *c) {
        CounterListener *l;

        LIST_FOREACH (l, &c->listeners, listeners)
                if (l->closed == reading_cache_counter_closed)
                        return container_of(l, ReadingCache, listener);
        return NULL;
}

int reading_cache_new(Counter *c, ReadingCache **ret) {
        ReadingCache *cache = reading_cache_find(c);

        if (!cache) {
                cache = malloc(sizeof(ReadingCache));
                if (!cache)
                        return -ENOMEM;
                *cache = (ReadingCache){ .id = c->object.id,
                                         .counter = c,
                                         .listener.closed = reading_cache_counter_closed,
                                         .reading.quality = QUALITY_NOT_COUNTED };
                counter_listen(c, &cache->listener);
        }
        cache->n_ref++;
        *ret = cache;
        return 0;
}

int reading_cache_new_closed(uint64_t id, const Reading *last, ReadingCache **ret) {
        ReadingCache *s = malloc(sizeof(ReadingCache));

        if (!s)
                return -ENOMEM;
        *s = (ReadingCache){ .n_ref = 1, .id = id, .reading = *last };
        s->reading.quality = QUALITY_NOT_COUNTED;
        *ret = s;
        return 0;
}

ReadingCache *reading_cache_unref(ReadingCache *s) {
        if (--s->n_ref > 0)
                return NULL;
        if (s->counter)
                LIST_REMOVE(&s->listener, listeners);
        free(s);
        return NULL;
}

void reading_cache_read(ReadingCache *s, uint64_t instant) {
        if (s->instant == instant)
                return;
        s->instant = instant;
        if (s->counter)
                counter_read(s->counter, instant, &s->reading);
}
