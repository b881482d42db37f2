/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-journal.h>

#include "client/ctl/moment.h"
#include "client/ctl/verbs.h"
#include "client/ctl/words.h"
#include "core/clock.h"
#include "core/message-id.h"

/* log: past holds, denials and obstacles, from the journal. */

static const struct {
        const char *id, *what;
} kinds[] = {
        { LOG_ID_HOLD_GRANTED, "granted" },       { LOG_ID_HOLD_ENDED, "ended" },
        { LOG_ID_HOLD_OBSTRUCTED, "obstructed" }, { LOG_ID_DENIED, "denied" },
        { LOG_ID_DEGRADED, "degraded" },
};

static const Column columns[] = {
        { "TIME", COLUMN_TIME },
        { "WHAT", COLUMN_STATE },
        { "HOLD", COLUMN_NUMBER },
        { "USER", COLUMN_USER },
        { "PID", COLUMN_NUMBER, .drop = 2 },
        { "CPUS", COLUMN_TEXT, .drop = 3 },
        { "CONFIRMED", COLUMN_TEXT, .detail = true },
        { "LATENCY", COLUMN_SPAN, .drop = 4 },
        { "RESULT", COLUMN_TEXT, .drop = 1 },
        { "REASON", COLUMN_TEXT, .cut = true },
        { "MESSAGE", COLUMN_TEXT, .detail = true },
};

static const TableSpec spec = { "log", NULL, columns, ELEMENTSOF(columns) };

/* ---- which entries ---- */

typedef struct Range {
        uint64_t since_usec, until_usec;
        char *match; /* PERFALLOC_UID=; NULL: all users */
} Range;

static void range_done(Range *r) {
        free(r->match);
}

static int read_moment(const char *option, const char *text, uint64_t *ret, Refusal *why) {
        if (!text || moment_parse(text, now_usec(CLOCK_REALTIME), ret) == 0)
                return 0;
        return refuse(why, CTL_E_USAGE,
                      "--%s: invalid time '%.64s' (for example today, 14:30, 2026-11-22, 2h)",
                      option, text);
}

static int read_user(const char *name, char **ret, Refusal *why) {
        const struct passwd *user = getpwnam(name);
        uint64_t uid = user ? user->pw_uid : 0;

        if (!user && (!*name || name[strspn(name, "0123456789")]))
                return refuse(why, CTL_E_UNKNOWN, "there is no user '%.64s'", name);
        if (!user)
                uid = strtoull(name, NULL, 10);
        *ret = words_format("PERFALLOC_UID=%" PRIu64, uid);
        return *ret ? 0 : -ENOMEM;
}

static int range_read(const CtlOptions *o, Range *ret, Refusal *why) {
        int r;

        *ret = (Range){ .until_usec = UINT64_MAX };
        r = read_moment("since", o->since, &ret->since_usec, why);
        if (r == 0)
                r = read_moment("until", o->until, &ret->until_usec, why);
        return r == 0 && o->user ? read_user(o->user, &ret->match, why) : r;
}

/* Anybody may write entries with any MESSAGE_ID, but the journal itself adds the unit
 * (systemd.journal-fields(7)). */
static int journal_select(sd_journal *j, const Range *range) {
        int r = sd_journal_add_match(j, "_SYSTEMD_UNIT=perfallocd.service", 0);

        for (size_t i = 0; i < ELEMENTSOF(kinds) && r >= 0; i++) {
                _cleanup_free_ char *match = words_format("MESSAGE_ID=%s", kinds[i].id);

                r = match ? sd_journal_add_match(j, match, 0) : -ENOMEM;
        }
        if (r >= 0 && range->match)
                r = sd_journal_add_match(j, range->match, 0);
        return r;
}

/* ---- one entry ---- */

/* A field without its name; "" if the entry has none. The text ends at a null byte, if it has one.
 */
static char *field(sd_journal *j, const char *name) {
        const void *data;
        size_t size, skip = strlen(name) + 1;

        if (sd_journal_get_data(j, name, &data, &size) < 0 || size < skip)
                return strdup("");
        return strndup((const char *) data + skip, size - skip);
}

