/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "polkit.h"

#include <string.h>

#define ALLOW_USER_INTERACTION 1u

static int polkit_subject_append(const PolkitSubject *s, sd_bus_message *m) {
        if (s->name)
                return sd_bus_message_append(m, "(sa{sv})", "system-bus-name", 1, "name", "s",
                                             s->name);
        return sd_bus_message_append(m, "(sa{sv})", "unix-process", 4, "pidfd", "h", s->pidfd,
                                     "pid", "u", (uint32_t) s->pid, "start-time", "t",
                                     s->start_time, "uid", "i", (int32_t) s->uid);
}

int polkit_check_new(sd_bus *bus, const PolkitSubject *subject, const char *action,
                     const Details *details, bool interactive, const char *id,
                     sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                           "CheckAuthorization");
        if (r < 0)
                return r;
        r = polkit_subject_append(subject, m);
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', action);
        if (r < 0)
                return r;
        r = details_append(details, m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "us", interactive ? ALLOW_USER_INTERACTION : 0, id);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

int polkit_answer_read(sd_bus_message *m, PolkitAnswer *ret) {
        PolkitAnswer answer = {};
        int authorized, challenge, r;

        r = sd_bus_message_enter_container(m, 'r', "bba{ss}");
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "bb", &authorized, &challenge);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "{ss}");
        if (r < 0)
                return r;
        for (;;) {
                const char *key, *value;

                r = sd_bus_message_read(m, "{ss}", &key, &value);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                if (strcmp(key, "polkit.dismissed") == 0)
                        answer.dismissed = true;
                else if (strncmp(key, "polkit.", strlen("polkit.")) == 0)
                        answer.temporary = true; /* .temporary_authorization_id, .retains_... */
        }
        answer.authorized = authorized;
        answer.challenge = challenge;
        *ret = answer;
        return 0;
}

int polkit_cancel(sd_bus *bus, const char *id) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                           "CancelCheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", id);
        if (r < 0)
                return r;
        (void) sd_bus_message_set_auto_start(m, false);
        return sd_bus_send(bus, m, NULL);
}

/* Without this match, the cache is outdated for AUTH_CACHE_USEC at most. */
static int on_watched(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return 1;
}

int polkit_watch(sd_bus *bus, sd_bus_message_handler_t changed, void *userdata, sd_bus_slot **ret) {
        return sd_bus_match_signal_async(bus, ret, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                         "Changed", changed, on_watched, userdata);
}
