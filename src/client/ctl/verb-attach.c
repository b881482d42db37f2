/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/process.h"
#include "client/ctl/verbs.h"

/* attach, detach: which processes a counter counts. */

static int read_pid(const char *word, uint32_t *ret, Refusal *why) {
        unsigned long long n = 0;

        if (*word && strlen(word) <= 10 && !word[strspn(word, "0123456789")])
                n = strtoull(word, NULL, 10);
        if (n == 0 || n > UINT32_MAX)
                return refuse(why, CTL_E_USAGE, "invalid process '%.64s': give its pid", word);
        *ret = (uint32_t) n;
        return 0;
}

/* By descriptors on this machine, and without the number, which may differ in a container. */
static int append_target(Ctl *c, sd_bus_message *m, uint32_t pid, Refusal *why) {
        _cleanup_(ctl_process_done) CtlProcess process = CTL_PROCESS_NULL;
        int r = ctl_is_local(c) ? ctl_process_open(pid, &process, why) : 0;

        if (r != 0)
                return r;
        r = sd_bus_message_append(m, "u", process.pidfd < 0 ? pid : 0);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && process.pidfd >= 0)
                r = ctl_process_append(&process, m);
        if (r >= 0 && c->options->descendants)
                r = sd_bus_message_append(m, "{sv}", "descendants", "b", 1);
        return r < 0 ? r : MIN(sd_bus_message_close_container(m), 0);
}

static int attach(Ctl *c, const char *path, uint32_t pid, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = ctl_call_new(c, &m, path, PERFALLOC_COUNTER_INTERFACE, "AttachProcess");

        if (r == 0)
                r = append_target(c, m, pid, why);
        return r == 0 ? ctl_call(c, m, NULL, why) : r;
}

static int detach(Ctl *c, const char *path, uint32_t pid, Refusal *why) {
        return ctl_call_method(c, path, PERFALLOC_COUNTER_INTERFACE, "DetachProcess", NULL, why,
                               "u", pid);
}

/* COUNTER... PID */
static int each_counter(Ctl *c, int (*act)(Ctl *c, const char *path, uint32_t pid, Refusal *why),
                        Refusal *why) {
        uint32_t pid = 0;
        int result = 0;

        if (read_pid(c->words[c->n_words - 1], &pid, why) != 0)
                return CTL_E_USAGE;
        for (size_t i = 0; i + 1 < c->n_words && ctl_may_go_on(result); i++) {
                _cleanup_free_ char *path = NULL;
                int r = ctl_path("counter", c->words[i], &path, why);

                if (r == 0)
                        r = act(c, path, pid, why);
                result = ctl_go_on(result, r, why);
        }
        return result;
}

int verb_attach(Ctl *c, Refusal *why) {
        return each_counter(c, attach, why);
}

int verb_detach(Ctl *c, Refusal *why) {
        return each_counter(c, detach, why);
}
