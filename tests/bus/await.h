/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#define AWAIT_SEC 60

/* Waits until the condition holds; never for a time. */
#define await(condition)                                                                           \
        do {                                                                                       \
                gint64 _end = g_get_monotonic_time() + AWAIT_SEC * G_USEC_PER_SEC;                 \
                while (!(condition)) {                                                             \
                        if (g_get_monotonic_time() > _end)                                         \
                                g_error("%s:%d: never came: %s", __FILE__, __LINE__, #condition);  \
                        g_usleep(1000);                                                            \
                }                                                                                  \
        } while (0)
