/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "restore.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "perf/pmu/fd-reserve.h"
#include "service/store/statelog.h"
#include "service/util/log.h"

#define FDS_MAX (1u << 20) /* of one object, in a record that may be anything */

/* One descriptor that systemd had. */
typedef struct Stored {
        int fd; /* -1: the log has it now */
        char *name;
        uint32_t generation;
        bool is_shelf;
        bool foreign; /* not ours to read, or to drop */
} Stored;

struct Restore {
        size_t n_stored;
        Stored *stored;
        StateLog *log; /* the one that counts, NULL: none does */
        size_t n_records;
        StoreRecord *records; /* by kind and id */
};

/* ---- what there is ---- */

static bool stored_parse(Stored *s) {
        uint64_t shelf;
        int end = -1;

        if (sscanf(s->name, STORE_STATE_NAME "%n", &s->generation, &end) == 1 && end > 0 &&
            s->name[end] == '\0')
                return true;
        end = -1;
        s->is_shelf = sscanf(s->name, STORE_SHELF_NAME "%n", &s->generation, &shelf, &end) == 2 &&
                      end > 0 && s->name[end] == '\0';
        return s->is_shelf;
}

static int past_collect(Restore *p) {
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
                s.foreign = !stored_parse(&s);
                if (s.foreign)
                        s.fd = close_fd(s.fd);
                p->stored[p->n_stored++] = s;
        }
        free(names);
        return p->stored ? 0 : -ENOMEM;
}

