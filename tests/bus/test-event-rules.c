/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OpenEvent: who may open what, and what is wrong with it. */

#include "event-util.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define DENIED        SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED
#define NOT_PERMITTED PERFALLOC_ERROR_NOT_PERMITTED
#define ATTR_SIZE     PERFALLOC_ERROR_ATTR_SIZE

enum { MEGABYTE = 1 << 20 };

/* dave may do what anybody in a local session may; alice everything but manage. */
typedef struct Fixture {
        Client *root, *alice, *dave;
        Actor *own, *foreign, *undumpable; /* dave's, bob's, dave's */
        unsigned descriptors;
        uint32_t kernel_size;
} Fixture;

static int play_idle(int fd, const void *data) {
        if (data)
                (void) prctl(PR_SET_DUMPABLE, 0);
        act_say(fd, 'r');
        (void) act_hear(fd);
        return 0;
}

static Actor *idle_new(const char *user, const void *data) {
        Actor *a = actor_new(user, play_idle, data);

        g_assert_cmpint(actor_hear(a), ==, 'r');
        return a;
}

static void fixture_set_up(Fixture *f, const void *data) {
        f->root = client_new("root");
        f->alice = client_new("alice");
        f->dave = client_new("dave");
        f->own = idle_new("dave", NULL);
        f->foreign = idle_new("bob", NULL);
        f->undumpable = idle_new("dave", "undumpable");
        f->kernel_size = (uint32_t) client_get_number(f->root, MANAGER, "AttrSize", 'u');
        f->descriptors = service_descriptors();
}

static void fixture_tear_down(Fixture *f, const void *data) {
        await(service_descriptors() <= f->descriptors);
        actor_free(f->own);
        actor_free(f->foreign);
        actor_free(f->undumpable);
        client_free(f->root);
        client_free(f->alice);
        client_free(f->dave);
}

/* ---- who may ---- */

/* On an own process. Each row is user space of the kernel's dummy event, and a bit. */
static const struct {
        const char *name; /* of the bit, as in perf_event_open(2) */
        PerfAttr attr;
        const char *action; /* NULL: none */
} bits[] = {
        { "callchain", { .sample_type = PERF_SAMPLE_CALLCHAIN }, NULL },
        { "user registers", { .sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = 1 }, NULL },
        { "task and mmap", { .task = 1, .mmap = 1, .mmap2 = 1, .comm = 1 }, NULL },
        { "context_switch", { .context_switch = 1 }, NULL },
        { "ksymbol", { .ksymbol = 1 }, NULL },
        { "inherit", { .inherit = 1 }, NULL },
        { "enable_on_exec", { .disabled = 1, .enable_on_exec = 1 }, NULL },
        { "namespaces", { .namespaces = 1 }, "count-kernel" },
        { "text_poke", { .text_poke = 1 }, "count-kernel" },
        { "PERF_SAMPLE_PHYS_ADDR", { .sample_type = PERF_SAMPLE_PHYS_ADDR }, "count-kernel" },
        { "PERF_SAMPLE_REGS_INTR",
          { .sample_type = PERF_SAMPLE_REGS_INTR, .sample_regs_intr = 1 },
          "count-kernel" },
        { "PERF_SAMPLE_RAW", { .sample_type = PERF_SAMPLE_RAW }, "count-raw" },
};

static void test_bits_need_what_they_tell(Fixture *f, const void *data) {
        for (size_t i = 0; i < G_N_ELEMENTS(bits); i++) {
                PerfAttr attr = bits[i].attr;
                Raw raw = { .attr = &attr, .pid = f->own->pid, .cpu = -1 };
                int fd;

                attr.type = PERF_TYPE_SOFTWARE;
                attr.config = PERF_COUNT_SW_DUMMY;
                attr.size = sizeof(attr);
                attr.exclude_kernel = 1;
                g_test_message("%s", bits[i].name);
                if (bits[i].action) {
                        raw_refused(f->dave, DENIED, bits[i].action, raw, "a{sv}", 0);
                        g_assert_nonnull(strstr(f->dave->refusal, bits[i].name));
                }
                fd = raw_open(bits[i].action ? f->alice : f->dave, raw, "a{sv}", 0);
                close_fd(fd);
        }
}

