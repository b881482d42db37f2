/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads an a{sv} of options by a table. Unknown keys, wrong types and keys given twice are
 * REFUSAL_INVALID_ARGS naming the key.
 */

#include <systemd/sd-bus.h>

#include "core/refusal.h"

typedef struct OptionSpec OptionSpec;

/* signature -> type of the field at offset:
 *   "b" int, "u" uint32_t, "t" uint64_t,
 *   "s" const char *, "h" int: borrowed from the message,
 *   "as" char **: allocated, see strings_free() */
struct OptionSpec {
        const char *key;
        const char *signature;
        size_t offset;
};

#define OPTIONS_MAX 64u

/* Reads the dictionary at the message's position into data. Bit i of ret_seen: option i was given. */
int options_read(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, void *data,
                 uint64_t *ret_seen, Refusal *why);

/* Frees a NULL-terminated array of strings; NULL is fine. Returns NULL. */
char **strings_free(char **strings);
DEFINE_CLEANUP(char **, strings_free)
