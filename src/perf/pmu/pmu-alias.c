/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pmu-alias.h"

#include <fcntl.h>
#include <string.h>

#include "core/number.h"
#include "perf/pmu/sysfs.h"

#define UMASK_SHIFT 8

typedef struct Visit {
        const Pmu *pmu;
        PmuAliasVisitor f;
        void *userdata;
} Visit;

bool pmu_alias_parse(const char *text, uint64_t *ret) {
        char event[64], *umask;
        uint64_t number, mask = 0;

        if (strncmp(text, "event=", 6) != 0 || strlen(text) >= sizeof(event))
                return false;
        (void) strcpy(event, text + 6);
        umask = strstr(event, ",umask=");
        if (umask) {
                *umask = '\0';
                if (number_parse(umask + 7, &mask) < 0 || mask > UINT8_MAX)
                        return false;
        }
        if (number_parse(event, &number) < 0 || number > (umask ? UINT8_MAX : UINT16_MAX))
                return false;
        *ret = number | mask << UMASK_SHIFT;
        return true;
}

static int visit_alias(void *userdata, int directory, const char *name) {
        const Visit *v = userdata;
        _cleanup_free_ char *text = NULL;
        PmuEvent e = { .type = v->pmu->type };
        int r;

        /* "NAME.scale" and "NAME.unit" are no events */
        if (strchr(name, '.') || strlen(name) >= sizeof(e.name))
                return 0;
        r = sysfs_read(directory, name, &text);
        if (r < 0)
                return sysfs_is_fatal(r) ? r : 0;
        if (!pmu_alias_parse(text, &e.config))
                return 0;
        (void) strcpy(e.name, name);
        return v->f(v->userdata, &e);
}

int pmu_alias_visit(const char *sysfs, const Pmu *pmu, PmuAliasVisitor f, void *userdata) {
        Visit v = { .pmu = pmu, .f = f, .userdata = userdata };
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int events = -1;

        if (asprintf(&path, "%s/bus/event_source/devices/%s/events", sysfs, pmu->name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        events = sysfs_open(AT_FDCWD, path);
        if (events < 0)
                return sysfs_is_fatal(events) ? events : 0;
        return sysfs_visit(events, visit_alias, &v);
}
