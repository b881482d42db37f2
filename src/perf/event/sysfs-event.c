/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sysfs-event.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"
#include "perf/event/modifier.h"
#include "perf/event/perf-term.h"
#include "perf/event/suggest.h"
#include "perf/event/sysfs-format.h"
#include "perf/pmu/sysfs.h"

#define UNIT_MAX 32u /* of the unit of a value, bytes */

/* State while a string is encoded. */
typedef struct Encoding {
        const char *string;
        const Pmu *pmu;
        int directory; /* of the PMU */
        Event *event;
        size_t n_terms;
        Term terms[TERMS_MAX];
        const char *alias; /* the term that is the name of an event; NULL: none */
        char *alias_text;
        Refusal *why;
} Encoding;

static void encoding_done(Encoding *c) {
        close_fd(c->directory);
        free(c->alias_text);
}

static int open_pmu(const PmuTable *pmus, const Pmu *pmu, const char *directory) {
        char path[4096];

        if (snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/%s", pmus->sysfs,
                     pmu->name, directory) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        return sysfs_open(AT_FDCWD, path);
}

/* Reads the PMU's file DIRECTORY/NAME and suffix. 1: no such file, or it cannot be read. */
static int read_file(int pmu, const char *directory, const char *name, const char *suffix,
                     char **ret) {
        char path[EVENT_NAME_MAX + 32];
        int r;

        if (!sysfs_name_is_sane(name) ||
            snprintf(path, sizeof(path), "%s/%s%s", directory, name, suffix) >= (int) sizeof(path))
                return 1;
        r = sysfs_read(pmu, path, ret);
        return r < 0 && !sysfs_is_fatal(r) ? 1 : r;
}

/* The directory events also has properties of an event, under its name and a suffix. */
static bool is_property(const char *name) {
        static const char *const suffixes[] = { ".scale", ".unit", ".per-pkg", ".snapshot" };
        size_t length = strlen(name);

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (length > strlen(suffixes[i]) &&
                    strcmp(name + length - strlen(suffixes[i]), suffixes[i]) == 0)
                        return true;
        return false;
}

static int offer_name(void *userdata, int directory, const char *name) {
        if (!is_property(name))
                suggest_offer(userdata, name);
        return 0;
}

/* No such term: suggests similar ones. */
static int refuse_term(Encoding *c, const char *name) {
        static const char *const directories[] = { "events", "format" };
        _cleanup_free_ char *event = NULL;
        Suggestions similar = suggest_begin(name);
        char text[SUGGEST_TEXT_MAX];

        if (!is_property(name) && read_file(c->directory, "events", name, "", &event) == 0)
                return refuse(c->why, REFUSAL_INVALID_EVENT,
                              "event '%s': '%.64s' is an event: it takes no value and cannot be "
                              "part of another one",
                              c->string, name);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_close_ int fd = sysfs_open(c->directory, directories[i]);

                if (fd >= 0)
                        (void) sysfs_visit(fd, offer_name, &similar);
        }
        return refuse(c->why, REFUSAL_NO_SUCH_EVENT,
                      "event '%s': PMU '%s' has no event or term '%.64s'%s", c->string,
                      c->pmu->name, name, suggest_text(&similar, text));
}

/* The place of a term in the attr. */
static int find_format(Encoding *c, const char *name, SysfsFormat *ret) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = sysfs_format_of_word(name, ret);
        if (r == -EBADMSG) {
                r = read_file(c->directory, "format", name, "", &text);
                if (r > 0)
                        return refuse_term(c, name);
                if (r == 0)
                        r = sysfs_format_parse(text, ret);
        }
        if (r == -EBADMSG)
                return refuse(c->why, REFUSAL_INVALID_EVENT,
                              "event '%s': term '%.64s' has an unknown format ('%.64s')", c->string,
                              name, text ? text : name);
        return r;
}

