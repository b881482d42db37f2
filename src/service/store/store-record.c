/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store-record.h"

#include <string.h>

int store_record_compare(const void *a, const void *b) {
        const StoreRecord *x = a, *y = b;

        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

int store_record_compare_places(const void *a, const void *b) {
        const StoreRecord *x = a, *y = b;
        int r = store_record_compare(a, b);

        return r != 0 ? r : x->place < y->place ? -1 : x->place > y->place;
}

void store_record_done(StoreRecord *r) {
        for (size_t i = 0; r->fds && i < r->n_fds; i++)
                close_fd(r->fds[i]);
        free(r->fds);
        free(r->joined);
}

bool store_record_is_whole(const StoreRecord *r) {
        for (size_t i = 0; i < r->n_fds; i++)
                if (r->fds[i] < 0)
                        return false;
        return true;
}

/* The first of n records of one object with all that continue it. Of two that continue nothing the
 * later one counts; what continues an earlier one is left out with it. */
static size_t records_find_last(const StoreRecord *records, size_t n) {
        size_t last = n;

        for (size_t i = 0; i < n; i++)
                if (!records[i].more)
                        last = i;
        return last;
}

/* To the first of n records, those that continue it. */
static int records_join(StoreRecord *records, size_t n) {
        StoreRecord *first = records;
        size_t size = 0, n_joined = 0;

        for (size_t i = 0; i < n; i++)
                size += records[i].state.n;
        first->joined = malloc(MAX(size, 1u));
        if (!first->joined)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const StoreRecord *r = &records[i];

                if (r->version != first->version)
                        break;
                memcpy(first->joined + n_joined, r->state.data, r->state.n);
                n_joined += r->state.n;
                first->n_fds = r->n_fds;
        }
        first->state = (Unpack){ first->joined, n_joined };
        return 0;
}

int store_records_merge(StoreRecord *records, size_t n) {
        size_t last = records_find_last(records, n);

        for (size_t i = 0; i < n; i++)
                records[i].left_out = i != last;
        return last + 1 < n ? records_join(records + last, n - last) : 0;
}
