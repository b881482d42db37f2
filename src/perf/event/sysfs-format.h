/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where in perf_event_attr the value of a term goes: "config:0-7,32-35" in a file of the PMU's
 * directory format (sysfs-bus-event_source-devices-format).
 */

#include "core/attr-rules.h"

typedef struct SysfsFormat SysfsFormat;

struct SysfsFormat {
        AttrPlace word; /* of perf_event_attr: ATTR_CONFIG to ATTR_CONFIG4 */
        uint64_t mask;  /* of its bits; the lowest one takes the value's lowest bit */
};

/* Parses the text of such a file. -EBADMSG. */
int sysfs_format_parse(const char *text, SysfsFormat *ret);

/* A whole word: "config" to "config4". The same error. */
int sysfs_format_of_word(const char *name, SysfsFormat *ret);

unsigned sysfs_format_width(const SysfsFormat *f); /* bits */

/* Sets the value, and the size of the attr so that it has the word. -ERANGE: the value has too many
 * bits. */
int sysfs_format_apply(const SysfsFormat *f, uint64_t value, Attr *attr);
