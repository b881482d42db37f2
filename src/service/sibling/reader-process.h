/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The helper's own side: see helper.h.
 */

#include "service/sibling/reader-wire.h"

/* Serves requests on socket until the other end is closed, with no other descriptor, and no
 * capability but what reading other processes takes. parent is the service: should it end, so does
 * the helper. */
void reader_process_run(int socket, pid_t parent) __attribute__((noreturn));

/* In a child of the helper: stops the tree, answers on socket, and lets go when release hangs up or
 * time is over. */
void reader_process_seize(int socket, const ReaderRequest *q, int pidfd, int release);
