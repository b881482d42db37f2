/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Holds across restarts of the service.
 */

#include "service/hold/hold.h"

/* What is known of it now; before anybody is told. */
void hold_save(Hold *h);

/* The holds of an earlier run, in the ledger's order: active ones are active, waiting ones wait in
 * the same order. Nobody is told, nothing is measured before holds_go_on(). -ENOMEM. */
int holds_restore(Service *s);

/* After all who give way are there again: holds that were not granted yet are taken further. */
void holds_go_on(Service *s);

/* ---- from hold.c ---- */

int hold_name(Hold *h, uint64_t id);      /* its number and path; it can be found from now on */
int hold_watch_lease(Hold *h, int lease); /* takes it over on success */
void hold_enter_store(Hold *h);
int hold_enter_ledger_again(Hold *h); /* -ESTALE: it does not fit, which it did before */

/* Tells monitors what is demanded of them now, on account of cause (may be NULL). */
void holds_apply(Service *s, const Hold *cause, uint64_t deadline_usec);

/* It has never been, for anybody. Returns NULL. */
Hold *hold_discard(Hold *h);
DEFINE_CLEANUP(Hold *, hold_discard)
