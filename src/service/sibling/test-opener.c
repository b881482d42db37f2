/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/sibling/opener.h"

#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/team.h"
#include "machine.h"
#include "perf/pmu/perf-open.h"
#include "perf/pmu/pmu.h"
#include "perf/process/procfs.h"

#define N_MANY 1000u /* of several messages */

typedef struct Fixture {
        Opener *opener;
        pid_t pid;
} Fixture;

/* The first child of this process. */
static pid_t child_pid(void) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int) getpid());
        g_autofree char *text = NULL;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        return atoi(text);
}

static void fixture_set_up(Fixture *f, const void *userdata) {
        g_assert_cmpint(opener_fork(&f->opener), ==, 0);
        f->pid = child_pid();
}

static void fixture_tear_down(Fixture *f, const void *userdata) {
        opener_free(f->opener);
        g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1); /* nobody is left */
}

static PerfOpen software(uint64_t config) {
        PerfOpen o;

        perf_open_init(&o, &(struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
                                                      .size = sizeof(struct perf_event_attr),
                                                      .config = config,
                                                      .disabled = 1,
                                                      .exclude_kernel = 1 });
        o.pid = getpid();
        return o;
}

static void close_all(PerfOpen *opens, size_t n) {
        for (size_t i = n; i-- > 0;)
                opens[i].fd = close_fd(opens[i].fd);
}

static bool need_events(void) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);
        bool can;

        perf_open_here(&o, 1);
        can = o.fd >= 0;
        if (!can)
                g_test_skip("needs the right to open events");
        close_all(&o, 1);
        return can;
}

static unsigned count_descriptors(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int) pid);
        g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
        unsigned n = 0;

        g_assert_nonnull(d);
        while (g_dir_read_name(d))
                n++;
        return n;
}

/* /dev/null thrice and the socket: what it opened it closes after its answer. */
static void assert_keeps_nothing(const Fixture *f) {
        gint64 end = g_get_monotonic_time() + (gint64) (20 * USEC_PER_SEC);

        while (count_descriptors(f->pid) != 4)
                g_assert_cmpint(g_get_monotonic_time(), <, end);
}

/* Its errors are the kernel's own, the size of its attr included. */
static void test_answers_are_the_kernels(Fixture *f, const void *userdata) {
        PerfOpen opens[9], here[G_N_ELEMENTS(opens)];

        if (!need_events())
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(opens); i++)
                opens[i] = software(PERF_COUNT_SW_PAGE_FAULTS);
        opens[1].attr.known.config = UINT32_MAX;                  /* ENOENT */
        attr_set_number(&opens[2].attr, ATTR_SIZE, 1);            /* E2BIG */
        opens[3].attr.known.sample_type = PERF_SAMPLE_STACK_USER; /* EINVAL: */
        opens[3].attr.known.sample_stack_user = 3;                /* not a multiple of 8 */
        opens[4].pid = INT32_MAX;                                 /* ESRCH */
        opens[5].cpu = 4096;                                      /* EINVAL */
        opens[6].group = open("/dev/null", O_RDONLY | O_CLOEXEC); /* EBADF */
        opens[7].flags = 1UL << 20;                               /* EINVAL */
        opens[8].pid = opens[6].group, opens[8].flags = PERF_FLAG_PID_CGROUP, opens[8].cpu = 0;
        memcpy(here, opens, sizeof(here));
        for (size_t i = 0; i < G_N_ELEMENTS(opens); i++) {
                perf_open_here(&here[i], 1);
                perf_open_all(&opens[i], 1);
                g_assert_cmpint(MIN(opens[i].fd, 0), ==, MIN(here[i].fd, 0));
                g_assert_cmpuint(opens[i].size, ==, here[i].size);
                g_assert_cmpint(i == 0, ==, opens[i].fd >= 0);
        }
        g_assert_cmpuint(opens[2].size, >=, ATTR_SIZE_MIN);
        close_fd(opens[6].group);
        close_all(opens, G_N_ELEMENTS(opens));
        close_all(here, G_N_ELEMENTS(here));
}

/* Whatever was authorized. */
static void test_what_nobody_may_is_refused(Fixture *f, const void *userdata) {
        PerfOpen sigtrap = software(PERF_COUNT_SW_PAGE_FAULTS), unknown = sigtrap;

        sigtrap.attr.known.sigtrap = sigtrap.attr.known.remove_on_exec = 1;
        perf_open_all(&sigtrap, 1);
        g_assert_cmpint(sigtrap.fd, ==, -EPERM);
        attr_set_number(&unknown.attr, ATTR_FLAGS, attr_flag(63));
        perf_open_all(&unknown, 1);
        g_assert_cmpint(unknown.fd, ==, -EPERM);
}

