/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/sibling/test-reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "machine.h"
#include "perf/process/procfs.h"
#include "perf/process/proof.h"
#include "perf/process/test-child.h"
#include "service/sibling/reader-process.h"
#include "service/sibling/reader-wire.h"
#include "service/sibling/sibling.h"

static void on_scanned(void *userdata, int r, const User *users, size_t n_users, bool complete) {
        Answer *a = userdata;

        a->n_calls++;
        a->r = r;
        a->complete = complete;
        a->users = g_array_new(FALSE, FALSE, sizeof(User));
        if (n_users > 0)
                g_array_append_vals(a->users, users, (guint) n_users);
}

/* Our processes, all others are none of the test's business. */
static const User *find_user(const Answer *a, pid_t pid) {
        for (guint i = 0; i < a->users->len; i++)
                if (g_array_index(a->users, User, i).pid == pid)
                        return &g_array_index(a->users, User, i);
        return NULL;
}

static void open_event(void *userdata) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = PERF_TYPE_SOFTWARE,
                .config = PERF_COUNT_SW_DUMMY,
                .exclude_kernel = 1,
        };

        if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0)
                _exit(1);
}

static void test_inspects_a_process(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        Answer a = {};

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a, NULL), ==, 0);
        g_assert_cmpuint(a.n_calls, ==, 0);
        run_until(f, &a.n_calls, 1);
        g_assert_cmpint(a.r, ==, 0);
        g_assert_cmpint(a.facts.pid, ==, pid);
        g_assert_true(a.facts.same_pid_ns && a.facts.same_user_ns);
        child_end(pid);
}

static void test_tells_neighbours(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int target = -1, self = -1;
        Answer near = {}, nobody = {}, ended = {};

        g_assert_cmpint(process_open(pid, &target, NULL), ==, 0);
        g_assert_cmpint(process_open(getpid(), &self, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, target, self, on_inspected, &near, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, target, -1, on_inspected, &nobody, NULL), ==, 0);
        run_until(f, &nobody.n_calls, 1);
        g_assert_true(near.neighbour);
        g_assert_false(nobody.neighbour);
        child_end(pid);
        g_assert_cmpint(reader_inspect(f->reader, self, target, on_inspected, &ended, NULL), ==, 0);
        run_until(f, &ended.n_calls, 1);
        g_assert_cmpint(ended.r, ==, 0);
        g_assert_false(ended.neighbour);
}

static void on_proven(void *userdata, int r, int pidfd, const Refusal *why) {
        Answer *a = userdata;

        a->n_calls++;
        a->r = r;
        g_assert_cmpint(pidfd >= 0, ==, r == 0);
        if (r == 0)
                g_assert_cmpint(process_from_pidfd(pidfd, &a->facts.pid, NULL), ==, 0);
}

static void test_finds_who_is_proven(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        g_autofree char *path = g_strdup_printf(PROOF_HOST "/%d/maps", (int) pid);
        _cleanup_close_ int procfd = open(path, O_RDONLY | O_CLOEXEC), target = -1, self = -1;
        Answer alone = {}, both = {}, other = {}, none = {};

        if (procfd < 0) {
                g_test_skip("needs root to reach the /proc of process 1");
                child_end(pid);
                return;
        }
        g_assert_cmpint(process_open(pid, &target, NULL), ==, 0);
        g_assert_cmpint(process_open(getpid(), &self, NULL), ==, 0);
        g_assert_cmpint(reader_prove(f->reader, procfd, -1, on_proven, &alone, NULL), ==, 0);
        g_assert_cmpint(reader_prove(f->reader, procfd, target, on_proven, &both, NULL), ==, 0);
        g_assert_cmpint(reader_prove(f->reader, procfd, self, on_proven, &other, NULL), ==, 0);
        g_assert_cmpint(reader_prove(f->reader, 0, -1, on_proven, &none, NULL), ==, 0);
        run_until(f, &none.n_calls, 1);
        g_assert_cmpint(alone.r, ==, 0);
        g_assert_cmpint(alone.facts.pid, ==, pid);
        g_assert_cmpint(both.r, ==, 0);
        g_assert_cmpint(both.facts.pid, ==, pid);
        g_assert_cmpint(other.r, ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(none.r, ==, REFUSAL_BAD_DESCRIPTOR);
        child_end(pid);
}

static void test_refuses_what_is_no_process(Fixture *f, const void *userdata) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        Answer ended = {}, no_pidfd = {}, bad = {};

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        child_end(pid);
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &ended, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, 0, -1, on_inspected, &no_pidfd, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, 9999, -1, on_inspected, &bad, NULL), ==, -EBADF);
        run_until(f, &no_pidfd.n_calls, 1);
        g_assert_cmpint(ended.r, ==, REFUSAL_NO_SUCH_PROCESS);
        g_assert_cmpint(no_pidfd.r, ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpuint(bad.n_calls, ==, 0);
}

