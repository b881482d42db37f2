/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fd-store.h"

#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "service/store/restore.h"

#define SHELVES_MAX   3072u /* of all; the unit's FileDescriptorStoreMax= is higher */
#define SHELVES_SPARE 1u    /* empty ones, of each kind */

static const uint64_t sweep_usec[_FD_QUEUE_KIND_MAX] = {
        [FD_QUEUE_SOON] = 2 * USEC_PER_MSEC,
        [FD_QUEUE_SCARCE] = 2 * USEC_PER_MSEC,
        [FD_QUEUE_BUNDLES] = 10 * USEC_PER_MSEC,
};

int fd_store_hand_in(const char *name, int fd) {
        char text[128];
        int r;

        (void) snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
        r = sd_pid_notify_with_fds(0, false, text, &fd, 1);
        return r < 0 ? r : r == 0 ? -ENOTCONN : 0;
}

static void fd_store_name(const FdStore *s, uint64_t number, char name[static STORE_NAME_MAX]) {
        (void) snprintf(name, STORE_NAME_MAX, STORE_SHELF_NAME, s->generation, number);
}

static int row_add(FdQueueRow *row, FdQueue **ret) {
        _cleanup_(fd_queue_freep) FdQueue *shelf = NULL;
        FdStore *s = row->shelves;
        char name[STORE_NAME_MAX];
        int r;

        if (s->n >= SHELVES_MAX)
                return -ENOSPC;
        r = fd_queue_new(s->next, &shelf);
        if (r < 0)
                return r;
        fd_store_name(s, shelf->number, name);
        r = fd_store_hand_in(name, shelf->out);
        if (r < 0)
                return r;
        s->next++;
        s->n++;
        shelf->owner = row;
        LIST_INSERT_HEAD(&row->list, shelf, shelves);
        *ret = TAKE_PTR(shelf);
        return 0;
}

static void row_remove(FdQueueRow *row, FdQueue *shelf) {
        char name[STORE_NAME_MAX];

        fd_store_name(row->shelves, shelf->number, name);
        (void) sd_notifyf(false, "FDSTOREREMOVE=1\nFDNAME=%s", name);
        LIST_REMOVE(shelf, shelves);
        row->shelves->n--;
        fd_queue_free(shelf);
}

static void row_sweep(FdQueueRow *row) {
        size_t n_empty = 0;
        FdQueue *shelf, *next;

        if (!row->dirty)
                return;
        row->dirty = false;
        for (shelf = LIST_FIRST(&row->list); shelf; shelf = next) {
                int r = fd_queue_sweep(shelf);

                next = LIST_NEXT(shelf, shelves);
                if (r < 0) {
                        row->shelves->failed(row->shelves->userdata, r,
                                             "Descriptors could not be dropped");
                        row->dirty = true;
                }
                if (shelf->n_messages == 0 && ++n_empty > SHELVES_SPARE)
                        row_remove(row, shelf);
        }
}

static int row_is_due(sd_event_source *source, uint64_t usec, void *userdata) {
        FdQueueRow *row = userdata;

        row_sweep(row);
        if (!row->dirty)
                return 0;
        (void) sd_event_source_set_time_relative(source, USEC_PER_SEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int fd_store_put(FdStore *s, FdQueueKind kind, const FdLabel *labels, size_t n_labels,
                 const int *fds, FdPart **ret) {
        FdQueueRow *row = &s->rows[kind];
        FdQueue *shelf;
        int r;

        LIST_FOREACH (shelf, &row->list, shelves)
                if (fd_queue_has_room(shelf)) {
                        r = fd_queue_put(shelf, labels, n_labels, fds, ret);
                        if (r != -EAGAIN)
                                return r;
                }
        r = row_add(row, &shelf);
        return r < 0 ? r : fd_queue_put(shelf, labels, n_labels, fds, ret);
}

void fd_store_drop(FdPart *part) {
        FdQueueRow *row = part->message->shelf->owner;

        fd_queue_drop(part);
        if (!row->dirty)
                (void) sd_event_source_set_time_relative(row->sweep,
                                                         sweep_usec[row - row->shelves->rows]);
        row->dirty = true;
        (void) sd_event_source_set_enabled(row->sweep, SD_EVENT_ONESHOT);
}

void fd_store_sweep(FdStore *s, FdQueueKind kind) {
        row_sweep(&s->rows[kind]);
}

int fd_store_init(FdStore *s, sd_event *event,
                  void (*failed)(void *userdata, int error, const char *what), void *userdata) {
        int r = 0;

        *s = (FdStore){ .failed = failed, .userdata = userdata };
        for (FdQueueRow *row = s->rows; r >= 0 && row < s->rows + _FD_QUEUE_KIND_MAX; row++) {
                row->shelves = s;
                LIST_INIT(&row->list);
                r = sd_event_add_time(event, &row->sweep, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                                      row_is_due, row);
                if (r >= 0)
                        r = sd_event_source_set_enabled(row->sweep, SD_EVENT_OFF);
        }
        return r;
}

int fd_store_begin(FdStore *s, uint32_t generation) {
        int r = 0;

        s->generation = generation;
        for (FdQueueRow *row = s->rows; r >= 0 && row < s->rows + _FD_QUEUE_KIND_MAX; row++) {
                FdQueue *shelf;

                r = row_add(row, &shelf);
        }
        return r;
}

void fd_store_done(FdStore *s) {
        for (FdQueueRow *row = s->rows; row < s->rows + _FD_QUEUE_KIND_MAX; row++) {
                FdQueue *shelf;

                while ((shelf = LIST_FIRST(&row->list))) {
                        LIST_REMOVE(shelf, shelves);
                        fd_queue_free(shelf);
                }
                row->sweep = sd_event_source_disable_unref(row->sweep);
        }
}
