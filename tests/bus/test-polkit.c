/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Permissions: the real polkitd answers, by its actions and rules. */

#include "event-util.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define INTERACTION SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED
#define DENIED      SD_BUS_ERROR_ACCESS_DENIED

/* A one-line rule for the action, or for all of ours ("*"), and the user. */
static void rule_set(const char *user, const char *action, const char *body) {
        g_autofree char *text = g_strdup_printf(
                "polkit.addRule(function(action, subject) {\n"
                "        if (subject.user == '%s' && action.id.indexOf('org.perfalloc1.') == 0 &&\n"
                "            ('%s' == '*' || action.id == 'org.perfalloc1.%s')) { %s }\n"
                "});\n",
                user, action, action, body);

        rig("rules 00-a-test", text);
}

static void rule_clear(void) {
        rig("rules --remove 00-a-test", NULL);
}

static void hold_try(Client *c) {
        g_autofree char *path = NULL;
        int lease;

        path = hold_take(c, &lease, "a{sv}", 0);
        close_fd(lease);
}

static void hold_refused(Client *c, const char *error) {
        client_refused(c, error, MANAGER, "Hold", "sa{sv}", "in vain", 0);
}

/* The message allows a prompt. */
static void hold_refused_to_interactive(Client *c) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "Hold");

        g_assert_cmpint(sd_bus_message_append(m, "sa{sv}", "in vain", 0), >=, 0);
        g_assert_cmpint(sd_bus_message_set_allow_interactive_authorization(m, true), >=, 0);
        client_refused_message(c, DENIED, m);
}

static void test_challenge(void) {
        g_autoptr(Client) bob = client_new("bob");

        hold_refused(bob, INTERACTION);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.hold)"));
        g_assert_cmpuint(client_count(bob, "hold"), ==, 0);
}

static void test_no_agent(void) {
        g_autoptr(Client) bob = client_new("bob");

        hold_refused_to_interactive(bob);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.hold)"));
}

static void test_example_rules(void) {
        g_autoptr(Client) carol = client_new("carol");

        hold_try(carol);
}

static void test_no(void) {
        g_autoptr(Client) alice = client_new("alice");

        hold_try(alice);
        rule_set("alice", "hold", "return polkit.Result.NO;");
        hold_refused(alice, DENIED);
        hold_refused_to_interactive(alice);
        rule_clear();
        hold_try(alice);
}

static void test_yes(void) {
        g_autoptr(Client) bob = client_new("bob");

        rule_set("bob", "hold", "return polkit.Result.YES;");
        hold_try(bob);
        client_refused(bob, INTERACTION, MANAGER, "Hold", "sa{sv}", "too much", 2, "mode", "s",
                       "exclusive", BREAKPOINTS);
        rule_clear();
        hold_refused(bob, INTERACTION);
}

/* A cached yes is dropped when the rules change. */
static void test_kept(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *first = NULL, *second = NULL;

        first = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        second = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        rule_set("alice", "count-system", "return polkit.Result.NO;");
        client_refused(alice, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                       "scope", "s", "cpu");
        rule_clear();
}

/* Each kind of request names the action that it needs. */
static void test_actions(void) {
        g_autoptr(Client) bob = client_new("bob");
        static const struct {
                const char *option, *value, *action;
        } holds[] = {
                { "mode", "shared", "org.perfalloc1.hold)" },
                { "mode", "exclusive", "org.perfalloc1.hold-exclusive)" },
        }, openings[] = {
                { "role", "foreground", "org.perfalloc1.count-system)" },
                { "role", "monitor", "org.perfalloc1.monitor)" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(holds); i++) {
                client_refused(bob, INTERACTION, MANAGER, "Hold", "sa{sv}", "in vain", 2,
                               holds[i].option, "s", holds[i].value, BREAKPOINTS);
                g_assert_nonnull(strstr(bob->refusal, holds[i].action));
                client_refused(bob, INTERACTION, MANAGER, "HoldUnattended", "sta{sv}", "in vain",
                               UINT64_C(0), 2, holds[i].option, "s", holds[i].value, BREAKPOINTS);
                g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.hold-unattended)"));
        }
        rule_set("bob", "count-system", "return polkit.Result.YES;");
        for (size_t i = 1; i < G_N_ELEMENTS(openings); i++) {
                client_refused(bob, INTERACTION, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock",
                               2, "scope", "s", "cpu", openings[i].option, "s", openings[i].value);
                g_assert_nonnull(strstr(bob->refusal, openings[i].action));
        }
        rule_clear();
        client_refused(bob, INTERACTION, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 2,
                       "scope", "s", "cpu", openings[0].option, "s", openings[0].value);
        g_assert_nonnull(strstr(bob->refusal, openings[0].action));
}

