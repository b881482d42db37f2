/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bridges.h"

#include <stdio.h>
#include <string.h>

#include "service/hold.h"
#include "service/log.h"
#include "service/pcp-perfalloc.h"
#include "yield/likwid-lock.h"
#include "yield/nmi-watchdog.h"
#include "yield/pcp-lock.h"

struct Bridges {
        BridgeHost host;
        BridgesConfig config; /* that they were made from */
        Bridge *all[_BRIDGE_KIND_MAX];
        PcpPerfalloc *perfalloc; /* goes with the bridge to PCP */
};

static uid_t bridges_holder(void *userdata) {
        Service *s = userdata;
        const Hold *h = hold_find(s, holds_current(s));

        return h ? h->uid : 0;
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

static int pcp_lock_make(Service *s, const BridgesConfig *c, Bridge **ret) {
        _cleanup_free_ char *usual = NULL, *path = NULL;
        int r = pcp_lock_find(PCP_CONF_PATH, &usual);

        if (r >= 0)
                r = path_choose(&c->pcp, usual, &path);
        if (r < 0 || !path)
                return r;
        r = pcp_lock_new(&s->bridges->host, path, c->pcp_grace_usec, ret);
        if (r < 0)
                return r;
        /* without PCP there is no such directory */
        r = pcp_perfalloc_new(s, *ret, path, &s->bridges->perfalloc);
        if (r < 0 && r != -ENOENT)
                log_plain(LOG_WARNING, "PCP's own perfalloc is not noticed: %s: %s", path,
                          strerror(-r));
        return 0;
}

static int likwid_lock_make(Service *s, const BridgesConfig *c, Bridge **ret) {
        const char *directory = getenv("RUNTIME_DIRECTORY");
        _cleanup_free_ char *path = NULL, *saved = NULL;
        int r = path_choose(&c->likwid, LIKWID_LOCK_PATH, &path);

        if (r < 0 || !path)
                return r;
        if (directory && asprintf(&saved, "%s/likwid-lock", directory) < 0)
                return -ENOMEM;
        return likwid_lock_new(&s->bridges->host, path, saved, c->likwid_grace_usec, ret);
}

static int nmi_watchdog_make(Service *s, const BridgesConfig *c, Bridge **ret) {
        return c->nmi_watchdog ? nmi_watchdog_new(&s->bridges->host, s->bus, NMI_WATCHDOG_PATH, ret)
                               : 0;
}

static bool path_equal(const BridgePath *a, const BridgePath *b) {
        return a->mode == b->mode && strcmp(a->path, b->path) == 0;
}

static bool pcp_lock_same(const BridgesConfig *a, const BridgesConfig *b) {
        /* "auto" depends on a file of PCP's, which may have changed too */
        return path_equal(&a->pcp, &b->pcp) && a->pcp.mode != BRIDGE_AUTO &&
               a->pcp_grace_usec == b->pcp_grace_usec;
}

static bool likwid_lock_same(const BridgesConfig *a, const BridgesConfig *b) {
        return path_equal(&a->likwid, &b->likwid) && a->likwid_grace_usec == b->likwid_grace_usec;
}

static bool nmi_watchdog_same(const BridgesConfig *a, const BridgesConfig *b) {
        return a->nmi_watchdog == b->nmi_watchdog;
}

static const struct {
        const char *name;
        int (*make)(Service *s, const BridgesConfig *c, Bridge **ret);
        bool (*same)(const BridgesConfig *a, const BridgesConfig *b);
} kinds[_BRIDGE_KIND_MAX] = {
        [BRIDGE_PCP_LOCK] = { "pcp-lock", pcp_lock_make, pcp_lock_same },
        [BRIDGE_LIKWID_LOCK] = { "likwid-lock", likwid_lock_make, likwid_lock_same },
        [BRIDGE_NMI_WATCHDOG] = { "nmi-watchdog", nmi_watchdog_make, nmi_watchdog_same },
};

/* ---- all of them ---- */

static int bridges_new(Service *s) {
        s->bridges = calloc(1, sizeof(Bridges));
        if (!s->bridges)
                return -ENOMEM;
        s->bridges->host = (BridgeHost){ .roster = &s->roster,
                                         .event = s->event,
                                         .holder = bridges_holder,
                                         .say = bridges_say,
                                         .userdata = s };
        return 0;
}

int bridges_load(Service *s) {
        bool first = !s->bridges;
        int fault = first ? bridges_new(s) : 0;
        Bridges *all = s->bridges;

        if (fault < 0)
                return fault;
        for (size_t i = 0; i < _BRIDGE_KIND_MAX; i++) {
                Bridge **b = &all->all[i];
                int r;

                if (!first && kinds[i].same(&all->config, &s->config.bridges))
                        continue;
                if (i == BRIDGE_PCP_LOCK)
                        all->perfalloc = pcp_perfalloc_free(all->perfalloc);
                *b = bridge_free(*b);
                r = kinds[i].make(s, &s->config.bridges, b);
                if (r < 0) {
                        log_plain(LOG_ERR, "Bridge %s: not made: %s", kinds[i].name, strerror(-r));
                        fault = r;
                } else
                        log_plain(LOG_DEBUG, "Bridge %s: %s", kinds[i].name,
                                  !*b                    ? "switched off, or nothing to bridge to"
                                  : bridge_is_active(*b) ? "active"
                                                         : "inactive, the other side is not there");
        }
        all->config = s->config.bridges;
        return fault;
}

void bridges_forget_lock(Service *s, pid_t pid) {
        if (s->bridges)
                pcp_perfalloc_forget(s->bridges->perfalloc, pid);
}

void bridges_hold_changed(Service *s) {
        if (!s->bridges || s->ledger.n_active == 0)
                return;
        for (size_t i = 0; i < _BRIDGE_KIND_MAX; i++)
                if (s->bridges->all[i])
                        bridge_hand_over(s->bridges->all[i], bridges_holder(s));
}

int bridges_append_features(Service *s, sd_bus_message *reply) {
        int r = 0;

        for (size_t i = 0; s->bridges && i < _BRIDGE_KIND_MAX && r >= 0; i++) {
                const Bridge *b = s->bridges->all[i];

                if (b && bridge_is_active(b))
                        r = sd_bus_message_append_basic(reply, 's', kinds[i].name);
        }
        return r;
}

void bridges_done(Service *s) {
        if (!s->bridges)
                return;
        pcp_perfalloc_free(s->bridges->perfalloc);
        for (size_t i = 0; i < _BRIDGE_KIND_MAX; i++)
                bridge_free(s->bridges->all[i]);
        free(s->bridges);
        s->bridges = NULL;
}
