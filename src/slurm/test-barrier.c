/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slurm/barrier.h"

#include <glib.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define LONG_USEC (60 * USEC_PER_SEC)

/* ---- nodes that report, each in a thread ---- */

typedef struct Member {
        const char *address;
        BarrierReport report;
        char words[BARRIER_LINE_MAX];
        int result;
        GThread *thread;
} Member;

static void *member_run(void *data) {
        Member *m = data;

        m->result = barrier_report(m->address, &m->report, LONG_USEC, m->words);
        return NULL;
}

static Member *member_start(const Barrier *b, const char *node, bool held, const char *words) {
        Member *m = g_new0(Member, 1);

        m->address = b->address;
        m->report = (BarrierReport){ .node = node, .held = held, .words = words };
        m->thread = g_thread_new(node, member_run, m);
        return m;
}

static void member_end(Member *m, int result, const char *words) {
        g_thread_join(m->thread);
        if (m->result != result || !strstr(m->words, words))
                g_error("%s: %d, '%s', wanted %d, '%s'", m->report.node, m->result, m->words,
                        result, words);
        g_free(m);
}

/* A root of its own may not know the name of the machine. */
static void address_by_number(Barrier *b) {
        g_autofree char *address = g_strconcat("127.0.0.1", strchr(b->address, ' '), NULL);

        g_assert_cmpuint(g_strlcpy(b->address, address, sizeof(b->address)), <, sizeof(b->address));
}

static Barrier barrier_of(uint32_t n, uint64_t timeout_usec) {
        Barrier b = BARRIER_NULL;

        g_assert_cmpint(barrier_start(&b, "node[1-3]", timeout_usec), ==, 0);
        address_by_number(&b);
        g_assert_cmpint(barrier_expect(&b, n), ==, 0);
        return b;
}

static void test_all_go_when_all_have_reported(void) {
        Barrier b = barrier_of(2, LONG_USEC);
        Member *one, *two, *three;

        g_assert_cmpint(barrier_expect(&b, 1), ==, 0); /* another component of the step */
        one = member_start(&b, "node1", true, "");
        two = member_start(&b, "node2", true, "not confirmed");
        three = member_start(&b, "node3", true, "");
        member_end(one, 0, "go");
        member_end(two, 0, "go");
        member_end(three, 0, "go");
        barrier_done(&b);
}

static void test_one_that_fails_stops_all(void) {
        Barrier b = barrier_of(3, LONG_USEC);
        Member *one = member_start(&b, "node1", true, "");
        Member *two = member_start(&b, "node2", false, "others hold the counters");

        member_end(one, BARRIER_E_STOP, "node2: others hold the counters");
        member_end(two, BARRIER_E_STOP, "node2: others hold the counters");
        /* the last one comes when the answer is known */
        member_end(member_start(&b, "node3", true, ""), BARRIER_E_STOP,
                   "node2: others hold the counters");
        barrier_done(&b);
}

static void test_one_that_never_comes_is_counted(void) {
        Barrier b = barrier_of(2, 300 * USEC_PER_MSEC);
        Member *one = member_start(&b, "node1", true, "");

        member_end(one, BARRIER_E_STOP, "only 1 of 2 nodes");
        barrier_done(&b);
}

static void test_srun_that_ends_stops_all(void) {
        Barrier b = barrier_of(2, LONG_USEC);
        Member *one = member_start(&b, "node1", true, "");

        barrier_done(&b);
        g_thread_join(TAKE_PTR(one->thread));
        g_assert_cmpint(one->result, !=, 0);
        g_assert_nonnull(strstr(one->words, "srun"));
        g_free(one);
}

/* ---- connections by hand ---- */

static int connection_new(const Barrier *b) {
        char host[256], port[8];
        struct addrinfo *all, hints = { .ai_socktype = SOCK_STREAM };
        int fd;

        g_assert_cmpint(sscanf(b->address, "%255s %7s", host, port), ==, 2);
        g_assert_cmpint(getaddrinfo(host, port, &hints, &all), ==, 0);
        fd = socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        g_assert_cmpint(connect(fd, all->ai_addr, all->ai_addrlen), ==, 0);
        freeaddrinfo(all);
        return fd;
}

