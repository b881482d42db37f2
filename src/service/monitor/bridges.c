/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bridges.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/hold/hold.h"
#include "service/monitor/pcp-perfalloc.h"
#include "service/store/store.h"
#include "service/util/log.h"
#include "yield/likwid-lock.h"
#include "yield/nmi-watchdog.h"
#include "yield/pcp-lock.h"

/* Where one of each kind is; without a path there is none. */
typedef struct BridgePlace {
        Bridge *bridge;
        char *path; /* that it was made for */
        uint64_t grace_usec;
        StoreItem item; /* while it has taken its part */
} BridgePlace;

struct Bridges {
        BridgeHost host;
        BridgePlace all[_BRIDGE_KIND_MAX];
        PcpPerfalloc *perfalloc; /* goes with the bridge to PCP */
};

/* The oldest that is granted, or else that is to be. */
static uid_t bridges_holder(void *userdata) {
        Service *s = userdata;
        const Hold *h = TAILQ_FIRST(&s->granted);
        LedgerHold *l;

        if (h)
                return h->uid;
        TAILQ_FOREACH (l, &s->ledger.holds, list)
                if (l->state == LEDGER_ACTIVE)
                        return container_of(l, Hold, ledger)->uid;
        return 0;
}

static void bridges_say(void *userdata, int priority, const char *text) {
        log_event(priority, priority <= LOG_WARNING ? LOG_ID_DEGRADED : NULL, text, NULL);
}

/* ---- one of each kind ---- */

/* The path that is configured, or else the usual one; *ret is NULL where there is none. */
static int path_choose(const BridgePath *path, const char *usual, char **ret) {
        const char *chosen = path->mode == BRIDGE_PATH ? path->path : usual;

        *ret = chosen && path->mode != BRIDGE_NO ? strdup(chosen) : NULL;
        return *ret || !chosen || path->mode == BRIDGE_NO ? 0 : -ENOMEM;
}

static int pcp_lock_choose(const BridgesConfig *c, char **ret, uint64_t *ret_grace_usec) {
        _cleanup_free_ char *usual = NULL;
        int r = pcp_lock_find(PCP_CONF_PATH, &usual);

        *ret_grace_usec = c->pcp_grace_usec;
        return r < 0 ? r : path_choose(&c->pcp, usual, ret);
}

static int pcp_lock_make(Service *s, const char *path, uint64_t grace_usec, Bridge **ret) {
        const BridgePast *past = s->bridges->host.past;
        int r = pcp_lock_new(&s->bridges->host, path, grace_usec, ret);

        if (r < 0)
                return r;
        /* without PCP there is no such directory */
        r = pcp_perfalloc_new(s, *ret, path, past ? &past->state : NULL, &s->bridges->perfalloc);
        if (r < 0 && r != -ENOENT)
                log_plain(LOG_WARNING, "PCP's own perfalloc is not noticed: %s: %s", path,
                          strerror(-r));
        return 0;
}

static int likwid_lock_choose(const BridgesConfig *c, char **ret, uint64_t *ret_grace_usec) {
        *ret_grace_usec = c->likwid_grace_usec;
        return path_choose(&c->likwid, LIKWID_LOCK_PATH, ret);
}

static int likwid_lock_make(Service *s, const char *path, uint64_t grace_usec, Bridge **ret) {
        const char *directory = getenv("RUNTIME_DIRECTORY");
        _cleanup_free_ char *saved = NULL;

        if (directory && asprintf(&saved, "%s/likwid-lock", directory) < 0)
                return -ENOMEM;
        return likwid_lock_new(&s->bridges->host, path, saved, grace_usec, ret);
}

static int nmi_watchdog_choose(const BridgesConfig *c, char **ret, uint64_t *ret_grace_usec) {
        *ret = c->nmi_watchdog ? strdup(NMI_WATCHDOG_PATH) : NULL;
        *ret_grace_usec = 0;
        return *ret || !c->nmi_watchdog ? 0 : -ENOMEM;
}

