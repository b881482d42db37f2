/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/store/fd-store.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SPARE_UID 61183 /* of nobody who has descriptors in flight */
#define LIMIT     100
#define MESSAGES  9
#define COPIES    8 /* of a pipe's read end in a message */

/* In systemd's place: what is sent there is dropped. */
static int notify_new(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        g_autofree char *name = g_strdup_printf("@perfalloc-test-%d", (int) getpid());

        g_assert_cmpint(fd, >=, 0);
        memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
        g_assert_cmpint(bind(fd, (struct sockaddr *) &address,
                             (socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                        ==, 0);
        g_assert_true(g_setenv("NOTIFY_SOCKET", name, true));
        return fd;
}

/* The limit is for those without CAP_SYS_RESOURCE and CAP_SYS_ADMIN. */
static void become_limited(void) {
        const struct rlimit limit = { LIMIT, LIMIT };

        if (geteuid() == 0)
                g_assert_cmpint(setresuid(SPARE_UID, SPARE_UID, SPARE_UID), ==, 0);
        g_assert_cmpint(prctl(PR_SET_DUMPABLE, 1), ==, 0); /* LeakSanitizer wants it */
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

/* The write end of a pipe whose read end is in the store alone; -1: there is no room. */
static int store_pipe(FdStore *s, uint64_t id, FdPart **ret) {
        const FdLabel label = { .kind = 1, .version = 1, .id = id, .n_fds = COPIES };
        int ends[2], copies[COPIES], r;

        g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
        for (unsigned i = 0; i < COPIES; i++)
                copies[i] = ends[0];
        r = fd_store_put(s, FD_QUEUE_SOON, &label, 1, copies, ret);
        close_fd(ends[0]);
        if (r == 0)
                return ends[1];
        g_assert_cmpint(r, ==, -ETOOMANYREFS);
        return close_fd(ends[1]);
}

static bool pipe_is_alive(int end) {
        struct pollfd p = { .fd = end };

        g_assert_cmpint(poll(&p, 1, 0), >=, 0);
        return !(p.revents & POLLERR);
}

static void must_not_fail(void *userdata, int error, const char *what) {
        g_error("%s: %s", what, g_strerror(-error));
}

static void fill_and_drop_all_but_the_first(FdStore *s) {
        FdPart *parts[LIMIT];
        int ends[LIMIT];
        unsigned n = 0;

        while ((ends[n] = store_pipe(s, n, &parts[n])) >= 0)
                n++;
        g_assert_cmpuint(n, >, 2);
        for (unsigned i = 1; i < n; i++)
                fd_store_drop(parts[i]);
        fd_store_sweep(s, FD_QUEUE_SOON);
        for (unsigned i = 0; i < n; i++) {
                g_assert_cmpint(pipe_is_alive(ends[i]), ==, i == 0);
                close_fd(ends[i]);
        }
}

/* As many descriptors are in flight as may be, and what stays is before what goes. */
static void what_is_dropped_of_a_full_store_goes(void) {
        int notify;
        sd_event *event;
        FdStore s;

        if (!g_test_subprocess()) {
                g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
                g_test_trap_assert_passed();
                return;
        }
        notify = notify_new();
        become_limited();
        g_assert_cmpint(sd_event_new(&event), ==, 0);
        g_assert_cmpint(fd_store_init(&s, event, must_not_fail, NULL), ==, 0);
        g_assert_cmpint(fd_store_begin(&s, 1, notify), ==, 0);
        fd_queue_drain(notify);
        fill_and_drop_all_but_the_first(&s);
        fd_store_done(&s);
        sd_event_unref(event);
        close_fd(notify);
}

/* ---- the loop's sweeps ---- */

static unsigned n_dead(const FdStore *s) {
        const FdQueue *q;
        unsigned n = 0;

        LIST_FOREACH (q, &s->sets[FD_QUEUE_SOON].queues, queues)
                n += (unsigned) q->n_dead;
        return n;
}

/* Messages of a size with which three fill a queue. All are dropped. */
static void fill_and_drop(FdStore *s, int notify) {
        const FdLabel label = { .kind = 1, .version = 1, .id = 1, .n_fds = FD_QUEUE_FDS_MAX };
        int fds[FD_QUEUE_FDS_MAX];
        FdPart *parts[MESSAGES];

        for (unsigned i = 0; i < FD_QUEUE_FDS_MAX; i++)
                fds[i] = notify;
        for (unsigned i = 0; i < MESSAGES; i++) {
                g_assert_cmpint(fd_store_put(s, FD_QUEUE_SOON, &label, 1, fds, &parts[i]), ==, 0);
                fd_queue_drain(notify);
        }
        for (unsigned i = 0; i < MESSAGES; i++)
                fd_store_drop(parts[i]);
}

/* To end the last copies of thousands of events takes long. */
static void a_turn_of_the_loop_sweeps_for_a_slice(void) {
        struct rlimit limit;
        int notify = notify_new();
        sd_event *event;
        FdStore s;

        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        limit.rlim_cur = limit.rlim_max;
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        g_assert_cmpint(sd_event_new(&event), ==, 0);
        g_assert_cmpint(fd_store_init(&s, event, must_not_fail, NULL), ==, 0);
        g_assert_cmpint(fd_store_begin(&s, 1, notify), ==, 0);
        fd_queue_drain(notify);
        s.slice_usec = 0; /* a message is the least */
        fill_and_drop(&s, notify);
        g_assert_cmpuint(n_dead(&s), ==, MESSAGES);
        for (unsigned n = n_dead(&s); n-- > 0;) {
                g_assert_cmpint(sd_event_run(event, UINT64_MAX), >, 0);
                fd_queue_drain(notify);
                g_assert_cmpuint(n_dead(&s), ==, n);
        }
        fd_store_done(&s);
        sd_event_unref(event);
        close_fd(notify);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/fd-store/what-is-dropped-of-a-full-store-goes",
                        what_is_dropped_of_a_full_store_goes);
        g_test_add_func("/fd-store/a-turn-of-the-loop-sweeps-for-a-slice",
                        a_turn_of_the_loop_sweeps_for_a_slice);
        return g_test_run();
}
