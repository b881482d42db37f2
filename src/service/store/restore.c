/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "restore.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "perf/pmu/fd-reserve.h"
#include "service/store/fd-store.h"
#include "service/store/restore-watch.h"
#include "service/store/set-aside.h"
#include "service/store/statelog.h"
#include "service/util/log.h"

#define FDS_MAX (1u << 20) /* of one object; a damaged record may have any number */

/* One descriptor that systemd had. */
typedef struct Stored {
        int fd; /* -1: the log has it now */
        char *name;
        uint32_t generation;
        bool is_queue; /* else the state log */
        bool foreign;  /* not ours to read, nor to drop */
} Stored;

struct Restore {
        size_t n_stored;
        Stored *stored;
        StateLog *log; /* of the newest complete generation; NULL: there is none */
        size_t n_records;
        StoreRecord *records; /* in the order of store_record_compare() */
};

/* ---- what there is ---- */

static int restore_collect(Restore *p) {
        char **names = NULL;
        int n = sd_listen_fds_with_names(true, &names);

        if (n <= 0)
                return n;
        p->stored = calloc((size_t) n, sizeof(Stored));
        for (int i = 0; i < n; i++) {
                Stored s = { .fd = SD_LISTEN_FDS_START + i, .name = names[i] };

                if (!p->stored) {
                        close_fd(s.fd);
                        free(s.name);
                        continue;
                }
                s.foreign = !fd_store_parse(s.name, &s.generation, &s.is_queue);
                if (s.foreign)
                        s.fd = close_fd(s.fd);
                p->stored[p->n_stored++] = s;
        }
        free(names);
        return p->stored ? 0 : -ENOMEM;
}

/* Leaves everything of that generation in systemd's store. */
static void restore_leave_alone(Restore *p, uint32_t generation) {
        log_plain(LOG_WARNING,
                  "A newer version of the service has left its state (generation %" PRIu32
                  "); it is not touched. Stopping the service drops it.",
                  generation);
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++)
                if (!s->foreign && s->generation == generation) {
                        s->foreign = true;
                        s->fd = close_fd(s->fd);
                }
}

static void restore_open_log(Restore *p, Stored *s) {
        StateLog *log = NULL;
        int r = statelog_open(s->fd, &log);

        if (r == -EPROTONOSUPPORT) {
                restore_leave_alone(p, s->generation);
                return;
        }
        if (r < 0) {
                log_plain(LOG_ERR, "The state in %s cannot be read: %s", s->name, strerror(-r));
                return;
        }
        s->fd = -1;
        if (!statelog_is_complete(log) ||
            (p->log && statelog_generation(p->log) > statelog_generation(log))) {
                statelog_free(log);
                return;
        }
        statelog_free(p->log);
        p->log = log;
}

/* ---- its records ---- */

static void restore_add_record(Restore *p, const StateEntry *e, uint64_t place) {
        StoreRecord r = { .kind = (StoreKind) (e->kind & ~STATELOG_MORE),
                          .id = e->id,
                          .state = { e->state, e->n_state },
                          .n_fds = e->n_fds,
                          .version = e->version,
                          .place = place,
                          .more = e->kind & STATELOG_MORE };

        if (e->n_fds > FDS_MAX || !unpack_is_valid(&r.state))
                log_plain(LOG_ERR,
                          "A record of the service's state (kind %d, %" PRIu64
                          ") is invalid, and is dropped.",
                          (int) r.kind, e->id);
        else
                p->records[p->n_records++] = r;
}

static void restore_remove_left_out(Restore *p) {
        size_t n = 0;

        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++)
                if (r->left_out)
                        store_record_done(r);
                else
                        p->records[n++] = *r;
        p->n_records = n;
}

static int restore_merge(Restore *p) {
        size_t n;
        int r = 0;

        qsort(p->records, p->n_records, sizeof(StoreRecord), store_record_compare_places);
        for (size_t i = 0; i < p->n_records && r >= 0; i += n) {
                for (n = 1; i + n < p->n_records; n++)
                        if (store_record_compare(&p->records[i], &p->records[i + n]) != 0)
                                break;
                r = store_records_merge(&p->records[i], n);
        }
        if (r >= 0)
                restore_remove_left_out(p);
        return r;
}

/* Room for their descriptors, -1 each. */
static int restore_make_room(Restore *p) {
        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++) {
                if (r->n_fds == 0)
                        continue;
                r->fds = malloc(r->n_fds * sizeof(int));
                if (!r->fds)
                        return -ENOMEM;
                memset(r->fds, 0xff, r->n_fds * sizeof(int));
        }
        return 0;
}

static int restore_read_log(Restore *p) {
        const StateEntry *e;
        uint64_t place = 0;
        size_t n = 0;
        int r;

        while (statelog_next(p->log, &place))
                n++;
        p->records = calloc(n + 1, sizeof(StoreRecord)); /* never NULL, as qsort() wants it */
        if (!p->records)
                return -ENOMEM;
        for (place = 0; n > 0 && (e = statelog_next(p->log, &place)); n--)
                restore_add_record(p, e, place);
        r = restore_merge(p);
        return r < 0 ? r : restore_make_room(p);
}

/* ---- their descriptors ---- */

