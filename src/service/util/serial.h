/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The numbers in object paths. They start from 1. No number is used twice until the machine
 * reboots, also across restarts, idle exits and stops. Numbers are reserved in blocks, in a file of
 * the preserved runtime directory, before they are used: a crash skips some and repeats none.
 */

#include "core/util.h"

typedef struct Serial Serial;

/* Lines of the file: never renumber. */
typedef enum SerialKind {
        SERIAL_HOLD = 0,
        SERIAL_COUNTER = 1,
        SERIAL_SAMPLER = 2,
        SERIAL_MONITOR = 3,
        _SERIAL_KIND_MAX,
} SerialKind;

struct Serial {
        int fd; /* -1: no file; numbers start from the clock */
        uint64_t next[_SERIAL_KIND_MAX];
        uint64_t reserved[_SERIAL_KIND_MAX]; /* the first one that the file does not cover */
};

/* directory may be NULL. -errno: there is no usable file. s is usable all the same: its numbers are
 * larger than any that an earlier run can have reached. */
int serial_open(Serial *s, const char *directory);

/* Returns unused numbers to the file, for a clean exit. */
void serial_close(Serial *s);

uint64_t serial_next(Serial *s, SerialKind kind);
