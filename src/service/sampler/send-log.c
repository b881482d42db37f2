/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send-log.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SEND_LOG_FORMAT 2u /* to be changed with the layout of what follows */

typedef struct SendLogMessage {
        struct mmsghdr message; /* msg_len, the kernel's to write: 0 until it was sent */
        TickCount after;
} SendLogMessage;

struct SendLogState {
        uint64_t format;
        uint64_t n_readings;
        uint64_t signalled;
        SendLogMessage messages[2];
        struct perfalloc_sample record; /* and its readings, and the tag */
};

static size_t record_size(size_t n_readings, bool tagged) {
        return tagged ? PERFALLOC_SAMPLE_TAGGED_SIZE(n_readings)
                      : PERFALLOC_SAMPLE_SIZE(n_readings);
}

static int send_log_map(int fd, size_t n_record, SendLog *ret) {
        size_t size = offsetof(SendLogState, record) + n_record;
        SendLogState *state = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (state == MAP_FAILED)
                return -errno;
        *ret = (SendLog){
                .state = state, .size = size, .record = &state->record, .record_size = n_record
        };
        return 0;
}

int send_log_new(size_t n_readings, const uint64_t *tag, SendLog *ret, int *ret_fd) {
        _cleanup_close_ int fd = memfd_create("perfalloc-send-log", MFD_CLOEXEC);
        size_t n_record = record_size(n_readings, tag);
        int r;

        if (fd < 0)
                return -errno;
        /* allocate now: later a lack of memory would be a SIGBUS */
        if (fallocate(fd, 0, 0, (off_t) (offsetof(SendLogState, record) + n_record)) < 0)
                return errno == ENOSPC ? -ENOMEM : -errno;
        r = send_log_map(fd, n_record, ret);
        if (r < 0)
                return r;
        if (tag)
                memcpy((char *) ret->record + n_record - sizeof(*tag), tag, sizeof(*tag));
        ret->state->format = SEND_LOG_FORMAT;
        ret->state->n_readings = n_readings;
        ret->record->n_readings = n_readings;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int send_log_open(int fd, size_t n_readings, bool tagged, SendLog *ret) {
        size_t n_record = record_size(n_readings, tagged);
        struct stat st;
        SendLog l;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) ||
            st.st_size != (off_t) (offsetof(SendLogState, record) + n_record))
                return -EBADMSG;
        r = send_log_map(fd, n_record, &l);
        if (r < 0)
                return r;
        if (l.state->format != SEND_LOG_FORMAT || l.state->n_readings != n_readings) {
                send_log_done(&l);
                return -EBADMSG;
        }
        l.record->n_readings = n_readings;
        *ret = l;
        return 0;
}

void send_log_done(SendLog *l) {
        if (l->state)
                (void) munmap(l->state, l->size);
        *l = (SendLog){};
}

static const SendLogMessage *send_log_last(const SendLog *l) {
        const SendLogMessage *last = NULL;

        for (size_t i = 0; i < ELEMENTSOF(l->state->messages); i++) {
                const SendLogMessage *m = &l->state->messages[i];

                if (m->message.msg_len > 0 && (!last || m->after.told > last->after.told))
                        last = m;
        }
        return last;
}

/* The place that the last one is not at. It does not count until it has a length. */
static SendLogMessage *send_log_prepare(SendLog *l, const TickCount *after) {
        SendLogMessage *m = &l->state->messages[send_log_last(l) == &l->state->messages[0]];

        m->message.msg_len = 0;
        atomic_signal_fence(memory_order_seq_cst);
        m->after = *after;
        return m;
}

int send_log_send(SendLog *l, int stream, const TickCount *after) {
        SendLogMessage *m = send_log_prepare(l, after);
        struct iovec whole = { l->record, l->record_size };

        m->message.msg_hdr = (struct msghdr){ .msg_iov = &whole, .msg_iovlen = 1 };
        atomic_signal_fence(memory_order_seq_cst);
        return sendmmsg(stream, &m->message, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void send_log_put(SendLog *l, const TickCount *after) {
        SendLogMessage *m = send_log_prepare(l, after);

        atomic_signal_fence(memory_order_seq_cst);
        m->message.msg_len = (unsigned) l->record_size;
}

TickCount send_log_count(const SendLog *l) {
        const SendLogMessage *last = send_log_last(l);

        return last ? last->after : (TickCount){};
}

void send_log_set_signalled(SendLog *l, uint64_t next) {
        l->state->signalled = next;
}

uint64_t send_log_signalled(const SendLog *l) {
        return l->state->signalled;
}
