/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OpenEvent: the event, and what it counts. */

#include "event-util.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WRITES = 10, PAGES = 8 };

/* ---- targets ---- */

static void *thread_write(void *arg) {
        int fd = *(const int *) arg;
        pid_t tid = gettid();

        if (write(fd, &tid, sizeof(tid)) != sizeof(tid) || act_hear(fd) != 'w')
                return NULL;
        watched_write(0, WRITES);
        return arg;
}

/* 'w': writes; 't': starts a thread that sends its tid and then writes; 'c': forks a child that
 * does. Answers 'd'. */
static int play_target(int fd, const void *data) {
        pthread_t thread;
        char what;

        act_say(fd, 'r');
        while ((what = act_hear(fd))) {
                if (what == 'w')
                        watched_write(0, WRITES);
                else if (what == 'c') {
                        pid_t pid = fork();

                        if (pid == 0) {
                                watched_write(0, WRITES);
                                _exit(0);
                        }
                        (void) waitpid(pid, NULL, 0);
                } else if (pthread_create(&thread, NULL, thread_write, &fd) == 0)
                        (void) pthread_join(thread, NULL);
                act_say(fd, 'd');
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
        g_assert_cmpint(actor_hear(a), ==, 'd');
}

/* ---- what it is ---- */

/* Whether the buffer has a sample of this process, at an address of user space. */
static bool buffer_has_sample(const struct perf_event_mmap_page *page) {
        const char *data = (const char *) page + sysconf(_SC_PAGESIZE);
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;

        while (tail < head) {
                struct {
                        struct perf_event_header header;
                        uint64_t ip;
                        uint32_t pid, tid;
                } r;

                memcpy(&r, data + tail, sizeof(r));
                if (r.header.type == PERF_RECORD_SAMPLE)
                        return r.pid == (uint32_t) getpid() && (int64_t) r.ip > 0;
                tail += r.header.size;
        }
        return false;
}

/* All of it in a process that is dave's. */
static int play_sampled(int fd, const void *data) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);
        size_t bytes = (1 + PAGES) * (size_t) sysconf(_SC_PAGESIZE);
        struct perf_event_mmap_page *page;
        int event;

        attr.sample_period = 100000;
        attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
        event = raw_open(dave, (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 0);
        page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        if (page == MAP_FAILED)
                return 2;
        await(buffer_has_sample(page));
        return 0;
}

static void test_samples(void) {
        g_autoptr(Actor) dave = actor_new("dave", play_sampled, NULL);
        int status;

        await(waitpid(dave->pid, &status, WNOHANG) == dave->pid);
        dave->pid = 0;
        g_assert_cmpint(status, ==, 0);
}

static void test_belongs_to_the_client_alone(void) {
        g_autoptr(Client) root = client_new("root"), dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        unsigned descriptors = service_descriptors();
        int fd = raw_open(dave, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);

        g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
        await(service_descriptors() <= descriptors);
        g_assert_cmpuint(client_count(root, "counter"), ==, 0);
        target_do(target, 'w');
        g_assert_cmpuint(raw_value(fd), ==, hits(WRITES));
        g_assert_cmpint(close(fd), ==, 0);
}

static void test_disabled_is_as_asked(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        _cleanup_close_ int fd = -1;

        attr.disabled = 1;
        fd = raw_open(dave, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
        target_do(target, 'w');
        g_assert_cmpuint(raw_value(fd), ==, 0);
        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        target_do(target, 'w');
        g_assert_cmpuint(raw_value(fd), ==, hits(WRITES));
}

static void test_size_is_the_kernels_business(void) {
        static const uint32_t sizes[] = { 0, 64, 72, 128, 4096 };
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        unsigned char bytes[4096] = {};

        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
                PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
                size_t size = sizes[i] > 0 ? sizes[i] : sizeof(attr);
                _cleanup_close_ int fd = -1;

                attr.size = sizes[i];
                memcpy(bytes, &attr, sizeof(attr));
                fd = raw_open(dave,
                              (Raw){ .attr = bytes, .size = size, .pid = target->pid, .cpu = -1 },
                              "a{sv}", 0);
        }
}

