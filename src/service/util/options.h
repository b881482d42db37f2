/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads an a{sv} of options by a table. Unknown keys, wrong types and duplicate keys are
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

#define OPTION_STRINGS_MAX 8192u /* in one option of type "as" */

/* Reads the dictionary at the message's position into data. Bit i of ret_seen is set if option i is
 * given. */
int options_read(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, void *data,
                 uint64_t *ret_seen, Refusal *why);

/* Checks that a client's text is short enough and has no control characters. what names it in the
 * refusal ("the reason"). The bus guarantees UTF-8. REFUSAL_INVALID_ARGS. */
int words_check(const char *what, const char *words, size_t max_bytes, Refusal *why);

/* Reads an array of strings (signature "as") as a NULL-terminated array, also when it is empty.
 * -E2BIG: there are more than max. sd_bus_message_read_strv() is quadratic in the number of
 * strings, and a message holds millions. */
int strings_read(sd_bus_message *m, size_t max, char ***ret);

/* Frees a NULL-terminated array of strings. NULL is fine. Returns NULL. */
char **strings_free(char **strings);
DEFINE_CLEANUP(char **, strings_free)
