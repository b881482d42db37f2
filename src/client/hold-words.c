/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-words.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "core/cpuset.h"

#define NAMED_MAX 4u /* so many obstacles are named, the others are counted */
#define TIME_MAX  32

static char **hold_pmus(const Object *o) {
        static char *none[] = { NULL };

        return object_value(o, "Pmus")->texts ?: none;
}

static bool have_pmu_in_common(const Object *a, const Object *b) {
        for (char **x = hold_pmus(a); *x; x++)
                for (char **y = hold_pmus(b); *y; y++)
                        if (strcmp(*x, *y) == 0)
                                return true;
        return false;
}

static bool have_cpu_in_common(const Object *a, const Object *b) {
        _cleanup_(cpuset_done) CpuSet x = CPUSET_NULL, y = CPUSET_NULL;

        return cpuset_parse(&x, object_text(a, "Cpus"), NULL) == 0 &&
               cpuset_parse(&y, object_text(b, "Cpus"), NULL) == 0 && cpuset_intersects(&x, &y);
}

bool hold_precedes(const Object *a, const Object *b) {
        return a->number < b->number && !object_is(a, "State", "ended") &&
               have_pmu_in_common(a, b) && have_cpu_in_common(a, b);
}

/* ---- words ---- */

static void print_scope(const Object *o, FILE *f) {
        const char *cpus = object_value(o, "Cpus")->text ?: "?";
        uint64_t n = object_number(o, "Counters");
        char **pmus = hold_pmus(o);
        bool many = strpbrk(cpus, ",-");

        if (!*pmus) {
                fprintf(f, "nothing");
                return;
        }
        if (n > 0)
                fprintf(f, "%" PRIu64 " counter%s of ", n, n > 1 ? "s" : "");
        else
                fprintf(f, "all counters of ");
        for (char **name = pmus; *name; name++)
                fprintf(f, "%s%s", name > pmus ? ", " : "", *name);
        fprintf(f, " on %s%s %s", n > 0 && many ? "each of " : "", many ? "CPUs" : "CPU", cpus);
}

static void print_holder(const Object *o, FILE *f) {
        uid_t uid = (uid_t) object_number(o, "Uid");
        const struct passwd *user = getpwuid(uid);

        /* the process that asked for an unattended hold has ended */
        if (object_number(o, "Unattended") > 0)
                fprintf(f, "hold %" PRIu64 " of ", o->number);
        else
                fprintf(f, "pid %" PRIu64 " of ", object_number(o, "Pid"));
        if (user)
                fprintf(f, "%s (", user->pw_name);
        else
                fprintf(f, "uid %" PRIu32 " (", uid);
        if (*object_text(o, "Tag"))
                fprintf(f, "tag %s: ", object_text(o, "Tag"));
        print_scope(o, f);
        fprintf(f, ", %s, %s)", object_value(o, "Mode")->text ?: "?",
                object_value(o, "State")->text ?: "?");
}

static void print_obstacles(const Object *o, FILE *f) {
        unsigned n = 0;

        for (char **who = object_value(o, "Obstacles")->texts; who && *who; who++)
                if (n++ < NAMED_MAX)
                        fprintf(f, "%s%s", n > 1 ? "; " : "", *who);
        if (n > NAMED_MAX)
                fprintf(f, "; and %u more", n - NAMED_MAX);
}

static char *printed(const Object *o, void (*print)(const Object *o, FILE *f)) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        print(o, f);
        return fclose(f) == 0 ? TAKE_PTR(text) : NULL;
}

char *hold_words_scope(const Object *o) {
        return printed(o, print_scope);
}

char *hold_words_holder(const Object *o) {
        return printed(o, print_holder);
}

char *hold_words_obstacles(const Object *o) {
        return printed(o, print_obstacles);
}

/* ---- granted ---- */

/* With three digits at most: "143 µs", "12.3 ms", "2.10 s". */
static void time_format(uint64_t usec, char text[static TIME_MAX]) {
        if (usec < USEC_PER_MSEC)
                (void) snprintf(text, TIME_MAX, "%" PRIu64 " \u00b5s", usec);
        else if (usec < USEC_PER_SEC)
                (void) snprintf(text, TIME_MAX, "%" PRIu64 ".%" PRIu64 " ms", usec / USEC_PER_MSEC,
                                usec % USEC_PER_MSEC / 100);
        else
                (void) snprintf(text, TIME_MAX, "%" PRIu64 ".%02" PRIu64 " s", usec / USEC_PER_SEC,
                                usec % USEC_PER_SEC / 10000);
}

char *hold_words_grant(const Object *o, bool confirmed, uint64_t latency_usec) {
        _cleanup_free_ char *scope = NULL, *obstacles = hold_words_obstacles(o);
        const char *exclusive = object_is(o, "Mode", "exclusive") ? ", exclusively" : "";
        bool known = *object_text(o, "State");
        char latency[TIME_MAX], *text;
        int r;

        time_format(latency_usec, latency);
        scope = known ? hold_words_scope(o) : strdup("the counters");
        if (!scope || !obstacles)
                return NULL;
        if (known && !*hold_pmus(o))
                r = asprintf(&text, "this machine has no core PMU: there is nothing to reserve "
                                    "(other PMUs are held with --pmu=NAME)");
        else if (confirmed)
                r = asprintf(&text, "holding %s%s (confirmed in %s)", scope, exclusive, latency);
        else
                r = asprintf(&text,
                             "warning: holding %s%s, but they are not confirmed to be free (after "
                             "%s); in the way: %s",
                             scope, exclusive, latency,
                             *obstacles ? obstacles : "nobody knows who");
        return r < 0 ? NULL : text;
}
