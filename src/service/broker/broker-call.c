/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker-call.h"

#include <string.h>

#include "broker/listener.h"
#include "broker/prover.h"
#include "service/auth/auth.h"
#include "service/util/options.h"
#include "service/util/reply.h"

typedef struct BrokerOptions {
        char **allow;
        int prover;
} BrokerOptions;

static const OptionSpec option_specs[] = {
        { "allow", "as", offsetof(BrokerOptions, allow) },
        { "prover", "h", offsetof(BrokerOptions, prover) },
};

/* The action of a name without the prefix that all have; 0: none that a program can use. */
static unsigned action_find(const char *name) {
        const char prefix[] = "org.perfalloc1.";

        for (unsigned action = 1; action < _ACTION_ALL; action <<= 1)
                if (action & ACTIONS_SAMPLE &&
                    strcmp(action_name((Action) action) + sizeof(prefix) - 1, name) == 0)
                        return action;
        return 0;
}

static int actions_read(char **allow, unsigned *ret, Refusal *why) {
        *ret = allow ? 0 : ACTION_SAMPLE_OWN;
        for (char **name = allow; name && *name; name++) {
                unsigned action = action_find(*name);

                if (action == 0)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "option 'allow': invalid value '%.64s' (one of sample-own, "
                                      "count-kernel, count-other, count-system, count-raw)",
                                      *name);
                *ret |= action;
        }
        return *ret ? 0 : refuse(why, REFUSAL_INVALID_ARGS, "option 'allow': names no action");
}

static int check_descriptors(int listener, int prover, Refusal *why) {
        if (!listener_is(listener))
                return refuse(
                        why, REFUSAL_BAD_DESCRIPTOR,
                        "the descriptor is not a seccomp listener: get one from seccomp(2) with "
                        "SECCOMP_FILTER_FLAG_NEW_LISTENER");
        if (listener_has_ended(listener))
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "no process has the filter of this seccomp listener any more");
        if (prover >= 0 && !prover_is(prover))
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'prover': the descriptor is not a socket of type "
                              "SOCK_SEQPACKET");
        return 0;
}

static int broker_call_read(sd_bus_message *m, int *ret_listener, int *ret_prover,
                            unsigned *ret_actions, Refusal *why) {
        _cleanup_(strings_freep) char **allow = NULL;
        BrokerOptions o = { .prover = -1 };
        uint64_t seen;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_basic(m, 'h', ret_listener);
        if (r < 0)
                return r;
        r = options_read(m, option_specs, ELEMENTSOF(option_specs), &o, &seen, why);
        allow = o.allow;
        if (r == 0)
                r = actions_read(allow, ret_actions, why);
        *ret_prover = o.prover;
        return r == 0 ? check_descriptors(*ret_listener, o.prover, why) : r;
}

/* Which events it will be is not known yet, and so is no event that a site's rule knows. */
static int broker_call_authorize(Brokers *brokers, Peer *peer, sd_bus_message *m, unsigned actions,
                                 Refusal *why) {
        Asked asked = ASKED_NULL;

        asked_add(asked.events, "...");
        asked_add(asked.pmus, "...");
        return auth_check(brokers->context->auth, peer, m, actions, &asked, why);
}

int broker_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Brokers *brokers = userdata;
        Peer *peer = peers_sender(brokers->context->peers, m);
        Refusal why = REFUSAL_NULL;
        unsigned actions;
        int listener, prover, r;

        r = broker_call_read(m, &listener, &prover, &actions, &why);
        if (r == 0)
                r = brokers_check(brokers, peer->uid, listener, &why);
        if (r == 0)
                r = broker_call_authorize(brokers, peer, m, actions, &why);
        if (r == 0)
                r = broker_new(brokers, peer, listener, prover, actions, &why);
        return r == 0 ? sd_bus_reply_method_return(m, "") : reply_failure(r, &why, error);
}
