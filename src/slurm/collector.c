/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "collector.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/clock.h"

#define N_FIXED       2u  /* polled besides nodes: the control, the listener */
#define STRANGERS_MAX 64u /* connections that have not shown the key */

typedef struct Node {
        char line[BARRIER_LINE_MAX]; /* what it has sent so far */
        size_t n;
        bool reported;
        char name[65];
} Node;

typedef struct Collector {
        struct pollfd *fds; /* N_FIXED, then one for each node */
        Node *nodes;
        size_t n_nodes, n_reported;
        uint64_t n_expected, n_answered;
        const char *key, *names;
        bool over;                         /* the answer is known */
        bool gone;                         /* srun is not there any more */
        char answer[BARRIER_LINE_MAX + 1]; /* to all nodes */
} Collector;

static void say(const char *format, ...) _printf_(1, 2);

static void say(const char *format, ...) {
        char text[BARRIER_LINE_MAX + 128];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        (void) fprintf(stderr, "srun: perfalloc: %s\n", text);
}

static void collector_end(Collector *c, const char *answer) {
        if (c->over)
                return;
        c->over = true;
        (void) snprintf(c->answer, sizeof(c->answer), "%.1000s\n", answer);
}

static void collector_stop(Collector *c, const char *why) {
        if (!c->over)
                say("%s; no task is started, and all nodes release their counters", why);
        collector_end(c, why);
}

/* ---- nodes ---- */

static void node_remove(Collector *c, size_t i) {
        close_fd(c->fds[N_FIXED + i].fd);
        c->n_nodes--;
        c->n_reported -= c->nodes[i].reported;
        c->nodes[i] = c->nodes[c->n_nodes];
        c->fds[N_FIXED + i] = c->fds[N_FIXED + c->n_nodes];
}

/* "KEY NODE held|failed WORDS" */
static bool node_read_line(Collector *c, Node *node) {
        size_t n = strlen(c->key);
        char state[8] = "", why[BARRIER_LINE_MAX];
        int words = 0;

        if (strncmp(node->line, c->key, n) != 0 ||
            sscanf(node->line + n, " %64s %7s %n", node->name, state, &words) != 2)
                return false;
        node->reported = true;
        c->n_reported++;
        (void) snprintf(why, sizeof(why), "%s: %.600s", node->name, node->line + n + words);
        if (strcmp(state, "held") != 0)
                collector_stop(c, why);
        else if (node->line[n + (size_t) words])
                say("%s", why);
        return true;
}

/* False: it is to be dropped. */
static bool node_receive(Collector *c, size_t i) {
        Node *node = &c->nodes[i];
        ssize_t n = recv(c->fds[N_FIXED + i].fd, node->line + node->n,
                         sizeof(node->line) - 1 - node->n, 0);
        char why[128], *end;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return true;
        if (n <= 0 || node->reported) {
                (void) snprintf(why, sizeof(why), "%s: its slurmstepd has ended", node->name);
                if (node->reported)
                        collector_stop(c, why);
                return false;
        }
        node->n += (size_t) n;
        node->line[node->n] = '\0';
        end = strchr(node->line, '\n');
        if (!end)
                return node->n < sizeof(node->line) - 1;
        *end = '\0';
        return node_read_line(c, node);
}

static void collector_accept(Collector *c, int listener) {
        struct pollfd *fds;
        Node *nodes;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        if (c->n_nodes >= c->n_expected + STRANGERS_MAX) {
                close_fd(fd);
                return;
        }
        fds = reallocarray(c->fds, N_FIXED + c->n_nodes + 1, sizeof(*fds));
        c->fds = fds ?: c->fds;
        nodes = reallocarray(c->nodes, c->n_nodes + 1, sizeof(*nodes));
        c->nodes = nodes ?: c->nodes;
        if (!fds || !nodes) {
                close_fd(fd);
                return;
        }
        c->nodes[c->n_nodes] = (Node){};
        c->fds[N_FIXED + c->n_nodes++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* ---- srun ---- */

static void collector_hear_srun(Collector *c, int control) {
        uint32_t n;

        if (recv(control, &n, sizeof(n), 0) == (ssize_t) sizeof(n))
                c->n_expected += n;
        else {
                collector_end(c, "srun has ended");
                c->gone = true;
        }
}

static void collector_late(Collector *c, uint64_t timeout_usec) {
        char why[BARRIER_LINE_MAX], named[512] = "";

        for (size_t i = 0; i < c->n_nodes; i++)
                if (c->nodes[i].reported && strlen(named) < sizeof(named) - 80)
                        (void) snprintf(named + strlen(named), sizeof(named) - strlen(named),
                                        "%s%s", *named ? "," : "", c->nodes[i].name);
        (void) snprintf(why, sizeof(why),
                        "only %zu of %" PRIu64 " nodes have reported within %" PRIu64
                        " s (of %.200s: %s)",
                        c->n_reported, c->n_expected, timeout_usec / USEC_PER_SEC, c->names,
                        *named ? named : "none");
        collector_stop(c, why);
}

/* ---- all ---- */

static void collector_turn(Collector *c) {
        size_t n = c->n_nodes;

        for (size_t i = n; i-- > 0;)
                if (c->fds[N_FIXED + i].revents && !node_receive(c, i))
                        node_remove(c, i);
        if (c->fds[1].revents)
                collector_accept(c, c->fds[1].fd);
        if (c->fds[0].revents)
                collector_hear_srun(c, c->fds[0].fd);
        if (c->n_expected > 0 && c->n_reported >= c->n_expected)
                collector_end(c, "go");
}

/* Nodes that report after another one has failed get the same answer. */
static void collector_answer(Collector *c) {
        for (size_t i = c->n_nodes; i-- > 0;)
                if (c->nodes[i].reported) {
                        (void) send(c->fds[N_FIXED + i].fd, c->answer, strlen(c->answer),
                                    MSG_NOSIGNAL);
                        node_remove(c, i);
                        c->n_answered++;
                }
}

static bool collector_is_done(const Collector *c) {
        return c->gone || (c->over && c->n_answered >= c->n_expected);
}

static void collector_done(Collector *c) {
        while (c->n_nodes > 0)
                node_remove(c, c->n_nodes - 1);
        free(c->fds);
        free(c->nodes);
}

/* A connection for each node. */
static void raise_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &limit);
        }
}

void collect(int listener, int control, const char *key, const char *nodes, uint64_t timeout_usec) {
        uint64_t end = usec_add(now_usec(CLOCK_MONOTONIC), timeout_usec), now;
        Collector c = { .key = key, .names = nodes };

        raise_limit();
        c.fds = calloc(N_FIXED, sizeof(*c.fds));
        if (!c.fds)
                return;
        c.fds[0] = (struct pollfd){ .fd = control, .events = POLLIN };
        c.fds[1] = (struct pollfd){ .fd = listener, .events = POLLIN };
        while (!collector_is_done(&c) && (now = now_usec(CLOCK_MONOTONIC)) < end) {
                int wait = (int) MIN((end - now) / USEC_PER_MSEC + 1, (uint64_t) INT32_MAX);

                if (poll(c.fds, (nfds_t) (N_FIXED + c.n_nodes), wait) > 0)
                        collector_turn(&c);
                if (c.over)
                        collector_answer(&c);
        }
        if (!c.over)
                collector_late(&c, timeout_usec);
        collector_answer(&c);
        collector_done(&c);
}
