/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The credentials of a connection as the bus knows them: the reply of
 * org.freedesktop.DBus.GetConnectionCredentials (D-Bus specification).
 */

#include <sys/types.h>

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct Credentials Credentials;

struct Credentials {
        uid_t uid;
        pid_t pid;   /* 0: the bus does not know */
        gid_t *gids; /* primary and supplementary; none if the bus does not know */
        size_t n_gids;
        int pidfd; /* -1: this bus tells none */
};

#define CREDENTIALS_NULL ((Credentials){ .pidfd = -1 })

/* Fills in c, which is CREDENTIALS_NULL. -ENODATA: the reply has no uid. -EBADMSG and others: it is
 * not such a reply. -ENOMEM. */
int credentials_read(Credentials *c, sd_bus_message *m);

void credentials_done(Credentials *c);
