/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/broker-wire.h"
#include "broker/listener.h"
#include "service/broker/broker-answer.h"
#include "service/util/log.h"

#define WORKERS_MAX 3u /* that fail one after the other, without an answer between them */

/* ---- its end ---- */

static void worker_end(Broker *b) {
        b->io = sd_event_source_disable_unref(b->io);
        b->job = reader_job_cancel(b->job);
        b->socket = close_fd(b->socket);
        b->lease = close_fd(b->lease);
}

static Broker *broker_free(Broker *b) {
        if (!b)
                return NULL;
        worker_end(b);
        sd_event_source_disable_unref(b->listener_source);
        close_fd(b->listener);
        close_fd(b->page);
        close_fd(b->prover);
        quota_release(&b->charge);
        free(b->gids);
        free(b);
        return NULL;
}
DEFINE_CLEANUP(Broker *, broker_free)

static void broker_leave(Broker *b) {
        LIST_REMOVE(b, list);
        b->brokers->n--;
        broker_free(b);
}

static void broker_end(Broker *b) {
        const Context *context = b->brokers->context;

        store_leave(&b->item);
        broker_leave(b);
        context_touch(context);
}

/* No task has the filter any more. */
static int on_listener(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        broker_end(userdata);
        return 0;
}

/* ---- its worker ---- */

static void broker_answer_next(Broker *b) {
        _cleanup_close_ int target = -1, group = -1, event = -1;
        static BrokerRequest q;
        BrokerReply a;
        size_t n_attr;
        int r;

        r = broker_request_receive(b->socket, &q, &n_attr, &target, &group);
        if (r == 0 || r == -EAGAIN)
                return; /* the job tells of its end */
        if (r == 1)
                event = broker_answer(b, &q, n_attr, target, group, &a);
        else
                a = (BrokerReply){ .answer = BROKER_FAIL, .error = EMFILE };
        if (broker_reply_send(b->socket, &a, event) == 0)
                b->n_failed = 0;
}

static int on_request(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Broker *b = userdata;

        if (revents & EPOLLIN)
                broker_answer_next(b);
        else
                b->io = sd_event_source_disable_unref(b->io);
        return 0;
}

static int worker_start(Broker *b);

/* It was killed, or has found something that it cannot handle. */
static void on_worker_ended(void *userdata, int r) {
        Broker *b = userdata;

        b->job = NULL;
        worker_end(b);
        if (r == -EPIPE)
                return; /* the reader has died, and the service starts anew */
        if (listener_has_ended(b->listener)) {
                broker_end(b);
                return;
        }
        if (++b->n_failed <= WORKERS_MAX && worker_start(b) >= 0)
                return;
        log_event(LOG_ERR, LOG_ID_DEGRADED,
                  "The worker of a broker has failed; its programs can open no more events.", NULL);
        broker_end(b);
}

