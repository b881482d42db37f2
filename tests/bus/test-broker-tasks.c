/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The broker, and tasks that are not what they were: they have gone into sandboxes, execute other
 * programs or die while their call is answered, or call with another architecture's numbers. */

#include "program.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define EVERYTHING  "sample-own count-kernel count-other count-system count-raw"
#define SETUID      "/run/rig/setuid-sleep"
#define SETUID_COMM "setuid-sleep"
#define I386_GETPID 20
#define I386_OTHER  298 /* perf_event_open on x86_64; fchownat there */
#define I386_EVENT  336 /* perf_event_open */

typedef struct Fixture {
        Client *alice;
        Program *program, *native, *next;
        int prover;
        unsigned descriptors;
} Fixture;

static void fixture_set_up(Fixture *f, const void *data) {
        f->alice = client_new("alice");
        f->native = program_new("alice", PROGRAM_NATIVE);
        client_greet(f->alice);
        f->descriptors = service_descriptors();
        f->prover = -1;
}

static void fixture_tear_down(Fixture *f, const void *data) {
        program_free(f->program);
        program_free(f->next);
        await(workers_list(NULL, 0) == 0);
        await(service_descriptors() <= f->descriptors);
        g_assert_cmpint(service_events(), ==, 0);
        program_free(f->native);
        client_free(f->alice);
        close_fd(f->prover);
}

static ProgramCall call_of(PerfAttr attr, pid_t pid) {
        return (ProgramCall){ .attr = attr, .pid = pid, .cpu = -1, .group = -1 };
}

/* At paranoid 2 the kernel itself refuses the first, and not the second. */
static ProgramCall kernel_call(pid_t pid) {
        return call_of(kernel_attr(PERF_COUNT_SW_DUMMY), pid);
}

static ProgramCall user_call(pid_t pid) {
        return call_of(software_attr(PERF_COUNT_SW_DUMMY), pid);
}

static void begin(Fixture *f, ProgramKind kind) {
        f->program = program_new("alice", kind);
        program_broker(f->program, f->alice, EVERYTHING);
}

static void begin_proving(Fixture *f, ProgramKind kind, const char *allow) {
        f->program = program_new("alice", kind);
        f->prover = program_broker_proving(f->program, f->alice, allow);
}

static pid_t worker_pid(void) {
        pid_t pid = 0;

        await(workers_list(&pid, 1) == 1);
        return pid;
}

/* Whether the process is in this system call. */
static bool is_in(pid_t pid, long number) {
        g_autofree char *path = g_strdup_printf("/proc/%d/syscall", (int) pid), *text = NULL;

        return g_file_get_contents(path, &text, NULL, NULL) && g_ascii_isdigit(*text) &&
               atol(text) == number;
}

/* ---- sandboxes ---- */

/* What the program gets of another process that its client proves. */
static int open_proven(Fixture *f, ProgramCall c) {
        pid_t asked;

        program_open_begin(f->program, c);
        asked = prover_hear(f->prover);
        g_assert_cmpint(asked, ==, c.pid);
        g_assert_true(prover_say(f->prover, asked, client_proof(f->alice, asked)));
        return program_open_end(f->program);
}

static void test_landlock(Fixture *f, const void *data) {
        pid_t other = f->native->actor->pid;

        begin_proving(f, PROGRAM_PLAIN, "sample-own count-kernel");
        g_assert_cmpint(open_proven(f, kernel_call(other)), >=, 0);
        g_assert_true(program_landlock(f->program));
        g_assert_cmpint(program_open(f->program, kernel_call(0)), >=, 0);
        g_assert_cmpint(open_proven(f, kernel_call(other)), ==, -EACCES);
        g_assert_cmpint(open_proven(f, user_call(other)), ==, -EACCES);
}

/* The pid is the task's own number there, and another process here. */
static void test_namespaces(Fixture *f, const void *data) {
        begin(f, PROGRAM_PLAIN);
        g_assert_cmpint(program_open_in_namespaces(f->program, kernel_call(0)), ==, -EACCES);
        g_assert_cmpint(program_open_in_namespaces(f->program, kernel_call(1)), ==, -EACCES);
        g_assert_cmpint(program_open_in_namespaces(f->program, user_call(1)), ==, 0);
}

static void test_pid_namespace(Fixture *f, const void *data) {
        begin(f, PROGRAM_PID_NAMESPACE);
        g_assert_cmpint(program_open(f->program, kernel_call(0)), ==, -EACCES);
        g_assert_cmpint(program_open(f->program, kernel_call(1)), ==, -EACCES);
        g_assert_cmpint(program_open(f->program, user_call(1)), >=, 0);
}

