/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The broker: what a program gets that knows nothing of the service, and which errors. */

#include "program.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define BAD_DESCRIPTOR PERFALLOC_ERROR_BAD_DESCRIPTOR
#define INVALID        SD_BUS_ERROR_INVALID_ARGS
#define DENIED         SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED
#define EVERYTHING     "sample-own count-kernel count-other count-system count-raw"

/* alice may do everything but manage. native is as program, without a broker. */
typedef struct Fixture {
        Client *alice, *bob;
        Program *program, *native;
        unsigned descriptors;
} Fixture;

static void fixture_set_up(Fixture *f, const void *allow) {
        f->alice = client_new("alice");
        f->bob = client_new("bob");
        f->native = program_new("alice", PROGRAM_NATIVE);
        (void) client_get_number(f->alice, MANAGER, "AttrSize", 'u'); /* which starts it */
        f->descriptors = service_descriptors();
        f->program = program_new("alice", PROGRAM_PLAIN);
        if (allow)
                program_broker(f->program, f->alice, allow);
}

static void fixture_tear_down(Fixture *f, const void *data) {
        program_free(f->program);
        await(service_descriptors() <= f->descriptors);
        await(workers_list(NULL, 0) == 0);
        program_free(f->native);
        client_free(f->alice);
        client_free(f->bob);
}

static ProgramCall call_of(PerfAttr attr, int pid, int cpu) {
        return (ProgramCall){ .attr = attr, .pid = pid, .cpu = cpu, .group = -1 };
}

/* ---- what it gets ---- */

static void test_counts_what_was_authorized(Fixture *f, const void *data) {
        ProgramCall own = call_of(kernel_attr(PERF_COUNT_SW_CONTEXT_SWITCHES), 0, -1),
                    cpu = call_of(kernel_attr(PERF_COUNT_SW_CPU_CLOCK), -1, 0);
        int fd = program_open(f->program, own);

        g_assert_cmpint(program_open(f->native, own), ==, -EACCES);
        g_assert_cmpint(program_open(f->native, cpu), ==, -EACCES);
        g_assert_cmpint(fd, >=, 0);
        (void) program_getpgid(f->program); /* which waits for us, and so is switched out */
        g_assert_cmpint((int) program_read(f->program, fd), >, 0);
        fd = program_open(f->program, cpu);
        g_assert_cmpint((int) program_read(f->program, fd), >, 0);
}

static void test_not_what_was_not_authorized(Fixture *f, const void *data) {
        PerfAttr user = software_attr(PERF_COUNT_SW_DUMMY);

        g_assert_cmpint(program_open(f->program, call_of(user, 0, -1)), >=, 0);
        g_assert_cmpint(program_open(f->program, call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1)),
                        ==, -EACCES);
        g_assert_cmpint(program_open(f->program, call_of(user, -1, 0)), ==, -EACCES);
}

static void test_threads_and_children(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);

        g_assert_cmpint(program_open_in_thread(f->program, c), >=, 0);
        g_assert_cmpint(program_open_in_child(f->program, c), ==, 0);
        c.pid = f->program->actor->pid;
        g_assert_cmpint(program_open(f->program, c), >=, 0);
}

static void test_starts_unless_disabled(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_CONTEXT_SWITCHES), 0, -1);
        int fd;

        c.attr.disabled = 1;
        fd = program_open(f->program, c);
        (void) program_getpgid(f->program);
        g_assert_cmpint((int) program_read(f->program, fd), ==, 0);
}

static void test_close_on_exec(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);

        g_assert_cmpint(program_flags(f->program, program_open(f->program, c)), ==, 0);
        c.flags = PERF_FLAG_FD_CLOEXEC;
        g_assert_cmpint(program_flags(f->program, program_open(f->program, c)), ==, FD_CLOEXEC);
}

static void test_groups(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);

        c.group = program_open(f->program, c);
        g_assert_cmpint(program_open(f->program, c), >=, 0);
        c.flags = PERF_FLAG_FD_NO_GROUP;
        g_assert_cmpint(program_open(f->program, c), >=, 0);
        /* it has no buffer yet that could be written to */
        c.flags = PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP;
        g_assert_cmpint(program_open(f->program, c), ==, -EINVAL);
}