static void test_kprobes_are_refused(Fixture *f, const void *userdata) {
        PerfOpen o = software(0);
        PmuTable pmus;
        const Pmu *uprobe;

        if (machine_lacks(MACHINE_SYSFS))
                return;
        g_assert_cmpint(pmu_table_load(&pmus, "/sys"), ==, 0);
        uprobe = pmu_table_find(&pmus, "uprobe");
        if (uprobe) {
                o.attr.known.type = uprobe->type;
                perf_open_all(&o, 1);
                g_assert_cmpint(o.fd, ==, -EPERM);
        } else
                g_test_skip("there is no PMU uprobe");
        pmu_table_done(&pmus);
}

static void test_what_was_not_authorized_is_refused(Fixture *f, const void *userdata) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);

        if (!need_events())
                return;
        o.allowed = 0;
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, >=, 0);
        close_all(&o, 1);
        o.attr.known.exclude_kernel = 0;
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, ==, -EPERM);
        o.allowed = 1u << ATTR_NEED_KERNEL;
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, >=, 0);
        close_all(&o, 1);
        o.attr.known.sample_type = PERF_SAMPLE_REGS_USER;
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, ==, -EPERM);
}

/* Groups of seven do not end where messages do. */
static void test_many_are_opened_at_once(Fixture *f, const void *userdata) {
        g_autofree PerfOpen *opens = g_new(PerfOpen, N_MANY);
        uint64_t id, last = 0;

        if (!need_events())
                return;
        for (size_t i = 0; i < N_MANY; i++) {
                opens[i] = software(PERF_COUNT_SW_PAGE_FAULTS);
                if (i % 7 != 0)
                        opens[i].leader = i - i % 7;
        }
        perf_open_all(opens, N_MANY);
        for (size_t i = 0; i < N_MANY; i++) {
                g_assert_cmpint(opens[i].fd, >=, 0);
                g_assert_cmpint(fcntl(opens[i].fd, F_GETFD), ==, FD_CLOEXEC);
                g_assert_cmpint(ioctl(opens[i].fd, PERF_EVENT_IOC_ID, &id), ==, 0);
                g_assert_cmpuint(id, >, last); /* in their order */
                last = id;
        }
        assert_keeps_nothing(f);
        close_all(opens, N_MANY);
}

/* By itself it would stay disabled. */
static void test_the_first_is_enabled_before_the_last(Fixture *f, const void *userdata) {
        PerfOpen opens[3];

        if (!need_events())
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(opens); i++) {
                opens[i] = software(PERF_COUNT_SW_TASK_CLOCK);
                opens[i].attr.known.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
        }
        opens[2].enables_first = true;
        perf_open_all(opens, G_N_ELEMENTS(opens));
        for (size_t i = 0; i < G_N_ELEMENTS(opens); i++) {
                uint64_t value_and_enabled[2];

                g_assert_cmpint(opens[i].fd, >=, 0);
                g_assert_cmpint(read(opens[i].fd, value_and_enabled, sizeof(value_and_enabled)), ==,
                                sizeof(value_and_enabled));
                g_assert_cmpint(value_and_enabled[1] > 0, ==, i == 0);
        }
        close_all(opens, G_N_ELEMENTS(opens));
}

/* A thread that has ended is passed over, anything else is the end of it. */
static void test_the_first_failure_is_the_last(Fixture *f, const void *userdata) {
        g_autofree PerfOpen *opens = g_new(PerfOpen, N_MANY);

        if (!need_events())
                return;
        for (size_t i = 0; i < N_MANY; i++)
                opens[i] = software(PERF_COUNT_SW_PAGE_FAULTS);
        opens[1].pid = INT32_MAX;
        opens[2].leader = 1;
        opens[4].attr.known.config = UINT32_MAX;
        perf_open_all(opens, N_MANY);
        g_assert_cmpint(opens[0].fd, >=, 0);
        g_assert_cmpint(opens[1].fd, ==, -ESRCH);
        g_assert_cmpint(opens[2].fd, ==, -ECANCELED);
        g_assert_cmpint(opens[3].fd, >=, 0);
        g_assert_cmpint(opens[4].fd, ==, -ENOENT);
        for (size_t i = 5; i < N_MANY; i++)
                g_assert_cmpint(opens[i].fd, ==, -ECANCELED);
        close_all(opens, N_MANY);
}

