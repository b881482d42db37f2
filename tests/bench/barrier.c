/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the barrier of a job step costs (slurm/barrier.h), by the number of its nodes.
 *
 * The nodes are threads of this process, which report at the same time as slurmstepds do, and share
 * this machine's CPUs with the process that collects. So it is an upper bound for srun's part; the
 * network's round trip comes on top, once. Prints the median of some barriers, from the first
 * report to the last answer.
 *
 * usage: bench-barrier [NODES...]
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/clock.h"
#include "core/util.h"
#include "slurm/barrier.h"

#define TRIALS       11u
#define NODES_MAX    10000u
#define TIMEOUT_USEC (60 * USEC_PER_SEC)
#define STACK_BYTES  (128u << 10)

typedef struct Node {
        pthread_t thread;
        const char *address;
        pthread_barrier_t *start;
        char name[32];
        int result;
} Node;

static _Noreturn void fail(const char *what, int error) {
        (void) fprintf(stderr, "bench-barrier: %s: %s\n", what, strerror(error));
        exit(EXIT_FAILURE);
}

static void *node_run(void *data) {
        Node *n = data;
        char words[BARRIER_LINE_MAX];

        (void) pthread_barrier_wait(n->start);
        n->result = barrier_report(n->address,
                                   &(BarrierReport){ .node = n->name, .held = true, .words = "" },
                                   TIMEOUT_USEC, words);
        return NULL;
}

static void nodes_start(Node *nodes, size_t n, const Barrier *b, pthread_barrier_t *start) {
        pthread_attr_t attr;

        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        for (size_t i = 0; i < n; i++) {
                int r;

                nodes[i].address = b->address;
                nodes[i].start = start;
                (void) snprintf(nodes[i].name, sizeof(nodes[i].name), "node%zu", i);
                r = pthread_create(&nodes[i].thread, &attr, node_run, &nodes[i]);
                if (r != 0)
                        fail("cannot start a node", r);
        }
        (void) pthread_attr_destroy(&attr);
}

static uint64_t barrier_time(size_t n) {
        _cleanup_free_ Node *nodes = calloc(n, sizeof(*nodes));
        Barrier b = BARRIER_NULL;
        pthread_barrier_t start;
        uint64_t began;
        int r;

        if (!nodes)
                fail("nodes", ENOMEM);
        r = barrier_start(&b, "simulated", TIMEOUT_USEC);
        if (r == 0)
                r = barrier_expect(&b, (uint32_t) n);
        if (r < 0)
                fail("cannot start the barrier", -r);
        (void) pthread_barrier_init(&start, NULL, (unsigned) n + 1);
        nodes_start(nodes, n, &b, &start);
        began = now_usec(CLOCK_MONOTONIC);
        (void) pthread_barrier_wait(&start);
        for (size_t i = 0; i < n; i++) {
                (void) pthread_join(nodes[i].thread, NULL);
                if (nodes[i].result != 0)
                        fail("a node was not let go", EPROTO);
        }
        began = now_usec(CLOCK_MONOTONIC) - began;
        barrier_done(&b);
        (void) pthread_barrier_destroy(&start);
        return began;
}

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

static void measure(size_t n) {
        uint64_t times[TRIALS];

        for (size_t i = 0; i < TRIALS; i++)
                times[i] = barrier_time(n);
        qsort(times, TRIALS, sizeof(*times), compare);
        printf("%5zu nodes: %7.1f ms (%.1f to %.1f), 2 messages and %.1f µs a node\n", n,
               (double) times[TRIALS / 2] / 1000, (double) times[0] / 1000,
               (double) times[TRIALS - 1] / 1000, (double) times[TRIALS / 2] / (double) n);
        (void) fflush(stdout);
}

int main(int argc, char **argv) {
        static const size_t usual[] = { 3, 10, 100, 1000 };
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &limit);
        }
        for (int i = 1; i < argc; i++) {
                unsigned long n = strtoul(argv[i], NULL, 10);

                if (n == 0 || n > NODES_MAX)
                        fail(argv[i], ERANGE);
                measure(n);
        }
        for (size_t i = 0; argc < 2 && i < ELEMENTSOF(usual); i++)
                measure(usual[i]);
        return EXIT_SUCCESS;
}
