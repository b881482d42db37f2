/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text that the bus accepts: UTF-8, and without control characters.
 */

#include "core/util.h"

/* The length in bytes of the character at p; 0: invalid, a control character, or the end. */
size_t utf8_text_length(const char *p);

bool utf8_is_text(const char *text);
