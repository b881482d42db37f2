/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "barrier.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/clock.h"

#define KEY_BYTES   16u
#define REPORT_USEC (5 * USEC_PER_SEC) /* longer than srun waits: it says which nodes are late */

/* ---- srun ---- */

static int listen_anywhere(uint16_t *ret_port) {
        struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
        struct sockaddr_in b = { .sin_family = AF_INET };
        socklen_t n = sizeof(a);
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd >= 0 && bind(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                fd = close_fd(fd);
        if (fd < 0) { /* a machine without IPv6 */
                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                if (fd >= 0 && bind(fd, (struct sockaddr *) &b, sizeof(b)) < 0)
                        fd = close_fd(fd);
        }
        if (fd < 0 || listen(fd, SOMAXCONN) < 0 ||
            getsockname(fd, (struct sockaddr *) &a, &n) < 0) {
                int error = -errno;

                close_fd(fd);
                return error;
        }
        *ret_port = ntohs(a.sin6_port); /* at the same place for both families */
        return fd;
}

static int address_make(Barrier *b, uint16_t port) {
        unsigned char key[KEY_BYTES];
        char host[256];
        size_t n;

        if (gethostname(host, sizeof(host)) < 0 || getrandom(key, sizeof(key), 0) < 0)
                return -errno;
        n = (size_t) snprintf(b->address, sizeof(b->address), "%s %u ", host, port);
        for (size_t i = 0; i < sizeof(key); i++)
                n += (size_t) snprintf(b->address + n, sizeof(b->address) - n, "%02x", key[i]);
        return 0;
}

/* The collecting process is no child of srun's, which would wait for it. */
static void collector_fork(const Barrier *b, int listener, int control, const char *nodes,
                           uint64_t timeout_usec) {
        const char *key = strrchr(b->address, ' ') + 1;

        if (fork() != 0)
                _exit(0);
        (void) signal(SIGINT, SIG_IGN); /* srun ends by it, and then this process */
        (void) signal(SIGPIPE, SIG_IGN);
        close_fd(b->control);
        collect(listener, control, key, nodes, timeout_usec);
        _exit(0);
}

int barrier_start(Barrier *b, const char *nodes, uint64_t timeout_usec) {
        _cleanup_close_ int listener = -1, control = -1;
        uint16_t port = 0;
        int fds[2], r;
        pid_t pid;

        listener = listen_anywhere(&port);
        r = listener < 0 ? listener : address_make(b, port);
        if (r < 0)
                return r;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        b->control = fds[0];
        control = fds[1];
        pid = fork();
        if (pid == 0)
                collector_fork(b, listener, control, nodes, timeout_usec);
        if (pid < 0)
                return -errno;
        (void) waitpid(pid, NULL, 0);
        return 0;
}

int barrier_expect(Barrier *b, uint32_t n_nodes) {
        return send(b->control, &n_nodes, sizeof(n_nodes), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void barrier_done(Barrier *b) {
        b->control = close_fd(b->control);
}

/* ---- slurmstepd ---- */

static int connect_to(const char *host, const char *port, uint64_t timeout_usec) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        const struct timeval t = { .tv_sec = (time_t) (timeout_usec / USEC_PER_SEC) };
        struct addrinfo *all = NULL;
        int fd = -1;

        if (getaddrinfo(host, port, &hints, &all) != 0)
                return -EHOSTUNREACH;
        for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
                fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
                if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0 ||
                                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0 ||
                                connect(fd, a->ai_addr, a->ai_addrlen) < 0))
                        fd = close_fd(fd);
        }
        freeaddrinfo(all);
        return fd < 0 ? -ECONNREFUSED : fd;
}

static int unreachable(char words[static BARRIER_LINE_MAX], const char *why) {
        (void) snprintf(words, BARRIER_LINE_MAX, "%s", why);
        return BARRIER_E_UNREACHABLE;
}

static int answer_read(int fd, char words[static BARRIER_LINE_MAX]) {
        ssize_t n = recv(fd, words, BARRIER_LINE_MAX - 1, MSG_WAITALL);

        if (n < 0)
                return unreachable(words, "srun does not answer in time");
        words[n] = '\0';
        words[strcspn(words, "\n")] = '\0';
        if (strcmp(words, "go") == 0)
                return 0;
        return *words ? BARRIER_E_STOP : unreachable(words, "srun has gone");
}

int barrier_report(const char *address, const BarrierReport *report, uint64_t timeout_usec,
                   char words[static BARRIER_LINE_MAX]) {
        _cleanup_close_ int fd = -1;
        char host[256], port[8], key[2 * KEY_BYTES + 1], line[BARRIER_LINE_MAX];
        int n;

        if (sscanf(address, "%255s %7[0-9] %32[0-9a-f]", host, port, key) != 3)
                return unreachable(words, "srun's address cannot be read");
        fd = connect_to(host, port, usec_add(timeout_usec, REPORT_USEC));
        if (fd < 0)
                return unreachable(words, "srun cannot be reached");
        n = snprintf(line, sizeof(line), "%s %.64s %s %.600s\n", key, report->node,
                     report->held ? "held" : "failed", report->words);
        if (send(fd, line, (size_t) n, MSG_NOSIGNAL) != n)
                return unreachable(words, "srun cannot be reached");
        return answer_read(fd, words);
}
