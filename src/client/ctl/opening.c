/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opening.h"

#include <fcntl.h>
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/fallback.h"
#include "client/say.h"
#include "core/event-list.h"

#define CGROUPS "/sys/fs/cgroup/"

void opening_done(Opening *o) {
        o->user_only = event_list_free(o->user_only);
        ctl_process_done(&o->process);
        o->cgroup = close_fd(o->cgroup);
}

/* ---- what to count ---- */

int opening_events(const Ctl *c, char ***ret, Refusal *why) {
        _cleanup_(event_list_freep) char **events = NULL;
        int r = event_list_split(c->words, &events);

        if (r < 0)
                return r;
        for (size_t i = 0; events[i]; i++)
                if (!*events[i])
                        return refuse(why, CTL_E_USAGE,
                                      "event %zu is empty: a comma needs an event before and "
                                      "after it",
                                      i + 1);
        *ret = TAKE_PTR(events);
        return 0;
}

int opening_cgroup(const char *name, int *ret, Refusal *why) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s%s", *name == '/' ? "" : CGROUPS, name) < 0)
                return -ENOMEM;
        *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (*ret < 0)
                return refuse(why, CTL_E_UNKNOWN, "cgroup %s: %s", path, strerror(errno));
        return 0;
}

int opening_prepare(Ctl *c, char **events, pid_t child, Opening *ret, Refusal *why) {
        _cleanup_(opening_done) Opening o = OPENING_NULL;
        const CtlOptions *q = c->options;
        bool cpus = q->all_cpus || (q->hold.cpus && !q->cgroup);
        int n = (q->pid > 0) + (child > 0) + cpus + (q->cgroup != NULL) + q->detached, r = 0;

        if (n == 0)
                return refuse(
                        why, CTL_E_USAGE,
                        "nothing to count: give a command (-- COMMAND), a process (--pid), CPUs "
                        "(--cpus, --all-cpus) or a cgroup (--cgroup)");
        if (n > 1 || (q->all_cpus && q->hold.cpus))
                return refuse(
                        why, CTL_E_USAGE,
                        "--pid, --cpus, --all-cpus, --cgroup, --detached and a command exclude "
                        "each other");
        if (child > 0 && q->pinned)
                return refuse(why, CTL_E_USAGE,
                              "--pinned cannot be used with a command: its descendants are counted "
                              "too, and the kernel does not report when they are not");
        o.events = events;
        o.pid = child > 0 ? (uint32_t) child : q->pid;
        if (o.pid > 0 && ctl_is_local(c))
                r = ctl_process_open(o.pid, &o.process, why);
        else if (q->cgroup)
                r = opening_cgroup(q->cgroup, &o.cgroup, why);
        if (r != 0)
                return r;
        *ret = o;
        o = OPENING_NULL;
        return 0;
}

/* ---- the call ---- */

static int append_target(sd_bus_message *m, const Opening *o, const CtlOptions *q) {
        int r;

        if (o->cgroup >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "scope", "s", "cgroup", "cgroup", "h",
                                          o->cgroup);
        else if (o->process.pidfd >= 0)
                r = ctl_process_append(&o->process, m);
        else if (o->pid > 0)
                r = sd_bus_message_append(m, "{sv}", "pid", "u", o->pid);
        else if (q->detached)
                r = sd_bus_message_append(m, "{sv}", "attach", "b", 0);
        else
                r = sd_bus_message_append(m, "{sv}", "scope", "s", "cpu");
        if (r >= 0 && q->hold.cpus)
                r = sd_bus_message_append(m, "{sv}", "cpus", "s", q->hold.cpus);
        return r;
}

static int append_flags(sd_bus_message *m, const CtlOptions *q, bool with_descendants) {
        const struct {
                const char *key;
                bool given, value;
        } flags[] = {
                { "descendants", with_descendants, true },
                { "group", q->group, true },
                { "pinned", q->pinned, true },
                { "persistent", q->persistent, true },
                { "start", q->stopped || q->detached, false },
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(flags) && r >= 0; i++)
                if (flags[i].given)
                        r = sd_bus_message_append(m, "{sv}", flags[i].key, "b", flags[i].value);
        return r;
}

