/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The running service, from start to idle exit.
 */

#include "service/sibling/opener.h"
#include "service/sibling/reader.h"

typedef struct Service Service;

/* Starts everything, up to the bus name. Takes over the siblings, which were forked before
 * (reader_fork(), opener_fork()). Configured monitors are in monitors.d beside the configuration
 * file. */
int service_new(Reader *reader, Opener *opener, const char *config_path, Service **ret);
Service *service_free(Service *s);
DEFINE_CLEANUP(Service *, service_free)

/* Runs the loop until idle exit, SIGTERM or SIGINT. */
int service_run(Service *s);
