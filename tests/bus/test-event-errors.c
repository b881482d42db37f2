/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OpenEvent: the kernel's refusals, by name and text, and targets that change or end during the
 * call. */

#include "event-util.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { SLOTS_MAX = 64 };

/* 'u': makes it untraceable, 'd': traceable by its user; 'w': writes. Answers the same. */
static int play_target(int fd, const void *data) {
        char what;

        act_say(fd, 'r');
        while ((what = act_hear(fd))) {
                if (what == 'w')
                        watched_write(0, 10);
                else
                        (void) prctl(PR_SET_DUMPABLE, what == 'd');
                act_say(fd, what);
        }
        return 0;
}

static Actor *target_new(const char *user) {
        Actor *a = actor_new(user, play_target, NULL);

        g_assert_cmpint(actor_hear(a), ==, 'r');
        return a;
}

static void target_do(Actor *a, char what) {
        actor_tell(a, what);
        g_assert_cmpint(actor_hear(a), ==, what);
}

/* ---- the kernel's errors ---- */

static const struct {
        const char *error;
        const char *words; /* what is wrong on this machine, or what to do */
        PerfAttr attr;
} errors[] = {
        { PERFALLOC_ERROR_NO_SUCH_EVENT, "no PMU of type 2147483647", { .type = INT32_MAX } },
        { PERFALLOC_ERROR_NO_SUCH_EVENT,
          "PMU software has no such event",
          { .type = PERF_TYPE_SOFTWARE, .config = 4711 } },
        { PERFALLOC_ERROR_INVALID_EVENT,
          "kernel.perf_event_max_sample_rate",
          { .type = PERF_TYPE_SOFTWARE, .freq = 1, .sample_freq = 1000000000 } },
        { PERFALLOC_ERROR_INVALID_EVENT,
          "inherit_thread needs inherit",
          { .type = PERF_TYPE_SOFTWARE, .inherit_thread = 1 } },
        { PERFALLOC_ERROR_INVALID_EVENT,
          "multiple",
          { .type = PERF_TYPE_BREAKPOINT,
            .bp_type = HW_BREAKPOINT_W,
            .bp_addr = 0x1003,
            .bp_len = 8 } },
        { PERFALLOC_ERROR_NOT_SUPPORTED,
          "branch records",
          { .type = PERF_TYPE_SOFTWARE,
            .config = PERF_COUNT_SW_PAGE_FAULTS,
            .sample_period = 1,
            .sample_type = PERF_SAMPLE_BRANCH_STACK,
            .branch_sample_type = PERF_SAMPLE_BRANCH_ANY } },
        { PERFALLOC_ERROR_STACK_TOO_DEEP,
          "kernel.perf_event_max_stack",
          { .type = PERF_TYPE_SOFTWARE,
            .sample_period = 1,
            .sample_type = PERF_SAMPLE_CALLCHAIN,
            .sample_max_stack = UINT16_MAX } },
};

static void test_kernels_errors(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) target = target_new("dave");

        for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
                PerfAttr attr = errors[i].attr;

                attr.size = sizeof(attr);
                raw_refused(root, errors[i].error, errors[i].words,
                            (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
                g_assert_nonnull(strstr(root->refusal, "'event 0x"));
        }
}

static void test_no_counter_left(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        const Raw raw = { .attr = &attr, .pid = target->pid, .cpu = -1 };
        int fds[SLOTS_MAX];
        size_t n = 0;

        /* the last one that fits is found by an own breakpoint that does not */
        for (int own = 0; own >= 0 && n < SLOTS_MAX; n++) {
                fds[n] = raw_open(dave, raw, "a{sv}", 0);
                own = breakpoint_open(target->pid, -1);
                close_fd(own);
        }
        raw_refused(dave, PERFALLOC_ERROR_NO_COUNTER_LEFT, "PMU breakpoint", raw, "a{sv}", 0);
        while (n > 0)
                close_fd(fds[--n]);
        close_fd(raw_open(dave, raw, "a{sv}", 0));
}

/* A stranger is not told that a process has no counter left: nothing is opened on it for them. */
static void test_no_counter_left_of_a_strangers(void) {
        g_autoptr(Client) alice = client_new("alice"), dave = client_new("dave");
        g_autoptr(Actor) target = target_new("bob");
        PerfAttr attr = breakpoint_attr(0);
        const Raw raw = { .attr = &attr, .pid = target->pid, .cpu = -1 };
        int fds[SLOTS_MAX];
        size_t n = 0;

        for (int own = 0; own >= 0 && n < SLOTS_MAX; n++) {
                fds[n] = raw_open(alice, raw, "a{sv}", 0);
                own = breakpoint_open(target->pid, -1);
                close_fd(own);
        }
        raw_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                    "org.perfalloc1.count-other", raw, "a{sv}", 0);
        while (n > 0)
                close_fd(fds[--n]);
}

