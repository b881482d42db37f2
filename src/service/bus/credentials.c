/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "credentials.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t) &&
                      sizeof(pid_t) == sizeof(uint32_t),
              "the bus has them as u");

static int read_uid(sd_bus_message *m, Credentials *c) {
        return sd_bus_message_read(m, "v", "u", &c->uid);
}

static int read_pid(sd_bus_message *m, Credentials *c) {
        return sd_bus_message_read(m, "v", "u", &c->pid);
}

static int read_gids(sd_bus_message *m, Credentials *c) {
        const void *gids;
        size_t size;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "au");
        if (r < 0)
                return r;
        r = sd_bus_message_read_array(m, 'u', &gids, &size);
        if (r < 0)
                return r;

        free(c->gids);
        c->gids = malloc(size + 1);
        if (!c->gids)
                return -ENOMEM;
        if (size > 0)
                memcpy(c->gids, gids, size);
        c->n_gids = size / sizeof(gid_t);
        return sd_bus_message_exit_container(m);
}

/* The message owns the descriptor. */
static int read_pidfd(sd_bus_message *m, Credentials *c) {
        int fd, r = sd_bus_message_read(m, "v", "h", &fd);

        if (r < 0)
                return r;
        close_fd(c->pidfd);
        c->pidfd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return c->pidfd < 0 ? -ENOMEM : 0;
}

static const struct {
        const char *key;
        int (*read)(sd_bus_message *m, Credentials *c);
} fields[] = {
        { "UnixUserID", read_uid },
        { "ProcessID", read_pid },
        { "UnixGroupIDs", read_gids },
        { "ProcessFD", read_pidfd },
};

static int read_field(sd_bus_message *m, Credentials *c, bool *has_uid) {
        const char *key;
        int r;

        r = sd_bus_message_read(m, "s", &key);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (strcmp(key, fields[i].key) == 0) {
                        *has_uid = *has_uid || fields[i].read == read_uid;
                        return fields[i].read(m, c);
                }
        return sd_bus_message_skip(m, "v");
}

int credentials_read(Credentials *c, sd_bus_message *m) {
        bool has_uid = false;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0) {
                r = sd_bus_message_enter_container(m, 'e', "sv");
                if (r <= 0)
                        break;
                r = read_field(m, c, &has_uid);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : has_uid ? 0 : -ENODATA;
}

void credentials_done(Credentials *c) {
        free(c->gids);
        c->gids = NULL;
        c->n_gids = 0;
        c->pidfd = close_fd(c->pidfd);
}