static int apply_term(Encoding *c, const Term *term) {
        SysfsFormat format;
        uint64_t value = 1;
        int r;

        r = find_format(c, term->name, &format);
        if (r != 0)
                return r;
        r = term->value ? number_parse(term->value, &value) : 0;
        if (r == -EINVAL)
                return refuse(c->why, REFUSAL_INVALID_EVENT,
                              "event '%s': the value '%.64s' of term '%.64s' is not a number like "
                              "60 or 0x3c",
                              c->string, term->value, term->name);
        if (r == 0)
                r = sysfs_format_apply(&format, value, &c->event->full);
        if (r == -ERANGE)
                return refuse(c->why, REFUSAL_INVALID_EVENT,
                              "event '%s': the value '%.64s' does not fit into term '%.64s', which "
                              "is %u bits wide",
                              c->string, term->value, term->name, sysfs_format_width(&format));
        return r;
}

/* Without a readable file they stay 1 and "". */
static int read_scale(Encoding *c) {
        _cleanup_free_ char *scale = NULL, *unit = NULL;
        int r;

        r = read_file(c->directory, "events", c->alias, ".scale", &scale);
        if (r == 0) {
                char *end;
                double value = strtod(scale, &end);

                if (end != scale && *end == '\0' && isfinite(value) && value != 0)
                        c->event->scale = value;
        }
        if (r >= 0)
                r = read_file(c->directory, "events", c->alias, ".unit", &unit);
        if (r == 0 && strlen(unit) < UNIT_MAX) {
                for (char *p = unit; *p; p++)
                        if (*p < ' ' || *p > '~')
                                *p = '?';
                free(c->event->unit);
                c->event->unit = TAKE_PTR(unit);
        }
        return MIN(r, 0);
}

static bool term_is_given(const Encoding *c, const char *name) {
        for (size_t i = 0; i < c->n_terms; i++)
                if (c->terms[i].value && strcmp(c->terms[i].name, name) == 0)
                        return true;
        return false;
}

/* Applies the terms that the alias stands for. A value of "?" must be given by the client. */
static int apply_alias(Encoding *c) {
        _cleanup_free_ char *text = strdup(c->alias_text);
        Term terms[TERMS_MAX];
        size_t n_terms;

        if (!text)
                return -ENOMEM;
        if (!terms_split(text, terms, &n_terms))
                return refuse(c->why, REFUSAL_INVALID_EVENT, "event '%s': '%s' has too many terms",
                              c->string, c->alias);
        for (size_t i = 0; i < n_terms; i++) {
                bool open = terms[i].value && strcmp(terms[i].value, "?") == 0;
                int r;

                if (open && !term_is_given(c, terms[i].name))
                        return refuse(c->why, REFUSAL_INVALID_EVENT,
                                      "event '%s': '%.64s' needs a value for '%.64s': write "
                                      "%.64s,%.64s=NUMBER",
                                      c->string, c->alias, terms[i].name, c->alias, terms[i].name);
                r = open ? 0 : apply_term(c, &terms[i]);
                if (r != 0)
                        return r;
        }
        return read_scale(c);
}

/* 0: the term is the name of an event, by perf's rules; 1: it is not. */
static int find_event(const Encoding *c, const Term *term, char **ret_text) {
        _cleanup_free_ char *format = NULL;
        SysfsFormat word;
        uint64_t value;
        int r;

        if (term->value && (number_parse(term->value, &value) < 0 || value != 1))
                return 1;
        if (is_property(term->name) || sysfs_format_of_word(term->name, &word) == 0)
                return 1;
        r = read_file(c->directory, "format", term->name, "", &format);
        if (r <= 0)
                return r < 0 ? r : 1;
        return read_file(c->directory, "events", term->name, "", ret_text);
}

/* Removes the alias from the terms. */
static int take_alias(Encoding *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_terms; i++) {
                const Term *term = &c->terms[i];
                _cleanup_free_ char *text = NULL;
                int r = find_event(c, term, &text);

                if (r < 0)
                        return r;
                if (r > 0) {
                        c->terms[n++] = *term;
                        continue;
                }
                if (c->alias)
                        return refuse(c->why, REFUSAL_INVALID_EVENT,
                                      "event '%s': '%.64s' and '%.64s' are two events", c->string,
                                      c->alias, term->name);
                c->alias = term->name;
                c->alias_text = TAKE_PTR(text);
        }
        c->n_terms = n;
        return 0;
}