/* ---- in the middle ---- */

/* The call of that client has been looked at, and waits for polkit: the reader looks at one after
 * another, and of a zombie there is nothing to ask. */
static void await_inspection(Client *c) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        siginfo_t info;
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        g_assert_cmpint(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), ==, 0);
        raw_refused(c, PERFALLOC_ERROR_NO_SUCH_PROCESS, "",
                    (Raw){ .attr = &attr, .pid = pid, .cpu = -1 }, "a{sv}", 0);
        (void) waitpid(pid, NULL, 0);
}

static void assert_change_is_seen(int (*play)(int fd, const void *data), PerfAttr attr,
                                  const char *name, const char *words) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = actor_new("dave", play, NULL);
        g_autoptr(sd_bus_message) reply = NULL;
        const Raw raw = { .attr = &attr, .pid = target->pid, .cpu = -1 };
        const sd_bus_error *error;
        uint64_t cookie;

        g_assert_cmpint(actor_hear(target), ==, 'r');
        rig("polkit-signal STOP", NULL);
        cookie = raw_send(dave, raw, "a{sv}", 0);
        await_inspection(dave); /* of its proof */
        await_inspection(dave);
        target_do(target, 'u');
        rig("polkit-signal CONT", NULL);
        reply = client_receive(dave, cookie);
        error = sd_bus_message_get_error(reply);
        g_assert_nonnull(error);
        g_assert_cmpstr(error->name, ==, name);
        g_assert_nonnull(strstr(error->message, words));
        target_do(target, 'd');
        close_fd(raw_open(dave, raw, "a{sv}", 0));
}

/* Looked at after the opening alone. */
static void test_target_changes(void) {
        assert_change_is_seen(play_target, breakpoint_attr(0),
                              SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                              "org.perfalloc1.count-other");
}

static void *thread_idle(void *arg) {
        for (;;)
                (void) pause();
        return arg;
}

static int play_crowd(int fd, const void *data) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, thread_idle, NULL) != 0)
                return 1;
        return play_target(fd, data);
}

static void test_crowd_changes(void) {
        assert_change_is_seen(play_crowd, breakpoint_attr(0),
                              SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                              "org.perfalloc1.count-other");
}

/* What copies the stack is looked at before polkit is asked, too. */
static void test_copied_target_changes(void) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);

        attr.sample_period = 1000000;
        attr.sample_type = PERF_SAMPLE_STACK_USER;
        attr.sample_stack_user = 4096;
        assert_change_is_seen(play_target, attr, PERFALLOC_ERROR_NOT_PERMITTED, "changed");
}

static void test_target_ends(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        g_autoptr(sd_bus_message) reply = NULL;
        PerfAttr attr = breakpoint_attr(0);
        uint64_t cookie;

        rig("polkit-signal STOP", NULL);
        cookie = raw_send(dave, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
        await_inspection(dave); /* of its proof */
        await_inspection(dave);
        g_assert_cmpint(actor_join(target), ==, 0);
        rig("polkit-signal CONT", NULL);
        reply = client_receive(dave, cookie);
        g_assert_true(sd_bus_message_is_method_error(reply, PERFALLOC_ERROR_NO_SUCH_PROCESS));
}

static void test_client_leaves(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        unsigned descriptors = service_descriptors();

        rig("polkit-signal STOP", NULL);
        for (unsigned i = 0; i < 10; i++) {
                g_autoptr(Client) dave = client_new("dave");

                for (unsigned k = 0; k < 10; k++)
                        (void) raw_send(dave, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 },
                                        "a{sv}", 0);
                g_assert_true(client_reads(dave, MANAGER, "Version", PERFALLOC_VERSION));
        }
        rig("polkit-signal CONT", NULL);
        await(service_descriptors() <= descriptors);
        close_fd(raw_open(root, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/event-errors/the-kernels-have-names-and-words", test_kernels_errors);
        g_test_add_func("/event-errors/no-counter-is-left", test_no_counter_left);
        g_test_add_func("/event-errors/a-target-that-changes-is-not-counted", test_target_changes);
        g_test_add_func("/event-errors/no-counter-left/of-a-stranger's",
                        test_no_counter_left_of_a_strangers);
        g_test_add_func("/event-errors/a-crowd-that-changes-is-not-counted", test_crowd_changes);
        g_test_add_func("/event-errors/a-target-that-changes-is-not-copied",
                        test_copied_target_changes);
        g_test_add_func("/event-errors/a-target-that-ends-is-not-counted", test_target_ends);
        g_test_add_func("/event-errors/a-client-that-leaves-gets-nothing", test_client_leaves);
        return g_test_run();
}
