/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What has been sent on a sampler's stream, in memory that outlives this process (a memfd).
 *
 * Which record was the last one is known exactly, whenever the process is killed: no record is
 * counted that the client did not get, and none is sent twice. Writing it down before sending, or
 * after, would leave an instant in which one of these could happen. So the kernel writes it down
 * itself, as a part of sending: sendmmsg(2) stores the size of what was sent beside the message, in
 * the same call, and the message lies in that memory. There are two places for messages, so that
 * what is about to be sent is never where the last one is.
 *
 * The record itself lies there too, and with it the last readings of counters that are closed.
 * Nothing else has to be saved at a tick.
 */

#include <perfalloc/sample.h>

#include "core/tick.h"

typedef struct SendLog SendLog;
typedef struct SendLogState SendLogState;

struct SendLog {
        SendLogState *state; /* NULL: none */
        size_t size;
        struct perfalloc_sample *record; /* with room for all readings; in the same memory */
        size_t record_size;              /* as it is sent, with the tag if there is one */
};

/* tag: what each record ends with; NULL: nothing. ret_fd is for send_log_open() of the next run;
 * the caller closes it. */
int send_log_new(size_t n_readings, const uint64_t *tag, SendLog *ret, int *ret_fd);

/* Opens the log of an earlier run; fd stays the caller's. -EBADMSG: it is not a send log, or not
 * one of that many readings, or with the tag that it should have or not. */
int send_log_open(int fd, size_t n_readings, bool tagged, SendLog *ret);
void send_log_done(SendLog *l);

/* Sends l's record without waiting. -errno: it was not sent. after is the count once it was. */
int send_log_send(SendLog *l, int stream, const TickCount *after);

/* Counts l's record, which is told in another way, as sent. */
void send_log_put(SendLog *l, const TickCount *after);

/* The count of the last record that was sent. */
TickCount send_log_count(const SendLog *l);

/* The slot after the last one that was signalled. Signals in sd-bus' queue are lost with the
 * process, so this cannot be exact. It is set before the signal is sent, so that none is sent
 * twice. */
void send_log_set_signalled(SendLog *l, uint64_t next);
uint64_t send_log_signalled(const SendLog *l);
