/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * State that crashes the service is set aside: copied into the runtime directory for developers,
 * and not restored.
 */

#include "service/store/statelog.h"

/* Copies the log, and reports what is lost. directory may be NULL: no copy. describe: reads the
 * log for that. */
void set_aside(const StateLog *log, const char *directory, bool describe);
