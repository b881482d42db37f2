/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define GROUPS_MAX 32
#define BUS_NAME   "org.freedesktop.DBus"
#define BUS        BUS_NAME, "/org/freedesktop/DBus", BUS_NAME

void bus_check(int r, const char *what) {
        if (r < 0)
                g_error("%s: %s", what, g_strerror(-r));
}

const struct passwd *user_find(const char *user) {
        const struct passwd *pw = getpwnam(user);

        if (!pw)
                g_error("there is no user %s: these tests run in tests/rig/fast", user);
        return pw;
}

uid_t user_id(const char *user) {
        return user_find(user)->pw_uid;
}

typedef struct AsUser {
        const struct passwd *pw;
        void (*f)(Client *c);
        Client *client;
} AsUser;

static void *as_user_run(void *userdata) {
        const AsUser *as = userdata;
        const struct passwd *pw = as->pw;
        gid_t groups[GROUPS_MAX];
        int n = GROUPS_MAX;

        if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0 ||
            syscall(SYS_setgroups, n, groups) < 0 ||
            syscall(SYS_setresgid, pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
            syscall(SYS_setresuid, pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
                g_error("cannot be %s: %s", pw->pw_name, g_strerror(errno));
        as->f(as->client);
        return NULL;
}

/* In a thread, which the system calls concern alone: the service looks at the capabilities of the
 * process, and a client of root's may be another one here. */
static void as_user(const struct passwd *pw, void (*f)(Client *c), Client *c) {
        AsUser as = { pw, f, c };

        if (geteuid() != 0 || pw->pw_uid == 0) {
                f(c);
                return;
        }
        g_thread_join(g_thread_new("user", as_user_run, &as));
        /* otherwise our files in /proc would be root's, and no user could count us */
        (void) prctl(PR_SET_DUMPABLE, 1);
}

/* The bus asks the kernel who we are once, when the connection is made. */
static void client_connect(Client *c) {
        const char *name = NULL;
        int r = sd_bus_open_system(&c->bus);

        if (r >= 0) /* the credentials are sent with the first messages */
                r = sd_bus_get_unique_name(c->bus, &name);
        bus_check(r, "no system bus");
        c->name = g_strdup(name);
}

Client *client_new(const char *user) {
        Client *c = g_new0(Client, 1);
        const struct passwd *pw = user_find(user);

        c->uid = pw->pw_uid;
        as_user(pw, client_connect, c);
        c->inbox = g_queue_new();
        c->proofs = g_array_new(FALSE, FALSE, sizeof(int));
        return c;
}

void client_greet(Client *c) {
        (void) client_get_number(c, MANAGER, "AttrSize", 'u');
}

static pid_t thread_process(pid_t tid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/status", (int) tid), *text = NULL;
        const char *field = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL))
                field = strstr(text, "\nTgid:");
        return field ? atoi(field + strlen("\nTgid:")) : tid;
}

static void proof_open(Client *c) {
        g_autofree char *path = g_strdup_printf("/proc/%d/maps", (int) c->proven);
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0)
                g_array_append_val(c->proofs, fd);
}

int client_proof(Client *c, pid_t pid) {
        const guint before = c->proofs->len;

        c->proven = thread_process(pid);
        as_user(getpwuid(c->uid), proof_open, c);
        return c->proofs->len > before ? g_array_index(c->proofs, int, before) : -1;
}

static void message_free(void *m) {
        sd_bus_message_unref(m);
}

void client_free(Client *c) {
        if (!c)
                return;
        g_queue_free_full(c->inbox, message_free);
        sd_bus_flush_close_unref(c->bus);
        for (guint i = 0; i < c->proofs->len; i++)
                close_fd(g_array_index(c->proofs, int, i));
        g_array_free(c->proofs, TRUE);
        g_free(c->name);
        g_free(c->refusal);
        g_free(c);
}

sd_bus_message *client_message(Client *c, const char *path, const char *interface,
                               const char *member) {
        sd_bus_message *m;

        bus_check(sd_bus_message_new_method_call(c->bus, &m, PERFALLOC_BUS_NAME, path, interface,
                                                 member),
                  member);
        return m;
}