static int play_idle(int fd, const void *data) {
        act_say(fd, 'r');
        (void) act_hear(fd);
        return 0;
}

/* A process of the user's, ready. */
static Actor *idle_new(const char *user) {
        Actor *a = actor_new(user, play_idle, NULL);

        g_assert_cmpint(actor_hear(a), ==, 'r');
        return a;
}

static char *faults_open(Client *c, const Actor *target) {
        return counter_open(c, "page-faults:u", "a{sv}", 1, "procfd", "h",
                            client_proof(c, target->pid));
}

/* Descriptors of one's own processes need more than their values, and other scopes the same. */
static void test_descriptors(void) {
        g_autoptr(Client) bob = client_new("bob"), dave = client_new("dave"),
                          carol = client_new("carol");
        PerfAttr attr = software_attr(PERF_COUNT_SW_PAGE_FAULTS);
        g_autoptr(Actor) bobs = idle_new("bob"), daves = idle_new("dave");
        g_autofree char *value = faults_open(bob, bobs), *own = faults_open(dave, daves);
        g_autofree char *system =
                counter_open(carol, "page-faults", "a{sv}", 1, "scope", "s", "cpu");

        (void) counter_value(bob, value);
        client_refused(bob, INTERACTION, value, COUNTER, "GetFds", NULL);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.sample-own)"));
        raw_refused(bob, INTERACTION, "org.perfalloc1.sample-own)",
                    (Raw){ .attr = &attr, .pid = bobs->pid, .cpu = -1 }, "a{sv}", 0);
        sd_bus_message_unref(client_call(dave, own, COUNTER, "GetFds", NULL));
        /* another connection of the same user may have been given less since */
        sd_bus_message_unref(client_call(carol, system, COUNTER, "GetFds", NULL));
        rule_set("carol", "count-system", "return polkit.Result.NO;");
        client_refused(carol, DENIED, system, COUNTER, "GetFds", NULL);
        g_assert_nonnull(strstr(carol->refusal, "org.perfalloc1.count-system)"));
        rule_clear();
}

static void test_details(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autofree char *path = NULL;
        int lease;

        rule_set("bob", "hold",
                 "return action.lookup('perfalloc.reason') == '\"a test\"' &&"
                 "       action.lookup('perfalloc.uid') == '2002' &&"
                 "       action.lookup('perfalloc.program') == '\"test-polkit\"'"
                 "       ? polkit.Result.YES : polkit.Result.NO;");
        path = hold_take(bob, &lease, "a{sv}", 0);
        close_fd(lease);
        client_refused(bob, DENIED, MANAGER, "Hold", "sa{sv}", "another reason", 0);
        rule_clear();
}

/* Of what is asked, all that a rule may look at. */
static void rule_expect(const char *user, const char *action, const char *expected) {
        g_autofree char *body = g_strdup_printf(
                "return ['pmus', 'events', 'scope', 'mode', 'cpus', 'target-uid'].map("
                "function(key) { return action.lookup('perfalloc.' + key); }).join(' ') == '%s'"
                "       ? polkit.Result.YES : polkit.Result.NO;",
                expected);

        rule_set(user, action, body);
}

static void test_asked(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) target = idle_new("bob"), other = idle_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);
        g_autofree char *hold = NULL, *counter G_GNUC_UNUSED = NULL, *system = NULL;
        int lease;

        rule_expect("bob", "hold",
                    "\"breakpoint\" (not given) (not given) \"shared\" \"0\" (not given)");
        hold = hold_take(bob, &lease, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "0");
        close_fd(lease);
        rule_expect("bob", "count-own",
                    "\"software\" \"page-faults task-clock\" \"process\" \"counting\" "
                    "(not given) 2002");
        sd_bus_message_unref(client_call(bob, MANAGER, "OpenCounters", "asa{sv}", 3, "faults:u",
                                         "task-clock:u", "page-faults:u", 1, "procfd", "h",
                                         client_proof(bob, target->pid)));
        client_refused(bob, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "cs:u", 1, "procfd", "h",
                       client_proof(bob, target->pid));
        rule_expect("bob", "count-system",
                    "\"software\" \"page-faults\" \"cpu\" \"counting\" \"0\" (not given)");
        system =
                counter_open(bob, "page-faults", "a{sv}", 2, "scope", "s", "cpu", "cpus", "s", "0");
        attr.sample_period = 1000;
        rule_expect("bob", "sample-own",
                    "\"software\" \"cpu-clock\" \"process\" \"sampling\" (not given) 2002");
        close_fd(raw_open(bob, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0));
        rule_expect("bob", "count-other",
                    "\"software\" \"cpu-clock\" \"process\" \"sampling\" \"0\" 2004");
        close_fd(raw_open(bob, (Raw){ .attr = &attr, .pid = other->pid }, "a{sv}", 0));
        rule_clear();
}