static int nmi_watchdog_make(Service *s, const char *path, uint64_t grace_usec, Bridge **ret) {
        return nmi_watchdog_new(&s->bridges->host, s->bus, path, ret);
}

static const struct {
        const char *name;

        /* What the configuration says now. The path is NULL where there is to be none. */
        int (*choose)(const BridgesConfig *c, char **ret_path, uint64_t *ret_grace_usec);
        int (*make)(Service *s, const char *path, uint64_t grace_usec, Bridge **ret);
} kinds[_BRIDGE_KIND_MAX] = {
        [BRIDGE_PCP_LOCK] = { "pcp-lock", pcp_lock_choose, pcp_lock_make },
        [BRIDGE_LIKWID_LOCK] = { "likwid-lock", likwid_lock_choose, likwid_lock_make },
        [BRIDGE_NMI_WATCHDOG] = { "nmi-watchdog", nmi_watchdog_choose, nmi_watchdog_make },
};

/* ---- what outlives this process ---- */

/* A bridge that has taken nothing is made from the configuration, like any. */
static void bridge_keep(Service *s, BridgeKind kind) {
        BridgePlace *place = &s->bridges->all[kind];
        const PcpPerfalloc *perfalloc = kind == BRIDGE_PCP_LOCK ? s->bridges->perfalloc : NULL;
        Pack *p;
        int fd;

        if (!place->bridge || (!place->bridge->taken && !pcp_perfalloc_is_kept(perfalloc))) {
                store_leave(&place->item);
                return;
        }
        if (!place->item.store)
                store_enter(s->store, &place->item, STORE_BRIDGE, kind);
        fd = bridge_fd(place->bridge);
        store_keep(&place->item, &fd, fd >= 0, STORE_SOON);
        p = store_pack(s->store);
        pack_string(p, "path", place->path);
        pack_u64(p, "grace_usec", place->grace_usec);
        bridge_pack(place->bridge, p);
        pcp_perfalloc_pack(perfalloc, p);
        store_save(&place->item, p);
}

static void bridges_changed(void *userdata, Bridge *b) {
        Service *s = userdata;

        /* one that is being made is kept when it is */
        for (BridgeKind kind = 0; kind < _BRIDGE_KIND_MAX; kind++)
                if (s->bridges->all[kind].bridge == b)
                        bridge_keep(s, kind);
}

void bridges_perfalloc_changed(Service *s) {
        if (s->bridges->all[BRIDGE_PCP_LOCK].bridge)
                bridge_keep(s, BRIDGE_PCP_LOCK);
}

/* ---- all of them ---- */

static int bridges_new(Service *s) {
        s->bridges = calloc(1, sizeof(Bridges));
        if (!s->bridges)
                return -ENOMEM;
        s->bridges->host = (BridgeHost){ .yielders = &s->roster,
                                         .event = s->event,
                                         .holder = bridges_holder,
                                         .say = bridges_say,
                                         .userdata = s,
                                         .changed = bridges_changed };
        return 0;
}

static void bridge_unmake(Service *s, BridgeKind kind) {
        BridgePlace *place = &s->bridges->all[kind];

        if (kind == BRIDGE_PCP_LOCK)
                s->bridges->perfalloc = pcp_perfalloc_free(s->bridges->perfalloc);
        place->bridge = bridge_free(place->bridge);
        store_leave(&place->item);
        free(place->path);
        place->path = NULL;
}

/* Takes the path over. */
static int bridge_make(Service *s, BridgeKind kind, char *path, uint64_t grace_usec) {
        BridgePlace *place = &s->bridges->all[kind];
        int r;

        place->path = path;
        place->grace_usec = grace_usec;
        r = path ? kinds[kind].make(s, path, grace_usec, &place->bridge) : 0;
        if (r >= 0)
                bridge_keep(s, kind);
        return r;
}

