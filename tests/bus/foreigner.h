/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bus-util.h"

/* A process of somebody else that has one breakpoint of every CPU to itself. */
Actor *foreigner_new(void);
