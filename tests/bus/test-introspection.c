/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The introspection of the running service is what the interface files in dbus/ say. */

#include <gio/gio.h>
#include <glib.h>
#include <perfalloc/dbus.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define EMITS "org.freedesktop.DBus.Property.EmitsChangedSignal"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_message, sd_bus_message_unref)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(sd_bus_error, sd_bus_error_free)

static sd_bus *bus;

/* ---- one form for both sides: a line for each member, in the order of the alphabet ---- */

static int compare_lines(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void append_args(GString *line, const char *way, GDBusArgInfo **args) {
        for (; args && *args; args++)
                g_string_append_printf(line, " %s %s %s;", way, (*args)->signature,
                                       (*args)->name ?: "(no name)");
}

/* Annotations for generators of code are in the files alone. */
static gboolean is_for_generators(const char *annotation) {
        return g_str_has_prefix(annotation, "org.gtk.GDBus.") ||
               g_str_has_prefix(annotation, "org.qtproject.QtDBus.");
}

static void append_annotations(GString *line, GDBusAnnotationInfo **annotations) {
        for (; annotations && *annotations; annotations++)
                if (strcmp((*annotations)->key, EMITS) != 0 &&
                    !is_for_generators((*annotations)->key))
                        g_string_append_printf(line, " %s=%s;", (*annotations)->key,
                                               (*annotations)->value);
}

static void add_method(GPtrArray *lines, const GDBusMethodInfo *method) {
        GString *line = g_string_new("method ");

        g_string_append(line, method->name);
        append_args(line, "in", method->in_args);
        append_args(line, "out", method->out_args);
        append_annotations(line, method->annotations);
        g_ptr_array_add(lines, g_string_free(line, FALSE));
}

static void add_signal(GPtrArray *lines, const GDBusSignalInfo *signal) {
        GString *line = g_string_new("signal ");

        g_string_append(line, signal->name);
        append_args(line, "out", signal->args);
        append_annotations(line, signal->annotations);
        g_ptr_array_add(lines, g_string_free(line, FALSE));
}

static void add_property(GPtrArray *lines, const GDBusPropertyInfo *property) {
        /* the D-Bus specification: without the annotation changes are signalled */
        const char *emits = g_dbus_annotation_info_lookup(property->annotations, EMITS) ?: "true";
        GString *line = g_string_new("property ");

        g_string_append_printf(line, "%s %s; access %x; emits %s;", property->name,
                               property->signature, property->flags, emits);
        append_annotations(line, property->annotations);
        g_ptr_array_add(lines, g_string_free(line, FALSE));
}

static char *interface_describe(const GDBusInterfaceInfo *interface) {
        g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);

        for (GDBusMethodInfo **m = interface->methods; m && *m; m++)
                add_method(lines, *m);
        for (GDBusSignalInfo **s = interface->signals; s && *s; s++)
                add_signal(lines, *s);
        for (GDBusPropertyInfo **p = interface->properties; p && *p; p++)
                add_property(lines, *p);
        qsort(lines->pdata, lines->len, sizeof(gpointer), compare_lines);
        g_ptr_array_add(lines, NULL);
        return g_strjoinv("\n", (char **) lines->pdata);
}

/* ---- both sides ---- */

static GDBusNodeInfo *node_parse(const char *xml) {
        g_autoptr(GError) error = NULL;
        GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(xml, &error);

        g_assert_no_error(error);
        return node;
}

static GDBusNodeInfo *file_read(const char *interface) {
        const char *source = g_getenv("PERFALLOC_SOURCE");
        g_autofree char *directory = source ? g_build_filename(source, "dbus", NULL)
                                            : g_strdup("/usr/share/dbus-1/interfaces");
        g_autofree char *path = g_strdup_printf("%s/%s.xml", directory, interface);
        g_autofree char *xml = NULL;
        g_autoptr(GError) error = NULL;

        (void) g_file_get_contents(path, &xml, NULL, &error);
        g_assert_no_error(error);
        return node_parse(xml);
}

