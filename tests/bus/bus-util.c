/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus-util.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BUS_NAME "org.freedesktop.DBus"
#define BUS      BUS_NAME, "/org/freedesktop/DBus", BUS_NAME

volatile uint64_t watched[8];

static void check(int r, const char *what) {
        if (r < 0)
                g_error("%s: %s", what, g_strerror(-r));
}

static const struct passwd *user_find(const char *user) {
        const struct passwd *pw = getpwnam(user);

        if (!pw)
                g_error("there is no user %s: these tests run in tests/rig/fast", user);
        return pw;
}

uid_t user_id(const char *user) {
        return user_find(user)->pw_uid;
}

/* ---- clients ---- */

/* The bus asks the kernel who we are once, when the connection is made. */
static void become(const struct passwd *pw) {
        if (initgroups(pw->pw_name, pw->pw_gid) < 0 || setegid(pw->pw_gid) < 0 ||
            seteuid(pw->pw_uid) < 0)
                g_error("cannot be %s: %s", pw->pw_name, g_strerror(errno));
}

static void become_root(void) {
        if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
                g_error("cannot be root again: %s", g_strerror(errno));
        /* or our files in /proc would be root's alone, and we nobody's target */
        (void) prctl(PR_SET_DUMPABLE, 1);
}

Client *client_new(const char *user) {
        Client *c = g_new0(Client, 1);
        const struct passwd *pw = user_find(user);
        bool other = geteuid() == 0 && pw->pw_uid != 0;
        const char *name;
        int r;

        if (other)
                become(pw);
        r = sd_bus_open_system(&c->bus);
        if (r >= 0) /* the credentials are sent with the first messages */
                r = sd_bus_get_unique_name(c->bus, &name);
        if (other)
                become_root();
        check(r, "no system bus");
        c->name = g_strdup(name);
        c->inbox = g_queue_new();
        return c;
}

static void message_free(void *m) {
        sd_bus_message_unref(m);
}

void client_free(Client *c) {
        if (!c)
                return;
        g_queue_free_full(c->inbox, message_free);
        sd_bus_flush_close_unref(c->bus);
        g_free(c->name);
        g_free(c->refusal);
        g_free(c);
}

sd_bus_message *client_message(Client *c, const char *path, const char *interface,
                               const char *member) {
        sd_bus_message *m;

        check(sd_bus_message_new_method_call(c->bus, &m, PERFALLOC_BUS_NAME, path, interface,
                                             member),
              member);
        return m;
}

static sd_bus_message *client_build(Client *c, const char *path, const char *interface,
                                    const char *member, const char *types, va_list ap) {
        sd_bus_message *m = client_message(c, path, interface, member);

        if (types)
                check(sd_bus_message_appendv(m, types, ap), member);
        return m;
}

sd_bus_message *client_call_message(Client *c, sd_bus_message *m) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        int r = sd_bus_call(c->bus, m, UINT64_MAX, &error, &reply);

        if (r < 0)
                g_error("%s: %s: %s", sd_bus_message_get_member(m), error.name ?: g_strerror(-r),
                        error.message ?: "");
        return reply;
}

void client_refused_message(Client *c, const char *name, sd_bus_message *m) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;

        if (sd_bus_call(c->bus, m, UINT64_MAX, &error, NULL) >= 0)
                g_error("%s was not refused; it should have been %s", sd_bus_message_get_member(m),
                        name);
        if (g_strcmp0(error.name, name) != 0)
                g_error("%s was refused as %s, not as %s: %s", sd_bus_message_get_member(m),
                        error.name, name, error.message);
        g_free(c->refusal);
        c->refusal = g_strdup(error.message);
}

sd_bus_message *client_call(Client *c, const char *path, const char *interface, const char *member,
                            const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        va_start(ap, types);
        m = client_build(c, path, interface, member, types, ap);
        va_end(ap);
        return client_call_message(c, m);
}

void client_refused(Client *c, const char *error, const char *path, const char *interface,
                    const char *member, const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        va_start(ap, types);
        m = client_build(c, path, interface, member, types, ap);
        va_end(ap);
        client_refused_message(c, error, m);
}

