/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "message-size.h"

#include <string.h>

#define DESCRIPTOR_WEIGHT 1024u /* an open file costs the kernel about as much */
#define DEPTH_MAX         64u   /* the bus rejects deeper nesting */

/* Arrays of these types are read in one piece. */
static const char trivial[] = "ynqiuxtd";
static const char texts[] = "sog";

static int weigh_basic(sd_bus_message *m, char type, uint64_t *weight) {
        union {
                const char *text;
                uint64_t number;
        } value;
        int r = sd_bus_message_read_basic(m, type, &value);

        if (r >= 0)
                *weight += type == 'h'                   ? DESCRIPTOR_WEIGHT
                           : strchr(texts, type) != NULL ? strlen(value.text) + sizeof(uint64_t)
                                                         : sizeof(uint64_t);
        return r;
}

static int weigh_array(sd_bus_message *m, char type, uint64_t *weight) {
        const void *data;
        size_t size;
        int r = sd_bus_message_read_array(m, type, &data, &size);

        *weight += r >= 0 ? size : 0;
        return r;
}

/* One string after another: libsystemd has no faster way. */
static int weigh_texts(sd_bus_message *m, char type, const char *contents, uint64_t max,
                       uint64_t *weight) {
        const char *text;
        int r = sd_bus_message_enter_container(m, type, contents);

        while (r >= 0 && *weight <= max && (r = sd_bus_message_read_basic(m, *contents, &text)) > 0)
                *weight += strlen(text) + sizeof(uint64_t);
        if (r < 0 || *weight > max) /* reading ends here */
                return r;
        return sd_bus_message_exit_container(m);
}

static int weigh(sd_bus_message *m, uint64_t max, unsigned depth, uint64_t *weight);

static int weigh_container(sd_bus_message *m, char type, const char *contents, uint64_t max,
                           unsigned depth, uint64_t *weight) {
        int r;

        if (depth == DEPTH_MAX)
                return -EBADMSG;
        r = sd_bus_message_enter_container(m, type, contents);
        if (r > 0)
                r = weigh(m, max, depth + 1, weight);
        if (r < 0 || *weight > max) /* reading ends here */
                return r;
        return sd_bus_message_exit_container(m);
}

static int weigh(sd_bus_message *m, uint64_t max, unsigned depth, uint64_t *weight) {
        const char *contents;
        char type;
        int r = 0;

        while (*weight <= max && (r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                if (type == 'a' && strlen(contents) == 1 && strchr(trivial, *contents))
                        r = weigh_array(m, *contents, weight);
                else if (type == 'a' && strlen(contents) == 1 && strchr(texts, *contents))
                        r = weigh_texts(m, type, contents, max, weight);
                else if (strchr("aver", type))
                        r = weigh_container(m, type, contents, max, depth, weight);
                else
                        r = weigh_basic(m, type, weight);
                if (r < 0)
                        return r;
        }
        return *weight <= max ? r : 0;
}

int message_size(sd_bus_message *m, uint64_t max, uint64_t *ret) {
        const char *path = sd_bus_message_get_path(m);
        uint64_t weight = path ? strlen(path) : 0;
        int r = 0;

        if (!sd_bus_message_is_empty(m)) {
                r = weigh(m, max, 0, &weight);
                if (r >= 0)
                        r = sd_bus_message_rewind(m, true);
        }
        if (r < 0)
                return r;
        *ret = MIN(weight, max + 1);
        return 0;
}
