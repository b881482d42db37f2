/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-call.h"

#include <inttypes.h>

#include "core/clock.h"
#include "service/bus/delivery.h"
#include "service/counter/counter-user.h"
#include "service/sampler/sampler.h"
#include "service/util/options.h"
#include "service/util/reply.h"

enum {
        OPTION_START_USEC,
        OPTION_SIGNAL,
        OPTION_TAG,
        OPTION_MAP,
        _OPTION_MAX,
};

static const OptionSpec option_specs[_OPTION_MAX] = {
        [OPTION_START_USEC] = { "start_usec", "t", offsetof(SamplerOptions, start_usec) },
        [OPTION_SIGNAL] = { "signal", "b", offsetof(SamplerOptions, signal) },
        [OPTION_TAG] = { "tag", "t", offsetof(SamplerOptions, tag) },
        [OPTION_MAP] = { "map", "b", offsetof(SamplerOptions, map) },
};

static int counters_add(SamplerOptions *o, Counter *c, Refusal *why) {
        for (size_t i = 0; i < o->n_counters; i++)
                if (o->counters[i] == c)
                        return refuse(why, REFUSAL_INVALID_ARGS, "counters: '%s' is given twice",
                                      c->object.path);
        o->counters[o->n_counters++] = c;
        return 0;
}

static int counters_read(Samplers *all, Peer *peer, sd_bus_message *m, SamplerOptions *o,
                         Refusal *why) {
        const char *path;
        int r = sd_bus_message_enter_container(m, 'a', "o");

        while (r >= 0 && (r = sd_bus_message_read_basic(m, 'o', &path)) > 0) {
                Counter *c;

                if (o->n_counters == PERFALLOC_READINGS_MAX)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "counters: a sampler reads at most %d",
                                      PERFALLOC_READINGS_MAX);
                r = counter_find_readable(all->counters, peer, m, path, &c, why);
                if (r == 0)
                        r = counters_add(o, c, why);
                if (r != 0)
                        return r;
        }
        return r < 0 ? r : MIN(sd_bus_message_exit_container(m), 0);
}

static int time_check(const char *name, uint64_t usec, Refusal *why) {
        if (usec > TICK_FAR_USEC)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "%s is %" PRIu64 " us, more than the 10 years that a sampler lasts",
                              name, usec);
        return 0;
}

static int interval_check(const Config *config, const SamplerOptions *o, Refusal *why) {
        bool signals =
                o->signal && config->sampler_signal_min_usec > config->sampler_interval_min_usec;
        uint64_t floor =
                signals ? config->sampler_signal_min_usec : config->sampler_interval_min_usec;

        if (o->interval_usec > 0 && o->interval_usec < floor)
                return refuse(
                        why, REFUSAL_INVALID_ARGS,
                        "interval_usec is %" PRIu64 ", less than the %" PRIu64
                        " us that are allowed here (%s= in perfallocd.conf); 0 is one tick only",
                        o->interval_usec, floor,
                        signals ? "SamplerSignalMinSec" : "SamplerIntervalMinSec");
        return time_check("interval_usec", o->interval_usec, why);
}

static int options_take(Samplers *all, Peer *peer, sd_bus_message *m, SamplerOptions *o,
                        Refusal *why) {
        uint64_t seen;
        int r;

        o->n_counters = 0;
        o->signal = o->map = false;
        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = counters_read(all, peer, m, o, why);
        if (r == 0)
                r = MIN(sd_bus_message_read_basic(m, 't', &o->interval_usec), 0);
        if (r == 0)
                r = options_read(m, option_specs, ELEMENTSOF(option_specs), o, &seen, why);
        if (r == 0)
                r = interval_check(&all->context->config, o, why);
        if (r != 0)
                return r;
        o->tagged = seen >> OPTION_TAG & 1;
        if (!(seen >> OPTION_START_USEC & 1))
                o->start_usec = o->interval_usec;
        r = time_check("start_usec", o->start_usec, why);
        o->start_usec += now_usec(CLOCK_BOOTTIME);
        return r;
}

int sampler_call_create(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_close_ int stream = -1;
        Samplers *all = userdata;
        Peer *peer = peers_sender(all->context->peers, m);
        Refusal why = REFUSAL_NULL;
        SamplerOptions o;
        Sampler *a;
        int r;

        r = options_take(all, peer, m, &o, &why);
        if (r == 0)
                r = delivery_admit(all->context, peer, m, 1, &why);
        if (r == 0)
                r = sampler_new(all, peer, &o, &a, &stream, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        sampler_announce(a);
        r = sd_bus_reply_method_return(m, "oh", a->object.path, stream);
        if (r >= 0)
                return r;
        sampler_free(a);
        return reply_failure(r, NULL, error);
}

int sampler_call_block(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Samplers *all = userdata;
        int r = samplers_block(all, peers_sender(all->context->peers, m));

        return r < 0 ? reply_failure(r, NULL, error) : sd_bus_reply_method_return(m, NULL);
}

int sampler_call_unblock(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Samplers *all = userdata;

        samplers_unblock(all, peers_sender(all->context->peers, m));
        return sd_bus_reply_method_return(m, NULL);
}

int sampler_call_has(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Samplers *all = userdata;
        bool has = samplers_any(all, peers_sender(all->context->peers, m));

        return sd_bus_reply_method_return(m, "b", (int) has);
}
