/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-util.h"

#include <pthread.h>

/* ---- targets ---- */

static int play_parent(int fd, const void *data) {
        int pipes[2][2];
        pid_t child;

        if (pipe(pipes[0]) < 0 || pipe(pipes[1]) < 0)
                return 1;
        child = fork();
        if (child == 0) {
                char what;

                close(pipes[0][1]);
                while (read(pipes[0][0], &what, 1) == 1) {
                        watched_write(0, 100);
                        if (write(pipes[1][1], &what, 1) != 1)
                                _exit(1);
                }
                _exit(0);
        }
        if (write(fd, &child, sizeof(child)) != sizeof(child))
                return 1;
        for (char what; (what = act_hear(fd));) {
                watched_write(0, 100);
                if (write(pipes[0][1], &what, 1) != 1 || read(pipes[1][0], &what, 1) != 1)
                        return 1;
                act_say(fd, 'w');
        }
        return 0;
}

Actor *parent_new(const char *user, pid_t *ret_child) {
        Actor *a = actor_new(user, play_parent, NULL);

        g_assert_cmpint(read(a->fd, ret_child, sizeof(*ret_child)), ==, sizeof(*ret_child));
        return a;
}

static void *sleeper(void *userdata) {
        for (;;)
                pause();
        return NULL;
}

int play_threads(int fd, const void *data) {
        for (int i = *(const int *) data; i > 0; i--) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, sleeper, NULL) != 0)
                        return 1;
        }
        act_say(fd, 'r');
        while (act_hear(fd) == 's')
                for (;;)
                        ;
        return 0;
}

/* ---- what is asked ---- */

void attach(Client *c, const char *counter, pid_t pid) {
        int proof = client_proof(c, pid);
        g_autoptr(sd_bus_message) reply G_GNUC_UNUSED =
                proof < 0 ? client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                        (uint32_t) pid, 0)
                          : client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                        (uint32_t) pid, 1, "procfd", "h", proof);
}

void attach_tree(Client *c, const char *counter, pid_t pid) {
        int proof = client_proof(c, pid);
        g_autoptr(sd_bus_message) reply G_GNUC_UNUSED =
                proof < 0 ? client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                        (uint32_t) pid, 1, "descendants", "b", true)
                          : client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                        (uint32_t) pid, 2, "descendants", "b", true, "procfd", "h",
                                        proof);
}

void detach(Client *c, const char *counter, pid_t pid) {
        sd_bus_message_unref(
                client_call(c, counter, COUNTER, "DetachProcess", "u", (uint32_t) pid));
}

void attach_refused(Client *c, const char *error, const char *counter, uint32_t pid) {
        client_refused(c, error, counter, COUNTER, "AttachProcess", "ua{sv}", pid, 0);
}

char *unattached_open(Client *c) {
        g_autofree char *event = watched_event(0);

        return counter_open(c, event, UNATTACHED);
}

void assert_targets(Client *c, const char *counter, unsigned n, ...) {
        g_autoptr(sd_bus_message) reply = client_call(c, counter, "org.freedesktop.DBus.Properties",
                                                      "Get", "ss", COUNTER, "Targets");
        uint32_t pid;
        va_list ap;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'v', "au"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "u"), >, 0);
        va_start(ap, n);
        while (n-- > 0) {
                g_assert_cmpint(sd_bus_message_read_basic(reply, 'u', &pid), >, 0);
                g_assert_cmpint((pid_t) pid, ==, va_arg(ap, pid_t));
        }
        va_end(ap);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'u', &pid), ==, 0);
}
