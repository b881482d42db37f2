/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-words.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/cpuset.h"
#include "core/utf8.h"

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

bool hold_is_empty(const Object *o) {
        return *object_text(o, "State") && !*hold_pmus(o);
}

static void print_pmus(char **pmus, FILE *f) {
        for (char **name = pmus; *name; name++)
                fprintf(f, "%s%s", name > pmus ? ", " : "", *name);
}

static void print_cpus(const Object *o, bool each, FILE *f) {
        const char *cpus = object_value(o, "Cpus")->text ?: "?";
        bool many = strpbrk(cpus, ",-");

        fprintf(f, " on %s%s %s", each && many ? "each of " : "", many ? "CPUs" : "CPU", cpus);
}

static void print_scope(const Object *o, FILE *f) {
        uint64_t n = object_number(o, "Counters");
        char **pmus = hold_pmus(o);

        if (!*pmus) {
                fprintf(f, "nothing");
                return;
        }
        if (n > 0)
                fprintf(f, "%" PRIu64 " counter%s of ", n, n > 1 ? "s" : "");
        else
                fprintf(f, "all counters of ");
        print_pmus(pmus, f);
        print_cpus(o, n > 0, f);
}

/* Any program may give itself any bytes for a name. */
static void make_printable(char *text) {
        while (*text) {
                size_t length = utf8_text_length(text);

                if (length == 0)
                        *text++ = '?';
                text += length;
        }
}

const char *hold_words_command(const Object *o, char ret[static COMMAND_NAME_MAX]) {
        char path[64];
        FILE *f;

        ret[0] = '\0';
        if (object_number(o, "Unattended") > 0)
                return ret;
        (void) snprintf(path, sizeof(path), "/proc/%" PRIu64 "/comm", object_number(o, "Pid"));
        f = fopen(path, "re");
        if (!f)
                return ret;
        if (!fgets(ret, COMMAND_NAME_MAX, f))
                ret[0] = '\0';
        (void) fclose(f);
        ret[strcspn(ret, "\n")] = '\0';
        make_printable(ret);
        return ret;
}

const char *hold_words_time(uint64_t usec, char ret[static HOLD_TIME_MAX]) {
        time_t seconds = (time_t) (usec / USEC_PER_SEC), now = time(NULL);
        struct tm tm, today;
        bool same;

        ret[0] = '\0';
        if (!localtime_r(&seconds, &tm) || !localtime_r(&now, &today))
                return ret;
        same = tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday;
        (void) strftime(ret, HOLD_TIME_MAX, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
        return ret;
}

static void print_user(const Object *o, FILE *f) {
        uid_t uid = (uid_t) object_number(o, "Uid");
        const struct passwd *user = getpwuid(uid);

        if (user)
                fputs(user->pw_name, f);
        else
                fprintf(f, "uid %" PRIu32, uid);
}

static void print_state(const Object *o, FILE *f) {
        uint64_t since = object_number(o, object_is(o, "State", "granted") ? "GrantTimestamp"
                                                                           : "RequestTimestamp");
        char text[HOLD_TIME_MAX];

        fputs(object_value(o, "State")->text ?: "?", f);
        if (since > 0)
                fprintf(f, " since %s", hold_words_time(since, text));
}

char *hold_words_holder(const Object *o, const char *command) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        print_user(o, f);
        if (object_number(o, "Unattended") > 0)
                fprintf(f, ", hold %" PRIu64, o->number);
        else
                fprintf(f, *command ? ", %s (pid %" PRIu64 ")" : ",%s pid %" PRIu64, command,
                        object_number(o, "Pid"));
        if (*object_text(o, "Tag"))
                fprintf(f, ", tag %s", object_text(o, "Tag"));
        fputs(": ", f);
        print_scope(o, f);
        fprintf(f, ", %s, ", object_value(o, "Mode")->text ?: "?");
        print_state(o, f);
        if (*object_text(o, "Reason"))
                fprintf(f, ", '%s'", object_text(o, "Reason"));
        return fclose(f) == 0 ? TAKE_PTR(text) : NULL;
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

char *hold_words_kernel(const char *pmu, char *const *kernel, char *const *fixed) {
        bool own = false;
        char *text;

        if (!kernel || !*kernel)
                return NULL;
        for (; fixed && *fixed; fixed++)
                own |= strcmp(*fixed, "cycles") == 0;
        return asprintf(&text,
                        "the kernel's NMI watchdog (%s) uses %s of %s on each CPU; NmiWatchdog=yes "
                        "in perfallocd.conf(5) makes it available",
                        *kernel, own ? "the counter of cycles" : "one general counter", pmu) < 0
                       ? NULL
                       : text;
}

/* A hold that is not confirmed, and has no obstacle, has a PMU that cannot be measured, or CPUs
 * that are offline. */
static void print_doubt(const Object *o, FILE *f) {
        char **pmus = hold_pmus(o), **obstacles = object_value(o, "Obstacles")->texts;
        bool many = *pmus && pmus[1];

        fputs("but not confirmed to be free", f);
        if (obstacles && *obstacles) {
                fputs("; in use by: ", f);
                print_obstacles(o, f);
        } else if (*pmus) {
                fputs(many ? ": not all counters of PMUs " : ": the counters of PMU ", f);
                print_pmus(pmus, f);
                print_cpus(o, false, f);
                fputs(many ? " can be measured" : " cannot be measured", f);
        }
}

char *hold_words_grant(const Object *o, bool confirmed, uint64_t latency_usec) {
        _cleanup_free_ char *scope = NULL, *doubt = printed(o, print_doubt);
        const char *exclusive = object_is(o, "Mode", "exclusive") ? " exclusively" : "";
        bool known = *object_text(o, "State");
        char latency[TIME_MAX], *text;
        int r;

        time_format(latency_usec, latency);
        scope = known ? hold_words_scope(o) : strdup("the counters");
        if (!scope || !doubt)
                return NULL;
        if (hold_is_empty(o))
                r = asprintf(&text, "%s", HOLD_WORDS_EMPTY);
        else if (confirmed)
                r = asprintf(&text, "holding %s%s (confirmed in %s)", scope, exclusive, latency);
        else
                r = asprintf(&text, "warning: holding %s%s (after %s), %s", scope, exclusive,
                             latency, doubt);
        return r < 0 ? NULL : text;
}
