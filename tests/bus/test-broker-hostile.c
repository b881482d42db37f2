/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The broker, and programs that want more than their user has, or harm to others. */

#include "program.h"

#include <signal.h>
#include <sys/wait.h>

#define LIMITS     SD_BUS_ERROR_LIMITS_EXCEEDED
#define EVERYTHING "sample-own count-kernel count-other count-system count-raw"

enum { DEATHS = 200, CHANGES = 3000 };

typedef struct Fixture {
        Client *alice;
        Program *program, *native, *other;
        unsigned descriptors;
} Fixture;

static void fixture_set_up(Fixture *f, const void *data) {
        f->alice = client_new("alice");
        f->native = program_new("alice", PROGRAM_NATIVE);
        f->other = program_new("bob", PROGRAM_NATIVE);
        (void) client_get_number(f->alice, MANAGER, "AttrSize", 'u'); /* which starts it */
        f->descriptors = service_descriptors();
}

static void fixture_tear_down(Fixture *f, const void *data) {
        program_free(f->program);
        await(service_descriptors() <= f->descriptors);
        await(workers_list(NULL, 0) == 0);
        program_free(f->native);
        program_free(f->other);
        client_free(f->alice);
}

static void begin(Fixture *f, ProgramKind kind, const char *allow) {
        f->program = program_new("alice", kind);
        program_broker(f->program, f->alice, allow);
}

static ProgramCall call_of(PerfAttr attr, int pid, int cpu) {
        return (ProgramCall){ .attr = attr, .pid = pid, .cpu = cpu, .group = -1 };
}

static ProgramCall own(void) {
        return call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);
}

static pid_t worker_pid(void) {
        pid_t pid = 0;

        await(workers_list(&pid, 1) == 1);
        return pid;
}

/* ---- filters ---- */

static void test_filter_forwards_other_calls(Fixture *f, const void *data) {
        begin(f, PROGRAM_FORWARDS, EVERYTHING);
        g_assert_true(program_getpgid(f->program));
        g_assert_cmpint(program_open(f->program, own()), >=, 0);
}

/* ---- rights ---- */

static void test_processes_of_others(Fixture *f, const void *data) {
        ProgramCall c = own();

        begin(f, PROGRAM_PLAIN, "sample-own count-kernel");
        c.pid = f->other->actor->pid;
        g_assert_cmpint(program_open(f->program, c), ==, -EACCES);
        c.pid = 1;
        g_assert_cmpint(program_open(f->program, c), ==, -EACCES);
        c.attr = software_attr(PERF_COUNT_SW_DUMMY);
        g_assert_cmpint(program_open(f->program, c), ==, program_open(f->native, c));
}

static void test_programs_of_others(Fixture *f, const void *data) {
        g_autoptr(Program) p = program_new("bob", PROGRAM_PLAIN);

        program_broker(p, f->alice, EVERYTHING);
        g_assert_cmpint(program_open(p, own()), ==, -EACCES);
        g_assert_cmpint(program_open(p, call_of(software_attr(PERF_COUNT_SW_DUMMY), 0, -1)), >=, 0);
}

static void test_kernel_addresses(Fixture *f, const void *data) {
        PerfAttr attr = breakpoint_attr(0);

        begin(f, PROGRAM_PLAIN, "sample-own");
        attr.bp_addr = UINT64_MAX - 4095;
        g_assert_cmpint(program_open(f->program, call_of(attr, 0, -1)), <, 0);
        attr.exclude_kernel = 0;
        g_assert_cmpint(program_open(f->program, call_of(attr, 0, -1)), <, 0);
}

static uint32_t pmu_type(const char *name) {
        g_autofree char *path = g_strdup_printf("/sys/bus/event_source/devices/%s/type", name),
                        *text = NULL;

        return g_file_get_contents(path, &text, NULL, NULL) ? (uint32_t) atoi(text) : 0;
}

/* It would be read in the memory of whoever opens it. */
static void test_probe_pointers(Fixture *f, const void *data) {
        static const char *const pmus[] = { "kprobe", "uprobe" };

        begin(f, PROGRAM_PLAIN, EVERYTHING);
        for (size_t i = 0; i < G_N_ELEMENTS(pmus); i++) {
                PerfAttr attr = kernel_attr(0);

                attr.type = pmu_type(pmus[i]);
                attr.config1 = (uintptr_t) "do_exit";
                if (attr.type > 0)
                        g_assert_cmpint(program_open(f->program, call_of(attr, 0, -1)), ==,
                                        program_open(f->native, call_of(attr, 0, -1)));
        }
}

static void test_without_no_new_privs(Fixture *f, const void *data) {
        begin(f, PROGRAM_PRIVILEGES, EVERYTHING);
        g_assert_cmpint(program_open(f->program, own()), ==, -EACCES);
}

static void test_user_namespace(Fixture *f, const void *data) {
        begin(f, PROGRAM_NAMESPACE, EVERYTHING);
        g_assert_cmpint(program_open(f->program, own()), ==, -EACCES);
        g_assert_cmpint(program_open(f->program, call_of(kernel_attr(PERF_COUNT_SW_DUMMY), -1, 0)),
                        ==, -EACCES);
}

static void test_memory_that_changes(Fixture *f, const void *data) {
        begin(f, PROGRAM_PLAIN, "sample-own");
        g_assert_cmpint(program_open_while_changing(
                                f->program,
                                call_of(software_attr(PERF_COUNT_SW_CONTEXT_SWITCHES), 0, -1),
                                CHANGES),
                        ==, 0);
}

/* ---- deaths ---- */

