/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-stream.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/fd-message.h"
#include "service/util/log.h"

/* What a client that does not read keeps in the kernel: about 40 messages (unix(7): descriptors in
 * flight count against RLIMIT_NOFILE of whoever has sent them). */
#define SEND_BUFFER 16384

#define SENT_AT_ONCE 64 /* messages, so that other sources get their turn */

int event_stream_new(Events *events, Peer *peer, const EventRequest *q, size_t n, EventStream **ret,
                     Refusal *why) {
        EventStream *s = calloc(1, sizeof(EventStream));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (EventStream){ .events = events,
                            .peer = peer_ref(peer),
                            .pmu = q->event.pmu,
                            .cpu = q->cpu,
                            .items = calloc(MAX(n, 1u), sizeof(EventStreamItem)),
                            .fd = -1 };
        LIST_INSERT_HEAD(&events->streams, s, streams);
        r = s->items ? quota_charge(&events->context->quota, peer->uid, QUOTA_DESCRIPTORS, n,
                                    &s->charge, why)
                     : -ENOMEM;
        if (r == 0)
                *ret = s;
        else
                event_stream_free(s);
        return r;
}

EventStream *event_stream_free(EventStream *s) {
        const Context *context;

        if (!s)
                return NULL;
        context = s->events->context;
        LIST_REMOVE(s, streams);
        sd_event_source_disable_unref(s->io);
        for (size_t i = s->n_sent; i < s->n_items; i++)
                close_fd(s->items[i].fd);
        free(s->items);
        close_fd(s->fd);
        quota_release(&s->charge);
        peer_unref(s->peer);
        free(s);
        context_touch(context);
        return NULL;
}

void event_streams_done(Events *events) {
        while (!LIST_EMPTY(&events->streams))
                event_stream_free(LIST_FIRST(&events->streams));
}

void event_stream_add(EventStream *s, pid_t tid, int fd) {
        s->items[s->n_items++] = (EventStreamItem){ tid, fd };
}

/* ---- sending ---- */

/* Until the socket is full. -EPIPE and others: no more can be sent. */
static int event_stream_send(EventStream *s) {
        for (int n = 0; n < SENT_AT_ONCE && s->n_sent < s->n_items; n++) {
                EventStreamItem *item = &s->items[s->n_sent];
                uint64_t tid = (uint64_t) item->tid;
                int r = fd_message_send(s->fd, &tid, sizeof(tid), &item->fd, 1, MSG_DONTWAIT);

                if (r < 0)
                        return r == -EAGAIN ? 0 : r;
                item->fd = close_fd(item->fd);
                s->n_sent++;
        }
        return 0;
}

/* After the last message: the client sees the end, and this end waits until all is read. */
static int event_stream_finish(EventStream *s) {
        if (shutdown(s->fd, SHUT_WR) < 0)
                return -errno;
        return sd_event_source_set_io_events(s->io, EPOLLOUT | EPOLLET);
}

/* Nothing that was sent lies in the socket: it was read, or the client has closed its end. While
 * the kernel tells us that there is room (sock_wfree()) it still counts one byte of the message. */
static bool event_stream_is_empty(const EventStream *s) {
        int unread;

        return ioctl(s->fd, SIOCOUTQ, &unread) < 0 || unread <= 1;
}

static int event_stream_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        EventStream *s = userdata;
        int r = 0;

        if (s->n_sent == s->n_items) {
                if (event_stream_is_empty(s))
                        event_stream_free(s);
                return 0;
        }
        r = event_stream_send(s);
        if (r == 0 && s->n_sent == s->n_items)
                r = event_stream_finish(s);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                log_plain(LOG_NOTICE, "Uid %u gets %zu of %zu events that it has opened: %s.",
                          (unsigned) s->peer->uid, s->n_sent, s->n_items, strerror(-r));
        if (r < 0)
                event_stream_free(s);
        return 0;
}

static int event_stream_connect(EventStream *s, int *ret_fd) {
        const int size = SEND_BUFFER;
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        s->fd = fds[0];
        *ret_fd = fds[1];
        if (setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
            shutdown(s->fd, SHUT_RD) < 0)
                return -errno;
        return 0;
}

int event_stream_start(EventStream *s, int *ret_fd) {
        _cleanup_close_ int client_end = -1;
        int r = event_stream_connect(s, &client_end);

        if (r == 0)
                r = sd_event_add_io(s->events->context->event, &s->io, s->fd, EPOLLOUT,
                                    event_stream_ready, s);
        if (r < 0) {
                s->fd = close_fd(s->fd);
                return r;
        }
        (void) sd_event_source_set_description(s->io, "events");
        *ret_fd = TAKE_FD(client_end);
        return 0;
}

/* ---- who is in the way ---- */

static bool event_stream_is_in(const EventStream *s, const Scope *scope) {
        const ScopePart *part = scope_find(scope, s->pmu->index);

        return part && (s->cpu < 0 || cpuset_has(&part->cpus, (unsigned) s->cpu));
}

void event_streams_foreign(const Events *events, uid_t uid, const Scope *scope,
                           void (*f)(void *userdata, const Peer *peer, const Pmu *pmu),
                           void *userdata) {
        const EventStream *s;

        LIST_FOREACH (s, &events->streams, streams)
                if (s->peer->uid != uid && s->n_sent < s->n_items && event_stream_is_in(s, scope))
                        f(userdata, s->peer, s->pmu);
}