static void test_cgroups(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, 0);

        c.flags = PERF_FLAG_PID_CGROUP;
        c.pid = program_open_cgroup(f->program);
        if (c.pid < 0) {
                g_test_skip("there is no cgroup for perf");
                return;
        }
        g_assert_cmpint(program_open(f->program, c), >=, 0);
        g_assert_cmpint(
                program_open(f->native, (ProgramCall){ .attr = c.attr,
                                                       .pid = program_open_cgroup(f->native),
                                                       .group = -1,
                                                       .flags = PERF_FLAG_PID_CGROUP }),
                ==, -EACCES);
}

/* ---- the kernel's errors ---- */

/* Each is wrong in one way, and refused by the kernel whoever asks. */
static const struct {
        const char *name;
        PerfAttr attr; /* with dummy and exclude_kernel where type is 0 */
        uint32_t size; /* of a newer kernel's attr: with byte_set behind it */
        size_t byte_set;
        int pid, cpu, group;
        unsigned long flags;
        const void *where;
} wrongs[] = {
        { .name = "no address", .where = (const void *) 8, .cpu = -1, .group = -1 },
        { .name = "a size that is too small", .size = 13, .cpu = -1, .group = -1 },
        { .name = "a size that is too large", .size = 5000, .cpu = -1, .group = -1 },
        { .name = "a field of a newer kernel",
          .size = 1024,
          .byte_set = 1000,
          .cpu = -1,
          .group = -1 },
        { .name = "unknown flags", .flags = 1ul << 20, .cpu = -1, .group = -1 },
        { .name = "no such PMU", .attr = { .type = 4711 }, .cpu = -1, .group = -1 },
        { .name = "no such event", .attr = { .type = 1, .config = 4711 }, .cpu = -1, .group = -1 },
        { .name = "a reserved bit", .attr = { .__reserved_2 = 1 }, .cpu = -1, .group = -1 },
        { .name = "a sample type", .attr = { .sample_type = 1ull << 40 }, .cpu = -1, .group = -1 },
        { .name = "a read format", .attr = { .read_format = 1ull << 40 }, .cpu = -1, .group = -1 },
        { .name = "frequency",
          .attr = { .freq = 1, .sample_freq = 1ull << 40 },
          .cpu = -1,
          .group = -1 },
        { .name = "no such process", .pid = INT32_MAX, .cpu = -1, .group = -1 },
        { .name = "a negative process", .pid = -2, .cpu = -1, .group = -1 },
        { .name = "everybody everywhere", .pid = -1, .cpu = -1, .group = -1 },
        { .name = "no such CPU", .cpu = 5000, .group = -1 },
        { .name = "a negative CPU", .cpu = -2, .group = -1 },
        { .name = "no such leader", .cpu = -1, .group = 4711 },
        { .name = "a leader that is none", .cpu = -1, .group = 3 },
        { .name = "a negative leader", .cpu = -1, .group = -2 },
        { .name = "no such cgroup", .pid = 4711, .flags = PERF_FLAG_PID_CGROUP, .group = -1 },
        { .name = "a cgroup of no descriptor",
          .pid = -1,
          .flags = PERF_FLAG_PID_CGROUP,
          .group = -1 },
        { .name = "no such cgroup everywhere",
          .pid = 4711,
          .cpu = -1,
          .flags = PERF_FLAG_PID_CGROUP,
          .group = -1 },
        { .name = "a cgroup everywhere",
          .pid = 3,
          .cpu = -1,
          .flags = PERF_FLAG_PID_CGROUP,
          .group = -1 },
        { .name = "a breakpoint of 3 bytes",
          .attr = { .type = PERF_TYPE_BREAKPOINT, .bp_type = 1, .bp_addr = 64, .bp_len = 3 },
          .cpu = -1,
          .group = -1 },
};

static ProgramCall wrong_call(size_t i) {
        ProgramCall c = { .attr = wrongs[i].attr,
                          .where = wrongs[i].where,
                          .pid = wrongs[i].pid,
                          .cpu = wrongs[i].cpu,
                          .group = wrongs[i].group,
                          .flags = wrongs[i].flags };

        if (c.attr.type == 0) {
                c.attr.type = PERF_TYPE_SOFTWARE;
                c.attr.config = PERF_COUNT_SW_DUMMY;
        }
        c.attr.exclude_kernel = c.attr.exclude_hv = 1;
        c.attr.size = wrongs[i].size ?: sizeof(PerfAttr);
        if (wrongs[i].byte_set)
                c.bytes[wrongs[i].byte_set] = 1;
        return c;
}

