/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Standard streams that were closed when the program was started.
 */

/* Keeps later descriptors, the bus or a file, from becoming standard streams by accident. To read
 * from and write to those that were closed fails as before (EBADF), and COMMAND has them closed.
 * Negative errno. */
int streams_fill(void);