/* The number that was asked for belongs to somebody else by now. */
static void test_a_number_that_was_reused_is_refused(Fixture *f, const void *userdata) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS), opens[3];
        pid_t child;

        if (!need_events())
                return;
        child = fork();
        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(pause());
        }
        o.process = o.pid = child;
        o.pidfd = (int) syscall(SYS_pidfd_open, child, 0);
        g_assert_cmpint(o.pidfd, >=, 0);
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, >=, 0);
        close_all(&o, 1);
        opens[2] = o;
        o.pid = getpid(); /* no thread of it */
        opens[0] = opens[1] = o;
        opens[1].leader = 0;
        perf_open_all(opens, 3);
        g_assert_cmpint(opens[0].fd, ==, -ESRCH);
        g_assert_cmpint(opens[1].fd, ==, -ECANCELED);
        g_assert_cmpint(opens[2].fd, >=, 0);
        close_all(opens, 3);
        g_assert_cmpint(kill(child, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, ==, -ESRCH);
        close_fd(o.pidfd);
}

static uint64_t status_caps(const char *status, const char *name) {
        return g_ascii_strtoull(procfs_field(status, name), NULL, 16);
}

static void test_it_has_nothing_that_it_does_not_need(Fixture *f, const void *userdata) {
        const uint64_t allowed = UINT64_C(1) << CAP_PERFMON | UINT64_C(1) << CAP_SYS_ADMIN;
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);
        _cleanup_free_ char *status = NULL;

        perf_open_all(&o, 1); /* an answer: it is ready */
        close_all(&o, 1);
        g_assert_cmpint(procfs_read(f->pid, "status", &status, NULL), ==, 0);
        g_assert_true(g_str_has_prefix(procfs_field(status, "Name"), "perfalloc-opene\n"));
        g_assert_cmphex(status_caps(status, "CapPrm") & ~allowed, ==, 0);
        g_assert_cmphex(status_caps(status, "CapEff") & ~allowed, ==, 0);
        g_assert_cmphex(status_caps(status, "CapInh"), ==, 0);
        g_assert_cmphex(status_caps(status, "CapAmb"), ==, 0);
        g_assert_cmpint(*procfs_field(status, "NoNewPrivs"), ==, '1');
        assert_keeps_nothing(f);
}

/* ---- lanes ---- */

typedef struct Lanes {
        CpuSet cpus;
        unsigned cpu, n_opened;
} Lanes;

static bool need_two_cpus(void) {
        if (sysconf(_SC_NPROCESSORS_ONLN) >= 2)
                return true;
        g_test_skip("needs two CPUs");
        return false;
}

static Lanes lanes_add(unsigned n) {
        Lanes l = { .cpu = (unsigned) sched_getcpu() };

        g_assert_cmpint(cpuset_add(&l.cpus, l.cpu), ==, 0);
        g_assert_cmpint(perf_open_add_lanes(n, &l.cpus), ==, 0);
        return l;
}

static void open_by_lane(void *userdata, size_t i) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);
        Lanes *l = userdata;

        perf_open_all(&o, 1);
        if (o.fd >= 0 && o.from == l->cpu && team_lane() > 0)
                g_atomic_int_inc(&l->n_opened);
        close_all(&o, 1);
}

static void thread_keep_off(pid_t tid, unsigned cpu) {
        cpu_set_t cpus;

        g_assert_cmpint(sched_getaffinity(tid, sizeof(cpus), &cpus), ==, 0);
        CPU_CLR(cpu, &cpus);
        g_assert_cmpint(sched_setaffinity(tid, sizeof(cpus), &cpus), ==, 0);
}

static void test_each_lane_is_served_on_its_cpus(Fixture *f, const void *userdata) {
        Team *team = NULL;
        Lanes l;

        if (!need_events() || !need_two_cpus())
                return;
        l = lanes_add(3);
        thread_keep_off(f->pid, l.cpu); /* the opener's first thread serves none of them */
        g_assert_cmpint(team_new(&team, 3, 1, &l.cpus), ==, 0);
        team_run(team, N_MANY, 1, open_by_lane, &l);
        g_assert_cmpuint(l.n_opened, ==, N_MANY);
        team_free(team);
        cpuset_done(&l.cpus);
}

/* The descriptor that this process opened last, where none was closed before. */
static int fd_last(void) {
        int fd = dup(0);

        close_fd(fd);
        return fd - 1;
}

static unsigned n_threads(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task", (int) pid);
        g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
        unsigned n = 0;

        g_assert_nonnull(d);
        while (g_dir_read_name(d))
                n++;
        return n;
}

/* How many threads of the opener may run on one CPU only. */
static unsigned n_confined(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task", (int) pid);
        g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
        unsigned n = 0;
        const char *tid;

        g_assert_nonnull(d);
        while ((tid = g_dir_read_name(d))) {
                cpu_set_t cpus;

                g_assert_cmpint(sched_getaffinity(atoi(tid), sizeof(cpus), &cpus), ==, 0);
                n += CPU_COUNT(&cpus) == 1;
        }
        return n;
}

