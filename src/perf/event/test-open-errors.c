/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Each of the sixteen errors of perf_event_open(2), provoked in the kernel, and its refusal. Where
 * this machine's kernel cannot return one, the test is skipped and says why.
 */

#include "perf/event/explain.h"

#include <fcntl.h>
#include <glib.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "machine.h"

#define SKIP  (-1)
#define PMUS  "/sys/bus/event_source/devices/"
#define TRACE "/sys/kernel/tracing/"

static Pmu pmu = { .name = (char *) "some_pmu" };
static volatile uint64_t watched[8];

/* An error, how to provoke it, and why that may be impossible. The function runs in a separate
 * process; it returns the errno, 0 when the event opened, or SKIP, and sets attr to what it tried.
 */
typedef struct Provocation {
        int error, code;
        int (*provoke)(struct perf_event_attr *attr);
        const char *otherwise;
        const char *words; /* of the message: cause or remedy */
} Provocation;

static struct perf_event_attr software(void) {
        return (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
                                         .config = PERF_COUNT_SW_DUMMY,
                                         .size = sizeof(struct perf_event_attr),
                                         .exclude_kernel = 1 };
}

static int open_at(struct perf_event_attr *attr, pid_t pid, int cpu, int group) {
        return syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC) < 0 ? errno
                                                                                             : 0;
}

static int open_own(struct perf_event_attr *attr) {
        return open_at(attr, 0, -1, -1);
}

static bool text_write(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);

        close_fd(fd);
        return done;
}

static bool text_number(const char *path, long *ret) {
        g_autofree char *text = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL))
                return false;
        *ret = strtol(text, NULL, 10);
        return true;
}

/* ---- one each ---- */

static int provoke_e2big(struct perf_event_attr *attr) {
        attr->size = PERF_ATTR_SIZE_VER0 - 8;
        return open_own(attr);
}

static int provoke_eacces(struct perf_event_attr *attr) {
        long paranoid;

        if (!text_number("/proc/sys/kernel/perf_event_paranoid", &paranoid) || paranoid < 2)
                return SKIP;
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
                return SKIP;
        attr->exclude_kernel = 0;
        return open_own(attr);
}

