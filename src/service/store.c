/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "service/log.h"
#include "service/statelog.h"
#include "service/store-past.h"

#define SHELVES_MAX        3072u /* of all; the unit's FileDescriptorStoreMax= is higher */
#define SHELVES_SPARE      1u    /* empty ones, of each urgency */
#define SWEEP_USEC         (2 * USEC_PER_MSEC)
#define BARRIER_USEC       (5 * USEC_PER_SEC)
#define _STORE_URGENCY_MAX 2

LIST_HEAD(ShelfList, Shelf);
LIST_HEAD(StoreItemList, StoreItem);

struct Store {
        bool works;
        uint32_t generation;
        StateLog *log;
        struct ShelfList shelves[_STORE_URGENCY_MAX];
        uint64_t next_shelf;
        size_t n_shelves;
        size_t n_fds;
        bool dirty[_STORE_URGENCY_MAX]; /* some message is dead */
        sd_event_source *sweep;
        struct StoreItemList items;
        StorePast *past; /* until store_commit() */
        Pack pack;
        bool told; /* that something could not be kept */
};

/* ---- systemd's side ---- */

static int store_hand_in(const char *name, int fd) {
        char text[128];
        int r;

        (void) snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
        r = sd_pid_notify_with_fds(0, false, text, &fd, 1);
        return r < 0 ? r : r == 0 ? -ENOTCONN : 0;
}

static void store_name_shelf(const Store *s, uint64_t number, char name[static STORE_NAME_MAX]) {
        (void) snprintf(name, STORE_NAME_MAX, STORE_SHELF_NAME, s->generation, number);
}

static void store_degraded(Store *s, int error, const char *what) {
        char text[256];

        if (s->told)
                return;
        s->told = true;
        (void) snprintf(text, sizeof(text),
                        "%s: %s. What cannot be kept ends when the service is restarted.", what,
                        strerror(-error));
        log_event(LOG_WARNING, LOG_ID_DEGRADED, text, NULL);
}

/* ---- shelves ---- */

static int store_new_shelf(Store *s, StoreUrgency urgency, Shelf **ret) {
        _cleanup_(shelf_freep) Shelf *shelf = NULL;
        char name[STORE_NAME_MAX];
        int r;

        if (s->n_shelves >= SHELVES_MAX)
                return -ENOSPC;
        r = shelf_new(s->next_shelf, &shelf);
        if (r < 0)
                return r;
        store_name_shelf(s, shelf->number, name);
        r = store_hand_in(name, shelf->out);
        if (r < 0)
                return r;
        s->next_shelf++;
        s->n_shelves++;
        shelf->owner = &s->shelves[urgency];
        LIST_INSERT_HEAD(&s->shelves[urgency], shelf, shelves);
        *ret = TAKE_PTR(shelf);
        return 0;
}

static void store_remove_shelf(Store *s, Shelf *shelf) {
        char name[STORE_NAME_MAX];

        store_name_shelf(s, shelf->number, name);
        (void) sd_notifyf(false, "FDSTOREREMOVE=1\nFDNAME=%s", name);
        LIST_REMOVE(shelf, shelves);
        s->n_shelves--;
        shelf_free(shelf);
}

static int store_put(Store *s, StoreUrgency urgency, const ShelfLabel *label, const int *fds,
                     ShelfMessage **ret) {
        Shelf *shelf;
        int r;

        LIST_FOREACH (shelf, &s->shelves[urgency], shelves)
                if (shelf_has_room(shelf)) {
                        r = shelf_put(shelf, label, fds, ret);
                        if (r != -EAGAIN)
                                return r;
                }
        r = store_new_shelf(s, urgency, &shelf);
        return r < 0 ? r : shelf_put(shelf, label, fds, ret);
}

static StoreUrgency shelf_urgency(const Store *s, const Shelf *shelf) {
        return shelf->owner == &s->shelves[STORE_SCARCE] ? STORE_SCARCE : STORE_SOON;
}

static void store_drop_message(Store *s, StoreItem *item, ShelfMessage *m) {
        StoreUrgency urgency = shelf_urgency(s, m->shelf);

        TAILQ_REMOVE(&item->messages, m, item);
        s->n_fds -= m->label.n_fds;
        shelf_drop(m);
        if (!s->dirty[urgency])
                (void) sd_event_source_set_time_relative(s->sweep, SWEEP_USEC);
        s->dirty[urgency] = true;
        (void) sd_event_source_set_enabled(s->sweep, SD_EVENT_ONESHOT);
}

static void store_sweep(Store *s, StoreUrgency urgency) {
        size_t n_empty = 0;
        Shelf *shelf, *next;

        if (!s->dirty[urgency])
                return;
        s->dirty[urgency] = false;
        for (shelf = LIST_FIRST(&s->shelves[urgency]); shelf; shelf = next) {
                int r = shelf_sweep(shelf);

                next = LIST_NEXT(shelf, shelves);
                if (r < 0) {
                        store_degraded(s, r, "Descriptors could not be dropped");
                        s->dirty[urgency] = true;
                }
                if (shelf->n_messages == 0 && ++n_empty > SHELVES_SPARE)
                        store_remove_shelf(s, shelf);
        }
}

