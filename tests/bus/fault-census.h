/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the service has: after an operation all is as it was before, or something was left behind.
 */

#include "fault-scene.h"

typedef struct Census {
        unsigned objects, descriptors, reader_descriptors, opener_descriptors;
        bool yielding;
} Census;

Census census(void);
void census_settle(const Census *a, const char *when); /* complains when it is never so again */
