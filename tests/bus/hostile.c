/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hostile.h"

#include "rubbish.h"

#define MESSAGES   100 /* a connection */
#define FLOOD      500 /* calls at once */
#define MESSAGE_MS 3
#define BYTES      4096 /* in a message's long words */

static void descriptor_ignore(void *userdata, int fd) {
}

static void hostile_hear(Client *c, Rubbish *rubbish) {
        g_autoptr(sd_bus_message) m = client_next(c, MESSAGE_MS * USEC_PER_MSEC);

        if (m)
                rubbish_learn(rubbish, m, descriptor_ignore, NULL);
}

/* False: the bus takes no more of this connection. */
static bool hostile_rubbish(Client *c, Rubbish *rubbish) {
        for (unsigned i = 0; i < MESSAGES; i++) {
                g_autoptr(sd_bus_message) m = rubbish_message(rubbish, c);

                if (sd_bus_send(c->bus, m, NULL) < 0)
                        return false;
                if (chance(70))
                        hostile_hear(c, rubbish);
        }
        return true;
}

/* The answers are not read. */
static bool hostile_flood(Client *c, Rubbish *rubbish) {
        static const char *const members[] = { "ListUsers", "HasSamplers", "ListPersistent" };
        const char *member = members[g_test_rand_int_range(0, G_N_ELEMENTS(members))];

        for (unsigned i = 0; i < FLOOD; i++) {
                g_autoptr(sd_bus_message) m = client_message(c, MANAGER, member);

                if (sd_bus_send(c->bus, m, NULL) < 0)
                        return false;
        }
        return sd_bus_flush(c->bus) >= 0;
}

/* Calls of which each costs the service a process to look at, or more. */
static bool hostile_open(Client *c, Rubbish *rubbish) {
        for (unsigned i = 0; i < MESSAGES; i++) {
                g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");

                bus_check(sd_bus_message_append(m, "asa{sv}", 2, "page-faults:u", "no-such-event",
                                                1, "descendants", "b", true),
                          "OpenCounters");
                if (sd_bus_send(c->bus, m, NULL) < 0)
                        return false;
        }
        hostile_hear(c, rubbish);
        return true;
}

int play_hostile(int fd, const void *data) {
        static bool (*const acts[])(Client * c,
                                    Rubbish * rubbish) = { hostile_rubbish, hostile_rubbish,
                                                           hostile_flood, hostile_open };
        const bool *soft = data;
        Rubbish *rubbish = rubbish_new();

        /* Long ones take AddressSanitizer seconds: the service would do nothing else. */
        rubbish_shorten(rubbish, BYTES);
        if (*soft)
                rubbish_soften(rubbish);
        act_say(fd, 'h');
        for (;;) {
                Client *c = client_new("bob");

                while (acts[g_test_rand_int_range(0, G_N_ELEMENTS(acts))](c, rubbish) && chance(50))
                        ;
                rubbish_forget_descriptors(rubbish);
                sd_bus_close(c->bus);
                client_free(c);
        }
}
