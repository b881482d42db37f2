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

static const struct {
        const char *name;
        size_t offset;
} times[] = {
        { "HoldMaxSec", offsetof(Config, hold_max_usec) },
        { "WaitMaxSec", offsetof(Config, wait_max_usec) },
        { "IdleExitSec", offsetof(Config, idle_exit_usec) },
        { "SamplerIntervalMinSec", offsetof(Config, sampler_interval_min_usec) },
        { "SamplerSignalMinSec", offsetof(Config, sampler_signal_min_usec) },
}, graces[] = {
        { "PcpGraceSec", offsetof(Config, bridges.pcp_grace_usec) },
        { "LikwidGraceSec", offsetof(Config, bridges.likwid_grace_usec) },
}, paths[] = {
        { "PcpLock", offsetof(Config, bridges.pcp) },
        { "LikwidLock", offsetof(Config, bridges.likwid) },
};

static bool limit_parse(const char *value, uint64_t *ret) {
        char *end;

        if (*value < '0' || *value > '9')
                return false;
        errno = 0;
        *ret = strtoull(value, &end, 10);
        return errno == 0 && !*end && *ret <= LIMIT_MAX;
}

static int time_set(Config *c, size_t offset, const char *name, const char *value, Refusal *why) {
        uint64_t usec;

        if (timespan_parse(value, &usec) < 0 || usec == 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "%s=%s is no time like 8h or infinity",
                              name, value);
        *(uint64_t *) ((char *) c + offset) = usec;
        return 0;
}

static int limit_set(uint64_t *ret, const char *name, const char *value, Refusal *why) {
        uint64_t limit;

        if (!limit_parse(value, &limit))
                return refuse(why, REFUSAL_INVALID_ARGS, "%s=%s is no number up to %" PRIu64, name,
                              value, LIMIT_MAX);
        *ret = limit;
        return 0;
}

static int bool_set(bool *ret, const char *name, const char *value, Refusal *why) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "%s=%s is none of yes, no", name, value);
        *ret = *value == 'y';
        return 0;
}

static int path_set(Config *c, size_t offset, const char *name, const char *value, Refusal *why) {
        BridgePath *p = (BridgePath *) ((char *) c + offset), path = {};

        if (strcmp(value, "no") == 0)
                path.mode = BRIDGE_NO;
        else if (*value == '/' && strlen(value) < sizeof(path.path)) {
                path.mode = BRIDGE_PATH;
                memcpy(path.path, value, strlen(value));
        } else if (strcmp(value, "auto") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "%s=%.256s is none of auto, no, nor a path from / on of fewer than "
                              "%u bytes",
                              name, value, BRIDGE_PATH_MAX);
        *p = path;
        return 0;
}

static int bridge_set(Config *c, const char *name, const char *value, Refusal *why) {
        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                if (strcmp(name, paths[i].name) == 0)
                        return path_set(c, paths[i].offset, name, value, why);
        for (size_t i = 0; i < ELEMENTSOF(graces); i++)
                if (strcmp(name, graces[i].name) == 0)
                        return time_set(c, graces[i].offset, name, value, why);
        if (strcmp(name, "NmiWatchdog") == 0)
                return bool_set(&c->bridges.nmi_watchdog, name, value, why);
        return refuse(why, REFUSAL_INVALID_ARGS, "there is no setting %s= in [Bridges]", name);
}

static int limits_set(Config *c, const char *name, const char *value, Refusal *why) {
        for (size_t i = 0; i < ELEMENTSOF(times); i++)
                if (strcmp(name, times[i].name) == 0)
                        return time_set(c, times[i].offset, name, value, why);
        for (int good = 0; good < _QUOTA_GOOD_MAX; good++)
                if (quota_setting(good) && strcmp(name, quota_setting(good)) == 0)
                        return limit_set(&c->limits[good], name, value, why);
        if (strcmp(name, "KeptDescriptors") == 0)
                return limit_set(&c->kept_descriptors, name, value, why);
        return refuse(why, REFUSAL_INVALID_ARGS, "there is no setting %s=", name);
}

static int setting_set(void *userdata, const char *section, const char *name, const char *value,
                       Refusal *why) {
        if (strcmp(section, "Limits") == 0)
                return limits_set(userdata, name, value, why);
        if (strcmp(section, "Bridges") == 0)
                return bridge_set(userdata, name, value, why);
        return refuse(why, REFUSAL_INVALID_ARGS, "there is no section [%s]", section);
}

void config_load(Config *c, const char *path) {
        _cleanup_(config_file_done) ConfigFile file = CONFIG_FILE_NULL;

        if (config_file_read(path, &file) == 0)
                (void) config_file_parse(&file, setting_set, c);
}