uint64_t client_send(Client *c, const char *path, const char *interface, const char *member,
                     const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        uint64_t cookie;
        va_list ap;

        va_start(ap, types);
        m = client_build(c, path, interface, member, types, ap);
        va_end(ap);
        check(sd_bus_send(c->bus, m, &cookie), member);
        check(sd_bus_flush(c->bus), member);
        return cookie;
}

/* Reads what there is, and waits for it up to the time. */
static sd_bus_message *client_read(Client *c, uint64_t usec) {
        gint64 end = g_get_monotonic_time() + (gint64) usec;

        for (;;) {
                sd_bus_message *m = NULL;
                gint64 left = end - g_get_monotonic_time();
                int r = sd_bus_process(c->bus, &m);

                check(r, "the bus");
                if (m)
                        return m;
                if (r == 0 && left <= 0)
                        return NULL;
                if (r == 0)
                        check(sd_bus_wait(c->bus, (uint64_t) left), "the bus");
        }
}

sd_bus_message *client_next(Client *c, uint64_t usec) {
        return g_queue_pop_head(c->inbox) ?: client_read(c, usec);
}

static bool message_answers(sd_bus_message *m, uint64_t cookie) {
        uint64_t replied = 0;

        return sd_bus_message_get_reply_cookie(m, &replied) >= 0 && replied == cookie;
}

static GList *client_find_answer(Client *c, uint64_t cookie) {
        for (GList *l = c->inbox->head; l; l = l->next)
                if (message_answers(l->data, cookie))
                        return l;
        return NULL;
}

bool client_has_answer(Client *c, uint64_t cookie) {
        sd_bus_message *m;

        while ((m = client_read(c, 0)))
                g_queue_push_tail(c->inbox, m);
        return client_find_answer(c, cookie);
}

sd_bus_message *client_receive(Client *c, uint64_t cookie) {
        sd_bus_message *m;
        GList *found;

        await(client_has_answer(c, cookie));
        found = client_find_answer(c, cookie);
        m = found->data;
        g_queue_delete_link(c->inbox, found);
        return m;
}

void client_watch(Client *c) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;

        check(sd_bus_call_method(c->bus, BUS, "AddMatch", &error, NULL, "s",
                                 "type='signal',sender='" PERFALLOC_BUS_NAME "'"),
              "AddMatch");
}

static sd_bus_message *client_get_variant(Client *c, const char *path, const char *interface,
                                          const char *property, const char *type) {
        sd_bus_message *reply = client_call(c, path, "org.freedesktop.DBus.Properties", "Get", "ss",
                                            interface, property);

        check(sd_bus_message_enter_container(reply, 'v', type), property);
        return reply;
}

char *client_get(Client *c, const char *path, const char *interface, const char *property) {
        g_autoptr(sd_bus_message) reply = client_get_variant(c, path, interface, property, "s");
        const char *value;

        check(sd_bus_message_read_basic(reply, 's', &value), property);
        return g_strdup(value);
}

uint64_t client_get_number(Client *c, const char *path, const char *interface, const char *property,
                           char type) {
        g_autoptr(sd_bus_message) reply =
                client_get_variant(c, path, interface, property, (char[]){ type, '\0' });
        union {
                uint32_t u;
                uint64_t t;
                int b;
        } value = {};

        check(sd_bus_message_read_basic(reply, type, &value), property);
        return type == 't' ? value.t : type == 'u' ? value.u : value.b != 0;
}

bool client_reads(Client *c, const char *path, const char *interface, const char *property,
                  const char *value) {
        g_autofree char *is = client_get(c, path, interface, property);

        return strcmp(is, value) == 0;
}

bool client_finds(Client *c, const char *path, const char *interface) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call_method(c->bus, PERFALLOC_BUS_NAME, path,
                                   "org.freedesktop.DBus.Properties", "GetAll", &error, NULL, "s",
                                   interface);

        if (r < 0)
                g_assert_cmpstr(error.name, ==, SD_BUS_ERROR_UNKNOWN_OBJECT);
        return r >= 0;
}

