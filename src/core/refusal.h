/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Why something a client asked for was not done.
 *
 * Everything below the D-Bus face reports two kinds of failure and never mixes them: a negative
 * errno is a fault that cannot be handled here (ENOMEM, a broken bus) and is passed up unchanged; a
 * positive value is one of the refusals below, the outcome of a request, with its message in
 * Refusal.text. At the D-Bus edge each refusal is exactly one D-Bus error.
 */

#include "core/util.h"

typedef struct Refusal Refusal;

enum {
        /* perf_event_open(2), by errno */
        REFUSAL_ATTR_SIZE = 1,
        REFUSAL_PRIVILEGE_NEEDED,
        REFUSAL_BAD_DESCRIPTOR,
        REFUSAL_BUSY,
        REFUSAL_BAD_ADDRESS,
        REFUSAL_MIXED_TRACING,
        REFUSAL_INVALID_EVENT,
        REFUSAL_NOT_PERMITTED,
        REFUSAL_TOO_MANY_DESCRIPTORS,
        REFUSAL_NOT_ON_THIS_CPU,
        REFUSAL_NO_SUCH_EVENT,
        REFUSAL_NO_COUNTER_LEFT,
        REFUSAL_NOT_IMPLEMENTED,
        REFUSAL_NOT_SUPPORTED,
        REFUSAL_STACK_TOO_DEEP,
        REFUSAL_NO_SUCH_PROCESS,
        /* the service's own */
        REFUSAL_COUNTER_RUNNING,
        REFUSAL_ALREADY_ATTACHED,
        REFUSAL_WRONG_SCOPE,
        REFUSAL_INVALID_PROCESS,
        REFUSAL_NOT_ATTACHED,
        REFUSAL_NOT_OWNER,
        REFUSAL_OBSTRUCTED,
        REFUSAL_TIMED_OUT,
        REFUSAL_ENDED,
        REFUSAL_BROKER_BUSY,
        /* D-Bus' own */
        REFUSAL_INVALID_ARGS,
        REFUSAL_ACCESS_DENIED,
        REFUSAL_INTERACTION_REQUIRED,
        REFUSAL_LIMITS_EXCEEDED,
        REFUSAL_UNKNOWN_OBJECT,
        _REFUSAL_MAX,
};

#define REFUSAL_TEXT_MAX 1024

struct Refusal {
        int code;
        char text[REFUSAL_TEXT_MAX];
};

#define REFUSAL_NULL ((Refusal){ .code = 0 })

/* The D-Bus error name; NULL: no such code. */
const char *refusal_name(int code);

/* The errno that perf_event_open(2), pmc_attach(3) or D-Bus would use for it. */
int refusal_errno(int code);

/* The refusal for a (positive) errno of perf_event_open(2); 0: there is none. */
int refusal_from_errno(int error);

/* Fills in why (may be NULL) and returns code, so that callers can return refuse(...). Control
 * characters, which may come from a client, are replaced; too long a text is cut. */
int refuse(Refusal *why, int code, const char *format, ...) _printf_(3, 4);

/* Prepends what was asked for: "option 'cpus': ...". Returns the refusal's code. */
int refusal_prefix(Refusal *why, const char *prefix);
