/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "message-size.h"

#include <string.h>

#define DESCRIPTOR_WEIGHT 1024u /* an open file costs the kernel about as much */
#define DEPTH_MAX         64u   /* the bus rejects deeper nesting */

/* Arrays of these types are read in one piece. */
static const char trivial[] = "ynqiuxtd";
static const char texts[] = "sog";

typedef struct Weighing {
        sd_bus_message *m;
        uint64_t max, weight;
        unsigned argument; /* from 1 up */
        const char *key;   /* of the option that is read, NULL: none */
        Refusal *why;
} Weighing;

/* libsystemd looks at the index only now; the bus does not. */
static int refuse_descriptor(const Weighing *w) {
        static const char words[] = "refers to a descriptor that did not come with the message";

        return w->key ? refuse(w->why, REFUSAL_INVALID_ARGS, "option '%.64s' %s", w->key, words)
                      : refuse(w->why, REFUSAL_INVALID_ARGS, "argument %u %s", w->argument, words);
}

static int weigh_basic(Weighing *w, char type, bool key) {
        union {
                const char *text;
                uint64_t number;
        } value;
        int r = sd_bus_message_read_basic(w->m, type, &value);

        if (r == -EBADMSG && type == 'h')
                return refuse_descriptor(w);
        if (r < 0)
                return r;
        w->weight += type == 'h'                   ? DESCRIPTOR_WEIGHT
                     : strchr(texts, type) != NULL ? strlen(value.text) + sizeof(uint64_t)
                                                   : sizeof(uint64_t);
        if (key && type == 's')
                w->key = value.text;
        return 0;
}

static int weigh_array(Weighing *w, char type) {
        const void *data;
        size_t size;
        int r = sd_bus_message_read_array(w->m, type, &data, &size);

        w->weight += r >= 0 ? size : 0;
        return MIN(r, 0);
}

/* One string after another: libsystemd has no faster way. */
static int weigh_texts(Weighing *w, char type, const char *contents) {
        const char *text;
        int r = sd_bus_message_enter_container(w->m, type, contents);

        while (r >= 0 && w->weight <= w->max &&
               (r = sd_bus_message_read_basic(w->m, *contents, &text)) > 0)
                w->weight += strlen(text) + sizeof(uint64_t);
        if (r >= 0 && w->weight <= w->max) /* else reading ends here */
                r = sd_bus_message_exit_container(w->m);
        return MIN(r, 0);
}

static int weigh(Weighing *w, char container, unsigned depth);

static int weigh_container(Weighing *w, char type, const char *contents, unsigned depth) {
        int r;

        if (depth == DEPTH_MAX)
                return -EBADMSG;
        r = sd_bus_message_enter_container(w->m, type, contents);
        if (r > 0)
                r = weigh(w, type, depth + 1);
        if (r == 0 && w->weight <= w->max) /* else reading ends here */
                r = MIN(sd_bus_message_exit_container(w->m), 0);
        return r;
}

static int weigh_next(Weighing *w, char type, const char *contents, char container,
                      unsigned depth) {
        bool simple = type == 'a' && strlen(contents) == 1;

        if (simple && strchr(trivial, *contents))
                return weigh_array(w, *contents);
        if (simple && strchr(texts, *contents))
                return weigh_texts(w, type, contents);
        return strchr("aver", type) ? weigh_container(w, type, contents, depth)
                                    : weigh_basic(w, type, container == 'e' && depth == 2);
}

/* The contents of the container; '\0': the message. */
static int weigh(Weighing *w, char container, unsigned depth) {
        const char *contents;
        char type;
        int r = 0;

        while (w->weight <= w->max && (r = sd_bus_message_peek_type(w->m, &type, &contents)) > 0) {
                if (depth == 0) {
                        w->argument++;
                        w->key = NULL;
                }
                r = weigh_next(w, type, contents, container, depth);
                if (r != 0)
                        return r;
        }
        return w->weight <= w->max ? r : 0;
}

int message_size(sd_bus_message *m, uint64_t max, uint64_t *ret, Refusal *why) {
        const char *path = sd_bus_message_get_path(m);
        Weighing w = { .m = m, .max = max, .weight = path ? strlen(path) : 0, .why = why };
        int r = 0;

        if (!sd_bus_message_is_empty(m)) {
                r = weigh(&w, '\0', 0);
                if (r == 0)
                        r = MIN(sd_bus_message_rewind(m, true), 0);
        }
        if (r != 0)
                return r;
        *ret = MIN(w.weight, max + 1);
        return 0;
}
