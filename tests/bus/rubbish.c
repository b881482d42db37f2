/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rubbish-value.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 8u /* received ones that are kept, to be sent to the service again */
#define BYTES_MAX       (8u << 20) /* in long words; with a message of more than 32 MB likewise */
#define MEMORY_MAX      256u /* paths and words that are remembered; older ones are forgotten */

typedef struct Method {
        const char *interface, *kind; /* kind: of the objects that have it */
        const GDBusMethodInfo *info;
} Method;

static const char *const files[] = { "Manager", "Hold", "Counter", "Sampler", "Monitor", "Pmu" };

/* What every object has. */
static const char standard[] =
        "<node>"
        " <interface name='org.freedesktop.DBus.Properties'>"
        "  <method name='Get'><arg type='s' direction='in'/><arg type='s' direction='in'/></method>"
        "  <method name='GetAll'><arg type='s' direction='in'/></method>"
        "  <method name='Set'><arg type='s' direction='in'/><arg type='s' direction='in'/>"
        "   <arg type='v' direction='in'/></method>"
        " </interface>"
        " <interface name='org.freedesktop.DBus.ObjectManager'><method name='GetManagedObjects'/>"
        " </interface>"
        " <interface name='org.freedesktop.DBus.Introspectable'><method "
        "name='Introspect'/></interface>"
        " <interface name='org.freedesktop.DBus.Peer'><method name='Ping'/></interface>"
        "</node>";

static void node_read(Rubbish *r, const char *kind, const char *xml) {
        g_autoptr(GError) error = NULL;
        GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(xml, &error);

        g_assert_no_error(error);
        g_ptr_array_add(r->nodes, node);
        for (GDBusInterfaceInfo **i = node->interfaces; *i; i++) {
                g_ptr_array_add(r->names, (*i)->name);
                for (GDBusPropertyInfo **p = (*i)->properties; p && *p; p++)
                        g_ptr_array_add(r->names, (*p)->name);
                for (GDBusMethodInfo **m = (*i)->methods; m && *m; m++)
                        g_array_append_val(r->methods, ((Method){ (*i)->name, kind, *m }));
        }
}

static void file_read(Rubbish *r, const char *name) {
        const char *source = g_getenv("PERFALLOC_SOURCE");
        g_autofree char *directory = source ? g_build_filename(source, "dbus", NULL)
                                            : g_strdup("/usr/share/dbus-1/interfaces");
        g_autofree char *path = g_strdup_printf("%s/org.perfalloc1.%s.xml", directory, name);
        g_autofree char *kind = g_ascii_strdown(name, -1), *xml = NULL;
        g_autoptr(GError) error = NULL;

        (void) g_file_get_contents(path, &xml, NULL, &error);
        g_assert_no_error(error);
        node_read(r, g_intern_string(kind), xml);
}

Rubbish *rubbish_new(void) {
        Rubbish *r = g_new0(Rubbish, 1);

        r->bytes_max = BYTES_MAX;
        r->nodes = g_ptr_array_new_with_free_func((GDestroyNotify) g_dbus_node_info_unref);
        r->methods = g_array_new(FALSE, FALSE, sizeof(Method));
        r->names = g_ptr_array_new();
        r->paths = g_ptr_array_new_with_free_func(g_free);
        r->words = g_ptr_array_new_with_free_func(g_free);
        r->pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
        r->descriptors = g_array_new(FALSE, FALSE, sizeof(int));
        for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
                file_read(r, files[i]);
        node_read(r, "", standard);
        rubbish_learn_process(r, 1);
        rubbish_learn_process(r, getpid());
        return r;
}

void rubbish_free(Rubbish *r) {
        rubbish_forget_descriptors(r);
        g_array_unref(r->descriptors);
        g_array_unref(r->pids);
        g_ptr_array_unref(r->words);
        g_ptr_array_unref(r->paths);
        g_ptr_array_unref(r->names);
        g_array_unref(r->methods);
        g_ptr_array_unref(r->nodes);
        g_free(r);
}

void rubbish_soften(Rubbish *r) {
        r->soft = true;
}

void rubbish_shorten(Rubbish *r, size_t bytes_max) {
        r->bytes_max = bytes_max;
}

