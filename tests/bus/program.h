/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of the broker: a program that knows nothing of the service, in a process of its own,
 * whose perf_event_open(2) a seccomp filter forwards.
 */

#include "bus-util.h"
#include "event-util.h"

typedef struct Program Program;
typedef struct ProgramCall ProgramCall;

/* The arguments of perf_event_open(2), in memory that test and program share. */
struct ProgramCall {
        union {
                PerfAttr attr;
                char bytes[8192]; /* the attr of a newer kernel */
        };
        const void *where; /* NULL: attr above; else another address of the program's */
        int pid, cpu, group;
        unsigned long flags;
};

struct Program {
        Actor *actor;
        int listener;
        struct ProgramShared *shared;
};

typedef enum ProgramKind {
        PROGRAM_PLAIN,
        PROGRAM_NATIVE,     /* without a filter */
        PROGRAM_PRIVILEGES, /* without no_new_privs */
        PROGRAM_FORWARDS,   /* the filter forwards getpgid(2) too */
        PROGRAM_LOST,       /* every system call of another architecture too */
        PROGRAM_NAMESPACE,  /* in a user namespace of its own */
        PROGRAM_PID_NAMESPACE,
        PROGRAM_SLOW,   /* where 0x10000 is, memory never answers (userfaultfd(2)) */
        PROGRAM_MAPPED, /* as --paranoid runs it: in a user namespace, and without capabilities */
        PROGRAM_NESTED, /* the same, in another one */
        PROGRAM_LENT,   /* the same, in one that root has made */
} ProgramKind;

#define PROGRAM_SLOW_ADDRESS ((const void *) 0x10000)

/* The program waits for calls; nobody has its listener yet but the test. */
Program *program_new(const char *user, ProgramKind kind);
void program_free(Program *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Program, program_free)

/* Calls Broker for it. allow is a list with spaces. */
void program_broker(Program *p, Client *c, const char *allow);

/* The same, with a prover (broker/prover.h), whose end it returns. */
int program_broker_proving(Program *p, Client *c, const char *allow);
pid_t prover_hear(int prover);                     /* the process that is asked about */
bool prover_say(int prover, pid_t pid, int proof); /* false: the broker has ended */

/* The program makes the call: a descriptor of its own, or -errno. */
int program_open(Program *p, ProgramCall call);

/* The size in the attr of the last call. */
uint32_t program_attr_size(const Program *p);

/* The same, without waiting for the result. */
void program_open_begin(Program *p, ProgramCall call);
int program_open_end(Program *p);
bool program_waits(Program *p); /* in the kernel, for the answer */

/* The same by another thread, and by a child, which then ends. */
int program_open_in_thread(Program *p, ProgramCall call);
int program_open_in_child(Program *p, ProgramCall call);

/* The same of a child that waits meanwhile: 0 or -errno. */
int program_open_of_child(Program *p, ProgramCall call);

/* Opens it n times, while another thread changes exclude_kernel all the time; how many of the
 * events that it got have counted something in the kernel. */
int program_open_while_changing(Program *p, ProgramCall call, int n);

/* By a child in a user and a PID namespace of its own: 0 or -errno. */
int program_open_in_namespaces(Program *p, ProgramCall call);

/* The program goes into a Landlock domain. False: the kernel has none. */
bool program_landlock(Program *p);

/* A system call of the i386 ABI with the arguments of perf_event_open(2); as the kernel returns it.
 * -ENOSYS: not on this machine. */
long program_call_i386(Program *p, int number, ProgramCall call);

/* Does not wait: the program opens the event, and another thread of it executes the file at path
 * while the first one waits for the answer. */
void program_open_and_exec(Program *p, ProgramCall call, const char *path);
void program_exec(Program *p, const char *path); /* at once */

uint64_t program_read(Program *p, int fd);
int program_flags(Program *p, int fd); /* fcntl(2), F_GETFD */
bool program_getpgid(Program *p);
int program_open_cgroup(Program *p);

/* An event of the kernel's, which the kernel itself lets no user have at paranoid 2. */
PerfAttr kernel_attr(uint64_t config);

/* The workers that there are. */
unsigned workers_list(pid_t *ret, unsigned max);
