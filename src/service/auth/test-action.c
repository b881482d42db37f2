/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/auth/action.h"

#include <stdio.h>
#include <string.h>

#include <gio/gio.h>

#define PREFIX "org.perfalloc1."

static char *source_file(const char *dir, const char *name) {
        return g_build_filename(PERFALLOC_SOURCE_DIR, dir, name, NULL);
}

static bool xml_has_member(const char *interface, const char *member) {
        g_autofree char *name = g_strconcat(interface, ".xml", NULL);
        g_autofree char *path = source_file("dbus", name);
        g_autofree char *xml = NULL;
        g_autoptr(GDBusNodeInfo) node = NULL;
        g_autoptr(GError) error = NULL;
        GDBusInterfaceInfo *info;

        if (!g_file_get_contents(path, &xml, NULL, NULL))
                return false;
        node = g_dbus_node_info_new_for_xml(xml, &error);
        g_assert_no_error(error);
        info = g_dbus_node_info_lookup_interface(node, interface);
        return info && g_dbus_interface_info_lookup_method(info, member);
}

static unsigned check_interface(GDBusInterfaceInfo *info) {
        unsigned n = 0;

        for (GDBusMethodInfo **m = info->methods; m && *m; m++, n++)
                if (!method_actions(info->name, (*m)->name))
                        g_error("%s.%s is not in the table", info->name, (*m)->name);
        return n;
}

static void test_every_method_of_the_interfaces_is_in_the_table(void) {
        g_autofree char *path = source_file("dbus", "");
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        const char *name;
        unsigned n = 0;

        g_assert_nonnull(dir);
        while ((name = g_dir_read_name(dir))) {
                g_autofree char *file = source_file("dbus", name), *xml = NULL;
                g_autoptr(GDBusNodeInfo) node = NULL;
                g_autoptr(GError) error = NULL;

                if (!g_str_has_prefix(name, PREFIX) || !g_str_has_suffix(name, ".xml"))
                        continue;
                g_assert_true(g_file_get_contents(file, &xml, NULL, NULL));
                node = g_dbus_node_info_new_for_xml(xml, &error);
                g_assert_no_error(error);
                for (GDBusInterfaceInfo **i = node->interfaces; i && *i; i++)
                        n += check_interface(*i);
        }
        g_assert_cmpuint(n, >, 0);
}

/* A misspelled row would leave a real method without one. */
static void test_every_row_of_hold_is_a_method(void) {
        for (size_t i = 0; i < n_method_table; i++)
                if (strcmp(method_table[i].interface, PREFIX "Hold") == 0)
                        g_assert_true(
                                xml_has_member(method_table[i].interface, method_table[i].member));
}

static void test_no_method_has_two_rows(void) {
        for (size_t i = 0; i < n_method_table; i++)
                g_assert_true(method_actions(method_table[i].interface, method_table[i].member) ==
                              &method_table[i]);
}

static void test_unknown_is_unknown(void) {
        g_assert_null(method_actions(PREFIX "Manager", "Nonsense"));
        g_assert_null(method_actions(PREFIX "Hold", "Hold"));
        g_assert_null(method_actions("Hold", "Release"));
        g_assert_null(method_actions(NULL, "Hold"));
        g_assert_null(method_actions(PREFIX "Hold", NULL));
        g_assert_null(action_info(ACTION_NONE));
        g_assert_null(action_info(ACTION_HOLD | ACTION_MANAGE));
        g_assert_null(action_name(1 << 20));
}

static void test_every_action_has_one_row(void) {
        unsigned seen = 0;

        for (size_t i = 0; i < n_action_table; i++) {
                g_assert_cmpuint(seen & action_table[i].action, ==, 0);
                seen |= action_table[i].action;
        }
        g_assert_cmpuint(seen, ==, _ACTION_ALL);
}