char *properties_read(sd_bus_message *m, const char *property) {
        const char *name, *value = NULL;

        check(sd_bus_message_enter_container(m, 'a', "{sv}"), property);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                check(sd_bus_message_read(m, "s", &name), property);
                if (strcmp(name, property) == 0)
                        check(sd_bus_message_read(m, "v", "s", &value), property);
                else
                        check(sd_bus_message_skip(m, "v"), property);
                check(sd_bus_message_exit_container(m), property);
        }
        check(sd_bus_message_exit_container(m), property);
        return g_strdup(value);
}

char *object_read(sd_bus_message *m, const char *interface, const char *property) {
        char *value = NULL;
        const char *name;

        check(sd_bus_message_enter_container(m, 'a', "{sa{sv}}"), property);
        while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
                check(sd_bus_message_read(m, "s", &name), property);
                if (strcmp(name, interface) == 0)
                        value = properties_read(m, property);
                else
                        check(sd_bus_message_skip(m, "a{sv}"), property);
                check(sd_bus_message_exit_container(m), property);
        }
        check(sd_bus_message_exit_container(m), property);
        return value;
}

unsigned client_count(Client *c, const char *kind) {
        g_autoptr(sd_bus_message) reply =
                client_call(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", NULL);
        g_autofree char *prefix = g_strdup_printf(PERFALLOC_OBJECT_PATH "/%s/", kind);
        const char *path;
        unsigned n = 0;

        check(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), "objects");
        while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                check(sd_bus_message_read_basic(reply, 'o', &path), "objects");
                n += g_str_has_prefix(path, prefix);
                check(sd_bus_message_skip(reply, "a{sa{sv}}"), "objects");
                check(sd_bus_message_exit_container(reply), "objects");
        }
        return n;
}

/* ---- holds ---- */

char *hold_take(Client *c, int *ret_lease, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "Hold"), reply = NULL;
        const char *path;
        va_list ap;
        int lease;

        check(sd_bus_message_append_basic(m, 's', "a test"), "Hold");
        va_start(ap, types);
        check(sd_bus_message_appendv(m, types, ap), "Hold");
        va_end(ap);
        reply = client_call_message(c, m);
        check(sd_bus_message_read(reply, "oh", &path, &lease), "Hold");
        *ret_lease = fcntl(lease, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(*ret_lease, >=, 0);
        return g_strdup(path);
}

char *hold_take_unattended(Client *c, uint64_t lifetime_usec, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "HoldUnattended"), reply = NULL;
        const char *path;
        va_list ap;

        check(sd_bus_message_append(m, "st", "a test", lifetime_usec), "HoldUnattended");
        va_start(ap, types);
        check(sd_bus_message_appendv(m, types, ap), "HoldUnattended");
        va_end(ap);
        reply = client_call_message(c, m);
        check(sd_bus_message_read(reply, "o", &path), "HoldUnattended");
        return g_strdup(path);
}

bool hold_wait(Client *c, const char *path) {
        g_autoptr(sd_bus_message) reply = client_call(c, path, HOLD, "Wait", NULL);
        int confirmed;

        check(sd_bus_message_read(reply, "bt", &confirmed, NULL), "Wait");
        return confirmed;
}

void hold_release(Client *c, const char *path) {
        sd_bus_message_unref(client_call(c, path, HOLD, "Release", NULL));
}

bool hold_is(Client *c, const char *path, const char *state) {
        return client_reads(c, path, HOLD, "State", state);
}

bool hold_names(Client *c, const char *path, pid_t pid) {
        g_autoptr(sd_bus_message) reply = client_get_variant(c, path, HOLD, "Obstacles", "a(us)");
        uint32_t is;

        check(sd_bus_message_enter_container(reply, 'a', "(us)"), "Obstacles");
        while (sd_bus_message_read(reply, "(us)", &is, NULL) > 0)
                if ((pid_t) is == pid)
                        return true;
        return false;
}

/* ---- counters ---- */

void measured_clear(Measured *m) {
        g_clear_pointer(&m->quality, g_free);
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

        check(sd_bus_message_enter_container(reply, 'a', "o"), "OpenCounters");
        check(sd_bus_message_read_basic(reply, 'o', &path), "OpenCounters");
        return g_strdup(path);
}