/* bob's process, with a child of dave's. */
static int play_family(int fd, const void *data) {
        const struct passwd *pw = user_find("bob");
        pid_t child = fork();

        if (child == 0)
                pw = user_find("dave");
        if (initgroups(pw->pw_name, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 ||
            setuid(pw->pw_uid) < 0)
                return 1;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_DUMPABLE, 1);
        if (child == 0)
                for (;;)
                        pause();
        return play_idle(fd, NULL);
}

static sd_bus_message *family_message(Client *c, int pidfd) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_PAGE_FAULTS);
        sd_bus_message *m = client_message(c, MANAGER, "OpenEvents");

        g_assert_cmpint(sd_bus_message_append_array(m, 'y', &attr, sizeof(attr)), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "ta{sv}", UINT64_C(0), 2, "pidfd", "h", pidfd,
                                              "descendants", "b", 1),
                        >=, 0);
        return m;
}

static void target_rule(const char *uid) {
        g_autofree char *body = g_strdup_printf("return action.lookup('perfalloc.target-uid') == "
                                                "'%s' ? polkit.Result.YES : polkit.Result.NO;",
                                                uid);

        rule_set("bob", "count-other", body);
}

/* Who may count bob's processes may not count what is below them. */
static void test_tree_of_several_users(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) family = actor_new("root", play_family, NULL);
        g_autofree char *parent = NULL, *tree = NULL, *empty = NULL;
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, family->pid, 0);
        g_autoptr(sd_bus_message) m = family_message(bob, pidfd);
        const uint32_t pid = (uint32_t) family->pid;

        g_assert_cmpint(actor_hear(family), ==, 'r');
        empty = counter_open(bob, "page-faults:u", "a{sv}", 1, "attach", "b", 0);
        target_rule("2002");
        parent = counter_open(bob, "page-faults:u", "a{sv}", 1, "pid", "u", pid);
        client_refused(bob, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 2,
                       "pid", "u", pid, "descendants", "b", 1);
        client_refused(bob, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 2,
                       "procfd", "h", client_proof(bob, family->pid), "descendants", "b", 1);
        counter_do(bob, empty, "Stop");
        client_refused(bob, PERFALLOC_ERROR_NOT_PERMITTED, empty, COUNTER, "AttachProcess",
                       "ua{sv}", pid, 1, "descendants", "b", 1);
        client_refused_message(bob, DENIED, m);
        target_rule("(not given)");
        tree = counter_open(bob, "page-faults:u", "a{sv}", 2, "pid", "u", pid, "descendants", "b",
                            1);
        sd_bus_message_unref(client_call(bob, tree, COUNTER, "GetFds", NULL));
        client_refused(bob, DENIED, parent, COUNTER, "GetFds", NULL);
        target_rule("2002");
        client_refused(bob, DENIED, tree, COUNTER, "GetFds", NULL);
        sd_bus_message_unref(client_call(bob, parent, COUNTER, "GetFds", NULL));
        rule_clear();
}

/* Nobody has looked whose it is. */
static void test_target_of_root(void) {
        g_autoptr(Client) root = client_new("root"), bob = client_new("bob");
        g_autoptr(Actor) target = idle_new("alice");
        g_autofree char *counter = counter_open(root, "page-faults:u", "a{sv}", 2, "pid", "u",
                                                (uint32_t) target->pid, "persistent", "b", 1);
        g_autofree char *id = client_get(root, counter, COUNTER, "Id");

        target_rule("0");
        client_refused(bob, DENIED, MANAGER, "OpenPersistent", "s", id);
        target_rule("(not given)");
        sd_bus_message_unref(client_call(bob, MANAGER, "OpenPersistent", "s", id));
        rule_clear();
        counter_do(root, counter, "Close");
}

