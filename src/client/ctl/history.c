/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history.h"

#include <math.h>
#include <string.h>

#include "client/ctl/words.h"

#define SHOWN_MAX 512u /* points that a terminal can show */

void history_done(History *h) {
        free(h->points);
        *h = HISTORY_NULL;
}

static void history_forget(History *h) {
        size_t drop = h->n - SHOWN_MAX;

        memmove(h->points, h->points + drop, SHOWN_MAX * sizeof(HistoryPoint));
        h->n = SHOWN_MAX;
}

int history_add(History *h, double seconds, double value, bool keep) {
        if (!keep && h->n >= 2 * SHOWN_MAX)
                history_forget(h);
        if (h->n == h->room) {
                size_t room = MAX(64u, 2 * h->room);
                HistoryPoint *more = reallocarray(h->points, room, sizeof(HistoryPoint));

                if (!more)
                        return -ENOMEM;
                h->points = more;
                h->room = room;
        }
        h->points[h->n++] = (HistoryPoint){ .seconds = seconds, .value = value };
        return 0;
}

static double highest(const HistoryPoint *points, size_t n) {
        double result = 0;

        for (size_t i = 0; i < n; i++)
                if (points[i].value > result) /* false for NAN */
                        result = points[i].value;
        return result;
}

/* ---- on a terminal ---- */

#define LEVELS 8u

void history_print(const History *h, size_t width, bool utf8, FILE *f) {
        static const char ascii[LEVELS] = { '_', '.', ':', '-', '=', '+', '*', '#' };
        size_t first = h->n > width ? h->n - width : 0;
        double top = highest(h->points + first, h->n - first);

        for (size_t i = first; i < h->n; i++) {
                double value = h->points[i].value;
                unsigned level;

                if (isnan(value)) {
                        fputc(' ', f);
                        continue;
                }
                level = top > 0 ? (unsigned) (value / top * (LEVELS - 1) + 0.5) : 0;
                level = MIN(level, LEVELS - 1);
                if (utf8)
                        fprintf(f, "\xe2\x96%c", 0x81 + (int) level); /* U+2581 to U+2588 */
                else
                        fputc(ascii[level], f);
        }
}

/* ---- as a picture ---- */

#define LEFT   80
#define RIGHT  20
#define WIDTH  800
#define PANEL  110 /* of each history, with its label */
#define HEIGHT 80  /* of its area */
#define TOP    24
#define BOTTOM 40
#define TICKS  5

typedef struct Frame {
        double from, to; /* seconds */
} Frame;

static Frame frame_of(const History *all, size_t n) {
        Frame frame = { .from = INFINITY, .to = -INFINITY };

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < all[i].n; k++) {
                        frame.from = MIN(frame.from, all[i].points[k].seconds);
                        frame.to = MAX(frame.to, all[i].points[k].seconds);
                }
        if (!(frame.to > frame.from))
                frame = (Frame){ .from = isfinite(frame.from) ? frame.from : 0,
                                 .to = frame.from + 1 };
        return frame;
}

static double x_of(const Frame *frame, double seconds) {
        return LEFT + (seconds - frame->from) / (frame->to - frame->from) * (WIDTH - LEFT - RIGHT);
}

static void print_text(const char *text, FILE *f) {
        for (const char *p = text; *p; p++)
                switch (*p) {
                case '<':
                        fputs("&lt;", f);
                        break;
                case '>':
                        fputs("&gt;", f);
                        break;
                case '&':
                        fputs("&amp;", f);
                        break;
                default:
                        fputc(*p, f);
                }
}

/* A line is interrupted where nothing is known. */
static void plot_line(const History *h, const Frame *frame, double top, double bottom_y, FILE *f) {
        bool drawing = false;

        fputs("<path class=\"line\" d=\"", f);
        for (size_t i = 0; i < h->n; i++) {
                double value = h->points[i].value;

                if (isnan(value)) {
                        drawing = false;
                        continue;
                }
                fprintf(f, "%s%.1f %.1f ", drawing ? "L" : "M", x_of(frame, h->points[i].seconds),
                        bottom_y - (top > 0 ? value / top : 0) * HEIGHT);
                drawing = true;
        }
        fputs("\"/>\n", f);
}

static int plot_panel(const History *h, const char *label, const Frame *frame, size_t place,
                      FILE *f) {
        double y = TOP + (double) place * PANEL + (PANEL - HEIGHT), top = highest(h->points, h->n);
        _cleanup_free_ char *words = words_rate(top);

        if (!words)
                return -ENOMEM;
        fprintf(f, "<text x=\"%d\" y=\"%.0f\" class=\"label\">", LEFT, y - 6);
        print_text(label, f);
        fprintf(f,
                "</text>\n<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\" class=\"area\"/>\n"
                "<text x=\"%d\" y=\"%.0f\" class=\"tick\" text-anchor=\"end\">%s/s</text>\n"
                "<text x=\"%d\" y=\"%.0f\" class=\"tick\" text-anchor=\"end\">0</text>\n",
                LEFT, y, WIDTH - LEFT - RIGHT, HEIGHT, LEFT - 6, y + 10, words, LEFT - 6,
                y + HEIGHT);
        plot_line(h, frame, top, y + HEIGHT, f);
        return 0;
}

static void plot_ticks(const Frame *frame, double y, FILE *f) {
        for (int i = 0; i <= TICKS; i++) {
                double seconds = frame->from + (frame->to - frame->from) * i / TICKS;

                fprintf(f,
                        "<text x=\"%.1f\" y=\"%.0f\" class=\"tick\" text-anchor=\"middle\">%.4g "
                        "s</text>\n",
                        x_of(frame, seconds), y, seconds);
        }
}

int history_plot(const History *all, char *const *labels, size_t n, FILE *f) {
        Frame frame = frame_of(all, n);
        int height = TOP + (int) n * PANEL + BOTTOM, r = 0;

        fprintf(f,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<style>.area { fill: #f4f4f4; stroke: #999 } .label { font-weight: bold } "
                ".tick { fill: #555; font-size: 10px } "
                ".line { fill: none; stroke: #1565c0; stroke-width: 1.5 }</style>\n"
                "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
                WIDTH, height, WIDTH, height);
        for (size_t i = 0; i < n && r == 0; i++)
                r = plot_panel(&all[i], labels[i], &frame, i, f);
        plot_ticks(&frame, TOP + (double) n * PANEL + 18, f);
        fputs("</svg>\n", f);
        return r;
}
