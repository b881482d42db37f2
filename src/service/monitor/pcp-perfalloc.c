/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pcp-perfalloc.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "perf/process/process.h"
#include "service/auth/process-check.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold.h"
#include "service/util/log.h"
#include "yield/pcp-lock.h"

#define REASON "the lock of PCP's perfalloc"

/* The checks for a lock after an open: the first delay, the last one, and the factor between
 * two. */
#define LOOK_FIRST_USEC (1 * USEC_PER_MSEC)
#define LOOK_LAST_USEC  USEC_PER_SEC
#define LOOK_FACTOR     10u

/* Limits the checks for a process that opens and closes the file in a loop. */
#define EVENTS_INTERVAL_USEC (100 * USEC_PER_MSEC)
#define EVENTS_BURST         10u

struct PcpPerfalloc {
        Holds *holds;
        Bridge *lock;
        void (*changed)(void *userdata);
        void *userdata;
        char *name; /* of the file in its directory */
        sd_event_source *events, *timer;
        uint64_t look_usec; /* until the next check */
        pid_t pid;          /* that has the lock, once it is known what it gets */
        uint64_t hold;      /* on its behalf; 0: none */
        ProcessCheck *check;
        pid_t checked; /* while there is a check: whom it is about */
};

static Hold *perfalloc_hold(const PcpPerfalloc *p) {
        Hold *h = p->hold > 0 ? hold_find(p->holds, p->hold) : NULL;

        return h && h->state != HOLD_ENDED ? h : NULL;
}

static bool has_hold(const Holds *holds, pid_t pid) {
        LedgerHold *l;

        TAILQ_FOREACH (l, &holds->context->ledger.holds, list)
                if (hold_of_ledger(l)->pid == pid)
                        return true;
        return false;
}

static int request_make(const Holds *holds, const ProcessFacts *owner, HoldRequest *ret,
                        Refusal *why) {
        const Config *config = &holds->context->config;
        bool root = process_is_root(owner);

        *ret = (HoldRequest){ .unattended = true,
                              .best_effort = true,
                              .wait_usec = root ? UINT64_MAX : config->wait_max_usec,
                              .yield_usec = HOLD_YIELD_USEC,
                              .lifetime_usec = root ? UINT64_MAX : config->hold_max_usec,
                              .uid = owner->uid[0],
                              .tie = HOLD_TIE_NULL };
        ret->reason = strdup(REASON);
        if (!ret->reason)
                return -ENOMEM;
        return scope_request_read(&holds->context->pmus, NULL, NULL, &ret->what, why);
}

static void perfalloc_begin(PcpPerfalloc *p, const ProcessFacts *owner) {
        _cleanup_(hold_request_done) HoldRequest request = HOLD_REQUEST_NULL;
        Holds *holds = p->holds;
        const Peer who = { .uid = owner->uid[0], .pid = p->pid };
        Refusal why = REFUSAL_NULL;
        Hold *h;
        int r;

        r = request_make(holds, owner, &request, &why);
        if (r == 0) {
                /* stored before the hold exists: otherwise nobody would end it if the service were
                 * killed in between */
                p->hold = serial_next(&holds->context->serial, SERIAL_HOLD);
                request.number = p->hold;
                p->changed(p->userdata);
                r = hold_new(holds, &who, &request, &h, NULL, &why);
        }
        if (r != 0) {
                p->hold = 0;
                p->changed(p->userdata);
                log_plain(LOG_WARNING, "No monitor yields to pid %d, which has PCP's lock: %s",
                          (int) p->pid, r < 0 ? strerror(-r) : why.text);
                return;
        }
        hold_signal_added(h);
        hold_begin(h);
}

static void perfalloc_end(PcpPerfalloc *p) {
        Hold *h = perfalloc_hold(p);

        p->hold = 0;
        if (h)
                hold_end(h, HOLD_LEASE_CLOSED);
        p->changed(p->userdata);
}

