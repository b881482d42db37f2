/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls of every method of every interface, as dbus/ has them, with arguments that are random or
 * nearly right: on objects that are there and on others, with descriptors of all kinds.
 *
 * Chance is GLib's: a test's --seed repeats what was sent as long as the answers come in the same
 * order.
 */

#include "bus-util.h"

typedef struct Rubbish Rubbish;

Rubbish *rubbish_new(void);
void rubbish_free(Rubbish *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rubbish, rubbish_free)

/* A call that has not been sent; its signature need not be that of the method. */
sd_bus_message *rubbish_message(Rubbish *r, Client *c);

/* Takes object paths and words out of a reply, to be used in later calls. Calls found() with each
 * descriptor, which is the message's. */
void rubbish_learn(Rubbish *r, sd_bus_message *reply, void (*found)(void *userdata, int fd),
                   void *userdata);

/* Closes those that were received: until then they are sent to the service again. */
void rubbish_forget_descriptors(Rubbish *r);

/* A process that calls may speak of. */
void rubbish_learn_process(Rubbish *r, pid_t pid);

/* Once in n times. */
bool rubbish_chance(unsigned n);
