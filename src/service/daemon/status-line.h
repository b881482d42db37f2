/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One line for systemctl status(1): what the service has at the moment (STATUS=, sd_notify(3)).
 */

#include "service/daemon/manager.h"

typedef struct StatusLine StatusLine;

/* The loop of m must exist. */
int status_line_new(const Manager *m, StatusLine **ret);
StatusLine *status_line_free(StatusLine *s);

/* Something may have changed: the line is sent soon, if it has. */
void status_line_touch(StatusLine *s);