/* The kernel compares the attr with the event's, its size too. */
static void test_it_can_be_modified(void) {
        static const uint32_t sizes[] = { 72, 128, 144, 152, 4096 };
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");

        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
                _Alignas(PerfAttr) unsigned char bytes[4096] = {};
                PerfAttr attr = breakpoint_attr(1);
                _cleanup_close_ int fd = -1;

                attr.size = sizes[i];
                memcpy(bytes, &attr, sizeof(attr));
                fd = raw_open(
                        dave,
                        (Raw){ .attr = bytes, .size = sizes[i], .pid = target->pid, .cpu = -1 },
                        "a{sv}", 0);
                ((PerfAttr *) (void *) bytes)->bp_addr = (uintptr_t) &watched[0];
                g_assert_no_errno(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, bytes));
                target_do(target, 'w');
                g_assert_cmpuint(raw_value(fd), ==, hits(WRITES));
        }
}

/* ---- what it counts ---- */

static void test_inherit(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        _cleanup_close_ int fd = -1;

        attr.inherit = 1;
        fd = raw_open(dave, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
        target_do(target, 'c');
        g_assert_cmpuint(raw_value(fd), ==, hits(WRITES));
}

/* Unlike for OpenCounters, the number is a thread's, as in perf_event_open(2). */
static void test_thread(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave"), other = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        _cleanup_close_ int fd = -1, first = -1, pidfd = -1, wrong = -1;
        pid_t tid;

        pidfd = (int) syscall(SYS_pidfd_open, target->pid, 0);
        wrong = (int) syscall(SYS_pidfd_open, other->pid, 0);
        actor_tell(target, 't');
        g_assert_cmpint(read(target->fd, &tid, sizeof(tid)), ==, sizeof(tid));
        fd = raw_open(dave, (Raw){ .attr = &attr, .pid = tid, .cpu = -1 }, "a{sv}", 1, "pidfd", "h",
                      pidfd);
        first = raw_open(dave, (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 2, "pidfd", "h", pidfd,
                         "procfd", "h", client_proof(dave, target->pid));
        raw_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "not a thread of process",
                    (Raw){ .attr = &attr, .pid = tid, .cpu = -1 }, "a{sv}", 1, "pidfd", "h", wrong);
        target_do(target, 'w');
        g_assert_cmpuint(raw_value(fd), ==, hits(WRITES));
        g_assert_cmpuint(raw_value(first), ==, 0);
        target_do(target, 'w');
        g_assert_cmpuint(raw_value(first), ==, hits(WRITES));
        /* the thread is no more */
        raw_refused(dave, PERFALLOC_ERROR_NO_SUCH_PROCESS, "",
                    (Raw){ .attr = &attr, .pid = tid, .cpu = -1 }, "a{sv}", 0);
}

static void test_cpu(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) target = target_new("bob");
        PerfAttr attr = breakpoint_attr(0);
        uint64_t sum = 0;

        g_autofree int *fds = g_new(int, n_cpus());
        for (unsigned cpu = 0; cpu < n_cpus(); cpu++)
                fds[cpu] = raw_open(alice, (Raw){ .attr = &attr, .pid = -1, .cpu = (int) cpu },
                                    "a{sv}", 0);
        target_do(target, 'w');
        for (unsigned cpu = 0; cpu < n_cpus(); cpu++) {
                sum += raw_value(fds[cpu]);
                close_fd(fds[cpu]);
        }
        g_assert_cmpuint(sum, ==, hits(WRITES));
}

static void test_cgroup(void) {
        g_autoptr(Client) alice = client_new("alice"), dave = client_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);
        Raw raw = { .attr = &attr, .pid = -1, .flags = PERF_FLAG_PID_CGROUP };
        _cleanup_close_ int fd = -1, cgroup = cgroup_open();

        if (cgroup < 0) {
                g_test_skip("no cgroup file system here");
                return;
        }
        attr.exclude_kernel = 0;
        raw_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                    "org.perfalloc1.count-system", raw, "a{sv}", 1, "cgroup", "h", cgroup);
        fd = raw_open(alice, raw, "a{sv}", 1, "cgroup", "h", cgroup);
        await(raw_value(fd) > 0);
        raw_refused(alice, SD_BUS_ERROR_INVALID_ARGS, "'cgroup'", raw, "a{sv}", 0);
        raw.cpu = -1;
        raw_refused(alice, SD_BUS_ERROR_INVALID_ARGS, "cpu", raw, "a{sv}", 1, "cgroup", "h",
                    cgroup);
        raw.cpu = 0;
        raw.pid = 1;
        raw_refused(alice, SD_BUS_ERROR_INVALID_ARGS, "pid", raw, "a{sv}", 1, "cgroup", "h",
                    cgroup);
}

