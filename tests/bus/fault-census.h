/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the service has. After an operation all is as before, or something was leaked.
 */

#include "fault-scene.h"

typedef struct Census {
        unsigned objects, descriptors, reader_descriptors, opener_descriptors;
        bool yielding;
} Census;

Census census(void);
void census_settle(const Census *a, const char *when); /* fails if it never is so again */
