/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "service/store/fd-store.h"
#include "service/store/restore-watch.h"
#include "service/store/restore.h"
#include "service/store/statelog.h"
#include "service/util/log.h"

#define BUNDLE_FDS   128u /* dropping one part of a bundle resends the others */
#define BARRIER_USEC (5 * USEC_PER_SEC)

LIST_HEAD(StoreItemList, StoreItem);

/* A record that continues one. */
struct StoreMore {
        uint64_t record, record_copy; /* as those of the item */
        TAILQ_ENTRY(StoreMore) more;
        LIST_ENTRY(StoreMore) all;
};

/* Parts of several objects, to be put as one message. */
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
        FdStore fd_store;
        uint32_t version; /* of the descriptors kept last, of any object */
        struct StoreItemList items;
        LIST_HEAD(, StoreMore) all_more; /* of all items */
        Restore *restore;                /* until store_commit() */
        Pack pack;
        Bundle bundle;
        bool degraded; /* something could not be kept, which was logged */
};

static void store_degraded(void *userdata, int error, const char *what) {
        Store *s = userdata;
        char text[256];

        if (s->degraded)
                return;
        s->degraded = true;
        (void) snprintf(text, sizeof(text),
                        "%s: %s. What cannot be kept ends when the service is restarted.", what,
                        strerror(-error));
        log_event(LOG_WARNING, LOG_ID_DEGRADED, text, NULL);
}

void store_settle(Store *s) {
        fd_store_sweep(&s->fd_store, FD_QUEUE_SCARCE);
}

/* ---- items ---- */

void store_enter(Store *s, StoreItem *item, StoreKind kind, uint64_t id,
                 void (*again)(StoreItem *item)) {
        *item = (StoreItem){ .store = s, .kind = kind, .id = id, .again = again };
        TAILQ_INIT(&item->parts);
        TAILQ_INIT(&item->more);
        LIST_INSERT_HEAD(&s->items, item, items);
}

/* Drops the parts of that version, or of all others. */
static void item_drop_parts(StoreItem *item, uint32_t version, bool others) {
        FdPart *part, *next;

        for (part = TAILQ_FIRST(&item->parts); part; part = next) {
                next = TAILQ_NEXT(part, item);
                if ((part->label.version == version) == others)
                        continue;
                TAILQ_REMOVE(&item->parts, part, item);
                fd_store_drop(part);
        }
}

static void more_free(StoreMore *more) {
        LIST_REMOVE(more, all);
        free(more);
}

static void item_drop_more(StoreItem *item) {
        StoreMore *more;

        while ((more = TAILQ_FIRST(&item->more))) {
                TAILQ_REMOVE(&item->more, more, more);
                statelog_forget(item->store->log, more->record);
                more_free(more);
        }
        item->n_more = 0;
}

static void item_lose(StoreItem *item, int error, const char *what) {
        Store *s = item->store;

        /* until store_commit() the earlier run's descriptors take room; then it is tried again */
        if (!s->restore)
                store_degraded(s, error, what);
        statelog_forget(s->log, item->record);
        item->record = 0;
        item_drop_more(item);
        item_drop_parts(item, UINT32_MAX, true);
        item->lost = true;
}

static void item_put(StoreItem *item, FdQueueKind kind, const FdLabel *label, const int *fds) {
        FdPart *part;
        int r = fd_store_put(&item->store->fd_store, kind, label, 1, fds, &part);

        if (r >= 0)
                TAILQ_INSERT_TAIL(&item->parts, part, item);
        else
                item_lose(item, r, "Descriptors could not be kept");
}

static void bundle_send(Store *s) {
        Bundle *b = &s->bundle;
        FdPart *parts[BUNDLE_FDS];
        size_t first = 0;
        int r = -ENODATA;

        if (b->n_labels > 1)
                r = fd_store_put(&s->fd_store, FD_QUEUE_BUNDLES, b->labels, b->n_labels, b->fds,
                                 parts);
        for (size_t i = 0; i < b->n_labels; first += b->labels[i++].n_fds)
                if (r >= 0)
                        TAILQ_INSERT_TAIL(&b->items[i]->parts, parts[i], item);
                else /* a single one, or there is no room for all */
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

        /* scarce ones go alone: when they are dropped nothing else has to be resent */
        if (s->bundle.open && urgency == STORE_SOON && label->n_fds <= BUNDLE_FDS)
                bundle_add(s, item, label, fds);
        else
                item_put(item, urgency == STORE_SCARCE ? FD_QUEUE_SCARCE : FD_QUEUE_SOON, label,
                         fds);
}

/* Behind those of this version that it has. */
static void item_keep_all(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency) {
        for (size_t i = 0; i < n_fds && !item->lost; i += FD_QUEUE_FDS_MAX) {
                const FdLabel label = { .kind = item->kind,
                                        .version = item->version,
                                        .id = item->id,
                                        .first = (uint32_t) (item->n_fds + i),
                                        .n_fds = (uint32_t) MIN(n_fds - i, FD_QUEUE_FDS_MAX) };

                item_keep(item, &label, fds + i, urgency);
        }
        item->n_fds += n_fds;
}

void store_keep(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency) {
        Store *s = item->store;

        if (!s->works)
                return;
        /* an unsaved version is superseded by the next one */
        if (item->record == 0)
                item_drop_parts(item, UINT32_MAX, true);
        item->version = ++s->version;
        item->n_fds = 0;
        item->lost = false;
        item_keep_all(item, fds, n_fds, urgency);
}

void store_gather(Store *s) {
        s->bundle.open = true;
}

void store_ship(Store *s) {
        bundle_send(s);
        s->bundle.open = false;
}

