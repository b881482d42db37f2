/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* usage: profile PID: samples a process each millisecond of its time, a thousand times, and prints
 * where it was. Build: cc profile.c $(pkg-config --cflags --libs perfalloc gio-unix-2.0) -o profile
 */

#include <fcntl.h>
#include <gio/gunixfdlist.h>
#include <linux/perf_event.h>
#include <perfalloc/dbus.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING (8 * getpagesize()) /* bytes: pages, a power of two of them */

/* Asks the service for the event. The open file proves that this user may trace the process. */
static int event_open(GDBusConnection *bus, struct perf_event_attr *attr, int pid) {
        g_autofree char *maps = g_strdup_printf("/proc/%d/maps", pid);
        g_autoptr(GUnixFDList) sent = g_unix_fd_list_new(), received = NULL;
        g_autoptr(GVariant) reply = NULL;
        g_autoptr(GError) error = NULL;
        int proof = open(maps, O_RDONLY | O_CLOEXEC), place;

        if (proof < 0)
                g_error("%s: %m", maps);
        place = g_unix_fd_list_append(sent, proof, NULL);
        close(proof);
        reply = g_dbus_connection_call_with_unix_fd_list_sync(
                bus, PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                "OpenEvent",
                g_variant_new("(@ayiit@a{sv})",
                              g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, attr, attr->size, 1),
                              pid, -1, (guint64) 0,
                              g_variant_new_parsed("{'procfd': <%h>}", place)),
                G_VARIANT_TYPE("(h)"), G_DBUS_CALL_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION, G_MAXINT,
                sent, &received, NULL, &error);
        if (!reply)
                g_error("%s", error->message);
        g_variant_get(reply, "(h)", &place);
        return g_unix_fd_list_get(received, place, NULL);
}

/* Prints the samples in the ring buffer, and returns how many. Of 16 bytes each, none wraps. */
static unsigned samples_print(struct perf_event_mmap_page *page) {
        const char *data = (const char *) page + getpagesize();
        guint64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        unsigned n = 0;

        for (guint64 tail = page->data_tail; tail < head;) {
                const struct perf_event_header *record = (const void *) (data + tail % RING);

                if (record->type == PERF_RECORD_SAMPLE && ++n)
                        g_print("%#" G_GINT64_MODIFIER "x\n", *(const guint64 *) (record + 1));
                tail += record->size;
        }
        __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
        return n;
}

int main(int argc, char *argv[]) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_TASK_CLOCK,
                                        .sample_period = 1000000,
                                        .sample_type = PERF_SAMPLE_IP,
                                        .wakeup_events = 1,
                                        .exclude_kernel = 1 };
        g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
        int fd = bus && argc == 2 ? event_open(bus, &attr, atoi(argv[1])) : -1;
        void *page = mmap(NULL, getpagesize() + RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (page == MAP_FAILED)
                g_error("usage: profile PID");
        for (unsigned n = 0; n < 1000 && poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, -1) == 1;)
                n += samples_print(page);
        return 0;
}
