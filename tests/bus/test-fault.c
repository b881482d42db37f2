/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Each call for memory, descriptors and the bus fails once during each operation: the first, the
 * second, and so on until the operation has no more of them. After each fault the caller is
 * answered, nothing is left behind, the same operation succeeds, and the service goes on.
 *
 * The service is tests/fault/perfallocd-fault. PERFALLOC_FAULT_STRIDE=1 tries every call; without
 * it some are skipped.
 */

#include "fault-census.h"
#include "fault-operations.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define CALLS_MAX      4000
#define DEFAULT_STRIDE 61

static unsigned stride = DEFAULT_STRIDE;

static const Operation *const lists[] = { hold_operations, counter_operations, other_operations,
                                          cpu_operations };

static const struct {
        const char *name;
        uint32_t kinds, where;
        int error;
} ways[] = {
        { "memory", FAULT_MEMORY, FAULT_SERVICE, ENOMEM },
        { "bus", FAULT_BUS, FAULT_SERVICE, ENOMEM },
        { "descriptors", FAULT_PERF | FAULT_SYSTEM, FAULT_SERVICE, EMFILE },
        { "kernel-memory", FAULT_PERF | FAULT_SYSTEM, FAULT_SERVICE, ENOMEM },
        { "passing", FAULT_PASSING, FAULT_SERVICE | FAULT_SIBLINGS, 0 },
        { "siblings-memory", FAULT_MEMORY, FAULT_SIBLINGS, ENOMEM },
        { "siblings-descriptors", FAULT_PERF | FAULT_SYSTEM, FAULT_SIBLINGS, EMFILE },
        { "siblings-kernel-memory", FAULT_PERF, FAULT_SIBLINGS, ENOMEM },
};

static void scene_up(Scene *s, const Operation *o) {
        *s = (Scene){ .client = client_new(o->user), .fd = -1, .fd2 = -1 };
        if (o->prepare)
                o->prepare(s);
        g_assert_false(s->failed);
}

static void scene_down(Scene *s) {
        s->fd = close_fd(s->fd);
        s->fd2 = close_fd(s->fd2);
        g_clear_pointer(&s->client, client_free);
        g_clear_pointer(&s->other, client_free);
        g_clear_pointer(&s->target, actor_free);
        g_clear_pointer(&s->path, g_free);
        g_clear_pointer(&s->second, g_free);
        g_clear_pointer(&s->id, g_free);
}

/* Runs it with the Nth call failing. False: there was no Nth call. */
static bool strike(const Operation *o, size_t way, int64_t n) {
        bool struck;
        Census before;
        Scene s;

        trying = o->name;
        trying_way = ways[way].name;
        trying_call = n;
        fault->caller = 0;
        scene_up(&s, o);
        before = census();
        fault->kinds = ways[way].kinds;
        fault->where = ways[way].where;
        fault->error = ways[way].error;
        atomic_store(&fault->struck, 0);
        atomic_store(&fault->left, n);
        o->run(&s);
        atomic_store(&fault->left, 0);
        struck = atomic_load(&fault->struck) > 0;
        if (g_test_verbose() && struck)
                g_test_message("%s, %s %" PRId64 ": 0x%" PRIx64 ": %s", o->name, ways[way].name, n,
                               fault->caller, s.failed ? s.error : "done");
        if (s.failed && !o->prepare && !s.path)
                census_settle(&before, "after the error");
        if (s.failed && !struck)
                complain("failed without a cause");
        if (o->after && !s.failed)
                o->after(&s);
        if (o->undo)
                o->undo(&s);
        scene_down(&s);
        return struck;
}

static Census empty;

static size_t operation_place(const Operation *o) {
        size_t place = 0;

        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
                for (const Operation *other = lists[i]; other->name; other++, place++)
                        if (other == o)
                                return place;
        g_assert_not_reached();
}

/* The first call, and each of a stride that begins elsewhere for each operation and way. */
static void sweep(const Operation *o, size_t way) {
        size_t place = operation_place(o) * G_N_ELEMENTS(ways) + way;
        unsigned step = o->thorough && ways[way].kinds == FAULT_MEMORY ? 1 : stride;
        bool struck;

        for (int64_t n = 1;; n += n == 1 ? 1 + (int64_t) (place % step) : step) {
                g_assert_cmpint(n, <, CALLS_MAX);
                struck = strike(o, way, n);
                census_settle(&empty, "afterwards");
                if (!struck)
                        break;
                (void) strike(o, way, 0);
                census_settle(&empty, "after doing it again");
                if (n_wrong > 0)
                        empty = census();
        }
}

static void test_operation(const void *data) {
        const Operation *o = data;

        n_wrong = 0;
        for (size_t way = 0; way < G_N_ELEMENTS(ways); way++)
                sweep(o, way);
        if (n_wrong > 0)
                g_test_fail();
}

/* ---- time ---- */

