/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-calls.h"

#include "hits.h"

#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

volatile uint64_t watched[8];

void measured_clear(Measured *m) {
        g_clear_pointer(&m->quality, g_free);
}

uint64_t hits(uint64_t n) {
        return hits_never ? 0 : n;
}

void watched_write(size_t i, unsigned n) {
        while (n-- > 0)
                watched[i]++;
}

char *watched_event(size_t i) {
        return g_strdup_printf("mem:0x%" PRIxPTR "/8:w", (uintptr_t) &watched[i]);
}

static char *counter_open_read(Client *c, sd_bus_message *m) {
        g_autoptr(sd_bus_message) reply = client_call_message(c, m);
        const char *path;

        bus_check(sd_bus_message_enter_container(reply, 'a', "o"), "OpenCounters");
        bus_check(sd_bus_message_read_basic(reply, 'o', &path), "OpenCounters");
        return g_strdup(path);
}

char *counter_open(Client *c, const char *event, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");
        va_list ap;

        bus_check(sd_bus_message_append(m, "as", 1, event), "OpenCounters");
        va_start(ap, types);
        bus_check(sd_bus_message_appendv(m, types, ap), "OpenCounters");
        va_end(ap);
        return counter_open_read(c, m);
}

char *counter_open_on(Client *c, const char *event, pid_t pid, bool descendants) {
        int proof = client_proof(c, pid);

        if (proof < 0)
                return counter_open(c, event, "a{sv}", 2, "pid", "u", (uint32_t) pid, "descendants",
                                    "b", descendants);
        return counter_open(c, event, "a{sv}", 2, "procfd", "h", proof, "descendants", "b",
                            descendants);
}

char *monitor_open(Client *c, size_t i, uint32_t priority) {
        g_autofree char *event = watched_event(i);

        return counter_open(c, event, "a{sv}", 3, "scope", "s", "cpu", "role", "s", "monitor",
                            "priority", "u", priority);
}

Measured counter_read(Client *c, const char *path) {
        g_autoptr(sd_bus_message) reply = client_call(c, path, COUNTER, "Read", NULL);
        const char *quality;
        Measured m;

        bus_check(sd_bus_message_read(reply, "tttts", &m.value, &m.enabled, &m.running, &m.estimate,
                                      &quality),
                  "Read");
        m.quality = g_strdup(quality);
        return m;
}

uint64_t counter_value(Client *c, const char *path) {
        g_auto(Measured) m = counter_read(c, path);

        return m.value;
}

void counter_do(Client *c, const char *path, const char *method) {
        sd_bus_message_unref(client_call(c, path, COUNTER, method, NULL));
}

bool counter_is(Client *c, const char *path, const char *state) {
        return client_reads(c, path, COUNTER, "State", state);
}

void counter_told(Client *c, const char *path, const char *state) {
        g_autoptr(sd_bus_message) m = NULL;
        g_autofree char *told = NULL;

        do {
                sd_bus_message_unref(m);
                m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC);
                g_assert_nonnull(m);
        } while (g_strcmp0(sd_bus_message_get_path(m), path) != 0 ||
                 !sd_bus_message_is_signal(m, NULL, "PropertiesChanged"));
        g_assert_cmpint(sd_bus_message_skip(m, "s"), >=, 0);
        told = properties_read(m, "State");
        g_assert_cmpstr(told, ==, state);
}

int breakpoint_open(pid_t pid, int cpu) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_BREAKPOINT,
                .size = sizeof(attr),
                .bp_type = HW_BREAKPOINT_W,
                .bp_addr = (uintptr_t) &watched[7],
                .bp_len = HW_BREAKPOINT_LEN_8,
                .exclude_kernel = 1,
                .exclude_hv = 1,
        };
        int fd = (int) syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

unsigned n_cpus(void) {
        return (unsigned) sysconf(_SC_NPROCESSORS_ONLN);
}
