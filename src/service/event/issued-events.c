/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "issued-events.h"

#include <inttypes.h>
#include <string.h>

#include "service/util/log.h"

#define ROOM_FIRST 16u

void issued_events_init(IssuedEvents *h) {
        *h = (IssuedEvents){};
        TAILQ_INIT(&h->users);
}

static size_t user_n_ids(const IssuedEventsUser *user) {
        return (size_t) MIN(user->n_issued, (uint64_t) ISSUED_EVENTS_EVENTS_MAX);
}

static void user_free(IssuedEvents *h, IssuedEventsUser *user) {
        TAILQ_REMOVE(&h->users, user, users);
        h->n_users--;
        free(user->ids);
        free(user);
}

static void user_forget(IssuedEvents *h, IssuedEventsUser *user) {
        for (size_t page = 0; page < ISSUED_EVENTS_PAGES; page++)
                store_leave(&user->pages[page]);
        user_free(h, user);
}

void issued_events_done(IssuedEvents *h) {
        while (!TAILQ_EMPTY(&h->users))
                user_free(h, TAILQ_FIRST(&h->users));
}

static IssuedEventsUser *user_find(const IssuedEvents *h, uid_t uid) {
        IssuedEventsUser *user;

        TAILQ_FOREACH (user, &h->users, users)
                if (user->uid == uid)
                        return user;
        return NULL;
}

/* The user, moved to the front. NULL: no memory. */
static IssuedEventsUser *user_get(IssuedEvents *h, uid_t uid) {
        IssuedEventsUser *user = user_find(h, uid);

        if (user)
                TAILQ_REMOVE(&h->users, user, users);
        else {
                user = calloc(1, sizeof(IssuedEventsUser));
                if (!user)
                        return NULL;
                user->uid = uid;
                if (h->n_users == ISSUED_EVENTS_USERS_MAX)
                        user_forget(h, TAILQ_LAST(&h->users, IssuedEventsUserList));
                h->n_users++;
        }
        TAILQ_INSERT_HEAD(&h->users, user, users);
        return user;
}

static int user_make_room(IssuedEventsUser *user, size_t n_ids) {
        size_t room = MAX(user->n_room, ROOM_FIRST);
        uint64_t *ids;

        while (room < n_ids)
                room *= 2;
        if (room == user->n_room)
                return 0;
        ids = reallocarray(user->ids, room, sizeof(uint64_t));
        if (!ids)
                return -ENOMEM;
        memset(ids + user->n_room, 0, (room - user->n_room) * sizeof(uint64_t));
        user->ids = ids;
        user->n_room = room;
        return 0;
}

static void user_save(IssuedEvents *h, IssuedEventsUser *user, size_t page) {
        size_t n_ids = user_n_ids(user), first = page * ISSUED_EVENTS_PAGE;
        StoreItem *item = &user->pages[page];
        Pack *p;

        if (!h->store || first >= n_ids)
                return;
        if (!item->store)
                store_enter(h->store, item, STORE_ISSUED_EVENTS, (uint64_t) user->uid << 8 | page,
                            NULL);
        p = store_pack(h->store);
        pack_u64(p, "handed", user->n_issued); /* keys keep their first names */
        pack_bytes(p, "ids", user->ids + first,
                   MIN(n_ids - first, ISSUED_EVENTS_PAGE) * sizeof(uint64_t));
        store_save(item, p);
}

int issued_events_add_all(IssuedEvents *h, uid_t uid, const uint64_t *ids, size_t n) {
        IssuedEventsUser *user = user_get(h, uid);
        int r;

        if (!user)
                return -ENOMEM;
        r = user_make_room(user,
                           (size_t) MIN(user->n_issued + n, (uint64_t) ISSUED_EVENTS_EVENTS_MAX));
        for (size_t i = 0; i < n && r == 0; i++) {
                size_t place = (size_t) (user->n_issued++ % ISSUED_EVENTS_EVENTS_MAX);

                user->ids[place] = ids[i];
                if (i == n - 1 || place % ISSUED_EVENTS_PAGE == ISSUED_EVENTS_PAGE - 1)
                        user_save(h, user, place / ISSUED_EVENTS_PAGE);
        }
        return r;
}

int issued_events_add(IssuedEvents *h, uid_t uid, uint64_t id) {
        return issued_events_add_all(h, uid, &id, 1);
}

bool issued_events_has(const IssuedEvents *h, uid_t uid, uint64_t id) {
        const IssuedEventsUser *user = user_find(h, uid);

        for (size_t i = 0; user && i < user_n_ids(user); i++)
                if (user->ids[i] == id)
                        return true;
        return false;
}

/* ---- restarts ---- */

static int user_restore_page(void *userdata, StoreRecord *record) {
        IssuedEvents *h = userdata;
        size_t page = record->id & 0xff, size;
        const void *ids = unpack_bytes(&record->state, "ids", &size);
        uint64_t n_issued = unpack_u64(&record->state, "handed", 0);
        IssuedEventsUser *user;
        int r;

        if (!ids || page >= ISSUED_EVENTS_PAGES || record->id >> 8 > UINT32_MAX ||
            size > ISSUED_EVENTS_PAGE * sizeof(uint64_t) || size % sizeof(uint64_t) != 0)
                return -EBADMSG;
        user = user_get(h, (uid_t) (record->id >> 8));
        if (!user)
                return -ENOMEM;
        user->n_issued = MAX(user->n_issued, n_issued);
        r = user_make_room(user, MAX(user_n_ids(user), (page + 1) * ISSUED_EVENTS_PAGE));
        if (r == 0)
                memcpy(user->ids + page * ISSUED_EVENTS_PAGE, ids, size);
        return r;
}

int issued_events_restore(IssuedEvents *h, Store *store) {
        IssuedEventsUser *user;
        int r = store_restore_each(store, STORE_ISSUED_EVENTS, "Page of events", user_restore_page,
                                   h);

        if (r < 0)
                return r;
        h->store = store;
        TAILQ_FOREACH (user, &h->users, users)
                for (size_t page = 0; page < ISSUED_EVENTS_PAGES; page++)
                        user_save(h, user, page);
        return 0;
}