static sd_bus_message *client_build(Client *c, const char *path, const char *interface,
                                    const char *member, const char *types, va_list ap) {
        sd_bus_message *m = client_message(c, path, interface, member);

        if (types)
                bus_check(sd_bus_message_appendv(m, types, ap), member);
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

uint64_t client_send_message(Client *c, sd_bus_message *m) {
        const char *member = sd_bus_message_get_member(m);
        uint64_t cookie;

        bus_check(sd_bus_send(c->bus, m, &cookie), member);
        bus_check(sd_bus_flush(c->bus), member);
        sd_bus_message_unref(m);
        return cookie;
}

uint64_t client_send(Client *c, const char *path, const char *interface, const char *member,
                     const char *types, ...) {
        sd_bus_message *m;
        va_list ap;

        va_start(ap, types);
        m = client_build(c, path, interface, member, types, ap);
        va_end(ap);
        return client_send_message(c, m);
}

/* Reads what there is, and waits for it up to the time. */
static sd_bus_message *client_read(Client *c, uint64_t usec) {
        gint64 end = g_get_monotonic_time() + (gint64) usec;

        for (;;) {
                sd_bus_message *m = NULL;
                gint64 left = end - g_get_monotonic_time();
                int r = sd_bus_process(c->bus, &m);

                bus_check(r, "the bus");
                if (m)
                        return m;
                if (r == 0 && left <= 0)
                        return NULL;
                if (r == 0)
                        bus_check(sd_bus_wait(c->bus, (uint64_t) left), "the bus");
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

        bus_check(sd_bus_call_method(c->bus, BUS, "AddMatch", &error, NULL, "s",
                                     "type='signal',sender='" PERFALLOC_BUS_NAME "'"),
                  "AddMatch");
}

sd_bus_message *client_get_variant(Client *c, const char *path, const char *interface,
                                   const char *property, const char *type) {
        sd_bus_message *reply = client_call(c, path, "org.freedesktop.DBus.Properties", "Get", "ss",
                                            interface, property);

        bus_check(sd_bus_message_enter_container(reply, 'v', type), property);
        return reply;
}

char *client_get(Client *c, const char *path, const char *interface, const char *property) {
        g_autoptr(sd_bus_message) reply = client_get_variant(c, path, interface, property, "s");
        const char *value;

        bus_check(sd_bus_message_read_basic(reply, 's', &value), property);
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

        bus_check(sd_bus_message_read_basic(reply, type, &value), property);
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

        bus_check(sd_bus_message_enter_container(m, 'a', "{sv}"), property);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                bus_check(sd_bus_message_read(m, "s", &name), property);
                if (strcmp(name, property) == 0)
                        bus_check(sd_bus_message_read(m, "v", "s", &value), property);
                else
                        bus_check(sd_bus_message_skip(m, "v"), property);
                bus_check(sd_bus_message_exit_container(m), property);
        }
        bus_check(sd_bus_message_exit_container(m), property);
        return g_strdup(value);
}

char *object_read(sd_bus_message *m, const char *interface, const char *property) {
        char *value = NULL;
        const char *name;

        bus_check(sd_bus_message_enter_container(m, 'a', "{sa{sv}}"), property);
        while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
                bus_check(sd_bus_message_read(m, "s", &name), property);
                if (strcmp(name, interface) == 0)
                        value = properties_read(m, property);
                else
                        bus_check(sd_bus_message_skip(m, "a{sv}"), property);
                bus_check(sd_bus_message_exit_container(m), property);
        }
        bus_check(sd_bus_message_exit_container(m), property);
        return value;
}

sd_bus_message *client_objects(Client *c) {
        return client_call(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                           "GetManagedObjects", NULL);
}

bool objects_next(sd_bus_message *m, const char **path) {
        int r;

        if (*path)
                bus_check(sd_bus_message_exit_container(m), "objects");
        else
                bus_check(sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}"), "objects");
        r = sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}");
        bus_check(r, "objects");
        if (r > 0)
                bus_check(sd_bus_message_read_basic(m, 'o', path), "objects");
        return r > 0;
}

unsigned client_count(Client *c, const char *kind) {
        g_autoptr(sd_bus_message) objects = client_objects(c);
        g_autofree char *prefix = g_strdup_printf(PERFALLOC_OBJECT_PATH "/%s/", kind);
        const char *path = NULL;
        unsigned n = 0;

        while (objects_next(objects, &path)) {
                n += g_str_has_prefix(path, prefix);
                bus_check(sd_bus_message_skip(objects, "a{sa{sv}}"), "objects");
        }
        return n;
}

pid_t bus_pid(Client *c) {
        g_autoptr(sd_bus_message) reply = NULL;
        uint32_t pid;

        bus_check(sd_bus_call_method(c->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                     "org.freedesktop.DBus", "GetConnectionUnixProcessID", NULL,
                                     &reply, "s", "org.freedesktop.DBus"),
                  "GetConnectionUnixProcessID");
        bus_check(sd_bus_message_read(reply, "u", &pid), "GetConnectionUnixProcessID");
        return (pid_t) pid;
}