static void perfalloc_set_pid(PcpPerfalloc *p, pid_t pid) {
        p->check = process_check_cancel(p->check);
        p->pid = pid;
        p->changed(p->userdata);
}

static void perfalloc_look(PcpPerfalloc *p);

static void perfalloc_checked(void *userdata, int r, const ProcessFacts *owner,
                              const Refusal *why) {
        PcpPerfalloc *p = userdata;

        p->check = NULL;
        if (pcp_lock_holder(p->lock) != p->checked) {
                perfalloc_look(p);
                return;
        }
        perfalloc_set_pid(p, p->checked);
        if (r == 0)
                perfalloc_begin(p, owner);
        else
                log_plain(LOG_NOTICE, "Only PCP yields to pid %d, which has PCP's lock: %s",
                          (int) p->pid, r < 0 ? strerror(-r) : why->text);
}

/* Until there is an answer, and after a restart, it is as if nobody had looked. */
static void perfalloc_check(PcpPerfalloc *p, pid_t pid) {
        _cleanup_close_ int pidfd = -1;
        Refusal why;
        int r = process_open(pid, &pidfd, &why);

        /* the pidfd is of the process that has the lock if that has not changed meanwhile */
        if (r == 0 && pcp_lock_holder(p->lock) == pid)
                r = process_check_new(p->holds->context, pidfd, ACTION_HOLD, REASON,
                                      perfalloc_checked, p, &p->check);
        p->checked = pid;
        if (r < 0)
                log_plain(LOG_WARNING, "Only PCP yields to pid %d, which has PCP's lock: %s",
                          (int) pid, strerror(-r));
}

/* What was decided for the owner of the lock stays until the lock was free: a hold that others have
 * ended is not taken again, and polkit is not asked again after a no. */
static void perfalloc_look(PcpPerfalloc *p) {
        pid_t pid = pcp_lock_holder(p->lock);

        if (pid == (p->check ? p->checked : p->pid) || (pid != 0 && perfalloc_hold(p)))
                return;
        p->check = process_check_cancel(p->check);
        if (pid > 0 && !has_hold(p->holds, pid)) {
                perfalloc_check(p, pid);
                return;
        }
        perfalloc_set_pid(p, pid);
        if (pid == 0)
                perfalloc_end(p);
        else if (pid < 0)
                log_plain(LOG_NOTICE,
                          "Only PCP yields to the process that has PCP's lock: its pid is "
                          "unknown");
}

static void perfalloc_look_later(PcpPerfalloc *p) {
        /* an explicit unlock causes no event, but a close mostly follows it: no need to hurry */
        if (p->look_usec > LOOK_LAST_USEC) {
                if (p->pid == 0 && !p->check)
                        return;
                p->look_usec = LOOK_LAST_USEC;
        }
        (void) sd_event_source_set_time_relative(p->timer, p->look_usec);
        (void) sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
        p->look_usec *= LOOK_FACTOR;
}

static int perfalloc_timed(sd_event_source *source, uint64_t usec, void *userdata) {
        PcpPerfalloc *p = userdata;

        perfalloc_look(p);
        perfalloc_look_later(p);
        return 0;
}

/* Whether any pending event is about the file. */
static bool events_read(int fd, const char *name) {
        char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t n = read(fd, buffer, sizeof(buffer));
        bool concerned = false;

        for (ssize_t at = 0; at < n;) {
                const struct inotify_event *e = (const void *) (buffer + at);

                if ((e->mask & IN_Q_OVERFLOW) || (e->len > 0 && strcmp(e->name, name) == 0))
                        concerned = true;
                at += (ssize_t) (sizeof(*e) + e->len);
        }
        return concerned;
}

static int perfalloc_touched(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        PcpPerfalloc *p = userdata;

        if (!events_read(fd, p->name))
                return 0;
        bridge_try(p->lock); /* it may be new */
        perfalloc_look(p);
        p->look_usec = LOOK_FIRST_USEC;
        perfalloc_look_later(p);
        return 0;
}