/* A user namespace that the user has made takes nothing from a program, and gives it nothing. */
static void test_own_user_namespace(Fixture *f, const void *data) {
        pid_t other = f->native->actor->pid;

        begin_proving(f, PROGRAM_MAPPED, "sample-own count-kernel");
        g_assert_cmpint(program_open(f->program, kernel_call(0)), >=, 0);
        g_assert_cmpint(program_open_of_child(f->program, kernel_call(0)), ==, 0);
        g_assert_cmpint(open_proven(f, kernel_call(other)), ==, -EACCES);
        g_assert_cmpint(open_proven(f, user_call(other)), ==, -EACCES);
}

static void test_user_namespace_in_another(Fixture *f, const void *data) {
        begin(f, PROGRAM_NESTED);
        g_assert_cmpint(program_open(f->program, kernel_call(0)), ==, -EACCES);
}

static void test_user_namespace_of_root(Fixture *f, const void *data) {
        begin(f, PROGRAM_LENT);
        g_assert_cmpint(program_open(f->program, kernel_call(0)), ==, -EACCES);
}

/* ---- another architecture ---- */

static void test_other_architecture(Fixture *f, const void *data) {
        long pid;

        begin(f, PROGRAM_LOST);
        pid = program_call_i386(f->program, I386_GETPID, kernel_call(0));
        if (pid == -ENOSYS) {
                g_test_skip("not on this machine: calls of i386");
                return;
        }
        g_assert_cmpint(pid, ==, f->program->actor->pid);
        g_assert_cmpint(program_call_i386(f->program, I386_OTHER, kernel_call(0)), ==,
                        program_call_i386(f->native, I386_OTHER, kernel_call(0)));
        g_assert_cmpint(program_call_i386(f->program, I386_EVENT, kernel_call(0)), ==, -EACCES);
        g_assert_cmpint(program_call_i386(f->program, I386_EVENT, user_call(0)), >=, 0);
        g_assert_cmpint(program_open(f->program, kernel_call(0)), >=, 0);
}

/* ---- execve(2) ---- */

static void setuid_make(void) {
        g_autofree char *text = NULL;
        gsize size;

        g_assert_true(g_file_get_contents("/bin/sleep", &text, &size, NULL));
        g_assert_true(g_file_set_contents(SETUID, text, (gssize) size, NULL));
        g_assert_cmpint(chmod(SETUID, 04755), ==, 0);
}

static bool has_executed(const Program *p) {
        g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int) p->actor->pid), *comm = NULL;

        return g_file_get_contents(path, &comm, NULL, NULL) && strcmp(comm, SETUID_COMM "\n") == 0;
}

static uid_t effective_uid(const Program *p) {
        g_autofree char *path = g_strdup_printf("/proc/%d/status", (int) p->actor->pid),
                        *text = NULL;
        unsigned uid;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_assert_cmpint(sscanf(strstr(text, "\nUid:"), "\nUid: %*u %u", &uid), ==, 1);
        return uid;
}

static bool has_events(const Program *p) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int) p->actor->pid);
        g_autoptr(GDir) fds = g_dir_open(path, 0, NULL);
        const char *name;

        g_assert_nonnull(fds);
        while ((name = g_dir_read_name(fds))) {
                g_autofree char *link = g_build_filename(path, name, NULL),
                                *to = g_file_read_link(link, NULL);

                if (g_strcmp0(to, "anon_inode:[perf_event]") == 0)
                        return true;
        }
        return false;
}

/* The number of the task that called is then that of the thread that executes. */
static void exec_in_the_middle(Fixture *f, ProgramKind kind, uid_t becomes) {
        pid_t worker;

        setuid_make();
        begin(f, kind);
        worker = worker_pid();
        (void) kill(worker, SIGSTOP);
        program_open_and_exec(f->program, kernel_call(0), SETUID);
        await(has_executed(f->program));
        (void) kill(worker, SIGCONT);
        await(is_in(worker, SYS_ioctl)); /* it waits for the next call */
        g_assert_cmpint(effective_uid(f->program), ==, becomes);
        g_assert_false(has_events(f->program));
        (void) unlink(SETUID);
}

static void test_exec_without_privileges(Fixture *f, const void *data) {
        exec_in_the_middle(f, PROGRAM_PLAIN, user_id("alice"));
}

static void test_exec_setuid(Fixture *f, const void *data) {
        exec_in_the_middle(f, PROGRAM_PRIVILEGES, 0);
}

