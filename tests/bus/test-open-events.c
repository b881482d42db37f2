/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OpenEvents: a raw event on all threads of a process or of its tree, and the stream of it. */

#include "attach-util.h"
#include "event-util.h"
#include "storm.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <perfalloc/event.h>

enum { THREADS = 1000, PAGES = 8 };

/* ---- calls ---- */

typedef struct Opened {
        unsigned n;
        int stream;
} Opened;

static void opened_done(Opened *o) {
        o->stream = close_fd(o->stream);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opened, opened_done)

typedef struct OpenedEvent {
        pid_t tid;
        int fd;
} OpenedEvent;

static void event_clear(void *data) {
        close_fd(((OpenedEvent *) data)->fd);
}

static sd_bus_message *events_message(Client *c, const PerfAttr *attr, uint64_t flags, int proof,
                                      va_list ap) {
        sd_bus_message *m = client_message(c, MANAGER, "OpenEvents");

        g_assert_cmpint(sd_bus_message_append_array(m, 'y', attr, sizeof(*attr)), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "t", flags), >=, 0);
        raw_append_options(m, proof, ap);
        return m;
}

static Opened opened_read(sd_bus_message *reply) {
        uint32_t n;
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "uh", &n, &fd), >, 0);
        return (Opened){ n, fcntl(fd, F_DUPFD_CLOEXEC, 3) };
}

/* pid 0: the caller's process. The options are n, ... as of "a{sv}". */
static Opened events_open(Client *c, const PerfAttr *attr, pid_t pid, ...) {
        g_autoptr(sd_bus_message) m = NULL, reply = NULL;
        va_list ap;

        va_start(ap, pid);
        m = events_message(c, attr, 0, pid > 0 ? client_proof(c, pid) : -1, ap);
        va_end(ap);
        reply = client_call_message(c, m);
        return opened_read(reply);
}

static uint64_t events_send(Client *c, const PerfAttr *attr, pid_t pid, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        uint64_t cookie;
        va_list ap;

        va_start(ap, pid);
        m = events_message(c, attr, 0, client_proof(c, pid), ap);
        va_end(ap);
        g_assert_cmpint(sd_bus_send(c->bus, m, &cookie), >=, 0);
        return cookie;
}

/* Without a proof of its own. */
static void events_refused(Client *c, const char *error, const char *words, const PerfAttr *attr,
                           uint64_t flags, ...) {
        g_autoptr(sd_bus_message) m = NULL;
        va_list ap;

        va_start(ap, flags);
        m = events_message(c, attr, flags, -1, ap);
        va_end(ap);
        client_refused_message(c, error, m);
        g_test_message("%s", c->refusal);
        if (!strstr(c->refusal, words))
                g_error("the refusal does not say '%s' but: %s", words, c->refusal);
}

/* The next one; false: the stream has ended. */
static bool event_receive(int stream, OpenedEvent *ret) {
        uint64_t tid;

        ret->fd = perfalloc_event_receive(stream, &tid);
        if (ret->fd == -ENODATA)
                return false;
        g_assert_cmpint(ret->fd, >=, 0);
        g_assert_cmpint(fcntl(ret->fd, F_GETFD) & FD_CLOEXEC, !=, 0);
        ret->tid = (pid_t) tid;
        return true;
}

/* All of them, and the end. */
static GArray *events_receive(const Opened *o) {
        GArray *events = g_array_new(false, false, sizeof(OpenedEvent));
        OpenedEvent event;

        g_array_set_clear_func(events, event_clear);
        while (event_receive(o->stream, &event))
                g_array_append_val(events, event);
        g_assert_cmpuint(events->len, ==, o->n);
        return events;
}

static GArray *events_get(Client *c, const PerfAttr *attr, pid_t pid, bool descendants) {
        g_auto(Opened) o = events_open(c, attr, pid, 1, "descendants", "b", (int) descendants);

        return events_receive(&o);
}

static int events_of(const GArray *events, pid_t tid) {
        for (unsigned i = 0; i < events->len; i++)
                if (g_array_index(events, OpenedEvent, i).tid == tid)
                        return g_array_index(events, OpenedEvent, i).fd;
        return -1;
}