static void test_kernel(Fixture *f, const void *data) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_PAGE_FAULTS);
        Raw raw = { .attr = &attr, .pid = f->own->pid, .cpu = -1 };

        attr.exclude_kernel = 0;
        raw_refused(f->dave, DENIED, "org.perfalloc1.count-kernel", raw, "a{sv}", 0);
        g_assert_nonnull(strstr(f->dave->refusal, "exclude_kernel"));
        close_fd(raw_open(f->alice, raw, "a{sv}", 0));
}

/* An address in user space reveals nothing of the kernel, unless samples tell who touched it. */
static void test_breakpoint(Fixture *f, const void *data) {
        PerfAttr attr = breakpoint_attr(0);
        Raw raw = { .attr = &attr, .pid = f->own->pid, .cpu = -1 };

        attr.exclude_kernel = 0;
        close_fd(raw_open(f->dave, raw, "a{sv}", 0));
        attr.sample_period = 1;
        raw_refused(f->dave, DENIED, "org.perfalloc1.count-kernel", raw, "a{sv}", 0);
        attr.sample_period = 0;
        attr.bp_addr = (uint64_t) 1 << 63;
        raw_refused(f->dave, DENIED, "org.perfalloc1.count-kernel", raw, "a{sv}", 0);
}

static void test_tracepoint(Fixture *f, const void *data) {
        PerfAttr attr = software_attr(1);

        attr.type = PERF_TYPE_TRACEPOINT;
        raw_refused(f->dave, DENIED, "org.perfalloc1.count-raw",
                    (Raw){ .attr = &attr, .pid = f->own->pid, .cpu = -1 }, "a{sv}", 0);
}

static void test_scopes(Fixture *f, const void *data) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        const Raw foreign = { .attr = &attr, .pid = f->foreign->pid, .cpu = -1 },
                  undumpable = { .attr = &attr, .pid = f->undumpable->pid, .cpu = -1 },
                  cpu = { .attr = &attr, .pid = -1, .cpu = 0 };

        raw_refused(f->dave, DENIED, "org.perfalloc1.count-other", foreign, "a{sv}", 0);
        raw_refused(f->dave, DENIED, "org.perfalloc1.count-other", undumpable, "a{sv}", 0);
        raw_refused(f->dave, DENIED, "org.perfalloc1.count-system", cpu, "a{sv}", 0);
        close_fd(raw_open(f->alice, foreign, "a{sv}", 0));
        close_fd(raw_open(f->alice, cpu, "a{sv}", 0));
        close_fd(raw_open(f->root, undumpable, "a{sv}", 0));
        /* reading others' memory is more than counting */
        attr.sample_type = PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER;
        attr.sample_regs_user = 1;
        attr.sample_stack_user = 512;
        close_fd(raw_open(f->dave, (Raw){ .attr = &attr, .pid = f->own->pid, .cpu = -1 }, "a{sv}",
                          0));
        rig("rules 00-no-raw",
            "polkit.addRule(function(action, subject) {\n"
            "        if (action.id == 'org.perfalloc1.count-raw') return polkit.Result.NO;\n"
            "});\n");
        raw_refused(f->alice, SD_BUS_ERROR_ACCESS_DENIED, "org.perfalloc1.count-raw", foreign,
                    "a{sv}", 0);
        raw_refused(f->alice, SD_BUS_ERROR_ACCESS_DENIED, "PERF_SAMPLE_REGS_USER", cpu, "a{sv}", 0);
        rig("rules --remove 00-no-raw", NULL);
}

