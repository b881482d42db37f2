/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-util.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>

uint64_t boottime_usec(void) {
        struct timespec t;

        g_assert_cmpint(clock_gettime(CLOCK_BOOTTIME, &t), ==, 0);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

void await_time(uint64_t usec) {
        await(boottime_usec() >= usec);
}

static sd_bus_message *create_message(Client *c, const char *const *counters, uint64_t interval,
                                      const char *types, va_list ap) {
        sd_bus_message *m = client_message(c, MANAGER, "CreateSampler");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "o"), >=, 0);
        for (; *counters; counters++)
                g_assert_cmpint(sd_bus_message_append_basic(m, 'o', *counters), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append_basic(m, 't', &interval), >=, 0);
        g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
        return m;
}

Sampler *sampler_create(Client *c, const char *const *counters, uint64_t interval,
                        const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        Sampler *s = g_new0(Sampler, 1);
        const char *path;
        va_list ap;

        va_start(ap, types);
        m = create_message(c, counters, interval, types, ap);
        va_end(ap);
        reply = client_call_message(c, m);
        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &s->stream), >, 0);
        s->stream = fcntl(s->stream, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(s->stream, >=, 0);
        s->client = c;
        s->path = g_strdup(path);
        s->interval = interval;
        s->start = client_get_number(c, path, SAMPLER, "StartUSec", 't');
        g_assert_cmpuint(client_get_number(c, path, SAMPLER, "IntervalUSec", 't'), ==, interval);
        return s;
}

void sampler_refused(Client *c, const char *error, const char *const *counters, uint64_t interval,
                     const char *types, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        va_start(ap, types);
        m = create_message(c, counters, interval, types, ap);
        va_end(ap);
        client_refused_message(c, error, m);
}

void sampler_free(Sampler *s) {
        if (!s)
                return;
        close_fd(s->stream);
        g_free(s->path);
        g_free(s);
}
uint64_t sampler_number(const Sampler *s, const char *property) {
        return client_get_number(s->client, s->path, SAMPLER, property, 't');
}

void sampler_close(const Sampler *s) {
        sd_bus_message_unref(client_call(s->client, s->path, SAMPLER, "Close", NULL));
}

void samplers_do(Client *c, const char *method) {
        sd_bus_message_unref(client_call(c, MANAGER, method, NULL));
}

bool samplers_any(Client *c) {
        g_autoptr(sd_bus_message) reply = client_call(c, MANAGER, "HasSamplers", NULL);
        int has;

        g_assert_cmpint(sd_bus_message_read_basic(reply, 'b', &has), >, 0);
        return has;
}

/* Checks what is true of each record, whatever happened before it. */
static void record_check(Sampler *s, const Record *r, ssize_t size) {
        uint64_t usec = r->head.boottime_nsec / NSEC_PER_USEC;

        g_assert_cmpint(size, ==, PERFALLOC_SAMPLE_SIZE(r->head.n_readings));
        g_assert_cmpuint(r->head.tick, ==, s->next + r->head.missed);
        /* not early, and the latest one that was due */
        g_assert_cmpuint(usec, >=, s->start + r->head.tick * s->interval);
        if (s->interval > 0)
                g_assert_cmpuint(usec, <, s->start + (r->head.tick + 1) * s->interval);
        s->next = r->head.tick + 1;
        s->missed += r->head.missed;
        s->told++;
}

bool record_get(Sampler *s, Record *ret) {
        ssize_t size = recv(s->stream, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);

        if (size < 0) {
                g_assert_cmpint(errno, ==, EAGAIN);
                return false;
        }
        g_assert_cmpint(size, >, 0);
        record_check(s, ret, size);
        return true;
}

void record_await(Sampler *s, Record *ret) {
        await(record_get(s, ret));
}
