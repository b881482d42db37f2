/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "options.h"

#include <stdio.h>
#include <string.h>

char **strings_free(char **strings) {
        for (char **s = strings; s && *s; s++)
                free(*s);
        free(strings);
        return NULL;
}

int strings_read(sd_bus_message *m, size_t max, char ***ret) {
        _cleanup_(strings_freep) char **strings = calloc(1, sizeof(char *));
        const char *string;
        size_t n = 0;
        int r;

        if (!strings)
                return -ENOMEM;
        r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(m, 's', &string)) > 0) {
                char **more = n < max ? reallocarray(strings, n + 2, sizeof(char *)) : NULL;

                if (!more)
                        return n < max ? -ENOMEM : -E2BIG;
                strings = more;
                strings[n + 1] = NULL;
                strings[n] = strdup(string);
                if (!strings[n++])
                        return -ENOMEM;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(strings);
        return 0;
}

int words_check(const char *what, const char *words, size_t max_bytes, Refusal *why) {
        if (strlen(words) > max_bytes)
                return refuse(why, REFUSAL_INVALID_ARGS, "%s has more than %zu bytes", what,
                              max_bytes);
        for (const char *p = words; *p; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "%s has a control character at byte %zu", what,
                                      (size_t) (p - words));
        return 0;
}

static int refuse_unknown(const OptionSpec *specs, size_t n_specs, const char *key, Refusal *why) {
        char known[512] = "";

        for (size_t i = 0; i < n_specs; i++)
                (void) snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
                                i > 0 ? ", " : "", specs[i].key);
        return refuse(why, REFUSAL_INVALID_ARGS, "unknown option '%.64s' (known: %s)", key, known);
}

static int option_read_value(sd_bus_message *m, const OptionSpec *spec, void *data, Refusal *why) {
        void *field = (char *) data + spec->offset;
        const char *contents;
        int r;

        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        if (strcmp(contents, spec->signature) != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "option '%s' has type '%.32s', not '%s'",
                              spec->key, contents, spec->signature);
        r = sd_bus_message_enter_container(m, 'v', contents);
        if (r < 0)
                return r;
        if (strcmp(spec->signature, "as") == 0)
                r = strings_read(m, OPTION_STRINGS_MAX, field);
        else
                r = sd_bus_message_read_basic(m, spec->signature[0], field);
        if (r == -E2BIG)
                return refuse(why, REFUSAL_INVALID_ARGS, "option '%s' has more than %u strings",
                              spec->key, OPTION_STRINGS_MAX);
        if (r < 0)
                return r;
        return MIN(sd_bus_message_exit_container(m), 0);
}

static int option_read(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, void *data,
                       uint64_t *seen, Refusal *why) {
        const char *key;
        int r = sd_bus_message_read_basic(m, 's', &key);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n_specs; i++) {
                if (strcmp(specs[i].key, key) != 0)
                        continue;
                if (*seen >> i & 1)
                        return refuse(why, REFUSAL_INVALID_ARGS, "option '%s' is given twice", key);
                *seen |= UINT64_C(1) << i;
                return option_read_value(m, &specs[i], data, why);
        }
        return refuse_unknown(specs, n_specs, key, why);
}

int options_read(sd_bus_message *m, const OptionSpec *specs, size_t n_specs, void *data,
                 uint64_t *ret_seen, Refusal *why) {
        uint64_t seen = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = option_read(m, specs, n_specs, data, &seen, why);
                if (r != 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret_seen = seen;
        return 0;
}