static uint64_t events_sum(const GArray *events) {
        uint64_t sum = 0;

        for (unsigned i = 0; i < events->len; i++)
                sum += raw_value(g_array_index(events, OpenedEvent, i).fd);
        return sum;
}

/* ---- which threads ---- */

static void assert_all_threads(const GArray *events, pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task", (int) pid);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        unsigned n = 0;

        for (const char *name; (name = g_dir_read_name(dir)); n++)
                g_assert_cmpint(events_of(events, (pid_t) atoi(name)), >=, 0);
        g_assert_cmpuint(events->len, ==, n);
}

static void test_every_thread_of_a_process(void) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_TASK_CLOCK);
        unsigned descriptors;

        client_greet(dave);
        descriptors = service_descriptors();
        for (int n = 0; n <= THREADS; n += THREADS) {
                g_autoptr(Actor) target = actor_new("dave", play_threads, &n);
                g_autoptr(GArray) events = NULL;

                g_assert_cmpint(actor_hear(target), ==, 'r');
                events = events_get(dave, &attr, target->pid, false);
                g_assert_cmpint(events->len, ==, n + 1);
                assert_all_threads(events, target->pid);
                /* the service keeps none of them */
                await(service_descriptors() <= descriptors);
        }
}

static int play_caller(int fd, const void *data) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        g_autoptr(GArray) events = NULL;
        g_auto(Opened) o = events_open(dave, &attr, 0, 0);

        events = events_receive(&o);
        watched_write(0, 10);
        return events->len == 1 && events_of(events, getpid()) >= 0 &&
                               events_sum(events) == hits(10)
                       ? 0
                       : 2;
}

static void test_the_caller_by_default(void) {
        g_autoptr(Actor) dave = actor_new("dave", play_caller, NULL);

        g_assert_cmpint(actor_join(dave), ==, 0);
}

static void test_a_process_without_its_descendants(void) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        g_autoptr(GArray) events = events_get(dave, &attr, parent->pid, false);

        writer_write(parent);
        g_assert_cmpuint(events->len, ==, 1);
        g_assert_cmpuint(raw_value(events_of(events, parent->pid)), ==, hits(100));
}

static void test_a_tree(void) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        g_autoptr(GArray) events = NULL;
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, parent->pid, 0);
        g_auto(Opened) o = events_open(dave, &attr, parent->pid, 2, "pidfd", "h", pidfd,
                                       "descendants", "b", true);

        events = events_receive(&o);
        writer_write(parent);
        g_assert_cmpuint(events->len, ==, 2);
        g_assert_cmpuint(raw_value(events_of(events, parent->pid)), ==, hits(100));
        g_assert_cmpuint(raw_value(events_of(events, child)), ==, hits(100));
}

static void test_disabled_until_the_client_enables(void) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        g_autoptr(GArray) events = NULL;

        attr.disabled = 1;
        events = events_get(dave, &attr, parent->pid, true);
        writer_write(parent);
        g_assert_cmpuint(events_sum(events), ==, 0);
        g_assert_cmpint(ioctl(events_of(events, child), PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        writer_write(parent);
        g_assert_cmpuint(events_sum(events), ==, hits(100));
}

static void test_one_of_them_leads_a_group(void) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = breakpoint_attr(0), software = software_attr(PERF_COUNT_SW_TASK_CLOCK);
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        g_autoptr(GArray) events = events_get(dave, &attr, parent->pid, true);
        _cleanup_close_ int sibling =
                raw_open(dave, (Raw){ .attr = &software, .pid = child, .cpu = -1 }, "a{sv}", 1,
                         "group", "h", events_of(events, child));

        writer_write(parent);
        g_assert_cmpuint(raw_value(sibling), >, 0);
}

/* ---- what is created later ---- */

