/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault-operations.h"

#include <perfalloc/event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define PMU PERFALLOC_PMU_INTERFACE

/* ---- raw events, samplers, monitors ---- */

static void try_event(Scene *s, const PerfAttr *attr, int cpu) {
        g_autoptr(sd_bus_message) m = client_message(s->client, MANAGER, "OpenEvent"), reply = NULL;

        g_assert_cmpint(sd_bus_message_append_array(m, 'y', attr, sizeof(*attr)), >=, 0);
        g_assert_cmpint(
                sd_bus_message_append(m, "iita{sv}", cpu >= 0 ? -1 : 0, cpu, (uint64_t) 0, 0), >=,
                0);
        reply = try_message(s, s->client, m);
}

static void run_event(Scene *s) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_TASK_CLOCK);

        try_event(s, &attr, -1);
}

/* The stream ends in any case. */
static void run_events_of_tree(Scene *s) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_TASK_CLOCK);
        g_autoptr(sd_bus_message) m = client_message(s->client, MANAGER, "OpenEvents"),
                                  reply = NULL;
        int stream, fd;

        g_assert_cmpint(sd_bus_message_append_array(m, 'y', &attr, sizeof(attr)), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "ta{sv}", (uint64_t) 0, 2, "procfd", "h",
                                              client_proof(s->client, s->target->pid),
                                              "descendants", "b", 1),
                        >=, 0);
        reply = try_message(s, s->client, m);
        if (!reply)
                return;
        g_assert_cmpint(sd_bus_message_read(reply, "uh", NULL, &stream), >, 0);
        while ((fd = perfalloc_event_receive(stream, NULL)) >= 0)
                close_fd(fd);
}

static void run_event_cpu(Scene *s) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);

        try_event(s, &attr, 0);
}

void run_sampler(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "CreateSampler", "aota{sv}", 1, s->path, 20 * USEC_PER_MSEC, 1,
                 "signal", "b", 1);
        TRY(s, MANAGER, "HasSamplers", NULL);
        TRY(s, MANAGER, "BlockSamplers", NULL);
        TRY(s, MANAGER, "UnblockSamplers", NULL);
}

static void run_map(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "CreateSampler", "aota{sv}", 1, s->path, (uint64_t) 0, 1, "map",
                 "b", 1);
        TRY(s, s->path, PERFALLOC_SAMPLER_INTERFACE, "Refresh", NULL);
        TRY(s, s->path, PERFALLOC_SAMPLER_INTERFACE, "Close", NULL);
}

static void prepare_sampler(Scene *s) {
        prepare_counter(s);
        run_sampler(s);
}

/* A tick that could not be sent is missed, and the next one comes. */
void run_ticks(Scene *s) {
        uint64_t record[64], first = 0;

        while (recv(s->fd, record, sizeof(record), MSG_DONTWAIT) > 0)
                ;
        do {
                g_assert_cmpint(recv(s->fd, record, sizeof(record), 0), >, 0);
                first = first ?: record[0];
        } while (record[0] < first + 2);
}

static void run_register(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "RegisterMonitor", "sa{sv}", "to fail", 1, BREAKPOINTS);
}

/* ---- authorization ---- */

static void run_probe(Scene *s) {
        TRY(s, PERFALLOC_OBJECT_PATH "/pmu/breakpoint", PMU, "Probe", NULL);
}

static void run_users(Scene *s) {
        TRY(s, MANAGER, "ListUsers", NULL);
}

static void run_events(Scene *s) {
        TRY(s, MANAGER, "ListEvents", "s", "*fault*");
        TRY(s, MANAGER, "EncodeEvent", "s", "cpu-clock:u");
        TRY(s, MANAGER, "EncodeEvent", "s", "msr/tsc/");
        TRY(s, MANAGER, "EncodeEvent", "s", "mem:0x1000/4:rw");
}

static void run_properties(Scene *s) {
        TRY(s, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects",
            NULL);
        TRY(s, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.Properties", "GetAll", "s",
            PERFALLOC_MANAGER_INTERFACE);
        TRY(s, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.Introspectable", "Introspect", NULL);
        TRY(s, s->path, "org.freedesktop.DBus.Properties", "GetAll", "s",
            PERFALLOC_COUNTER_INTERFACE);
}

/* ---- clients that leave ---- */

static void prepare_everything(Scene *s) {
        prepare_counter(s);
        run_sampler(s);
        TRY_PATH(s, "oh", MANAGER, "RegisterMonitor", "sa{sv}", "to fail", 1, "pmus", "as", 1,
                 "software");
        run_hold(s);
}

static void run_leave(Scene *s) {
        g_clear_pointer(&s->client, client_free);
        ping();
}

/* ---- reloading ---- */

#define MONITORS "/etc/perfalloc/monitors.d/"

static void file_set(const char *path, const char *text) {
        g_autoptr(GError) error = NULL;

        (void) g_file_set_contents(path, text, -1, &error);
        g_assert_no_error(error);
        g_assert_cmpint(chmod(path, 0644), ==, 0);
}

static unsigned reloads;

static unsigned reloads_said(void) {
        g_autofree char *log = NULL;
        unsigned n = 0;

        g_assert_true(g_spawn_command_line_sync("service-log", &log, NULL, NULL, NULL));
        for (const char *p = log; (p = strstr(p, "Configuration read again")); p++)
                n++;
        return n;
}

static void reload(void) {
        unsigned before = reloads_said();

        g_assert_cmpint(kill(service, SIGHUP), ==, 0);
        settle(reloads_said() > before);
        reloads++;
}

static void prepare_reload(Scene *s) {
        file_set(MONITORS "one.conf", "[Monitor]\nEvents=cpu-clock task-clock\nGroup=yes\n");
        file_set(MONITORS "two.conf", "[Monitor]\nEvents=page-faults\nCpus=0\nInterval=1h\n");
}

static void run_reload(Scene *s) {
        reload();
}

/* What one reload had to leave out, the next one adds or removes. */
static void undo_reload(Scene *s) {
        reload();
        g_assert_cmpuint(client_count(root, "counter"), ==, 3);
        g_assert_cmpint(unlink(MONITORS "one.conf"), ==, 0);
        g_assert_cmpint(unlink(MONITORS "two.conf"), ==, 0);
        reload();
}

const Operation other_operations[] = {
        { "event", "alice", NULL, run_event, NULL },
        { "event-cpu", "alice", NULL, run_event_cpu, NULL },
        { "events-of-tree", "alice", prepare_family, run_events_of_tree, NULL },
        { "sampler", "alice", prepare_counter, run_sampler, NULL },
        { "map", "alice", prepare_counter, run_map, NULL },
        { "ticks", "alice", prepare_sampler, run_ticks, NULL },
        { "register", "alice", NULL, run_register, NULL },
        { "probe", "root", NULL, run_probe, NULL },
        { "users", "alice", NULL, run_users, NULL },
        { "events", "alice", NULL, run_events, NULL },
        { "properties", "alice", prepare_counter, run_properties, NULL },
        { "leave", "alice", prepare_everything, run_leave, NULL },
        { "reload", "root", prepare_reload, run_reload, NULL, undo_reload },
        {},
};
