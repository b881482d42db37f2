/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader-seize.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "perf/process/seize.h"
#include "service/sibling/reader-job.h"

/* Writes the processes and threads of the tree to a file, and maps it. */
static int tree_share(const Seize *s, int *ret_fd, ReaderShared **ret) {
        _cleanup_free_ ProcessFacts *processes = NULL;
        _cleanup_free_ SeizedThread *threads = NULL;
        _cleanup_close_ int fd = -1;
        size_t n_processes, n_threads, size;
        ReaderShared *shared;
        int r;

        r = seize_list(s, &processes, &n_processes, &threads, &n_threads);
        if (r < 0)
                return r;
        size = sizeof(*shared) + n_processes * sizeof(*processes) + n_threads * sizeof(*threads);
        fd = memfd_create("tree", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t) size) < 0)
                return -errno;
        shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shared == MAP_FAILED)
                return -errno;
        shared->n_processes = n_processes;
        shared->n_threads = n_threads;
        memcpy(mempcpy(shared + 1, processes, n_processes * sizeof(*processes)), threads,
               n_threads * sizeof(*threads));
        *ret_fd = TAKE_FD(fd);
        *ret = shared;
        return 0;
}

/* Waits until the service closes its end of the pipe, or for the deadline. */
static void stand_until(int release, ReaderShared *shared, uint64_t deadline_usec) {
        uint32_t stands = READER_TREE_STANDS;
        struct pollfd p = { .fd = release };

        for (uint64_t now; (now = now_usec(CLOCK_MONOTONIC)) < deadline_usec;)
                if (poll(&p, 1, (int) ((deadline_usec - now) / USEC_PER_MSEC) + 1) > 0)
                        break;
        /* The service reads the state once it has opened everything (reader_release()). */
        (void) atomic_compare_exchange_strong(&shared->state, &stands, READER_TREE_EXPIRED);
}

void reader_seize_run(int socket, const ReaderRequest *q, int pidfd, int release) {
        const SeizeRule rule = {
                .any = q->any,
                .uid = q->uid,
                .gids = q->gids,
                .n_gids = q->n_gids,
                .family = getppid(),
        };
        uint64_t deadline = now_usec(CLOCK_MONOTONIC) + MIN(q->bound_usec, READER_SEIZE_MAX_USEC);
        ReaderShared *shared = NULL;
        _cleanup_close_ int fd = -1;
        ReaderReply a;
        Seize *s = NULL;

        memset(&a, 0, sizeof(a));
        a.id = q->id;
        a.op = q->op;
        a.answers = true;
        a.r = seize_begin(pidfd, &rule, deadline, &s, &a.why);
        if (a.r == 0)
                a.r = tree_share(s, &fd, &shared);
        if (reader_reply_send(socket, &a, fd) == 0 && a.r == 0)
                stand_until(release, shared, deadline);
        seize_end(s);
}
