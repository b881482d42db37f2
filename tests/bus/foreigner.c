/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "foreigner.h"

static int play_foreigner(int fd, const void *data) {
        for (unsigned cpu = 0; cpu < n_cpus(); cpu++)
                if (breakpoint_open(-1, (int) cpu) < 0)
                        return 1;
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

Actor *foreigner_new(void) {
        Actor *a = actor_new("root", play_foreigner, NULL);

        g_assert_cmpint(actor_hear(a), ==, 'o');
        return a;
}