static int store_sweep_all(sd_event_source *source, uint64_t usec, void *userdata) {
        Store *s = userdata;

        for (int urgency = 0; urgency < _STORE_URGENCY_MAX; urgency++)
                store_sweep(s, urgency);
        if (!s->dirty[STORE_SOON] && !s->dirty[STORE_SCARCE])
                return 0;
        (void) sd_event_source_set_time_relative(source, USEC_PER_SEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void store_settle(Store *s) {
        store_sweep(s, STORE_SCARCE);
}

/* ---- items ---- */

void store_enter(Store *s, StoreItem *item, StoreKind kind, uint64_t id) {
        *item = (StoreItem){ .store = s, .kind = kind, .id = id };
        TAILQ_INIT(&item->messages);
        LIST_INSERT_HEAD(&s->items, item, items);
}

/* Messages of this version, or those of all others. */
static void item_drop_messages(StoreItem *item, uint32_t version, bool others) {
        ShelfMessage *m, *next;

        for (m = TAILQ_FIRST(&item->messages); m; m = next) {
                next = TAILQ_NEXT(m, item);
                if ((m->label.version == version) != others)
                        store_drop_message(item->store, item, m);
        }
}

static void item_lose(StoreItem *item, int error, const char *what) {
        Store *s = item->store;

        store_degraded(s, error, what);
        statelog_forget(s->log, item->record);
        item->record = 0;
        item_drop_messages(item, UINT32_MAX, true);
        item->lost = true;
}

void store_keep(StoreItem *item, const int *fds, size_t n_fds, StoreUrgency urgency) {
        Store *s = item->store;
        uint32_t version = item->version + 1;

        if (!s->works)
                return;
        /* of two that were not saved the first is nothing to anybody */
        if (item->record == 0)
                item_drop_messages(item, UINT32_MAX, true);
        for (size_t i = 0; i < n_fds; i += SHELF_FDS_MAX) {
                ShelfLabel label = { .kind = item->kind,
                                     .version = version,
                                     .id = item->id,
                                     .first = (uint32_t) i,
                                     .n_fds = (uint32_t) MIN(n_fds - i, SHELF_FDS_MAX) };
                ShelfMessage *m;
                int r = store_put(s, urgency, &label, fds + i, &m);

                if (r < 0) {
                        item_lose(item, r, "Descriptors could not be kept");
                        return;
                }
                TAILQ_INSERT_TAIL(&item->messages, m, item);
                s->n_fds += label.n_fds;
        }
        item->version = version;
        item->n_fds = n_fds;
        item->lost = false;
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

        if (!s->works || item->lost)
                return;
        r = state->failed ? -ENOMEM : statelog_append(s->log, &entry, state->data, &item->record);
        if (r < 0) {
                item_lose(item, r, "State could not be written down");
                return;
        }
        statelog_forget(s->log, before);
        item_drop_messages(item, item->version, true);
        if (statelog_is_stale(s->log))
                store_compact(s);
}

void store_leave(StoreItem *item) {
        Store *s = item->store;

        if (!s)
                return;
        if (s->works) {
                statelog_forget(s->log, item->record);
                item_drop_messages(item, UINT32_MAX, true);
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
        return s->n_fds;
}

/* ---- start and end ---- */

StoreRecord *store_next(Store *s, StoreKind kind, size_t *place) {
        return s->past ? store_past_next(s->past, kind, place) : NULL;
}

static int store_begin(Store *s) {
        char name[STORE_NAME_MAX];
        int r, urgency;

        s->generation = store_past_generation(s->past) + 1;
        r = statelog_new(s->generation, &s->log);
        if (r < 0)
                return r;
        (void) snprintf(name, sizeof(name), STORE_STATE_NAME, s->generation);
        r = store_hand_in(name, s->log->fd);
        /* the spare ones, so that nobody waits for his to be made */
        for (urgency = 0; r >= 0 && urgency < _STORE_URGENCY_MAX; urgency++) {
                Shelf *shelf;

                r = store_new_shelf(s, (StoreUrgency) urgency, &shelf);
        }
        return r;
}

int store_new(sd_event *event, Store **ret) {
        _cleanup_(store_freep) Store *s = calloc(1, sizeof(Store));
        int r;

        if (!s)
                return -ENOMEM;
        LIST_INIT(&s->items);
        for (int urgency = 0; urgency < _STORE_URGENCY_MAX; urgency++)
                LIST_INIT(&s->shelves[urgency]);
        r = sd_event_add_time(event, &s->sweep, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, store_sweep_all,
                              s);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(s->sweep, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = store_past_read(&s->past);
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
        s->past = store_past_end(s->past);
}

Store *store_free(Store *s) {
        if (!s)
                return NULL;
        for (int urgency = 0; urgency < _STORE_URGENCY_MAX; urgency++) {
                Shelf *shelf;

                while ((shelf = LIST_FIRST(&s->shelves[urgency]))) {
                        LIST_REMOVE(shelf, shelves);
                        shelf_free(shelf);
                }
        }
        sd_event_source_disable_unref(s->sweep);
        statelog_free(s->log);
        store_past_free(s->past);
        pack_done(&s->pack);
        free(s);
        return NULL;
}
