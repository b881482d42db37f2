/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bridges.h"

#include <stdio.h>
#include <string.h>

#include "service/hold/hold.h"
#include "service/monitor/pcp-perfalloc.h"
#include "service/store/store.h"
#include "service/util/log.h"
#include "yield/likwid-lock.h"
#include "yield/nmi-watchdog.h"
#include "yield/pcp-lock.h"

static void bridge_keep(Bridges *all, BridgeKind kind);

/* One bridge of each kind; without a path there is none. */
typedef struct BridgePlace {
        Bridges *all;
        Bridge *bridge;
        char *path; /* of the bridge */
        uint64_t grace_usec;
        StoreItem item; /* while the bridge has taken something */
} BridgePlace;

struct Bridges {
        Context *context;
        Holds *holds;
        BridgeHost host;
        BridgePlace all[_BRIDGE_KIND_MAX];
        PcpPerfalloc *perfalloc; /* belongs to the bridge to PCP */
};

/* The user of the oldest granted hold, or else of the oldest pending one. */
static uid_t bridges_holder(void *userdata) {
        Bridges *all = userdata;
        const Hold *h = TAILQ_FIRST(&all->holds->granted);
        LedgerHold *l;

        if (h)
                return h->object.uid;
        TAILQ_FOREACH (l, &all->context->ledger.holds, list)
                if (l->state == LEDGER_ACTIVE)
                        return hold_of_ledger(l)->object.uid;
        return 0;
}

static void bridges_say(void *userdata, int priority, const char *text) {
        log_event(priority, priority <= LOG_WARNING ? LOG_ID_DEGRADED : NULL, text, NULL);
}

/* ---- one of each kind ---- */

/* The configured path, or else the usual one. *ret is NULL if there is none. */
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

/* A process took or released PCP's lock, or the hold on its behalf has changed. */
static void bridges_perfalloc_changed(void *userdata) {
        Bridges *all = userdata;

        if (all->all[BRIDGE_PCP_LOCK].bridge)
                bridge_keep(all, BRIDGE_PCP_LOCK);
}

static int pcp_lock_make(Bridges *all, const char *path, uint64_t grace_usec, Bridge **ret) {
        const BridgePast *past = all->host.past;
        int r = pcp_lock_new(&all->host, path, grace_usec, ret);

        if (r < 0)
                return r;
        /* without PCP there is no such directory */
        r = pcp_perfalloc_new(all->holds, *ret, path, bridges_perfalloc_changed, all,
                              past ? &past->state : NULL, &all->perfalloc);
        if (r < 0 && r != -ENOENT)
                log_plain(LOG_WARNING, "PCP's own perfalloc is not noticed: %s: %s", path,
                          strerror(-r));
        return 0;
}

static int likwid_lock_choose(const BridgesConfig *c, char **ret, uint64_t *ret_grace_usec) {
        *ret_grace_usec = c->likwid_grace_usec;
        return path_choose(&c->likwid, LIKWID_LOCK_PATH, ret);
}

static int likwid_lock_make(Bridges *all, const char *path, uint64_t grace_usec, Bridge **ret) {
        const char *directory = getenv("RUNTIME_DIRECTORY");
        _cleanup_free_ char *saved = NULL;

        if (directory && asprintf(&saved, "%s/likwid-lock", directory) < 0)
                return -ENOMEM;
        return likwid_lock_new(&all->host, path, saved, grace_usec, ret);
}

static int nmi_watchdog_choose(const BridgesConfig *c, char **ret, uint64_t *ret_grace_usec) {
        *ret = c->nmi_watchdog ? strdup(NMI_WATCHDOG_PATH) : NULL;
        *ret_grace_usec = 0;
        return *ret || !c->nmi_watchdog ? 0 : -ENOMEM;
}

static int nmi_watchdog_make(Bridges *all, const char *path, uint64_t grace_usec, Bridge **ret) {
        return nmi_watchdog_new(&all->host, all->context->bus, path, ret);
}

static const struct {
        const char *name;

        /* What the configuration says now. The path is NULL if there is to be no bridge. */
        int (*choose)(const BridgesConfig *c, char **ret_path, uint64_t *ret_grace_usec);
        int (*make)(Bridges *all, const char *path, uint64_t grace_usec, Bridge **ret);
} kinds[_BRIDGE_KIND_MAX] = {
        [BRIDGE_PCP_LOCK] = { "pcp-lock", pcp_lock_choose, pcp_lock_make },
        [BRIDGE_LIKWID_LOCK] = { "likwid-lock", likwid_lock_choose, likwid_lock_make },
        [BRIDGE_NMI_WATCHDOG] = { "nmi-watchdog", nmi_watchdog_choose, nmi_watchdog_make },
};

/* ---- what outlives this process ---- */

static void bridge_keep_again(StoreItem *item);

/* Stores a bridge that has taken something. Any other is created from the configuration alone. */
static void bridge_keep(Bridges *all, BridgeKind kind) {
        BridgePlace *place = &all->all[kind];
        const PcpPerfalloc *perfalloc = kind == BRIDGE_PCP_LOCK ? all->perfalloc : NULL;
        Pack *p;
        int fd;

        if (!place->bridge || (!place->bridge->taken && !pcp_perfalloc_is_kept(perfalloc))) {
                store_leave(&place->item);
                return;
        }
        if (!place->item.store)
                store_enter(all->context->store, &place->item, STORE_BRIDGE, kind,
                            bridge_keep_again);
        fd = bridge_fd(place->bridge);
        store_keep(&place->item, &fd, fd >= 0, STORE_SOON);
        p = store_pack(all->context->store);
        pack_string(p, "path", place->path);
        pack_u64(p, "grace_usec", place->grace_usec);
        bridge_pack(place->bridge, p);
        pcp_perfalloc_pack(perfalloc, p);
        store_save(&place->item, p);
}

