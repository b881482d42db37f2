/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "read-call.h"

#include "service/counter/counter-user.h"
#include "service/counter/counter.h"
#include "service/util/reply.h"

static int append_reading(sd_bus_message *reply, Counter *c, uint64_t instant) {
        Reading reading;
        int r;

        counter_read(c, instant, &reading);
        /* member by member: with thousands of readings, parsing a format dominates */
        r = sd_bus_message_open_container(reply, 'r', "tttts");
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.value);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.enabled);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.running);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.estimate);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', quality_name(reading.quality));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

#define READ_COUNTERS_MAX 4096u /* in one call, which keeps the loop busy */

static int read_counters(Counters *counters, sd_bus_message *m, sd_bus_message *reply,
                         Refusal *why) {
        Peer *peer = peers_sender(counters->context->peers, m);
        const char *path;
        uint64_t instant = counters_now(counters);
        unsigned n = 0;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "o");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(tttts)");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 'o', &path)) > 0) {
                Counter *c = NULL;

                if (n++ >= READ_COUNTERS_MAX)
                        return refuse(why, REFUSAL_LIMITS_EXCEEDED, "at most %u counters per call",
                                      READ_COUNTERS_MAX);
                r = counter_find_readable(counters, peer, m, path, &c, why);
                if (r != 0)
                        return r;
                r = append_reading(reply, c, instant);
        }
        return r < 0 ? r : MIN(sd_bus_message_close_container(reply), 0);
}

int read_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Refusal why = REFUSAL_NULL;
        int r = sd_bus_message_new_method_return(m, &reply);

        if (r >= 0)
                r = read_counters(userdata, m, reply, &why);
        return r == 0 ? sd_bus_send(NULL, reply, NULL) : reply_failure(r, &why, error);
}
