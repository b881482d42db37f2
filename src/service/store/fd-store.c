/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fd-store.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "core/clock.h"
#include "service/util/turn.h"

/* Names in systemd's store. A later run reads them: never change them. */
#define STATE_NAME    "state-%" PRIu32
#define QUEUE_NAME    "shelf-%" PRIu32 "-%" PRIu64
#define NAME_SIZE_MAX 64u

#define QUEUES_MAX   3072u /* of all; the unit's FileDescriptorStoreMax= is higher */
#define QUEUES_SPARE 1u    /* empty ones, of each kind */

#define PAUSE_USEC USEC_PER_MSEC /* between two slices of a sweep */

static const uint64_t sweep_usec[_FD_QUEUE_KIND_MAX] = {
        [FD_QUEUE_SOON] = 2 * USEC_PER_MSEC,
        [FD_QUEUE_SCARCE] = 2 * USEC_PER_MSEC,
        [FD_QUEUE_BUNDLES] = 10 * USEC_PER_MSEC,
};

/* ---- names ---- */

static int hand_in(const char *name, int fd) {
        char text[128];
        int r;

        (void) snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
        r = sd_pid_notify_with_fds(0, false, text, &fd, 1);
        return r < 0 ? r : r == 0 ? -ENOTCONN : 0;
}