static StoreRecord *restore_find(const Restore *p, const FdLabel *label) {
        const StoreRecord key = { .kind = (StoreKind) label->kind, .id = label->id };
        StoreRecord *r =
                bsearch(&key, p->records, p->n_records, sizeof(StoreRecord), store_record_compare);

        return r && r->version == label->version ? r : NULL;
}

static int restore_take_fds(void *userdata, const FdLabel *label, int *fds) {
        StoreRecord *r = restore_find(userdata, label);

        for (size_t i = 0; i < label->n_fds; i++)
                if (r && label->first + i < r->n_fds && r->fds[label->first + i] < 0)
                        r->fds[label->first + i] = fds[i];
                else
                        close_fd(fds[i]);
        return 0;
}

static void restore_leave_out_incomplete(Restore *p) {
        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++) {
                r->left_out = !store_record_is_whole(r);
                if (r->left_out)
                        log_plain(LOG_ERR,
                                  "Descriptors of the service's state (kind %d, %" PRIu64
                                  ") are missing: it is left out.",
                                  (int) r->kind, r->id);
        }
        restore_remove_left_out(p);
}

/* Empties the queues of that generation, or of all others, which are no use any more: descriptors
 * in flight count against RLIMIT_NOFILE (unix(7), ETOOMANYREFS). */
static void restore_drain(Restore *p, uint32_t generation, bool others) {
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++)
                if (!s->foreign && s->is_queue && (s->generation == generation) != others)
                        fd_queue_drain(s->fd);
}

/* How many descriptors may be opened for records. */
static size_t restore_room(void) {
        _cleanup_close_ int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        uint64_t max = fd_reserve_first();

        return next >= 0 && (uint64_t) next < max ? max - (uint64_t) next : 0;
}

/* Leaves out the records, of counters or of all else, whose descriptors do not fit. Returns how
 * many. */
static size_t restore_fit_some(Restore *p, bool counters, size_t *room) {
        size_t n_out = 0;

        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++) {
                if ((r->kind == STORE_COUNTERS) != counters)
                        continue;
                r->left_out = r->n_fds > *room;
                if (r->left_out)
                        n_out++;
                else
                        *room -= r->n_fds;
        }
        return n_out;
}

/* False: the limit is lower than in the run before, and records had to be left out. Counters are
 * the first to go: leases and streams come before them. */
static bool restore_fit(Restore *p) {
        size_t room = restore_room(), n_out = 0;

        n_out += restore_fit_some(p, false, &room);
        n_out += restore_fit_some(p, true, &room);
        if (n_out == 0)
                return true;
        log_plain(LOG_ERR,
                  "There are too few descriptors (LimitNOFILE= in perfallocd.service) for what was "
                  "kept: %zu records of the service's state are left out.",
                  n_out);
        restore_remove_left_out(p);
        return false;
}

static int restore_read_queues(Restore *p, uint32_t generation) {
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++) {
                int r;

                if (s->foreign || !s->is_queue || s->generation != generation)
                        continue;
                r = fd_queue_read(s->fd, restore_take_fds, p);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(LOG_ERR, "Descriptors in %s cannot be read: %s", s->name,
                                  strerror(-r));
        }
        return 0;
}

static int restore_read_fds(Restore *p) {
        uint32_t generation = statelog_generation(p->log);
        bool fits;
        int r;

        restore_drain(p, generation, true);
        fits = restore_fit(p);
        r = restore_read_queues(p, generation);
        if (r < 0)
                return r;
        restore_leave_out_incomplete(p);
        if (!fits) /* there is no room for both the old copies and the new ones */
                restore_drain(p, generation, false);
        return 0;
}

int restore_read(unsigned n_crashed, const char *directory, Restore **ret) {
        _cleanup_(restore_freep) Restore *p = calloc(1, sizeof(Restore));
        int r;

        if (!p)
                return -ENOMEM;
        r = restore_collect(p);
        if (r < 0)
                return r;
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++)
                if (!s->foreign && !s->is_queue)
                        restore_open_log(p, s);
        if (p->log && n_crashed >= RESTORE_CRASHES_MAX)
                set_aside(p->log, directory, n_crashed == RESTORE_CRASHES_MAX);
        else if (p->log) {
                r = restore_read_log(p);
                if (r >= 0)
                        r = restore_read_fds(p);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(p);
        return 0;
}

uint32_t restore_generation(const Restore *p) {
        uint32_t highest = 0;

        for (const Stored *s = p->stored; s < p->stored + p->n_stored; s++)
                highest = MAX(highest, s->generation);
        return highest;
}

StoreRecord *restore_next(Restore *p, StoreKind kind, size_t *place) {
        while (*place < p->n_records) {
                StoreRecord *r = &p->records[(*place)++];

                if (r->kind == kind)
                        return r;
        }
        return NULL;
}

Restore *restore_end(Restore *p) {
        if (!p)
                return NULL;
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++) {
                if (s->foreign)
                        continue;
                if (s->is_queue)
                        fd_queue_drain(s->fd); /* before systemd gets to it */
                fd_store_remove(s->name);
        }
        return restore_free(p);
}

Restore *restore_free(Restore *p) {
        if (!p)
                return NULL;
        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++)
                store_record_done(r);
        free(p->records);
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++) {
                close_fd(s->fd);
                free(s->name);
        }
        free(p->stored);
        statelog_free(p->log);
        free(p);
        return NULL;
}
