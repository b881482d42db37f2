/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whether a process that has not called anybody may do something: one that has taken PCP's lock.
 *
 * It is held by a pidfd. The reader looks at it before polkit is asked and again afterwards, so
 * what polkit has said is of the process that is there. Root is not asked; nobody is prompted.
 */

#include "perf/process/process.h"
#include "service/auth/auth.h"

typedef struct ProcessCheck ProcessCheck;

/* r is 0: it may, as the facts are; REFUSAL_*: it may not, as why says; negative: fault. facts is
 * NULL unless r is 0. The check is over. */
typedef void (*ProcessChecked)(void *userdata, int r, const ProcessFacts *facts,
                               const Refusal *why);

/* Called by done from the loop, never at once; pidfd is duplicated. -ENOMEM, -EMFILE, -EPIPE. */
int process_check_new(Context *context, int pidfd, Action action, const char *reason,
                      ProcessChecked done, void *userdata, ProcessCheck **ret);

/* Nobody waits for it any more; NULL is fine. Returns NULL. */
ProcessCheck *process_check_cancel(ProcessCheck *check);
