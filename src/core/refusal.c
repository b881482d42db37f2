/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "refusal.h"

#include <stdarg.h>
#include <stdio.h>

#include <perfalloc/dbus.h>

#include "core/utf8.h"

#define DBUS_ERROR "org.freedesktop.DBus.Error."

static const struct {
        const char *name;
        int error;
        bool from_kernel; /* perf_event_open(2) answers with this errno */
} refusals[_REFUSAL_MAX] = {
        [REFUSAL_ATTR_SIZE] = { PERFALLOC_ERROR_ATTR_SIZE, E2BIG, true },
        [REFUSAL_PRIVILEGE_NEEDED] = { PERFALLOC_ERROR_PRIVILEGE_NEEDED, EACCES, true },
        [REFUSAL_BAD_DESCRIPTOR] = { PERFALLOC_ERROR_BAD_DESCRIPTOR, EBADF, true },
        [REFUSAL_BUSY] = { PERFALLOC_ERROR_BUSY, EBUSY, true },
        [REFUSAL_BAD_ADDRESS] = { PERFALLOC_ERROR_BAD_ADDRESS, EFAULT, true },
        [REFUSAL_MIXED_TRACING] = { PERFALLOC_ERROR_MIXED_TRACING, EINTR, true },
        [REFUSAL_INVALID_EVENT] = { PERFALLOC_ERROR_INVALID_EVENT, EINVAL, true },
        [REFUSAL_NOT_PERMITTED] = { PERFALLOC_ERROR_NOT_PERMITTED, EPERM, true },
        [REFUSAL_TOO_MANY_DESCRIPTORS] = { PERFALLOC_ERROR_TOO_MANY_DESCRIPTORS, EMFILE, true },
        [REFUSAL_NOT_ON_THIS_CPU] = { PERFALLOC_ERROR_NOT_ON_THIS_CPU, ENODEV, true },
        [REFUSAL_NO_SUCH_EVENT] = { PERFALLOC_ERROR_NO_SUCH_EVENT, ENOENT, true },
        [REFUSAL_NO_COUNTER_LEFT] = { PERFALLOC_ERROR_NO_COUNTER_LEFT, ENOSPC, true },
        [REFUSAL_NOT_IMPLEMENTED] = { PERFALLOC_ERROR_NOT_IMPLEMENTED, ENOSYS, true },
        [REFUSAL_NOT_SUPPORTED] = { PERFALLOC_ERROR_NOT_SUPPORTED, EOPNOTSUPP, true },
        [REFUSAL_STACK_TOO_DEEP] = { PERFALLOC_ERROR_STACK_TOO_DEEP, EOVERFLOW, true },
        [REFUSAL_NO_SUCH_PROCESS] = { PERFALLOC_ERROR_NO_SUCH_PROCESS, ESRCH, true },
        [REFUSAL_COUNTER_RUNNING] = { PERFALLOC_ERROR_COUNTER_RUNNING, EBUSY, false },
        [REFUSAL_ALREADY_ATTACHED] = { PERFALLOC_ERROR_ALREADY_ATTACHED, EEXIST, false },
        [REFUSAL_WRONG_SCOPE] = { PERFALLOC_ERROR_WRONG_SCOPE, EINVAL, false },
        [REFUSAL_INVALID_PROCESS] = { PERFALLOC_ERROR_INVALID_PROCESS, EINVAL, false },
        [REFUSAL_NOT_ATTACHED] = { PERFALLOC_ERROR_NOT_ATTACHED, EINVAL, false },
        [REFUSAL_NOT_OWNER] = { PERFALLOC_ERROR_NOT_OWNER, EPERM, false },
        [REFUSAL_OBSTRUCTED] = { PERFALLOC_ERROR_OBSTRUCTED, EBUSY, false },
        [REFUSAL_TIMED_OUT] = { PERFALLOC_ERROR_TIMED_OUT, ETIMEDOUT, false },
        [REFUSAL_ENDED] = { PERFALLOC_ERROR_ENDED, ESTALE, false },
        [REFUSAL_BROKER_BUSY] = { PERFALLOC_ERROR_BROKER_BUSY, EBUSY, false },
        [REFUSAL_INVALID_ARGS] = { DBUS_ERROR "InvalidArgs", EINVAL, false },
        [REFUSAL_ACCESS_DENIED] = { DBUS_ERROR "AccessDenied", EACCES, false },
        [REFUSAL_INTERACTION_REQUIRED] = { DBUS_ERROR "InteractiveAuthorizationRequired", EACCES,
                                           false },
        [REFUSAL_LIMITS_EXCEEDED] = { DBUS_ERROR "LimitsExceeded", ENOBUFS, false },
        [REFUSAL_UNKNOWN_OBJECT] = { DBUS_ERROR "UnknownObject", ENOENT, false },
};

const char *refusal_name(int code) {
        return code > 0 && code < _REFUSAL_MAX ? refusals[code].name : NULL;
}

int refusal_errno(int code) {
        return code > 0 && code < _REFUSAL_MAX ? refusals[code].error : 0;
}

int refusal_from_errno(int error) {
        for (int code = 1; code < _REFUSAL_MAX; code++)
                if (refusals[code].from_kernel && refusals[code].error == error)
                        return code;
        return 0;
}

/* A client's text may be cut in the middle of a character; D-Bus does not accept that. */
static void text_clean(char *text) {
        for (char *p = text; *p;) {
                size_t n = utf8_text_length(p);

                if (n == 0)
                        *p = '?';
                p += MAX(n, 1u);
        }
}

int refuse(Refusal *why, int code, const char *format, ...) {
        va_list ap;

        if (!why)
                return code;

        why->code = code;
        va_start(ap, format);
        (void) vsnprintf(why->text, sizeof(why->text), format, ap);
        va_end(ap);

        text_clean(why->text);
        return code;
}

int refusal_prefix(Refusal *why, const char *prefix) {
        Refusal inner;

        if (!why)
                return REFUSAL_INVALID_ARGS;
        inner = *why;
        return refuse(why, inner.code, "%s%s", prefix, inner.text);
}
