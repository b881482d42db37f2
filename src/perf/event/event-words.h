/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * An event in one spelling, whichever way it was asked for: the kernel's generic name without
 * modifiers ("cycles"), else the PMU and what is not zero of its fields
 * ("cpu/config=0x3c,config1=0x1/"). There are no spaces in it.
 */

#include "core/attr-rules.h"
#include "perf/pmu/pmu.h"

#define EVENT_WORDS_SIZE 256u

void event_words(const Attr *a, const Pmu *pmu, char ret[static EVENT_WORDS_SIZE]);
