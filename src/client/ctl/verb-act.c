/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/verbs.h"

/* close, start, stop, reset: a method without arguments on each object that is named. */

static const struct {
        const char *verb;
        const char *kind, *interface, *member;
} acts[] = {
        { "close", "counter", PERFALLOC_COUNTER_INTERFACE, "Close" },
        { "start", "counter", PERFALLOC_COUNTER_INTERFACE, "Start" },
        { "stop", "counter", PERFALLOC_COUNTER_INTERFACE, "Stop" },
        { "reset", "counter", PERFALLOC_COUNTER_INTERFACE, "Reset" },
};

int verb_act(Ctl *c, Refusal *why) {
        size_t i = 0;
        int result = 0;

        while (strcmp(acts[i].verb, c->verb) != 0)
                i++;
        for (char **word = c->words; *word && ctl_may_go_on(result); word++) {
                _cleanup_free_ char *path = NULL;
                int r = ctl_path(acts[i].kind, *word, &path, why);

                if (r == 0)
                        r = ctl_call_method(c, path, acts[i].interface, acts[i].member, NULL, why,
                                            "");
                result = ctl_go_on(result, r, why);
        }
        return result;
}