static void connection_report(const Barrier *b, int fd, unsigned node) {
        g_autofree char *line =
                g_strdup_printf("%s node%u held \n", strrchr(b->address, ' ') + 1, node);

        g_assert_cmpint(send(fd, line, strlen(line), MSG_NOSIGNAL), ==, strlen(line));
}

static void connection_end(int fd, const char *words) {
        char answer[BARRIER_LINE_MAX] = "";

        g_assert_cmpint(recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL), >=, 0);
        g_assert_nonnull(strstr(answer, words));
        close(fd);
}

static void test_node_that_dies_stops_all(void) {
        Barrier b = barrier_of(3, LONG_USEC);
        int one = connection_new(&b), two = connection_new(&b);

        connection_report(&b, one, 1);
        connection_report(&b, two, 2);
        close(two);
        connection_end(one, "node2: its slurmstepd has ended");
        barrier_done(&b);
}

static void test_strangers_are_dropped(void) {
        Barrier b = barrier_of(1, LONG_USEC);
        char endless[4096];
        int stranger = connection_new(&b), other = connection_new(&b), one;

        memset(endless, 'x', sizeof(endless));
        (void) send(stranger, "0000 node1 failed for fun\n", 26, MSG_NOSIGNAL);
        connection_end(stranger, "");
        (void) send(other, endless, sizeof(endless), MSG_NOSIGNAL);
        one = connection_new(&b);
        connection_report(&b, one, 1);
        connection_end(one, "go");
        close(other);
        barrier_done(&b);
}

/* What a thousand nodes cost srun: a connection and two lines each. */
static void test_a_thousand_nodes(void) {
        struct rlimit limit;
        unsigned n = 1000;
        Barrier b;
        g_autofree int *fds = g_new(int, n);
        gint64 began;

        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        limit.rlim_cur = limit.rlim_max;
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        if (limit.rlim_max < n + 64) {
                g_test_skip("too few descriptors");
                return;
        }
        b = barrier_of(n, LONG_USEC);
        began = g_get_monotonic_time();
        for (unsigned i = 0; i < n; i++) {
                fds[i] = connection_new(&b);
                connection_report(&b, fds[i], i);
        }
        for (unsigned i = 0; i < n; i++)
                connection_end(fds[i], "go");
        g_test_message("%u nodes: %.1f ms", n, (double) (g_get_monotonic_time() - began) / 1000);
        barrier_done(&b);
}

static void test_address_that_is_none_stops(void) {
        static const char *const addresses[] = { "", "x", "localhost 99999999 ab", "localhost 1",
                                                 "localhost 1 00000000000000000000000000000000" };
        char words[BARRIER_LINE_MAX];

        for (size_t i = 0; i < G_N_ELEMENTS(addresses); i++)
                g_assert_cmpint(barrier_report(addresses[i],
                                               &(BarrierReport){ .node = "node1", .words = "" },
                                               USEC_PER_SEC, words),
                                ==, BARRIER_E_UNREACHABLE);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/barrier/all-go-when-all-have-reported",
                        test_all_go_when_all_have_reported);
        g_test_add_func("/barrier/one-that-fails-stops-all", test_one_that_fails_stops_all);
        g_test_add_func("/barrier/one-that-never-comes-is-counted",
                        test_one_that_never_comes_is_counted);
        g_test_add_func("/barrier/srun-that-ends-stops-all", test_srun_that_ends_stops_all);
        g_test_add_func("/barrier/node-that-dies-stops-all", test_node_that_dies_stops_all);
        g_test_add_func("/barrier/strangers-are-dropped", test_strangers_are_dropped);
        g_test_add_func("/barrier/a-thousand-nodes", test_a_thousand_nodes);
        g_test_add_func("/barrier/address-that-is-none-stops", test_address_that_is_none_stops);
        return g_test_run();
}
