/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <perfalloc/dbus.h>
#include <perfalloc/sample.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "client/ctl/history.h"
#include "client/ctl/opening.h"
#include "client/ctl/verbs.h"
#include "client/ctl/words.h"
#include "core/event-list.h"
#include "core/reading.h"

/* watch: rates from a sampler: a screen on a terminal, lines elsewhere. */

#define INTERVAL_USEC  USEC_PER_SEC
#define LABEL_MAX      40u
#define BESIDE_HISTORY 25u /* columns of the rate, the quality and the blanks between them */

typedef struct WatchRow {
        char *label, *unit;
        double scale; /* of the event; the rate is in its unit */
        double rate;
        uint64_t quality; /* of the last interval */
        bool known;
} WatchRow;

typedef struct Watch {
        Ctl *c;
        Readings counters;
        char **events; /* that were named; NULL: counters were */
        Opening opening;
        WatchRow *rows;
        History *histories;                    /* of the rates */
        FILE *plot;                            /* where the recording goes; NULL: nowhere */
        struct perfalloc_sample *now, *before; /* before: tick is UINT64_MAX if there is none yet */
        uint64_t first_nsec;
        uint64_t n_shown;
        size_t size;
        int stream;
        bool over;
        int unwritten; /* errno of standard output */
} Watch;

static void watch_done(Watch *w) {
        for (size_t i = 0; w->rows && i < w->counters.n; i++) {
                free(w->rows[i].label);
                free(w->rows[i].unit);
        }
        for (size_t i = 0; w->histories && i < w->counters.n; i++)
                history_done(&w->histories[i]);
        free(w->histories);
        if (w->plot)
                (void) fclose(w->plot);
        free(w->rows);
        free(w->now);
        free(w->before);
        readings_done(&w->counters);
        opening_done(&w->opening);
        w->events = event_list_free(w->events);
        w->stream = close_fd(w->stream);
}

/* ---- rates ---- */

/* The quality of the interval itself: that of a reading goes back to the start of its counter. */
static uint64_t interval_quality(const struct perfalloc_reading *a,
                                 const struct perfalloc_reading *b) {
        uint64_t enabled = b->enabled_nsec - a->enabled_nsec;
        uint64_t running = b->running_nsec - a->running_nsec;

        if (running == 0)
                return PERFALLOC_QUALITY_NOT_COUNTED;
        return running < enabled ? PERFALLOC_QUALITY_SCALED : PERFALLOC_QUALITY_EXACT;
}

/* In an exact interval all was counted. Else the estimate has grown by what it is taken for; it may
 * have been corrected at the same time, but less than was counted it cannot be. */
static double rate_of(const struct perfalloc_reading *a, const struct perfalloc_reading *b,
                      uint64_t quality, uint64_t nsec) {
        uint64_t n = b->value - a->value;

        if (quality == PERFALLOC_QUALITY_SCALED && b->estimate > a->estimate)
                n = MAX(n, b->estimate - a->estimate);
        return (double) n * (double) NSEC_PER_SEC / (double) nsec;
}

/* Whether a value has fallen, as after Reset. */
static bool has_fallen(const struct perfalloc_reading *a, const struct perfalloc_reading *b) {
        return b->value < a->value || b->enabled_nsec < a->enabled_nsec ||
               b->running_nsec < a->running_nsec;
}

static void row_take(WatchRow *row, const struct perfalloc_reading *a,
                     const struct perfalloc_reading *b, uint64_t nsec) {
        row->quality = has_fallen(a, b) ? PERFALLOC_QUALITY_NOT_COUNTED : interval_quality(a, b);
        row->known = row->quality != PERFALLOC_QUALITY_NOT_COUNTED;
        row->rate = row->known ? rate_of(a, b, row->quality, nsec) * row->scale : 0;
}

static void rates_take(Watch *w) {
        uint64_t nsec = w->now->boottime_nsec - w->before->boottime_nsec;

        for (size_t i = 0; i < w->counters.n; i++)
                row_take(&w->rows[i], &w->before->readings[i], &w->now->readings[i], nsec);
}

/* ---- on a terminal ---- */

/* Of the labels: as wide as the longest one, but not too wide for a history beside it. */
static int label_width(const Watch *w) {
        size_t width = 0;

        for (size_t i = 0; i < w->counters.n; i++)
                width = MAX(width, strlen(w->rows[i].label));
        return (int) MIN(width, w->c->width > 2 * LABEL_MAX ? LABEL_MAX : w->c->width / 3);
}

static size_t unit_width(const Watch *w) {
        size_t width = 0;

        for (size_t i = 0; i < w->counters.n; i++)
                if (*w->rows[i].unit)
                        width = MAX(width, 1 + strlen(w->rows[i].unit));
        return width;
}

