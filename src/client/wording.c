/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wording.h"

#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#define OBJECTS PERFALLOC_OBJECT_PATH "/"

/* Keys of Hold and OpenCounters. */
static const struct {
        const char *key, *option;
} options[] = {
        { "pmus", "--pmu" },
        { "cpus", "--cpus" },
        { "counters", "--counters" },
        { "mode", "--exclusive" },
        { "wait_usec", "--wait" },
        { "yield_usec", "--deadline" },
        { "best_effort", "--best-effort" },
        { "pid", "--pid" },
        { "pidfd", "--pid" },
        { "cgroup", "--cgroup" },
        { "attach", "--detached" },
        { "start", "--stopped" },
        { "descendants", "--descendants" },
        { "group", "--group" },
        { "pinned", "--pinned" },
        { "persistent", "--persistent" },
        { "role", "--role" },
        { "priority", "--priority" },
        { "yield", "--yield" },
        { "name", "--name" },
};

static bool has_pidfd;

void wording_has_pidfd(void) {
        has_pidfd = true;
}

/* The option of a key in quotes, and how long that is; NULL: it is none. */
static const char *option_of(const char *quoted, size_t *ret_length) {
        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                size_t n = strlen(options[i].key);

                if (strncmp(quoted + 1, options[i].key, n) == 0 && quoted[n + 1] == '\'') {
                        *ret_length = n + 2;
                        return has_pidfd && strcmp(options[i].key, "pidfd") == 0
                                       ? "--pidfd"
                                       : options[i].option;
                }
        }
        return NULL;
}

/* "option 'a'", "options 'a' and 'b'" */
static const char *const before_keys[] = { "option '", "options '", "and '" };

/* Prints what begins at text in the words of the command line. Returns how long it is; 0: it is no
 * option. */
static size_t print_option(const char *text, bool after_option, FILE *f) {
        for (size_t i = 0; i < ELEMENTSOF(before_keys); i++) {
                size_t before = strlen(before_keys[i]) - 1, n;
                bool and = *before_keys[i] == 'a';
                const char *option;

                if (strncmp(text, before_keys[i], before + 1) != 0 || (and&&!after_option))
                        continue;
                option = option_of(text + before, &n);
                if (!option)
                        continue;
                fprintf(f, "%s%s", and? "and " : "", option);
                return before + n;
        }
        return 0;
}

static void print_options(const char *text, FILE *f) {
        bool after_option = false;

        while (*text) {
                size_t n = print_option(text, after_option, f);

                after_option = n > 0 || (after_option && *text == ' ');
                if (n == 0)
                        fputc(*text, f);
                text += MAX(n, 1u);
        }
}

/* "/org/perfalloc1/pmu/NAME" has an escaped name. */
static void print_pmu(const char *path, FILE *f) {
        _cleanup_free_ char *name = NULL;

        if (sd_bus_path_decode(path, OBJECTS "pmu", &name) <= 0)
                fputs(path, f);
        else
                fprintf(f, "there is no PMU %s", name);
}

static void print_unknown(const char *message, FILE *f) {
        const char *begin = strstr(message, OBJECTS);
        char path[256], *slash;

        if (!begin) {
                fputs(message, f);
                return;
        }
        (void) snprintf(path, sizeof(path), "%.*s", (int) strcspn(begin, "' "), begin);
        slash = strchr(path + strlen(OBJECTS), '/');
        if (strncmp(path, OBJECTS "pmu/", strlen(OBJECTS "pmu/")) == 0)
                print_pmu(path, f);
        else if (slash)
                fprintf(f, "there is no %.*s %s", (int) (slash - path - (int) strlen(OBJECTS)),
                        path + strlen(OBJECTS), slash + 1);
        else
                fputs(message, f);
}

void wording_of_error(const sd_bus_error *error, char ret[static REFUSAL_TEXT_MAX]) {
        const char *message = error->message ?: error->name;
        FILE *f;

        ret[0] = '\0';
        f = fmemopen(ret, REFUSAL_TEXT_MAX, "w");
        if (!f) {
                (void) snprintf(ret, REFUSAL_TEXT_MAX, "%s", message);
                return;
        }
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT))
                print_unknown(message, f);
        else
                print_options(message, f);
        (void) fclose(f);
        ret[REFUSAL_TEXT_MAX - 1] = '\0';
}
