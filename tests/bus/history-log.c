/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history-log.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

TakeLog *log_new(void) {
        void *log = mmap(NULL, sizeof(TakeLog), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0);

        g_assert_true(log != MAP_FAILED);
        return log;
}

void log_clear(TakeLog *log) {
        atomic_store(&log->n, 0);
}

uint64_t log_now(void) {
        return (uint64_t) g_get_real_time();
}

/* ---- what was open ---- */

Take *log_open(TakeLog *log, const Take *what) {
        unsigned i = atomic_fetch_add(&log->n, 1);
        Take *t = &log->takes[i];

        if (i >= LOG_TAKES_MAX)
                _exit(126);
        *t = *what;
        t->opened = t->closing = t->closed = LOG_NEVER;
        t->opening = log_now();
        return t;
}

void log_close(Take *t) {
        if (t->closing == LOG_NEVER)
                t->closing = log_now();
}

void log_drop_cpu(TakeLog *log, unsigned cpu) {
        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                Take *t = &log->takes[i];

                if (t->cpu != cpu || t->of_service)
                        continue;
                if (t->when == TAKE_NOW_AND_THEN)
                        t->roams = true;
                else if (t->when == TAKE_ALWAYS) /* what is being opened may miss all that */
                        t->when = t->opened == LOG_NEVER ? TAKE_NOW_AND_THEN : TAKE_NEVER;
        }
}

/* At the least, or at the most. */
static bool take_is_open(const Take *t, uint64_t at, bool most) {
        return most ? t->opening <= at && at < t->closed : t->opened <= at && at < t->closing;
}

static bool take_counts(const Take *t, unsigned cpu, uint64_t at, bool most) {
        if (t->when == TAKE_NEVER || (t->when == TAKE_NOW_AND_THEN && !most))
                return false;
        return (t->cpu == cpu || t->roams || t->when == TAKE_OF_TASK) && take_is_open(t, at, most);
}

/* ---- what is needed ---- */

#define USERS_MAX 8u

/* Of one user on one CPU. */
typedef struct Account {
        uid_t uid;
        unsigned promised;
        unsigned instructions, cycles; /* opened since */
} Account;

typedef struct Sheet {
        bool all;            /* the hold, or another one, has all of the CPU */
        bool perhaps_others; /* a stranger's slots are behind a holder's: nobody can tell */
        Account strangers;
        size_t n;
        Account holders[USERS_MAX];
} Sheet;

/* When the user's oldest claim there was granted; LOG_NEVER: there is none. */
static uint64_t claims_since(const Demand *d, uid_t uid, unsigned cpu) {
        uint64_t since = LOG_NEVER;

        for (size_t i = 0; i < d->n_claims; i++)
                if (d->claims[i].uid == uid && d->claims[i].cpus & 1u << cpu)
                        since = MIN(since, d->claims[i].granted);
        return since;
}

static Account *sheet_find(Sheet *s, uid_t uid) {
        size_t i = 0;

        while (i < s->n && s->holders[i].uid != uid)
                i++;
        if (i == s->n) {
                g_assert_cmpuint(i, <, USERS_MAX);
                s->holders[s->n++] = (Account){ .uid = uid };
        }
        return &s->holders[i];
}

/* What a user opened through the service in a hold that has ended is older than their next one; but
 * it was pinned, and has perhaps been opened anew since, without being pinned. */
static bool take_is_holders(const Demand *d, const Take *t, unsigned cpu, bool most) {
        uint64_t since = claims_since(d, t->uid, cpu);

        return t->opening > since || (!most && t->of_service && since != LOG_NEVER);
}

static void sheet_add_take(Sheet *s, const Demand *d, const Take *t, unsigned cpu, bool most) {
        Account *a = take_is_holders(d, t, cpu, most) ? sheet_find(s, t->uid) : &s->strangers;

        a->instructions += t->instructions;
        a->cycles += t->cycles;
}

