/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tally.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define TALLY_FORMAT 1u /* another one for every change of what follows */

typedef struct TallyMessage {
        struct mmsghdr message; /* msg_len, the kernel's to write: 0 until it was sent */
        TickCount after;
} TallyMessage;

struct TallyState {
        uint64_t format;
        uint64_t n_readings;
        uint64_t signalled;
        TallyMessage messages[2];
        struct perfalloc_sample record; /* and its readings */
};

static int tally_map(int fd, size_t size, Tally *ret) {
        TallyState *state = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (state == MAP_FAILED)
                return -errno;
        *ret = (Tally){ .state = state, .size = size, .record = &state->record };
        return 0;
}

static size_t tally_size(size_t n_readings) {
        return offsetof(TallyState, record) + PERFALLOC_SAMPLE_SIZE(n_readings);
}

int tally_new(size_t n_readings, Tally *ret, int *ret_fd) {
        _cleanup_close_ int fd = memfd_create("perfalloc-tally", MFD_CLOEXEC);
        size_t size = tally_size(n_readings);
        int r;

        if (fd < 0)
                return -errno;
        /* memory now, rather than a SIGBUS later */
        if (fallocate(fd, 0, 0, (off_t) size) < 0)
                return errno == ENOSPC ? -ENOMEM : -errno;
        r = tally_map(fd, size, ret);
        if (r < 0)
                return r;
        ret->state->format = TALLY_FORMAT;
        ret->state->n_readings = n_readings;
        ret->record->n_readings = n_readings;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int tally_open(int fd, size_t n_readings, Tally *ret) {
        size_t size = tally_size(n_readings);
        struct stat st;
        Tally t;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size != (off_t) size)
                return -EBADMSG;
        r = tally_map(fd, size, &t);
        if (r < 0)
                return r;
        if (t.state->format != TALLY_FORMAT || t.state->n_readings != n_readings) {
                tally_done(&t);
                return -EBADMSG;
        }
        t.record->n_readings = n_readings;
        *ret = t;
        return 0;
}

void tally_done(Tally *t) {
        if (t->state)
                (void) munmap(t->state, t->size);
        *t = (Tally){};
}

static const TallyMessage *tally_last(const Tally *t) {
        const TallyMessage *last = NULL;

        for (size_t i = 0; i < ELEMENTSOF(t->state->messages); i++) {
                const TallyMessage *m = &t->state->messages[i];

                if (m->message.msg_len > 0 && (!last || m->after.told > last->after.told))
                        last = m;
        }
        return last;
}

int tally_send(Tally *t, int stream, const TickCount *after) {
        TallyMessage *m = &t->state->messages[tally_last(t) == &t->state->messages[0]];
        struct iovec whole = { t->record, PERFALLOC_SAMPLE_SIZE(t->record->n_readings) };

        m->message.msg_len = 0; /* it counts for nothing before it says something else */
        atomic_signal_fence(memory_order_seq_cst);
        m->message.msg_hdr = (struct msghdr){ .msg_iov = &whole, .msg_iovlen = 1 };
        m->after = *after;
        atomic_signal_fence(memory_order_seq_cst);
        return sendmmsg(stream, &m->message, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

TickCount tally_count(const Tally *t) {
        const TallyMessage *last = tally_last(t);

        return last ? last->after : (TickCount){};
}

void tally_set_signalled(Tally *t, uint64_t next) {
        t->state->signalled = next;
}

uint64_t tally_signalled(const Tally *t) {
        return t->state->signalled;
}