/* What is kept of a yes to one event is no yes to another. */
static void test_kept_for_one_event(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) target = idle_new("bob");
        g_autofree char *first = NULL, *second = NULL;

        rule_set("bob", "count-own",
                 "return action.lookup('perfalloc.events') == '\"page-faults\"'"
                 "       ? polkit.Result.YES : polkit.Result.NO;");
        first = faults_open(bob, target);
        second = faults_open(bob, target);
        client_refused(bob, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock:u", 1,
                       "procfd", "h", client_proof(bob, target->pid));
        rule_clear();
}

/* The example, with two events that every machine has instead of cycles and instructions. */
static char *example_rule(void) {
        g_autofree char *path = g_build_filename(g_getenv("PERFALLOC_SOURCE"),
                                                 "polkit/20-perfalloc-cycles.rules", NULL);
        g_autofree char *text = NULL;
        g_autoptr(GString) rule = NULL;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        rule = g_string_new(text);
        g_assert_cmpuint(g_string_replace(rule, "\"cycles\"", "\"page-faults\"", 0), ==, 1);
        g_assert_cmpuint(g_string_replace(rule, "\"instructions\"", "\"task-clock\"", 0), ==, 1);
        g_assert_cmpuint(
                g_string_replace(rule, "(\"perfalloc-cycles\")", "(\"perfalloc-users\")", 0), ==,
                1);
        return g_string_free(g_steal_pointer(&rule), FALSE);
}

static void test_example_of_two_events(void) {
        static const char *const refused[] = { "cpu-clock:u", "page-faults",
                                               "software/config=0/u" };
        g_autoptr(Client) carol = client_new("carol");
        g_autoptr(Actor) target = idle_new("carol"), other = idle_new("bob");
        g_autofree char *rule = example_rule(), *counter = NULL;
        PerfAttr faults = software_attr(PERF_COUNT_SW_PAGE_FAULTS),
                 clock = software_attr(PERF_COUNT_SW_CPU_CLOCK);

        rig("rules 00-a-test", rule);
        counter = faults_open(carol, target);
        sd_bus_message_unref(client_call(carol, counter, COUNTER, "GetFds", NULL));
        sd_bus_message_unref(client_call(carol, MANAGER, "OpenCounters", "asa{sv}", 2,
                                         "task-clock:u", "page-faults:u", 1, "procfd", "h",
                                         client_proof(carol, target->pid)));
        close_fd(raw_open(carol, (Raw){ .attr = &faults, .pid = target->pid, .cpu = -1 }, "a{sv}",
                          0));
        for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
                client_refused(carol, DENIED, MANAGER, "OpenCounters", "asa{sv}", 2,
                               "page-faults:u", refused[i], 1, "procfd", "h",
                               client_proof(carol, target->pid));
        raw_refused(carol, DENIED, "sample-own",
                    (Raw){ .attr = &clock, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
        raw_refused(carol, DENIED, "count-other",
                    (Raw){ .attr = &faults, .pid = other->pid, .cpu = -1 }, "a{sv}", 0);
        raw_refused(carol, DENIED, "count-system", (Raw){ .attr = &faults, .pid = -1 }, "a{sv}", 0);
        hold_refused(carol, DENIED);
        rule_clear();
        hold_try(carol);
}

static void test_manage(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, path, HOLD, "Release", NULL);
        rule_set("bob", "manage", "return polkit.Result.YES;");
        hold_release(bob, path);
        g_assert_true(client_reads(alice, path, HOLD, "Result", "revoked"));
        rule_clear();
}

/* ---- polkitd that is not there, is slow, or dies ---- */

static void test_absent(void) {
        g_autoptr(Client) alice = client_new("alice");
        gint64 asked;

        rig("polkit-stop", NULL);
        asked = g_get_monotonic_time();
        hold_refused(alice, DENIED);
        client_refused(alice, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                       "scope", "s", "cpu");
        /* not after some time-out of a call */
        g_assert_cmpint(g_get_monotonic_time() - asked, <, 5 * G_USEC_PER_SEC);
        rig("polkit-start", NULL);
        hold_try(alice);
}

static void test_root(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *counter = NULL;

        rig("polkit-stop", NULL);
        hold_try(root);
        counter = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        rig("polkit-start", NULL);
}

/* As root of a container that shares the user namespace. */
static int play_powerless(int fd, const void *data) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);
        g_autoptr(Client) root = NULL;

        if (syscall(SYS_capset, &header, none) < 0)
                return 2;
        root = client_new("root");
        raw_refused(root, DENIED, "CAP_PERFMON", (Raw){ .attr = &attr, .pid = -1 }, "a{sv}", 0);
        client_refused(root, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1, "scope",
                       "s", "cpu");
        client_refused(root, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                       "attach", "b", 0);
        hold_refused(root, DENIED);
        /* this is nobody's */
        sd_bus_message_unref(client_call(root, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock:u",
                                         1, "attach", "b", 0));
        return 0;
}

