/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of OpenEvent: calls of it, and attrs for them.
 */

#include "bus-util.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

typedef struct perf_event_attr PerfAttr;

/* The arguments; zero means pid 0, CPU 0 and no flags. */
typedef struct Raw {
        const void *attr;
        size_t size; /* 0: sizeof(PerfAttr) */
        int pid, cpu;
        uint64_t flags;
} Raw;

/* Counts writes to watched[i] in user space. */
_unused_ static PerfAttr breakpoint_attr(size_t i) {
        return (PerfAttr){ .type = PERF_TYPE_BREAKPOINT,
                           .size = sizeof(PerfAttr),
                           .bp_type = HW_BREAKPOINT_W,
                           .bp_addr = (uintptr_t) &watched[i],
                           .bp_len = sizeof(watched[i]),
                           .exclude_kernel = 1,
                           .exclude_hv = 1 };
}

_unused_ static PerfAttr software_attr(uint64_t config) {
        return (PerfAttr){ .type = PERF_TYPE_SOFTWARE,
                           .size = sizeof(PerfAttr),
                           .config = config,
                           .exclude_kernel = 1,
                           .exclude_hv = 1 };
}

/* The options "a{sv}", n, ..., and a proof of the target where the client may open one. */
_unused_ static void raw_append_options(sd_bus_message *m, int proof, va_list ap) {
        g_autoptr(GString) types = g_string_new(NULL);

        for (int n = va_arg(ap, int); n > 0; n--)
                g_string_append(types, "{sv}");
        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "{sv}"), >=, 0);
        if (types->len > 0)
                g_assert_cmpint(sd_bus_message_appendv(m, types->str, ap), >=, 0);
        if (proof >= 0)
                g_assert_cmpint(sd_bus_message_append(m, "{sv}", "procfd", "h", proof), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
}

_unused_ static sd_bus_message *raw_message(Client *c, Raw raw, const char *types, va_list ap) {
        sd_bus_message *m = client_message(c, MANAGER, "OpenEvent");

        g_assert_cmpint(sd_bus_message_append_array(m, 'y', raw.attr,
                                                    raw.size > 0 ? raw.size : sizeof(PerfAttr)),
                        >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "iit", raw.pid, raw.cpu, raw.flags), >=, 0);
        g_assert_cmpstr(types, ==, "a{sv}");
        raw_append_options(m, raw.pid > 0 ? client_proof(c, raw.pid) : -1, ap);
        return m;
}

/* The descriptor, which is the caller's. */
_unused_ static int raw_open(Client *c, Raw raw, const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        va_list ap;
        int fd;

        va_start(ap, types);
        m = raw_message(c, raw, types, ap);
        va_end(ap);
        reply = client_call_message(c, m);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'h', &fd), >, 0);
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(fd, >=, 0);
        return fd;
}

/* Does not wait for the answer, which client_receive() gets. */
_unused_ static uint64_t raw_send(Client *c, Raw raw, const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        uint64_t cookie;
        va_list ap;

        va_start(ap, types);
        m = raw_message(c, raw, types, ap);
        va_end(ap);
        g_assert_cmpint(sd_bus_send(c->bus, m, &cookie), >=, 0);
        return cookie;
}

/* The refusal contains the text, and is readable. */
_unused_ static void raw_refused(Client *c, const char *error, const char *words, Raw raw,
                                 const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        va_start(ap, types);
        m = raw_message(c, raw, types, ap);
        va_end(ap);
        client_refused_message(c, error, m);
        g_test_message("%s", c->refusal);
        if (!strstr(c->refusal, words))
                g_error("the refusal does not say '%s' but: %s", words, c->refusal);
        for (const char *p = c->refusal; *p; p++)
                g_assert_false(g_ascii_iscntrl(*p));
}

_unused_ static uint64_t raw_value(int fd) {
        uint64_t value;

        g_assert_cmpint(read(fd, &value, sizeof(value)), ==, sizeof(value));
        return value;
}

/* All processes are in the first cgroup; -1: there is none. */
_unused_ static int cgroup_open(void) {
        static const char *const paths[] = { "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified",
                                             "/sys/fs/cgroup" };

        for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
                int fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                if (fd >= 0 && faccessat(fd, "cgroup.procs", F_OK, 0) == 0)
                        return fd;
                close_fd(fd);
        }
        return -1;
}