/* Watches the directory: the file need not exist yet, and may be replaced. */
static int perfalloc_watch(PcpPerfalloc *p, const char *directory) {
        _cleanup_close_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        int r;

        if (fd < 0 || inotify_add_watch(fd, directory,
                                        IN_OPEN | IN_CLOSE | IN_CREATE | IN_MOVE | IN_DELETE |
                                                IN_ONLYDIR) < 0)
                return -errno;
        r = sd_event_add_io(p->holds->context->event, &p->events, fd, EPOLLIN, perfalloc_touched,
                            p);
        if (r >= 0)
                r = sd_event_source_set_io_fd_own(p->events, true);
        if (r >= 0)
                (void) TAKE_FD(fd);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(p->events, EVENTS_INTERVAL_USEC, EVENTS_BURST);
        return r;
}

static int perfalloc_build(PcpPerfalloc *p, const char *path) {
        _cleanup_free_ char *directory = strdup(path);
        char *slash = directory ? strrchr(directory, '/') : NULL;
        int r;

        if (!slash)
                return -ENOMEM;
        p->name = strdup(slash + 1);
        if (!p->name)
                return -ENOMEM;
        slash[slash == directory] = '\0';
        /* the first check runs in the loop, before any call is answered: its results are
         * signalled */
        r = sd_event_add_time(p->holds->context->event, &p->timer, CLOCK_MONOTONIC, 0,
                              LOOK_FIRST_USEC, perfalloc_timed, p);
        if (r >= 0)
                r = sd_event_source_set_priority(p->timer, SD_EVENT_PRIORITY_IMPORTANT);
        return r < 0 ? r : perfalloc_watch(p, directory);
}

static const PackField perfalloc_fields[] = {
        PACK_FIELD(PACK_U32, "perfalloc_pid", PcpPerfalloc, pid),
        PACK_FIELD(PACK_U64, "perfalloc_hold", PcpPerfalloc, hold),
};

bool pcp_perfalloc_is_kept(const PcpPerfalloc *p) {
        return p && (p->pid != 0 || p->hold != 0);
}

void pcp_perfalloc_pack(const PcpPerfalloc *p, Pack *pack) {
        if (p)
                pack_struct(pack, perfalloc_fields, ELEMENTSOF(perfalloc_fields), p);
}

int pcp_perfalloc_new(Holds *holds, Bridge *lock, const char *path, void (*changed)(void *userdata),
                      void *userdata, const Unpack *past, PcpPerfalloc **ret) {
        PcpPerfalloc *p = calloc(1, sizeof(PcpPerfalloc));
        int r;

        if (!p)
                return -ENOMEM;
        *p = (PcpPerfalloc){ .holds = holds,
                             .changed = changed,
                             .userdata = userdata,
                             .lock = lock,
                             .look_usec = LOOK_LAST_USEC };
        r = past ? unpack_struct(past, perfalloc_fields, ELEMENTSOF(perfalloc_fields), p) : 0;
        if (r >= 0)
                r = perfalloc_build(p, path);
        if (r < 0) {
                pcp_perfalloc_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

PcpPerfalloc *pcp_perfalloc_free(PcpPerfalloc *p) {
        if (!p)
                return NULL;
        perfalloc_end(p);
        pcp_perfalloc_drop(p);
        return NULL;
}

void pcp_perfalloc_drop(PcpPerfalloc *p) {
        if (!p)
                return;
        process_check_cancel(p->check);
        sd_event_source_disable_unref(p->events);
        sd_event_source_disable_unref(p->timer);
        free(p->name);
        free(p);
}

void pcp_perfalloc_forget(PcpPerfalloc *p, pid_t pid) {
        if (!p)
                return;
        if (p->check && p->checked == pid)
                perfalloc_set_pid(p, pid);
        if (p->pid == pid)
                perfalloc_end(p);
}
