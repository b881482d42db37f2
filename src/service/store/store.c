/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "service/store/fd-store.h"
#include "service/store/restore.h"
#include "service/store/statelog.h"
#include "service/util/log.h"

#define BUNDLE_FDS   128u /* of what goes alone again a sweep sends the rest anew */
#define BARRIER_USEC (5 * USEC_PER_SEC)

LIST_HEAD(StoreItemList, StoreItem);

/* What is to go into one message. */
typedef struct Bundle {
        bool open; /* between store_gather() and store_ship() */
        size_t n_labels;
        FdLabel labels[BUNDLE_FDS];
        StoreItem *items[BUNDLE_FDS]; /* whose they are */
        size_t n_fds;
        int fds[BUNDLE_FDS];
} Bundle;

struct Store {
        bool works;
        StateLog *log;
        FdStore shelves;
        size_t n_fds;
        uint32_t version; /* of what was kept last: no two of a number are under way */
        struct StoreItemList items;
        Restore *past; /* until store_commit() */
        Pack pack;
        Bundle bundle;
        bool told; /* that something could not be kept */
};

static void store_degraded(void *userdata, int error, const char *what) {
        Store *s = userdata;
        char text[256];

        if (s->told)
                return;
        s->told = true;
        (void) snprintf(text, sizeof(text),
                        "%s: %s. What cannot be kept ends when the service is restarted.", what,
                        strerror(-error));
        log_event(LOG_WARNING, LOG_ID_DEGRADED, text, NULL);
}

static void store_drop_part(Store *s, StoreItem *item, FdPart *part) {
        TAILQ_REMOVE(&item->parts, part, item);
        s->n_fds -= part->label.n_fds;
        fd_store_drop(part);
}

void store_settle(Store *s) {
        fd_store_sweep(&s->shelves, FD_QUEUE_SCARCE);
}

/* ---- items ---- */

void store_enter(Store *s, StoreItem *item, StoreKind kind, uint64_t id) {
        *item = (StoreItem){ .store = s, .kind = kind, .id = id };
        TAILQ_INIT(&item->parts);
        LIST_INSERT_HEAD(&s->items, item, items);
}

/* What is kept of this version, or of all others. */
static void item_drop_parts(StoreItem *item, uint32_t version, bool others) {
        FdPart *part, *next;

        for (part = TAILQ_FIRST(&item->parts); part; part = next) {
                next = TAILQ_NEXT(part, item);
                if ((part->label.version == version) != others)
                        store_drop_part(item->store, item, part);
        }
}

static void item_lose(StoreItem *item, int error, const char *what) {
        Store *s = item->store;

        /* beside what the earlier run has kept there may not be room for all: tried again later */
        if (!s->past)
                store_degraded(s, error, what);
        statelog_forget(s->log, item->record);
        item->record = 0;
        item_drop_parts(item, UINT32_MAX, true);
        item->lost = true;
}

static void item_add_part(StoreItem *item, FdPart *part) {
        TAILQ_INSERT_TAIL(&item->parts, part, item);
        item->store->n_fds += part->label.n_fds;
}

static void item_put(StoreItem *item, FdQueueKind kind, const FdLabel *label, const int *fds) {
        FdPart *part;
        int r = fd_store_put(&item->store->shelves, kind, label, 1, fds, &part);

        if (r >= 0)
                item_add_part(item, part);
        else
                item_lose(item, r, "Descriptors could not be kept");
}

static void bundle_send(Store *s) {
        Bundle *b = &s->bundle;
        FdPart *parts[BUNDLE_FDS];
        size_t first = 0;
        int r = -ENODATA;

        if (b->n_labels > 1)
                r = fd_store_put(&s->shelves, FD_QUEUE_BUNDLES, b->labels, b->n_labels, b->fds,
                                 parts);
        for (size_t i = 0; i < b->n_labels; first += b->labels[i++].n_fds)
                if (r >= 0)
                        item_add_part(b->items[i], parts[i]);
                else /* alone; or there is not room for all, but maybe for some */
                        item_put(b->items[i], FD_QUEUE_SOON, &b->labels[i], b->fds + first);
        b->n_labels = b->n_fds = 0;
}

static void bundle_add(Store *s, StoreItem *item, const FdLabel *label, const int *fds) {
        Bundle *b = &s->bundle;

        if (b->n_fds + label->n_fds > BUNDLE_FDS)
                bundle_send(s);
        b->labels[b->n_labels] = *label;
        b->items[b->n_labels++] = item;
        memcpy(b->fds + b->n_fds, fds, label->n_fds * sizeof(int));
        b->n_fds += label->n_fds;
}

static void item_keep(StoreItem *item, const FdLabel *label, const int *fds, StoreUrgency urgency) {
        Store *s = item->store;

        /* what is urgent goes alone: nobody else's have to be sent anew then */
        if (s->bundle.open && urgency == STORE_SOON && label->n_fds <= BUNDLE_FDS)
                bundle_add(s, item, label, fds);
        else
                item_put(item, urgency == STORE_SCARCE ? FD_QUEUE_SCARCE : FD_QUEUE_SOON, label,
                         fds);
}