static void test_pinned(Fixture *f, const void *data) {
        PerfAttr pinned = breakpoint_attr(0), exclusive = breakpoint_attr(0);
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        pinned.pinned = 1;
        exclusive.exclusive = 1;
        /* of a process, as the kernel has it */
        close_fd(raw_open(f->alice, (Raw){ .attr = &pinned, .pid = f->own->pid, .cpu = -1 },
                          "a{sv}", 0));
        pinned.inherit = 1;
        close_fd(raw_open(f->alice, (Raw){ .attr = &pinned, .pid = f->own->pid, .cpu = -1 },
                          "a{sv}", 0));
        pinned.inherit = 0;
        for (size_t i = 0; i < 2; i++) {
                Client *c = i == 0 ? f->dave : f->root;

                raw_refused(c, NOT_PERMITTED, "pinned",
                            (Raw){ .attr = &pinned, .pid = -1, .cpu = 0 }, "a{sv}", 0);
                raw_refused(c, NOT_PERMITTED, "exclusive",
                            (Raw){ .attr = &exclusive, .pid = f->own->pid, .cpu = -1 }, "a{sv}", 0);
        }
        hold = hold_take(f->alice, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(f->alice, hold));
        raw_refused(f->dave, NOT_PERMITTED, "pinned", (Raw){ .attr = &pinned, .pid = -1, .cpu = 0 },
                    "a{sv}", 0);
        close_fd(raw_open(f->alice, (Raw){ .attr = &pinned, .pid = f->own->pid, .cpu = -1 },
                          "a{sv}", 0));
        close_fd(raw_open(f->alice, (Raw){ .attr = &exclusive, .pid = f->own->pid, .cpu = -1 },
                          "a{sv}", 0));
        lease = close_fd(lease);
        await(hold_is(f->alice, hold, "ended"));
}

/* Pinned events beyond the hold would take counters from programs that were not asked. */
static void test_pinned_beyond_the_hold(Fixture *f, const void *data) {
        PerfAttr attr = breakpoint_attr(0);
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        if (n_cpus() < 2) {
                g_test_skip("one CPU is all there is");
                return;
        }
        attr.pinned = 1;
        hold = hold_take(f->alice, &lease, "a{sv}", 2, BREAKPOINTS, "cpus", "s", "0");
        g_assert_true(hold_wait(f->alice, hold));
        close_fd(raw_open(f->alice, (Raw){ .attr = &attr, .pid = -1, .cpu = 0 }, "a{sv}", 0));
        close_fd(raw_open(f->alice, (Raw){ .attr = &attr, .pid = f->own->pid, .cpu = 0 }, "a{sv}",
                          0));
        raw_refused(f->alice, NOT_PERMITTED, "pinned", (Raw){ .attr = &attr, .pid = -1, .cpu = 1 },
                    "a{sv}", 0);
        lease = close_fd(lease);
        await(hold_is(f->alice, hold, "ended"));
}

static void test_exclusive_hold(Fixture *f, const void *data) {
        PerfAttr attr = breakpoint_attr(0);
        const Raw raw = { .attr = &attr, .pid = f->own->pid, .cpu = -1 };
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        hold = hold_take(f->alice, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        g_assert_true(hold_wait(f->alice, hold));
        raw_refused(f->dave, PERFALLOC_ERROR_BUSY, "exclusively", raw, "a{sv}", 0);
        raw_refused(f->root, PERFALLOC_ERROR_BUSY, "exclusively", raw, "a{sv}", 0);
        close_fd(raw_open(f->alice, raw, "a{sv}", 0));
        lease = close_fd(lease);
        await(hold_is(f->alice, hold, "ended"));
}

/* ---- always refused ---- */

static void test_never(Fixture *f, const void *data) {
        g_autofree char *text = NULL;
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);

        attr.sigtrap = 1;
        attr.remove_on_exec = 1;
        raw_refused(f->root, NOT_PERMITTED, "sigtrap",
                    (Raw){ .attr = &attr, .pid = f->own->pid, .cpu = -1 }, "a{sv}", 0);
        if (!g_file_get_contents("/sys/bus/event_source/devices/uprobe/type", &text, NULL, NULL))
                return;
        attr = software_attr(0);
        attr.type = (uint32_t) g_ascii_strtoull(text, NULL, 10);
        raw_refused(f->root, NOT_PERMITTED, "config1",
                    (Raw){ .attr = &attr, .pid = f->own->pid, .cpu = -1 }, "a{sv}", 0);
}