static sd_bus_message *call(const char *path, const char *interface, const char *member,
                            const char *types, ...) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        va_list ap;
        int r;

        va_start(ap, types);
        r = sd_bus_call_methodv(bus, PERFALLOC_BUS_NAME, path, interface, member, &error, &reply,
                                types, ap);
        va_end(ap);
        if (r < 0)
                g_error("%s.%s: %s", interface, member, error.message ?: g_strerror(-r));
        return reply;
}

static GDBusNodeInfo *object_introspect(const char *path) {
        g_autoptr(sd_bus_message) reply =
                call(path, "org.freedesktop.DBus.Introspectable", "Introspect", NULL);
        const char *xml;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 's', &xml), >, 0);
        return node_parse(xml);
}

static void assert_interface(const char *path, const char *name) {
        g_autoptr(GDBusNodeInfo) file = file_read(name), object = object_introspect(path);
        const GDBusInterfaceInfo *expected = g_dbus_node_info_lookup_interface(file, name);
        const GDBusInterfaceInfo *found = g_dbus_node_info_lookup_interface(object, name);
        g_autofree char *expected_text = NULL, *found_text = NULL;

        g_assert_nonnull(expected);
        g_assert_nonnull(found);
        expected_text = interface_describe(expected);
        found_text = interface_describe(found);
        if (strcmp(expected_text, found_text) != 0)
                g_test_message("the interface file:\n%s\n\nthe service:\n%s", expected_text,
                               found_text);
        g_assert_cmpstr(found_text, ==, expected_text);

        /* and nothing of ours that has no file */
        for (GDBusInterfaceInfo **i = object->interfaces; *i; i++)
                if (g_str_has_prefix((*i)->name, PERFALLOC_BUS_NAME))
                        g_assert_cmpstr((*i)->name, ==, name);
}

/* ---- the promises ---- */

static void test_manager(void) {
        assert_interface(PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE);
}

static void test_hold(void) {
        g_autoptr(sd_bus_message) reply =
                call(PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "HoldUnattended",
                     "sta{sv}", "introspection", (uint64_t) 60000000, 0);
        const char *path;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        assert_interface(path, PERFALLOC_HOLD_INTERFACE);
        sd_bus_message_unref(call(path, PERFALLOC_HOLD_INTERFACE, "Release", NULL));
}

static void test_counter(void) {
        g_autoptr(sd_bus_message) reply = call(PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                               "OpenCounters", "asa{sv}", 1, "task-clock", 0);
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        assert_interface(path, PERFALLOC_COUNTER_INTERFACE);
        sd_bus_message_unref(call(path, PERFALLOC_COUNTER_INTERFACE, "Close", NULL));
}

static void test_sampler(void) {
        g_autoptr(sd_bus_message) reply =
                call(PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "CreateSampler",
                     "aota{sv}", 0, (uint64_t) 60000000, 0);
        const char *path;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        assert_interface(path, PERFALLOC_SAMPLER_INTERFACE);
        sd_bus_message_unref(call(path, PERFALLOC_SAMPLER_INTERFACE, "Close", NULL));
}

static void test_pmu(void) {
        assert_interface(PERFALLOC_OBJECT_PATH "/pmu/software", PERFALLOC_PMU_INTERFACE);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        if (sd_bus_open_system(&bus) < 0)
                g_error("no system bus");

        g_test_add_func("/introspection/manager-is-as-its-file-says", test_manager);
        g_test_add_func("/introspection/hold-is-as-its-file-says", test_hold);
        g_test_add_func("/introspection/counter-is-as-its-file-says", test_counter);
        g_test_add_func("/introspection/sampler-is-as-its-file-says", test_sampler);
        g_test_add_func("/introspection/pmu-is-as-its-file-says", test_pmu);

        int status = g_test_run();

        bus = sd_bus_flush_close_unref(bus);
        return status;
}