static void test_lanes_are_let_go(Fixture *f, const void *userdata) {
        Lanes l;

        if (!need_two_cpus())
                return;
        l = lanes_add(3);
        g_assert_cmpuint(n_confined(f->pid), ==, 3);
        perf_open_let_go();
        g_assert_cmpuint(n_confined(f->pid), ==, 0);
        cpuset_done(&l.cpus);
}

/* As where the service has no memory left for it. */
static void test_a_lane_that_is_closed(Fixture *f, const void *userdata) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);
        unsigned before = count_descriptors(getpid());
        Lanes l;

        if (!need_events())
                return;
        l = lanes_add(1);
        g_assert_cmpuint(count_descriptors(getpid()), ==, before + 1);
        g_assert_cmpint(shutdown(fd_last(), SHUT_RDWR), ==, 0);
        while (n_threads(f->pid) > 1)
                (void) usleep(100);
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, >=, 0);
        close_all(&o, 1);
        cpuset_done(&l.cpus);
}

static void test_lanes_that_cannot_be_had(Fixture *f, const void *userdata) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);
        CpuSet cpus = CPUSET_NULL;

        if (!need_events())
                return;
        g_assert_cmpint(cpuset_add(&cpus, CPUSET_CPUS_MAX - 1), ==, 0);
        g_assert_cmpint(perf_open_add_lanes(3, &cpus), ==, -EAGAIN);
        assert_keeps_nothing(f);
        perf_open_all(&o, 1);
        g_assert_cmpint(o.fd, >=, 0);
        close_all(&o, 1);
        cpuset_done(&cpus);
}

/* ---- an opener that is no good ---- */

static void on_died(void *userdata) {
        unsigned *n = userdata;

        (*n)++;
}

static void test_its_death_is_noticed(Fixture *f, const void *userdata) {
        unsigned n_died = 0;
        sd_event *event;

        g_assert_cmpint(sd_event_new(&event), >=, 0);
        g_assert_cmpint(opener_attach_event(f->opener, event, on_died, &n_died), ==, 0);
        g_assert_cmpint(kill(f->pid, SIGKILL), ==, 0);
        while (n_died == 0)
                g_assert_cmpint(sd_event_run(event, UINT64_MAX), >=, 0);
        g_assert_cmpuint(n_died, ==, 1);
        f->opener = opener_free(f->opener);
        sd_event_unref(event);
}

/* In a process of its own, which ends: its exit status. */
static int open_after(int signal) {
        PerfOpen o = software(PERF_COUNT_SW_PAGE_FAULTS);
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                Opener *opener;

                if (opener_fork(&opener) < 0)
                        _exit(99);
                perf_open_all(&o, 1);
                close_all(&o, 1);
                (void) kill(child_pid(), signal);
                perf_open_all(&o, 1);
                _exit(98);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void test_nothing_goes_on_without_it(void) {
        g_assert_cmpint(open_after(SIGKILL), ==, EXIT_FAILURE);
}

static void test_nothing_waits_for_it_for_ever(void) {
        gint64 begun = g_get_monotonic_time();

        g_assert_cmpint(open_after(SIGSTOP), ==, EXIT_FAILURE);
        g_assert_cmpint(g_get_monotonic_time() - begun, >=, (gint64) OPENER_BOUND_USEC);
}

#define ADD(path, test)                                                                            \
        g_test_add("/opener/" path, Fixture, NULL, fixture_set_up, (test), fixture_tear_down)

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        ADD("answers-are-the-kernels", test_answers_are_the_kernels);
        ADD("what-nobody-may-is-refused", test_what_nobody_may_is_refused);
        ADD("kprobes-are-refused", test_kprobes_are_refused);
        ADD("what-was-not-authorized-is-refused", test_what_was_not_authorized_is_refused);
        ADD("many-are-opened-at-once", test_many_are_opened_at_once);
        ADD("the-first-is-enabled-before-the-last", test_the_first_is_enabled_before_the_last);
        ADD("the-first-failure-is-the-last", test_the_first_failure_is_the_last);
        ADD("a-number-that-was-reused-is-refused", test_a_number_that_was_reused_is_refused);
        ADD("it-has-nothing-that-it-does-not-need", test_it_has_nothing_that_it_does_not_need);
        ADD("each-lane-is-served-on-its-cpus", test_each_lane_is_served_on_its_cpus);
        ADD("lanes-are-let-go", test_lanes_are_let_go);
        ADD("a-lane-that-is-closed", test_a_lane_that_is_closed);
        ADD("lanes-that-cannot-be-had", test_lanes_that_cannot_be_had);
        ADD("its-death-is-noticed", test_its_death_is_noticed);
        g_test_add_func("/opener/nothing-goes-on-without-it", test_nothing_goes_on_without_it);
        g_test_add_func("/opener/nothing-waits-for-it-for-ever",
                        test_nothing_waits_for_it_for_ever);
        return g_test_run();
}
