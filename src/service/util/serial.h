/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The numbers in object paths: from 1 up, never used twice while the machine is up, also across
 * restarts, idle exits and stops. The next ones are kept in a file of the preserved runtime
 * directory; numbers are reserved there in blocks before they are given out, so a crash skips some
 * and repeats none.
 */

#include "core/util.h"

typedef struct Serial Serial;

typedef enum SerialKind {
        SERIAL_HOLD,
        SERIAL_COUNTER,
        SERIAL_SAMPLER,
        SERIAL_MONITOR,
        _SERIAL_KIND_MAX,
} SerialKind;

struct Serial {
        int fd; /* -1: no file; numbers then start from the clock */
        uint64_t next[_SERIAL_KIND_MAX];
        uint64_t reserved[_SERIAL_KIND_MAX]; /* first that the file does not cover */
};

/* directory may be NULL. -errno when there is no usable file; s works all the same, from numbers
 * that no earlier run can have reached. */
int serial_open(Serial *s, const char *directory);

/* Gives the exact numbers back to the file, for a clean exit. */
void serial_close(Serial *s);

uint64_t serial_next(Serial *s, SerialKind kind);
