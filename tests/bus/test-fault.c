/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Each call of memory, of descriptors and of the bus fails once in the middle of each operation,
 * the first, the second, and so on until the operation has no more of them. Whatever fails: the
 * caller is answered, nothing stays behind, the same operation succeeds afterwards, and the service
 * goes on.
 *
 * The service is tests/fault/perfallocd-fault. PERFALLOC_FAULT_STRIDE=1 tries every call; without
 * it some are left out.
 */

#include "event-util.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fault/fault.h"

#define MONITOR        PERFALLOC_MONITOR_INTERFACE
#define SAMPLER        PERFALLOC_SAMPLER_INTERFACE
#define PMU            PERFALLOC_PMU_INTERFACE
#define CALLS_MAX      4000
#define ANSWER_USEC    (20 * USEC_PER_SEC)
#define DEFAULT_STRIDE 61
#define SETTLE_USEC    (5 * G_USEC_PER_SEC)

/* What the failing of a call for want of memory or descriptors may come to for the caller. */
static const struct {
        const char *name, *words;
} errors[] = {
        { SD_BUS_ERROR_NO_MEMORY, "" },
        { PERFALLOC_ERROR_NOT_PERMITTED, "suid_dumpable is 1 or cannot be read" },
        { SD_BUS_ERROR_LIMITS_EXCEEDED, "no descriptor left" },
        { PERFALLOC_ERROR_TOO_MANY_DESCRIPTORS, "" },
        { PERFALLOC_ERROR_OBSTRUCTED, "out of memory or descriptors" },
};

/* One run of an operation. */
typedef struct Scene {
        Client *client, *other;
        Actor *target;
        char *path, *second, *id;
        int fd, fd2;
        bool failed; /* some call was answered with an error */
        char error[64];
} Scene;

typedef struct Operation {
        const char *name, *user;
        void (*prepare)(Scene *s); /* nothing fails yet */
        void (*run)(Scene *s);
        void (*after)(Scene *s); /* nothing fails any more; only where run did not */
        void (*undo)(Scene *s);  /* in any case */
} Operation;

static Fault *fault;
static pid_t service;
static Client *root;
static unsigned stride = DEFAULT_STRIDE;

/* What is being tried, and what was wrong with it: all of it is told, not only the first. */
static const char *trying, *trying_way;
static int64_t trying_call;
static unsigned n_wrong;

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
        g_autofree char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_printerr("# %s, %s %" PRId64 " (addr2line 0x%" PRIx64 "): %s\n", trying, trying_way,
                   trying_call, fault->caller, text);
        n_wrong++;
}

#define settle(condition)                                                                          \
        settle_for(({                                                                              \
                           gint64 _end = g_get_monotonic_time() + SETTLE_USEC;                     \
                           bool _is;                                                               \
                           while (!(_is = (condition)) && g_get_monotonic_time() < _end)           \
                                   g_usleep(500);                                                  \
                           _is;                                                                    \
                   }),                                                                             \
                   #condition)

static void settle_for(bool is, const char *condition) {
        if (!is)
                complain("never came: %s", condition);
}

/* ---- counting what is there ---- */

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

static pid_t helper_pid(void) {
        g_autofree char *path =
                g_strdup_printf("/proc/%d/task/%d/children", (int) service, (int) service);
        g_autofree char *text = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL) || atoi(text) <= 0)
                g_error("the service has no helper");
        return atoi(text);
}

typedef struct Census {
        unsigned objects, descriptors, helper_descriptors;
        bool yielding;
} Census;

/* Holds that have ended can be read for a while; they are no goods of anybody. */
static unsigned objects_alive(void) {
        g_autoptr(sd_bus_message) reply =
                client_call(root, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", NULL);
        const char *path;
        unsigned n = 0;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), >, 0);
        while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                g_autofree char *state = NULL;

                g_assert_cmpint(sd_bus_message_read(reply, "o", &path), >, 0);
                if (strstr(path, "/hold/"))
                        state = object_read(reply, HOLD, "State");
                else
                        g_assert_cmpint(sd_bus_message_skip(reply, "a{sa{sv}}"), >=, 0);
                n += g_strcmp0(state, "ended") != 0;
                g_assert_cmpint(sd_bus_message_exit_container(reply), >=, 0);
        }
        return n;
}

