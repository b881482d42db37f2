/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracepoint-event.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"
#include "perf/event/modifier.h"
#include "perf/pmu/sysfs.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* False: it has not the form SYSTEM:NAME[:MODIFIERS]. */
static bool split(const char *string, int *ret_system, const char **ret_name, int *ret_length,
                  const char **ret_modifiers) {
        size_t system = strspn(string, LETTERS), length;
        const char *name = string + system + 1;

        if (system == 0 || string[system] != ':')
                return false;
        length = strspn(name, LETTERS);
        if (length == 0 || (name[length] && (name[length] != ':' || !name[length + 1])))
                return false;
        *ret_system = (int) system;
        *ret_name = name;
        *ret_length = (int) length;
        *ret_modifiers = name[length] ? name + length + 1 : "";
        return true;
}

int tracepoint_event_parse(const PmuTable *pmus, const char *string, Event *e, char **ret_path,
                           Refusal *why) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        const char *name, *modifiers;
        int system, length;
        uint64_t id;
        int r;

        *ret_path = NULL;
        if (!split(string, &system, &name, &length, &modifiers))
                return -ENOENT;
        if (asprintf(&path, "%s/kernel/tracing/events/%.*s/%.*s/id", pmus->sysfs, system, string,
                     length, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = sysfs_read(AT_FDCWD, path, &text);
        if (sysfs_is_fatal(r))
                return r;
        if (r < 0 || number_parse(text, &id) < 0) {
                *ret_path = TAKE_PTR(path);
                return -ENOENT;
        }
        e->attr.type = PERF_TYPE_TRACEPOINT;
        e->attr.config = id;
        return modifiers_parse(string, modifiers, &e->attr, why);
}

int tracepoint_event_explain(const char *string, const char *path, Refusal *why) {
        if (access(path, F_OK) == 0 || errno == EACCES || errno == EPERM)
                return refuse(
                        why, REFUSAL_NO_SUCH_EVENT,
                        "event '%s': no event of this CPU has this name, and this service may "
                        "not read what number a tracepoint has; root finds it in %s: then "
                        "write tracepoint/config=NUMBER/",
                        string, path);
        return 0;
}
