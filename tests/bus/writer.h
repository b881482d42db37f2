/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bus-util.h"

/* An actor that writes 100 times to watched[0] whenever it is told to. */
Actor *writer_new(const char *user);
void writer_write(Actor *a); /* returns when it was done */
