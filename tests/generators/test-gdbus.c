/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What gdbus-codegen makes of the interface files is a whole client: descriptors come and go. */

#include <gio/gunixfdlist.h>
#include <perfalloc/dbus.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perfalloc-proxies.h"

static PerfallocManager *manager;

static GVariant *scope(void) {
        g_auto(GVariantDict) options = G_VARIANT_DICT_INIT(NULL);

        g_variant_dict_insert(&options, "pmus", "^as", (const char *[]){ "software", NULL });
        return g_variant_dict_end(&options);
}

/* The descriptor that a handle of a reply stands for. */
static int descriptor_of(GUnixFDList *list, GVariant *handle) {
        g_autoptr(GError) error = NULL;
        int fd;

        g_assert_nonnull(list);
        fd = g_unix_fd_list_get(list, g_variant_get_handle(handle), &error);
        g_assert_no_error(error);
        return fd;
}

static void note_end(PerfallocManager *from, const char *hold, const char *result, char **note) {
        *note = g_strdup(result);
}

static void test_lease(void) {
        g_autoptr(GUnixFDList) list = NULL;
        g_autoptr(GVariant) handle = NULL;
        g_autoptr(GError) error = NULL;
        g_autofree char *path = NULL, *result = NULL;
        g_autoptr(PerfallocHold) hold = NULL;
        guint64 latency;
        gboolean confirmed;
        int lease;

        perfalloc_manager_call_hold_sync(manager, "generated", scope(), NULL, &path, &handle, &list,
                                         NULL, &error);
        g_assert_no_error(error);
        lease = descriptor_of(list, handle);
        hold = perfalloc_hold_proxy_new_for_bus_sync(G_BUS_TYPE_SYSTEM, 0, PERFALLOC_BUS_NAME, path,
                                                     NULL, &error);
        g_assert_no_error(error);
        perfalloc_hold_call_wait_sync(hold, &confirmed, &latency, NULL, &error);
        g_assert_no_error(error);
        g_assert_true(confirmed);

        g_signal_connect(manager, "hold-ended", G_CALLBACK(note_end), &result);
        g_clear_object(&list);
        close(lease);
        while (!result)
                g_main_context_iteration(NULL, TRUE);
        g_signal_handlers_disconnect_by_data(manager, &result);
        g_assert_cmpstr(result, ==, "lease-closed");
}

/*
 * Opens a counter of this process, which a pidfd in the options names: a handle is the descriptor's
 * place in the message's list.
 */
static char *counter_open(void) {
        g_autoptr(GUnixFDList) list = g_unix_fd_list_new();
        g_autoptr(GError) error = NULL;
        g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
        g_auto(GStrv) counters = NULL;
        int pidfd = (int) syscall(SYS_pidfd_open, getpid(), 0), place;

        g_assert_cmpint(pidfd, >=, 0);
        place = g_unix_fd_list_append(list, pidfd, &error);
        g_assert_no_error(error);
        close(pidfd);
        g_variant_dict_insert(&dict, "pidfd", "h", place);
        perfalloc_manager_call_open_counters_sync(manager, (const char *[]){ "task-clock", NULL },
                                                  g_variant_dict_end(&dict), list, &counters, NULL,
                                                  NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(g_strv_length(counters), ==, 1);
        return g_strdup(counters[0]);
}

static void test_options(void) {
        g_autofree char *path = counter_open();
        g_autoptr(PerfallocCounter) counter = NULL;
        g_autoptr(GError) error = NULL;
        g_autoptr(GVariant) targets = NULL;
        guint32 target;

        counter = perfalloc_counter_proxy_new_for_bus_sync(G_BUS_TYPE_SYSTEM, 0, PERFALLOC_BUS_NAME,
                                                           path, NULL, &error);
        g_assert_no_error(error);
        targets = perfalloc_counter_dup_targets(counter);
        g_variant_get_child(targets, 0, "u", &target);
        g_assert_cmpuint(target, ==, getpid());
        perfalloc_counter_call_close_sync(counter, NULL, &error);
        g_assert_no_error(error);
}

static void test_many(void) {
        g_autofree char *path = counter_open();
        g_autoptr(PerfallocCounter) counter = NULL;
        g_autoptr(GUnixFDList) list = NULL;
        g_autoptr(GVariant) handles = NULL, handle = NULL;
        g_autoptr(GError) error = NULL;
        guint64 words[8]; /* more than the event gives */
        int fd;

        counter = perfalloc_counter_proxy_new_for_bus_sync(G_BUS_TYPE_SYSTEM, 0, PERFALLOC_BUS_NAME,
                                                           path, NULL, &error);
        g_assert_no_error(error);
        perfalloc_counter_call_get_fds_sync(counter, NULL, &handles, &list, NULL, &error);
        g_assert_no_error(error);
        handle = g_variant_get_child_value(handles, 0);
        fd = descriptor_of(list, handle);
        g_assert_cmpint(read(fd, words, sizeof(words)), >=, (ssize_t) sizeof(words[0]));
        close(fd);
}

int main(int argc, char *argv[]) {
        g_autoptr(GError) error = NULL;

        g_test_init(&argc, &argv, NULL);
        manager = perfalloc_manager_proxy_new_for_bus_sync(G_BUS_TYPE_SYSTEM, 0, PERFALLOC_BUS_NAME,
                                                           PERFALLOC_OBJECT_PATH, NULL, &error);
        g_assert_no_error(error);

        g_test_add_func("/generators/gdbus/hold-comes-with-its-lease", test_lease);
        g_test_add_func("/generators/gdbus/an-option-can-be-a-descriptor", test_options);
        g_test_add_func("/generators/gdbus/an-array-of-descriptors-comes", test_many);

        int status = g_test_run();

        g_clear_object(&manager);
        return status;
}
