/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* OpenEvent with PERF_FLAG_FD_OUTPUT: an event's records go into the buffer of another event, which
 * the caller already has. An exec enables these events, so no record may be in that buffer before
 * the target is inspected. */

#include "event-util.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define IN_NAMESPACE "in a user namespace of its own"

/* Runs on CPU 0, as the events do. data: in a user namespace, without capabilities. Executes
 * another program when told to. */
static int play_exec(int fd, const void *data) {
        cpu_set_t first;
        cap_t none = cap_init();

        CPU_ZERO(&first);
        CPU_SET(0, &first);
        if (sched_setaffinity(0, sizeof(first), &first) < 0)
                return 1;
        if (data && (unshare(CLONE_NEWUSER) < 0 || cap_set_proc(none) < 0))
                act_say(fd, 'x');
        (void) cap_free(none);
        (void) prctl(PR_SET_DUMPABLE, 1);
        act_say(fd, 'r');
        (void) act_hear(fd);
        if (dup2(fd, 3) < 0 || fcntl(3, F_SETFD, 0) < 0)
                return 1;
        (void) execl("/proc/self/exe", "test-event-output", "--executed", NULL);
        return 1;
}

static _Noreturn void executed(void) {
        act_say(3, 'e');
        (void) act_hear(3);
        _exit(0);
}

/* An event of dave's own, with its buffer. */
typedef struct Buffer {
        Actor *owner;
        int fd;
        const struct perf_event_mmap_page *page;
        size_t size;
} Buffer;

static Buffer buffer_new(Client *dave) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        Buffer b = { .owner = actor_new("dave", play_exec, NULL),
                     .size = 2 * (size_t) sysconf(_SC_PAGESIZE) };
        void *page;

        g_assert_cmpint(actor_hear(b.owner), ==, 'r');
        b.fd = raw_open(dave, (Raw){ .attr = &attr, .pid = b.owner->pid }, "a{sv}", 0);
        page = mmap(NULL, b.size, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
        g_assert_true(page != MAP_FAILED);
        b.page = page;
        return b;
}

static void buffer_free(Buffer *b) {
        (void) munmap((void *) (uintptr_t) b->page, b->size);
        close_fd(b->fd);
        actor_free(b->owner);
}

static uint64_t buffer_bytes(const Buffer *b) {
        return __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
}

/* An event that records what the target executes and maps, from its next exec on. */
static uint64_t send_follower(Client *dave, const Buffer *b, pid_t target) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);

        attr.disabled = attr.enable_on_exec = 1;
        attr.comm = attr.mmap = 1;
        return raw_send(dave,
                        (Raw){ .attr = &attr,
                               .pid = target,
                               .flags = PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP |
                                        PERF_FLAG_FD_CLOEXEC },
                        "a{sv}", 1, "group", "h", b->fd);
}

static void become_another(Actor *target) {
        actor_tell(target, 'e');
        g_assert_cmpint(actor_hear(target), ==, 'e');
}

static void test_records_arrive(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = actor_new("dave", play_exec, NULL);
        g_autoptr(sd_bus_message) reply = NULL;
        Buffer b = buffer_new(dave);

        g_assert_cmpint(actor_hear(target), ==, 'r');
        reply = client_receive(dave, send_follower(dave, &b, target->pid));
        g_assert_false(sd_bus_message_is_method_error(reply, NULL));
        g_assert_cmpuint(buffer_bytes(&b), ==, 0);
        become_another(target);
        g_assert_cmpuint(buffer_bytes(&b), >, 0);
        buffer_free(&b);
}

/* Until the reader has inspected the target, the event may be open, but records nothing. */
static void test_nothing_arrives_before_the_look(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = actor_new("dave", play_exec, IN_NAMESPACE);
        g_autoptr(sd_bus_message) reply = NULL;
        Buffer b = buffer_new(dave);
        unsigned n_events = service_events();
        pid_t reader = service_reader();
        uint64_t cookie;

        if (actor_hear(target) == 'x') {
                g_test_skip("this machine lets ordinary users have no user namespaces");
                buffer_free(&b);
                return;
        }
        g_assert_cmpint(kill(reader, SIGSTOP), ==, 0);
        cookie = send_follower(dave, &b, target->pid);
        await(service_events() > n_events);
        become_another(target);
        g_assert_cmpuint(buffer_bytes(&b), ==, 0);
        g_assert_cmpint(kill(reader, SIGCONT), ==, 0);
        reply = client_receive(dave, cookie);
        g_assert_true(sd_bus_message_is_method_error(
                reply, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED));
        g_assert_cmpuint(buffer_bytes(&b), ==, 0);
        await(service_events() == n_events);
        buffer_free(&b);
}

/* The kernel's own conditions are reported as at the opening. */
static void test_buffer_of_another_cpu(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(sd_bus_message) reply = NULL;
        PerfAttr attr = software_attr(PERF_COUNT_SW_DUMMY);
        Buffer b = buffer_new(dave);
        unsigned n_events = service_events();

        reply = client_receive(
                dave, raw_send(dave,
                               (Raw){ .attr = &attr,
                                      .pid = b.owner->pid,
                                      .cpu = -1,
                                      .flags = PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP },
                               "a{sv}", 1, "group", "h", b.fd));
        g_assert_true(sd_bus_message_is_method_error(reply, PERFALLOC_ERROR_INVALID_EVENT));
        await(service_events() == n_events);
        buffer_free(&b);
}

int main(int argc, char *argv[]) {
        if (argc == 2 && strcmp(argv[1], "--executed") == 0)
                executed();
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/event-output/records-arrive", test_records_arrive);
        g_test_add_func("/event-output/nothing-arrives-before-the-look",
                        test_nothing_arrives_before_the_look);
        g_test_add_func("/event-output/buffer-of-another-cpu", test_buffer_of_another_cpu);
        return g_test_run();
}
