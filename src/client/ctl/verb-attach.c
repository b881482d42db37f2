/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/verbs.h"

/* attach, detach: which processes a counter counts. */

static int read_pid(const char *word, uint32_t *ret, Refusal *why) {
        unsigned long long n = 0;

        if (*word && strlen(word) <= 10 && !word[strspn(word, "0123456789")])
                n = strtoull(word, NULL, 10);
        if (n == 0 || n > UINT32_MAX)
                return refuse(why, CTL_E_USAGE, "'%.64s' is no process: give its pid", word);
        *ret = (uint32_t) n;
        return 0;
}

static int read_words(Ctl *c, char **ret_path, uint32_t *ret_pid, Refusal *why) {
        int r = ctl_path("counter", c->words[0], ret_path, why);

        return r == 0 ? read_pid(c->words[1], ret_pid, why) : r;
}

int verb_attach(Ctl *c, Refusal *why) {
        bool descendants = c->options->descendants;
        _cleanup_free_ char *path = NULL;
        uint32_t pid;
        int r = read_words(c, &path, &pid, why);

        if (r != 0)
                return r;
        return ctl_call_method(c, path, PERFALLOC_COUNTER_INTERFACE, "AttachProcess", NULL, why,
                               "ua{sv}", pid, descendants, "descendants", "b", true);
}

int verb_detach(Ctl *c, Refusal *why) {
        _cleanup_free_ char *path = NULL;
        uint32_t pid;
        int r = read_words(c, &path, &pid, why);

        if (r != 0)
                return r;
        return ctl_call_method(c, path, PERFALLOC_COUNTER_INTERFACE, "DetachProcess", NULL, why,
                               "u", pid);
}