static void test_errors_are_the_kernels(Fixture *f, const void *data) {
        for (size_t i = 0; i < G_N_ELEMENTS(wrongs); i++) {
                ProgramCall c = wrong_call(i);
                int native = program_open(f->native, c), brokered = program_open(f->program, c);

                g_test_message("%s: %s", wrongs[i].name, g_strerror(-native));
                g_assert_cmpint(native, <, 0);
                g_assert_cmpint(brokered, ==, native);
        }
}

static uint32_t size_written(Program *p, ProgramCall c) {
        (void) program_open(p, c);
        return program_attr_size(p);
}

static void test_size_is_written_back(Fixture *f, const void *data) {
        ProgramCall c = wrong_call(1);
        uint32_t kernel = size_written(f->native, c);

        g_assert_cmpint(kernel, >=, PERF_ATTR_SIZE_VER0); /* its own, not that of the headers */
        g_assert_cmpint(size_written(f->program, c), ==, kernel);
}

static void test_sizes(Fixture *f, const void *data) {
        static const uint32_t sizes[] = { 0, 64, 72, 80, 96, 104, 112, 120, 128, 136, 4096 };

        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
                ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);

                c.attr.size = sizes[i];
                g_assert_cmpint(program_open(f->program, c), >=, 0);
        }
}

/* perf finds out in this way which fields a kernel knows. */
static void test_unknown_bits(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);

        c.attr.__reserved_1 = 1ull << 20;
        g_assert_cmpint(program_open(f->program, c), ==, -EINVAL);
}

static void test_pinned_on_own_processes(Fixture *f, const void *data) {
        ProgramCall c = call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1);

        c.attr.pinned = 1;
        g_assert_cmpint(program_open(f->program, c), >=, 0);
        c.attr.inherit = 1; /* as PAPI's inherited events are */
        g_assert_cmpint(program_open(f->program, c), >=, 0);
        c.attr.inherit = 0;
        c.pid = -1;
        c.cpu = 0;
        g_assert_cmpint(program_open(f->program, c), ==, -EACCES);
}

/* ---- holds ---- */

static void test_exclusive_hold_of_another(Fixture *f, const void *data) {
        g_autoptr(Client) root = client_new("root");
        ProgramCall c = call_of(breakpoint_attr(0), 0, -1);
        g_autofree char *hold = NULL;
        int lease;

        hold = hold_take(root, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        g_assert_true(hold_wait(root, hold));
        g_assert_cmpint(program_open(f->program, c), ==, -EBUSY);
        hold_release(root, hold);
        close(lease);
        g_assert_cmpint(program_open(f->program, c), >=, 0);
}

/* ---- the method ---- */

static void test_arguments(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("alice");
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC),
            name = memfd_create("anon_inode:seccomp notify", MFD_CLOEXEC);

        client_refused(c, BAD_DESCRIPTOR, MANAGER, "Broker", "ha{sv}", null, 0);
        client_refused(c, BAD_DESCRIPTOR, MANAGER, "Broker", "ha{sv}", name, 0);
        client_refused(c, INVALID, MANAGER, "Broker", "ha{sv}", f->program->listener, 1, "allow",
                       "as", 1, "manage");
        g_assert_nonnull(strstr(c->refusal, "allow"));
        client_refused(c, INVALID, MANAGER, "Broker", "ha{sv}", f->program->listener, 1, "allow",
                       "as", 0);
        client_refused(c, INVALID, MANAGER, "Broker", "ha{sv}", f->program->listener, 1, "allows",
                       "as", 1, "sample-own");
        g_assert_nonnull(strstr(c->refusal, "allows"));
        close(null);
        close(name);
}

/* Two workers would answer for the same program, each with permissions of its own. */
static void test_listener_has_one_broker(Fixture *f, const void *data) {
        g_autoptr(Program) p = program_new("alice", PROGRAM_PLAIN);
        int again = dup(p->listener);

        program_broker(p, f->alice, "sample-own");
        client_refused(f->alice, PERFALLOC_ERROR_BROKER_BUSY, MANAGER, "Broker", "ha{sv}", again, 1,
                       "allow", "as", 1, "count-kernel");
        /* polkit is not asked */
        client_refused(f->bob, PERFALLOC_ERROR_BROKER_BUSY, MANAGER, "Broker", "ha{sv}", again, 0);
        close(again);
        g_assert_cmpint(program_open(p, call_of(software_attr(PERF_COUNT_SW_DUMMY), 0, -1)), >=, 0);
        g_assert_cmpint(program_open(p, call_of(kernel_attr(PERF_COUNT_SW_DUMMY), 0, -1)), ==,
                        -EACCES);
}

