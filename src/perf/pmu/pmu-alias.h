/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events that the kernel names under a PMU's "events" in sysfs, those that consist of a number and
 * a unit mask: "event=0x11", "event=0x00,umask=0x4". That is enough to measure with; events as
 * users write them are for sysfs-event.h.
 */

#include "perf/pmu/pmu.h"

/* f returns non-zero to stop, and that value is returned. */
typedef int (*PmuAliasVisitor)(void *userdata, const PmuEvent *alias);
int pmu_alias_visit(const char *sysfs, const Pmu *pmu, PmuAliasVisitor f, void *userdata);

/* The config that the text says, on CPUs whose event number is in bits 0 to 7 (x86) or 0 to 15
 * (arm64) and whose unit mask begins at bit 8. False: it says more than that. */
bool pmu_alias_parse(const char *text, uint64_t *ret);
