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

static int begin(Ctl *c, const char *member, sd_bus_message **ret, Refusal *why) {
        _cleanup_free_ char *path = NULL;
        uint32_t pid = 0;
        int r;

        r = ctl_path("counter", c->words[0], &path, why);
        if (r == 0)
                r = read_pid(c->words[1], &pid, why);
        if (r == 0)
                r = ctl_call_new(c, ret, path, PERFALLOC_COUNTER_INTERFACE, member);
        if (r == 0)
                r = MIN(sd_bus_message_append(*ret, "u", pid), 0);
        return r;
}

int verb_attach(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = begin(c, "AttachProcess", &m, why);

        if (r != 0)
                return r;
        if (c->options->descendants)
                r = sd_bus_message_append(m, "a{sv}", 1, "descendants", "b", 1);
        else
                r = sd_bus_message_append(m, "a{sv}", 0);
        return r < 0 ? r : ctl_call(c, m, NULL, why);
}

int verb_detach(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = begin(c, "DetachProcess", &m, why);

        return r == 0 ? ctl_call(c, m, NULL, why) : r;
}