void store_keep(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency) {
        Store *s = item->store;
        uint32_t version;

        if (!s->works)
                return;
        version = ++s->version;
        /* of two that were not saved the first is nothing to anybody */
        if (item->record == 0)
                item_drop_parts(item, UINT32_MAX, true);
        item->version = version;
        item->n_fds = n_fds;
        item->lost = false;
        for (size_t i = 0; i < n_fds && !item->lost; i += FD_QUEUE_FDS_MAX) {
                const FdLabel label = { .kind = item->kind,
                                        .version = version,
                                        .id = item->id,
                                        .first = (uint32_t) i,
                                        .n_fds = (uint32_t) MIN(n_fds - i, FD_QUEUE_FDS_MAX) };

                item_keep(item, &label, fds + i, urgency);
        }
}

void store_gather(Store *s) {
        s->bundle.open = true;
}

void store_ship(Store *s) {
        bundle_send(s);
        s->bundle.open = false;
}

/* Most of the log is out of date: what counts is copied. */
static void store_compact(Store *s) {
        StoreItem *item;
        int r = 0;

        statelog_copy_begin(s->log);
        LIST_FOREACH (item, &s->items, items) {
                item->record_copy = item->record;
                if (item->record != 0 && r >= 0)
                        r = statelog_copy(s->log, &item->record_copy);
        }
        if (r < 0)
                return;
        LIST_FOREACH (item, &s->items, items)
                item->record = item->record_copy;
        statelog_copy_end(s->log);
}

void store_save(StoreItem *item, const Pack *state) {
        Store *s = item->store;
        StateEntry entry = { .kind = item->kind,
                             .id = item->id,
                             .version = item->version,
                             .n_fds = (uint32_t) item->n_fds,
                             .n_state = (uint32_t) state->n };
        uint64_t before = item->record;
        int r;

        /* what has no descriptors has nothing to be kept first */
        if (item->n_fds == 0)
                item->lost = false;
        if (!s->works || item->lost)
                return;
        r = state->failed ? -ENOMEM : statelog_append(s->log, &entry, state->data, &item->record);
        if (r < 0 && item->kind == STORE_HOST && before != 0) {
                /* without it nobody's clients are known again: one that is older is better */
                store_degraded(s, r, "State could not be written down");
                return;
        }
        if (r < 0) {
                item_lose(item, r, "State could not be written down");
                return;
        }
        statelog_forget(s->log, before);
        item_drop_parts(item, item->version, true);
        if (statelog_is_stale(s->log))
                store_compact(s);
}

void store_leave(StoreItem *item) {
        Store *s = item->store;

        if (!s)
                return;
        bundle_send(s); /* it may be in there */
        if (s->works) {
                statelog_forget(s->log, item->record);
                item_drop_parts(item, UINT32_MAX, true);
        }
        LIST_REMOVE(item, items);
        *item = (StoreItem){};
}

Pack *store_pack(Store *s) {
        pack_clear(&s->pack);
        return &s->pack;
}

bool store_works(const Store *s) {
        return s->works;
}

size_t store_n_descriptors(const Store *s) {
        return s->n_fds + s->bundle.n_fds;
}

/* ---- start and end ---- */

StoreRecord *store_next(Store *s, StoreKind kind, size_t *place) {
        return s->past ? restore_next(s->past, kind, place) : NULL;
}

static int store_begin(Store *s) {
        uint32_t generation = restore_generation(s->past) + 1;
        char name[STORE_NAME_MAX];
        int r;

        r = statelog_new(generation, &s->log);
        if (r < 0)
                return r;
        (void) snprintf(name, sizeof(name), STORE_STATE_NAME, generation);
        r = fd_store_hand_in(name, s->log->fd);
        if (r >= 0)
                r = fd_store_begin(&s->shelves, generation);
        return r;
}

int store_new(sd_event *event, Store **ret) {
        _cleanup_(store_freep) Store *s = calloc(1, sizeof(Store));
        int r;

        if (!s)
                return -ENOMEM;
        LIST_INIT(&s->items);
        r = fd_store_init(&s->shelves, event, store_degraded, s);
        if (r < 0)
                return r;
        r = restore_read(&s->past);
        if (r < 0)
                return r;
        r = store_begin(s);
        if (r < 0)
                store_degraded(s, r, "There is no descriptor store");
        s->works = r >= 0;
        *ret = TAKE_PTR(s);
        return 0;
}

void store_commit(Store *s) {
        if (s->works) {
                /* all shelves have to be with systemd before the log says that they count */
                (void) sd_notify_barrier(false, BARRIER_USEC);
                statelog_complete(s->log);
        }
        s->past = restore_end(s->past);
}

Store *store_free(Store *s) {
        if (!s)
                return NULL;
        fd_store_done(&s->shelves);
        statelog_free(s->log);
        restore_free(s->past);
        pack_done(&s->pack);
        free(s);
        return NULL;
}