static void *thread_main(void *userdata) {
        for (;;)
                pause();
        return NULL;
}

static void start_200_threads(void *userdata) {
        pthread_t thread;

        for (int i = 0; i < 200; i++)
                if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
                        _exit(1);
}

static void test_inspects_a_process_of_many_threads(Fixture *f, const void *userdata) {
        pid_t pid = child_start(start_200_threads, NULL);
        _cleanup_close_ int fd = -1;
        Answer a = {};

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a, NULL), ==, 0);
        run_until(f, &a.n_calls, 1);
        g_assert_cmpint(a.r, ==, 0);
        g_assert_cmpint(a.facts.pid, ==, pid);
        g_assert_true(a.facts.uniform);
        child_end(pid);
}

static void test_answers_every_one_of_many(Fixture *f, const void *userdata) {
        enum { N = 2000 };
        Answer *a = g_new0(Answer, N);
        _cleanup_close_ int fd = -1;
        unsigned n_calls = 0;

        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        for (int i = 0; i < N; i++) {
                int r = reader_inspect(f->reader, fd, -1, on_inspected, &a[i], NULL);

                /* descriptors run out long before memory; that is said at once */
                g_assert_true(r == 0 || r == -EMFILE);
                n_calls += r == 0;
                a[i].n_calls += r != 0;
        }
        g_assert_cmpuint(n_calls, >, 500);
        for (int i = 0; i < N; i++)
                run_until(f, &a[i].n_calls, 1);
        for (int i = 0; i < N; i++)
                g_assert_cmpuint(a[i].n_calls, ==, 1);
        g_free(a);
}

static void test_a_cancelled_job_says_nothing(Fixture *f, const void *userdata) {
        Answer a[100] = {}, last = {};
        ReaderJob *jobs[100];
        _cleanup_close_ int fd = -1;

        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(a); i++)
                g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a[i], &jobs[i]),
                                ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(a); i++)
                g_assert_null(reader_job_cancel(jobs[i]));
        g_assert_null(reader_job_cancel(NULL));
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &last, NULL), ==, 0);
        run_until(f, &last.n_calls, 1);
        for (size_t i = 0; i < ELEMENTSOF(a); i++)
                g_assert_cmpuint(a[i].n_calls, ==, 0);
}

static void test_scans_who_has_events(Fixture *f, const void *userdata) {
        pid_t with, without;
        Answer a = {};

        if (machine_lacks(MACHINE_EVENTS))
                return;
        with = child_start(open_event, NULL);
        without = child_start(NULL, NULL);
        open_event(NULL); /* the service's own do not count */
        g_assert_cmpint(reader_scan(f->reader, on_scanned, &a, NULL), ==, 0);
        run_until(f, &a.n_calls, 1);
        g_assert_cmpint(a.r, ==, 0);
        g_assert_true(a.complete);
        g_assert_nonnull(find_user(&a, with));
        g_assert_cmpuint(find_user(&a, with)->n_descriptors, ==, 1);
        g_assert_cmpuint(find_user(&a, with)->uid, ==, geteuid());
        g_assert_null(find_user(&a, without));
        g_assert_null(find_user(&a, getpid()));
        g_array_unref(a.users);
        child_end(with);
        child_end(without);
}

/* As the opener, before it has sent what it has opened. */
static void sibling_with_event(int socket, pid_t parent) {
        char byte = '.';

        open_event(NULL);
        (void) send(socket, &byte, 1, 0);
        (void) recv(socket, &byte, 1, 0);
        _exit(0);
}

static void test_a_scan_names_no_sibling(void) {
        int socket;
        Fixture f = {};
        Answer a = {};
        pid_t elder;
        char byte;

        if (machine_lacks(MACHINE_EVENTS))
                return;
        g_assert_cmpint(sibling_fork(sibling_with_event, &elder, &socket), ==, 0);
        g_assert_cmpint(recv(socket, &byte, 1, 0), ==, 1);
        fixture_set_up(&f, NULL);
        g_assert_cmpint(reader_scan(f.reader, on_scanned, &a, NULL), ==, 0);
        run_until(&f, &a.n_calls, 1);
        g_assert_null(find_user(&a, elder));
        g_array_unref(a.users);
        sibling_end(elder);
        close(socket);
        fixture_tear_down(&f, NULL);
}