static Census census(void) {
        g_autofree char *service_fds = g_strdup_printf("/proc/%d/fd", (int) service);
        g_autofree char *helper_fds = g_strdup_printf("/proc/%d/fd", (int) helper_pid());

        return (Census){ .objects = objects_alive(),
                         .yielding = client_get_number(root, MANAGER, "Yielding", 'b') != 0,
                         .descriptors = entries(service_fds),
                         .helper_descriptors = entries(helper_fds) };
}

static bool census_is(const Census *a) {
        Census b = census();

        return a->objects == b.objects && a->yielding == b.yielding &&
               a->descriptors == b.descriptors && a->helper_descriptors == b.helper_descriptors;
}

static void census_settle(const Census *a, const char *when) {
        gint64 end = g_get_monotonic_time() + SETTLE_USEC;
        Census b;

        while (!census_is(a) && g_get_monotonic_time() < end)
                g_usleep(500);
        b = census();
        if (!census_is(a))
                complain(
                        "%s: objects %u, %u before; descriptors %u, %u before; the helper's %u, %u "
                        "before; yielding %d, %d before",
                        when, b.objects, a->objects, b.descriptors, a->descriptors,
                        b.helper_descriptors, a->helper_descriptors, b.yielding, a->yielding);
}

/* ---- calls that may be refused ---- */

static sd_bus_message *try_message(Scene *s, Client *c, sd_bus_message *m) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;

        if (sd_bus_call(c->bus, m, ANSWER_USEC, &error, &reply) >= 0)
                return reply;
        s->failed = true;
        (void) g_strlcpy(s->error, error.name ?: "no error name", sizeof(s->error));
        for (size_t i = 0; i < G_N_ELEMENTS(errors); i++)
                if (g_strcmp0(error.name, errors[i].name) == 0 &&
                    strstr(error.message, errors[i].words))
                        return NULL;
        complain("%s: %s: %s", sd_bus_message_get_member(m), error.name, error.message);
        return NULL;
}

/* NULL where it failed, or something before it did. */
static sd_bus_message *try_call(Scene *s, Client *c, const char *path, const char *interface,
                                const char *member, const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        if (s->failed)
                return NULL;
        m = client_message(c, path, interface, member);
        if (types) {
                va_start(ap, types);
                g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
                va_end(ap);
        }
        return try_message(s, c, m);
}

static void drop(sd_bus_message *reply) {
        sd_bus_message_unref(reply);
}

#define TRY(s, ...) drop(try_call(s, (s)->client, __VA_ARGS__))

static void keep_path(Scene *s, sd_bus_message *reply, const char *types) {
        const char *path;
        int fd = -1;

        if (!reply)
                return;
        if (*types == 'a')
                g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        g_free(s->path);
        s->path = g_strdup(path);
        if (strcmp(types, "oh") == 0) {
                g_assert_cmpint(sd_bus_message_read_basic(reply, 'h', &fd), >, 0);
                s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        }
        sd_bus_message_unref(reply);
}

#define TRY_PATH(s, types, ...) keep_path(s, try_call(s, (s)->client, __VA_ARGS__), types)

/* Nothing fails any more. */
static void calm(void) {
        atomic_store(&fault->left, 0);
}

/* The service has done with all that has come to it before. */
static void ping(void) {
        (void) sd_bus_call_method(root->bus, PERFALLOC_BUS_NAME, "/", "org.freedesktop.DBus.Peer",
                                  "Ping", NULL, NULL, NULL);
}

/* ---- holds ---- */

/* Best effort: whether the breakpoints of the machine were free is no matter of these tests. */

static void run_hold(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 3, BREAKPOINTS, "best_effort", "b",
                 1, "yield_usec", "t", (uint64_t) 5 * USEC_PER_SEC);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

static void run_hold_some(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 4, BREAKPOINTS, "cpus", "s", "0",
                 "counters", "u", 2, "best_effort", "b", 1);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

static void run_hold_exclusive(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 3, BREAKPOINTS, "mode", "s",
                 "exclusive", "best_effort", "b", 1);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