static void picture_print(Watch *w) {
        bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        int labels = label_width(w);
        size_t beside = (size_t) labels + BESIDE_HISTORY + unit_width(w);
        size_t room = w->c->width - MIN(w->c->width, beside);

        if (w->n_shown > 1)
                printf("\033[%zuA", w->counters.n + 1);
        printf("\033[Kafter %.1f s, tick %" PRIu64 ", missed %" PRIu64 "\n",
               (double) (w->now->boottime_nsec - w->first_nsec) / 1e9, w->now->tick,
               w->now->missed);
        for (size_t i = 0; i < w->counters.n; i++) {
                const WatchRow *row = &w->rows[i];
                _cleanup_free_ char *rate = row->known ? words_rate(row->rate) : strdup("-");

                printf("\033[K%-*.*s %8s%s%s/s %-11s ", labels, labels, row->label, rate ?: "?",
                       *row->unit ? " " : "", row->unit, quality_name((Quality) row->quality));
                history_print(&w->histories[i], room, utf8, stdout);
                putchar('\n');
        }
}

/* ---- elsewhere ---- */

static void lines_print(Watch *w) {
        double seconds = (double) (w->now->boottime_nsec - w->first_nsec) / 1e9;

        if (w->n_shown == 1 && !w->c->options->no_legend)
                printf("TIME COUNTER EVENT VALUE ESTIMATE RATE UNIT QUALITY MISSED\n");
        for (size_t i = 0; i < w->counters.n; i++) {
                const struct perfalloc_reading *reading = &w->now->readings[i];
                const WatchRow *row = &w->rows[i];

                printf("%.3f %" PRIu64 " %s %" PRIu64 " %" PRIu64 " ", seconds,
                       path_number(w->counters.paths[i]), row->label, reading->value,
                       reading->estimate);
                printf(row->known ? "%.3f" : "-", row->rate);
                printf(" %s %s %" PRIu64 "\n", *row->unit ? row->unit : "-",
                       quality_name((Quality) row->quality), w->now->missed);
        }
}

/* One object per line (jsonlines.org), because the output never ends. */
static void json_print(Watch *w) {
        printf("{\"tick\":%" PRIu64 ",\"boottime_nsec\":%" PRIu64 ",\"missed\":%" PRIu64
               ",\"readings\":[",
               w->now->tick, w->now->boottime_nsec, w->now->missed);
        for (size_t i = 0; i < w->counters.n; i++) {
                const struct perfalloc_reading *reading = &w->now->readings[i];
                const WatchRow *row = &w->rows[i];
                _cleanup_free_ char *label = words_json(row->label), *unit = words_json(row->unit);

                printf("%s{\"counter\":%" PRIu64 ",\"event\":%s,\"value\":%" PRIu64
                       ",\"estimate\":%" PRIu64 ",\"rate\":",
                       i > 0 ? "," : "", path_number(w->counters.paths[i]), label ?: "null",
                       reading->value, reading->estimate);
                printf(row->known ? "%.17g" : "null", row->rate);
                printf(",\"scale\":%.17g,\"unit\":%s", row->scale, unit ?: "null");
                printf(",\"quality\":\"%s\"}", quality_name((Quality) row->quality));
        }
        printf("]}\n");
}

/* ---- the stream ---- */

static int histories_add(Watch *w) {
        double seconds = (double) (w->now->boottime_nsec - w->first_nsec) / 1e9;
        int r = 0;

        for (size_t i = 0; i < w->counters.n && r == 0; i++)
                r = history_add(&w->histories[i], seconds, w->rows[i].known ? w->rows[i].rate : NAN,
                                w->plot);
        return r;
}

static int sample_show(Watch *w) {
        int r;

        w->n_shown++;
        rates_take(w);
        r = histories_add(w);
        if (r < 0)
                return r;
        if (w->c->options->json)
                json_print(w);
        else if (w->c->terminal)
                picture_print(w);
        else
                lines_print(w);
        if (fflush(stdout) != 0)
                w->unwritten = errno;
        if (w->unwritten || w->n_shown == w->c->options->count)
                w->over = true;
        return 0;
}

static int on_sample(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Watch *w = userdata;
        struct perfalloc_sample *swap;
        int r = 0;
        ssize_t n = recv(fd, w->now, w->size, MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0) {
                w->over = true;
                return 0;
        }
        if ((size_t) n != w->size || w->now->n_readings != w->counters.n)
                return -EBADMSG;
        if (w->before->tick == UINT64_MAX)
                w->first_nsec = w->now->boottime_nsec;
        else
                r = sample_show(w);
        swap = w->before;
        w->before = w->now;
        w->now = swap;
        return r;
}