/* Each process that existed, or was created since, is counted once. */
static void storm_is_counted(int (*play)(int fd, const void *data), uint64_t n_before,
                             bool descendants) {
        g_autoptr(Client) dave = client_new("dave");
        Storm *storm = storm_new();
        PerfAttr attr = breakpoint_attr(0);

        attr.inherit = 1;
        for (int round = 0; round < STORM_ROUNDS; round++) {
                g_autoptr(sd_bus_message) reply = NULL;
                g_autoptr(GArray) events = NULL;
                g_autoptr(Actor) actor = NULL;
                g_auto(Opened) o = { .stream = -1 };

                *storm = (Storm){ .over = true }; /* one turn is enough */
                actor = actor_new("dave", play, &storm);
                await(storm->n_born > n_before);
                while (o.stream < 0) {
                        uint64_t cookie = events_send(dave, &attr, actor->pid, 1, "descendants",
                                                      "b", (int) descendants);

                        reply = sd_bus_message_unref(reply);
                        reply = client_receive(dave, cookie);
                        /* a busy machine may not stop it in time: then nothing was done */
                        if (sd_bus_message_is_method_error(reply, NULL))
                                g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                                PERFALLOC_ERROR_BUSY);
                        else
                                o = opened_read(reply);
                }
                storm->go = true;
                events = events_receive(&o);
                g_assert_cmpint(actor_hear(actor), ==, 'd');
                g_assert_cmpuint(storm->n_written, >=, STORM_FORKERS);
                g_assert_cmpuint(events_sum(events), ==, hits(storm->n_written));
                g_assert_cmpint(actor_join(actor), ==, 0);
        }
        storm_free(storm);
}

static void test_a_storm_of_forks(void) {
        storm_is_counted(play_storm, 5 * STORM_FORKERS * STORM_STAYING, true);
}

static void test_a_storm_of_threads(void) {
        storm_is_counted(play_thread_storm, 100, false);
}

static void *spin(void *userdata) {
        for (;;)
                ;
        return NULL;
}

/* Starts a thread that runs for ever, when told to. */
static int play_spinner(int fd, const void *data) {
        pthread_t thread;

        act_say(fd, 'r');
        if (act_hear(fd) && pthread_create(&thread, NULL, spin, NULL) == 0)
                (void) act_hear(fd);
        return 0;
}

static void *events_map(const GArray *events) {
        size_t bytes = (1 + PAGES) * (size_t) sysconf(_SC_PAGESIZE);

        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    g_array_index(events, OpenedEvent, 0).fd, 0);
}

/* Of a thread other than the process's first: that may have samples before. Nothing wraps: what
 * nobody reads is not written over. */
static bool has_sample_of_a_thread(const struct perf_event_mmap_page *page, pid_t pid) {
        const char *data = (const char *) page + sysconf(_SC_PAGESIZE);
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        struct {
                struct perf_event_header header;
                uint32_t pid, tid;
        } r;

        for (uint64_t at = 0; at + sizeof(r) <= head; at += r.header.size) {
                memcpy(&r, data + at, sizeof(r));
                if (r.header.type == PERF_RECORD_SAMPLE && r.pid == (uint32_t) pid &&
                    r.tid != (uint32_t) pid)
                        return true;
        }
        return false;
}

/* A buffer for each CPU: the kernel maps no inherited event of all CPUs. */
static void test_later_threads_are_sampled_by_cpu(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = actor_new("dave", play_spinner, NULL);
        PerfAttr attr = software_attr(PERF_COUNT_SW_TASK_CLOCK);
        g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify) g_array_unref);
        g_autofree struct perf_event_mmap_page **pages =
                g_new0(struct perf_event_mmap_page *, n_cpus());
        bool found = false;

        attr.inherit = 1;
        attr.sample_period = 100000;
        attr.sample_type = PERF_SAMPLE_TID;
        g_assert_cmpint(actor_hear(target), ==, 'r');
        g_ptr_array_add(all, events_get(dave, &attr, target->pid, false));
        g_assert_true(events_map(g_ptr_array_index(all, 0)) == MAP_FAILED);
        for (unsigned cpu = 0; cpu < n_cpus(); cpu++) {
                g_auto(Opened) o =
                        events_open(dave, &attr, target->pid, 1, "cpu", "u", (uint32_t) cpu);

                g_ptr_array_add(all, events_receive(&o));
                pages[cpu] = events_map(g_ptr_array_index(all, cpu + 1));
                g_assert_true((void *) pages[cpu] != MAP_FAILED);
        }
        actor_tell(target, 't');
        while (!found)
                for (unsigned cpu = 0; cpu < n_cpus(); cpu++)
                        found |= has_sample_of_a_thread(pages[cpu], target->pid);
}

/* ---- clients that do not read ---- */

