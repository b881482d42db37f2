/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "handed.h"

#include <inttypes.h>
#include <string.h>

#include "service/log.h"

#define ROOM_FIRST 16u

void handed_init(Handed *h) {
        *h = (Handed){};
        TAILQ_INIT(&h->users);
}

static size_t user_n_ids(const HandedUser *user) {
        return (size_t) MIN(user->n_handed, (uint64_t) HANDED_EVENTS_MAX);
}

static void handed_free(Handed *h, HandedUser *user) {
        TAILQ_REMOVE(&h->users, user, users);
        h->n_users--;
        free(user->ids);
        free(user);
}

static void handed_forget(Handed *h, HandedUser *user) {
        for (size_t page = 0; page < HANDED_PAGES; page++)
                store_leave(&user->pages[page]);
        handed_free(h, user);
}

void handed_done(Handed *h) {
        while (!TAILQ_EMPTY(&h->users))
                handed_free(h, TAILQ_FIRST(&h->users));
}

static HandedUser *handed_find(const Handed *h, uid_t uid) {
        HandedUser *user;

        TAILQ_FOREACH (user, &h->users, users)
                if (user->uid == uid)
                        return user;
        return NULL;
}

/* The user as the latest one; NULL: no memory. */
static HandedUser *handed_user(Handed *h, uid_t uid) {
        HandedUser *user = handed_find(h, uid);

        if (user)
                TAILQ_REMOVE(&h->users, user, users);
        else {
                user = calloc(1, sizeof(HandedUser));
                if (!user)
                        return NULL;
                user->uid = uid;
                if (h->n_users == HANDED_USERS_MAX)
                        handed_forget(h, TAILQ_LAST(&h->users, HandedUserList));
                h->n_users++;
        }
        TAILQ_INSERT_HEAD(&h->users, user, users);
        return user;
}

static int user_make_room(HandedUser *user, size_t n_ids) {
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

static void handed_save(Handed *h, HandedUser *user, size_t page) {
        size_t n_ids = user_n_ids(user), first = page * HANDED_PAGE;
        StoreItem *item = &user->pages[page];
        Pack *p;

        if (!h->store || first >= n_ids)
                return;
        if (!item->store)
                store_enter(h->store, item, STORE_HANDED, (uint64_t) user->uid << 8 | page);
        p = store_pack(h->store);
        pack_u64(p, "handed", user->n_handed);
        pack_bytes(p, "ids", user->ids + first, MIN(n_ids - first, HANDED_PAGE) * sizeof(uint64_t));
        store_save(item, p);
}

int handed_add(Handed *h, uid_t uid, uint64_t id) {
        HandedUser *user = handed_user(h, uid);
        size_t place;
        int r;

        if (!user)
                return -ENOMEM;
        place = (size_t) (user->n_handed % HANDED_EVENTS_MAX);
        r = user_make_room(user, place + 1);
        if (r < 0)
                return r;
        user->ids[place] = id;
        user->n_handed++;
        handed_save(h, user, place / HANDED_PAGE);
        return 0;
}

bool handed_has(const Handed *h, uid_t uid, uint64_t id) {
        const HandedUser *user = handed_find(h, uid);

        for (size_t i = 0; user && i < user_n_ids(user); i++)
                if (user->ids[i] == id)
                        return true;
        return false;
}

/* ---- restarts ---- */

static int handed_restore_page(Handed *h, const StoreRecord *record) {
        size_t page = record->id & 0xff, size;
        const void *ids = unpack_bytes(&record->state, "ids", &size);
        uint64_t n_handed = unpack_u64(&record->state, "handed", 0);
        HandedUser *user;
        int r;

        if (!ids || page >= HANDED_PAGES || record->id >> 8 > UINT32_MAX ||
            size > HANDED_PAGE * sizeof(uint64_t) || size % sizeof(uint64_t) != 0)
                return -EBADMSG;
        user = handed_user(h, (uid_t) (record->id >> 8));
        if (!user)
                return -ENOMEM;
        user->n_handed = MAX(user->n_handed, n_handed);
        r = user_make_room(user, MAX(user_n_ids(user), (page + 1) * HANDED_PAGE));
        if (r == 0)
                memcpy(user->ids + page * HANDED_PAGE, ids, size);
        return r;
}

int handed_restore(Handed *h, Store *store) {
        const StoreRecord *record;
        HandedUser *user;
        size_t place = 0;

        while ((record = store_next(store, STORE_HANDED, &place))) {
                int r = handed_restore_page(h, record);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(LOG_ERR, "Events of user %" PRIu64 " are forgotten: %s",
                                  record->id >> 8, strerror(-r));
        }
        h->store = store;
        TAILQ_FOREACH (user, &h->users, users)
                for (size_t page = 0; page < HANDED_PAGES; page++)
                        handed_save(h, user, page);
        return 0;
}
