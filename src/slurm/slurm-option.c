/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slurm-option.h"

#include <string.h>

#include "core/number.h"
#include "core/timespan.h"

static int pmus_parse(char *text, SlurmOption *o, Refusal *why) {
        size_t n = 0;
        char *name;

        while ((name = strsep(&text, "+"))) {
                if (!*name || n == SLURM_PMUS_MAX)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "pmus: give 1 to %u names with a plus between them",
                                      SLURM_PMUS_MAX);
                free(o->pmus[n]);
                o->pmus[n] = strdup(name);
                if (!o->pmus[n++])
                        return -ENOMEM;
        }
        return 0;
}

static int word_parse(char *word, SlurmOption *o, Refusal *why) {
        char *value = strchrnul(word, '=');
        uint64_t n;

        if (*value)
                *value++ = '\0';
        if (strcmp(word, "exclusive") == 0 && !*value)
                o->exclusive = true;
        else if (strcmp(word, "best-effort") == 0 && !*value)
                o->best_effort = true;
        else if (strcmp(word, "pmus") == 0)
                return pmus_parse(value, o, why);
        else if (strcmp(word, "counters") == 0) {
                if (number_parse(value, &n) != 0 || n > UINT32_MAX)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "counters: '%.32s' is not a number", value);
                o->counters = (uint32_t) n;
        } else if (strcmp(word, "wait") == 0) {
                if (timespan_parse(value, &o->wait_usec) != 0)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "wait: '%.32s' is not a time such as 30s", value);
        } else
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "'%.32s' is none of exclusive, counters=N, pmus=NAME[+NAME...], "
                              "wait=TIME, best-effort",
                              word);
        return 0;
}

int slurm_option_parse(const char *text, SlurmOption *ret, Refusal *why) {
        _cleanup_(slurm_option_done) SlurmOption o = SLURM_OPTION_NULL;
        _cleanup_free_ char *copy = strdup(text ?: "");
        char *rest = copy, *word;
        int r = 0;

        if (!copy)
                return -ENOMEM;
        while (r == 0 && *copy && (word = strsep(&rest, ",")))
                r = word_parse(word, &o, why);
        if (r == 0 && o.exclusive && o.counters > 0)
                r = refuse(why, REFUSAL_INVALID_ARGS,
                           "exclusive takes all counters: leave out "
                           "counters=%u",
                           o.counters);
        if (r != 0)
                return r;
        o.given = true;
        *ret = o;
        o = SLURM_OPTION_NULL;
        return 0;
}

void slurm_option_done(SlurmOption *o) {
        for (char **name = o->pmus; *name; name++)
                free(*name);
        *o = SLURM_OPTION_NULL;
}