static int append_words(sd_bus_message *m, const CtlOptions *q) {
        const struct {
                const char *key, *value;
        } words[] = { { "role", q->role }, { "yield", q->yield }, { "name", q->name } };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(words) && r >= 0; i++)
                if (words[i].value)
                        r = sd_bus_message_append(m, "{sv}", words[i].key, "s", words[i].value);
        if (r >= 0 && q->priority > 0)
                r = sd_bus_message_append(m, "{sv}", "priority", "u", q->priority);
        return r;
}

static int append_options(sd_bus_message *m, const Opening *o, const CtlOptions *q) {
        bool command = o->pid > 0 && q->pid == 0;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = append_target(m, o, q);
        if (r >= 0)
                r = append_flags(m, q, q->descendants || command);
        if (r >= 0)
                r = append_words(m, q);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* As many as there are events. */
static int read_counters(sd_bus_message *m, char **events, Readings *ret, Refusal *why) {
        const char *path;
        int r = sd_bus_message_enter_container(m, 'a', "o");

        while (r >= 0 && (r = sd_bus_message_read_basic(m, 'o', &path)) > 0) {
                r = *events++ ? readings_add(ret, path, why) : -EBADMSG;
                if (r > 0)
                        return -EBADMSG;
        }
        return r < 0 ? r : *events ? -EBADMSG : 0;
}

/* prompt: polkit may ask for a password. */
static int open_events(Ctl *c, const Opening *o, char **events, bool prompt, Readings *ret,
                       Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        int r;

        r = ctl_call_new(c, &m, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "OpenCounters");
        if (r >= 0)
                r = sd_bus_message_append_strv(m, events);
        if (r >= 0)
                r = append_options(m, o, c->options);
        if (r == -EINVAL)
                return refuse(why, CTL_E_USAGE, "an event or option is not valid UTF-8");
        if (r >= 0)
                r = prompt ? ctl_call(c, m, &reply, why) : ctl_call_unprompted(c, m, &reply, why);
        return r == 0 ? read_counters(reply, events, ret, why) : r;
}

/* Of CPUs and cgroups user space alone is no less privileged. */
static bool counts_processes(const Ctl *c, const Opening *o) {
        return o->pid > 0 || c->options->detached;
}

/* Whether what is for programs goes to standard error: a note would be in the way there, and the
 * events say :u. */
static bool prints_for_programs(const CtlOptions *q) {
        return q->command && !q->output && (q->json || q->separator);
}

/* Opens the events without the kernel. CTL_E_DENIED: that is not permitted either, or they cannot
 * be opened so. Other refusals are those of the events. */
static int open_user_only(Ctl *c, Opening *o, Readings *ret, Refusal *why) {
        char **events;
        int r;

        r = fallback_events(o->events, &events);
        if (r < 0 || !events)
                return r < 0 ? r : CTL_E_DENIED;
        r = open_events(c, o, events, false, ret, why);
        if (r != 0) {
                event_list_free(events);
                return r;
        }
        o->events = o->user_only = events;
        if (!prints_for_programs(c->options))
                say_note("counting user space only (:u): counting the kernel needs permission "
                         "(org.perfalloc1.count-kernel); with --no-fallback this is an error");
        return 0;
}

int opening_open(Ctl *c, Opening *o, Readings *ret, Refusal *why) {
        int r;

        if (!c->options->no_fallback && counts_processes(c, o)) {
                r = open_events(c, o, o->events, false, ret, why);
                if (r == CTL_E_DENIED)
                        r = open_user_only(c, o, ret, why);
                if (r != CTL_E_DENIED)
                        return r;
        }
        return open_events(c, o, o->events, true, ret, why);
}