static int stream_open(Watch *w, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        uint64_t interval = w->c->options->interval_usec ?: INTERVAL_USEC;
        int fd, r;

        r = ctl_call_new(w->c, &m, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                         "CreateSampler");
        if (r >= 0)
                r = readings_append_paths(&w->counters, m);
        if (r >= 0)
                r = sd_bus_message_append(m, "ta{sv}", interval, 1, "start_usec", "t",
                                          (uint64_t) 0);
        if (r >= 0)
                r = ctl_call(w->c, m, &reply, why);
        if (r == 0)
                r = MIN(sd_bus_message_read(reply, "oh", NULL, &fd), 0);
        if (r != 0)
                return r;
        w->stream = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return w->stream < 0 ? -errno : 0;
}

/* ---- what is watched ---- */

static bool are_counters(char **words) {
        for (char **word = words; *word; word++)
                if ((*word)[strspn(*word, "0123456789")] && **word != '/')
                        return false;
        return true;
}

static int counters_open(Watch *w, Refusal *why) {
        int r = opening_events(w->c, &w->events, why);

        if (r == 0)
                r = opening_prepare(w->c, w->events, 0, &w->opening, why);
        return r == 0 ? opening_open(w->c, &w->opening, &w->counters, why) : r;
}

static int counters_get(Watch *w, Refusal *why) {
        int r = 0;

        if (!are_counters(w->c->words))
                return counters_open(w, why);
        for (char **word = w->c->words; *word && r == 0; word++)
                r = readings_add(&w->counters, *word, why);
        return r;
}

static int rows_make(Watch *w, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r = ctl_fetch_all(w->c, &all, why);

        if (r != 0)
                return r;
        w->size = PERFALLOC_SAMPLE_SIZE(w->counters.n);
        w->rows = calloc(w->counters.n, sizeof(WatchRow));
        w->histories = calloc(w->counters.n, sizeof(History));
        w->now = calloc(1, w->size);
        w->before = calloc(1, w->size);
        if (!w->rows || !w->histories || !w->now || !w->before)
                return -ENOMEM;
        w->before->tick = UINT64_MAX;
        for (size_t i = 0; i < w->counters.n; i++) {
                const Object *o = objects_find(&all, w->counters.paths[i]);
                const char *event = o ? object_text(o, "Event") : "";

                w->rows[i].label = strdup(*event ? event : "?");
                w->rows[i].unit = strdup(o ? object_text(o, "Unit") : "");
                w->rows[i].scale = o ? object_real(o, "Scale") : 1;
                if (!w->rows[i].label || !w->rows[i].unit)
                        return -ENOMEM;
        }
        return 0;
}

/* ---- the recording ---- */

static int plot_open(Watch *w, Refusal *why) {
        const char *file = w->c->options->plot;

        if (!file)
                return 0;
        w->plot = fopen(file, "we");
        return w->plot ? 0 : refuse(why, CTL_E_FAILED, "%s: %s", file, strerror(errno));
}

static int plot_write(Watch *w, Refusal *why) {
        _cleanup_free_ char **labels = calloc(w->counters.n + 1, sizeof(char *));
        int r;

        if (!w->plot)
                return 0;
        if (!labels)
                return -ENOMEM;
        for (size_t i = 0; i < w->counters.n; i++)
                labels[i] = w->rows[i].label;
        (void) setlocale(LC_NUMERIC, "C");
        r = history_plot(w->histories, labels, w->counters.n, w->plot);
        if (fflush(w->plot) != 0 && r == 0)
                r = refuse(why, CTL_E_FAILED, "%s: %s", w->c->options->plot, strerror(errno));
        return r;
}

static int watch_run(Watch *w, Refusal *why) {
        int r = ctl_run(w->c, &w->over), plotted = plot_write(w, why);

        /* the usual end */
        if (r == CTL_E_INTERRUPTED)
                return plotted;
        if (r == 0 && w->unwritten) /* who has read enough closes the pipe */
                r = w->unwritten == EPIPE ? 0 : ctl_refuse_unwritten(w->unwritten, why);
        else if (r == 0 && w->n_shown != w->c->options->count)
                return refuse(why, CTL_E_FAILED, "the sampler has ended: perfallocd has stopped");
        return r ?: plotted;
}

int verb_watch(Ctl *c, Refusal *why) {
        _cleanup_(sd_event_source_unrefp) sd_event_source *source = NULL;
        _cleanup_(watch_done) Watch w = { .c = c, .opening = OPENING_NULL, .stream = -1 };
        int r;

        r = plot_open(&w, why);
        if (r == 0)
                r = ctl_watch_signals(c);
        if (r == 0)
                r = counters_get(&w, why);
        if (r == 0)
                r = rows_make(&w, why);
        if (r == 0)
                r = stream_open(&w, why);
        if (r == 0)
                r = MIN(sd_event_add_io(c->event, &source, w.stream, EPOLLIN, on_sample, &w), 0);
        if (r != 0)
                return r;
        return watch_run(&w, why);
}