static void run_hold_unattended(Scene *s) {
        TRY_PATH(s, "o", MANAGER, "HoldUnattended", "sta{sv}", "to fail", 60 * USEC_PER_SEC, 2,
                 BREAKPOINTS, "best_effort", "b", 1);
}

/* It may be obstructed by the want of memory. */
static void release(Scene *s) {
        if (!hold_is(s->client, s->path, "ended"))
                hold_release(s->client, s->path);
}

static void prepare_monitor(Scene *s) {
        s->other = client_new("root");
        s->second = monitor_open(s->other, 0, 0);
}

static void monitor_goes_on(Scene *s) {
        settle(hold_is(s->client, s->path, "ended"));
        settle(counter_is(s->other, s->second, "counting"));
}

static void run_hold_monitor(Scene *s) {
        run_hold(s);
        calm();
        if (!s->failed)
                settle(counter_is(root, s->second, "yielded"));
}

static void after_hold_monitor(Scene *s) {
        s->fd = close_fd(s->fd);
        monitor_goes_on(s);
}

static void prepare_held(Scene *s) {
        prepare_monitor(s);
        s->path = hold_take(s->client, &s->fd, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        (void) hold_wait(s->client, s->path);
}

static void run_release(Scene *s) {
        TRY(s, s->path, HOLD, "Release", NULL);
        calm();
        /* It may be the answer that failed. */
        if (!s->failed)
                settle(hold_is(s->client, s->path, "ended"));
}

static void run_lease(Scene *s) {
        client_watch(s->other);
        s->fd = close_fd(s->fd);
        /* unless it is that which fails */
        for (bool told = false; !told;) {
                g_autoptr(sd_bus_message) m = client_next(s->other, USEC_PER_SEC / 10);

                told = !m || sd_bus_message_is_signal(m, PERFALLOC_MANAGER_INTERFACE, "HoldEnded");
        }
        ping();
        calm();
        settle(hold_is(root, s->path, "ended"));
        settle(counter_is(root, s->second, "counting"));
}

static void prepare_queue(Scene *s) {
        s->other = client_new("root");
        s->second = hold_take(s->other, &s->fd2, "a{sv}", 3, BREAKPOINTS, "best_effort", "b", 1,
                              "mode", "s", "exclusive");
        (void) hold_wait(s->other, s->second);
}

static void run_queue(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "Hold", "sa{sv}", "to fail", 3, BREAKPOINTS, "best_effort", "b",
                 1, "wait_usec", "t", 60 * USEC_PER_SEC);
        calm();
        if (!s->failed)
                settle(hold_is(s->client, s->path, "queued"));
}

static void after_queue(Scene *s) {
        hold_release(s->other, s->second);
        settle(hold_is(s->client, s->path, "granted"));
}

static void prepare_queued(Scene *s) {
        prepare_queue(s);
        run_queue(s);
}

static void run_queued(Scene *s) {
        s->fd2 = close_fd(s->fd2);
        TRY(s, s->path, HOLD, "Wait", NULL);
}

/* ---- counters ---- */

static void run_open_cpu(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s",
                 "cpu", "name", "s", "one");
        calm();
        if (!s->failed)
                settle(counter_is(root, s->path, "counting"));
}

static void run_open_cpus(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s",
                 "cpu", "cpus", "s", "0-0");
}

static void run_open_group(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 3, "cpu-clock", "task-clock",
                 "page-faults", 2, "scope", "s", "cpu", "group", "b", 1);
}

static void run_open_three(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 3, "cpu-clock:u", "task-clock:u",
                 "page-faults:u", 0);
}

static int play_target(int fd, const void *data) {
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

static int play_family(int fd, const void *data) {
        pid_t child = fork();

        if (child == 0) {
                (void) act_hear(fd);
                return 0;
        }
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

static void prepare_target(Scene *s) {
        s->target = actor_new("alice", play_target, NULL);
        g_assert_cmpint(actor_hear(s->target), ==, 'o');
}

static void prepare_family(Scene *s) {
        s->target = actor_new("alice", play_family, NULL);
        g_assert_cmpint(actor_hear(s->target), ==, 'o');
}

static void run_open_process(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 2, "task-clock:u", "page-faults:u", 2,
                 "pid", "u", (uint32_t) s->target->pid, "group", "b", 1);
}

static void run_open_family(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "task-clock:u", 2, "pid", "u",
                 (uint32_t) s->target->pid, "descendants", "b", 1);
}

