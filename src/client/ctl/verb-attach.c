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
                return refuse(why, CTL_E_USAGE, "'%.64s' is no process: give its pid", word);
        *ret = (uint32_t) n;
        return 0;
}

static int begin(Ctl *c, const char *member, sd_bus_message **ret, uint32_t *ret_pid,
                 Refusal *why) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = ctl_path("counter", c->words[0], &path, why);
        if (r == 0)
                r = read_pid(c->words[1], ret_pid, why);
        if (r == 0)
                r = ctl_call_new(c, ret, path, PERFALLOC_COUNTER_INTERFACE, member);
        return r;
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

int verb_attach(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint32_t pid;
        int r = begin(c, "AttachProcess", &m, &pid, why);

        if (r == 0)
                r = append_target(c, m, pid, why);
        return r == 0 ? ctl_call(c, m, NULL, why) : r;
}

int verb_detach(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint32_t pid;
        int r = begin(c, "DetachProcess", &m, &pid, why);

        if (r == 0)
                r = MIN(sd_bus_message_append(m, "u", pid), 0);
        return r == 0 ? ctl_call(c, m, NULL, why) : r;
}
