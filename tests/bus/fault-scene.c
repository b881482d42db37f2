/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault-scene.h"

#define ANSWER_USEC (20 * USEC_PER_SEC)

/* The errors that a caller may get for lack of memory or descriptors. */
static const struct {
        const char *name, *words;
} errors[] = {
        { SD_BUS_ERROR_NO_MEMORY, "" },
        { PERFALLOC_ERROR_NOT_PERMITTED, "suid_dumpable is 1 or cannot be read" },
        { SD_BUS_ERROR_LIMITS_EXCEEDED, "no descriptor left" },
        { PERFALLOC_ERROR_TOO_MANY_DESCRIPTORS, "" },
        { PERFALLOC_ERROR_OBSTRUCTED, "out of memory or descriptors" },
};

Fault *fault;
pid_t service;
Client *root;

const char *trying, *trying_way;
int64_t trying_call;
unsigned n_wrong;

void complain(const char *format, ...) {
        g_autofree char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_printerr("# %s, %s %" PRId64 " (addr2line 0x%" PRIx64 "): %s\n", trying, trying_way,
                   trying_call, fault->caller, text);
        n_wrong++;
}

void settle_for(bool is, const char *condition) {
        if (!is)
                complain("never came: %s", condition);
}

sd_bus_message *try_message(Scene *s, Client *c, sd_bus_message *m) {
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

sd_bus_message *try_call(Scene *s, Client *c, const char *path, const char *interface,
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

void keep_path(Scene *s, sd_bus_message *reply, const char *types) {
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

void calm(void) {
        atomic_store(&fault->left, 0);
}

void ping(void) {
        (void) sd_bus_call_method(root->bus, PERFALLOC_BUS_NAME, "/", "org.freedesktop.DBus.Peer",
                                  "Ping", NULL, NULL, NULL);
}
