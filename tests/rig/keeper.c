/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * systemd's part in a rig without systemd: starts the service, keeps its descriptors (sd_notify(3):
 * FDSTORE=1) and restarts it with them after a failure, as Restart=on-failure does, but at once. As
 * in systemd 252, descriptors that were stored last come first, and all are dropped when the
 * service ends successfully.
 *
 * usage: keeper DIRECTORY MAX COMMAND [ARG...]
 *
 * MAX is FileDescriptorStoreMax=; with 0 there is no notification socket either. COMMAND must
 * become the service by exec, for LISTEN_PID. Files in DIRECTORY, as long as they are true:
 *
 * - service.pid: of the process that was started last
 * - service.ready: the same, from READY=1 to STOPPING=1
 * - service.stored: the number of kept descriptors
 * - service.failures: a line for each failed end; SIGKILL is no failure
 * - service.wanted: written by others: what follows the next end, "over" or "again" (required after
 *   a success)
 * - service.masked: written by others: the service must not be started
 */

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "core/util.h"

#define SOCKET        "service.notify"
#define FAILURES_MAX  3 /* in a row, without having been ready */
#define MESSAGE_MAX   4096
#define MESSAGE_FDS   253
#define FIRST_LISTEN  3
#define NAME_FALLBACK "stored"

typedef struct Stored {
        LIST_ENTRY(Stored) list;
        char *name;
        int fd;
        bool polled; /* gone when it hangs up */
} Stored;

typedef struct Keeper {
        LIST_HEAD(, Stored) stored; /* newest first */
        size_t n_stored, n_written, max;
        char **command;
        int socket;
        pid_t pid;
        int pidfd;
        bool ready, was_ready;
        unsigned n_failures;
} Keeper;

static _Noreturn void die(const char *what) {
        (void) fprintf(stderr, "keeper: %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
}

/* ---- files ---- */

/* Written at once: no reader sees a part. */
static void file_write(const char *name, long long value) {
        char other[64];
        FILE *f;

        (void) snprintf(other, sizeof(other), ".%s", name);
        f = fopen(other, "we");
        if (!f || fprintf(f, "%lld\n", value) < 0 || fclose(f) != 0 || rename(other, name) < 0)
                die(name);
}

static void failure_write(int status) {
        FILE *f = fopen("service.failures", "ae");

        if (!f ||
            fprintf(f, "ended %s %d\n", WIFSIGNALED(status) ? "by signal" : "with status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) < 0 ||
            fclose(f) != 0)
                die("service.failures");
}

/* "" when nobody wants anything. */
static void wanted_take(char ret[static 16]) {
        FILE *f = fopen("service.wanted", "re");

        if (!f || fscanf(f, "%15s", ret) != 1)
                *ret = '\0';
        if (f)
                (void) fclose(f);
        (void) unlink("service.wanted");
}

/* ---- descriptors ---- */

static void stored_free(Keeper *k, Stored *s) {
        LIST_REMOVE(s, list);
        k->n_stored--;
        (void) close(s->fd);
        free(s->name);
        free(s);
}

static bool is_same(int a, int b) {
        pid_t self = getpid();

        return syscall(SYS_kcmp, self, self, KCMP_FILE, a, b) == 0;
}

static void keep(Keeper *k, const char *name, int fd, bool polled) {
        Stored *s;

        LIST_FOREACH (s, &k->stored, list)
                if (is_same(s->fd, fd)) {
                        (void) close(fd);
                        return;
                }
        if (k->n_stored >= k->max) {
                (void) fprintf(stderr, "keeper: the store is full, %s is dropped\n", name);
                (void) close(fd);
                return;
        }
        s = calloc(1, sizeof(Stored));
        if (!s || !(s->name = strdup(name)))
                die(name);
        s->fd = fd;
        s->polled = polled;
        LIST_INSERT_HEAD(&k->stored, s, list);
        k->n_stored++;
}

static void forget(Keeper *k, const char *name) {
        for (Stored *s = LIST_FIRST(&k->stored), *next; s; s = next) {
                next = LIST_NEXT(s, list);
                if (!name || strcmp(s->name, name) == 0)
                        stored_free(k, s);
        }
}

static void stored_write(Keeper *k) {
        if (k->n_stored != k->n_written)
                file_write("service.stored", (long long) k->n_stored);
        k->n_written = k->n_stored;
}

/* ---- messages ---- */

/* The value of a line, to be freed. */
static char *message_get(const char *text, const char *key) {
        size_t n = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, n) == 0 && line[n] == '=')
                        return strndup(line + n + 1, strcspn(line + n + 1, "\n"));
        }
        return NULL;
}

static bool message_says(const char *text, const char *key, const char *value) {
        _cleanup_free_ char *is = message_get(text, key);

        return is && strcmp(is, value) == 0;
}

static void message_handle(Keeper *k, const char *text, const int *fds, size_t n_fds) {
        _cleanup_free_ char *name = message_get(text, "FDNAME");

        if (message_says(text, "READY", "1")) {
                k->ready = k->was_ready = true;
                k->n_failures = 0;
                file_write("service.ready", k->pid);
        }
        if (message_says(text, "STOPPING", "1"))
                (void) unlink("service.ready");
        if (message_says(text, "FDSTOREREMOVE", "1") && name)
                forget(k, name);
        for (size_t i = 0; i < n_fds; i++)
                if (message_says(text, "FDSTORE", "1"))
                        keep(k, name ?: NAME_FALLBACK, fds[i], !message_says(text, "FDPOLL", "0"));
                else
                        (void) close(fds[i]); /* BARRIER=1 waits for this */
}

