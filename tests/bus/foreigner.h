/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bus-util.h"

/* Another user's process that has one breakpoint of every CPU. */
Actor *foreigner_new(void);