static void run_open_pidfd(Scene *s) {
        int fd = (int) syscall(SYS_pidfd_open, s->target->pid, 0);

        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "task-clock:u", 1, "pidfd", "h",
                 fd);
        close_fd(fd);
}

static void run_open_persistent(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s",
                 "cpu", "persistent", "b", 1);
}

static void run_open_monitor(Scene *s) {
        g_autofree char *event = watched_event(1);

        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, event, 3, "scope", "s", "cpu",
                 "role", "s", "monitor", "priority", "u", 3);
}

static void prepare_monitor_held(Scene *s) {
        s->other = client_new("root");
        s->second = hold_take(s->other, &s->fd2, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        (void) hold_wait(s->other, s->second);
}

static void after_monitor_held(Scene *s) {
        settle(counter_is(s->client, s->path, "yielded"));
        s->fd2 = close_fd(s->fd2);
        settle(counter_is(s->client, s->path, "counting"));
}

static void run_open_breakpoints(Scene *s) {
        g_autofree char *one = watched_event(1), *two = watched_event(2);

        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 2, one, two, 2, "scope", "s", "cpu",
                 "group", "b", 1);
}

static void close_counter(Scene *s) {
        counter_do(s->client, s->path, "Close");
}

static void prepare_counter(Scene *s) {
        prepare_target(s);
        s->path = counter_open(s->client, "task-clock:u", "a{sv}", 1, "pid", "u",
                               (uint32_t) s->target->pid);
}

static void run_read(Scene *s) {
        TRY(s, s->path, COUNTER, "Read", NULL);
        TRY(s, s->path, COUNTER, "ReadEach", NULL);
        TRY(s, MANAGER, "ReadCounters", "ao", 1, s->path);
}

static void run_commands(Scene *s) {
        TRY(s, s->path, COUNTER, "Stop", NULL);
        TRY(s, s->path, COUNTER, "Reset", NULL);
        TRY(s, s->path, COUNTER, "Start", NULL);
        TRY(s, s->path, COUNTER, "GetFds", NULL);
}

static void run_close(Scene *s) {
        TRY(s, s->path, COUNTER, "Close", NULL);
        calm();
        if (!s->failed)
                settle(!client_finds(root, s->path, COUNTER));
}

static void prepare_unattached(Scene *s) {
        prepare_family(s);
        s->path = counter_open(s->client, "task-clock:u", "a{sv}", 2, "attach", "b", 0, "start",
                               "b", 0);
}

static void run_attach(Scene *s) {
        TRY(s, s->path, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) s->target->pid, 0);
        TRY(s, s->path, COUNTER, "DetachProcess", "u", (uint32_t) s->target->pid);
}

static void run_attach_family(Scene *s) {
        TRY(s, s->path, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) s->target->pid, 1,
            "descendants", "b", 1);
}

static void run_persist(Scene *s) {
        TRY(s, s->path, COUNTER, "Persist", NULL);
        TRY(s, MANAGER, "ListPersistent", NULL);
        TRY(s, s->path, COUNTER, "Adopt", NULL);
}

static void prepare_persistent(Scene *s) {
        s->other = client_new("alice");
        s->second = counter_open(s->other, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu",
                                 "persistent", "b", 1);
        s->id = client_get(root, s->second, COUNTER, "Id");
}

static void run_open_persistent_again(Scene *s) {
        TRY_PATH(s, "o", MANAGER, "OpenPersistent", "s", s->id);
}

static void undo_persistent(Scene *s) {
        counter_do(s->other, s->second, "Close");
}

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

static void run_event_cpu(Scene *s) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);

        try_event(s, &attr, 0);
}

static void run_sampler(Scene *s) {
        TRY_PATH(s, "oh", MANAGER, "CreateSampler", "aota{sv}", 1, s->path, 20 * USEC_PER_MSEC, 1,
                 "signal", "b", 1);
        TRY(s, MANAGER, "HasSamplers", NULL);
        TRY(s, MANAGER, "BlockSamplers", NULL);
        TRY(s, MANAGER, "UnblockSamplers", NULL);
}

static void prepare_sampler(Scene *s) {
        prepare_counter(s);
        run_sampler(s);
}