/* The contract's table: any, inactive, active. */
static const struct {
        const char *action, *any, *inactive, *active;
} defaults[] = {
        { "hold", "auth_admin", "auth_admin", "yes" },
        { "hold-exclusive", "auth_admin", "auth_admin", "auth_admin_keep" },
        { "hold-unattended", "auth_admin", "auth_admin", "auth_admin" },
        { "count-own", "yes", "yes", "yes" },
        { "sample-own", "auth_admin", "auth_admin", "yes" },
        { "count-kernel", "auth_admin", "auth_admin", "auth_admin_keep" },
        { "count-other", "auth_admin", "auth_admin", "auth_admin" },
        { "count-system", "auth_admin", "auth_admin", "auth_admin" },
        { "count-raw", "auth_admin", "auth_admin", "auth_admin" },
        { "persist", "auth_admin", "auth_admin", "auth_admin_keep" },
        { "monitor", "auth_admin", "auth_admin", "auth_admin" },
        { "manage", "auth_admin", "auth_admin", "auth_admin" },
};

typedef struct Policy {
        GString *seen; /* one line an action: "hold any=… owner=…" */
        GString *text;
        char *annotation;
} Policy;

static void on_start(GMarkupParseContext *context, const char *element, const char **names,
                     const char **values, gpointer userdata, GError **error) {
        Policy *p = userdata;

        if (strcmp(element, "action") == 0)
                g_string_append_printf(p->seen, "%s", values[0]);
        if (strcmp(element, "annotate") == 0) {
                g_free(p->annotation);
                p->annotation = g_strdup(values[0]);
        }
        g_string_truncate(p->text, 0);
}

static void on_text(GMarkupParseContext *context, const char *text, gsize length, gpointer userdata,
                    GError **error) {
        g_string_append_len(((Policy *) userdata)->text, text, (gssize) length);
}

static void on_end(GMarkupParseContext *context, const char *element, gpointer userdata,
                   GError **error) {
        Policy *p = userdata;

        if (g_str_has_prefix(element, "allow_"))
                g_string_append_printf(p->seen, " %s", p->text->str);
        else if (strcmp(element, "annotate") == 0)
                g_string_append_printf(p->seen, " %s=%s", p->annotation, p->text->str);
        else if (strcmp(element, "description") == 0 || strcmp(element, "message") == 0)
                g_assert_cmpuint(p->text->len, >, 10);
        else if (strcmp(element, "action") == 0)
                g_string_append_c(p->seen, '\n');
}

static void test_policy_file_says_what_the_contract_says(void) {
        static const GMarkupParser parser = { on_start, on_end, on_text, NULL, NULL };
        g_autofree char *path = source_file("polkit", PREFIX "policy"), *xml = NULL;
        Policy p = { g_string_new(NULL), g_string_new(NULL), NULL };
        g_autoptr(GMarkupParseContext) context = NULL;
        g_autoptr(GString) expected = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        gsize length;

        for (size_t i = 0; i < ELEMENTSOF(defaults); i++)
                g_string_append_printf(
                        expected,
                        "%s%s %s %s %s org.freedesktop.policykit.owner=unix-user:perfalloc\n",
                        PREFIX, defaults[i].action, defaults[i].any, defaults[i].inactive,
                        defaults[i].active);
        g_assert_true(g_file_get_contents(path, &xml, &length, NULL));
        context = g_markup_parse_context_new(&parser, G_MARKUP_DEFAULT_FLAGS, &p, NULL);
        g_assert_true(g_markup_parse_context_parse(context, xml, (gssize) length, &error));
        g_assert_no_error(error);
        g_assert_cmpstr(p.seen->str, ==, expected->str);

        g_assert_cmpuint(ELEMENTSOF(defaults), ==, n_action_table);
        for (size_t i = 0; i < n_action_table; i++)
                g_assert_cmpstr(action_table[i].name + strlen(PREFIX), ==, defaults[i].action);

        g_string_free(p.seen, TRUE);
        g_string_free(p.text, TRUE);
        g_free(p.annotation);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/action/every-method-of-the-interfaces-is-in-the-table",
                        test_every_method_of_the_interfaces_is_in_the_table);
        g_test_add_func("/action/every-row-of-hold-is-a-method",
                        test_every_row_of_hold_is_a_method);
        g_test_add_func("/action/no-method-has-two-rows", test_no_method_has_two_rows);
        g_test_add_func("/action/unknown-is-unknown", test_unknown_is_unknown);
        g_test_add_func("/action/every-action-has-one-row", test_every_action_has_one_row);
        g_test_add_func("/action/policy-file-says-what-the-contract-says",
                        test_policy_file_says_what_the_contract_says);
        return g_test_run();
}