static Actor *crowd_new(const char *user) {
        const int n = THREADS;
        Actor *a = actor_new(user, play_threads, &n);

        g_assert_cmpint(actor_hear(a), ==, 'r');
        return a;
}

/* They are charged until they are read. */
static void test_unread_events_are_limited(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice");
        g_autoptr(Actor) crowd = crowd_new("dave");
        Opened closed;
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        int proof = client_proof(dave, crowd->pid);
        unsigned descriptors;

        rig_configure("[Limits]\nDescriptorsPerUser=1500\n");
        client_greet(dave);
        client_greet(alice);
        descriptors = service_descriptors();
        for (int round = 0; round < 2; round++) {
                g_auto(Opened) o = events_open(dave, &attr, crowd->pid, 0);
                g_autoptr(GArray) events = NULL;

                events_refused(dave, SD_BUS_ERROR_LIMITS_EXCEEDED, "DescriptorsPerUser", &attr, 0,
                               1, "procfd", "h", proof);
                close_fd(raw_open(alice, (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 0));
                if (round == 0)
                        continue; /* it closes the stream */
                events = events_receive(&o);
        }
        closed = events_open(dave, &attr, crowd->pid, 0);
        opened_done(&closed);
        await(service_descriptors() <= descriptors);
        rig_configure("");
}

/* More than any client may open: nothing is left. */
static void test_more_than_the_limit(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) crowd = crowd_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        unsigned descriptors = 0;

        rig_configure("[Limits]\nDescriptorsPerUser=1000\n");
        client_greet(dave);
        descriptors = service_descriptors();
        events_refused(dave, SD_BUS_ERROR_LIMITS_EXCEEDED, "DescriptorsPerUser", &attr, 0, 1,
                       "procfd", "h", client_proof(dave, crowd->pid));
        await(service_descriptors() <= descriptors);
        rig_configure("");
}

/* Clients that never read, with more in all than one socket takes, stop nobody. */
static void test_nobody_waits_for_unread_events(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice");
        g_autoptr(Actor) crowd = crowd_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        Opened unread[8];

        for (size_t i = 0; i < G_N_ELEMENTS(unread); i++)
                unread[i] = events_open(dave, &attr, crowd->pid, 0);
        for (int i = 0; i < 100; i++)
                close_fd(raw_open(alice, (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 0));
        for (size_t i = 0; i < G_N_ELEMENTS(unread); i++) {
                g_autoptr(GArray) events = events_receive(&unread[i]);

                g_assert_cmpuint(events->len, ==, THREADS + 1);
                opened_done(&unread[i]);
        }
}

static void test_a_restart_ends_the_stream(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) crowd = crowd_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        g_auto(Opened) o = events_open(dave, &attr, crowd->pid, 0);
        OpenedEvent event;
        unsigned n = 0;

        rig("service-restart", NULL);
        for (; event_receive(o.stream, &event); n++)
                close_fd(event.fd);
        g_assert_cmpuint(n, >, 0);
        g_assert_cmpuint(n, <, o.n);
}

static void test_an_unread_event_is_in_the_way(void) {
        g_autoptr(Client) dave = client_new("dave"), root = client_new("root");
        g_autoptr(Actor) crowd = crowd_new("dave");
        PerfAttr attr = breakpoint_attr(0);
        g_auto(Opened) o = events_open(dave, &attr, crowd->pid, 0);
        g_autoptr(GArray) events = NULL;
        _cleanup_close_ int lease = -1;
        g_autofree char *hold = hold_take(root, &lease, "a{sv}", 3, BREAKPOINTS, "mode", "s",
                                          "exclusive", "best_effort", "b", true);

        g_assert_false(hold_wait(root, hold));
        g_assert_true(hold_names(root, hold, getpid()));
        events_refused(dave, PERFALLOC_ERROR_BUSY, "exclusive", &attr, 0, 1, "procfd", "h",
                       client_proof(dave, crowd->pid));
        events = events_receive(&o);
}

/* ---- refusals ---- */