/* What the worker has read of it was alice's; what the opener then finds is root's. */
static void test_target_becomes_root(Fixture *f, const void *data) {
        pid_t other = f->native->actor->pid;
        int proof = client_proof(f->alice, other);

        setuid_make();
        begin_proving(f, PROGRAM_PLAIN, "sample-own count-kernel");
        program_open_begin(f->program, kernel_call(other));
        g_assert_cmpint(prover_hear(f->prover), ==, other);
        program_exec(f->native, SETUID);
        await(has_executed(f->native) && effective_uid(f->native) == 0);
        g_assert_true(prover_say(f->prover, other, proof));
        g_assert_cmpint(program_open_end(f->program), <, 0);
        g_assert_false(has_events(f->program));
        (void) unlink(SETUID);
}

/* ---- death between two steps ---- */

static void die(Fixture *f) {
        program_free(f->program);
        f->program = NULL;
}

/* The service, and everybody else's broker, is as it was. */
static void next_is_served(Fixture *f) {
        f->next = program_new("alice", PROGRAM_PLAIN);
        program_broker(f->next, f->alice, EVERYTHING);
        g_assert_cmpint(program_open(f->next, kernel_call(0)), >=, 0);
}

static void test_dies_before_it_is_received(Fixture *f, const void *data) {
        pid_t worker;

        begin(f, PROGRAM_PLAIN);
        worker = worker_pid();
        (void) kill(worker, SIGSTOP);
        program_open_begin(f->program, kernel_call(0));
        await(program_waits(f->program));
        die(f);
        (void) kill(worker, SIGCONT);
        next_is_served(f);
}

static void test_dies_while_it_is_read(Fixture *f, const void *data) {
        ProgramCall c = kernel_call(0);

        begin(f, PROGRAM_SLOW);
        c.where = PROGRAM_SLOW_ADDRESS;
        program_open_begin(f->program, c);
        await(is_in(worker_pid(), SYS_process_vm_readv));
        die(f);
        next_is_served(f);
}

static void test_dies_while_its_client_is_asked(Fixture *f, const void *data) {
        pid_t other = f->native->actor->pid;

        begin_proving(f, PROGRAM_PLAIN, EVERYTHING);
        program_open_begin(f->program, kernel_call(other));
        g_assert_cmpint(prover_hear(f->prover), ==, other);
        die(f); /* which ends its broker, before it hears the answer or after */
        (void) prover_say(f->prover, other, client_proof(f->alice, other));
        next_is_served(f);
}

static void dies_while_it_waits_for(Fixture *f, pid_t who) {
        begin(f, PROGRAM_PLAIN);
        (void) kill(who, SIGSTOP);
        program_open_begin(f->program, kernel_call(0));
        await(is_in(worker_pid(), SYS_recvmsg));
        die(f);
        (void) kill(who, SIGCONT);
        next_is_served(f);
}

static void test_dies_while_the_service_is_asked(Fixture *f, const void *data) {
        dies_while_it_waits_for(f, service_pid());
}

static void test_dies_while_the_opener_opens(Fixture *f, const void *data) {
        dies_while_it_waits_for(f, service_opener());
}

static void test_dies_before_it_is_given(Fixture *f, const void *data) {
        pid_t service = service_pid(), worker;

        begin(f, PROGRAM_PLAIN);
        worker = worker_pid();
        (void) kill(service, SIGSTOP);
        program_open_begin(f->program, kernel_call(0));
        await(is_in(worker, SYS_recvmsg));
        (void) kill(worker, SIGSTOP);
        (void) kill(service, SIGCONT);
        next_is_served(f); /* so the first is answered too */
        die(f);
        (void) kill(worker, SIGCONT);
}

#define CASE(path, f)                                                                              \
        g_test_add("/broker-tasks/" path, Fixture, NULL, fixture_set_up, f, fixture_tear_down)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        CASE("landlock", test_landlock);
        CASE("namespaces", test_namespaces);
        CASE("pid-namespace", test_pid_namespace);
        CASE("own-user-namespace", test_own_user_namespace);
        CASE("nested-user-namespace", test_user_namespace_in_another);
        CASE("user-namespace-of-root", test_user_namespace_of_root);
        CASE("other-architecture", test_other_architecture);
        CASE("exec", test_exec_without_privileges);
        CASE("exec-setuid", test_exec_setuid);
        CASE("target-exec-setuid", test_target_becomes_root);
        CASE("dies-unreceived", test_dies_before_it_is_received);
        CASE("dies-read", test_dies_while_it_is_read);
        CASE("dies-proven", test_dies_while_its_client_is_asked);
        CASE("dies-asked", test_dies_while_the_service_is_asked);
        CASE("dies-opened", test_dies_while_the_opener_opens);
        CASE("dies-answered", test_dies_before_it_is_given);
        return g_test_run();
}
