/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The verbs of perfallocctl(1), one file each. Return values are as in ctl.h.
 */

#include "client/ctl/table.h"

int verb_status(Ctl *c, Refusal *why);

int verb_hold(Ctl *c, Refusal *why);
int verb_open(Ctl *c, Refusal *why);
int verb_run(Ctl *c, Refusal *why);
int verb_read(Ctl *c, Refusal *why);
int verb_watch(Ctl *c, Refusal *why);
int verb_attach(Ctl *c, Refusal *why);
int verb_detach(Ctl *c, Refusal *why);
int verb_adopt(Ctl *c, Refusal *why);
int verb_persist(Ctl *c, Refusal *why);
int verb_act(Ctl *c, Refusal *why); /* release, close, start, stop, reset */

int verb_list(Ctl *c, Refusal *why); /* holds, counters, samplers, pmus */
int verb_monitors(Ctl *c, Refusal *why);
int verb_probe(Ctl *c, Refusal *why);
int verb_users(Ctl *c, Refusal *why);
int verb_events(Ctl *c, Refusal *why);
int verb_encode(Ctl *c, Refusal *why);
int verb_metrics(Ctl *c, Refusal *why);
int verb_log(Ctl *c, Refusal *why);

/* Tables that several verbs show. */
extern const TableSpec holds_spec;
int monitors_table(Ctl *c, const Objects *all, Table **ret, Refusal *why);
