/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>

#include "client/ctl/verbs.h"
#include "client/lifetime.h"
#include "client/say.h"
#include "core/clock.h"
#include "core/timespan.h"

/* release, extend: holds, by their numbers or by a tag. */

typedef int (*HoldAct)(Ctl *c, const char *path, Refusal *why);

static int act_on_words(Ctl *c, HoldAct act, Refusal *why) {
        int result = 0;

        for (char **word = c->words; *word && ctl_may_go_on(result); word++) {
                _cleanup_free_ char *path = NULL;
                int r = ctl_path("hold", *word, &path, why);

                if (r == 0)
                        r = act(c, path, why);
                result = ctl_go_on(result, r, why);
        }
        return result;
}

/* Those that have not ended. */
static int act_on_tagged(Ctl *c, HoldAct act, unsigned *ret_n, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int result = ctl_fetch_all(c, &all, why);

        OBJECTS_FOREACH (o, &all, PERFALLOC_HOLD_INTERFACE) {
                if (!ctl_may_go_on(result) || !object_is(o, "Tag", c->options->tag) ||
                    object_is(o, "State", "ended"))
                        continue;
                result = ctl_go_on(result, act(c, o->path, why), why);
                (*ret_n)++;
        }
        return result;
}

/* *ret_n: how many were found by a tag. */
static int act_on_holds(Ctl *c, HoldAct act, unsigned *ret_n, Refusal *why) {
        if ((c->n_words > 0) == (c->options->tag != NULL))
                return refuse(why, CTL_E_USAGE, "%s: give the numbers of holds, or --tag", c->verb);
        return c->options->tag ? act_on_tagged(c, act, ret_n, why) : act_on_words(c, act, why);
}

static int release(Ctl *c, const char *path, Refusal *why) {
        return ctl_call_method(c, path, PERFALLOC_HOLD_INTERFACE, "Release", NULL, why, "");
}

/* An epilog may run twice: nothing to release is no failure. */
int verb_release(Ctl *c, Refusal *why) {
        unsigned n = 0;
        int r = act_on_holds(c, release, &n, why);

        if (r == 0 && c->options->tag && n == 0)
                say_note("no hold has the tag '%s'", c->options->tag);
        return r;
}

static int extend(Ctl *c, const char *path, Refusal *why) {
        _cleanup_(object_done) Object hold = OBJECT_NULL;
        uint64_t lifetime = c->options->lifetime_usec, since = now_usec(CLOCK_REALTIME);
        int r = ctl_call_method(c, path, PERFALLOC_HOLD_INTERFACE, "Extend", NULL, why, "t",
                                lifetime == TIMESPAN_INFINITY ? 0 : lifetime);

        if (r == 0)
                r = ctl_fetch(c, path, PERFALLOC_HOLD_INTERFACE, &hold, why);
        if (r == 0)
                lifetime_say_cut(&hold, since, lifetime);
        return r;
}

int verb_extend(Ctl *c, Refusal *why) {
        unsigned n = 0;
        int r = act_on_holds(c, extend, &n, why);

        if (r == 0 && c->options->tag && n == 0)
                return refuse(why, CTL_E_UNKNOWN, "no hold has the tag '%.128s'", c->options->tag);
        return r;
}
