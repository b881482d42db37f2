/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Labels of LSMs (SELinux, AppArmor, Smack): /proc/PID/attr/current (proc(5)).
 */

#include "core/refusal.h"

#include <sys/types.h>

/* The label of a process, for the caller to free; "" where no LSM gives labels, or it has ended. */
int label_read(pid_t pid, char **ret);