static int provoke_ebadf(struct perf_event_attr *attr) {
        return open_at(attr, 0, -1, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/* Two events of an exclusive PMU. Without one (only Intel's PT and BTS are exclusive) the kernel
 * cannot return the error, and only the text is tested. */
static int provoke_ebusy(struct perf_event_attr *attr) {
        static const char *const pmus[] = { PMUS "intel_bts/type", PMUS "intel_pt/type" };

        for (size_t i = 0; i < G_N_ELEMENTS(pmus); i++) {
                long type;

                if (!text_number(pmus[i], &type))
                        continue;
                attr->type = (uint32_t) type;
                attr->config = 0;
                attr->disabled = 1;
                if (open_own(attr) == 0)
                        return open_own(attr);
        }
        return EBUSY;
}

static int provoke_efault(struct perf_event_attr *attr) {
        return open_own((struct perf_event_attr *) (uintptr_t) 8);
}

/* A uprobe that is already traced through tracefs, in a file that is never run: any instruction
 * will do. */
static int provoke_eintr(struct perf_event_attr *attr) {
        const char *on = TRACE "events/perfalloc/test/enable", *list = TRACE "uprobe_events";
        g_autofree char *probe = NULL;
        FILE *file = tmpfile();
        long id;
        int error;

        if (!file || ftruncate(fileno(file), 4096) < 0 || unshare(CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            (mount("tracefs", TRACE, "tracefs", 0, NULL) < 0 && errno != EBUSY)) /* it exists */
                return SKIP;
        probe = g_strdup_printf("p:perfalloc/test /proc/self/fd/%d:0x10\n", fileno(file));
        if (!text_write(list, probe) || !text_write(on, "1\n") ||
            !text_number(TRACE "events/perfalloc/test/id", &id))
                return SKIP;
        attr->type = PERF_TYPE_TRACEPOINT;
        attr->config = (uint64_t) id;
        error = open_own(attr);
        (void) text_write(on, "0\n");
        (void) text_write(list, "-:perfalloc/test\n");
        return error;
}

static int provoke_einval(struct perf_event_attr *attr) {
        attr->read_format = UINT64_C(1) << 63;
        return open_own(attr);
}

/* Even with all privileges but CAP_SYS_ADMIN. */
static int provoke_eperm(struct perf_event_attr *attr) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct caps[2];

        if (syscall(SYS_capget, &header, caps) < 0)
                return SKIP;
        caps[0].effective &= ~(1u << CAP_SYS_ADMIN);
        if (!(caps[1].effective & 1u << (CAP_PERFMON - 32)) ||
            syscall(SYS_capset, &header, caps) < 0)
                return SKIP;
        *attr = (struct perf_event_attr){ .type = PERF_TYPE_BREAKPOINT,
                                          .size = sizeof(*attr),
                                          .bp_type = HW_BREAKPOINT_W,
                                          .bp_addr = (uint64_t) -0x7f000000,
                                          .bp_len = 8 };
        return open_own(attr);
}

static int provoke_emfile(struct perf_event_attr *attr) {
        const struct rlimit none = { 0, 0 };

        return setrlimit(RLIMIT_NOFILE, &none) < 0 ? SKIP : open_own(attr);
}

/* The last CPU, offline for a moment. */
static int provoke_enodev(struct perf_event_attr *attr) {
        int cpu = (int) sysconf(_SC_NPROCESSORS_CONF) - 1, error;
        g_autofree char *path = g_strdup_printf("/sys/devices/system/cpu/cpu%d/online", cpu);
        long was;

        if (!text_number(path, &was) || (was != 0 && !text_write(path, "0\n")))
                return SKIP;
        attr->exclude_kernel = 0;
        error = open_at(attr, -1, cpu, -1);
        if (was != 0)
                (void) text_write(path, "1\n");
        return error;
}

static int provoke_enoent(struct perf_event_attr *attr) {
        attr->type = INT32_MAX;
        return open_own(attr);
}

static int provoke_enospc(struct perf_event_attr *attr) {
        *attr = (struct perf_event_attr){ .type = PERF_TYPE_BREAKPOINT,
                                          .size = sizeof(*attr),
                                          .bp_type = HW_BREAKPOINT_W,
                                          .bp_len = 8,
                                          .exclude_kernel = 1 };
        for (unsigned i = 0; i < 64; i++) {
                int error;

                attr->bp_addr = (uintptr_t) &watched[i % 8];
                error = open_own(attr);
                if (error != 0)
                        return error;
        }
        return 0;
}

/* By a filter like a container's: a kernel with perf events does not return it by itself here. */
static int provoke_enosys(struct perf_event_attr *attr) {
        struct sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = { .len = G_N_ELEMENTS(rules), .filter = rules };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                return SKIP;
        return open_own(attr);
}

static int provoke_eopnotsupp(struct perf_event_attr *attr) {
        attr->config = PERF_COUNT_SW_PAGE_FAULTS;
        attr->sample_period = 1;
        attr->sample_type = PERF_SAMPLE_BRANCH_STACK;
        attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
        return open_own(attr);
}

static int provoke_eoverflow(struct perf_event_attr *attr) {
        attr->sample_period = 1;
        attr->sample_type = PERF_SAMPLE_CALLCHAIN;
        attr->sample_max_stack = UINT16_MAX;
        return open_own(attr);
}

static int provoke_esrch(struct perf_event_attr *attr) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        (void) waitpid(pid, NULL, 0);
        return open_at(attr, pid, -1, -1);
}

static const Provocation provocations[] = {
        { E2BIG, REFUSAL_ATTR_SIZE, provoke_e2big, NULL, "AttrSize" },
        { EACCES, REFUSAL_PRIVILEGE_NEEDED, provoke_eacces,
          "kernel.perf_event_paranoid is below 2: nobody is refused for want of privilege",
          "perf_event_paranoid is" },
        { EBADF, REFUSAL_BAD_DESCRIPTOR, provoke_ebadf, NULL, "group leader" },
        { EBUSY, REFUSAL_BUSY, provoke_ebusy, NULL, "perfallocctl users" },
        { EFAULT, REFUSAL_BAD_ADDRESS, provoke_efault, NULL, "mapped" },
        { EINTR, REFUSAL_MIXED_TRACING, provoke_eintr,
          "it takes root, and a kernel with uprobe events in tracefs, to trace a uprobe in another "
          "way",
          "tracefs" },
        { EINVAL, REFUSAL_INVALID_EVENT, provoke_einval, NULL, "group must fit" },
        { EPERM, REFUSAL_NOT_PERMITTED, provoke_eperm,
          "it takes CAP_PERFMON to be told that CAP_SYS_ADMIN is missing", "CAP_SYS_ADMIN" },
        { EMFILE, REFUSAL_TOO_MANY_DESCRIPTORS, provoke_emfile, NULL, "LimitNOFILE=" },
        { ENODEV, REFUSAL_NOT_ON_THIS_CPU, provoke_enodev, "no CPU can be taken offline here",
          "offline" },
        { ENOENT, REFUSAL_NO_SUCH_EVENT, provoke_enoent, NULL, "perfallocctl" },
        { ENOSPC, REFUSAL_NO_COUNTER_LEFT, provoke_enospc, NULL, "perfallocctl users" },
        { ENOSYS, REFUSAL_NOT_IMPLEMENTED, provoke_enosys, "no seccomp filters here", "seccomp" },
        { EOPNOTSUPP, REFUSAL_NOT_SUPPORTED, provoke_eopnotsupp, NULL, "branch records" },
        { EOVERFLOW, REFUSAL_STACK_TOO_DEEP, provoke_eoverflow, NULL, "perf_event_max_stack" },
        { ESRCH, REFUSAL_NO_SUCH_PROCESS, provoke_esrch, NULL, "ended" },
};

/* The child sends its result and the attr through a pipe. */
typedef struct Found {
        int error;
        struct perf_event_attr attr;
} Found;

static Found provoke(const Provocation *p) {
        Found found = { .attr = software() };
        int fds[2], status;
        pid_t pid;

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        pid = fork();
        if (pid == 0) {
                found.error = p->provoke(&found.attr);
                _exit(write(fds[1], &found, sizeof(found)) != sizeof(found));
        }
        close_fd(fds[1]);
        g_assert_cmpint(read(fds[0], &found, sizeof(found)), ==, sizeof(found));
        close_fd(fds[0]);
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
        return found;
}

static void test_error(gconstpointer data) {
        const Provocation *p = data;
        Found found = provoke(p);
        const Event event = { .name = (char *) "what-was-asked", .attr = found.attr, .pmu = &pmu };
        Refusal why = REFUSAL_NULL;

        if (found.error == SKIP) {
                g_test_skip(p->otherwise);
                return;
        }
        g_assert_cmpstr(strerrorname_np(found.error), ==, strerrorname_np(p->error));
        g_assert_cmpint(explain_open(found.error, &event, 4242, 0, &why), ==, p->code);
        g_test_message("%s", why.text);
        g_assert_nonnull(strstr(why.text, "what-was-asked"));
        g_assert_nonnull(strstr(why.text, p->words));
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(provocations); i++) {
                g_autofree char *path =
                        g_strdup_printf("/open-errors/%s", strerrorname_np(provocations[i].error));

                g_test_add_data_func(path, &provocations[i], test_error);
        }
        return g_test_run();
}