/* ---- groups ---- */

static void test_group(void) {
        g_autoptr(Client) dave = client_new("dave"), again = client_new("dave");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0), software = software_attr(PERF_COUNT_SW_TASK_CLOCK);
        _cleanup_close_ int leader = -1, sibling = -1;
        uint64_t values[3];

        attr.read_format = PERF_FORMAT_GROUP;
        attr.disabled = 1;
        software.read_format = PERF_FORMAT_GROUP;
        leader = raw_open(dave, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
        /* the same user, from any connection */
        sibling = raw_open(again, (Raw){ .attr = &software, .pid = target->pid, .cpu = -1 },
                           "a{sv}", 1, "group", "h", leader);
        g_assert_cmpint(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        target_do(target, 'w');
        g_assert_cmpint(read(leader, values, sizeof(values)), ==, sizeof(values));
        g_assert_cmpuint(values[0], ==, 2);
        g_assert_cmpuint(values[1], ==, hits(WRITES));
        g_assert_cmpuint(values[2], >, 0);
}

static void assert_no_leader(Client *c, pid_t pid, int leader) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);

        raw_refused(c, PERFALLOC_ERROR_BAD_DESCRIPTOR, "'group'",
                    (Raw){ .attr = &attr, .pid = pid, .cpu = -1 }, "a{sv}", 1, "group", "h",
                    leader);
}

static void test_leaders_of_others(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice"),
                          root = client_new("root");
        g_autoptr(Actor) target = target_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        g_autofree char *event = watched_event(0), *counter = NULL;
        g_autoptr(sd_bus_message) reply = NULL;
        _cleanup_close_ int theirs = -1, own = -1;
        int counters;

        theirs = raw_open(alice, (Raw){ .attr = &attr, .pid = target->pid, .cpu = -1 }, "a{sv}", 0);
        assert_no_leader(dave, target->pid, theirs);
        assert_no_leader(root, target->pid, theirs);
        /* the service has it too */
        counter = counter_open(dave, event, "a{sv}", 2, "pid", "u", (uint32_t) target->pid,
                               "procfd", "h", client_proof(dave, target->pid));
        reply = client_call(dave, counter, COUNTER, "GetFds", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "h"), >, 0);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'h', &counters), >, 0);
        assert_no_leader(dave, target->pid, counters);
        /* not from the service */
        own = breakpoint_open(0, -1);
        g_assert_cmpint(own, >=, 0);
        assert_no_leader(dave, target->pid, own);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/open-event/an-ordinary-user-gets-samples-in-a-buffer", test_samples);
        g_test_add_func("/open-event/the-event-belongs-to-the-client-alone",
                        test_belongs_to_the_client_alone);
        g_test_add_func("/open-event/disabled-is-as-asked-for", test_disabled_is_as_asked);
        g_test_add_func("/open-event/every-size-that-the-kernel-takes",
                        test_size_is_the_kernels_business);
        g_test_add_func("/open-event/its-attr-can-be-modified", test_it_can_be_modified);
        g_test_add_func("/open-event/inherit", test_inherit);
        g_test_add_func("/open-event/pid-may-be-a-thread", test_thread);
        g_test_add_func("/open-event/everybody-on-a-cpu", test_cpu);
        g_test_add_func("/open-event/a-cgroup", test_cgroup);
        g_test_add_func("/open-event/a-group", test_group);
        g_test_add_func("/open-event/leaders-are-events-that-the-user-got-here",
                        test_leaders_of_others);
        return g_test_run();
}
