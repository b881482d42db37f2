/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Idioms that every file uses: cleanup attributes, ownership transfer, descriptors that are -1 when
 * unset. The names are those of systemd.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f)         __attribute__((cleanup(f)))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))
#define _unused_             __attribute__((unused))
#define _public_             __attribute__((visibility("default")))

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MIN(a, b)                                                                                  \
        ({                                                                                         \
                __typeof__(a) _a = (a);                                                            \
                __typeof__(b) _b = (b);                                                            \
                _a < _b ? _a : _b;                                                                 \
        })
#define MAX(a, b)                                                                                  \
        ({                                                                                         \
                __typeof__(a) _a = (a);                                                            \
                __typeof__(b) _b = (b);                                                            \
                _a > _b ? _a : _b;                                                                 \
        })

#define container_of(ptr, type, member) ((type *) ((char *) (ptr) -offsetof(type, member)))

/* Hands a pointer or descriptor over, so that the cleanup attribute finds nothing to do. */
#define TAKE_PTR(p)                                                                                \
        ({                                                                                         \
                __typeof__(p) *_pp = &(p);                                                         \
                __typeof__(p) _p = *_pp;                                                           \
                *_pp = NULL;                                                                       \
                _p;                                                                                \
        })
#define TAKE_FD(fd)                                                                                \
        ({                                                                                         \
                int *_fdp = &(fd);                                                                 \
                int _fd = *_fdp;                                                                   \
                *_fdp = -1;                                                                        \
                _fd;                                                                               \
        })

/* Defines foo_freep() for a foo_free() that takes a pointer or NULL, and returns NULL. */
#define DEFINE_CLEANUP(type, func)                                                                 \
        static inline void func##p(type *p) {                                                      \
                if (*p)                                                                            \
                        *p = func(*p);                                                             \
        }

#define USEC_PER_SEC  ((uint64_t) 1000000)
#define USEC_PER_MSEC ((uint64_t) 1000)
#define NSEC_PER_SEC  ((uint64_t) 1000000000)
#define NSEC_PER_USEC ((uint64_t) 1000)

static inline void freep(void *p) {
        free(*(void **) p);
}

/* Closes, keeps errno, returns -1: fd = close_fd(fd). EINTR is not retried: on Linux the descriptor
 * is gone all the same (close(2)). */
static inline int close_fd(int fd) {
        if (fd >= 0) {
                int saved = errno;
                close(fd);
                errno = saved;
        }
        return -1;
}

static inline void close_fdp(int *fd) {
        *fd = close_fd(*fd);
}

#define _cleanup_free_  _cleanup_(freep)
#define _cleanup_close_ _cleanup_(close_fdp)
