/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service-process.h"

#include "bus-util.h"
#include "clock/clock.h"

#include <stdio.h>
#include <sys/syscall.h>

pid_t service_pid(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(sd_bus_message) reply = NULL;
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        uint32_t pid;

        if (sd_bus_call_method(root->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                               "org.freedesktop.DBus", "GetConnectionUnixProcessID", &error, &reply,
                               "s", PERFALLOC_BUS_NAME) < 0)
                g_error("the service does not run: %s", error.message);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'u', &pid), >, 0);
        return (pid_t) pid;
}

void clock_forward_of(pid_t service, uint64_t usec) {
        const union sigval msec = { .sival_int = (int) (usec / USEC_PER_MSEC) };

        g_assert_cmpint(sigqueue(service, CLOCK_SIGNAL, msec), ==, 0);
}

void service_clock_forward(uint64_t usec) {
        clock_forward_of(service_pid(), usec);
}

/* A child of that name; 0: there is none. */
static pid_t child_find(int pid, const char *name) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", pid, pid);
        g_autofree char *text = NULL;
        g_auto(GStrv) children = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL))
                return 0;
        children = g_strsplit(g_strstrip(text), " ", -1);
        for (char **child = children; *child; child++) {
                g_autofree char *comm = g_strdup_printf("/proc/%s/comm", *child), *is = NULL;

                if (g_file_get_contents(comm, &is, NULL, NULL) && g_str_has_prefix(is, name))
                        return atoi(*child);
        }
        return 0;
}

/* It takes its name when it has begun to run. */
static pid_t service_child(const char *name) {
        pid_t child;

        await((child = child_find((int) service_pid(), name)) > 0);
        return child;
}

pid_t service_reader(void) {
        return service_child("perfalloc-reade");
}

pid_t service_opener(void) {
        return service_child("perfalloc-opene");
}

typedef bool DescriptorFilter(pid_t service, const char *number);

/* How many of its descriptors the filter takes. */
static unsigned descriptors_count(DescriptorFilter *filter) {
        pid_t service = service_pid();
        g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int) service);
        GDir *dir = g_dir_open(path, 0, NULL);
        const char *number;
        unsigned n = 0;

        if (!dir)
                g_error("cannot read %s", path);
        while ((number = g_dir_read_name(dir)))
                n += filter(service, number);
        g_dir_close(dir);
        return n;
}

static bool descriptor_is(pid_t service, const char *number, const char *kind) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fd/%s", (int) service, number);
        g_autofree char *target = g_file_read_link(path, NULL);

        return g_strcmp0(target, kind) == 0;
}

static bool descriptor_is_event(pid_t service, const char *number) {
        return descriptor_is(service, number, "anon_inode:[perf_event]");
}

unsigned service_events(void) {
        return descriptors_count(descriptor_is_event);
}

void service_events_each(void (*f)(int fd, void *userdata), void *userdata) {
        pid_t service = service_pid();
        g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int) service);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        int pidfd = (int) syscall(SYS_pidfd_open, (int) service, 0);
        const char *number;

        g_assert_nonnull(dir);
        g_assert_cmpint(pidfd, >=, 0);
        while ((number = g_dir_read_name(dir))) {
                int fd;

                if (!descriptor_is_event(service, number))
                        continue;
                fd = (int) syscall(SYS_pidfd_getfd, pidfd, atoi(number), 0);
                if (fd >= 0) /* it was not closed meanwhile */
                        f(fd, userdata);
                close_fd(fd);
        }
        close_fd(pidfd);
}

unsigned service_processes(void) {
        const uid_t uid = user_id("perfalloc");
        GDir *dir = g_dir_open("/proc", 0, NULL);
        const char *name;
        unsigned n = 0;

        while ((name = g_dir_read_name(dir))) {
                g_autofree char *path = g_strdup_printf("/proc/%s/status", name), *text = NULL;
                const char *field = NULL;

                if (g_ascii_isdigit(*name) && g_file_get_contents(path, &text, NULL, NULL))
                        field = strstr(text, "\nUid:");
                n += field && (uid_t) atoi(field + strlen("\nUid:")) == uid;
        }
        g_dir_close(dir);
        return n;
}

/* Not counted are timers, because an event loop creates a clock's timer at its first use and keeps
 * it; pidfds of this process, because the service holds its callers' processes while they are on
 * the bus; and what is closed meanwhile. */
static bool descriptor_is_kept(pid_t service, const char *number) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo/%s", (int) service, number);
        g_autofree char *us = g_strdup_printf("\nPid:\t%d\n", (int) getpid()), *text = NULL;

        return !descriptor_is(service, number, "anon_inode:[timerfd]") &&
               g_file_get_contents(path, &text, NULL, NULL) && !strstr(text, us);
}

unsigned service_descriptors(void) {
        return descriptors_count(descriptor_is_kept);
}

uint64_t service_memory(void) {
        int pid = (int) service_pid();
        g_autofree char *rollup = g_strdup_printf("/proc/%d/smaps_rollup", pid), *sizes = NULL;
        g_autofree char *maps = g_strdup_printf("/proc/%d/maps", pid), *mapped = NULL;
        const char *line;
        uint64_t kib = 0;

        if (!g_file_get_contents(maps, &mapped, NULL, NULL) ||
            !g_file_get_contents(rollup, &sizes, NULL, NULL))
                g_error("cannot read %s", rollup);
        line = strstr(sizes, "\nPrivate_Dirty:");
        if (strstr(mapped, "/libasan") || !line ||
            sscanf(line, "\nPrivate_Dirty: %" G_GUINT64_FORMAT, &kib) != 1)
                return 0;
        return kib * 1024;
}

unsigned service_said(const char *words) {
        g_autofree char *log = NULL;
        unsigned n = 0;

        g_assert_true(g_spawn_command_line_sync("service-log", &log, NULL, NULL, NULL));
        for (const char *p = log; (p = strstr(p, words)); p++)
                n++;
        return n;
}

int service_number(const char *name) {
        g_autofree char *file = g_strconcat("service.", name, NULL), *text = NULL;
        g_autofree char *path =
                g_build_filename(g_getenv("PERFALLOC_RIG_DIR"), "state", file, NULL);

        return g_file_get_contents(path, &text, NULL, NULL) ? atoi(text) : 0;
}
