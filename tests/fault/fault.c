/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

extern char __executable_start[];

static Fault *fault;
static pid_t service_pid;

/* The mapping is shared with the siblings, which are forked later. */
__attribute__((constructor)) static void fault_map(void) {
        int fd = (int) syscall(SYS_openat, AT_FDCWD, FAULT_FILE, O_RDWR | O_CLOEXEC);
        void *p;

        if (fd < 0)
                return;
        p = mmap(NULL, sizeof(Fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void) close(fd);
        if (p == MAP_FAILED)
                abort();
        service_pid = getpid();
        fault = p;
}

static bool fault_strikes(FaultKind kind, const void *caller) {
        int64_t left;

        if (!fault || !(fault->kinds & kind) || atomic_load(&fault->left) == 0 ||
            !(fault->where & (getpid() == service_pid ? FAULT_SERVICE : FAULT_SIBLINGS)))
                return false;
        if (fault->lasting && atomic_load(&fault->left) == 1)
                left = 1;
        else
                left = atomic_fetch_sub(&fault->left, 1);
        if (left != 1)
                return false;
        fault->caller = (uint64_t) ((const char *) caller - __executable_start);
        atomic_fetch_add(&fault->struck, 1);
        errno = kind & (FAULT_MEMORY | FAULT_BUS) ? ENOMEM : fault->error;
        return true;
}

#define STRIKES(kind) fault_strikes(kind, __builtin_return_address(0))

/* WRAP(kind, failure, type, name, parameters, arguments): calls the real function unless it shall
 * fail. */
#define WRAP(kind, failure, type, name, parameters, arguments)                                     \
        type __real_##name parameters;                                                             \
        type __wrap_##name parameters;                                                             \
        type __wrap_##name parameters {                                                            \
                return STRIKES(kind) ? (failure) : __real_##name arguments;                        \
        }
#define WRAP_MEMORY(type, name, parameters, arguments)                                             \
        WRAP(FAULT_MEMORY, NULL, type, name, parameters, arguments)
#define WRAP_SYSTEM(type, name, parameters, arguments)                                             \
        WRAP(FAULT_SYSTEM, -1, type, name, parameters, arguments)
#define WRAP_BUS(name, parameters, arguments)                                                      \
        WRAP(FAULT_BUS, -ENOMEM, int, name, parameters, arguments)

/* ---- memory ---- */

WRAP_MEMORY(void *, malloc, (size_t n), (n))
WRAP_MEMORY(void *, calloc, (size_t n, size_t size), (n, size))
WRAP_MEMORY(void *, realloc, (void *p, size_t n), (p, n))
WRAP_MEMORY(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
WRAP_MEMORY(char *, strdup, (const char *s), (s))
WRAP_MEMORY(char *, strndup, (const char *s, size_t n), (s, n))
WRAP_MEMORY(void *, tsearch, (const void *key, void **root, __compar_fn_t compare),
            (key, root, compare))
WRAP_MEMORY(FILE *, open_memstream, (char **text, size_t *n), (text, n))

__attribute__((format(printf, 2, 3))) int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap_asprintf(char **ret, const char *format, ...) {
        va_list ap;
        int n;

        if (STRIKES(FAULT_MEMORY))
                return -1;
        va_start(ap, format);
        n = vasprintf(ret, format, ap);
        va_end(ap);
        return n;
}

/* ---- system ---- */

WRAP_SYSTEM(int, pipe2, (int fds[2], int flags), (fds, flags))
WRAP_SYSTEM(int, socketpair, (int domain, int type, int protocol, int fds[2]),
            (domain, type, protocol, fds))
WRAP_SYSTEM(int, memfd_create, (const char *name, unsigned flags), (name, flags))
WRAP_SYSTEM(int, timerfd_create, (int clock, int flags), (clock, flags))
WRAP_SYSTEM(int, inotify_init1, (int flags), (flags))
WRAP_SYSTEM(int, signalfd, (int fd, const void *mask, int flags), (fd, mask, flags))
WRAP_SYSTEM(int, ftruncate64, (int fd, off64_t size), (fd, size))
WRAP_SYSTEM(pid_t, fork, (void), ())
WRAP(FAULT_SYSTEM, MAP_FAILED, void *, mmap64,
     (void *p, size_t n, int protection, int flags, int fd, off64_t offset),
     (p, n, protection, flags, fd, offset))
WRAP(FAULT_SYSTEM, NULL, DIR *, opendir, (const char *path), (path))
WRAP(FAULT_SYSTEM, NULL, DIR *, fdopendir, (int fd), (fd))
WRAP(FAULT_SYSTEM, NULL, FILE *, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(FAULT_SYSTEM, NULL, FILE *, fdopen, (int fd, const char *mode), (fd, mode))
WRAP_SYSTEM(int, scandir64,
            (const char *path, void *entries, const void *select, const void *compare),
            (path, entries, select, compare))

/* Missing arguments are read as garbage, and passed on to a function that ignores them. */
#define VARIABLE_WORD(last)                                                                        \
        ({                                                                                         \
                va_list ap;                                                                        \
                long word;                                                                         \
                va_start(ap, last);                                                                \
                word = va_arg(ap, long);                                                           \
                va_end(ap);                                                                        \
                word;                                                                              \
        })

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...) {
        return STRIKES(FAULT_SYSTEM) ? -1 : __real_open64(path, flags, VARIABLE_WORD(flags));
}

int __real_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...) {
        return STRIKES(FAULT_SYSTEM) ? -1 : __real_openat64(fd, path, flags, VARIABLE_WORD(flags));
}

