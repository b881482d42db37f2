/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What polkit is told about a request besides subject and action: the uid, the program, the
 * client's reason, and what is asked for. Rules may use it and prompts show it. It is quoted, on
 * one line, short and printable, so that no part of it can pose as text of the service.
 */

#include <sys/types.h>

#include <systemd/sd-bus.h>

#include "service/auth/asked.h"

typedef struct Details Details;

#define DETAILS_PRINTABLE_MAX 128                             /* characters */
#define DETAILS_TEXT_SIZE     (DETAILS_PRINTABLE_MAX * 4 + 3) /* UTF-8, quotes and NUL */

#define DETAILS_LIST_SIZE (ASKED_LIST_SIZE + 2) /* quotes */

#define DETAILS_UNKNOWN "(not given)" /* without quotes: not a client's text */

struct Details {
        uid_t uid;
        char program[32];
        char reason[DETAILS_TEXT_SIZE], tag[DETAILS_TEXT_SIZE];
        char scope[16], mode[16];
        char pmus[DETAILS_LIST_SIZE], events[DETAILS_LIST_SIZE], cpus[DETAILS_LIST_SIZE];
        char target[16]; /* a uid, without quotes */
};

/* pid 0 and asked NULL are fine. The program is its comm (proc(5)), which the process sets itself.
 * It is for display only: the pid may have been reused. */
void details_fill(Details *d, uid_t uid, pid_t pid, const Asked *asked);

bool details_equal(const Details *a, const Details *b);

/* Appends a{ss}: "perfalloc." and the name of each; the target's uid is perfalloc.target-uid. All
 * are always present, because the messages in org.perfalloc1.policy name some. */
int details_append(const Details *d, sd_bus_message *m);

/* Puts text between quotes into buf (DETAILS_TEXT_SIZE), at most DETAILS_PRINTABLE_MAX characters.
 * What is unprintable, changes the writing direction or is not UTF-8 becomes ?, and " becomes '. */
void details_quote(char *buf, const char *text);
