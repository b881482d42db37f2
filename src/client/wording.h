/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service's errors in the words of the command line. The service speaks of keys of D-Bus
 * methods and of object paths; who has typed --pmu=NAME or a number reads of these instead.
 */

#include <systemd/sd-bus.h>

#include "core/refusal.h"

/* The command has an option --pidfd, as perfallocctl hold; otherwise the key of that name is the
 * process of --pid. */
void wording_has_pidfd(void);

/* "option 'pmus': ..." becomes "--pmu: ...", and an unknown object "there is no hold 7". Texts that
 * are too long are cut. */
void wording_of_error(const sd_bus_error *error, char ret[static REFUSAL_TEXT_MAX]);