/* By byte of the attr, and the first unknown bit. */
static const struct {
        const char *name;
        unsigned offset, first, end;
} unknown[] = {
        { "sample_type", 24, 25, 64 },  { "read_format", 32, 5, 64 },
        { "flags", 40, 40, 64 },        { "branch_sample_type", 72, 20, 64 },
        { "__reserved_2", 110, 0, 16 }, { "aux_action", 116, 3, 32 },
};

static void test_unknown(Fixture *f, const void *data) {
        for (size_t i = 0; i < G_N_ELEMENTS(unknown); i++)
                for (unsigned bit = unknown[i].first; bit < unknown[i].end; bit++) {
                        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
                        g_autofree char *words = g_strdup_printf("bit %u of ", bit);

                        ((unsigned char *) &attr)[unknown[i].offset + bit / 8] |= 1u << bit % 8;
                        raw_refused(f->root, NOT_PERMITTED, words,
                                    (Raw){ .attr = &attr, .pid = f->own->pid, .cpu = -1 }, "a{sv}",
                                    0);
                        g_assert_nonnull(strstr(f->root->refusal, unknown[i].name));
                }
}

/* ---- bad input ---- */

static void test_sizes(Fixture *f, const void *data) {
        static const struct {
                size_t sent;
                uint32_t said;
        } sizes[] = {
                { 1, 0 },         { 8, 0 },       { 63, 0 },       { 63, 64 },
                { 64, 63 },       { 64, 1 },      { 128, 4 },      { 64, 65 },
                { 128, 4096 },    { 4096, 4097 }, { 4097, 128 },   { 4104, 0 },
                { 65536, 65536 }, { 65536, 128 }, { MEGABYTE, 0 }, { 128, UINT32_MAX },
        };
        g_autoptr(sd_bus_message) empty = client_message(f->dave, MANAGER, "OpenEvent");
        g_autofree unsigned char *bytes = g_malloc0(MEGABYTE);
        g_autofree char *expected = g_strdup_printf("expects %u", f->kernel_size);
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);

        memcpy(bytes, &attr, sizeof(attr));
        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
                memcpy(bytes + offsetof(PerfAttr, size), &sizes[i].said, sizeof(uint32_t));
                raw_refused(f->dave, ATTR_SIZE, expected,
                            (Raw){ .attr = bytes,
                                   .size = sizes[i].sent,
                                   .pid = f->own->pid,
                                   .cpu = -1 },
                            "a{sv}", 0);
        }
        g_assert_cmpint(sd_bus_message_append(empty, "ayiita{sv}", 0, 0, -1, UINT64_C(0), 0), >=,
                        0);
        client_refused_message(f->dave, ATTR_SIZE, empty);
        /* fields that this kernel does not have */
        attr.size = 4096;
        memcpy(bytes, &attr, sizeof(attr));
        bytes[4095] = 1;
        raw_refused(f->dave, ATTR_SIZE, expected,
                    (Raw){ .attr = bytes, .size = 4096, .pid = f->own->pid, .cpu = -1 }, "a{sv}",
                    0);
}