static void test_many_share_a_scan(Fixture *f, const void *userdata) {
        enum { N = 200 };
        Answer a[N] = {};
        ReaderJob *cancelled;
        gint64 begun;
        pid_t pid;

        begun = g_get_monotonic_time();
        g_assert_cmpint(reader_scan(f->reader, on_scanned, &a[0], NULL), ==, 0);
        /* after the first has begun: whom it may have missed the others must find */
        pid = child_start(open_event, NULL);
        for (int i = 1; i < N; i++)
                g_assert_cmpint(
                        reader_scan(f->reader, on_scanned, &a[i], i == N / 2 ? &cancelled : NULL),
                        ==, 0);
        reader_job_cancel(cancelled);
        run_until(f, &a[N - 1].n_calls, 1);
        g_test_message("%d scans took %" G_GINT64_FORMAT " us", N, g_get_monotonic_time() - begun);
        for (int i = 0; i < N; i++) {
                g_assert_cmpuint(a[i].n_calls, ==, i != N / 2);
                if (i > 0 && i != N / 2)
                        g_assert_nonnull(find_user(&a[i], pid));
                if (a[i].users)
                        g_array_unref(a[i].users);
        }
        child_end(pid);
}

/* Of the only child that we have now. */
static pid_t reader_pid(void) {
        _cleanup_free_ char *text = NULL;
        char name[64];

        g_snprintf(name, sizeof(name), "task/%d/children", getpid());
        g_assert_cmpint(procfs_read(getpid(), name, &text, NULL), ==, 0);
        return (pid_t) strtol(text, NULL, 10);
}

static void test_the_death_of_the_reader_is_told(Fixture *f, const void *userdata) {
        _cleanup_close_ int fd = -1;
        Answer a[50] = {};

        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        g_assert_cmpint(kill(reader_pid(), SIGSTOP), ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(a); i++)
                g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a[i], NULL), ==,
                                0);
        g_assert_cmpint(kill(reader_pid(), SIGKILL), ==, 0);
        run_until(f, &f->n_died, 1);
        for (size_t i = 0; i < ELEMENTSOF(a); i++) {
                g_assert_cmpuint(a[i].n_calls, ==, 1);
                g_assert_cmpint(a[i].r, ==, -EPIPE);
        }
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a[0], NULL), ==, -EPIPE);
        g_assert_cmpint(sd_event_run(f->event, 0), ==, 0);
        g_assert_cmpuint(f->n_died, ==, 1);
}

/* Whatever is under way, and a request that was never read. */
static void test_nothing_waits_for_it_for_ever(Fixture *f, const void *userdata) {
        _cleanup_close_ int fd = -1;
        gint64 begun = g_get_monotonic_time();
        Answer inspected = {}, scanned = {};

        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        g_assert_cmpint(kill(reader_pid(), SIGSTOP), ==, 0);
        g_assert_cmpint(reader_scan(f->reader, on_scanned, &scanned, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &inspected, NULL), ==, 0);
        run_until(f, &f->n_died, 1);
        g_assert_cmpint(g_get_monotonic_time() - begun, >=, (gint64) READER_BOUND_USEC);
        g_assert_cmpuint(scanned.n_calls, ==, 1);
        g_assert_cmpint(scanned.r, ==, -EPIPE);
        g_assert_cmpuint(inspected.n_calls, ==, 1);
        g_assert_cmpint(inspected.r, ==, -EPIPE);
}

static void test_the_reader_survives_a_terminating_service_manager(Fixture *f,
                                                                   const void *userdata) {
        _cleanup_close_ int fd = -1;
        Answer a = {};

        g_assert_cmpint(kill(reader_pid(), SIGTERM), ==, 0);
        g_assert_cmpint(kill(reader_pid(), SIGINT), ==, 0);
        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a, NULL), ==, 0);
        run_until(f, &a.n_calls, 1);
        g_assert_cmpint(a.r, ==, 0);
}

static void test_the_reader_goes_with_the_service(void) {
        pid_t service, reader;
        int pipe_fds[2];

        g_assert_cmpint(pipe(pipe_fds), ==, 0);
        service = fork();
        if (service == 0) {
                Reader *h;

                if (reader_fork(&h) < 0)
                        _exit(1);
                reader = reader_pid();
                if (write(pipe_fds[1], &reader, sizeof(reader)) != sizeof(reader))
                        _exit(1);
                for (;;)
                        pause();
        }
        g_assert_cmpint(read(pipe_fds[0], &reader, sizeof(reader)), ==, sizeof(reader));
        {
                _cleanup_close_ int fd = -1;
                struct pollfd p = { .events = POLLIN };

                g_assert_cmpint(process_open(reader, &fd, NULL), ==, 0);
                child_end(service);
                p.fd = fd;
                g_assert_cmpint(poll(&p, 1, 10000), ==, 1);
        }
        close(pipe_fds[0]);
        close(pipe_fds[1]);
}

