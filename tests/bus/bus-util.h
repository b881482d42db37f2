/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the tests over the bus share. They run as root in tests/rig/fast.
 *
 * A Client is a connection with the credentials of some user; a test may have any number. An Actor
 * is a process of its own, for what is about processes: being killed, being counted, having no
 * privileges.
 *
 * What does not go as it should ends the test program, with the words of whoever refused.
 */

/* before GLib, which has MIN and MAX of its own */
#include "core/util.h"

#include <glib.h>
#include <perfalloc/dbus.h>
#include <poll.h>
#include <string.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#define MANAGER PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE
#define HOLD    PERFALLOC_HOLD_INTERFACE
#define COUNTER PERFALLOC_COUNTER_INTERFACE

/* The one scarce PMU that every machine has, as an option of Hold. */
#define BREAKPOINTS "pmus", "as", 1, "breakpoint"

#define AWAIT_SEC 20

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_message, sd_bus_message_unref)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(sd_bus_error, sd_bus_error_free)

/* Until the condition holds; never for a time. */
#define await(condition)                                                                           \
        do {                                                                                       \
                gint64 _end = g_get_monotonic_time() + AWAIT_SEC * G_USEC_PER_SEC;                 \
                while (!(condition)) {                                                             \
                        if (g_get_monotonic_time() > _end)                                         \
                                g_error("%s:%d: never came: %s", __FILE__, __LINE__, #condition);  \
                        g_usleep(1000);                                                            \
                }                                                                                  \
        } while (0)

/* ---- clients ---- */

typedef struct Client Client;

struct Client {
        sd_bus *bus;
        char *name;    /* on the bus */
        GQueue *inbox; /* messages that came while another one was awaited */
        char *refusal; /* words of the last client_refused() */
};

Client *client_new(const char *user);
void client_free(Client *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Client, client_free)

/* The user's number. */
uid_t user_id(const char *user);

/* Calls a method of the service and returns the reply, however long it takes. */
sd_bus_message *client_call(Client *c, const char *path, const char *interface, const char *member,
                            const char *types, ...);

/* Calls what has to be refused with this error; its words are in c->refusal afterwards. */
void client_refused(Client *c, const char *error, const char *path, const char *interface,
                    const char *member, const char *types, ...);

/* The same for a message that the caller has built. */
sd_bus_message *client_call_message(Client *c, sd_bus_message *m);
void client_refused_message(Client *c, const char *error, sd_bus_message *m);
sd_bus_message *client_message(Client *c, const char *path, const char *interface,
                               const char *member);

/* Sends a call and does not wait; client_receive() gets the answer, error or not. */
uint64_t client_send(Client *c, const char *path, const char *interface, const char *member,
                     const char *types, ...);
sd_bus_message *client_receive(Client *c, uint64_t cookie);

/* Whether the answer is there already. */
bool client_has_answer(Client *c, uint64_t cookie);

/* The next message of any kind; NULL when none came within the time. */
sd_bus_message *client_next(Client *c, uint64_t usec);

/* Signals of the service come to the client's inbox from now on. */
void client_watch(Client *c);

char *client_get(Client *c, const char *path, const char *interface, const char *property);
uint64_t client_get_number(Client *c, const char *path, const char *interface, const char *property,
                           char type);
bool client_reads(Client *c, const char *path, const char *interface, const char *property,
                  const char *value);
bool client_finds(Client *c, const char *path, const char *interface);

/* Reads, at the message's position, a{sv} or a{sa{sv}} and returns the value of a property that is
 * a string; NULL: it is not there. */
char *properties_read(sd_bus_message *m, const char *property);
char *object_read(sd_bus_message *m, const char *interface, const char *property);

/* How many objects of the kind ("hold", "counter") there are. */
unsigned client_count(Client *c, const char *kind);

/* ---- holds ---- */

/* Takes a hold with the options (types is "a{sv}"); the lease is the caller's to close. */
char *hold_take(Client *c, int *ret_lease, const char *types, ...);
char *hold_take_unattended(Client *c, uint64_t lifetime_usec, const char *types, ...);

/* Wait. */
bool hold_wait(Client *c, const char *path);
void hold_release(Client *c, const char *path);
bool hold_is(Client *c, const char *path, const char *state);

/* Whether one of the hold's obstacles has the pid. */
bool hold_names(Client *c, const char *path, pid_t pid);

/* ---- counters ---- */

typedef struct Measured {
        uint64_t value, enabled, running;
        char *quality;
} Measured;

void measured_clear(Measured *m);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Measured, measured_clear)

/* Something to write to, for breakpoints on it. */
extern volatile uint64_t watched[8];
void watched_write(size_t i, unsigned n);

/* "mem:ADDRESS/8:w" of watched[i]. */
char *watched_event(size_t i);

/* Opens one counter with the options (types is "a{sv}"). */
char *counter_open(Client *c, const char *event, const char *types, ...);
Measured counter_read(Client *c, const char *path);
uint64_t counter_value(Client *c, const char *path);
void counter_do(Client *c, const char *path, const char *method);
bool counter_is(Client *c, const char *path, const char *state);

/* The same event on all CPUs, as a monitor of this priority; event i of watched. */
char *monitor_open(Client *c, size_t i, uint32_t priority);

/* perf_event_open(2), without the service: the descriptor or -errno. pid -1 and a CPU, or 0 and -1.
 */
int breakpoint_open(pid_t pid, int cpu);

unsigned n_cpus(void);

/* ---- processes ---- */

typedef struct Actor Actor;

struct Actor {
        pid_t pid;
        int fd; /* to the actor */
};

/* Runs play() as the user in a process of its own and without a descriptor of ours; its value is
 * the exit status. In there fd is the other end. */
Actor *actor_new(const char *user, int (*play)(int fd, const void *data), const void *data);
char actor_hear(Actor *a);            /* waits for one byte from it */
void actor_tell(Actor *a, char what); /* sends one */
int actor_join(Actor *a);             /* hangs up, waits for its end; the exit status */
void actor_free(Actor *a);            /* kills it */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Actor, actor_free)

/* The actor's side. */
void act_say(int fd, char what);
char act_hear(int fd); /* 0 when the other side has hung up */

/* ---- the rig ---- */

/* Runs a command of the rig; input may be NULL. */
void rig(const char *command, const char *input);
void rig_configure(const char *text); /* perfallocd.conf; starts the service anew */

pid_t service_pid(void);
unsigned service_descriptors(void); /* that it has open */

/* Bytes that are its own; 0 where a sanitizer keeps what was freed. */
uint64_t service_memory(void);