static void test_arguments(Fixture *f, const void *data) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        const int own = f->own->pid;
        const struct {
                const char *error, *words;
                Raw raw;
        } calls[] = {
                { SD_BUS_ERROR_INVALID_ARGS, "cpu", { &attr, 0, -1, -1, 0 } },
                { SD_BUS_ERROR_INVALID_ARGS, "CPU -2", { &attr, 0, own, -2, 0 } },
                { SD_BUS_ERROR_INVALID_ARGS, "CPU 100000", { &attr, 0, own, 100000, 0 } },
                { SD_BUS_ERROR_INVALID_ARGS, "CPU -2147483648", { &attr, 0, own, INT32_MIN, 0 } },
                { SD_BUS_ERROR_INVALID_ARGS, "flags", { &attr, 0, own, -1, 16 } },
                { SD_BUS_ERROR_INVALID_ARGS, "flags", { &attr, 0, own, -1, UINT64_C(1) << 63 } },
                { SD_BUS_ERROR_INVALID_ARGS, "flags", { &attr, 0, own, -1, PERF_FLAG_PID_CGROUP } },
                { PERFALLOC_ERROR_INVALID_PROCESS, "-2", { &attr, 0, -2, -1, 0 } },
                { PERFALLOC_ERROR_INVALID_PROCESS, "-2147483648", { &attr, 0, INT32_MIN, -1, 0 } },
                { PERFALLOC_ERROR_INVALID_PROCESS, "2147483647", { &attr, 0, INT32_MAX, -1, 0 } },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
                raw_refused(f->root, calls[i].error, calls[i].words, calls[i].raw, "a{sv}", 0);
        raw_refused(f->root, SD_BUS_ERROR_INVALID_ARGS, "no_such", (Raw){ .attr = &attr }, "a{sv}",
                    1, "no_such", "b", 1);
        raw_refused(f->root, SD_BUS_ERROR_INVALID_ARGS, "group", (Raw){ .attr = &attr }, "a{sv}", 1,
                    "group", "s", "leader");
}

static void test_descriptors(Fixture *f, const void *data) {
        static const char *const keys[] = { "pidfd", "group", "cgroup" };
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        int sockets[2];
        _cleanup_close_ int file = open("/dev/null", O_RDWR | O_CLOEXEC),
                            dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                            path = open("/", O_PATH | O_CLOEXEC), event = breakpoint_open(0, -1);
        int fds[6];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), ==, 0);
        memcpy(fds, (int[]){ file, dir, path, event, sockets[0], sockets[1] }, sizeof(fds));
        for (size_t key = 0; key < G_N_ELEMENTS(keys); key++)
                for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
                        raw_refused(f->root, PERFALLOC_ERROR_BAD_DESCRIPTOR, "",
                                    (Raw){ .attr = &attr, .pid = key == 1 ? f->own->pid : -1 },
                                    "a{sv}", 1, keys[key], "h", fds[i]);
        close_fd(sockets[0]);
        close_fd(sockets[1]);
}

static void test_zombie(Fixture *f, const void *data) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        pid_t pid = fork();
        siginfo_t info;

        if (pid == 0)
                _exit(0);
        g_assert_cmpint(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), ==, 0);
        for (size_t i = 0; i < 2; i++)
                raw_refused(i == 0 ? f->root : f->alice, PERFALLOC_ERROR_NO_SUCH_PROCESS, "ended",
                            (Raw){ .attr = &attr, .pid = pid, .cpu = -1 }, "a{sv}", 0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
        raw_refused(f->root, PERFALLOC_ERROR_NO_SUCH_PROCESS, "",
                    (Raw){ .attr = &attr, .pid = pid, .cpu = -1 }, "a{sv}", 0);
}

#define ADD(path, f) g_test_add(path, Fixture, NULL, fixture_set_up, f, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("/event-rules/bits-need-what-they-tell", test_bits_need_what_they_tell);
        ADD("/event-rules/the-kernel-needs-count-kernel", test_kernel);
        ADD("/event-rules/counting-a-users-address-does-not", test_breakpoint);
        ADD("/event-rules/tracepoints-need-count-raw", test_tracepoint);
        ADD("/event-rules/others-and-cpus-need-more", test_scopes);
        ADD("/event-rules/pinned-and-exclusive-need-a-hold", test_pinned);
        ADD("/event-rules/what-is-pinned-stays-in-the-hold", test_pinned_beyond_the_hold);
        ADD("/event-rules/an-exclusive-hold-keeps-others-out", test_exclusive_hold);
        ADD("/event-rules/signals-and-pointers-are-never-allowed", test_never);
        ADD("/event-rules/every-unknown-bit-is-refused-by-name", test_unknown);
        ADD("/event-rules/a-wrong-size-names-the-right-one", test_sizes);
        ADD("/event-rules/arguments-out-of-range", test_arguments);
        ADD("/event-rules/descriptors-are-what-they-claim", test_descriptors);
        ADD("/event-rules/a-zombie-counts-nothing", test_zombie);
        return g_test_run();
}
