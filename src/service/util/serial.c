/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serial.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

#define SERIAL_FILE  "serials"
#define SERIAL_BLOCK 64u

/* One line of fixed width per kind: one pwrite() of constant length writes the file. */
#define SERIAL_LINE 21
#define SERIAL_MAX  ((uint64_t) INT64_MAX) /* larger values are errors */

static int serial_store(const Serial *s, const uint64_t *values) {
        char text[_SERIAL_KIND_MAX * SERIAL_LINE + 1];
        ssize_t n;

        for (int kind = 0; kind < _SERIAL_KIND_MAX; kind++)
                (void) snprintf(text + kind * SERIAL_LINE, SERIAL_LINE + 1, "%020" PRIu64 "\n",
                                values[kind]);
        n = pwrite(s->fd, text, sizeof(text) - 1, 0);
        if (n < 0)
                return -errno;
        return n == sizeof(text) - 1 ? 0 : -EIO;
}

static int serial_load(Serial *s) {
        char text[_SERIAL_KIND_MAX * SERIAL_LINE + 1] = {};
        ssize_t n = pread(s->fd, text, sizeof(text) - 1, 0);

        if (n < 0)
                return -errno;
        if (n == 0)
                return 0; /* new since boot */
        if (n != sizeof(text) - 1)
                return -EBADMSG;
        for (int kind = 0; kind < _SERIAL_KIND_MAX; kind++) {
                const char *line = text + kind * SERIAL_LINE;
                uint64_t value = strtoull(line, NULL, 10);

                if (strspn(line, "0123456789") != SERIAL_LINE - 1 ||
                    line[SERIAL_LINE - 1] != '\n' || value == 0 || value > SERIAL_MAX)
                        return -EBADMSG;
                s->next[kind] = value;
        }
        return 0;
}

static int serial_open_file(Serial *s, const char *directory) {
        _cleanup_close_ int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (dir < 0)
                return -errno;
        s->fd = openat(dir, SERIAL_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        return s->fd < 0 ? -errno : serial_load(s);
}

/* Without the file, the numbers used since boot are unknown. Start from the microseconds since
 * boot, which no earlier run can have reached. */
static void serial_start_from_clock(Serial *s) {
        uint64_t usec = now_usec(CLOCK_BOOTTIME);

        s->fd = close_fd(s->fd);
        for (int kind = 0; kind < _SERIAL_KIND_MAX; kind++)
                s->next[kind] = MAX(s->next[kind], usec);
}

int serial_open(Serial *s, const char *directory) {
        int r = -ENOENT;

        *s = (Serial){ .fd = -1 };
        for (int kind = 0; kind < _SERIAL_KIND_MAX; kind++)
                s->next[kind] = 1;
        if (directory)
                r = serial_open_file(s, directory);
        if (r < 0)
                serial_start_from_clock(s);
        memcpy(s->reserved, s->next, sizeof(s->next));
        return r;
}

void serial_close(Serial *s) {
        if (s->fd >= 0)
                (void) serial_store(s, s->next);
        s->fd = close_fd(s->fd);
}

uint64_t serial_next(Serial *s, SerialKind kind) {
        if (s->fd >= 0 && s->next[kind] >= s->reserved[kind]) {
                s->reserved[kind] = s->next[kind] + SERIAL_BLOCK;
                /* The next run must not use numbers that are not reserved in the file. */
                if (serial_store(s, s->reserved) < 0)
                        serial_start_from_clock(s);
        }
        return s->next[kind]++;
}
