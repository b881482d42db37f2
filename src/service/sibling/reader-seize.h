/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * READER_SEIZE, on the reader's side.
 */

#include "service/sibling/reader-wire.h"

/* In a child of the reader: stops the tree, answers on socket, and lets go when release hangs up or
 * the bound is over. */
void reader_seize_run(int socket, const ReaderRequest *q, int pidfd, int release);