static int item_copy(const Store *s, StoreItem *item) {
        StoreMore *more;
        int r = 0;

        item->record_copy = item->record;
        if (item->record != 0)
                r = statelog_copy(s->log, &item->record_copy);
        TAILQ_FOREACH (more, &item->more, more) {
                more->record_copy = more->record;
                if (r >= 0)
                        r = statelog_copy(s->log, &more->record_copy);
        }
        return r;
}

/* Copies the records that count, when most of the log is out of date. */
static void store_compact(Store *s) {
        StoreItem *item;
        StoreMore *more;
        int r = 0;

        statelog_copy_begin(s->log);
        LIST_FOREACH (item, &s->items, items)
                if (r >= 0)
                        r = item_copy(s, item);
        if (r < 0)
                return;
        LIST_FOREACH (item, &s->items, items)
                item->record = item->record_copy;
        LIST_FOREACH (more, &s->all_more, all)
                more->record = more->record_copy;
        statelog_copy_end(s->log);
}

static int item_append(const StoreItem *item, uint32_t more, const Pack *state, uint64_t *ret) {
        StateEntry entry = { .kind = item->kind | more,
                             .id = item->id,
                             .version = item->version,
                             .n_fds = (uint32_t) item->n_fds,
                             .n_state = (uint32_t) state->n };

        return state->failed ? -ENOMEM
                             : statelog_append(item->store->log, &entry, state->data, ret);
}

/* On failure the record before it stands. */
static int item_write(StoreItem *item, const Pack *state) {
        uint64_t before = item->record;
        int r = item_append(item, 0, state, &item->record);

        if (r < 0)
                return r;
        statelog_forget(item->store->log, before);
        item_drop_more(item);
        item_drop_parts(item, item->version, true);
        return 0;
}

static const char write_failed[] = "State could not be written down";

void store_save(StoreItem *item, const Pack *state) {
        Store *s = item->store;
        int r;

        if (item->n_fds == 0) /* nothing has to be kept before */
                item->lost = false;
        if (!s->works || item->lost)
                return;
        r = item_write(item, state);
        if (r < 0 && item->kind == STORE_HOST && item->record != 0)
                store_degraded(s, r,
                               write_failed); /* the old one is kept: clients are known by it */
        else if (r < 0)
                item_lose(item, r, write_failed);
        else if (statelog_is_stale(s->log))
                store_compact(s);
}

static int item_write_more(StoreItem *item, const Pack *state) {
        StoreMore *more = calloc(1, sizeof(StoreMore));
        int r;

        if (!more)
                return -ENOMEM;
        r = item_append(item, STATELOG_MORE, state, &more->record);
        if (r < 0) {
                free(more);
                return r;
        }
        TAILQ_INSERT_TAIL(&item->more, more, more);
        LIST_INSERT_HEAD(&item->store->all_more, more, all);
        item->n_more++;
        return 0;
}

void store_add(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency,
               const Pack *state) {
        int r;

        if (!item->store->works || item->lost)
                return;
        item_keep_all(item, fds, n_fds, urgency);
        r = item->lost ? 0 : item_write_more(item, state);
        if (r < 0)
                item_lose(item, r, write_failed);
}

void store_leave(StoreItem *item) {
        Store *s = item->store;

        if (!s)
                return;
        bundle_send(s); /* the item may be in it */
        if (s->works) {
                statelog_forget(s->log, item->record);
                item_drop_more(item);
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

/* ---- start and end ---- */

StoreRecord *store_next(Store *s, StoreKind kind, size_t *place) {
        return s->restore ? restore_next(s->restore, kind, place) : NULL;
}

int store_restore_each(Store *s, StoreKind kind, const char *what,
                       int (*restore)(void *userdata, StoreRecord *record), void *userdata) {
        StoreRecord *record;
        size_t place = 0;

        while ((record = store_next(s, kind, &place))) {
                int r = restore(userdata, record);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(r == -ESTALE ? LOG_DEBUG : LOG_ERR,
                                  "%s %" PRIu64 " is lost in the restart: %s", what, record->id,
                                  r == -ESTALE ? "its client is not on this bus" : strerror(-r));
        }
        return 0;
}

static int store_begin(Store *s) {
        uint32_t generation = restore_generation(s->restore) + 1;
        int r = statelog_new(generation, &s->log);

        return r < 0 ? r : fd_store_begin(&s->fd_store, generation, s->log->fd);
}

int store_new(sd_event *event, Store **ret) {
        _cleanup_(store_freep) Store *s = calloc(1, sizeof(Store));
        const char *directory = getenv("RUNTIME_DIRECTORY");
        int r;

        if (!s)
                return -ENOMEM;
        LIST_INIT(&s->items);
        LIST_INIT(&s->all_more);
        r = fd_store_init(&s->fd_store, event, store_degraded, s);
        if (r < 0)
                return r;
        r = restore_read(restore_watch_begin(directory), directory, &s->restore);
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
        StoreItem *item, *next;

        if (s->works) {
                /* systemd has all queues before the log says that it is complete */
                (void) sd_notify_barrier(false, BARRIER_USEC);
                statelog_complete(s->log);
        }
        s->restore = restore_end(s->restore);
        for (item = LIST_FIRST(&s->items); item; item = next) {
                next = LIST_NEXT(item, items); /* it may leave */
                if (item->lost && item->again)
                        item->again(item);
        }
}

Store *store_free(Store *s) {
        if (!s)
                return NULL;
        while (!LIST_EMPTY(&s->all_more))
                more_free(LIST_FIRST(&s->all_more));
        fd_store_done(&s->fd_store);
        statelog_free(s->log);
        restore_free(s->restore);
        pack_done(&s->pack);
        free(s);
        return NULL;
}