static void bridge_keep_again(StoreItem *item) {
        BridgePlace *place = container_of(item, BridgePlace, item);

        bridge_keep(place->all, (BridgeKind) item->id);
}

static void bridges_changed(void *userdata, Bridge *b) {
        Bridges *all = userdata;

        /* a bridge that is still being created is stored later */
        for (BridgeKind kind = 0; kind < _BRIDGE_KIND_MAX; kind++)
                if (all->all[kind].bridge == b)
                        bridge_keep(all, kind);
}

/* ---- all of them ---- */

int bridges_new(Context *context, Holds *holds, Bridges **ret) {
        Bridges *all = calloc(1, sizeof(Bridges));

        if (!all)
                return -ENOMEM;
        all->context = context;
        all->holds = holds;
        for (BridgeKind kind = 0; kind < _BRIDGE_KIND_MAX; kind++)
                all->all[kind].all = all;
        all->host = (BridgeHost){ .yielders = &context->yielders,
                                  .event = context->event,
                                  .holder = bridges_holder,
                                  .say = bridges_say,
                                  .userdata = all,
                                  .changed = bridges_changed };
        *ret = all;
        return 0;
}

static void bridge_unmake(Bridges *all, BridgeKind kind) {
        BridgePlace *place = &all->all[kind];

        if (kind == BRIDGE_PCP_LOCK)
                all->perfalloc = pcp_perfalloc_free(all->perfalloc);
        place->bridge = bridge_free(place->bridge);
        store_leave(&place->item);
        free(place->path);
        place->path = NULL;
}

/* Takes over path. */
static int bridge_make(Bridges *all, BridgeKind kind, char *path, uint64_t grace_usec) {
        BridgePlace *place = &all->all[kind];
        int r;

        place->path = path;
        place->grace_usec = grace_usec;
        r = path ? kinds[kind].make(all, path, grace_usec, &place->bridge) : 0;
        if (r >= 0)
                bridge_keep(all, kind);
        return r;
}

static int bridge_load(Bridges *all, BridgeKind kind) {
        const BridgePlace *place = &all->all[kind];
        const Bridge *b = place->bridge;
        _cleanup_free_ char *path = NULL;
        uint64_t grace_usec;
        int r = kinds[kind].choose(&all->context->config.bridges, &path, &grace_usec);

        if (r >= 0 && b && path && strcmp(place->path, path) == 0 &&
            place->grace_usec == grace_usec)
                return 0;
        bridge_unmake(all, kind);
        if (r >= 0)
                r = bridge_make(all, kind, TAKE_PTR(path), grace_usec);
        b = place->bridge;
        if (r < 0)
                log_plain(LOG_ERR, "Bridge %s: not started: %s", kinds[kind].name, strerror(-r));
        else
                log_plain(LOG_DEBUG, "Bridge %s: %s", kinds[kind].name,
                          !b                    ? "disabled, or the other software is not present"
                          : bridge_is_active(b) ? "active"
                                                : "inactive, the other side is not there");
        return r;
}

int bridges_load(Bridges *all) {
        int fault = 0;

        for (BridgeKind kind = 0; kind < _BRIDGE_KIND_MAX; kind++) {
                int r = bridge_load(all, kind);

                fault = fault < 0 ? fault : r;
        }
        return fault;
}

/* Restores the bridge as the earlier run had it. The present configuration applies afterwards. */
static int bridge_restore(void *userdata, StoreRecord *record) {
        Bridges *all = userdata;
        BridgePast past = { .state = record->state, .fd = -1 };
        const char *path = unpack_string(&record->state, "path");
        char *copy;
        int r;

        if (record->id >= _BRIDGE_KIND_MAX || !path || all->all[record->id].bridge)
                return -EBADMSG;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        if (record->n_fds > 0)
                past.fd = TAKE_FD(record->fds[0]);
        all->host.past = &past;
        r = bridge_make(all, (BridgeKind) record->id, copy,
                        unpack_u64(&record->state, "grace_usec", 0));
        all->host.past = NULL;
        close_fd(past.fd);
        return r;
}

int bridges_restore(Bridges *all) {
        int r = store_restore_each(all->context->store, STORE_BRIDGE, "Bridge", bridge_restore,
                                   all);

        return r < 0 ? r : bridges_load(all);
}

void bridges_forget_lock(Bridges *all, pid_t pid) {
        pcp_perfalloc_forget(all->perfalloc, pid);
}

void bridges_hold_changed(Bridges *all) {
        if (all->context->ledger.n_active == 0)
                return;
        for (size_t i = 0; i < _BRIDGE_KIND_MAX; i++)
                if (all->all[i].bridge)
                        bridge_hand_over(all->all[i].bridge, bridges_holder(all));
}

int bridges_append_features(Bridges *all, sd_bus_message *reply) {
        int r = 0;

        for (size_t i = 0; i < _BRIDGE_KIND_MAX && r >= 0; i++) {
                const Bridge *b = all->all[i].bridge;

                if (b && bridge_is_active(b))
                        r = sd_bus_message_append_basic(reply, 's', kinds[i].name);
        }
        return r;
}

Bridges *bridges_free(Bridges *all, bool ends) {
        bool survives;

        if (!all)
                return NULL;
        survives = !ends && all->context->store && store_works(all->context->store);
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
                        bridge_unmake(all, kind);
        }
        free(all);
        return NULL;
}
