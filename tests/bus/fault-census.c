/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault-census.h"

#include <dirent.h>

static unsigned entries(const char *path) {
        DIR *dir = opendir(path);
        unsigned n = 0;

        if (!dir)
                g_error("%s: %s", path, g_strerror(errno));
        while (readdir(dir))
                n++;
        (void) closedir(dir);
        return n;
}

/* Ended holds can be read for a while; they do not count. */
static unsigned objects_alive(void) {
        g_autoptr(sd_bus_message) objects = client_objects(root);
        const char *path = NULL;
        unsigned n = 0;

        while (objects_next(objects, &path)) {
                g_autofree char *state = NULL;

                if (strstr(path, "/hold/"))
                        state = object_read(objects, HOLD, "State");
                else
                        g_assert_cmpint(sd_bus_message_skip(objects, "a{sa{sv}}"), >=, 0);
                n += g_strcmp0(state, "ended") != 0;
        }
        return n;
}

Census census(void) {
        g_autofree char *reader_fds = g_strdup_printf("/proc/%d/fd", (int) service_reader());
        g_autofree char *opener_fds = g_strdup_printf("/proc/%d/fd", (int) service_opener());

        return (Census){ .objects = objects_alive(),
                         .yielding = client_get_number(root, MANAGER, "Yielding", 'b') != 0,
                         .descriptors = service_descriptors(),
                         .reader_descriptors = entries(reader_fds),
                         .opener_descriptors = entries(opener_fds) };
}

static bool census_is(const Census *a) {
        Census b = census();

        return a->objects == b.objects && a->yielding == b.yielding &&
               a->descriptors == b.descriptors && a->reader_descriptors == b.reader_descriptors &&
               a->opener_descriptors == b.opener_descriptors;
}

void census_settle(const Census *a, const char *when) {
        gint64 end = g_get_monotonic_time() + SETTLE_USEC;
        Census b;

        while (!census_is(a) && g_get_monotonic_time() < end)
                g_usleep(500);
        b = census();
        if (!census_is(a))
                complain(
                        "%s: objects %u, %u before; descriptors %u, %u before; the reader's %u, %u "
                        "before; the opener's %u, %u before; yielding %d, %d before",
                        when, b.objects, a->objects, b.descriptors, a->descriptors,
                        b.reader_descriptors, a->reader_descriptors, b.opener_descriptors,
                        a->opener_descriptors, b.yielding, a->yielding);
}
