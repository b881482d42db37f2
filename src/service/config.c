/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/timespan.h"
#include "service/log.h"

#define LIMIT_MAX UINT64_C(1000000000)

void config_default(Config *c) {
        Quota quota;

        quota_init(&quota);
        *c = (Config){
                .hold_max_usec = 8 * 3600 * USEC_PER_SEC,
                .wait_max_usec = 3600 * USEC_PER_SEC,
                .idle_exit_usec = 30 * USEC_PER_SEC,
        };
        memcpy(c->limits, quota.limits, sizeof(c->limits));
}

static const struct {
        const char *name;
        size_t offset;
} times[] = {
        { "HoldMaxSec", offsetof(Config, hold_max_usec) },
        { "WaitMaxSec", offsetof(Config, wait_max_usec) },
        { "IdleExitSec", offsetof(Config, idle_exit_usec) },
};

typedef struct ConfigReading {
        Config *config;
        const char *path;
        FILE *file;
        int line; /* being read: the library does not tell */
} ConfigReading;

static char *line_read(char *buffer, int size, void *userdata) {
        ConfigReading *reading = userdata;

        reading->line++;
        return fgets(buffer, size, reading->file);
}

static void complain(const ConfigReading *reading, const char *what, const char *word) {
        log_plain(LOG_WARNING, "%s:%d: %s '%.64s', ignored.", reading->path, reading->line, what, word);
}

static bool limit_parse(const char *value, uint64_t *ret) {
        char *end;

        if (*value < '0' || *value > '9')
                return false;
        errno = 0;
        *ret = strtoull(value, &end, 10);
        return errno == 0 && !*end && *ret <= LIMIT_MAX;
}

static bool limits_set(Config *c, const char *name, const char *value, bool *ret_valid) {
        for (size_t i = 0; i < ELEMENTSOF(times); i++)
                if (strcmp(name, times[i].name) == 0) {
                        uint64_t usec;

                        *ret_valid = timespan_parse(value, &usec) == 0 && usec > 0;
                        if (*ret_valid)
                                *(uint64_t *) ((char *) c + times[i].offset) = usec;
                        return true;
                }
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++)
                if (quota_setting(good) && strcmp(name, quota_setting(good)) == 0) {
                        uint64_t limit;

                        *ret_valid = limit_parse(value, &limit);
                        if (*ret_valid)
                                c->limits[good] = limit;
                        return true;
                }
        return false;
}

static int setting_read(void *userdata, const char *section, const char *name, const char *value) {
        ConfigReading *reading = userdata;
        bool valid = true;

        if (strcmp(section, "Limits") != 0)
                complain(reading, "unknown section", section);
        else if (!limits_set(reading->config, name, value, &valid))
                complain(reading, "unknown setting", name);
        else if (!valid)
                complain(reading, "not a value for this setting:", value);
        return 1;
}

void config_load(Config *c, const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        ConfigReading reading = { .config = c, .path = path };
        struct stat st;
        int r;

        if (fd < 0) {
                if (errno != ENOENT)
                        log_plain(LOG_WARNING, "%s: cannot be read: %s. Defaults hold.", path,
                                  strerror(errno));
                return;
        }
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                log_plain(LOG_WARNING, "%s: not a regular file. Defaults hold.", path);
                return;
        }
        reading.file = fdopen(fd, "r");
        if (!reading.file)
                return;
        fd = -1;
        r = ini_parse_stream(line_read, &reading, setting_read, &reading);
        (void) fclose(reading.file);
        if (r > 0)
                log_plain(LOG_WARNING, "%s:%d: not a line like Setting=value, ignored.", path, r);
}