/* A newer version's log: nothing of its generation is touched. */
static void past_leave_alone(Restore *p, uint32_t generation) {
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

static void past_open_log(Restore *p, Stored *s) {
        StateLog *log = NULL;
        int r = statelog_open(s->fd, &log);

        if (r == -EPROTONOSUPPORT) {
                past_leave_alone(p, s->generation);
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

static int compare_records(const void *a, const void *b) {
        const StoreRecord *x = a, *y = b;

        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        if (x->id != y->id)
                return x->id < y->id ? -1 : 1;
        return x->place < y->place ? -1 : x->place > y->place;
}

static int past_add_record(Restore *p, const StateEntry *e, uint64_t place, size_t *room) {
        StoreRecord r = { .kind = (StoreKind) e->kind,
                          .id = e->id,
                          .state = { e->state, e->n_state },
                          .n_fds = e->n_fds,
                          .version = e->version,
                          .place = place };

        if (e->n_fds > FDS_MAX || !unpack_is_valid(&r.state)) {
                log_plain(LOG_ERR,
                          "A record of the service's state (kind %" PRIu32 ", %" PRIu64
                          ") makes no sense, and is left out.",
                          e->kind, e->id);
                return 0;
        }
        if (p->n_records == *room) {
                size_t more = 2 * *room + 64;
                StoreRecord *records = reallocarray(p->records, more, sizeof(StoreRecord));

                if (!records)
                        return -ENOMEM;
                p->records = records;
                *room = more;
        }
        if (r.n_fds > 0) {
                r.fds = malloc(r.n_fds * sizeof(int));
                if (!r.fds)
                        return -ENOMEM;
                memset(r.fds, 0xff, r.n_fds * sizeof(int)); /* -1 each */
        }
        p->records[p->n_records++] = r;
        return 0;
}

static void record_done(StoreRecord *r) {
        for (size_t i = 0; i < r->n_fds; i++)
                close_fd(r->fds[i]);
        free(r->fds);
}

/* Of two records of one object the later one counts. */
static void past_drop_doubles(Restore *p) {
        size_t n = 0;

        for (size_t i = 0; i < p->n_records; i++) {
                StoreRecord *next = i + 1 < p->n_records ? &p->records[i + 1] : NULL;

                if (next && next->kind == p->records[i].kind && next->id == p->records[i].id)
                        record_done(&p->records[i]);
                else
                        p->records[n++] = p->records[i];
        }
        p->n_records = n;
}

static int past_read_log(Restore *p) {
        const StateEntry *e;
        uint64_t place = 0;
        size_t room = 0;
        int r;

        while ((e = statelog_next(p->log, &place))) {
                r = past_add_record(p, e, place, &room);
                if (r < 0)
                        return r;
        }
        if (p->n_records > 0)
                qsort(p->records, p->n_records, sizeof(StoreRecord), compare_records);
        past_drop_doubles(p);
        return 0;
}

/* ---- their descriptors ---- */

static StoreRecord *past_find(Restore *p, const FdLabel *label) {
        size_t low = 0, high = p->n_records;

        while (low < high) {
                size_t middle = (low + high) / 2;
                StoreRecord *r = &p->records[middle];

                if (r->kind == label->kind && r->id == label->id)
                        return r->version == label->version ? r : NULL;
                if (r->kind < label->kind || (r->kind == label->kind && r->id < label->id))
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

static int past_take_fds(void *userdata, const FdLabel *label, int *fds) {
        StoreRecord *r = past_find(userdata, label);

        for (size_t i = 0; i < label->n_fds; i++)
                if (r && label->first + i < r->n_fds && r->fds[label->first + i] < 0)
                        r->fds[label->first + i] = fds[i];
                else
                        close_fd(fds[i]);
        return 0;
}

static bool record_is_whole(const StoreRecord *r) {
        for (size_t i = 0; i < r->n_fds; i++)
                if (r->fds[i] < 0)
                        return false;
        return true;
}

static void past_drop_incomplete(Restore *p) {
        size_t n = 0;

        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++) {
                if (record_is_whole(r)) {
                        p->records[n++] = *r;
                        continue;
                }
                log_plain(LOG_ERR,
                          "Descriptors of the service's state (kind %d, %" PRIu64
                          ") are missing: it is left out.",
                          (int) r->kind, r->id);
                record_done(r);
        }
        p->n_records = n;
}

/* What a run that never was complete has left, or the one before this one: copies that would count
 * against what may be under way in messages (unix(7), ETOOMANYREFS). */
static void past_drain(Restore *p, uint32_t generation, bool others) {
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++)
                if (!s->foreign && s->is_shelf && (s->generation == generation) != others)
                        fd_queue_drain(s->fd);
}

/* How many descriptors may still be had, without those that are not for what is kept. */
static size_t past_room(void) {
        _cleanup_close_ int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        uint64_t max = fd_reserve_first();

        return next >= 0 && (uint64_t) next < max ? max - (uint64_t) next : 0;
}

/* The records, of counters or of all else, for whose descriptors there is room. */
static size_t past_fit_some(Restore *p, bool counters, size_t *room) {
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

/* Where there may be fewer than before, the service is to have enough to go on with. Leases come
 * first. */
static bool past_fit(Restore *p) {
        size_t room = past_room(), n_out = 0, n = 0;

        n_out += past_fit_some(p, false, &room);
        n_out += past_fit_some(p, true, &room);
        if (n_out == 0)
                return true;
        log_plain(LOG_ERR,
                  "There are too few descriptors (LimitNOFILE= in perfallocd.service) for what was "
                  "kept: %zu records of the service's state are left out.",
                  n_out);
        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++)
                if (r->left_out)
                        record_done(r);
                else
                        p->records[n++] = *r;
        p->n_records = n;
        return false;
}

static int past_read_shelves(Restore *p) {
        uint32_t generation = statelog_generation(p->log);
        bool fits;
        int r;

        past_drain(p, generation, true);
        fits = past_fit(p);
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++) {
                if (s->foreign || !s->is_shelf || s->generation != generation)
                        continue;
                r = fd_queue_read(s->fd, past_take_fds, p);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(LOG_ERR, "Descriptors in %s cannot be read: %s", s->name,
                                  strerror(-r));
        }
        past_drop_incomplete(p);
        if (!fits) /* not even once: what is kept anew has to have room */
                past_drain(p, generation, false);
        return 0;
}

int restore_read(Restore **ret) {
        _cleanup_(restore_freep) Restore *p = calloc(1, sizeof(Restore));
        int r;

        if (!p)
                return -ENOMEM;
        r = past_collect(p);
        if (r < 0)
                return r;
        for (Stored *s = p->stored; s < p->stored + p->n_stored; s++)
                if (!s->foreign && !s->is_shelf)
                        past_open_log(p, s);
        if (p->log) {
                r = past_read_log(p);
                if (r >= 0)
                        r = past_read_shelves(p);
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
                if (s->is_shelf)
                        fd_queue_drain(s->fd); /* systemd takes its time to close it */
                (void) sd_notifyf(false, "FDSTOREREMOVE=1\nFDNAME=%s", s->name);
        }
        return restore_free(p);
}

Restore *restore_free(Restore *p) {
        if (!p)
                return NULL;
        for (StoreRecord *r = p->records; r < p->records + p->n_records; r++)
                record_done(r);
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
