/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "guest-util.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* ---- events ---- */

/* Every 4 ms the first flexible event moves behind the others. Our group may have come before all
 * that exist, and is on for as many rotations. */
#define SCHEDULER_USEC (4000 * (2 * COUNTERS + 1))

int event_open(const EventSpec *e, int leader) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_HARDWARE,
                .size = sizeof(attr),
                .config = e->kind == CYCLES ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_HW_INSTRUCTIONS,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                .disabled = e->stopped,
                .pinned =
                        e->pinned && leader<0, .exclude_kernel = e->user, .exclude_hv = e->user,
                                            .sample_period = e->period, .sample_type = e->period> 0
                                ? PERF_SAMPLE_IP
                                : 0,
        };
        int fd = (int) syscall(SYS_perf_event_open, &attr, e->pid, e->cpu, leader,
                               PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

bool event_read(int fd, EventTimes *ret) {
        ssize_t n = read(fd, ret, sizeof(*ret));

        g_assert_true(n == 0 || n == sizeof(*ret));
        return n > 0;
}

/* The group must be on the PMU without a pause during several rotations of the other events. */
static bool kinds_fit(int cpu, const EventKind *kinds, unsigned n) {
        int fds[COUNTERS + 1];
        EventTimes times;
        bool fits;

        for (unsigned i = 0; i < n; i++) {
                EventSpec e = { .kind = kinds[i], .pid = -1, .cpu = cpu, .stopped = i == 0 };

                fds[i] = event_open(&e, i > 0 ? fds[0] : -1);
                g_assert_cmpint(fds[i], >=, 0);
        }
        g_assert_cmpint(ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        g_usleep(SCHEDULER_USEC);
        /* the last member: the group is on as a whole or not at all */
        g_assert_true(event_read(fds[n - 1], &times));
        fits = times.enabled > 0 && times.running == times.enabled;
        while (n > 0)
                close_fd(fds[--n]);
        return fits;
}

bool group_fits(int cpu, unsigned n) {
        EventKind kinds[COUNTERS];

        for (unsigned i = 0; i < n; i++)
                kinds[i] = CYCLES;
        return kinds_fit(cpu, kinds, n);
}

bool shape_fits(int cpu, unsigned general, bool cycles) {
        EventKind kinds[COUNTERS];

        for (unsigned i = 0; i < general; i++)
                kinds[i] = INSTRUCTIONS;
        if (cycles)
                kinds[general++] = CYCLES;
        return general == 0 || kinds_fit(cpu, kinds, general);
}

unsigned free_on(int cpu) {
        unsigned n = COUNTERS;

        while (n > 0 && !group_fits(cpu, n))
                n--;
        return n;
}

/* ---- work ---- */

void burn(uint64_t instructions) {
        uint64_t rounds = instructions / 2;

        __asm__ volatile("1: subs %0, %0, #1\n"
                         "   b.ne 1b\n"
                         : "+r"(rounds)
                         :
                         : "cc");
}

void burn_aside(void) {
        burn(1000);
        __asm__ volatile("yield");
}

static int work(int fd, const void *data) {
        char millions;

        while ((millions = act_hear(fd)) != '\0') {
                burn((uint64_t) millions * 1000000);
                act_say(fd, '.');
        }
        return 0;
}

Actor *worker_new(const char *user) {
        return actor_new(user, work, NULL);
}

void worker_burn(Actor *a, unsigned millions) {
        actor_tell(a, (char) millions);
        g_assert_cmpint(actor_hear(a), ==, '.');
}

static void stay_on(int cpu) {
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
                _exit(120);
}

static int spin(int fd, const void *data) {
        stay_on(*(const int *) data);
        act_say(fd, '.');
        for (;;)
                burn_aside();
        return 0;
}

Actor *spinner_new(const char *user, int cpu) {
        Actor *a = actor_new(user, spin, &cpu);

        g_assert_cmpint(actor_hear(a), ==, '.');
        return a;
}

/* ---- strangers ---- */

#define STRANGER_MAX (2 * (COUNTERS + 3))

typedef struct StrangerEvent {
        int fd;
        void *ring;
        EventTimes last;
} StrangerEvent;

static void stranger_open(const Stranger *s, StrangerEvent *e, int cpu) {
        EventSpec spec = {
                .kind = s->kind,
                .pid = s->own ? 0 : -1,
                .cpu = s->own ? -1 : cpu,
                .pinned = s->pinned,
                .period = s->period,
        };

        e->fd = event_open(&spec, -1);
        if (e->fd < 0)
                _exit(121);
        if (s->period > 0) {
                e->ring = mmap(NULL, 2 * (size_t) sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                               MAP_SHARED, e->fd, 0);
                if (e->ring == MAP_FAILED)
                        _exit(122);
        }
}

/* '.': on the PMU since the last time, '!': all the time, 'x': not at all. */
static char stranger_look(StrangerEvent *e) {
        EventTimes now;
        char is = 'x';

        if (read(e->fd, &now, sizeof(now)) == sizeof(now) && now.running > e->last.running &&
            now.value > e->last.value)
                is = now.running == now.enabled ? '!' : '.';
        e->last = now;
        return is;
}

/* No other process runs on that CPU then. */
static void never_rest(int cpu) {
        struct sched_param param = { .sched_priority = 1 };

        stay_on(cpu);
        if (sched_setscheduler(0, SCHED_FIFO, &param) < 0)
                _exit(123);
}

static int be_stranger(int fd, const void *data) {
        const Stranger *s = data;
        struct pollfd p = { .fd = fd, .events = POLLIN };
        StrangerEvent events[STRANGER_MAX] = {};
        unsigned n = 0;

        if (s->own)
                never_rest(s->cpu);
        for (int cpu = 0; cpu < (int) n_cpus(); cpu++)
                for (unsigned i = 0; (s->cpu < 0 || s->cpu == cpu) && i < s->n; i++)
                        stranger_open(s, &events[n++], cpu);
        act_say(fd, '.');
        for (;;) {
                while (s->own && poll(&p, 1, 0) == 0)
                        burn_aside();
                if (act_hear(fd) == '\0')
                        return 0;
                for (unsigned i = 0; i < n; i++)
                        act_say(fd, stranger_look(&events[i]));
                act_say(fd, '\n');
        }
}

/* One that cannot be moved, a kernel thread of one CPU, gets more real time than never_rest() has:
 * behind ksoftirqd the whole kernel would wait for RCU. */
static void thread_keep_off(pid_t tid, int cpu) {
        const struct sched_param raised = { .sched_priority = 2 }, plain = {};
        struct sched_param now = {};
        cpu_set_t set;

        memset(&set, 0xff, sizeof(set));
        if (cpu >= 0)
                CPU_CLR((unsigned) cpu, &set);
        if (sched_setaffinity(tid, sizeof(set), &set) == 0 || errno != EINVAL)
                return;
        (void) sched_getparam(tid, &now);
        if (cpu >= 0 && sched_getscheduler(tid) == SCHED_OTHER)
                (void) sched_setscheduler(tid, SCHED_FIFO, &raised);
        else if (cpu < 0 && now.sched_priority == raised.sched_priority)
                (void) sched_setscheduler(tid, SCHED_OTHER, &plain);
}

void threads_keep_off(int cpu) {
        g_autoptr(GDir) processes = g_dir_open("/proc", 0, NULL);
        const char *pid, *tid;

        while ((pid = g_dir_read_name(processes))) {
                g_autofree char *path = g_build_filename("/proc", pid, "task", NULL);
                g_autoptr(GDir) threads = g_dir_open(path, 0, NULL);

                while (threads && (tid = g_dir_read_name(threads)))
                        thread_keep_off(atoi(tid), cpu);
        }
}

static void sysctl_set(const char *path, const char *value) {
        g_autoptr(GError) error = NULL;

        (void) g_file_set_contents_full(path, value, -1, G_FILE_SET_CONTENTS_NONE, 0644, &error);
        g_assert_no_error(error);
}

void cpus_can_be_taken(bool can) {
        sysctl_set("/proc/sys/kernel/sched_rt_runtime_us", can ? "-1" : "950000");
}

/* The service keeps the privilege that the setting demands when it starts. */
void strangers_may_count(bool may) {
        char *argv[] = { (char *) "systemctl", (char *) "stop", (char *) "perfallocd.service",
                         NULL };
        g_autoptr(GError) error = NULL;

        sysctl_set("/proc/sys/kernel/perf_event_paranoid", may ? "-1" : "3");
        (void) g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                            &error);
        g_assert_no_error(error);
}

Actor *stranger_of(const char *user, const Stranger *s) {
        Actor *a = actor_new(user, be_stranger, s);

        g_assert_cmpint(actor_hear(a), ==, '.');
        return a;
}

Actor *stranger_new(const Stranger *s) {
        return stranger_of("root", s);
}

void stranger_assert_alive(Actor *a, bool whole) {
        g_autoptr(GString) said = g_string_new(NULL);
        char c;

        actor_tell(a, '?');
        while ((c = actor_hear(a)) != '\n')
                g_string_append_c(said, c);
        g_assert_cmpuint(said->len, >, 0);
        if (strchr(said->str, 'x') || (whole && strchr(said->str, '.')))
                g_error("the stranger's events are not what they were: %s", said->str);
}

/* ---- the service ---- */

void counters_open_group(Client *c, const char *const *events, size_t n, char **ret,
                         const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters"), reply = NULL;
        const char *path;
        va_list ap;

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (size_t i = 0; i < n; i++)
                g_assert_cmpint(sd_bus_message_append_basic(m, 's', events[i]), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        va_start(ap, types);
        g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
        va_end(ap);
        reply = client_call_message(c, m);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        for (size_t i = 0; i < n; i++) {
                g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
                ret[i] = g_strdup(path);
        }
}

void paths_free(char **paths, size_t n) {
        while (n > 0)
                g_clear_pointer(&paths[--n], g_free);
}

char *cycles_monitor(Client *c, uint32_t priority) {
        return counter_open(c, "cycles", "a{sv}", 3, "scope", "s", "cpu", "role", "s", "monitor",
                            "priority", "u", priority);
}

static bool service_has_changed(Client *c, pid_t was) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_autoptr(sd_bus_message) reply = NULL;
        uint32_t pid = 0;

        return sd_bus_call_method(c->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                  "org.freedesktop.DBus", "GetConnectionUnixProcessID", &error,
                                  &reply, "s", PERFALLOC_BUS_NAME) >= 0 &&
               sd_bus_message_read_basic(reply, 'u', &pid) > 0 && (pid_t) pid != was;
}

void service_kill(Client *c) {
        g_autofree char *said = g_build_filename(g_getenv("PERFALLOC_RIG_DIR"), "killed", NULL);
        pid_t pid = service_pid();

        g_assert_true(g_file_set_contents(said, "", 0, NULL));
        g_assert_no_errno(kill(pid, SIGKILL));
        await(service_has_changed(c, pid));
}

int counter_fd(Client *c, const char *path) {
        g_autoptr(sd_bus_message) reply = client_call(c, path, COUNTER, "GetFds", NULL);
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "ah", 1, &fd), >, 0);
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(fd, >=, 0);
        return fd;
}

unsigned client_probe(Client *c, int cpu) {
        g_autoptr(sd_bus_message) reply = client_call(c, PMU_PATH, PMU_FACE, "Probe", NULL);
        uint32_t is, n;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(uu)"), >, 0);
        while (sd_bus_message_read(reply, "(uu)", &is, &n) > 0)
                if ((int) is == cpu)
                        return n;
        g_error("Probe tells nothing about CPU %d", cpu);
}
