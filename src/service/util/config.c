/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "core/timespan.h"
#include "service/util/config-file.h"

#define LIMIT_MAX UINT64_C(1000000000)

void config_default(Config *c) {
        Quota quota;

        quota_init(&quota);
        *c = (Config){
                .hold_max_usec = 8 * 3600 * USEC_PER_SEC,
                .wait_max_usec = 3600 * USEC_PER_SEC,
                .idle_exit_usec = 30 * USEC_PER_SEC,
                .sampler_interval_min_usec = 500,
                .sampler_signal_min_usec = 10 * USEC_PER_MSEC,
                .kept_descriptors = 32768,
                .bridges = { .pcp_grace_usec = 110 * USEC_PER_MSEC,
                             .likwid_grace_usec = 10 * USEC_PER_SEC },
        };
        memcpy(c->limits, quota.limits, sizeof(c->limits));
}

static bool limit_parse(const char *value, uint64_t *ret) {
        char *end;

        if (*value < '0' || *value > '9')
                return false;
        errno = 0;
        *ret = strtoull(value, &end, 10);
        return errno == 0 && !*end && *ret <= LIMIT_MAX;
}

static int time_set(void *field, const char *name, const char *value, Refusal *why) {
        uint64_t usec;

        if (timespan_parse(value, &usec) < 0 || usec == 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "%s=%s: invalid time (for example 5s, 8h, infinity)", name, value);
        *(uint64_t *) field = usec;
        return 0;
}

static int limit_set(void *field, const char *name, const char *value, Refusal *why) {
        uint64_t limit;

        if (!limit_parse(value, &limit))
                return refuse(why, REFUSAL_INVALID_ARGS, "%s=%s: not a number from 0 to %" PRIu64,
                              name, value, LIMIT_MAX);
        *(uint64_t *) field = limit;
        return 0;
}

static int bool_set(void *field, const char *name, const char *value, Refusal *why) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "%s=%s: neither yes nor no", name, value);
        *(bool *) field = *value == 'y';
        return 0;
}

static int path_set(void *field, const char *name, const char *value, Refusal *why) {
        BridgePath path = {};

        if (strcmp(value, "no") == 0)
                path.mode = BRIDGE_NO;
        else if (*value == '/' && strlen(value) < sizeof(path.path)) {
                path.mode = BRIDGE_PATH;
                memcpy(path.path, value, strlen(value));
        } else if (strcmp(value, "auto") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "%s=%.256s: neither auto, no, nor an absolute path of fewer than "
                              "%u bytes",
                              name, value, BRIDGE_PATH_MAX);
        *(BridgePath *) field = path;
        return 0;
}

#define AT(field) offsetof(Config, field)

typedef struct Setting {
        const char *name;
        size_t offset;
        int (*set)(void *field, const char *name, const char *value, Refusal *why);
} Setting;

static const Setting limits[] = {
        /* and those of the quota */
        { "HoldMaxSec", AT(hold_max_usec), time_set },
        { "WaitMaxSec", AT(wait_max_usec), time_set },
        { "IdleExitSec", AT(idle_exit_usec), time_set },
        { "SamplerIntervalMinSec", AT(sampler_interval_min_usec), time_set },
        { "SamplerSignalMinSec", AT(sampler_signal_min_usec), time_set },
        { "KeptDescriptors", AT(kept_descriptors), limit_set },
        {},
};

static const Setting bridges[] = {
        { "PcpLock", AT(bridges.pcp), path_set },
        { "LikwidLock", AT(bridges.likwid), path_set },
        { "PcpGraceSec", AT(bridges.pcp_grace_usec), time_set },
        { "LikwidGraceSec", AT(bridges.likwid_grace_usec), time_set },
        { "NmiWatchdog", AT(bridges.nmi_watchdog), bool_set },
        {},
};

static int setting_set(void *userdata, const char *section, const char *name, const char *value,
                       Refusal *why) {
        bool is_limits = strcmp(section, "Limits") == 0;
        Config *c = userdata;

        if (!is_limits && strcmp(section, "Bridges") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "unknown section [%s]", section);
        for (const Setting *s = is_limits ? limits : bridges; s->name; s++)
                if (strcmp(name, s->name) == 0)
                        return s->set((char *) c + s->offset, name, value, why);
        for (int good = 0; is_limits && good < _QUOTA_GOOD_MAX; good++)
                if (quota_setting(good) && strcmp(name, quota_setting(good)) == 0)
                        return limit_set(&c->limits[good], name, value, why);
        return refuse(why, REFUSAL_INVALID_ARGS, "unknown setting %s=%s", name,
                      is_limits ? "" : " in [Bridges]");
}

void config_load(Config *c, const char *path) {
        _cleanup_(config_file_done) ConfigFile file = CONFIG_FILE_NULL;

        if (config_file_read(path, &file) == 0)
                (void) config_file_parse(&file, setting_set, c);
}
