/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launch.h"

#include <perfalloc/dbus.h>
#include <string.h>

#include "client/agent.h"
#include "client/bus.h"
#include "client/filter.h"
#include "client/native.h"
#include "client/say.h"

#define LOST_MAX 5 /* calls, because the call itself may crash the service */

int launch_mode_parse(const char *text, LaunchMode *ret, Refusal *why) {
        static const char *const modes[] = {
                [LAUNCH_AUTO] = "auto", [LAUNCH_YES] = "yes", [LAUNCH_NO] = "no"
        };

        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (strcmp(modes[i], text) == 0) {
                        *ret = (LaunchMode) i;
                        return 0;
                }
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "--broker: invalid value '%.64s' (one of auto, yes, no)", text);
}

/* ---- the actions ---- */

/* Calls f for each name in the list until it returns something else than 0. */
static int actions_walk(const char *list, int (*f)(void *userdata, const char *action),
                        void *userdata) {
        _cleanup_free_ char *copy = strdup(list);
        char *rest = copy, *name;
        int r = copy ? 0 : -ENOMEM;

        while (r == 0 && (name = strsep(&rest, ",")))
                r = f(userdata, name);
        return r;
}

/* Those of Broker, org.perfalloc1(5). */
static int action_check(void *userdata, const char *action) {
        static const char *const actions[] = { "sample-own", "count-kernel", "count-other",
                                               "count-system", "count-raw" };
        Refusal *why = userdata;

        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (strcmp(actions[i], action) == 0)
                        return 0;
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "--allow: invalid value '%.64s' (one of sample-own, count-kernel, "
                      "count-other, count-system, count-raw; several with commas)",
                      action);
}

int launch_allow_check(const char *list, Refusal *why) {
        return actions_walk(list, action_check, why);
}

void launch_done(Launch *l) {
        prover_client_done(&l->prover);
        sd_bus_error_free(&l->denied);
}

static int action_is_refused(void *userdata, const char *action) {
        return !native_allows(action);
}

static int action_append(void *userdata, const char *action) {
        return MIN(sd_bus_message_append_basic(userdata, 's', action), 0);
}

/* ---- asking the service ---- */

typedef struct Asking {
        Launch *launch;
        int listener, prover;
        Agent agent;
        bool interactive, settled;
        unsigned n_lost;
        int outcome;
        sd_bus_slot *call;
        Refusal *why;
} Asking;

static void settle(Asking *a, int outcome) {
        a->settled = true;
        a->outcome = outcome;
}

static int interrupted(void *userdata, const struct signalfd_siginfo *info) {
        Asking *a = userdata;

        a->launch->signo = (int) info->ssi_signo;
        settle(a, LAUNCH_E_INTERRUPTED);
        return 0;
}

static int append_options(sd_bus_message *m, const char *allow, int prover) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "prover", "h", prover);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', "allow");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "s");
        if (r >= 0)
                r = actions_walk(allow, action_append, m);
        for (int i = 0; i < 4 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error);

static int ask(Asking *a) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(a->launch->bus, &m, PERFALLOC_BUS_NAME,
                                           PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                           "Broker");
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(m, a->interactive);
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 'h', &a->listener);
        if (r >= 0)
                r = append_options(m, a->launch->allow, a->prover);
        return r < 0 ? r : sd_bus_call_async(a->launch->bus, &a->call, m, on_answer, a, UINT64_MAX);
}

static int on_agent(void *userdata) {
        Asking *a = userdata;
        int r = ask(a);

        if (r < 0)
                settle(a, r);
        return 0;
}

static int ask_interactively(Asking *a) {
        int r;

        say_note("waiting for authentication for %s", a->launch->allow);
        a->interactive = true;
        r = agent_start(&a->agent, a->launch->event, a->launch->signals, on_agent, a);
        return r == 0 ? ask(a) : MIN(r, 0);
}

static bool was_lost(Asking *a, sd_bus_message *m) {
        return (bus_lost_service(m) || bus_missed_service(m)) && a->n_lost++ < LOST_MAX;
}