void rubbish_learn_process(Rubbish *r, pid_t pid) {
        g_array_append_val(r->pids, pid);
}

void rubbish_forget_descriptors(Rubbish *r) {
        for (unsigned i = 0; i < r->descriptors->len; i++)
                (void) close(g_array_index(r->descriptors, int, i));
        g_array_set_size(r->descriptors, 0);
}

static void remember_descriptor(Rubbish *r, int fd) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

        g_assert_cmpint(copy, >=, 0);
        if (r->descriptors->len < DESCRIPTORS_MAX)
                g_array_append_val(r->descriptors, copy);
        else {
                int *place = &g_array_index(r->descriptors, int, rubbish_below(DESCRIPTORS_MAX));

                (void) close(*place);
                *place = copy;
        }
}

static void remember(GPtrArray *memory, const char *text) {
        if (memory->len < MEMORY_MAX)
                g_ptr_array_add(memory, g_strdup(text));
        else {
                char **place = (char **) &memory->pdata[rubbish_below(MEMORY_MAX)];

                g_free(*place);
                *place = g_strdup(text);
        }
}

void rubbish_learn(Rubbish *r, sd_bus_message *reply, void (*found)(void *userdata, int fd),
                   void *userdata) {
        const char *contents, *text;
        char type;
        int fd;

        while (sd_bus_message_peek_type(reply, &type, &contents) > 0)
                if (strchr("a(ev", type) || type == 'r') {
                        rubbish_check(sd_bus_message_enter_container(reply, type, contents));
                        rubbish_learn(r, reply, found, userdata);
                        rubbish_check(sd_bus_message_exit_container(reply));
                } else if (type == 'h') {
                        rubbish_check(sd_bus_message_read_basic(reply, type, &fd));
                        found(userdata, fd);
                        remember_descriptor(r, fd);
                } else if (type == 'o' || type == 's') {
                        rubbish_check(sd_bus_message_read_basic(reply, type, &text));
                        if (strlen(text) < 256)
                                remember(type == 'o' ? r->paths : r->words, text);
                } else
                        rubbish_check(sd_bus_message_skip(reply, (char[]){ type, '\0' }));
}

/* ---- calls ---- */

/* Half of the careful calls create something: without objects there is little to call. */
static const Method *any_method(const Rubbish *r) {
        static const char *const makers[] = { "Hold",          "HoldUnattended",  "OpenCounters",
                                              "CreateSampler", "RegisterMonitor", "OpenEvent",
                                              "OpenEvents" };
        const char *maker = makers[rubbish_below(G_N_ELEMENTS(makers))];

        if (r->careful && rubbish_chance(2))
                for (unsigned i = 0; i < r->methods->len; i++)
                        if (strcmp(g_array_index(r->methods, Method, i).info->name, maker) == 0)
                                return &g_array_index(r->methods, Method, i);
        return &g_array_index(r->methods, Method, rubbish_below(r->methods->len));
}

static void append_arguments(Rubbish *r, sd_bus_message *m, GDBusArgInfo **a) {
        for (; a && *a; a++)
                if (r->careful || !rubbish_chance(20))
                        rubbish_append(r, m, (*a)->signature, (*a)->name ?: "");
        if (!r->careful && rubbish_chance(20))
                rubbish_append_any(r, m);
}

sd_bus_message *rubbish_message(Rubbish *r, Client *c) {
        g_autofree char *kind = NULL, *path = NULL;
        const Method *method;
        sd_bus_message *m;

        r->careful = !rubbish_chance(3);
        r->n_descriptors = 0;
        r->n_bytes = 0;
        method = any_method(r);
        kind = g_ascii_strdown(
                *method->kind ? method->kind : files[rubbish_below(G_N_ELEMENTS(files))], -1);
        path = rubbish_path(r, kind);
        r->member = method->info->name;
        m = client_message(c, path, method->interface, method->info->name);
        append_arguments(r, m, method->info->in_args);
        rubbish_check(sd_bus_message_set_allow_interactive_authorization(m, rubbish_chance(10)));
        rubbish_check(sd_bus_message_set_expect_reply(m, !rubbish_chance(30)));
        return m;
}