static int bridge_load(Service *s, BridgeKind kind) {
        const BridgePlace *place = &s->bridges->all[kind];
        const Bridge *b = place->bridge;
        _cleanup_free_ char *path = NULL;
        uint64_t grace_usec;
        int r = kinds[kind].choose(&s->config.bridges, &path, &grace_usec);

        if (r >= 0 && b && path && strcmp(place->path, path) == 0 &&
            place->grace_usec == grace_usec)
                return 0;
        bridge_unmake(s, kind);
        if (r >= 0)
                r = bridge_make(s, kind, TAKE_PTR(path), grace_usec);
        b = place->bridge;
        if (r < 0)
                log_plain(LOG_ERR, "Bridge %s: not made: %s", kinds[kind].name, strerror(-r));
        else
                log_plain(LOG_DEBUG, "Bridge %s: %s", kinds[kind].name,
                          !b                    ? "switched off, or nothing to bridge to"
                          : bridge_is_active(b) ? "active"
                                                : "inactive, the other side is not there");
        return r;
}

int bridges_load(Service *s) {
        int fault = s->bridges ? 0 : bridges_new(s);

        for (BridgeKind kind = 0; s->bridges && kind < _BRIDGE_KIND_MAX; kind++) {
                int r = bridge_load(s, kind);

                fault = fault < 0 ? fault : r;
        }
        return fault;
}

/* As the earlier run had it: what the configuration says now comes after that. */
static int bridge_restore(Service *s, StoreRecord *record) {
        BridgePast past = { .state = record->state, .fd = -1 };
        const char *path = unpack_string(&record->state, "path");
        char *copy;
        int r;

        if (record->id >= _BRIDGE_KIND_MAX || !path || s->bridges->all[record->id].bridge)
                return -EBADMSG;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        if (record->n_fds > 0)
                past.fd = TAKE_FD(record->fds[0]);
        s->bridges->host.past = &past;
        r = bridge_make(s, (BridgeKind) record->id, copy,
                        unpack_u64(&record->state, "grace_usec", 0));
        s->bridges->host.past = NULL;
        close_fd(past.fd);
        return r;
}

int bridges_restore(Service *s) {
        StoreRecord *record;
        size_t place = 0;
        int r = bridges_new(s);

        while (r >= 0 && (record = store_next(s->store, STORE_BRIDGE, &place))) {
                r = bridge_restore(s, record);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(LOG_ERR,
                                  "The state of a bridge, number %" PRIu64
                                  ", makes no sense and is dropped: %s",
                                  record->id, strerror(-r));
                r = 0;
        }
        return r < 0 ? r : bridges_load(s);
}

void bridges_forget_lock(Service *s, pid_t pid) {
        if (s->bridges)
                pcp_perfalloc_forget(s->bridges->perfalloc, pid);
}

void bridges_hold_changed(Service *s) {
        if (!s->bridges || s->ledger.n_active == 0)
                return;
        for (size_t i = 0; i < _BRIDGE_KIND_MAX; i++)
                if (s->bridges->all[i].bridge)
                        bridge_hand_over(s->bridges->all[i].bridge, bridges_holder(s));
}

int bridges_append_features(Service *s, sd_bus_message *reply) {
        int r = 0;

        for (size_t i = 0; s->bridges && i < _BRIDGE_KIND_MAX && r >= 0; i++) {
                const Bridge *b = s->bridges->all[i].bridge;

                if (b && bridge_is_active(b))
                        r = sd_bus_message_append_basic(reply, 's', kinds[i].name);
        }
        return r;
}

/* Where nothing outlives this process, neither does what the bridges have taken. */
void bridges_done(Service *s) {
        Bridges *all = s->bridges;
        bool survives = s->store && store_works(s->store);

        if (!all)
                return;
        if (survives) {
                pcp_perfalloc_drop(all->perfalloc);
                all->perfalloc = NULL;
        }
        for (BridgeKind kind = 0; kind < _BRIDGE_KIND_MAX; kind++) {
                BridgePlace *place = &all->all[kind];

                if (survives) {
                        bridge_drop(place->bridge);
                        free(place->path);
                } else
                        bridge_unmake(s, kind);
        }
        free(all);
        s->bridges = NULL;
}
