/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls of every method of every interface in dbus/, with random or nearly valid arguments: on
 * existing objects and others, with descriptors of all kinds.
 *
 * Random numbers are GLib's: a test's --seed repeats the calls as long as the answers come in the
 * same order.
 */

#include "bus-util.h"

typedef struct Rubbish Rubbish;

Rubbish *rubbish_new(void);
void rubbish_free(Rubbish *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rubbish, rubbish_free)

/* Makes a call, without sending it; its signature need not be the method's. */
sd_bus_message *rubbish_message(Rubbish *r, Client *c);

/* Takes object paths and words out of a reply, to be used in later calls. Calls found() with each
 * descriptor, which is the message's. */
void rubbish_learn(Rubbish *r, sd_bus_message *reply, void (*found)(void *userdata, int fd),
                   void *userdata);

/* Closes received descriptors: until then they are sent to the service again. */
void rubbish_forget_descriptors(Rubbish *r);

/* From now on without breakpoints: others may use these. */
void rubbish_soften(Rubbish *r);

/* From now on with so many bytes of long words in a message at most. */
void rubbish_shorten(Rubbish *r, size_t bytes_max);

/* A process that calls may name. */
void rubbish_learn_process(Rubbish *r, pid_t pid);

/* True once in n times. */
bool rubbish_chance(unsigned n);
