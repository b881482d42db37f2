/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where in perf_event_attr the value of a term goes: "config:0-7,32-35" in a file of the PMU's
 * directory format (sysfs-bus-event_source-devices-format).
 */

#include <linux/perf_event.h>

#include "core/util.h"

typedef struct SysfsFormat SysfsFormat;

struct SysfsFormat {
        size_t offset; /* of the word in perf_event_attr */
        uint64_t mask; /* of its bits; the lowest one takes the value's lowest bit */
};

/* Parses the text of such a file. -EBADMSG; -EOPNOTSUPP: a word that this build does not know. */
int sysfs_format_parse(const char *text, SysfsFormat *ret);

/* A whole word: "config" to "config3". The same errors. */
int sysfs_format_of_word(const char *name, SysfsFormat *ret);

unsigned sysfs_format_width(const SysfsFormat *f); /* bits */

/* Sets the value. -ERANGE: it has too many bits. */
int sysfs_format_apply(const SysfsFormat *f, uint64_t value, struct perf_event_attr *attr);