void fd_store_remove(const char *name) {
        (void) sd_notifyf(false, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static void queue_name(const FdStore *s, const FdQueue *q, char name[static NAME_SIZE_MAX]) {
        (void) snprintf(name, NAME_SIZE_MAX, QUEUE_NAME, s->generation, q->number);
}

bool fd_store_parse(const char *name, uint32_t *ret_generation, bool *ret_is_queue) {
        uint64_t number;
        int end = -1;

        *ret_is_queue = false;
        if (sscanf(name, STATE_NAME "%n", ret_generation, &end) == 1 && end > 0 &&
            name[end] == '\0')
                return true;
        end = -1;
        *ret_is_queue = sscanf(name, QUEUE_NAME "%n", ret_generation, &number, &end) == 2 &&
                        end > 0 && name[end] == '\0';
        return *ret_is_queue;
}

/* ---- the queues of a kind ---- */

static int queue_set_add(FdQueueSet *set, FdQueue **ret) {
        _cleanup_(fd_queue_freep) FdQueue *q = NULL;
        FdStore *s = set->store;
        char name[NAME_SIZE_MAX];
        int r;

        if (s->n >= QUEUES_MAX)
                return -ENOSPC;
        r = fd_queue_new(s->next, &q);
        if (r < 0)
                return r;
        queue_name(s, q, name);
        r = hand_in(name, q->out);
        if (r < 0)
                return r;
        s->next++;
        s->n++;
        q->owner = set;
        LIST_INSERT_HEAD(&set->queues, q, queues);
        *ret = TAKE_PTR(q);
        return 0;
}

static void queue_set_remove(FdQueueSet *set, FdQueue *q) {
        char name[NAME_SIZE_MAX];

        queue_name(set->store, q, name);
        fd_store_remove(name);
        LIST_REMOVE(q, queues);
        set->store->n--;
        fd_queue_free(q);
}

/* Until then (CLOCK_MONOTONIC), one message at least. False: there is more. */
static bool queue_set_sweep(FdQueueSet *set, uint64_t until_usec) {
        size_t n_empty = 0;
        bool over = false;
        FdQueue *q, *next;

        if (!set->dirty)
                return true;
        set->dirty = false;
        for (q = LIST_FIRST(&set->queues); q; q = next) {
                int r = 0;

                next = LIST_NEXT(q, queues);
                if (q->n_dead > 0 && !over) {
                        r = fd_queue_sweep(q, until_usec);
                        over = now_usec(CLOCK_MONOTONIC) >= until_usec;
                }
                if (r < 0) { /* it holds up no other */
                        set->store->failed(set->store->userdata, r,
                                           "Descriptors could not be dropped");
                        set->dirty = true;
                } else if (q->n_dead > 0) {
                        set->dirty = true;
                        return false;
                }
                if (q->n_messages == 0 && ++n_empty > QUEUES_SPARE)
                        queue_set_remove(set, q);
        }
        return true;
}

/* A slice in a turn of the loop: the copies of closed events are the last ones, and the kernel
 * takes 10 µs and more to end one. In the pause queued calls are served. */
static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata) {
        FdQueueSet *set = userdata;
        bool over = queue_set_sweep(set, now_usec(CLOCK_MONOTONIC) + set->store->slice_usec);

        if (!set->dirty)
                return 0;
        (void) sd_event_source_set_time_relative(source, over ? USEC_PER_SEC : PAUSE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the store ---- */

/* Whether half the limit of descriptors in flight may be exceeded; the other half is for those of
 * an earlier run, and on the bus. */
static bool fd_store_is_near_limit(const FdStore *s) {
        return (s->n + 1) * (FD_QUEUE_ROOM_FDS + FD_QUEUE_FDS_MAX) > s->limit / 2;
}

static int queue_set_put(FdQueueSet *set, const FdLabel *labels, size_t n_labels, const int *fds,
                         FdPart **ret) {
        FdQueue *q;
        int r;

        LIST_FOREACH (q, &set->queues, queues)
                if (fd_queue_has_room(q)) {
                        r = fd_queue_put(q, labels, n_labels, fds, ret);
                        if (r != -EAGAIN)
                                return r;
                }
        r = queue_set_add(set, &q);
        return r < 0 ? r : fd_queue_put(q, labels, n_labels, fds, ret);
}

/* The kernel refuses a message when more descriptors than the limit are in flight before it
 * (unix(7), ETOOMANYREFS). Beyond the limit a sweep could not send again what stays, and would not
 * reach what is behind it. So the descriptors are sent twice: if that is accepted, the limit is not
 * exceeded once the first message is dropped. */
int fd_store_put(FdStore *s, FdQueueKind kind, const FdLabel *labels, size_t n_labels,
                 const int *fds, FdPart **ret) {
        int r;

        if (!fd_store_is_near_limit(s))
                return queue_set_put(&s->sets[kind], labels, n_labels, fds, ret);
        r = fd_message_send(s->trial_in, "", 1, fds, fd_labels_n_fds(labels, n_labels), 0);
        if (r >= 0)
                r = queue_set_put(&s->sets[kind], labels, n_labels, fds, ret);
        fd_queue_drain(s->trial_out);
        return r;
}

void fd_store_drop(FdPart *part) {
        FdQueueSet *set = part->message->queue->owner;

        fd_queue_drop(part);
        if (!set->dirty)
                (void) sd_event_source_set_time_relative(set->sweep,
                                                         sweep_usec[set - set->store->sets]);
        set->dirty = true;
        (void) sd_event_source_set_enabled(set->sweep, SD_EVENT_ONESHOT);
}

void fd_store_sweep(FdStore *s, FdQueueKind kind) {
        (void) queue_set_sweep(&s->sets[kind], UINT64_MAX);
}

int fd_store_init(FdStore *s, sd_event *event,
                  void (*failed)(void *userdata, int error, const char *what), void *userdata) {
        struct rlimit limit;
        int pair[2], r = 0;

        *s = (FdStore){ .trial_in = -1,
                        .trial_out = -1,
                        .slice_usec = SLICE_USEC,
                        .failed = failed,
                        .userdata = userdata };
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return -errno;
        s->limit = limit.rlim_cur;
        s->trial_in = pair[0];
        s->trial_out = pair[1];
        for (FdQueueSet *set = s->sets; r >= 0 && set < s->sets + _FD_QUEUE_KIND_MAX; set++) {
                set->store = s;
                LIST_INIT(&set->queues);
                r = sd_event_add_time(event, &set->sweep, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                                      on_sweep, set);
                if (r >= 0)
                        r = sd_event_source_set_enabled(set->sweep, SD_EVENT_OFF);
        }
        return r;
}

int fd_store_begin(FdStore *s, uint32_t generation, int log_fd) {
        char name[NAME_SIZE_MAX];
        FdQueue *q;
        int r;

        s->generation = generation;
        (void) snprintf(name, sizeof(name), STATE_NAME, generation);
        r = hand_in(name, log_fd);
        for (FdQueueSet *set = s->sets; r >= 0 && set < s->sets + _FD_QUEUE_KIND_MAX; set++)
                r = queue_set_add(set, &q);
        return r;
}

void fd_store_done(FdStore *s) {
        for (FdQueueSet *set = s->sets; set < s->sets + _FD_QUEUE_KIND_MAX; set++) {
                FdQueue *q;

                while ((q = LIST_FIRST(&set->queues))) {
                        LIST_REMOVE(q, queues);
                        fd_queue_free(q);
                }
                set->sweep = sd_event_source_disable_unref(set->sweep);
        }
        close_fd(s->trial_in);
        close_fd(s->trial_out);
}