/* A clock that was set wrong does not change how long a hold lasts. */
static void test_clock_jumps(const void *data) {
        static const int64_t jumps[] = { 86400 * (int64_t) USEC_PER_SEC,
                                         -86400 * (int64_t) USEC_PER_SEC };
        const uint64_t lifetime = USEC_PER_SEC, wait = USEC_PER_SEC / 10;

        for (size_t i = 0; i < G_N_ELEMENTS(jumps); i++) {
                g_autoptr(Client) alice = client_new("alice"), root_too = client_new("root");
                g_autofree char *hold = NULL, *waiting = NULL;
                Scene s = { .client = alice, .fd = -1 };
                gint64 asked = g_get_monotonic_time();
                int lease;

                hold = hold_take_unattended(root_too, lifetime, "a{sv}", 2, BREAKPOINTS,
                                            "best_effort", "b", 1);
                waiting = hold_take(root_too, &lease, "a{sv}", 3, BREAKPOINTS, "mode", "s",
                                    "exclusive", "wait_usec", "t", wait);
                s.path = counter_open(alice, "task-clock:u", "a{sv}", 0);
                run_sampler(&s);
                atomic_store(&fault->realtime_usec, jumps[i]);
                run_ticks(&s);
                await(hold_is(root, waiting, "ended"));
                g_assert_cmpint(g_get_monotonic_time() - asked, >=, wait);
                g_assert_true(client_reads(root, waiting, HOLD, "Result", "timed-out"));
                await(hold_is(root, hold, "ended"));
                g_assert_cmpint(g_get_monotonic_time() - asked, >=, lifetime);
                g_assert_true(client_reads(root, hold, HOLD, "Result", "expired"));
                atomic_store(&fault->realtime_usec, 0);
                close_fd(lease);
                close_fd(s.fd);
                g_free(s.path);
        }
}

/* ---- no descriptor left ---- */

/* The user's limit: root cannot change it without CAP_SYS_RESOURCE. */
static void limit_set(rlim_t soft) {
        g_autofree char *command =
                g_strdup_printf("as perfalloc prlimit --pid %d --nofile=%" PRIu64 ":",
                                (int) service, (uint64_t) soft);

        rig(command, NULL);
}

/* Counters take all descriptors. A client that then sends descriptors is answered, and so are all
 * others: libsystemd would leave the bus if it could not receive them. */
static void test_no_descriptor_left(const void *data) {
        g_autoptr(Client) hog = client_new("root"), alice = client_new("alice");
        Scene s = { .client = hog, .fd = -1 };
        unsigned n = 0;

        /* Descriptors in flight to the store count against the same limit (ETOOMANYREFS). */
        rig("service-stop && service-start PERFALLOC_RIG_STORE=0", NULL);
        service = service_pid();
        limit_set(128);
        trying = "no-descriptor-left";
        trying_way = "counters";
        n_wrong = 0;
        for (; !s.failed; n++) {
                g_assert_cmpuint(n, <, 128);
                run_open_cpu(&s);
        }
        g_assert_cmpuint(n, >, 16);
        for (unsigned i = 0; i < 3; i++) {
                Scene t = { .client = alice, .fd = -1, .target = NULL };

                prepare_target(&t);
                run_open_pidfd(&t);
                g_assert_true(t.failed);
                actor_free(t.target);
        }
        g_assert_cmpint(service_pid(), ==, service);
        for (unsigned i = 0; i < 3; i++) {
                Scene t = { .client = alice, .fd = -1 };

                run_hold(&t); /* may or may not be: messages have limits of their own */
                close_fd(t.fd);
                g_free(t.path);
        }
        g_assert_cmpint(service_pid(), ==, service);
        g_assert_cmpuint(n_wrong, ==, 0);
        g_free(s.path);
        rig("service-stop && service-start", NULL);
        service = service_pid();
}

static void setup(void) {
        int fd = open(FAULT_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(fchmod(fd, 0666), ==, 0);
        g_assert_cmpint(ftruncate(fd, sizeof(Fault)), ==, 0);
        fault = mmap(NULL, sizeof(Fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        g_assert_true(fault != MAP_FAILED);
        close_fd(fd);
        /* A charge that is not released is noticed soon. */
        rig_configure("[Limits]\nHoldsPerUser=2\nCountersPerUser=4\nSamplersPerUser=2\n"
                      "PendingCallsPerUser=4\nSamplerIntervalMinSec=1ms\nIdleExitSec=1h\n");
        service = service_pid();
        root = client_new("root");
        /* what is made at the first use is there */
        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
                for (const Operation *o = lists[i]; o->name; o++)
                        (void) strike(o, 0, 0);
        empty = census();
}

int main(int argc, char *argv[]) {
        const char *wish = g_getenv("PERFALLOC_FAULT_STRIDE");
        int failed;

        g_test_init(&argc, &argv, NULL);
        if (wish)
                stride = (unsigned) atoi(wish);
        setup();
        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
                for (const Operation *o = lists[i]; o->name; o++) {
                        g_autofree char *name = g_strdup_printf("/fault/%s", o->name);

                        g_test_add_data_func(name, o, test_operation);
                }
        g_test_add_data_func("/fault/a-clock-that-jumps-ends-nothing", NULL, test_clock_jumps);
        g_test_add_data_func("/fault/who-has-no-descriptor-left-still-answers", NULL,
                             test_no_descriptor_left);
        failed = g_test_run();
        g_assert_cmpint(service_pid(), ==, service);
        return failed;
}
