/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Small text files of sysfs, or of a recorded tree in its place. Files may be missing, huge or
 * malformed.
 */

#include "core/util.h"

#define SYSFS_TEXT_MAX ((size_t) 65536) /* a file has at most a page, which is at most 64 KiB */

/* Whether an error is the process's (memory, descriptors); errors of the tree are ignored. */
static inline bool sysfs_is_fatal(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Opens a directory as openat(2) does. Descriptor or -errno. */
int sysfs_open(int directory, const char *path);

/* Reads a text file, without its final newline; the caller frees it. -EFBIG: longer than
 * SYSFS_TEXT_MAX. */
int sysfs_read(int directory, const char *path, char **ret);

/* Calls f for the name of each entry of a directory; a non-zero return of f ends the walk and is
 * returned. Names that are not sane are skipped; a directory that has gone is empty. */
typedef int (*SysfsVisitor)(void *userdata, int directory, const char *name);
int sysfs_visit(int directory, SysfsVisitor f, void *userdata);

/* Letters, digits, '_', '-', '+' and '.', but no leading dot. Other names can neither be written in
 * an event nor sent over the bus; a name from a client is used in a path only if it is sane. */
bool sysfs_name_is_sane(const char *name);