static int encode_terms(Encoding *c, char *terms) {
        int r;

        if (!terms_split(terms, c->terms, &c->n_terms))
                return refuse(c->why, REFUSAL_INVALID_EVENT, "event '%s' has more than %u terms",
                              c->string, TERMS_MAX);
        r = perf_terms_take(c->event, c->terms, &c->n_terms, c->why);
        if (r == 0)
                r = take_alias(c);
        if (r == 0 && c->alias)
                r = apply_alias(c);
        for (size_t i = 0; r == 0 && i < c->n_terms; i++)
                r = apply_term(c, &c->terms[i]);
        return r;
}

static int refuse_pmu(const PmuTable *pmus, const char *string, const char *name, Refusal *why) {
        Suggestions similar = suggest_begin(name);
        char text[SUGGEST_TEXT_MAX];

        for (size_t i = 0; i < pmus->n_pmus; i++)
                suggest_offer(&similar, pmus->pmus[i].name);
        return refuse(why, REFUSAL_NO_SUCH_EVENT, "event '%s': this machine has no PMU '%.64s'%s",
                      string, name, suggest_text(&similar, text));
}

/* Refuses PMUs whose events cannot be written as terms. */
static int check_pmu(const Pmu *pmu, const char *string, Refusal *why) {
        if (pmu->kind == PMU_BREAKPOINT)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': a breakpoint is written mem:ADDRESS/LENGTH:rw", string);
        if (pmu->kind == PMU_TRACEPOINT && pmu->type != PERF_TYPE_TRACEPOINT)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': a probe refers to the memory of the process that opens "
                              "it, so the service cannot open it by name",
                              string);
        return 0;
}

int sysfs_event_parse(const PmuTable *pmus, const char *string, Event *e, Refusal *why) {
        _cleanup_(encoding_done)
                Encoding c = { .string = string, .event = e, .directory = -1, .why = why };
        _cleanup_free_ char *copy = strdup(string);
        char *rest, *name, *terms, *modifiers;
        int r;

        if (!copy)
                return -ENOMEM;
        rest = copy;
        name = strsep(&rest, "/");
        terms = rest;
        modifiers = rest ? strrchr(rest, '/') : NULL;
        if (!modifiers)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s' has only one '/': write pmu/term=value,.../modifiers",
                              string);
        *modifiers++ = '\0';
        if (*modifiers == ':')
                modifiers++;

        e->pmu = pmu_table_find(pmus, name);
        if (!e->pmu)
                return refuse_pmu(pmus, string, name, why);
        r = check_pmu(e->pmu, string, why);
        if (r != 0)
                return r;
        c.pmu = e->pmu;
        c.directory = open_pmu(pmus, e->pmu, ".");
        if (sysfs_is_fatal(c.directory))
                return c.directory;
        if (c.directory < 0)
                return refuse(why, REFUSAL_NO_SUCH_EVENT, "event '%s': PMU '%s' is gone: %s",
                              string, name, strerror(-c.directory));
        e->attr.type = e->pmu->type;
        r = encode_terms(&c, terms);
        return r != 0 ? r : modifiers_parse(string, modifiers, &e->attr, why);
}

typedef struct Listing {
        const Pmu *pmu;
        const char *pattern;
        EventVisitor visitor;
        void *userdata;
} Listing;

static int list_name(void *userdata, int directory, const char *name) {
        Listing *l = userdata;
        _cleanup_free_ char *text = NULL, *full = NULL;
        int r;

        if (is_property(name))
                return 0;
        if (asprintf(&full, "%s/%s/", l->pmu->name, name) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        if (fnmatch(l->pattern, full, FNM_CASEFOLD) != 0)
                return 0;
        r = read_file(directory, ".", name, "", &text);
        if (r != 0)
                return MIN(r, 0);
        for (char *p = text; *p; p++)
                if (*p < ' ' || *p > '~')
                        *p = '?';
        return l->visitor(l->userdata, full, l->pmu->name, text);
}

int sysfs_event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < pmus->n_pmus; i++) {
                Listing listing = { &pmus->pmus[i], pattern, f, userdata };
                _cleanup_close_ int events = open_pmu(pmus, &pmus->pmus[i], "events");

                if (events >= 0)
                        r = sysfs_visit(events, list_name, &listing);
                else if (sysfs_is_fatal(events))
                        r = events;
        }
        return r;
}
