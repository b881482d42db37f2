/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A file of sections and settings, read whole and at once, then line by line. What is wrong with it
 * is said in the journal by file and line.
 */

#include "core/refusal.h"

typedef struct ConfigFile ConfigFile;

#define CONFIG_FILE_MAX 65536u /* bytes */

struct ConfigFile {
        char *path;
        char *text;
};

#define CONFIG_FILE_NULL ((ConfigFile){})

/* -ENOENT when there is no such file; otherwise why it cannot be used (-EISDIR, -EINVAL: no regular
 * file, -EFBIG, -EACCES, -ENOMEM, -EAGAIN: it kept changing while it was read), said in the journal
 * already. */
int config_file_read(const char *path, ConfigFile *ret);
void config_file_done(ConfigFile *c);

/* Gives each setting to f, which answers 0, or REFUSAL_INVALID_ARGS with words. Returns the number
 * of lines that are wrong (each is said in the journal), or a negative errno that f returned. */
typedef int (*ConfigSetting)(void *userdata, const char *section, const char *name,
                             const char *value, Refusal *why);
int config_file_parse(const ConfigFile *c, ConfigSetting f, void *userdata);
