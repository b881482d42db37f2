/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* profile-tree </proc/PID/maps: prints a thousand samples, address and process, of PID and all its
 * descendants, later ones too. cc profile-tree.c $(pkg-config --cflags --libs perfalloc libsystemd)
 */
#include <err.h>
#include <linux/perf_event.h>
#include <perfalloc/dbus.h>
#include <perfalloc/event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MANAGER PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE
#define WORDS   8192u /* of a ring buffer: a power of two */
#define WORD(i) ring[(at / 8 + (i)) % WORDS]

static int left = 1000;

static void samples_print(struct perf_event_mmap_page *page) {
        const uint64_t *ring = (const void *) ((char *) page + getpagesize());
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;

        for (const struct perf_event_header *record; at < head; at += record->size) {
                record = (const void *) &WORD(0);
                if (record->type == PERF_RECORD_SAMPLE && left-- > 0)
                        printf("%#llx %d\n", (unsigned long long) WORD(1), (int) WORD(2));
        }
        __atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
}

int main(void) {
        struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_SOFTWARE };
        int n_cpus = sysconf(_SC_NPROCESSORS_ONLN), size = getpagesize() + 8 * WORDS;
        int stream, first, fd;
        struct perf_event_mmap_page *pages[1024];
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *m;
        sd_bus *bus;

        attr.sample_period = 1000000; /* nanoseconds: config is PERF_COUNT_SW_CPU_CLOCK */
        attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
        attr.inherit = attr.exclude_kernel = 1;
        sd_bus_open_system(&bus);
        for (int cpu = 0; cpu < n_cpus; cpu++) { /* inherited events are mapped by CPU */
                sd_bus_message_new_method_call(bus, &m, MANAGER, "OpenEvents");
                sd_bus_message_append_array(m, 'y', &attr, sizeof(attr));
                sd_bus_message_append(m, "ta{sv}", (uint64_t) 0, 3, "procfd", "h", STDIN_FILENO,
                                      "descendants", "b", 1, "cpu", "u", cpu);
                if (sd_bus_call(bus, m, UINT64_MAX, &error, &m) < 0)
                        errx(1, "%s", error.message);
                sd_bus_message_read(m, "uh", NULL, &stream);
                pages[cpu] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  first = perfalloc_event_receive(stream, NULL), 0);
                while ((fd = perfalloc_event_receive(stream, NULL)) >= 0)
                        ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first);
        }
        for (int cpu = 0; left > 0; usleep(10000))
                samples_print(pages[cpu++ % n_cpus]);
}
