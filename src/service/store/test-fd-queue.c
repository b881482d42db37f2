/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/store/fd-queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "machine.h"

/* A pipe tells who still has its read end: nobody, when the write end hangs up. */
typedef struct Pipe {
        int read, write;
} Pipe;

static Pipe pipe_new(void) {
        int fds[2];

        g_assert_cmpint(pipe2(fds, O_CLOEXEC | O_NONBLOCK), ==, 0);
        return (Pipe){ fds[0], fds[1] };
}

static bool pipe_is_alive(const Pipe *p) {
        struct pollfd poll_fd = { .fd = p->write };

        g_assert_cmpint(poll(&poll_fd, 1, 0), >=, 0);
        return !(poll_fd.revents & POLLERR);
}

static FdPart *put(FdQueue *q, uint64_t id, uint32_t version, const int *fds, unsigned n) {
        FdLabel label = { .kind = 1, .id = id, .version = version, .n_fds = n };
        FdPart *part;

        g_assert_cmpint(fd_queue_put(q, &label, 1, fds, &part), ==, 0);
        return part;
}

/* A pipe whose read end is in the queue alone. */
static Pipe put_pipe(FdQueue *q, uint64_t id, FdPart **ret) {
        Pipe p = pipe_new();

        *ret = put(q, id, 1, &p.read, 1);
        p.read = close_fd(p.read);
        return p;
}

