/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A configuration file of sections and settings: read as a whole, then parsed line by line. Errors
 * are logged with file and line.
 */

#include "core/refusal.h"

typedef struct ConfigFile ConfigFile;

#define CONFIG_FILE_MAX 65536u /* bytes */

struct ConfigFile {
        char *path;
        char *text;
};

#define CONFIG_FILE_NULL ((ConfigFile){})

/* -ENOENT: there is no such file. Other errors are logged already: -EISDIR, -EINVAL (not a regular
 * file), -EFBIG, -EACCES, -ENOMEM, -EAGAIN (it kept changing while it was read). */
int config_file_read(const char *path, ConfigFile *ret);
void config_file_done(ConfigFile *c);

/* Calls f for each setting. f returns 0, or REFUSAL_INVALID_ARGS with its text in why. Returns the
 * number of invalid lines, each of which is logged, or a negative errno that f returned. */
typedef int (*ConfigSetting)(void *userdata, const char *section, const char *name,
                             const char *value, Refusal *why);
int config_file_parse(const ConfigFile *c, ConfigSetting f, void *userdata);
