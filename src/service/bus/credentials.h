/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the bus says of a connection: the answer of org.freedesktop.DBus.GetConnectionCredentials
 * (D-Bus specification).
 */

#include <sys/types.h>

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct Credentials Credentials;

struct Credentials {
        uid_t uid;
        pid_t pid;   /* 0: the bus cannot tell */
        int pidfd;   /* of that process since the connection was made; -1: an older bus */
        gid_t *gids; /* primary and supplementary; none where the bus does not tell */
        size_t n_gids;
};

#define CREDENTIALS_NULL ((Credentials){ .pidfd = -1 })

/* Fills in c, which is CREDENTIALS_NULL. Without a uid there is nobody to deal with: -ENODATA.
 * -EBADMSG and the like for what is no such answer, -ENOMEM. */
int credentials_read(Credentials *c, sd_bus_message *m);

void credentials_done(Credentials *c);
