/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "client/agent.h"
#include "client/bus.h"
#include "client/say.h"

#define WIDTH_DEFAULT 80u /* of a terminal that does not tell */

#define LOST_MAX 10 /* calls that end with the service, because the call itself may crash it */

void ctl_look_at_terminal(Ctl *c) {
        struct winsize size = {};

        c->terminal = isatty(STDOUT_FILENO);
        if (!c->terminal)
                return;
        c->width = WIDTH_DEFAULT;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                c->width = size.ws_col;
}

bool ctl_is_local(const Ctl *c) {
        return !c->options->host && !c->options->machine;
}

int ctl_open(Ctl *c, Refusal *why) {
        const CtlOptions *o = c->options;
        BusPlace place = o->host ? BUS_HOST : o->machine ? BUS_MACHINE : BUS_HERE;
        int r;

        r = bus_open_at(place, o->host ?: o->machine, &c->bus, why);
        if (r != 0)
                return r < 0 ? r : CTL_E_FAILED;
        r = sd_event_new(&c->event);
        return r < 0 ? r : MIN(sd_bus_attach_event(c->bus, c->event, SD_EVENT_PRIORITY_NORMAL), 0);
}

void ctl_close(Ctl *c) {
        if (c->bus)
                (void) sd_bus_detach_event(c->bus);
        c->bus = sd_bus_flush_close_unref(c->bus);
        c->event = sd_event_unref(c->event);
}

/* ---- signals ---- */

static int ctl_interrupted(void *userdata, const struct signalfd_siginfo *info) {
        Ctl *c = userdata;

        c->signo = (int) info->ssi_signo;
        return 0;
}

int ctl_watch_signals(Ctl *c) {
        return MIN(signals_watch(c->signals, c->event, SIGNALS_END, ctl_interrupted, c), 0);
}

int ctl_run(Ctl *c, const bool *done) {
        int r = 0;

        while (r >= 0 && !*done && c->signo == 0)
                r = sd_event_run(c->event, UINT64_MAX);
        return r < 0 ? r : *done ? 0 : CTL_E_INTERRUPTED;
}

int ctl_refuse_unwritten(int error, Refusal *why) {
        return refuse(why, CTL_E_FAILED, "standard output: %s", strerror(error));
}

/* ---- calls ---- */

/* Errors that a script may want to distinguish. */
static const struct {
        const char *error;
        int code;
} codes[] = {
        { SD_BUS_ERROR_INVALID_ARGS, CTL_E_USAGE },
        { PERFALLOC_ERROR_INVALID_EVENT, CTL_E_USAGE },
        { SD_BUS_ERROR_ACCESS_DENIED, CTL_E_DENIED },
        { SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, CTL_E_DENIED },
        { PERFALLOC_ERROR_NOT_OWNER, CTL_E_DENIED },
        { PERFALLOC_ERROR_NOT_PERMITTED, CTL_E_DENIED },
        { PERFALLOC_ERROR_PRIVILEGE_NEEDED, CTL_E_DENIED },
        { PERFALLOC_ERROR_BUSY, CTL_E_BUSY },
        { PERFALLOC_ERROR_NO_COUNTER_LEFT, CTL_E_BUSY },
        { PERFALLOC_ERROR_OBSTRUCTED, CTL_E_BUSY },
        { PERFALLOC_ERROR_TIMED_OUT, CTL_E_BUSY },
        { SD_BUS_ERROR_UNKNOWN_OBJECT, CTL_E_UNKNOWN },
        { PERFALLOC_ERROR_NO_SUCH_EVENT, CTL_E_UNKNOWN },
        { PERFALLOC_ERROR_NO_SUCH_PROCESS, CTL_E_UNKNOWN },
        { PERFALLOC_ERROR_INVALID_PROCESS, CTL_E_UNKNOWN },
};

int ctl_refuse(const sd_bus_error *error, Refusal *why) {
        (void) bus_refuse(error, why);
        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (strcmp(codes[i].error, error->name) == 0)
                        return codes[i].code;
        return CTL_E_FAILED;
}

typedef struct Call {
        bool answered;
        sd_bus_message *reply;
} Call;

static int call_answered(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Call *call = userdata;

        call->answered = true;
        call->reply = sd_bus_message_ref(m);
        return 0;
}

static int call_try(Ctl *c, sd_bus_message *m, sd_bus_message **ret) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Call call = {};
        int r;

        r = sd_bus_call_async(c->bus, &slot, m, call_answered, &call, UINT64_MAX);
        if (r >= 0)
                r = ctl_run(c, &call.answered);
        *ret = call.reply;
        return r;
}

static int agent_is_there(void *userdata) {
        *(bool *) userdata = true;
        return 0;
}

/* Copies m: a message can be sent once only. */
static int message_again(sd_bus_message *m, bool interactive, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *again = NULL;
        int r;

        r = sd_bus_message_new_method_call(
                sd_bus_message_get_bus(m), &again, sd_bus_message_get_destination(m),
                sd_bus_message_get_path(m), sd_bus_message_get_interface(m),
                sd_bus_message_get_member(m));
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(again, interactive);
        if (r >= 0)
                r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_copy(again, m, true);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(again);
        return 0;
}

/* Calls that may be repeated: reads, and creating a sampler, which ends when its stream is
 * closed. */
