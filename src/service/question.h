/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What polkit is asked for one call: one check after the other, until everything is granted or one
 * is refused. Then the call's message goes back to its handler.
 */

#include "core/refusal.h"
#include "service/check.h"
#include "service/consent.h"

typedef struct Question Question;
typedef struct Questions Questions;

typedef enum QuestionState {
        QUESTION_NEW,
        QUESTION_ASKING,   /* polkit is being asked */
        QUESTION_STUCK,    /* polkit has answered; there was no room for the message in the queue */
        QUESTION_ANSWERED, /* the message is in the queue again */
        QUESTION_RUNNING,  /* its handler runs again, or has just done so */
        _QUESTION_STATE_MAX,
} QuestionState;

/* One call and what polkit says to it, one check after the other. */
struct Question {
        Questions *questions;
        TAILQ_ENTRY(Question) entry;
        QuestionState state;
        Peer *peer;
        sd_bus_message *m;
        uint64_t since_usec; /* CLOCK_MONOTONIC */
        Details details;
        unsigned todo; /* actions to be asked for, the lowest bit is next */
        bool quiet;    /* never a prompt, and a no is no refusal */
        bool prompt;   /* the check under way may prompt */
        Check *check;  /* the one under way */
        unsigned granted;
        unsigned denied;  /* quietly */
        unsigned refused; /* one bit, with its words in why */
        Refusal why;
        int fault;
};

TAILQ_HEAD(QuestionList, Question);

struct Questions {
        sd_bus *bus;
        Checks checks;
        Consents consents;
        void *by_message; /* tree of Question */
        struct QuestionList lists[_QUESTION_STATE_MAX];
        size_t n[_QUESTION_STATE_MAX];
        sd_event_source *again; /* those that are stuck are tried again */
};

/* The bus has to be attached to an event loop. */
int questions_init(Questions *qs, sd_bus *bus);
void questions_done(Questions *qs); /* fine for one that is all zero */

Question *question_find(Questions *qs, sd_bus_message *m);
int question_new(Questions *qs, Peer *peer, sd_bus_message *m, Question **ret);
void question_free(Question *q); /* a check that is under way is cancelled */
void question_set_state(Question *q, QuestionState state);

/* Has polkit asked for the actions: 0, the message will come back. On failure q is freed:
 * REFUSAL_LIMITS_EXCEEDED when the user has too many in line, -ENOMEM. */
int question_start(Question *q, unsigned actions, const Details *details, bool quiet, Refusal *why);
