/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-view.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX 4u /* so many obstacles are named, the others are counted */

static char **strings_free(char **strings) {
        for (char **s = strings; s && *s; s++)
                free(*s);
        free(strings);
        return NULL;
}

static int read_basic(sd_bus_message *m, const char *type, void *field) {
        return sd_bus_message_read_basic(m, type[0], field);
}

static int read_text(sd_bus_message *m, const char *type, void *field) {
        char **text = field;
        const char *s;
        int r = sd_bus_message_read_basic(m, 's', &s);

        if (r < 0)
                return r;
        free(*text);
        *text = strdup(s);
        return *text ? 0 : -ENOMEM;
}

static int read_texts(sd_bus_message *m, const char *type, void *field) {
        char ***texts = field;

        *texts = strings_free(*texts);
        return sd_bus_message_read_strv(m, texts);
}

/* a(us): the pid, 0 for the kernel or unknown, and the name */
static int read_obstacles(sd_bus_message *m, const char *type, void *field) {
        char **words = field;
        const char *who;
        size_t size;
        uint32_t pid;
        unsigned n = 0;
        FILE *f;
        int r;

        free(*words);
        *words = NULL;
        r = sd_bus_message_enter_container(m, 'a', "(us)");
        if (r < 0)
                return r;
        f = open_memstream(words, &size);
        if (!f)
                return -errno;
        while ((r = sd_bus_message_read(m, "(us)", &pid, &who)) > 0) {
                if (n++ >= NAMED_MAX)
                        continue;
                fprintf(f, "%s%s", n > 1 ? "; " : "", who);
                if (pid > 0)
                        fprintf(f, " (pid %" PRIu32 ")", pid);
        }
        if (n > NAMED_MAX)
                fprintf(f, "; and %u more", n - NAMED_MAX);
        if (fclose(f) != 0 && r >= 0)
                r = -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0 || n == 0) {
                free(*words);
                *words = NULL;
        }
        return r;
}

static const struct PropertyRow {
        const char *name;
        const char *type;
        int (*read)(sd_bus_message *m, const char *type, void *field);
        size_t offset;
} properties[] = {
        { "Uid", "u", read_basic, offsetof(HoldView, uid) },
        { "Pid", "u", read_basic, offsetof(HoldView, pid) },
        { "Pmus", "as", read_texts, offsetof(HoldView, pmus) },
        { "Cpus", "s", read_text, offsetof(HoldView, cpus) },
        { "Counters", "u", read_basic, offsetof(HoldView, counters) },
        { "Mode", "s", read_text, offsetof(HoldView, mode) },
        { "State", "s", read_text, offsetof(HoldView, state) },
        { "QueuePosition", "u", read_basic, offsetof(HoldView, queue_position) },
        { "Obstacles", "a(us)", read_obstacles, offsetof(HoldView, obstacles) },
};

static int property_read(HoldView *v, sd_bus_message *m) {
        const struct PropertyRow *row = NULL;
        const char *name;
        int r = sd_bus_message_read_basic(m, 's', &name);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(properties); i++)
                if (strcmp(properties[i].name, name) == 0)
                        row = &properties[i];
        if (!row)
                return sd_bus_message_skip(m, "v");
        r = sd_bus_message_enter_container(m, 'v', row->type);
        if (r >= 0)
                r = row->read(m, row->type, (char *) v + row->offset);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int hold_view_read(HoldView *ret, sd_bus_message *m) {
        _cleanup_(hold_view_done) HoldView v = HOLD_VIEW_NULL;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = property_read(&v, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret = v;
        v = HOLD_VIEW_NULL;
        return 0;
}

void hold_view_done(HoldView *v) {
        free(v->cpus);
        free(v->mode);
        free(v->state);
        free(v->obstacles);
        strings_free(v->pmus);
        *v = HOLD_VIEW_NULL;
}

uint64_t hold_view_id(const char *path) {
        static const char prefix[] = PERFALLOC_OBJECT_PATH "/hold/";
        uint64_t id;
        char *end;

        if (strncmp(path, prefix, strlen(prefix)) != 0)
                return 0;
        id = strtoull(path + strlen(prefix), &end, 10);
        return *end ? 0 : id;
}

bool hold_view_is(const HoldView *v, const char *state) {
        return v->state && strcmp(v->state, state) == 0;
}

static bool have_pmu_in_common(const HoldView *a, const HoldView *b) {
        for (char **x = a->pmus; x && *x; x++)
                for (char **y = b->pmus; y && *y; y++)
                        if (strcmp(*x, *y) == 0)
                                return true;
        return false;
}

static bool have_cpu_in_common(const HoldView *a, const HoldView *b) {
        _cleanup_(cpuset_done) CpuSet x = CPUSET_NULL, y = CPUSET_NULL;

        return a->cpus && b->cpus && cpuset_parse(&x, a->cpus, NULL) == 0 &&
               cpuset_parse(&y, b->cpus, NULL) == 0 && cpuset_intersects(&x, &y);
}

bool hold_view_precedes(const HoldView *a, const HoldView *b) {
        return a->id < b->id && !hold_view_is(a, "ended") && have_pmu_in_common(a, b) &&
               have_cpu_in_common(a, b);
}

static void print_scope(const HoldView *v, FILE *f) {
        bool many = v->cpus && strpbrk(v->cpus, ",-");

        if (!v->pmus || !v->pmus[0]) {
                fprintf(f, "nothing");
                return;
        }
        if (v->counters > 0)
                fprintf(f, "%" PRIu32 " counter%s of ", v->counters, v->counters > 1 ? "s" : "");
        else
                fprintf(f, "all counters of ");
        for (char **name = v->pmus; *name; name++)
                fprintf(f, "%s%s", name > v->pmus ? ", " : "", *name);
        fprintf(f, " on %s%s %s", v->counters > 0 && many ? "each of " : "", many ? "CPUs" : "CPU",
                v->cpus ?: "?");
}

static void print_holder(const HoldView *v, FILE *f) {
        const struct passwd *user = getpwuid(v->uid);

        fprintf(f, "pid %" PRIu32 " of ", v->pid);
        if (user)
                fprintf(f, "%s (", user->pw_name);
        else
                fprintf(f, "uid %" PRIu32 " (", v->uid);
        print_scope(v, f);
        fprintf(f, ", %s, %s)", v->mode ?: "?", v->state ?: "?");
}

static char *printed(const HoldView *v, void (*print)(const HoldView *v, FILE *f)) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        print(v, f);
        return fclose(f) == 0 ? TAKE_PTR(text) : NULL;
}

char *hold_view_scope(const HoldView *v) {
        return printed(v, print_scope);
}

char *hold_view_holder(const HoldView *v) {
        return printed(v, print_holder);
}