char *counter_open(Client *c, const char *event, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");
        va_list ap;

        check(sd_bus_message_append(m, "as", 1, event), "OpenCounters");
        va_start(ap, types);
        check(sd_bus_message_appendv(m, types, ap), "OpenCounters");
        va_end(ap);
        return counter_open_read(c, m);
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

        check(sd_bus_message_read(reply, "ttts", &m.value, &m.enabled, &m.running, &quality),
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

/* ---- processes ---- */

static void act(const char *user, int fd, int (*play)(int fd, const void *data), const void *data) {
        const struct passwd *pw = user_find(user);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* The leases and connections of the test are not the actor's. */
        (void) dup2(fd, 3);
        (void) close_range(4, ~0U, 0);
        if (initgroups(user, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
                _exit(125);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_DUMPABLE, 1); /* as after an exec */
        _exit(play(3, data));
}

Actor *actor_new(const char *user, int (*play)(int fd, const void *data), const void *data) {
        Actor *a = g_new0(Actor, 1);
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                g_error("socketpair: %s", g_strerror(errno));
        a->pid = fork();
        if (a->pid < 0)
                g_error("fork: %s", g_strerror(errno));
        if (a->pid == 0)
                act(user, fds[1], play, data);
        (void) close(fds[1]);
        a->fd = fds[0];
        return a;
}

char actor_hear(Actor *a) {
        struct pollfd p = { .fd = a->fd, .events = POLLIN };
        char what;

        if (poll(&p, 1, AWAIT_SEC * 1000) != 1 || read(a->fd, &what, 1) != 1)
                g_error("the process %d says nothing", a->pid);
        return what;
}

void actor_tell(Actor *a, char what) {
        g_assert_cmpint(send(a->fd, &what, 1, MSG_NOSIGNAL), ==, 1);
}

int actor_join(Actor *a) {
        int status, r = 0;

        a->fd = close_fd(a->fd);
        await((r = waitpid(a->pid, &status, WNOHANG)) != 0);
        g_assert_cmpint(r, ==, a->pid);
        a->pid = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void actor_free(Actor *a) {
        if (!a)
                return;
        close_fd(a->fd);
        if (a->pid > 0) {
                (void) kill(a->pid, SIGKILL);
                (void) waitpid(a->pid, NULL, 0);
        }
        g_free(a);
}

void act_say(int fd, char what) {
        if (send(fd, &what, 1, MSG_NOSIGNAL) != 1)
                _exit(124);
}

char act_hear(int fd) {
        char what;

        return read(fd, &what, 1) == 1 ? what : '\0';
}

/* ---- the rig ---- */

void rig(const char *command, const char *input) {
        FILE *f = popen(command, "we");

        if (!f)
                g_error("%s: %s", command, g_strerror(errno));
        if (input)
                (void) fputs(input, f);
        if (pclose(f) != 0)
                g_error("%s failed", command);
}

void rig_configure(const char *text) {
        g_autoptr(GError) error = NULL;

        (void) g_file_set_contents("/etc/perfalloc/perfallocd.conf", text, -1, &error);
        g_assert_no_error(error);
        g_assert_cmpint(chmod("/etc/perfalloc/perfallocd.conf", 0644), ==, 0);
        rig("service-stop && service-start", NULL);
}

pid_t service_pid(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(sd_bus_message) reply = NULL;
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        uint32_t pid;

        check(sd_bus_call_method(root->bus, BUS, "GetConnectionUnixProcessID", &error, &reply, "s",
                                 PERFALLOC_BUS_NAME),
              "the service does not run");
        check(sd_bus_message_read_basic(reply, 'u', &pid), "pid");
        return (pid_t) pid;
}

/* An event loop makes its timers when it first needs one of a clock, and keeps them. */
static bool is_timer(int dir, const char *name) {
        static const char timer[] = "anon_inode:[timerfd]";
        char target[sizeof(timer)];

        return readlinkat(dir, name, target, sizeof(target)) == sizeof(timer) - 1 &&
               memcmp(target, timer, sizeof(timer) - 1) == 0;
}

unsigned service_descriptors(void) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int) service_pid());
        const struct dirent *entry;
        DIR *dir = opendir(path);
        unsigned n = 0;

        if (!dir)
                g_error("%s: %s", path, g_strerror(errno));
        while ((entry = readdir(dir)))
                n += entry->d_name[0] != '.' && !is_timer(dirfd(dir), entry->d_name);
        (void) closedir(dir);
        return n;
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
