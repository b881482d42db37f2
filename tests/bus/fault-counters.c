/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault-operations.h"

#include <sys/syscall.h>

void run_open_cpu(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s",
                 "cpu", "name", "s", "one");
        calm();
        if (!s->failed)
                settle(counter_is(root, s->path, "counting"));
}

static void run_open_cpus(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s",
                 "cpu", "cpus", "s", "0-0");
}

static void run_open_group(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 3, "cpu-clock", "task-clock",
                 "page-faults", 2, "scope", "s", "cpu", "group", "b", 1);
}

static void run_open_three(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 3, "cpu-clock:u", "task-clock:u",
                 "page-faults:u", 0);
}

static int play_target(int fd, const void *data) {
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

static int play_family(int fd, const void *data) {
        pid_t child = fork();

        if (child == 0) {
                (void) act_hear(fd);
                return 0;
        }
        act_say(fd, 'o');
        (void) act_hear(fd);
        return 0;
}

void prepare_target(Scene *s) {
        s->target = actor_new("alice", play_target, NULL);
        g_assert_cmpint(actor_hear(s->target), ==, 'o');
}

void prepare_family(Scene *s) {
        s->target = actor_new("alice", play_family, NULL);
        g_assert_cmpint(actor_hear(s->target), ==, 'o');
}

static void run_open_process(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 2, "task-clock:u", "page-faults:u", 2,
                 "procfd", "h", client_proof(s->client, s->target->pid), "group", "b", 1);
}

static void run_open_family(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "task-clock:u", 2, "pid", "u",
                 (uint32_t) s->target->pid, "descendants", "b", 1);
}

void run_open_pidfd(Scene *s) {
        int fd = (int) syscall(SYS_pidfd_open, s->target->pid, 0);

        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "task-clock:u", 1, "pidfd", "h",
                 fd);
        close_fd(fd);
}

static void run_open_persistent(Scene *s) {
        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s",
                 "cpu", "persistent", "b", 1);
}

static void run_open_monitor(Scene *s) {
        g_autofree char *event = watched_event(1);

        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 1, event, 3, "scope", "s", "cpu",
                 "role", "s", "monitor", "priority", "u", 3);
}

static void prepare_monitor_held(Scene *s) {
        s->other = client_new("root");
        s->second = hold_take(s->other, &s->fd2, "a{sv}", 2, BREAKPOINTS, "best_effort", "b", 1);
        (void) hold_wait(s->other, s->second);
}

static void after_monitor_held(Scene *s) {
        settle(counter_is(s->client, s->path, "yielded"));
        s->fd2 = close_fd(s->fd2);
        settle(counter_is(s->client, s->path, "counting"));
}

static void run_open_breakpoints(Scene *s) {
        g_autofree char *one = watched_event(1), *two = watched_event(2);

        TRY_PATH(s, "ao", MANAGER, "OpenCounters", "asa{sv}", 2, one, two, 2, "scope", "s", "cpu",
                 "group", "b", 1);
}

static void close_counter(Scene *s) {
        counter_do(s->client, s->path, "Close");
}

void prepare_counter(Scene *s) {
        prepare_target(s);
        s->path = counter_open(s->client, "task-clock:u", "a{sv}", 1, "pid", "u",
                               (uint32_t) s->target->pid);
}

static void run_read(Scene *s) {
        TRY(s, s->path, COUNTER, "Read", NULL);
        TRY(s, s->path, COUNTER, "ReadEach", NULL);
        TRY(s, s->path, COUNTER, "ReadParts", NULL);
        TRY(s, MANAGER, "ReadCounters", "ao", 1, s->path);
}

static void run_commands(Scene *s) {
        TRY(s, s->path, COUNTER, "Stop", NULL);
        TRY(s, s->path, COUNTER, "Reset", NULL);
        TRY(s, s->path, COUNTER, "Start", NULL);
        TRY(s, s->path, COUNTER, "GetFds", NULL);
}

static void run_close(Scene *s) {
        TRY(s, s->path, COUNTER, "Close", NULL);
        calm();
        if (!s->failed)
                settle(!client_finds(root, s->path, COUNTER));
}

static void prepare_unattached(Scene *s) {
        prepare_family(s);
        s->path = counter_open(s->client, "task-clock:u", "a{sv}", 2, "attach", "b", 0, "start",
                               "b", 0);
}

static void run_attach(Scene *s) {
        TRY(s, s->path, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) s->target->pid, 1, "procfd",
            "h", client_proof(s->client, s->target->pid));
        TRY(s, s->path, COUNTER, "DetachProcess", "u", (uint32_t) s->target->pid);
}

static void run_attach_family(Scene *s) {
        TRY(s, s->path, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) s->target->pid, 2, "procfd",
            "h", client_proof(s->client, s->target->pid), "descendants", "b", 1);
}

static void run_persist(Scene *s) {
        TRY(s, s->path, COUNTER, "Persist", NULL);
        TRY(s, MANAGER, "ListPersistent", NULL);
        TRY(s, s->path, COUNTER, "Adopt", NULL);
}

static void prepare_persistent(Scene *s) {
        s->other = client_new("alice");
        s->second = counter_open(s->other, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu",
                                 "persistent", "b", 1);
        s->id = client_get(root, s->second, COUNTER, "Id");
}

static void run_open_persistent_again(Scene *s) {
        TRY_PATH(s, "o", MANAGER, "OpenPersistent", "s", s->id);
}

static void undo_persistent(Scene *s) {
        counter_do(s->other, s->second, "Close");
}

const Operation counter_operations[] = {
        { "open-cpu", "alice", NULL, run_open_cpu, close_counter },
        { "open-cpus", "alice", NULL, run_open_cpus, close_counter },
        { "open-group", "alice", NULL, run_open_group, NULL },
        { "open-three", "alice", NULL, run_open_three, NULL },
        { "open-process", "alice", prepare_target, run_open_process, NULL },
        { "open-family", "alice", prepare_family, run_open_family, NULL },
        { "open-pidfd", "alice", prepare_target, run_open_pidfd, close_counter },
        { "open-persistent", "alice", NULL, run_open_persistent, close_counter },
        { "open-monitor", "alice", NULL, run_open_monitor, close_counter, .thorough = true },
        { "open-monitor-while-held", "alice", prepare_monitor_held, run_open_monitor,
          after_monitor_held },
        { "open-breakpoints", "alice", NULL, run_open_breakpoints, NULL },
        { "read", "alice", prepare_counter, run_read, NULL },
        { "commands", "alice", prepare_counter, run_commands, NULL },
        { "close", "alice", prepare_counter, run_close, NULL },
        { "attach", "alice", prepare_unattached, run_attach, NULL },
        { "attach-family", "alice", prepare_unattached, run_attach_family, NULL },
        { "persist", "alice", prepare_counter, run_persist, NULL, close_counter },
        { "open-persistent-again", "alice", prepare_persistent, run_open_persistent_again, NULL,
          undo_persistent },
        {},
};