static bool message_receive(Keeper *k) {
        static char text[MESSAGE_MAX + 1];
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(MESSAGE_FDS * sizeof(int))];
        } control;
        struct iovec iov = { .iov_base = text, .iov_len = MESSAGE_MAX };
        struct msghdr m = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n = recvmsg(k->socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0)
                return false;
        text[n] = '\0';
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        bool has_fds = c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS;
        message_handle(k, text, has_fds ? (int *) CMSG_DATA(c) : NULL,
                       has_fds ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0);
        return true;
}

static void socket_open(Keeper *k) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SOCKET };

        (void) unlink(SOCKET);
        k->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (k->socket < 0 || bind(k->socket, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            chmod(SOCKET, 0666) < 0)
                die(SOCKET);
}

/* ---- the service ---- */

static char *names_join(Keeper *k) {
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        Stored *s;

        if (!f)
                die("names");
        LIST_FOREACH (s, &k->stored, list)
                (void) fprintf(f, "%s%s", s == LIST_FIRST(&k->stored) ? "" : ":", s->name);
        if (fclose(f) != 0)
                die("names");
        return text;
}

/* First moves them out of each other's way, then to their places. */
static void fds_pass(Keeper *k) {
        int end = FIRST_LISTEN + (int) k->n_stored, at = FIRST_LISTEN;
        Stored *s;

        LIST_FOREACH (s, &k->stored, list) {
                s->fd = fcntl(s->fd, F_DUPFD_CLOEXEC, end);
                if (s->fd < 0)
                        die("dup");
        }
        LIST_FOREACH (s, &k->stored, list)
                if (dup2(s->fd, at++) < 0)
                        die("dup");
        (void) close_range((unsigned) end, ~0U, CLOSE_RANGE_CLOEXEC);
}

static _Noreturn void service_exec(Keeper *k) {
        _cleanup_free_ char *names = names_join(k), *path = NULL;
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        char number[32];

        if (k->max > 0) {
                if (!directory || asprintf(&path, "%s/" SOCKET, directory) < 0)
                        die(SOCKET);
                (void) setenv("NOTIFY_SOCKET", path, 1);
        }
        if (k->n_stored > 0) {
                (void) snprintf(number, sizeof(number), "%zu", k->n_stored);
                (void) setenv("LISTEN_FDS", number, 1);
                (void) snprintf(number, sizeof(number), "%d", (int) getpid());
                (void) setenv("LISTEN_PID", number, 1);
                (void) setenv("LISTEN_FDNAMES", names, 1);
        }
        fds_pass(k);
        if (chdir("/") < 0)
                die("/");
        (void) execvp(k->command[0], k->command);
        die(k->command[0]);
}

static void service_start(Keeper *k) {
        k->ready = false;
        k->pid = fork();
        if (k->pid < 0)
                die("fork");
        if (k->pid == 0)
                service_exec(k);
        k->pidfd = (int) syscall(SYS_pidfd_open, k->pid, 0);
        if (k->pidfd < 0)
                die("pidfd_open");
        file_write("service.pid", k->pid);
}

/* Whether it is to be started again. */
static bool service_ended(Keeper *k, int status) {
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        char wanted[16];

        k->pidfd = close_fd(k->pidfd);
        (void) unlink("service.ready");
        wanted_take(wanted);
        if (status != 0 && !killed) {
                failure_write(status);
                if (!k->ready)
                        k->n_failures++;
        }
        if (access("service.masked", F_OK) == 0 || strcmp(wanted, "over") == 0)
                return false;
        if (strcmp(wanted, "again") == 0 || killed)
                return true;
        return status != 0 && k->was_ready && k->n_failures < FAILURES_MAX;
}

/* Drops polled descriptors that have hung up, as systemd does. */
static void stored_look(Keeper *k, const struct pollfd *p) {
        for (Stored *s = LIST_FIRST(&k->stored), *next; s; s = next) {
                next = LIST_NEXT(s, list);
                if (s->polled && (p++)->revents & (POLLERR | POLLHUP))
                        stored_free(k, s);
        }
}

static void service_watch(Keeper *k) {
        while (true) {
                _cleanup_free_ struct pollfd *p = calloc(k->n_stored + 2, sizeof(struct pollfd));
                nfds_t n = 2;
                Stored *s;

                if (!p)
                        die("poll");
                p[0] = (struct pollfd){ .fd = k->pidfd, .events = POLLIN };
                p[1] = (struct pollfd){ .fd = k->socket, .events = POLLIN };
                LIST_FOREACH (s, &k->stored, list)
                        if (s->polled)
                                p[n++] = (struct pollfd){ .fd = s->fd };
                if (poll(p, n, -1) < 0)
                        die("poll");
                stored_look(k, p + 2);
                /* what it sent before its end counts */
                while (message_receive(k))
                        ;
                stored_write(k);
                if (p[0].revents)
                        return;
        }
}

int main(int argc, char *argv[]) {
        Keeper k = { .socket = -1, .pidfd = -1 };
        int status;

        if (argc < 4) {
                (void) fprintf(stderr, "usage: keeper DIRECTORY MAX COMMAND [ARG...]\n");
                return EXIT_FAILURE;
        }
        k.max = strtoul(argv[2], NULL, 10);
        k.command = argv + 3;
        if (chdir(argv[1]) < 0)
                die(argv[1]);
        /* the starter's lock stays open here, and is not the service's */
        (void) close_range(FIRST_LISTEN, ~0U, CLOSE_RANGE_CLOEXEC);
        if (k.max > 0)
                socket_open(&k);
        (void) unlink("service.wanted");
        file_write("service.stored", 0);
        do {
                service_start(&k);
                service_watch(&k);
                if (waitpid(k.pid, &status, 0) < 0)
                        die("waitpid");
        } while (service_ended(&k, status));
        forget(&k, NULL);
        stored_write(&k);
        (void) unlink("service.pid");
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