static int worker_start(Broker *b) {
        _cleanup_close_ int socket = -1, lease = -1;
        Context *context = b->brokers->context;
        int pair[2], ends[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        b->socket = pair[0];
        socket = pair[1];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        lease = ends[0];
        b->lease = ends[1];
        r = broker_wire_begin(b->socket, b->listener, b->page, b->prover);
        if (r >= 0)
                r = sd_event_add_io(context->event, &b->io, b->socket, EPOLLIN, on_request, b);
        if (r >= 0)
                r = reader_broker(context->reader, socket, lease, on_worker_ended, b, &b->job);
        return r;
}

/* ---- its beginning ---- */

static Broker *broker_allocate(Brokers *brokers) {
        Broker *b = calloc(1, sizeof(Broker));

        if (b)
                *b = (Broker){ .brokers = brokers,
                               .listener = -1,
                               .page = -1,
                               .prover = -1,
                               .socket = -1,
                               .lease = -1 };
        return b;
}

static const PackField broker_fields[] = {
        PACK_FIELD(PACK_U32, "uid", Broker, uid),
        PACK_FIELD(PACK_U32, "actions", Broker, actions),
        PACK_FIELD(PACK_U64, "start", Broker, start),
};

static void broker_keep(StoreItem *item) {
        Broker *b = container_of(item, Broker, item);
        int fds[] = { b->listener, b->page, b->prover };
        Pack *p;

        store_keep(&b->item, fds, ELEMENTSOF(fds) - (b->prover < 0), STORE_SOON);
        p = store_pack(item->store);
        pack_struct(p, broker_fields, ELEMENTSOF(broker_fields), b);
        pack_bytes(p, "gids", b->gids, b->n_gids * sizeof(gid_t));
        store_save(&b->item, p);
}

/* Takes b over, also on failure. */
static int broker_begin(Broker *broker) {
        _cleanup_(broker_freep) Broker *b = broker;
        Brokers *brokers = b->brokers;
        int r;

        r = sd_event_add_io(brokers->context->event, &b->listener_source, b->listener, 0,
                            on_listener, b);
        if (r >= 0)
                r = worker_start(b);
        if (r < 0)
                return r;
        store_enter(brokers->context->store, &b->item, STORE_BROKER, b->id, broker_keep);
        broker_keep(&b->item);
        LIST_INSERT_HEAD(&brokers->all, b, list);
        brokers->n++;
        TAKE_PTR(b);
        context_touch(brokers->context);
        return 0;
}

static int fd_copy(int fd, int *ret) {
        *ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return fd >= 0 && *ret < 0 ? -errno : 0;
}

static int broker_set_gids(Broker *b, const void *gids, size_t n_gids) {
        b->gids = calloc(MAX(n_gids, 1u), sizeof(gid_t));
        if (!b->gids)
                return -ENOMEM;
        if (n_gids > 0)
                memcpy(b->gids, gids, n_gids * sizeof(gid_t));
        b->n_gids = n_gids;
        return 0;
}

int brokers_check(Brokers *brokers, uid_t uid, int listener, Refusal *why) {
        Broker *b;

        LIST_FOREACH (b, &brokers->all, list)
                if (listener_is_same(b->listener, listener))
                        return refuse(why, REFUSAL_BROKER_BUSY,
                                      "this seccomp listener has a broker already; the broker ends "
                                      "with the last program that was started under it");
        if (brokers->n >= BROKERS_MAX)
                return refuse(why, REFUSAL_LIMITS_EXCEEDED,
                              "the service has the maximum of %zu brokers; a broker ends with the "
                              "last program that was started under it",
                              brokers->n);
        return quota_check(&brokers->context->quota, uid, QUOTA_BROKERS, 1, why);
}

int broker_new(Brokers *brokers, const Peer *peer, int listener, int prover, unsigned actions,
               Refusal *why) {
        _cleanup_(broker_freep) Broker *b = broker_allocate(brokers);
        int r;

        if (!b)
                return -ENOMEM;
        r = brokers_check(brokers, peer->uid, listener, why);
        if (r == 0)
                r = quota_charge(&brokers->context->quota, peer->uid, QUOTA_BROKERS, 1, &b->charge,
                                 why);
        if (r == 0)
                r = broker_set_gids(b, peer->gids, peer->n_gids);
        if (r == 0)
                r = listener_page_new(&b->page);
        if (r == 0)
                r = fd_copy(listener, &b->listener);
        if (r == 0)
                r = fd_copy(prover, &b->prover);
        if (r != 0)
                return r;
        b->id = ++brokers->last_id;
        b->uid = peer->uid;
        b->actions = actions;
        b->start = other_now();
        return broker_begin(TAKE_PTR(b));
}

/* ---- all of them ---- */

void brokers_done(Brokers *brokers) {
        while (!LIST_EMPTY(&brokers->all))
                broker_leave(LIST_FIRST(&brokers->all));
}

static int broker_restore(void *userdata, StoreRecord *record) {
        Brokers *brokers = userdata;
        _cleanup_(broker_freep) Broker *b = broker_allocate(brokers);
        const void *gids;
        size_t size = 0;
        int r;

        if (!b)
                return -ENOMEM;
        gids = unpack_bytes(&record->state, "gids", &size);
        if (record->n_fds < 2 || record->n_fds > 3 || !gids || size % sizeof(gid_t) != 0)
                return -EBADMSG;
        r = unpack_struct(&record->state, broker_fields, ELEMENTSOF(broker_fields), b);
        if (r == 0)
                r = broker_set_gids(b, gids, size / sizeof(gid_t));
        if (r == 0)
                r = quota_charge_anyway(&brokers->context->quota, b->uid, QUOTA_BROKERS, 1,
                                        &b->charge);
        if (r < 0)
                return r;
        b->id = record->id;
        brokers->last_id = MAX(brokers->last_id, b->id);
        b->listener = TAKE_FD(record->fds[0]);
        b->page = TAKE_FD(record->fds[1]);
        if (record->n_fds == 3)
                b->prover = TAKE_FD(record->fds[2]);
        return broker_begin(TAKE_PTR(b));
}

int brokers_restore(Brokers *brokers) {
        return store_restore_each(brokers->context->store, STORE_BROKER, "Broker", broker_restore,
                                  brokers);
}