static int put_field(Table *t, const char *column, sd_journal *j, const char *name) {
        _cleanup_free_ char *text = field(j, name);

        if (!text)
                return -ENOMEM;
        for (char *p = text; *p; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        *p = '?';
        if (*text)
                table_put_text(t, column, text);
        return 0;
}

static int put_number_field(Table *t, const char *column, sd_journal *j, const char *name) {
        _cleanup_free_ char *text = field(j, name);

        if (!text)
                return -ENOMEM;
        if (*text && !text[strspn(text, "0123456789")])
                table_put_number(t, column, strtoull(text, NULL, 10));
        return 0;
}

static int put_what(Table *t, sd_journal *j) {
        _cleanup_free_ char *id = field(j, "MESSAGE_ID");

        if (!id)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (strcmp(kinds[i].id, id) == 0)
                        table_put_text(t, "WHAT", kinds[i].what);
        return 0;
}

static int add_entry(Table *t, sd_journal *j, uint64_t usec) {
        static const struct {
                const char *column, *field;
                int (*put)(Table *t, const char *column, sd_journal *j, const char *name);
        } fields[] = {
                { "HOLD", "PERFALLOC_HOLD", put_number_field },
                { "USER", "PERFALLOC_UID", put_number_field },
                { "PID", "PERFALLOC_PID", put_number_field },
                { "CPUS", "PERFALLOC_CPUS", put_field },
                { "CONFIRMED", "PERFALLOC_CONFIRMED", put_field },
                { "LATENCY", "PERFALLOC_LATENCY_USEC", put_number_field },
                { "RESULT", "PERFALLOC_RESULT", put_field },
                { "RESULT", "PERFALLOC_ACTION", put_field },
                { "REASON", "PERFALLOC_REASON", put_field },
                { "MESSAGE", "MESSAGE", put_field },
        };
        int r;

        table_add_row(t);
        table_put_number(t, "TIME", usec);
        r = put_what(t, j);
        for (size_t i = 0; i < ELEMENTSOF(fields) && r == 0; i++)
                r = fields[i].put(t, fields[i].column, j, fields[i].field);
        return r;
}

/* ---- all ---- */

/* The first entry of the range, or so many before its end. */
static int journal_begin(sd_journal *j, const Range *range, uint32_t count) {
        int r;

        if (count == 0)
                return sd_journal_seek_realtime_usec(j, range->since_usec);
        r = range->until_usec == UINT64_MAX ? sd_journal_seek_tail(j)
                                            : sd_journal_seek_realtime_usec(j, range->until_usec);
        if (r < 0)
                return r;
        return sd_journal_previous_skip(j, (uint64_t) count + 1);
}

static int journal_fill(Table *t, sd_journal *j, const Range *range, uint32_t count) {
        uint64_t usec;
        int r = journal_begin(j, range, count);

        /* fewer than were asked for: the first one is the current one already */
        if (count > 0 && r >= 0 && (uint32_t) r <= count)
                r = sd_journal_seek_head(j);
        while (r >= 0 && (r = sd_journal_next(j)) > 0) {
                r = sd_journal_get_realtime_usec(j, &usec);
                if (r < 0 || usec > range->until_usec)
                        break;
                if (usec >= range->since_usec)
                        r = add_entry(t, j, usec);
        }
        return MIN(r, 0);
}

int verb_log(Ctl *c, Refusal *why) {
        _cleanup_(range_done) Range range = {};
        _cleanup_(table_freep) Table *t = NULL;
        sd_journal *j = NULL;
        int r = range_read(c->options, &range, why);

        if (r == 0)
                r = table_new(c, &spec, &t);
        if (r != 0)
                return r;
        r = sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY);
        if (r >= 0)
                r = journal_select(j, &range);
        if (r >= 0)
                r = journal_fill(t, j, &range, c->options->count);
        sd_journal_close(j);
        if (r < 0)
                return refuse(why, CTL_E_FAILED, "cannot read the journal: %s", strerror(-r));
        if (table_rows(t) == 0 && !c->options->json && !c->options->no_legend)
                printf("No entries. (The system's journal is readable by root and by members of "
                       "the group systemd-journal.)\n");
        return table_rows(t) > 0 || c->options->json ? table_print(t, stdout) : 0;
}