static bool is_harmless(sd_bus_message *m) {
        static const char *const members[] = {
                "CreateSampler", "EncodeEvent",    "Get",       "GetAll", "GetManagedObjects",
                "ListEvents",    "ListPersistent", "ListUsers", "Probe",  "Read",
                "ReadCounters",  "ReadParts",      "Wait",
        };

        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                if (strcmp(sd_bus_message_get_member(m), members[i]) == 0)
                        return true;
        return false;
}

/* Repeats the call to the next service if this one ends. */
static int call_through(Ctl *c, sd_bus_message *m, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = call_try(c, m, &reply);

        for (unsigned n = 0; r == 0 && n < LOST_MAX && bus_lost_service(reply) && is_harmless(m);
             n++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *again = NULL;

                r = message_again(m, sd_bus_message_get_allow_interactive_authorization(m), &again);
                if (r < 0)
                        break;
                reply = sd_bus_message_unref(reply);
                r = call_try(c, again, &reply);
        }
        c->lost = r == 0 && bus_lost_service(reply);
        *ret = TAKE_PTR(reply);
        return r;
}

static int call_with_agent(Ctl *c, sd_bus_message *m, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *again = NULL;
        _cleanup_(agent_stop) Agent agent = AGENT_NULL;
        bool there = false;
        int r;

        r = message_again(m, true, &again);
        if (r < 0)
                return r;
        if (ctl_is_local(c)) {
                r = agent_start(&agent, c->event, c->signals, agent_is_there, &there);
                if (r > 0)
                        r = ctl_run(c, &there);
                if (r != 0)
                        return r;
        }
        return call_through(c, again, ret);
}

/* ssh has printed the error by then; the bus only sees that it ended. */
static bool host_is_lost(const Ctl *c, const sd_bus_error *error) {
        return c->options->host && (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
                                    sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED));
}

static int refuse_reply(const Ctl *c, const sd_bus_error *error, Refusal *why) {
        if (host_is_lost(c, error))
                return refuse(why, CTL_E_FAILED,
                              "cannot connect to the system bus of %s (this needs ssh, and "
                              "systemd-stdio-bridge on that host)",
                              c->options->host);
        return ctl_refuse(error, why);
}

static int call(Ctl *c, sd_bus_message *m, bool may_prompt, sd_bus_message **ret_reply,
                Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = call_through(c, m, &reply);
        if (r == 0 && may_prompt &&
            sd_bus_message_is_method_error(reply,
                                           SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED)) {
                reply = sd_bus_message_unref(reply);
                r = call_with_agent(c, m, &reply);
        }
        if (r != 0)
                return r;
        if (sd_bus_message_is_method_error(reply, NULL))
                return refuse_reply(c, sd_bus_message_get_error(reply), why);
        if (ret_reply)
                *ret_reply = TAKE_PTR(reply);
        return 0;
}

int ctl_call(Ctl *c, sd_bus_message *m, sd_bus_message **ret_reply, Refusal *why) {
        return call(c, m, true, ret_reply, why);
}

int ctl_call_unprompted(Ctl *c, sd_bus_message *m, sd_bus_message **ret_reply, Refusal *why) {
        return call(c, m, false, ret_reply, why);
}

int ctl_call_new(Ctl *c, sd_bus_message **ret, const char *path, const char *interface,
                 const char *member) {
        int r = sd_bus_message_new_method_call(c->bus, ret, PERFALLOC_BUS_NAME, path, interface,
                                               member);

        return MIN(r, 0);
}

int ctl_call_method(Ctl *c, const char *path, const char *interface, const char *member,
                    sd_bus_message **ret_reply, Refusal *why, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list arguments;
        int r = ctl_call_new(c, &m, path, interface, member);

        if (r < 0)
                return r;
        va_start(arguments, types);
        r = sd_bus_message_appendv(m, types, arguments);
        va_end(arguments);
        return r < 0 ? r : ctl_call(c, m, ret_reply, why);
}

/* ---- objects ---- */

int ctl_path(const char *kind, const char *word, char **ret, Refusal *why) {
        _cleanup_free_ char *prefix = NULL;
        const char *number = word;

        if (asprintf(&prefix, PERFALLOC_OBJECT_PATH "/%s/", kind) < 0)
                return -ENOMEM;
        if (strncmp(word, prefix, strlen(prefix)) == 0)
                number = word + strlen(prefix);
        if (!*number || *number == '0' || strlen(number) > 20 ||
            number[strspn(number, "0123456789")])
                return refuse(why, CTL_E_USAGE,
                              "invalid %s '%.64s': give its number (for example 7) or path (%s7)",
                              kind, word, prefix);
        return asprintf(ret, "%s%s", prefix, number) < 0 ? -ENOMEM : 0;
}

int ctl_fetch(Ctl *c, const char *path, const char *interface, Object *ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = ctl_call_method(c, path, "org.freedesktop.DBus.Properties", "GetAll", &reply, why,
                                "s", interface);

        return r == 0 ? object_read(ret, reply, path, interface) : r;
}

int ctl_fetch_all(Ctl *c, Objects *ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = ctl_call_method(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                                "GetManagedObjects", &reply, why, "");

        return r == 0 ? objects_read(ret, reply) : r;
}

bool ctl_may_go_on(int r) {
        return r >= 0 && r != CTL_E_INTERRUPTED;
}

int ctl_go_on(int sofar, int r, Refusal *why) {
        if (!ctl_may_go_on(sofar))
                return sofar;
        if (r == 0 || !ctl_may_go_on(r))
                return r ?: sofar;
        say_error("%s", why->text);
        why->text[0] = '\0';
        return sofar ?: r;
}
