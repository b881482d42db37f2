/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * polkit's agent for terminals, pkttyagent(1), asks for the password where no desktop does. It is
 * started as systemd's tools start it: only for a user at a terminal who is not root, as a fallback
 * to the session's agent, and only while polkit may ask.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "client/signals.h"

typedef struct Agent Agent;
typedef int (*AgentReady)(void *userdata);

struct Agent {
        pid_t pid; /* 0: none */
        int ready; /* pkttyagent closes the other end when polkit knows it; so does its death */
        sd_event_source *source;
        AgentReady done;
        void *userdata;
};

#define AGENT_NULL ((Agent){ .ready = -1 })

/* 1: done will be called, once the agent is there or could not be started, which is no error. 0:
 * nobody here could answer an agent; done is not called. */
int agent_start(Agent *a, sd_event *event, const Signals *signals, AgentReady done, void *userdata);

/* Ends it, and waits until it has released the terminal. */
void agent_stop(Agent *a);
