/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A bridge with a real lock or file, a ledger and an event loop. */

#include "core/util.h"

#include <glib.h>

#include "yield/bridge.h"

#define HOLDER 4711u
#define GRACE  (20 * USEC_PER_MSEC)

typedef struct Stage {
        Ledger ledger;
        Yielders yielders;
        sd_event *event;
        BridgeHost host;
        uid_t holder;
        unsigned n_acknowledged;
        GPtrArray *said;
        LedgerHold hold;
        char *directory, *path, *saved;
        Bridge *bridge;
} Stage;

void stage_up(Stage *s, gconstpointer unused);
void stage_down(Stage *s, gconstpointer unused);
void stage_file(const Stage *s); /* an empty one at the path */

/* A hold with an empty scope: bridges yield to every hold. */
void stage_hold(Stage *s);
void stage_end(Stage *s);
void stage_run_until_yielded(Stage *s);

/* ---- a restart of the service ---- */

typedef struct Kept {
        Pack pack;
        BridgePast past;
} Kept;

void kept_clear(Kept *k);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Kept, kept_clear)

/* Stores the bridge's state, and drops it without a release. */
Kept stage_drop(Stage *s);
void stage_restore(Stage *s, Kept *k, void (*make)(Stage *s));

typedef struct StageTest {
        const char *name;
        void (*test)(Stage *s, gconstpointer unused);
} StageTest;

int stage_run_tests(const char *unit, const StageTest *tests, size_t n);