static sd_bus_message *await_call(Client *c, const char *method) {
        g_autoptr(sd_bus_message) m = NULL;

        while (!m || sd_bus_message_is_method_call(m, NULL, method) <= 0) {
                int r;

                m = sd_bus_message_unref(m);
                r = sd_bus_process(c->bus, &m);
                if (r == 0)
                        r = sd_bus_wait(c->bus, AWAIT_SEC * UINT64_C(1000000));
                g_assert_cmpint(r, >, 0);
        }
        return g_steal_pointer(&m);
}

/* A service dies before it replies, and the next one knows the broker of the listener. */
static void test_reply_is_lost(void) {
        const char *command[] = { "as", "alice", "perfallocctl", "run", "true", NULL };
        Client *first = client_new("perfalloc");
        g_autoptr(Client) next = client_new("perfalloc");
        g_autoptr(sd_bus_message) lost = NULL, again = NULL;
        GPid pid;
        int status;

        rig("service-mask", NULL);
        rig("service-stop", NULL);
        bus_check(sd_bus_request_name(first->bus, PERFALLOC_BUS_NAME, 0), "sd_bus_request_name");
        bus_check(sd_bus_request_name(next->bus, PERFALLOC_BUS_NAME, SD_BUS_NAME_QUEUE),
                  "sd_bus_request_name");
        g_assert_true(g_spawn_async(NULL, (char **) command, NULL,
                                    G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                    &pid, NULL));
        lost = await_call(first, "Broker");
        client_free(first);
        again = await_call(next, "Broker");
        bus_check(sd_bus_reply_method_errorf(again, PERFALLOC_ERROR_BROKER_BUSY, "busy"),
                  "sd_bus_reply_method_errorf");
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
        rig("service-unmask", NULL);
}

static void test_polkit(Fixture *f, const void *data) {
        g_autoptr(Program) p = program_new("bob", PROGRAM_PLAIN);
        ProgramCall c = call_of(software_attr(PERF_COUNT_SW_DUMMY), 0, -1);

        client_refused(f->bob, DENIED, MANAGER, "Broker", "ha{sv}", p->listener, 0);
        g_assert_nonnull(strstr(f->bob->refusal, "org.perfalloc1.sample-own"));
        p->listener = close_fd(p->listener);
        g_assert_cmpint(program_open(p, c), ==, -ENOSYS);
}

static void test_feature(Fixture *f, const void *data) {
        g_autoptr(sd_bus_message) m = client_get_variant(f->alice, MANAGER, "Features", "as");
        g_auto(GStrv) features = NULL;

        g_assert_cmpint(sd_bus_message_read_strv(m, &features), >=, 0);
        g_assert_true(g_strv_contains((const char *const *) features, "broker"));
}

#define CASE(path, allow, f)                                                                       \
        g_test_add("/broker/" path, Fixture, allow, fixture_set_up, f, fixture_tear_down)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        CASE("counts", EVERYTHING, test_counts_what_was_authorized);
        CASE("counts-no-more", "sample-own", test_not_what_was_not_authorized);
        CASE("threads", EVERYTHING, test_threads_and_children);
        CASE("disabled", EVERYTHING, test_starts_unless_disabled);
        CASE("cloexec", EVERYTHING, test_close_on_exec);
        CASE("groups", EVERYTHING, test_groups);
        CASE("cgroups", EVERYTHING, test_cgroups);
        CASE("errors", EVERYTHING, test_errors_are_the_kernels);
        CASE("size-written", EVERYTHING, test_size_is_written_back);
        CASE("sizes", EVERYTHING, test_sizes);
        CASE("unknown-bits", EVERYTHING, test_unknown_bits);
        CASE("pinned", EVERYTHING, test_pinned_on_own_processes);
        CASE("exclusive", EVERYTHING, test_exclusive_hold_of_another);
        CASE("arguments", NULL, test_arguments);
        CASE("one-for-a-listener", NULL, test_listener_has_one_broker);
        CASE("polkit", NULL, test_polkit);
        CASE("feature", NULL, test_feature);
        g_test_add_func("/broker/reply-is-lost", test_reply_is_lost);
        return g_test_run();
}
