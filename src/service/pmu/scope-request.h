/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What counters a client means: the options `pmus` and `cpus` of holds and monitors, checked
 * against this machine.
 */

#include "core/pack.h"
#include "core/scope.h"
#include "perf/pmu/pmu.h"
#include "service/auth/asked.h"

typedef struct ScopeRequest ScopeRequest;

struct ScopeRequest {
        Scope scope;
        char **pmus; /* names, as properties show them */
        char *cpus;  /* list, likewise */
};

#define SCOPE_REQUEST_NULL ((ScopeRequest){})

/* names NULL: every core PMU. cpus NULL: all, those that come online later too.
 * REFUSAL_INVALID_ARGS names the option and what is wrong with it. */
int scope_request_read(const PmuTable *pmus, char *const *names, const char *cpus,
                       ScopeRequest *ret, Refusal *why);
void scope_request_done(ScopeRequest *q);

/* PMUs and CPUs, for polkit. */
void scope_request_ask(const ScopeRequest *q, Asked *ret);

/* For the restart of the service. What this machine has not any more is left out. */
void scope_request_pack(Pack *p, const ScopeRequest *q, const PmuTable *pmus);
int scope_request_unpack(const Unpack *u, const PmuTable *pmus, ScopeRequest *ret);