static void test_dies_at_any_moment(Fixture *f, const void *data) {
        for (int i = 0; i < DEATHS; i++) {
                g_autoptr(Program) p = program_new("alice", PROGRAM_PLAIN);

                program_broker(p, f->alice, EVERYTHING);
                program_open_begin(p, own());
                g_usleep((gulong) g_test_rand_int_range(0, 300));
        }
        begin(f, PROGRAM_PLAIN, EVERYTHING);
        g_assert_cmpint(program_open(f->program, own()), >=, 0);
}

static void test_worker_is_killed(Fixture *f, const void *data) {
        begin(f, PROGRAM_PLAIN, EVERYTHING);
        for (int i = 0; i < 10; i++) {
                pid_t worker = worker_pid();

                (void) kill(worker, SIGSTOP);
                program_open_begin(f->program, own());
                await(program_waits(f->program));
                (void) kill(worker, SIGKILL);
                g_assert_cmpint(program_open_end(f->program), >=, 0);
        }
}

static void test_worker_is_stopped(Fixture *f, const void *data) {
        g_autoptr(Program) p = program_new("alice", PROGRAM_PLAIN);
        pid_t worker;

        begin(f, PROGRAM_PLAIN, EVERYTHING);
        worker = worker_pid();
        (void) kill(worker, SIGSTOP);
        program_open_begin(f->program, own());
        program_broker(p, f->alice, EVERYTHING);
        g_assert_cmpint(program_open(p, own()), >=, 0);
        await(program_waits(f->program));
        (void) kill(worker, SIGCONT);
        g_assert_cmpint(program_open_end(f->program), >=, 0);
}

/* It can be killed all the same. */
static void test_program_of_a_stopped_worker(Fixture *f, const void *data) {
        begin(f, PROGRAM_PLAIN, EVERYTHING);
        (void) kill(worker_pid(), SIGSTOP);
        program_open_begin(f->program, own());
        await(program_waits(f->program));
}

static void test_memory_that_never_answers(Fixture *f, const void *data) {
        g_autoptr(Program) p = program_new("alice", PROGRAM_PLAIN);
        ProgramCall slow = own();

        begin(f, PROGRAM_SLOW, EVERYTHING);
        slow.where = PROGRAM_SLOW_ADDRESS;
        program_open_begin(f->program, slow);
        await(program_waits(f->program));
        program_broker(p, f->alice, EVERYTHING);
        g_assert_cmpint(program_open(p, own()), >=, 0);
}

/* ---- crowds ---- */

static void test_a_hundred(Fixture *f, const void *data) {
        Program *all[100];

        rig_configure("[Limits]\nBrokersPerUser=100\n");
        f->descriptors = service_descriptors();
        for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
                all[i] = program_new("alice", PROGRAM_PLAIN);
                program_broker(all[i], f->alice, EVERYTHING);
        }
        f->program = program_new("alice", PROGRAM_PLAIN);
        client_refused(f->alice, LIMITS, MANAGER, "Broker", "ha{sv}", f->program->listener, 0);
        g_assert_nonnull(strstr(f->alice->refusal, "BrokersPerUser"));
        f->program->listener = close_fd(f->program->listener);
        for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
                g_assert_cmpint(program_open(all[i], own()), >=, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
                program_free(all[i]);
        await(workers_list(NULL, 0) == 0);
        rig_configure("");
        f->descriptors = service_descriptors();
}

/* ---- restarts ---- */

static void restart_during_a_call(Fixture *f, const char *how) {
        int leader;
        ProgramCall c = own();

        begin(f, PROGRAM_PLAIN, EVERYTHING);
        leader = program_open(f->program, c);
        (void) kill(worker_pid(), SIGSTOP);
        program_open_begin(f->program, c);
        await(program_waits(f->program));
        rig(how, NULL);
        g_assert_cmpint(program_open_end(f->program), >=, 0);
        c.group = leader;
        g_assert_cmpint(program_open(f->program, c), >=, 0);
        client_free(f->alice);
        f->alice = client_new("alice");
}

static void test_restart(Fixture *f, const void *data) {
        restart_during_a_call(f, "service-restart");
}

static void test_crash(Fixture *f, const void *data) {
        restart_during_a_call(f, "service-kill --again");
}

static void test_stop(Fixture *f, const void *data) {
        begin(f, PROGRAM_PLAIN, EVERYTHING);
        (void) kill(worker_pid(), SIGSTOP);
        program_open_begin(f->program, own());
        await(program_waits(f->program));
        rig("service-stop", NULL);
        g_assert_cmpint(program_open_end(f->program), ==, -ENOSYS);
        g_assert_cmpint(program_open(f->program, own()), ==, -ENOSYS);
        rig("service-start", NULL);
        f->descriptors = service_descriptors();
}

#define CASE(path, f)                                                                              \
        g_test_add("/broker-hostile/" path, Fixture, NULL, fixture_set_up, f, fixture_tear_down)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        CASE("other-calls", test_filter_forwards_other_calls);
        CASE("others-processes", test_processes_of_others);
        CASE("others-programs", test_programs_of_others);
        CASE("kernel-address", test_kernel_addresses);
        CASE("probes", test_probe_pointers);
        CASE("new-privileges", test_without_no_new_privs);
        CASE("user-namespace", test_user_namespace);
        CASE("changing-memory", test_memory_that_changes);
        CASE("deaths", test_dies_at_any_moment);
        CASE("worker-killed", test_worker_is_killed);
        CASE("worker-stopped", test_worker_is_stopped);
        CASE("worker-stopped-killed", test_program_of_a_stopped_worker);
        CASE("slow-memory", test_memory_that_never_answers);
        CASE("hundred", test_a_hundred);
        CASE("restart", test_restart);
        CASE("crash", test_crash);
        CASE("stop", test_stop);
        return g_test_run();
}
