/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fd-copies.h"

#include <limits.h>
#include <sched.h>

#define STACK_BYTES (64 * 1024)

static void semaphore_wait(sem_t *s) {
        while (sem_wait(s) < 0 && errno == EINTR)
                ;
}

/* The lowest that is copied, from this number on. */
static unsigned copies_next(const FdCopies *c, unsigned from) {
        unsigned next = UINT_MAX;

        for (size_t i = 0; i < c->n; i++)
                if ((unsigned) c->fds[i] >= from)
                        next = MIN(next, (unsigned) c->fds[i]);
        return next;
}

/* Events among the others would otherwise be closed, and their counters free, a moment later than
 * the service closes them. */
static int others_close(const FdCopies *c) {
        unsigned from = 0, next;

        do {
                next = copies_next(c, from);
                if (next > from && close_range(from, next - 1, 0) < 0)
                        return -errno;
                from = next + 1;
        } while (next != UINT_MAX);
        return 0;
}

static void *copies_keep(void *userdata) {
        FdCopies *c = userdata;

        c->error = unshare(CLONE_FILES) < 0 ? -errno : others_close(c);
        (void) sem_post(&c->made);
        semaphore_wait(&c->over);
        return NULL;
}

static int copies_start(FdCopies *c) {
        pthread_attr_t attr;
        int r;

        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        r = pthread_create(&c->thread, &attr, copies_keep, c);
        (void) pthread_attr_destroy(&attr);
        return -r;
}

static void copies_done(FdCopies *c) {
        (void) sem_destroy(&c->made);
        (void) sem_destroy(&c->over);
}

int fd_copies_make(FdCopies *c, const int *fds, size_t n) {
        int r;

        c->fds = fds;
        c->n = n;
        (void) sem_init(&c->made, 0, 0);
        (void) sem_init(&c->over, 0, 0);
        r = copies_start(c);
        if (r < 0) {
                copies_done(c);
                return r;
        }
        semaphore_wait(&c->made);
        r = c->error;
        if (r < 0)
                fd_copies_drop(c);
        return r;
}

/* Joining does not wait for the thread's closes: the kernel wakes us before (mm_release()). */
void fd_copies_drop(FdCopies *c) {
        (void) sem_post(&c->over);
        (void) pthread_join(c->thread, NULL);
        copies_done(c);
}
