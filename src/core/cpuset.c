/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpuset.h"

#include <stdio.h>
#include <string.h>

#define WORD_BITS 64u

void cpuset_done(CpuSet *s) {
        free(s->words);
        *s = CPUSET_NULL;
}

static int cpuset_reserve(CpuSet *s, unsigned cpu) {
        size_t n_words = cpu / WORD_BITS + 1;
        uint64_t *words;

        if (n_words <= s->n_words)
                return 0;
        words = reallocarray(s->words, n_words, sizeof(uint64_t));
        if (!words)
                return -ENOMEM;
        memset(words + s->n_words, 0, (n_words - s->n_words) * sizeof(uint64_t));
        s->words = words;
        s->n_words = n_words;
        return 0;
}

/* first <= last < CPUSET_CPUS_MAX. By words: a list may name all CPUs thousands of times. */
static int cpuset_add_range(CpuSet *s, unsigned first, unsigned last) {
        size_t from = first / WORD_BITS, to = last / WORD_BITS;
        int r = cpuset_reserve(s, last);

        if (r < 0)
                return r;
        for (size_t word = from; word <= to; word++) {
                uint64_t bits = UINT64_MAX;

                if (word == from)
                        bits &= UINT64_MAX << (first % WORD_BITS);
                if (word == to)
                        bits &= UINT64_MAX >> (WORD_BITS - 1 - last % WORD_BITS);
                s->words[word] |= bits;
        }
        return 0;
}

int cpuset_add(CpuSet *s, unsigned cpu) {
        return cpu < CPUSET_CPUS_MAX ? cpuset_add_range(s, cpu, cpu) : -ERANGE;
}

void cpuset_remove(CpuSet *s, unsigned cpu) {
        if (cpu / WORD_BITS < s->n_words)
                s->words[cpu / WORD_BITS] &= ~(UINT64_C(1) << (cpu % WORD_BITS));
}

void cpuset_clear(CpuSet *s) {
        for (size_t word = 0; word < s->n_words; word++)
                s->words[word] = 0;
}

int cpuset_make_room(CpuSet *s, const CpuSet *other) {
        return other->n_words == 0 ? 0
                                   : cpuset_reserve(s, (unsigned) (other->n_words * WORD_BITS - 1));
}