static void test_powerless_root(void) {
        g_autoptr(Actor) root = actor_new("root", play_powerless, NULL);
        int status = -1;

        await(waitpid(root->pid, &status, WNOHANG) == root->pid);
        root->pid = 0;
        g_assert_cmpint(status, ==, 0);
}

/* Whether it is root is known again before its next call is handled. */
static void test_root_after_a_restart(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *counter = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu"),
                        *again = NULL;

        rig("service-restart", NULL);
        again = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        (void) counter_value(root, counter);
}

static uint64_t hold_ask(Client *c) {
        return client_send(c, MANAGER, "Hold", "sa{sv}", "slowly", 0);
}

static void test_waiting_for_polkit(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie;

        rig("polkit-signal STOP", NULL);
        cookie = hold_ask(alice);
        for (int i = 0; i < 20; i++)
                hold_try(root);
        g_assert_true(client_reads(alice, MANAGER, "Version", PERFALLOC_VERSION));
        g_assert_false(client_has_answer(alice, cookie));
        rig("polkit-signal CONT", NULL);
        reply = client_receive(alice, cookie);
        g_assert_false(sd_bus_message_is_method_error(reply, NULL));
}

static void test_durations(void) {
        const uint64_t lifetime = 100 * USEC_PER_MSEC;
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie, asked;
        const char *path;

        rig("polkit-signal STOP", NULL);
        asked = (uint64_t) g_get_real_time();
        cookie = client_send(alice, MANAGER, "HoldUnattended", "sta{sv}", "slowly", lifetime, 0);
        /* the service has received it: a later call has been answered */
        g_assert_true(client_reads(alice, MANAGER, "Version", PERFALLOC_VERSION));
        g_usleep(2 * lifetime);
        rig("polkit-signal CONT", NULL);
        reply = client_receive(alice, cookie);
        g_assert_cmpint(sd_bus_message_read(reply, "o", &path), >, 0);
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "RequestTimestamp", 't'), <,
                         asked + lifetime);
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "ExpireTimestamp", 't'), ==,
                         client_get_number(alice, path, HOLD, "RequestTimestamp", 't') + lifetime);
        await(hold_is(alice, path, "ended"));
        g_assert_true(client_reads(alice, path, HOLD, "Result", "expired"));
}

static void test_dies(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t cookie;

        rig("polkit-signal STOP", NULL);
        cookie = hold_ask(alice);
        g_assert_true(client_reads(alice, MANAGER, "Version", PERFALLOC_VERSION));
        rig("polkit-signal KILL", NULL);
        reply = client_receive(alice, cookie);
        g_assert_true(sd_bus_message_is_method_error(reply, DENIED));
        rig("polkit-start", NULL);
        hold_try(alice);
}

/* alice asks, and is gone before polkit has answered. carol asks later, and is answered later. */
static void leave(Client *alice, uint64_t cookie) {
        g_autoptr(Client) carol = client_new("carol"), root = client_new("root");
        g_autofree char *path = NULL;
        unsigned holds = holds_count(root);
        int lease;

        /* the call of alice has arrived when a later one is answered; root reads without asking
         * polkit */
        g_assert_true(client_reads(alice, MANAGER, "Version", PERFALLOC_VERSION));
        g_assert_false(client_has_answer(alice, cookie));
        client_free(alice);
        path = hold_take(carol, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(carol, path));
        g_assert_cmpuint(holds_count(root), ==, holds + 1);
        g_assert_cmpuint(client_count(root, "counter"), ==, 0);
        close_fd(lease);
}

#define SLOWLY "polkit.spawn(['/bin/sleep', '1']); return polkit.Result.YES;"

static void test_leaving(void) {
        Client *alice = client_new("alice");
        unsigned descriptors = service_descriptors();

        rule_set("alice", "*", SLOWLY);
        leave(alice, hold_ask(alice));
        await(service_descriptors() <= descriptors);
        rule_clear();
}