static unsigned count_descriptors(pid_t pid) {
        char path[64];
        unsigned n = 0;
        DIR *d;

        g_snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        d = opendir(path);
        g_assert_nonnull(d);
        for (struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        closedir(d);
        return n;
}

static void test_the_reader_has_nothing_it_does_not_need(Fixture *f, const void *userdata) {
        _cleanup_free_ char *status = NULL;
        const uint64_t allowed = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH;
        _cleanup_close_ int fd = -1;
        gint64 end = g_get_monotonic_time() + (gint64) TIMEOUT_USEC;
        Answer a = {};

        /* an answer: it is ready */
        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        g_assert_cmpint(reader_inspect(f->reader, fd, -1, on_inspected, &a, NULL), ==, 0);
        run_until(f, &a.n_calls, 1);

        g_assert_cmpint(procfs_read(reader_pid(), "status", &status, NULL), ==, 0);
        g_assert_true(g_str_has_prefix(procfs_field(status, "Name"), "perfalloc-reade\n"));
        g_assert_cmpuint(strtoull(procfs_field(status, "CapEff"), NULL, 16) & ~allowed, ==, 0);
        g_assert_cmpuint(strtoull(procfs_field(status, "CapPrm"), NULL, 16) & ~allowed, ==, 0);
        g_assert_cmpuint(strtoull(procfs_field(status, "CapInh"), NULL, 16), ==, 0);
        g_assert_cmpuint(strtoull(procfs_field(status, "CapAmb"), NULL, 16), ==, 0);
        g_assert_cmpint(*procfs_field(status, "NoNewPrivs"), ==, '1');
        /* /dev/null thrice, the socket, the signals; our pidfd it closes after its answer */
        while (count_descriptors(reader_pid()) != 5)
                g_assert_cmpint(g_get_monotonic_time(), <, end);
}

/* The reader's side by itself, on a socket of ours. */
static void test_the_reader_survives_garbage(void) {
        ReaderRequestBuffer valid = { .q = { .id = 7, .op = READER_INSPECT } };
        char bytes[8192];
        ReaderReply reply;
        pid_t pid;
        int pair[2], passed, r, none[2] = { -1, -1 }, fds[2];
        GRand *rand = g_rand_new_with_seed(1);

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
        pid = fork();
        if (pid == 0) {
                close(pair[0]);
                reader_process_run(pair[1], getppid());
        }
        close(pair[1]);
        for (int i = 0; i < 2000; i++) {
                size_t size = (size_t) g_rand_int_range(rand, 1, sizeof(bytes));

                for (size_t j = 0; j < size; j++)
                        bytes[j] = (char) g_rand_int(rand);
                g_assert_cmpint(send(pair[0], bytes, size, 0), ==, (ssize_t) size);
        }
        /* well-formed, with descriptors that make no sense */
        fds[0] = pair[0], fds[1] = pair[0];
        for (uint32_t op = 0; op < _READER_OP_MAX; op++) {
                ReaderRequestBuffer q = { .q = { .id = 8, .op = op, .n_gids = 3 } };

                g_assert_cmpint(reader_request_send(pair[0], &q.q, none), ==, 0);
                /* a broker's worker would listen there in the test's place */
                if (op != READER_BROKER)
                        g_assert_cmpint(reader_request_send(pair[0], &q.q, fds), ==, 0);
        }
        g_assert_cmpint(reader_request_send(pair[0], &valid.q, none), ==, 0);
        do {
                struct pollfd p = { .fd = pair[0], .events = POLLIN };

                g_assert_cmpint(poll(&p, 1, 10000), ==, 1);
                r = reader_reply_receive(pair[0], &reply, &passed);
                close_fd(passed);
                g_assert_true(r == 1 || r == -EAGAIN);
        } while (r != 1 || reply.id != 7);
        g_assert_cmpint(reply.r, ==, REFUSAL_BAD_DESCRIPTOR);
        child_end(pid);
        close(pair[0]);
        g_rand_free(rand);
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        reach_process_1();
        g_test_init(&argc, &argv, NULL);
#define TEST(name) READER_TEST("/reader/", name)
        TEST(inspects_a_process);
        TEST(tells_neighbours);
        TEST(finds_who_is_proven);
        TEST(refuses_what_is_no_process);
        TEST(inspects_a_process_of_many_threads);
        TEST(answers_every_one_of_many);
        TEST(a_cancelled_job_says_nothing);
        TEST(scans_who_has_events);
        TEST(many_share_a_scan);
        TEST(the_death_of_the_reader_is_told);
        TEST(nothing_waits_for_it_for_ever);
        TEST(the_reader_survives_a_terminating_service_manager);
        TEST(the_reader_has_nothing_it_does_not_need);
        g_test_add_func("/reader/a_scan_names_no_sibling", test_a_scan_names_no_sibling);
        g_test_add_func("/reader/the_reader_goes_with_the_service",
                        test_the_reader_goes_with_the_service);
        g_test_add_func("/reader/the_reader_survives_garbage", test_the_reader_survives_garbage);
        return g_test_run();
}