bool cpuset_has(const CpuSet *s, unsigned cpu) {
        return cpu / WORD_BITS < s->n_words && (s->words[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1);
}

int cpuset_next(const CpuSet *s, unsigned cpu) {
        for (size_t word = cpu / WORD_BITS; word < s->n_words; word++) {
                uint64_t rest = s->words[word];

                if (word == cpu / WORD_BITS)
                        rest &= UINT64_MAX << (cpu % WORD_BITS);
                if (rest)
                        return (int) (word * WORD_BITS) + __builtin_ctzll(rest);
        }
        return -1;
}

bool cpuset_is_empty(const CpuSet *s) {
        return cpuset_next(s, 0) < 0;
}

static uint64_t cpuset_word(const CpuSet *s, size_t word) {
        return word < s->n_words ? s->words[word] : 0;
}

bool cpuset_equal(const CpuSet *a, const CpuSet *b) {
        for (size_t i = 0; i < MAX(a->n_words, b->n_words); i++)
                if (cpuset_word(a, i) != cpuset_word(b, i))
                        return false;
        return true;
}

bool cpuset_intersects(const CpuSet *a, const CpuSet *b) {
        for (size_t i = 0; i < MIN(a->n_words, b->n_words); i++)
                if (a->words[i] & b->words[i])
                        return true;
        return false;
}

bool cpuset_is_subset(const CpuSet *part, const CpuSet *whole) {
        for (size_t i = 0; i < part->n_words; i++)
                if (part->words[i] & ~cpuset_word(whole, i))
                        return false;
        return true;
}

unsigned cpuset_count(const CpuSet *s) {
        unsigned n = 0;

        for (size_t i = 0; i < s->n_words; i++)
                n += (unsigned) __builtin_popcountll(s->words[i]);
        return n;
}

int cpuset_copy(CpuSet *ret, const CpuSet *s) {
        return cpuset_intersect(ret, s, s);
}

int cpuset_intersect(CpuSet *ret, const CpuSet *a, const CpuSet *b) {
        size_t n = MIN(a->n_words, b->n_words);
        uint64_t *words = NULL;

        if (n > 0) {
                words = calloc(n, sizeof(uint64_t));
                if (!words)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                words[i] = a->words[i] & b->words[i];
        *ret = (CpuSet){ .n_words = n, .words = words };
        return 0;
}

/* On failure *p may have moved: the whole list is refused then. */
static int parse_cpu(const char **p, unsigned *ret) {
        unsigned long n = 0;

        if (**p < '0' || **p > '9')
                return -EINVAL;
        for (; **p >= '0' && **p <= '9'; (*p)++) {
                n = n * 10 + (unsigned long) (**p - '0');
                if (n >= CPUSET_CPUS_MAX)
                        return -ERANGE;
        }
        *ret = (unsigned) n;
        return 0;
}

/* Parses "N" or "N-M" up to the comma, the newline or the end, and adds it. */
static int parse_range(CpuSet *s, const char **p) {
        unsigned first, last;
        int r;

        r = parse_cpu(p, &first);
        if (r < 0)
                return r;
        last = first;
        if (**p == '-') {
                (*p)++;
                r = parse_cpu(p, &last);
                if (r < 0)
                        return r;
        }
        if (last < first || (**p && **p != ',' && strcmp(*p, "\n") != 0))
                return -EINVAL;
        return cpuset_add_range(s, first, last);
}

int cpuset_parse(CpuSet *ret, const char *list, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet s = CPUSET_NULL;
        const char *p = list;

        if (strnlen(list, CPUSET_LIST_MAX + 1) > CPUSET_LIST_MAX)
                return refuse(why, REFUSAL_INVALID_ARGS, "a CPU list of more than %u bytes",
                              CPUSET_LIST_MAX);

        while (*p && strcmp(p, "\n") != 0) {
                const char *range = p;
                int r = parse_range(&s, &p);

                if (r == -ENOMEM)
                        return r;
                if (r == -ERANGE)
                        return refuse(why, REFUSAL_INVALID_ARGS, "CPU list: '%.*s' is not below %u",
                                      MIN(32, (int) strcspn(range, ",\n")), range, CPUSET_CPUS_MAX);
                if (r < 0 || strcmp(p, ",") == 0 || strcmp(p, ",\n") == 0)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "CPU list: '%.32s' is not a list like 0-3,8", range);
                if (*p == ',')
                        p++;
        }

        *ret = s;
        s = CPUSET_NULL;
        return 0;
}

static int cpuset_range_end(const CpuSet *s, int first) {
        int last = first;

        while (cpuset_has(s, (unsigned) last + 1))
                last++;
        return last;
}

int cpuset_format(const CpuSet *s, char **ret) {
        size_t n_ranges = 0;
        char *text, *p;

        for (int first = cpuset_next(s, 0); first >= 0; n_ranges++)
                first = cpuset_next(s, (unsigned) cpuset_range_end(s, first) + 1);
        text = p = malloc(n_ranges * sizeof("8190-8191,") + 1);
        if (!text)
                return -ENOMEM;
        *p = '\0';
        for (int first = cpuset_next(s, 0), last; first >= 0;
             first = cpuset_next(s, (unsigned) last + 1)) {
                last = cpuset_range_end(s, first);
                if (p > text)
                        *p++ = ',';
                p += sprintf(p, "%d", first);
                if (last > first)
                        p += sprintf(p, "-%d", last);
        }
        *ret = text;
        return 0;
}
