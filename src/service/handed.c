/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "handed.h"

#define ROOM_FIRST 16u

void handed_init(Handed *h) {
        *h = (Handed){};
        TAILQ_INIT(&h->users);
}

static void handed_forget(Handed *h, HandedUser *user) {
        TAILQ_REMOVE(&h->users, user, users);
        h->n_users--;
        free(user->ids);
        free(user);
}

void handed_done(Handed *h) {
        while (!TAILQ_EMPTY(&h->users))
                handed_forget(h, TAILQ_FIRST(&h->users));
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

int handed_add(Handed *h, uid_t uid, uint64_t id) {
        HandedUser *user = handed_user(h, uid);

        if (!user)
                return -ENOMEM;
        if (user->n_ids == user->n_room && user->n_room < HANDED_EVENTS_MAX) {
                size_t room = user->n_room > 0 ? 2 * user->n_room : ROOM_FIRST;
                uint64_t *ids = reallocarray(user->ids, room, sizeof(uint64_t));

                if (!ids)
                        return -ENOMEM;
                user->ids = ids;
                user->n_room = room;
        }
        user->ids[user->next] = id;
        user->n_ids = MAX(user->n_ids, user->next + 1);
        user->next = (user->next + 1) % HANDED_EVENTS_MAX;
        return 0;
}

bool handed_has(const Handed *h, uid_t uid, uint64_t id) {
        const HandedUser *user = handed_find(h, uid);

        for (size_t i = 0; user && i < user->n_ids; i++)
                if (user->ids[i] == id)
                        return true;
        return false;
}
