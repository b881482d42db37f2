/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Small text files of sysfs, or of a recorded tree that stands in for it. Nothing is believed of a
 * file but that it can be read: it may be missing, huge or nonsense.
 */

#include "core/util.h"

#define SYSFS_TEXT_MAX ((size_t) 65536) /* sysfs shows at most a page; pages have up to 64 KiB */

/* Whether an error is ours (memory, descriptors) and not the tree's, which is passed over. */
static inline bool sysfs_is_fatal(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Opens a directory below another one (AT_FDCWD for a path of its own). Descriptor or -errno. */
int sysfs_open(int directory, const char *path);

/* Reads a file as text, without the newline at its end; the caller frees it. -EFBIG when it is
 * longer than SYSFS_TEXT_MAX. */
int sysfs_read(int directory, const char *path, char **ret);

/* Calls f for the name of each entry of a directory; f returns non-zero to stop, and that value is
 * returned. Names that are not sane are left out; a directory that has gone is empty. */
typedef int (*SysfsVisitor)(void *userdata, int directory, const char *name);
int sysfs_visit(int directory, SysfsVisitor f, void *userdata);

/* Letters, digits, '_', '-', '+' and '.', and no dot in front. Other names could not be written in
 * an event nor sent over the bus, and what a client wrote is a file's name only if it is sane. */
bool sysfs_name_is_sane(const char *name);