static unsigned count_fds(void) {
        DIR *dir = opendir("/proc/self/fd");
        unsigned n = 0;

        g_assert_nonnull(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}

typedef struct Found {
        unsigned n;
        uint64_t ids[64];
        size_t n_fds;
} Found;

static int find(void *userdata, const FdLabel *label, int *fds) {
        Found *f = userdata;

        g_assert_cmpuint(f->n, <, G_N_ELEMENTS(f->ids));
        f->ids[f->n++] = label->id;
        f->n_fds += label->n_fds;
        for (size_t i = 0; i < label->n_fds; i++)
                close_fd(fds[i]);
        return 0;
}

static void what_is_put_lives(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        FdPart *m;
        Pipe p;

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        p = put_pipe(q, 1, &m);
        g_assert_true(pipe_is_alive(&p));
        close_fd(p.write);
}

static void sweep_drops_the_dead_alone(void) {
        unsigned before = count_fds();
        FdQueue *q;
        FdPart *m[FD_QUEUE_MESSAGES_MAX];
        Pipe p[FD_QUEUE_MESSAGES_MAX];

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        for (unsigned i = 0; i < FD_QUEUE_MESSAGES_MAX; i++)
                p[i] = put_pipe(q, i, &m[i]);
        g_assert_false(fd_queue_has_room(q));
        for (unsigned i = 0; i < FD_QUEUE_MESSAGES_MAX; i += 3)
                fd_queue_drop(m[i]);
        for (unsigned i = 0; i < FD_QUEUE_MESSAGES_MAX; i++)
                g_assert_true(pipe_is_alive(&p[i]));
        g_assert_cmpint(fd_queue_sweep(q, UINT64_MAX), ==, 0);
        for (unsigned i = 0; i < FD_QUEUE_MESSAGES_MAX; i++)
                g_assert_cmpint(pipe_is_alive(&p[i]), ==, i % 3 != 0);
        g_assert_true(fd_queue_has_room(q));
        g_assert_cmpuint(q->n_dead, ==, 0);
        q = fd_queue_free(q);
        for (unsigned i = 0; i < FD_QUEUE_MESSAGES_MAX; i++) {
                g_assert_false(pipe_is_alive(&p[i]));
                close_fd(p[i].write);
        }
        g_assert_cmpuint(count_fds(), ==, before);
}

static void all_the_descriptors_of_a_message_stay_together(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        int fds[FD_QUEUE_FDS_MAX];
        FdPart *dead;
        Found found = {};
        Pipe p = pipe_new();

        for (unsigned i = 0; i < FD_QUEUE_FDS_MAX; i++)
                fds[i] = p.read;
        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        (void) put(q, 7, 1, fds, FD_QUEUE_FDS_MAX);
        dead = put(q, 8, 1, fds, 1);
        fd_queue_drop(dead);
        g_assert_cmpint(fd_queue_sweep(q, UINT64_MAX), ==, 0);
        g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
        g_assert_cmpuint(found.n, ==, 1);
        g_assert_cmpuint(found.ids[0], ==, 7);
        g_assert_cmpuint(found.n_fds, ==, FD_QUEUE_FDS_MAX);
        close_fd(p.read);
        close_fd(p.write);
}

/* The next process reads what is in the queue, as often as it is started before it is done. */
static void reading_takes_nothing_away(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        Pipe p = pipe_new();

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        for (unsigned i = 0; i < 5; i++)
                (void) put(q, i, 1, &p.read, 1);
        q->in = close_fd(q->in); /* its writer is dead */
        for (int i = 0; i < 3; i++) {
                Found found = {};

                g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
                g_assert_cmpuint(found.n, ==, 5);
                for (unsigned k = 0; k < 5; k++)
                        g_assert_cmpuint(found.ids[k], ==, k);
        }
        p.read = close_fd(p.read);
        g_assert_true(pipe_is_alive(&p));
        fd_queue_drain(q->out);
        g_assert_false(pipe_is_alive(&p));
        close_fd(p.write);
}

static void dropped_twice_is_dropped_once(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        FdPart *m[4];
        Found found = {};
        Pipe p[4];

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        for (unsigned i = 0; i < 4; i++)
                p[i] = put_pipe(q, i, &m[i]);
        for (unsigned i = 0; i < 4; i++)
                fd_queue_drop(m[i]);
        fd_queue_drop(m[0]); /* twice is once */
        g_assert_cmpint(fd_queue_sweep(q, UINT64_MAX), ==, 0);
        g_assert_cmpuint(q->n_messages, ==, 0);
        g_assert_cmpint(fd_queue_sweep(q, UINT64_MAX), ==, 0);
        g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
        g_assert_cmpuint(found.n, ==, 0);
        for (unsigned i = 0; i < 4; i++)
                close_fd(p[i].write);
}

/* ---- messages of many ---- */

#define SHARERS 40u

/* Pipe i has i % 3 + 1 descriptors in the message, all of its read end, whose last one that is. */
static void put_together(FdQueue *q, Pipe pipes[static SHARERS], FdPart *parts[static SHARERS]) {
        FdLabel labels[SHARERS];
        int fds[FD_QUEUE_FDS_MAX];
        size_t n_fds = 0;

        for (unsigned i = 0; i < SHARERS; i++) {
                pipes[i] = pipe_new();
                labels[i] = (FdLabel){ .kind = 1, .id = i, .version = 1, .n_fds = i % 3 + 1 };
                for (unsigned k = 0; k < labels[i].n_fds; k++)
                        fds[n_fds++] = pipes[i].read;
        }
        g_assert_cmpint(fd_queue_put(q, labels, SHARERS, fds, parts), ==, 0);
        for (unsigned i = 0; i < SHARERS; i++)
                pipes[i].read = close_fd(pipes[i].read);
}

static void close_writers(Pipe pipes[static SHARERS]) {
        for (unsigned i = 0; i < SHARERS; i++)
                close_fd(pipes[i].write);
}

static void many_share_a_message(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        FdPart *parts[SHARERS];
        Pipe pipes[SHARERS];
        Found found = {};

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        put_together(q, pipes, parts);
        g_assert_cmpuint(q->n_messages, ==, 1);
        g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
        g_assert_cmpuint(found.n, ==, SHARERS);
        for (unsigned i = 0; i < SHARERS; i++) {
                g_assert_cmpuint(found.ids[i], ==, i);
                g_assert_cmpuint(parts[i]->label.id, ==, i);
                g_assert_true(pipe_is_alive(&pipes[i]));
        }
        close_writers(pipes);
}

/* Each descriptor stays with its label, whatever was dropped before it. */
static int find_pipe(void *userdata, const FdLabel *label, int *fds) {
        Pipe *pipes = userdata;

        for (unsigned i = 0; i < label->n_fds; i++) {
                char byte;

                g_assert_cmpint(write(pipes[label->id].write, "x", 1), ==, 1);
                g_assert_cmpint(read(fds[i], &byte, 1), ==, 1);
                close_fd(fds[i]);
        }
        return 0;
}

/* fd_queue_read() leaves the peek offset (SO_PEEK_OFF) set. A queue that is read is never swept
 * afterwards, except here. */
static void look_through(FdQueue *q, FdQueueVisit f, void *userdata) {
        int nowhere = -1;

        g_assert_cmpint(fd_queue_read(q->out, f, userdata), ==, 0);
        g_assert_cmpint(setsockopt(q->out, SOL_SOCKET, SO_PEEK_OFF, &nowhere, sizeof(nowhere)), ==,
                        0);
}

static void who_leaves_a_shared_message_leaves_alone(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        unsigned before = count_fds();
        FdPart *parts[SHARERS];
        Pipe pipes[SHARERS];
        Found found = {};

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        put_together(q, pipes, parts);
        for (unsigned round = 0; round < 3; round++) { /* 0, 3, ...; 1, 4, ...; the rest */
                for (unsigned i = round; i < SHARERS; i += 3)
                        fd_queue_drop(parts[i]);
                g_assert_cmpint(fd_queue_sweep(q, UINT64_MAX), ==, 0);
                for (unsigned i = 0; i < SHARERS; i++)
                        g_assert_cmpint(pipe_is_alive(&pipes[i]), ==, i % 3 > round);
                g_assert_cmpuint(q->n_messages, ==, round < 2);
                look_through(q, find_pipe, pipes);
        }
        g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
        g_assert_cmpuint(found.n, ==, 0);
        g_assert_cmpuint(q->n_fds, ==, 0);
        close_writers(pipes);
        q = fd_queue_free(q);
        g_assert_cmpuint(count_fds(), ==, before);
}

/* As where the process is killed in a sweep, after it has sent and before it has dropped. */
static void killed_in_a_sweep_nothing_is_missing(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        FdPart *parts[SHARERS], *again[1];
        Pipe pipes[SHARERS];
        Found found = {};
        int fd;

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        put_together(q, pipes, parts);
        fd = pipes[0].write; /* any */
        g_assert_cmpint(fd_queue_put(q, &parts[5]->label, 1, (int[]){ fd, fd, fd }, again), ==, 0);
        g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
        g_assert_cmpuint(found.n, ==, SHARERS + 1);
        g_assert_cmpuint(found.ids[5], ==, 5);
        g_assert_cmpuint(found.ids[SHARERS], ==, 5);
        close_writers(pipes);
}

/* What another program has put there: bytes that are no labels, labels that do not fit. */
static void what_makes_no_sense_is_passed_over(void) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        static const FdLabel wrong[2] = { { .n_fds = UINT32_MAX }, { .n_fds = 2 } };
        unsigned before;
        Found found = {};
        Pipe p = pipe_new();

        g_assert_cmpint(fd_queue_new(1, &q), ==, 0);
        before = count_fds();
        g_assert_cmpint(send(q->in, "rubbish", 7, 0), ==, 7);
        g_assert_cmpint(send(q->in, wrong, sizeof(wrong), 0), ==, sizeof(wrong));
        (void) put(q, 3, 1, &p.read, 1);
        g_assert_cmpint(fd_queue_read(q->out, find, &found), ==, 0);
        g_assert_cmpuint(found.n, ==, 1);
        g_assert_cmpuint(found.ids[0], ==, 3);
        g_assert_cmpuint(count_fds(), ==, before);
        close_fd(p.read);
        close_fd(p.write);
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/fd-queue/what-is-put-lives", what_is_put_lives);
        g_test_add_func("/fd-queue/sweep-drops-the-dead-alone", sweep_drops_the_dead_alone);
        g_test_add_func("/fd-queue/all-the-descriptors-of-a-message-stay-together",
                        all_the_descriptors_of_a_message_stay_together);
        g_test_add_func("/fd-queue/reading-takes-nothing-away", reading_takes_nothing_away);
        g_test_add_func("/fd-queue/dropped-twice-is-dropped-once", dropped_twice_is_dropped_once);
        g_test_add_func("/fd-queue/many-share-a-message", many_share_a_message);
        g_test_add_func("/fd-queue/who-leaves-a-shared-message-leaves-alone",
                        who_leaves_a_shared_message_leaves_alone);
        g_test_add_func("/fd-queue/killed-in-a-sweep-nothing-is-missing",
                        killed_in_a_sweep_nothing_is_missing);
        g_test_add_func("/fd-queue/what-makes-no-sense-is-passed-over",
                        what_makes_no_sense_is_passed_over);
        return g_test_run();
}