/* A tick that could not be told is missed, and the next one comes. */
static void run_ticks(Scene *s) {
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

/* ---- questions ---- */

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

/* ---- leaving ---- */

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

/* Whatever it had to leave out, the next one brings, and takes away. */
static void undo_reload(Scene *s) {
        reload();
        g_assert_cmpuint(client_count(root, "counter"), ==, 3);
        g_assert_cmpint(unlink(MONITORS "one.conf"), ==, 0);
        g_assert_cmpint(unlink(MONITORS "two.conf"), ==, 0);
        reload();
}

/* ---- the sweep ---- */

static const Operation operations[] = {
        { "hold", "alice", NULL, run_hold, release },
        { "hold-of-some", "alice", NULL, run_hold_some, release },
        { "hold-exclusive", "alice", NULL, run_hold_exclusive, release },
        { "hold-unattended", "alice", NULL, run_hold_unattended, release },
        { "hold-over-a-monitor", "alice", prepare_monitor, run_hold_monitor, after_hold_monitor },
        { "release", "alice", prepare_held, run_release, monitor_goes_on },
        { "lease-closed", "alice", prepare_held, run_lease, NULL },
        { "queue", "alice", prepare_queue, run_queue, after_queue },
        { "next-in-the-queue", "alice", prepare_queued, run_queued, release },
        { "open-cpu", "alice", NULL, run_open_cpu, close_counter },
        { "open-cpus", "alice", NULL, run_open_cpus, close_counter },
        { "open-group", "alice", NULL, run_open_group, NULL },
        { "open-three", "alice", NULL, run_open_three, NULL },
        { "open-process", "alice", prepare_target, run_open_process, NULL },
        { "open-family", "alice", prepare_family, run_open_family, NULL },
        { "open-pidfd", "alice", prepare_target, run_open_pidfd, close_counter },
        { "open-persistent", "alice", NULL, run_open_persistent, close_counter },
        { "open-monitor", "alice", NULL, run_open_monitor, close_counter },
        { "open-monitor-while-held", "alice", prepare_monitor_held, run_open_monitor,
          after_monitor_held },
        { "open-breakpoints", "alice", NULL, run_open_breakpoints, NULL },
        { "read", "alice", prepare_counter, run_read, NULL },
        { "commands", "alice", prepare_counter, run_commands, NULL },
        { "close", "alice", prepare_counter, run_close, NULL },
        { "attach", "alice", prepare_unattached, run_attach, NULL },
        { "attach-family", "alice", prepare_unattached, run_attach_family, NULL },
        { "persist", "alice", prepare_counter, run_persist, NULL, close_counter },
        { "open-persistent-again", "alice", prepare_persistent, run_open_persistent_again, NULL,
          undo_persistent },
        { "event", "alice", NULL, run_event, NULL },
        { "event-cpu", "alice", NULL, run_event_cpu, NULL },
        { "sampler", "alice", prepare_counter, run_sampler, NULL },
        { "ticks", "alice", prepare_sampler, run_ticks, NULL },
        { "register", "alice", NULL, run_register, NULL },
        { "probe", "root", NULL, run_probe, NULL },
        { "users", "alice", NULL, run_users, NULL },
        { "events", "alice", NULL, run_events, NULL },
        { "properties", "alice", prepare_counter, run_properties, NULL },
        { "leave", "alice", prepare_everything, run_leave, NULL },
        { "reload", "root", prepare_reload, run_reload, NULL, undo_reload },
};

static const struct {
        const char *name;
        uint32_t kinds, where;
        int error;
} ways[] = {
        { "memory", FAULT_MEMORY, FAULT_SERVICE, ENOMEM },
        { "bus", FAULT_BUS, FAULT_SERVICE, ENOMEM },
        { "descriptors", FAULT_PERF | FAULT_SYSTEM, FAULT_SERVICE, EMFILE },
        { "kernel-memory", FAULT_PERF | FAULT_SYSTEM, FAULT_SERVICE, ENOMEM },
        { "passing", FAULT_PASSING, FAULT_SERVICE | FAULT_HELPER, 0 },
        { "helper-memory", FAULT_MEMORY, FAULT_HELPER, ENOMEM },
        { "helper-descriptors", FAULT_PERF | FAULT_SYSTEM, FAULT_HELPER, EMFILE },
};

static void scene_up(Scene *s, const Operation *o) {
        *s = (Scene){ .client = client_new(o->user), .fd = -1, .fd2 = -1 };
        if (o->prepare)
                o->prepare(s);
        g_assert_false(s->failed);
}

static void scene_down(Scene *s) {
        s->fd = close_fd(s->fd);
        s->fd2 = close_fd(s->fd2);
        g_clear_pointer(&s->client, client_free);
        g_clear_pointer(&s->other, client_free);
        g_clear_pointer(&s->target, actor_free);
        g_clear_pointer(&s->path, g_free);
        g_clear_pointer(&s->second, g_free);
        g_clear_pointer(&s->id, g_free);
}

/* Runs it with the Nth call failing; false: it had no Nth call. */
static bool strike(const Operation *o, size_t way, int64_t n) {
        bool struck;
        Census before;
        Scene s;

        trying = o->name;
        trying_way = ways[way].name;
        trying_call = n;
        fault->caller = 0;
        scene_up(&s, o);
        before = census();
        fault->kinds = ways[way].kinds;
        fault->where = ways[way].where;
        fault->error = ways[way].error;
        atomic_store(&fault->struck, 0);
        atomic_store(&fault->left, n);
        o->run(&s);
        atomic_store(&fault->left, 0);
        struck = atomic_load(&fault->struck) > 0;
        if (g_test_verbose() && struck)
                g_test_message("%s, %s %" PRId64 ": 0x%" PRIx64 ": %s", o->name, ways[way].name, n,
                               fault->caller, s.failed ? s.error : "done");
        if (s.failed && !o->prepare && !s.path)
                census_settle(&before, "after the error");
        if (s.failed && !struck)
                complain("failed without a cause");
        if (o->after && !s.failed)
                o->after(&s);
        if (o->undo)
                o->undo(&s);
        scene_down(&s);
        return struck;
}

static Census empty;

/* The first call, and each of a stride that begins elsewhere for each operation and way. */
static void sweep(const Operation *o, size_t way) {
        size_t place = (size_t) (o - operations) * G_N_ELEMENTS(ways) + way;
        bool struck;

        for (int64_t n = 1;; n += n == 1 ? 1 + (int64_t) (place % stride) : stride) {
                g_assert_cmpint(n, <, CALLS_MAX);
                struck = strike(o, way, n);
                census_settle(&empty, "afterwards");
                if (!struck)
                        break;
                (void) strike(o, way, 0);
                census_settle(&empty, "after doing it again");
                if (n_wrong > 0)
                        empty = census();
        }
}

static void test_operation(const void *data) {
        const Operation *o = data;

        n_wrong = 0;
        for (size_t way = 0; way < G_N_ELEMENTS(ways); way++)
                sweep(o, way);
        if (n_wrong > 0)
                g_test_fail();
}

/* ---- time ---- */

/* The hours of a day that a clock was set wrong are not the hours that a hold lasts. */
static void test_clock_jumps(const void *data) {
        static const int64_t jumps[] = { 86400 * (int64_t) USEC_PER_SEC,
                                         -86400 * (int64_t) USEC_PER_SEC };
        const uint64_t lifetime = USEC_PER_SEC, wait = USEC_PER_SEC / 10;

        for (size_t i = 0; i < G_N_ELEMENTS(jumps); i++) {
                g_autoptr(Client) alice = client_new("alice"), root_too = client_new("root");
                g_autofree char *hold = NULL, *waiting = NULL;
                Scene s = { .client = alice, .fd = -1 };
                gint64 asked = g_get_monotonic_time();
                int lease;

                hold = hold_take_unattended(root_too, lifetime, "a{sv}", 2, BREAKPOINTS,
                                            "best_effort", "b", 1);
                waiting = hold_take(root_too, &lease, "a{sv}", 3, BREAKPOINTS, "mode", "s",
                                    "exclusive", "wait_usec", "t", wait);
                s.path = counter_open(alice, "task-clock:u", "a{sv}", 0);
                run_sampler(&s);
                atomic_store(&fault->realtime_usec, jumps[i]);
                run_ticks(&s);
                await(hold_is(root, waiting, "ended"));
                g_assert_cmpint(g_get_monotonic_time() - asked, >=, wait);
                g_assert_true(client_reads(root, waiting, HOLD, "Result", "timed-out"));
                await(hold_is(root, hold, "ended"));
                g_assert_cmpint(g_get_monotonic_time() - asked, >=, lifetime);
                g_assert_true(client_reads(root, hold, HOLD, "Result", "expired"));
                atomic_store(&fault->realtime_usec, 0);
                close_fd(lease);
                close_fd(s.fd);
                g_free(s.path);
        }
}

/* ---- no descriptor left ---- */

/* Of the user: root may not, without CAP_SYS_RESOURCE. */
static void limit_set(rlim_t soft) {
        g_autofree char *command =
                g_strdup_printf("as perfalloc prlimit --pid %d --nofile=%" PRIu64 ":",
                                (int) service, (uint64_t) soft);

        rig(command, NULL);
}

/* Counters take all that there is for them; who then sends descriptors is answered, and so is
 * everybody else: libsystemd would leave the bus if it could not take them in. */
static void test_no_descriptor_left(const void *data) {
        g_autoptr(Client) hog = client_new("root"), alice = client_new("alice");
        Scene s = { .client = hog, .fd = -1 };
        unsigned n = 0;

        /* What is stored is under way in messages, and counts against the same limit
         * (ETOOMANYREFS). */
        rig("service-stop && service-start PERFALLOC_RIG_STORE=0", NULL);
        service = service_pid();
        limit_set(128);
        trying = "no-descriptor-left";
        trying_way = "counters";
        n_wrong = 0;
        for (; !s.failed; n++) {
                g_assert_cmpuint(n, <, 128);
                run_open_cpu(&s);
        }
        g_assert_cmpuint(n, >, 16);
        for (unsigned i = 0; i < 3; i++) {
                Scene t = { .client = alice, .fd = -1, .target = NULL };

                prepare_target(&t);
                run_open_pidfd(&t);
                g_assert_true(t.failed);
                actor_free(t.target);
        }
        g_assert_cmpint(service_pid(), ==, service);
        for (unsigned i = 0; i < 3; i++) {
                Scene t = { .client = alice, .fd = -1 };

                run_hold(&t); /* may or may not be: messages have limits of their own */
                close_fd(t.fd);
                g_free(t.path);
        }
        g_assert_cmpint(service_pid(), ==, service);
        g_assert_cmpuint(n_wrong, ==, 0);
        g_free(s.path);
        rig("service-stop && service-start", NULL);
        service = service_pid();
}

static void setup(void) {
        int fd = open(FAULT_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(fchmod(fd, 0666), ==, 0);
        g_assert_cmpint(ftruncate(fd, sizeof(Fault)), ==, 0);
        fault = mmap(NULL, sizeof(Fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        g_assert_true(fault != MAP_FAILED);
        close_fd(fd);
        /* A charge that is not given back is missed soon. */
        rig_configure("[Limits]\nHoldsPerUser=2\nCountersPerUser=4\nSamplersPerUser=2\n"
                      "PendingCallsPerUser=4\nSamplerIntervalMinSec=1ms\nIdleExitSec=1h\n");
        service = service_pid();
        root = client_new("root");
        /* what is made at the first use is there */
        for (size_t i = 0; i < G_N_ELEMENTS(operations); i++)
                (void) strike(&operations[i], 0, 0);
        empty = census();
}

int main(int argc, char *argv[]) {
        const char *wish = g_getenv("PERFALLOC_FAULT_STRIDE");
        int failed;

        g_test_init(&argc, &argv, NULL);
        if (wish)
                stride = (unsigned) atoi(wish);
        setup();
        for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
                g_autofree char *name = g_strdup_printf("/fault/%s", operations[i].name);

                g_test_add_data_func(name, &operations[i], test_operation);
        }
        g_test_add_data_func("/fault/a-clock-that-jumps-ends-nothing", NULL, test_clock_jumps);
        g_test_add_data_func("/fault/who-has-no-descriptor-left-still-answers", NULL,
                             test_no_descriptor_left);
        failed = g_test_run();
        g_assert_cmpint(service_pid(), ==, service);
        return failed;
}
