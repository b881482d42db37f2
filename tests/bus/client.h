/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A connection with the credentials of some user; a test may have any number. An unexpected failure
 * ends the test program, with the text of the error.
 */

/* before GLib, which has MIN and MAX of its own */
#include "core/util.h"

#include <glib.h>
#include <perfalloc/dbus.h>
#include <poll.h>
#include <string.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "await.h"

#define MANAGER PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE

struct passwd;

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_message, sd_bus_message_unref)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(sd_bus_error, sd_bus_error_free)

typedef struct Client Client;

struct Client {
        sd_bus *bus;
        char *name;    /* on the bus */
        GQueue *inbox; /* messages that came while another one was awaited */
        char *refusal; /* words of the last client_refused() */
        uid_t uid;
        GArray *proofs; /* descriptors */
        pid_t proven;   /* of the last one */
};

Client *client_new(const char *user);
void client_free(Client *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Client, client_free)

/* Calls the service, which from then on holds the client's process by a descriptor. */
void client_greet(Client *c);

/* For option procfd: maps of the process (or the thread's process), opened with the rights of the
 * client's user. The client's; -1: that user may not. */
int client_proof(Client *c, pid_t pid);

/* A user of the rig. */
const struct passwd *user_find(const char *user);
uid_t user_id(const char *user);

/* Calls a method of the service and returns the reply, however long it takes. */
sd_bus_message *client_call(Client *c, const char *path, const char *interface, const char *member,
                            const char *types, ...);

/* Makes a call that must be refused with this error; the text is in c->refusal afterwards. */
void client_refused(Client *c, const char *error, const char *path, const char *interface,
                    const char *member, const char *types, ...);

/* The same for a message that the caller has built. */
sd_bus_message *client_call_message(Client *c, sd_bus_message *m);
void client_refused_message(Client *c, const char *error, sd_bus_message *m);
sd_bus_message *client_message(Client *c, const char *path, const char *interface,
                               const char *member);

/* Sends a call and does not wait; client_receive() gets the answer, error or not. */
uint64_t client_send(Client *c, const char *path, const char *interface, const char *member,
                     const char *types, ...);
sd_bus_message *client_receive(Client *c, uint64_t cookie);

uint64_t client_send_message(Client *c, sd_bus_message *m); /* one that the caller has built */

/* Whether the answer has arrived. */
bool client_has_answer(Client *c, uint64_t cookie);

/* The next message of any kind; NULL when none came within the time. */
sd_bus_message *client_next(Client *c, uint64_t usec);

/* Signals of the service come to the client's inbox from now on. */
void client_watch(Client *c);

char *client_get(Client *c, const char *path, const char *interface, const char *property);
uint64_t client_get_number(Client *c, const char *path, const char *interface, const char *property,
                           char type);
/* The reply, inside of the variant. */
sd_bus_message *client_get_variant(Client *c, const char *path, const char *interface,
                                   const char *property, const char *type);
bool client_reads(Client *c, const char *path, const char *interface, const char *property,
                  const char *value);
bool client_finds(Client *c, const char *path, const char *interface);

/* Reads, at the message's position, a{sv} or a{sa{sv}} and returns the value of a property that is
 * a string; NULL: it is not there. */
char *properties_read(sd_bus_message *m, const char *property);
char *object_read(sd_bus_message *m, const char *interface, const char *property);

/* All objects of the service, one after the other, each at its a{sa{sv}}, which has to be read or
 * skipped: path is NULL at first. False: there are no more. */
sd_bus_message *client_objects(Client *c);
bool objects_next(sd_bus_message *m, const char **path);

/* The number of objects of the kind ("hold", "counter"). */
unsigned client_count(Client *c, const char *kind);

/* Ends the test when r is an error. */
void bus_check(int r, const char *what);

/* The process of the bus itself. */
pid_t bus_pid(Client *c);