static void test_leaving_counters(void) {
        Client *alice = client_new("alice");
        unsigned descriptors = service_descriptors();
        uint64_t cookie;

        rule_set("alice", "*", SLOWLY);
        cookie = client_send(alice, MANAGER, "OpenCounters", "asa{sv}", 1, "cpu-clock", 1, "scope",
                             "s", "cpu");
        leave(alice, cookie);
        await(service_descriptors() <= descriptors);
        rule_clear();
}

/* Nothing of a hold is secret. */
static void test_hold_is_public(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *path = NULL, *reason = NULL;
        int lease;

        path = hold_take(alice, &lease, "a{sv}", 0);
        await(client_count(bob, "counter") == 0); /* of earlier tests */
        rig("polkit-signal STOP", NULL);
        g_assert_true(client_finds(bob, path, HOLD));
        reason = client_get(bob, path, HOLD, "Reason");
        g_assert_cmpstr(reason, !=, "");
        g_assert_cmpuint(holds_count(bob), ==, 1);
        rig("polkit-signal CONT", NULL);
        close_fd(lease);
        await(holds_count(alice) == 0);
}

/* Who asks for all objects while polkit thinks about what is secret of them waits alone. */
static void test_objects_of_others(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob"),
                          root = client_new("root");
        g_autofree char *counter G_GNUC_UNUSED = counter_open(alice, "page-faults:u", "a{sv}", 0);
        uint64_t cookie;

        client_greet(bob);
        rig("polkit-signal STOP", NULL);
        cookie = client_send(bob, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                             "GetManagedObjects", NULL);
        g_assert_cmpuint(client_count(root, "counter"), >, 0);
        g_assert_false(client_has_answer(bob, cookie));
        rig("polkit-signal CONT", NULL);
        sd_bus_message_unref(client_receive(bob, cookie));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/polkit/a-challenge-needs-an-interactive-message", test_challenge);
        g_test_add_func("/polkit/a-challenge-without-an-agent-is-denied", test_no_agent);
        g_test_add_func("/polkit/the-example-rules-let-their-group", test_example_rules);
        g_test_add_func("/polkit/a-no-is-denied", test_no);
        g_test_add_func("/polkit/a-yes-is-for-one-action-and-while-the-rule-is-there", test_yes);
        g_test_add_func("/polkit/changed-rules-end-what-was-kept", test_kept);
        g_test_add_func("/polkit/each-request-names-its-action", test_actions);
        g_test_add_func("/polkit/descriptors-need-more-than-values", test_descriptors);
        g_test_add_func("/polkit/rules-see-reason-program-and-uid", test_details);
        g_test_add_func("/polkit/rules-see-what-is-asked", test_asked);
        g_test_add_func("/polkit/a-tree-of-several-users-is-no-ones", test_tree_of_several_users);
        g_test_add_func("/polkit/rules-see-no-uid-that-nobody-looked-for", test_target_of_root);
        g_test_add_func("/polkit/a-kept-yes-is-for-one-event", test_kept_for_one_event);
        g_test_add_func("/polkit/the-example-of-two-events-lets-nothing-else",
                        test_example_of_two_events);
        g_test_add_func("/polkit/manage-reads-and-revokes", test_manage);
        g_test_add_func("/polkit/without-polkitd-all-is-denied-at-once", test_absent);
        g_test_add_func("/polkit/a-hold-is-read-without-asking", test_hold_is_public);
        g_test_add_func("/polkit/objects-of-others-delay-who-asks-alone", test_objects_of_others);
        g_test_add_func("/polkit/root-is-never-asked", test_root);
        g_test_add_func("/polkit/root-without-capabilities-is-not-root", test_powerless_root);
        g_test_add_func("/polkit/root-is-root-after-a-restart", test_root_after_a_restart);
        g_test_add_func("/polkit/nobody-else-waits-for-a-polkitd-that-hangs",
                        test_waiting_for_polkit);
        g_test_add_func("/polkit/durations-count-from-the-call-not-from-the-answer",
                        test_durations);
        g_test_add_func("/polkit/a-polkitd-that-dies-denies", test_dies);
        g_test_add_func("/polkit/who-leaves-while-polkit-thinks-gets-no-hold", test_leaving);
        g_test_add_func("/polkit/who-leaves-while-polkit-thinks-gets-no-counter",
                        test_leaving_counters);
        return g_test_run();
}