/* Of tasks' breakpoints only the greatest number matters: each has its own beside the others. */
static void sheet_read(Sheet *s, const TakeLog *log, const Demand *d, unsigned cpu, uint64_t at,
                       bool most) {
        const Take *greatest = NULL;

        *s = (Sheet){ .all = d->counters == 0 };
        for (size_t i = 0; i < d->n_claims; i++) {
                const Claim *c = &d->claims[i];

                if (!(c->cpus & 1u << cpu))
                        continue;
                s->all |= c->counters == 0;
                sheet_find(s, c->uid)->promised += c->counters;
        }
        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                const Take *t = &log->takes[i];

                if (!take_counts(t, cpu, at, most))
                        continue;
                if (t->when != TAKE_OF_TASK)
                        sheet_add_take(s, d, t, cpu, most);
                else if (!greatest || t->instructions > greatest->instructions)
                        greatest = t;
                s->perhaps_others |=
                        t->when == TAKE_OF_TASK && t->opening <= claims_since(d, t->uid, cpu);
        }
        if (greatest)
                sheet_add_take(s, d, greatest, cpu, most);
}

/* What a user has open, as far as there are counters for it, and what was promised to them and is
 * not. */
static unsigned account_needs(const Account *a, const Machine *m) {
        unsigned most = m->general + (m->cycles && a->cycles > 0);

        return MAX(a->promised, MIN(a->instructions + a->cycles, most));
}

/* The general counters that all need at once. One event of cycles has a counter of its own: whose
 * it is nobody can choose, which saves one general counter, or none where its user was promised one
 * in place of it. */
static unsigned sheet_needs(const Sheet *s, const Machine *m, bool most) {
        unsigned sum = account_needs(&s->strangers, m);
        bool saves = s->strangers.cycles > 0, wastes = false;

        for (size_t i = 0; i < s->n; i++) {
                const Account *a = &s->holders[i];
                bool beyond = a->instructions + a->cycles > a->promised;

                sum += account_needs(a, m);
                saves |= a->cycles > 0 && beyond;
                wastes |= a->cycles > 0 && !beyond;
        }
        return sum - (m->cycles && saves && !(most && wastes));
}

static bool cpu_fits(const TakeLog *log, const Machine *m, const Demand *d, unsigned cpu,
                     uint64_t at, bool most) {
        Sheet s;

        sheet_read(&s, log, d, cpu, at, most);
        if (s.all &&
            (s.strangers.instructions + s.strangers.cycles > 0 || (most && s.perhaps_others)))
                return false;
        return sheet_needs(&s, m, most) + d->counters <= m->general;
}

unsigned log_needs(const TakeLog *log, const Machine *m, const Demand *d, unsigned cpu,
                   bool *ret_cycles) {
        unsigned open = 0, cycles = 0;
        Sheet s;

        sheet_read(&s, log, d, cpu, log_now(), true);
        for (size_t i = 0; i < s.n; i++) {
                open += s.holders[i].instructions + s.holders[i].cycles;
                cycles += s.holders[i].cycles;
        }
        open += s.strangers.instructions + s.strangers.cycles;
        cycles += s.strangers.cycles;
        open -= m->cycles && cycles > 0;
        *ret_cycles = s.all && m->cycles && cycles == 0 && open <= m->general;
        if (s.all)
                return m->general - MIN(open, m->general);
        return sheet_needs(&s, m, false) + d->counters - open;
}

/* ---- verdicts ---- */

typedef struct Found {
        bool ever, always; /* it fits, at the least and at the most that may have been open */
} Found;

static void found_look(Found *f, const TakeLog *log, const Machine *m, const Demand *d,
                       unsigned cpu, uint64_t at) {
        f->ever |= cpu_fits(log, m, d, cpu, at, false);
        f->always &= cpu_fits(log, m, d, cpu, at, true);
}

