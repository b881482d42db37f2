/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which columns of a table are left out on a terminal that is too narrow for all of them.
 */

#include <libsmartcols/libsmartcols.h>

#include "client/ctl/column.h"

/* Hides columns, those with the highest drop first, until the table fits into width. Those without
 * any content go first. Columns that may be cut keep room for a few words. */
void table_fit(struct libscols_table *scols, const TableSpec *spec, size_t width);

/* Hides the rare columns that have no value in any row. */
void table_hide_rare(struct libscols_table *scols, const TableSpec *spec);