/* An earlier call, whose reply was lost, has had its effect. */
static bool was_done_already(const Asking *a, sd_bus_message *m) {
        return a->n_lost > 0 && sd_bus_message_is_method_error(m, PERFALLOC_ERROR_BROKER_BUSY);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const sd_bus_error *refused = sd_bus_message_get_error(m);
        Asking *a = userdata;
        int r = 0;

        a->call = sd_bus_slot_unref(a->call);
        if (!a->interactive &&
            sd_bus_message_is_method_error(m, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                r = ask_interactively(a);
        else if (was_lost(a, m))
                r = ask(a);
        else if (refused && !was_done_already(a, m)) {
                (void) bus_refuse(refused, a->why);
                (void) sd_bus_error_copy(&a->launch->denied, refused);
                settle(a, LAUNCH_E_DENIED);
        } else
                settle(a, LAUNCH_READY);
        if (r < 0)
                settle(a, r);
        return 0;
}

static int listener_hand_over(Launch *l, int listener, Refusal *why) {
        _cleanup_close_ int prover = -1;
        Asking a = { .launch = l, .listener = listener, .agent = AGENT_NULL, .why = why };
        int r = signals_watch(l->signals, l->event, SIGNALS_END, interrupted, &a);

        if (r >= 0)
                r = prover_client_start(&l->prover, l->event, &prover);
        a.prover = prover;
        if (r >= 0)
                r = ask(&a);
        while (r >= 0 && !a.settled) {
                r = sd_event_run(l->event, UINT64_MAX);
                if (l->over && *l->over)
                        settle(&a, LAUNCH_E_OVER);
        }
        agent_stop(&a.agent);
        a.call = sd_bus_slot_unref(a.call);
        return r < 0 ? r : a.outcome;
}

/* ---- COMMAND ---- */

/* The listener, -1 without a filter, or a negative errno. */
static int prepare(Launch *l, const Filter *filter, Command *ret, int *ret_listener) {
        const CommandSetting setting = { .filter = filter, .paranoid = l->paranoid };
        int view, r;

        *ret_listener = -1;
        if (!filter && !l->paranoid)
                return command_prepare(ret, l->command, NULL, l->signals);
        r = command_prepare(ret, l->command, &setting, l->signals);
        if (r < 0)
                return r;
        command_take_setting(ret, ret_listener, &view);
        if (view < 0)
                say_note("%s reads the true kernel.perf_event_paranoid: the kernel, or the "
                         "container of this process, permits no mount namespace (%s)",
                         l->command[0], strerror(-view));
        return 0;
}

static int prepare_without(Launch *l, Command *ret) {
        int listener;

        return prepare(l, NULL, ret, &listener);
}

/* Says why, if COMMAND will be able to open nothing, or was to have the broker. */
static void say_without(const Launch *l, const char *why) {
        if (!native_allows_own())
                say_note("%s will not be able to open perf events: %s", l->command[0], why);
        else if (l->mode != LAUNCH_NO)
                say_note("%s runs without the broker: %s", l->command[0], why);
}

/* Why there is no listener. The child waits all the same, and has no filter. */
static void say_no_listener(const Launch *l, int error) {
        if (error == EBUSY)
                say_without(l, "it is under a broker already, or in a container whose manager "
                               "answers system calls");
        else
                say_without(l, "the kernel, or the container of this process, permits no "
                               "seccomp listener");
}

static int prepare_with(Launch *l, const Filter *filter, Command *ret, Refusal *why) {
        _cleanup_close_ int listener = -1;
        int r = prepare(l, filter, ret, &listener);

        if (r < 0)
                return r;
        if (listener < 0) {
                say_no_listener(l, -listener);
                return 0;
        }
        r = listener_hand_over(l, listener, why);
        if (r != 0)
                command_done(ret);
        if (r != LAUNCH_E_DENIED || l->strict)
                return r;
        say_without(l, why->text);
        return prepare_without(l, ret);
}

static bool launch_wants_broker(const Launch *l) {
        return l->mode == LAUNCH_YES ||
               (l->mode == LAUNCH_AUTO && actions_walk(l->allow, action_is_refused, NULL) != 0);
}

int launch_prepare(Launch *l, Command *ret, Refusal *why) {
        _cleanup_(filter_done) Filter filter = FILTER_NULL;
        if (!launch_wants_broker(l)) {
                if (l->mode == LAUNCH_NO)
                        say_without(l, "the kernel refuses them, and --broker=no was given");
                return prepare_without(l, ret);
        }
        if (filter_build(&filter) < 0) {
                say_no_listener(l, ENOSYS);
                return prepare_without(l, ret);
        }
        return prepare_with(l, &filter, ret, why);
}