int __real_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...) {
        bool makes_one = op == F_DUPFD || op == F_DUPFD_CLOEXEC;

        return makes_one && STRIKES(FAULT_SYSTEM) ? -1 : __real_fcntl64(fd, op, VARIABLE_WORD(op));
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
        bool makes_one = number == SYS_perf_event_open || number == SYS_pidfd_open ||
                         number == SYS_pidfd_getfd;
        long words[6];
        va_list ap;

        if (makes_one && STRIKES(FAULT_PERF))
                return -1;
        va_start(ap, number);
        for (int i = 0; i < 6; i++)
                words[i] = va_arg(ap, long);
        va_end(ap);
        return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

static void descriptors_drop(struct msghdr *h) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                        for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++)
                                (void) close(((const int *) CMSG_DATA(c))[i]);
        h->msg_controllen = 0;
        h->msg_flags |= MSG_CTRUNC;
}

ssize_t __real_recvmsg(int fd, struct msghdr *h, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *h, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *h, int flags) {
        ssize_t n = __real_recvmsg(fd, h, flags);

        if (n > 0 && CMSG_FIRSTHDR(h) && STRIKES(FAULT_PASSING))
                descriptors_drop(h);
        return n;
}

/* ---- time ---- */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t) {
        int r = __real_clock_gettime(clock, t);

        if (r == 0 && fault && clock == CLOCK_REALTIME)
                t->tv_sec += atomic_load(&fault->realtime_usec) / 1000000;
        return r;
}

/* ---- libsystemd ---- */

WRAP_BUS(sd_bus_message_new_method_call,
         (sd_bus * bus, sd_bus_message **m, const char *name, const char *path,
          const char *interface, const char *member),
         (bus, m, name, path, interface, member))
WRAP_BUS(sd_bus_message_new_method_return, (sd_bus_message * call, sd_bus_message **m), (call, m))
WRAP_BUS(sd_bus_message_new_signal,
         (sd_bus * bus, sd_bus_message **m, const char *path, const char *interface,
          const char *member),
         (bus, m, path, interface, member))
WRAP_BUS(sd_bus_message_append_strv, (sd_bus_message * m, char **strings), (m, strings))
WRAP_BUS(sd_bus_message_open_container, (sd_bus_message * m, char type, const char *contents),
         (m, type, contents))
WRAP_BUS(sd_bus_message_enter_container, (sd_bus_message * m, char type, const char *contents),
         (m, type, contents))
WRAP_BUS(sd_bus_message_set_destination, (sd_bus_message * m, const char *name), (m, name))
WRAP_BUS(sd_bus_send, (sd_bus * bus, sd_bus_message *m, uint64_t *cookie), (bus, m, cookie))
WRAP_BUS(sd_bus_enqueue_for_read, (sd_bus * bus, sd_bus_message *m), (bus, m))
WRAP_BUS(sd_bus_call_async,
         (sd_bus * bus, sd_bus_slot **slot, sd_bus_message *m, sd_bus_message_handler_t f,
          void *userdata, uint64_t usec),
         (bus, slot, m, f, userdata, usec))
WRAP_BUS(sd_bus_add_match_async,
         (sd_bus * bus, sd_bus_slot **slot, const char *match, sd_bus_message_handler_t f,
          sd_bus_message_handler_t installed, void *userdata),
         (bus, slot, match, f, installed, userdata))
WRAP_BUS(sd_bus_path_encode, (const char *prefix, const char *id, char **ret), (prefix, id, ret))
WRAP_BUS(sd_event_add_io,
         (sd_event * event, sd_event_source **s, int fd, uint32_t events, sd_event_io_handler_t f,
          void *userdata),
         (event, s, fd, events, f, userdata))