/* At the beginning, and wherever something changes. */
static Found found_in(const TakeLog *log, const Machine *m, const Demand *d, unsigned cpu,
                      uint64_t from, uint64_t until) {
        Found f = { .always = true };

        found_look(&f, log, m, d, cpu, from);
        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                const Take *t = &log->takes[i];
                const uint64_t changes[] = { t->opening, t->opened, t->closing, t->closed };

                for (size_t k = 0; k < G_N_ELEMENTS(changes); k++)
                        if (changes[k] > from && changes[k] <= until)
                                found_look(&f, log, m, d, cpu, changes[k]);
        }
        return f;
}

Verdict log_judge_grant(const TakeLog *log, const Machine *m, const Demand *d, uint64_t granted) {
        Verdict v = d->cpus == 0 ? VERDICT_FALSE : VERDICT_TRUE;

        for (unsigned cpu = 0; cpu < 32; cpu++) {
                Found f;

                if (!(d->cpus & 1u << cpu))
                        continue;
                f = found_in(log, m, d, cpu, granted - LOG_RACE_USEC, granted + LOG_RACE_USEC);
                if (!f.ever)
                        return VERDICT_FALSE;
                if (!f.always)
                        v = VERDICT_RACE;
        }
        return v;
}

/* What holders of the CPU opened by themselves is told from what strangers there have by numbers
 * alone: nobody sees on which CPUs events count. Who has a hold of another CPU is a stranger on
 * this one; who has events older than their hold is one with all of them. */
static bool cpu_is_unknowable(const TakeLog *log, const Demand *d, unsigned cpu, uint64_t from,
                              uint64_t until) {
        bool holders = false, strangers = false;

        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                const Take *t = &log->takes[i];
                bool stranger = t->opening <= claims_since(d, t->uid, cpu);

                if (t->opening > until || t->closed < from || t->of_service)
                        continue;
                holders |= !stranger;
                strangers |= stranger;
        }
        return holders && strangers;
}

static bool log_is_unknowable(const TakeLog *log, const Demand *d, uint64_t from, uint64_t until) {
        for (unsigned cpu = 0; cpu < 32; cpu++)
                if (d->cpus & 1u << cpu && cpu_is_unknowable(log, d, cpu, from, until))
                        return true;
        return false;
}

Verdict log_judge_refusal(const TakeLog *log, const Machine *m, const Demand *d, uint64_t from,
                          uint64_t until) {
        if (d->cpus == 0)
                return VERDICT_TRUE;
        for (unsigned cpu = 0; cpu < 32; cpu++)
                if (d->cpus & 1u << cpu && !found_in(log, m, d, cpu, from, until).always)
                        return VERDICT_TRUE;
        return log_is_unknowable(log, d, from, until) ? VERDICT_UNKNOWABLE : VERDICT_FALSE;
}

bool log_is_still(const TakeLog *log, uint64_t from, uint64_t until) {
        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                const Take *t = &log->takes[i];
                bool was = t->opened < from && t->closing == LOG_NEVER;

                if (t->closed < from || (was && t->when != TAKE_NOW_AND_THEN))
                        continue;
                if (t->opening <= until)
                        return false;
        }
        return true;
}

bool log_had_open(const TakeLog *log, pid_t pid, unsigned cpus, uint64_t from, uint64_t until) {
        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                const Take *t = &log->takes[i];

                if (t->pid == pid && t->opening <= until && t->closed >= from &&
                    (cpus == 0 || cpus & 1u << t->cpu || t->roams || t->when == TAKE_OF_TASK))
                        return true;
        }
        return false;
}

bool log_has_foreign(const TakeLog *log, uid_t uid, unsigned cpus) {
        for (unsigned i = 0; i < atomic_load(&log->n); i++) {
                const Take *t = &log->takes[i];

                if (t->of_service && t->uid != uid && t->closed == LOG_NEVER && cpus & 1u << t->cpu)
                        return true;
        }
        return false;
}