static void test_arguments(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = writer_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY), odd = attr;
        _cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        unsigned descriptors;

        client_greet(dave);
        descriptors = service_descriptors();
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "flags", &attr, PERF_FLAG_FD_OUTPUT, 0);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "flags", &attr, PERF_FLAG_PID_CGROUP, 0);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "flags", &attr, 1ull << 63, 0);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "'group'", &attr, 0, 1, "group", "h", null);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "'pid'", &attr, 0, 1, "pid", "u", 1u);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "'cpu'", &attr, 0, 1, "cpu", "i", 0);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "'descendants'", &attr, 0, 1, "descendants",
                       "s", "yes");
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "no CPU", &attr, 0, 1, "cpu", "u", 8191u);
        events_refused(dave, SD_BUS_ERROR_INVALID_ARGS, "no CPU", &attr, 0, 1, "cpu", "u",
                       UINT32_MAX);
        events_refused(dave, PERFALLOC_ERROR_BAD_DESCRIPTOR, "", &attr, 0, 1, "pidfd", "h", null);
        events_refused(dave, PERFALLOC_ERROR_BAD_DESCRIPTOR, "", &attr, 0, 1, "procfd", "h", null);
        odd.size = 13;
        events_refused(dave, PERFALLOC_ERROR_ATTR_SIZE, "attr", &odd, 0, 0);
        odd = attr;
        odd.__reserved_2 = 1;
        events_refused(dave, PERFALLOC_ERROR_NOT_PERMITTED, "attr", &odd, 0, 0);
        odd = attr;
        odd.type = 4711;
        events_refused(dave, PERFALLOC_ERROR_NO_SUCH_EVENT, "4711", &odd, 0, 0);
        odd = breakpoint_attr(0);
        odd.bp_len = 3;
        events_refused(dave, PERFALLOC_ERROR_INVALID_EVENT, "", &odd, 0, 1, "procfd", "h",
                       client_proof(dave, target->pid));
        await(service_descriptors() <= descriptors);
}

static void test_permission(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice");
        g_autoptr(Actor) target = writer_new("bob"), own = writer_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_TASK_CLOCK), kernel = attr;
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, target->pid, 0);
        g_auto(Opened) o = { .stream = -1 };

        kernel.exclude_kernel = 0;
        events_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "count-other", &attr,
                       0, 1, "pidfd", "h", pidfd);
        events_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "count-kernel",
                       &kernel, 0, 1, "procfd", "h", client_proof(dave, own->pid));
        o = events_open(alice, &attr, 0, 1, "pidfd", "h", pidfd);
        g_assert_cmpuint(o.n, ==, 1);
}

/* Becomes a process that its user may not trace, when told to. */
static int play_parent_of_hidden(int fd, const void *data) {
        pid_t child = fork();

        if (child == 0) {
                (void) prctl(PR_SET_DUMPABLE, 0);
                act_say(fd, 'r');
                for (;;)
                        pause();
        }
        (void) waitpid(child, NULL, 0);
        return 0;
}

static void test_a_descendant_that_may_not_be_traced(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice");
        g_autoptr(Actor) parent = actor_new("dave", play_parent_of_hidden, NULL);
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        g_auto(Opened) alone = { .stream = -1 }, tree = { .stream = -1 };
        int proof;

        g_assert_cmpint(actor_hear(parent), ==, 'r');
        proof = client_proof(dave, parent->pid);
        events_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "count-other", &attr,
                       0, 2, "procfd", "h", proof, "descendants", "b", 1);
        alone = events_open(dave, &attr, 0, 1, "procfd", "h", proof);
        tree = events_open(alice, &attr, 0, 2, "procfd", "h", proof, "descendants", "b", 1);
        g_assert_cmpuint(alone.n, ==, 1);
        g_assert_cmpuint(tree.n, ==, 2);
}

static void test_a_descendant_that_is_traced(void) {
        g_autoptr(Client) dave = client_new("dave");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);

        g_assert_cmpint(ptrace(PTRACE_SEIZE, child, NULL, NULL), ==, 0);
        events_refused(dave, PERFALLOC_ERROR_BUSY, "traced", &attr, 0, 2, "procfd", "h",
                       client_proof(dave, parent->pid), "descendants", "b", 1);
}

