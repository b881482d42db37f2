/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The polkit actions, and the one table of the actions that each method may need.
 *
 * What is not in the table is refused. Which actions of its row a call needs depends on its
 * arguments: an exclusive hold needs another action than a shared one. The handler names them, and
 * auth.c refuses any that are not in the row.
 */

#include "core/util.h"

typedef struct ActionInfo ActionInfo;
typedef struct MethodActions MethodActions;

/* Bits, because a method needs a set of them. */
typedef enum Action {
        ACTION_NONE = 0, /* for everybody */
        ACTION_HOLD = 1 << 0,
        ACTION_HOLD_EXCLUSIVE = 1 << 1,
        ACTION_HOLD_UNATTENDED = 1 << 2,
        ACTION_COUNT_OWN = 1 << 3,
        ACTION_SAMPLE_OWN = 1 << 4,
        ACTION_COUNT_KERNEL = 1 << 5,
        ACTION_COUNT_OTHER = 1 << 6,
        ACTION_COUNT_SYSTEM = 1 << 7,
        ACTION_COUNT_RAW = 1 << 8,
        ACTION_PERSIST = 1 << 9,
        ACTION_MONITOR = 1 << 10,
        ACTION_MANAGE = 1 << 11,
        _ACTION_ALL = (1 << 12) - 1,
} Action;

#define ACTIONS_BEYOND_OWN                                                                         \
        (ACTION_COUNT_KERNEL | ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM | ACTION_COUNT_RAW)

/* What a method may need that answers with values, and one that answers with descriptors. */
#define ACTIONS_COUNT  (ACTION_COUNT_OWN | ACTIONS_BEYOND_OWN)
#define ACTIONS_SAMPLE (ACTION_SAMPLE_OWN | ACTIONS_BEYOND_OWN)

/* polkit's yes to one of these may be cached (auth-cache.h), no other. */
#define ACTIONS_KEPT (ACTION_COUNT_OWN | ACTION_COUNT_KERNEL | ACTION_COUNT_SYSTEM)

struct ActionInfo {
        Action action;
        const char *name; /* polkit's: "org.perfalloc1.hold" */
        const char *what; /* for a refusal: "reserve counters" */
        const char *less; /* what can be done without this action; NULL: nothing similar */
};

struct MethodActions {
        const char *interface;
        const char *member;
        unsigned actions;
};

extern const ActionInfo action_table[];
extern const size_t n_action_table;
extern const MethodActions method_table[];
extern const size_t n_method_table;

/* The row of one action bit; NULL for anything else. */
const ActionInfo *action_info(unsigned action);

/* polkit's name of one action bit: "org.perfalloc1.hold"; NULL for anything else. */
const char *action_name(Action action);

/* The row of a method; NULL if there is none. interface and member may be NULL. */
const MethodActions *method_actions(const char *interface, const char *member);
