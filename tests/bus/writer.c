/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "writer.h"

#include <signal.h>

/* In a virtual machine a hit was seen to end in SIGTRAP, where events were just being closed by a
 * service that was killed. hw_breakpoint_handler() of Linux 6.18 for x86 does so if it finds no
 * event for the hit. */
static void trapped(int number) {
}

static int play_writer(int fd, const void *data) {
        (void) signal(SIGTRAP, trapped);
        while (act_hear(fd)) {
                watched_write(0, 100);
                act_say(fd, 'w');
        }
        return 0;
}

void writer_write(Actor *a) {
        actor_tell(a, 'w');
        g_assert_cmpint(actor_hear(a), ==, 'w');
}

Actor *writer_new(const char *user) {
        Actor *a = actor_new(user, play_writer, NULL);

        writer_write(a); /* it is up */
        return a;
}