static void test_one_event_that_cannot_be_opened(void) {
        g_autoptr(Client) dave = client_new("dave");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        PerfAttr attr = breakpoint_attr(1);
        int proof = client_proof(dave, parent->pid), taken[4];
        unsigned descriptors;

        for (size_t i = 0; i < G_N_ELEMENTS(taken); i++)
                taken[i] =
                        raw_open(dave, (Raw){ .attr = &attr, .pid = child, .cpu = -1 }, "a{sv}", 0);
        descriptors = service_descriptors();
        events_refused(dave, PERFALLOC_ERROR_NO_COUNTER_LEFT, "", &attr, 0, 2, "procfd", "h", proof,
                       "descendants", "b", 1);
        await(service_descriptors() <= descriptors);
        for (size_t i = 0; i < G_N_ELEMENTS(taken); i++)
                close_fd(taken[i]);
        g_array_unref(events_get(dave, &attr, parent->pid, true));
}

/* ---- in the middle ---- */

static void test_a_target_that_dies(void) {
        g_autoptr(Client) dave = client_new("dave");
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        unsigned descriptors;

        client_greet(dave);
        descriptors = service_descriptors();
        for (int i = 0; i < 100; i++) {
                pid_t child;
                g_autoptr(Actor) parent = parent_new("dave", &child);
                uint64_t cookie =
                        events_send(dave, &attr, parent->pid, 1, "descendants", "b", i % 2);
                g_autoptr(sd_bus_message) reply = NULL;

                g_usleep((gulong) i * 10);
                kill(i % 3 == 0 ? child : parent->pid, SIGKILL);
                reply = client_receive(dave, cookie);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        PERFALLOC_ERROR_NO_SUCH_PROCESS);
                kill(child, SIGKILL);
        }
        await(service_descriptors() <= descriptors);
}

static void test_a_client_that_leaves(void) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        pid_t child;
        g_autoptr(Actor) parent = parent_new("dave", &child);
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 50; i++) {
                g_autoptr(Client) dave = client_new("dave");

                (void) events_send(dave, &attr, parent->pid, 1, "descendants", "b", 1);
                g_usleep((gulong) i * 20);
        }
        await(service_descriptors() <= descriptors);
        writer_write(parent); /* it is not stopped any more */
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/open-events/every-thread-of-a-process", test_every_thread_of_a_process);
        g_test_add_func("/open-events/the-caller-by-default", test_the_caller_by_default);
        g_test_add_func("/open-events/a-process-without-its-descendants",
                        test_a_process_without_its_descendants);
        g_test_add_func("/open-events/a-tree", test_a_tree);
        g_test_add_func("/open-events/disabled-until-the-client-enables",
                        test_disabled_until_the_client_enables);
        g_test_add_func("/open-events/one-of-them-leads-a-group", test_one_of_them_leads_a_group);
        g_test_add_func("/open-events/a-storm-of-forks", test_a_storm_of_forks);
        g_test_add_func("/open-events/a-storm-of-threads", test_a_storm_of_threads);
        g_test_add_func("/open-events/later-threads-are-sampled-by-cpu",
                        test_later_threads_are_sampled_by_cpu);
        g_test_add_func("/open-events/unread/limited", test_unread_events_are_limited);
        g_test_add_func("/open-events/unread/more-than-the-limit", test_more_than_the_limit);
        g_test_add_func("/open-events/unread/nobody-waits", test_nobody_waits_for_unread_events);
        g_test_add_func("/open-events/unread/a-restart-ends-the-stream",
                        test_a_restart_ends_the_stream);
        g_test_add_func("/open-events/unread/in-the-way", test_an_unread_event_is_in_the_way);
        g_test_add_func("/open-events/refused/arguments", test_arguments);
        g_test_add_func("/open-events/refused/permission", test_permission);
        g_test_add_func("/open-events/refused/a-descendant-that-may-not-be-traced",
                        test_a_descendant_that_may_not_be_traced);
        g_test_add_func("/open-events/refused/a-descendant-that-is-traced",
                        test_a_descendant_that_is_traced);
        g_test_add_func("/open-events/refused/one-that-cannot-be-opened",
                        test_one_event_that_cannot_be_opened);
        g_test_add_func("/open-events/middle/a-target-that-dies", test_a_target_that_dies);
        g_test_add_func("/open-events/middle/a-client-that-leaves", test_a_client_that_leaves);
        return g_test_run();
}
