/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What polkit is told about a request beside who asks and for which action: the uid, the program,
 * the client's own words and what is asked for. Rules may look at them and prompts show them, so
 * nothing in them can pose as text of ours: quoted, one line, short, printable.
 */

#include <sys/types.h>

#include <systemd/sd-bus.h>

#include "service/auth/asked.h"

typedef struct Details Details;

#define DETAILS_PRINTABLE_MAX 128                             /* characters */
#define DETAILS_TEXT_SIZE     (DETAILS_PRINTABLE_MAX * 4 + 3) /* UTF-8, quotes and NUL */

#define DETAILS_LIST_SIZE (ASKED_LIST_SIZE + 2) /* quotes */

#define DETAILS_UNKNOWN "(not given)" /* without quotes: nobody's words */

struct Details {
        uid_t uid;
        char program[32];
        char reason[DETAILS_TEXT_SIZE];
        char scope[16], mode[16];
        char pmus[DETAILS_LIST_SIZE], events[DETAILS_LIST_SIZE], cpus[DETAILS_LIST_SIZE];
        char target[16]; /* a uid, without quotes */
};

/* pid 0 and asked NULL are fine. The program's name is the process's own word (comm, proc(5)), and
 * for display only: a pid may be somebody else by now. */
void details_fill(Details *d, uid_t uid, pid_t pid, const Asked *asked);

bool details_equal(const Details *a, const Details *b);

/* Appends a{ss}: "perfalloc." and the name of each, the target's uid being perfalloc.target-uid.
 * All are always there, since the messages in org.perfalloc1.policy name some. */
int details_append(const Details *d, sd_bus_message *m);

/* Puts text between quotes into buf (DETAILS_TEXT_SIZE): at most DETAILS_PRINTABLE_MAX characters,
 * with a ? for what is not printable, changes the direction of writing or is no UTF-8, and ' for ".
 */
void details_quote(char *buf, const char *text);