WRAP_BUS(sd_event_add_time,
         (sd_event * event, sd_event_source **s, clockid_t clock, uint64_t usec, uint64_t accuracy,
          sd_event_time_handler_t f, void *userdata),
         (event, s, clock, usec, accuracy, f, userdata))
WRAP_BUS(sd_event_add_time_relative,
         (sd_event * event, sd_event_source **s, clockid_t clock, uint64_t usec, uint64_t accuracy,
          sd_event_time_handler_t f, void *userdata),
         (event, s, clock, usec, accuracy, f, userdata))
WRAP_BUS(sd_event_add_defer,
         (sd_event * event, sd_event_source **s, sd_event_handler_t f, void *userdata),
         (event, s, f, userdata))

/* WRAP_VARIABLE(name, parameters, last, call): call uses ap. */
#define WRAP_VARIABLE(name, parameters, last, call)                                                \
        int __wrap_##name parameters;                                                              \
        int __wrap_##name parameters {                                                             \
                va_list ap;                                                                        \
                int r;                                                                             \
                                                                                                   \
                if (STRIKES(FAULT_BUS))                                                            \
                        return -ENOMEM;                                                            \
                va_start(ap, last);                                                                \
                r = call;                                                                          \
                va_end(ap);                                                                        \
                return r;                                                                          \
        }

WRAP_VARIABLE(sd_bus_message_append, (sd_bus_message * m, const char *types, ...), types,
              sd_bus_message_appendv(m, types, ap))
/* Only what enters a container takes memory for it. */
int __wrap_sd_bus_message_read(sd_bus_message *m, const char *types, ...);
int __wrap_sd_bus_message_read(sd_bus_message *m, const char *types, ...) {
        va_list ap;
        int r;

        if (strpbrk(types, "a({v") && STRIKES(FAULT_BUS))
                return -ENOMEM;
        va_start(ap, types);
        r = sd_bus_message_readv(m, types, ap);
        va_end(ap);
        return r;
}

/* A descriptor in a message is a copy of the one that is given. */
int __real_sd_bus_message_append_basic(sd_bus_message *m, char type, const void *p);
int __wrap_sd_bus_message_append_basic(sd_bus_message *m, char type, const void *p);
int __wrap_sd_bus_message_append_basic(sd_bus_message *m, char type, const void *p) {
        if (STRIKES(FAULT_BUS) || (type == 'h' && STRIKES(FAULT_SYSTEM)))
                return -errno;
        return __real_sd_bus_message_append_basic(m, type, p);
}

int __wrap_sd_bus_reply_method_return(sd_bus_message *m, const char *types, ...);
int __wrap_sd_bus_reply_method_return(sd_bus_message *m, const char *types, ...) {
        va_list ap;
        int r;

        if (STRIKES(FAULT_BUS) || (types && strchr(types, 'h') && STRIKES(FAULT_SYSTEM)))
                return -errno;
        va_start(ap, types);
        r = sd_bus_reply_method_returnv(m, types, ap);
        va_end(ap);
        return r;
}

__attribute__((format(printf, 3, 4))) int __wrap_sd_bus_reply_method_errorf(sd_bus_message *m,
                                                                            const char *name,
                                                                            const char *format,
                                                                            ...);
WRAP_VARIABLE(sd_bus_reply_method_errorf,
              (sd_bus_message * m, const char *name, const char *format, ...), format,
              sd_bus_reply_method_errorfv(m, name, format, ap))
WRAP_VARIABLE(sd_bus_emit_signal,
              (sd_bus * bus, const char *path, const char *interface, const char *member,
               const char *types, ...),
              types, sd_bus_emit_signalv(bus, path, interface, member, types, ap))
WRAP_VARIABLE(sd_bus_call_method_async,
              (sd_bus * bus, sd_bus_slot **slot, const char *name, const char *path,
               const char *interface, const char *member, sd_bus_message_handler_t f,
               void *userdata, const char *types, ...),
              types,
              sd_bus_call_method_asyncv(bus, slot, name, path, interface, member, f, userdata,
                                        types, ap))

int __wrap_sd_bus_emit_properties_changed(sd_bus *bus, const char *path, const char *interface,
                                          const char *name, ...);
int __wrap_sd_bus_emit_properties_changed(sd_bus *bus, const char *path, const char *interface,
                                          const char *name, ...) {
        char *names[8] = { (char *) (uintptr_t) name };
        va_list ap;

        if (STRIKES(FAULT_BUS))
                return -ENOMEM;
        va_start(ap, name);
        for (size_t i = 1; names[i - 1]; i++)
                if (i >= sizeof(names) / sizeof(names[0]))
                        abort();
                else
                        names[i] = va_arg(ap, char *);
        va_end(ap);
        return sd_bus_emit_properties_changed_strv(bus, path, interface, names);
}
