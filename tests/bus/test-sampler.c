/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Samplers: ticks stay on their grid, and every missed one is counted. */

#include "sampler-util.h"

/* ---- the grid ---- */

static void test_grid(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 2 * MSEC, "a{sv}", 0);
        Record r;

        for (int i = 0; i < 200; i++)
                record_await(s, &r); /* which checks it */
        g_assert_cmpuint(s->told + s->missed, ==, s->next);
}

static void test_start(void) {
        g_autoptr(Client) alice = client_new("alice");
        uint64_t begin = boottime_usec();
        g_autoptr(Sampler) later = sampler_create(alice, NO_COUNTERS, 50 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) now = sampler_create(alice, NO_COUNTERS, 3600 * USEC_PER_SEC, "a{sv}", 1,
                                                "start_usec", "t", (uint64_t) 0);
        g_autoptr(Sampler) then = sampler_create(alice, NO_COUNTERS, 3600 * USEC_PER_SEC, "a{sv}",
                                                 1, "start_usec", "t", (uint64_t) 30 * MSEC);
        uint64_t end = boottime_usec();
        Record r;

        g_assert_cmpuint(later->start, >=, begin + 50 * MSEC);
        g_assert_cmpuint(later->start, <=, end + 50 * MSEC);
        g_assert_cmpuint(now->start, >=, begin);
        g_assert_cmpuint(now->start, <=, end);
        g_assert_cmpuint(then->start, >=, begin + 30 * MSEC);
        g_assert_cmpuint(then->start, <=, end + 30 * MSEC);
        record_await(now, &r);
        record_await(then, &r);
        record_await(later, &r);
}

static void test_one_tick(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) once = sampler_create(alice, NO_COUNTERS, 0, "a{sv}", 0);
        g_autoptr(Sampler) many = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        Record r;

        record_await(once, &r);
        g_assert_cmpuint(r.head.tick, ==, 0);
        for (int i = 0; i < 5; i++)
                record_await(many, &r);
        g_assert_false(record_get(once, &r));
        g_assert_cmpuint(sampler_number(once, "Ticks"), ==, 1);
        sampler_close(once); /* it is there until then */
}

static void test_stopped_service(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        Record r;

        record_await(s, &r);
        rig("service-signal STOP", NULL);
        while (record_get(s, &r))
                ;
        await_time(s->start + (s->next + 40) * s->interval);
        rig("service-signal CONT", NULL);
        record_await(s, &r);
        g_assert_cmpuint(r.head.missed, >=, 39);
        /* and no burst: each of the following is the latest at its own time, see record_check() */
        for (int i = 0; i < 5; i++)
                record_await(s, &r);
}

/* ---- blocking ---- */

static void test_block(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autoptr(Sampler) s = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        g_autoptr(Sampler) free_one = sampler_create(other, NO_COUNTERS, 5 * MSEC, "a{sv}", 0);
        uint64_t before;
        Record r;

        record_await(s, &r);
        samplers_do(alice, "BlockSamplers");
        samplers_do(alice, "BlockSamplers"); /* a flag, not a count */
        g_assert_true(client_get_number(alice, s->path, SAMPLER, "Blocked", 'b'));
        g_assert_false(client_get_number(alice, free_one->path, SAMPLER, "Blocked", 'b'));
        while (record_get(s, &r))
                ;
        before = s->next;
        await_time(s->start + (before + 20) * s->interval);
        g_assert_false(record_get(s, &r));
        record_await(free_one, &r);
        samplers_do(alice, "UnblockSamplers");
        record_await(s, &r);
        g_assert_cmpuint(r.head.missed, >=, 20);
        g_assert_false(client_get_number(alice, s->path, SAMPLER, "Blocked", 'b'));
        g_assert_cmpuint(sampler_number(s, "Missed"), >=, 20);
}

static void test_block_before(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s = NULL;
        Record r;

        samplers_do(alice, "BlockSamplers");
        s = sampler_create(alice, NO_COUNTERS, 5 * MSEC, "a{sv}", 1, "start_usec", "t",
                           (uint64_t) 0);
        await_time(s->start + 10 * s->interval);
        g_assert_false(record_get(s, &r));
        samplers_do(alice, "UnblockSamplers");
        record_await(s, &r);
        g_assert_cmpuint(r.head.missed, >=, 10);
        g_assert_cmpuint(r.head.missed, ==, r.head.tick);
}

static void test_has(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autoptr(Sampler) s = NULL;

        g_assert_false(samplers_any(alice));
        samplers_do(alice, "BlockSamplers");
        g_assert_false(samplers_any(alice));
        s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_assert_true(samplers_any(alice));
        g_assert_false(samplers_any(other));
        sampler_close(s);
        g_assert_false(samplers_any(alice));
}

/* The scenario of PCP's own test of its timers. Four timers are registered while blocked, one for a
 * single tick, one too long to expire. Handlers run one at a time with the timers blocked, each
 * slower than the one before. In the end all are removed, including the one that has expired. A
 * second of theirs is 10 ms here. */
static void test_slow_handlers(void) {
        g_autoptr(Client) alice = client_new("alice");
        const uint64_t second = 10 * MSEC;
        g_autoptr(Sampler) a = NULL, b = NULL, once = NULL, late = NULL;
        Sampler **const all[] = { &a, &b, &once, &late };
        unsigned handled = 0;

        samplers_do(alice, "BlockSamplers");
        a = sampler_create(alice, NO_COUNTERS, second * 5 / 2, "a{sv}", 0);
        b = sampler_create(alice, NO_COUNTERS, second * 3 / 2, "a{sv}", 0);
        once = sampler_create(alice, NO_COUNTERS, 0, "a{sv}", 1, "start_usec", "t", second * 4);
        late = sampler_create(alice, NO_COUNTERS, second * 6000, "a{sv}", 0);
        samplers_do(alice, "UnblockSamplers");
        while (a->missed == 0 || b->missed == 0 || once->told == 0)
                for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                        Record r;

                        if (!record_get(*all[i], &r))
                                continue;
                        g_assert_cmpuint(++handled, <, 40);
                        samplers_do(alice, "BlockSamplers");
                        await_time(boottime_usec() + handled * second / 2);
                        samplers_do(alice, "UnblockSamplers");
                }
        g_assert_cmpuint(a->told, >, 1);
        g_assert_cmpuint(b->told, >, 1);
        g_assert_cmpuint(once->told, ==, 1);
        g_assert_cmpuint(late->told, ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                sampler_close(*all[i]);
        g_assert_false(samplers_any(alice));
}

/* ---- ownership ---- */

static void test_owner(void) {
        g_autoptr(Client) alice = client_new("alice"), alice_too = client_new("alice");
        g_autoptr(Client) dave = client_new("dave"), root = client_new("root");
        g_autofree char *counter = counter_open(alice, "task-clock", "a{sv}", 0);
        g_autoptr(Sampler) s =
                sampler_create(alice, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0);
        g_autoptr(Sampler) other = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);

        sampler_refused(dave, PERFALLOC_ERROR_NOT_OWNER, ONE_COUNTER(counter), USEC_PER_SEC,
                        "a{sv}", 0);
        client_refused(dave, PERFALLOC_ERROR_NOT_OWNER, s->path, SAMPLER, "Close", NULL);
        sampler_free(sampler_create(alice_too, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0));
        sampler_free(sampler_create(root, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0));
        s->client = alice_too;
        sampler_close(s);
        other->client = root;
        sampler_close(other);
        g_assert_false(samplers_any(alice));
}

static void test_properties(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *counter = counter_open(alice, "task-clock", "a{sv}", 0);
        g_autoptr(Sampler) s =
                sampler_create(alice, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 0);
        g_autoptr(sd_bus_message) reply = client_call(
                bob, s->path, "org.freedesktop.DBus.Properties", "Get", "ss", SAMPLER, "Counters");
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'v', "ao"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "o"), >, 0);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'o', &path), >, 0);
        g_assert_cmpstr(path, ==, counter);
        g_assert_cmpint(sd_bus_message_at_end(reply, false), >, 0);
        g_assert_cmpuint(client_count(bob, "sampler"), ==, 1);
}

/* ---- bad input ---- */

static void test_bad_times(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");

        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, 1, "a{sv}", 0);
        g_assert_nonnull(strstr(alice->refusal, "SamplerIntervalMinSec"));
        sampler_refused(root, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, 499, "a{sv}", 0);
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, UINT64_MAX, "a{sv}", 0);
        g_assert_nonnull(strstr(alice->refusal, "interval_usec"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1,
                        "start_usec", "t", UINT64_MAX);
        g_assert_nonnull(strstr(alice->refusal, "start_usec"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1, "signal",
                        "b", 1);
        g_assert_nonnull(strstr(alice->refusal, "SamplerSignalMinSec"));
        g_assert_false(samplers_any(alice));
}

static void test_bad_options(void) {
        g_autoptr(Client) alice = client_new("alice");

        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1,
                        "stop_usec", "t", (uint64_t) 0);
        g_assert_nonnull(strstr(alice->refusal, "stop_usec"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, MSEC, "a{sv}", 1,
                        "start_usec", "u", 0);
        g_assert_nonnull(strstr(alice->refusal, "start_usec"));
        g_assert_false(samplers_any(alice));
}

static void test_bad_counters(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *counter = counter_open(alice, "task-clock", "a{sv}", 0);
        g_autofree char *closed = counter_open(alice, "task-clock", "a{sv}", 0);
        const char *const twice[] = { counter, counter, NULL };
        const char *const gone[] = { counter, closed, NULL };

        counter_do(alice, closed, "Close");
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, twice, MSEC, "a{sv}", 0);
        g_assert_nonnull(strstr(alice->refusal, counter));
        sampler_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, gone, MSEC, "a{sv}", 0);
        sampler_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, ONE_COUNTER("/"), MSEC, "a{sv}", 0);
        sampler_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, ONE_COUNTER(PERFALLOC_OBJECT_PATH),
                        MSEC, "a{sv}", 0);
        g_assert_false(samplers_any(alice));
}

static void test_many(void) {
        g_autoptr(Client) bob = client_new("bob"), dave = client_new("dave");
        g_autoptr(GPtrArray) samplers =
                g_ptr_array_new_with_free_func((GDestroyNotify) sampler_free);
        g_autoptr(Sampler) one = NULL;
        unsigned before = service_descriptors();

        for (int i = 0; i < 64; i++)
                g_ptr_array_add(samplers,
                                sampler_create(bob, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0));
        for (int i = 64; i < 10000; i++)
                sampler_refused(bob, SD_BUS_ERROR_LIMITS_EXCEEDED, NO_COUNTERS, USEC_PER_SEC,
                                "a{sv}", 0);
        g_assert_nonnull(strstr(bob->refusal, "SamplersPerUser"));
        one = sampler_create(dave, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_clear_pointer(&bob, client_free);
        g_clear_pointer(&one, sampler_free);
        await(client_count(dave, "sampler") == 0);
        await(service_descriptors() <= before);
}

/* ---- the service ---- */

/* Whether the next signal of this name is about the path. */
static bool next_is_about(Client *c, const char *member, const char *path) {
        for (;;) {
                g_autoptr(sd_bus_message) m = NULL;
                const char *about;

                await((m = client_next(c, 0)));
                if (!sd_bus_message_is_signal(m, "org.freedesktop.DBus.ObjectManager", member))
                        continue;
                g_assert_cmpint(sd_bus_message_read_basic(m, 'o', &about), >, 0);
                return strcmp(about, path) == 0;
        }
}

static void test_announced(void) {
        g_autoptr(Client) alice = client_new("alice"), bystander = client_new("bob");
        g_autoptr(Sampler) s = NULL;

        client_watch(bystander);
        s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_assert_true(next_is_about(bystander, "InterfacesAdded", s->path));
        sampler_close(s);
        g_assert_true(next_is_about(bystander, "InterfacesRemoved", s->path));
}

/* As many samplers as a user may have, at the shortest interval, none of them read. */
static void test_load(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(GPtrArray) samplers =
                g_ptr_array_new_with_free_func((GDestroyNotify) sampler_free);
        char *counters[17] = {};
        uint64_t worst = 0;

        for (int i = 0; i < 16; i++)
                counters[i] = counter_open(alice, "task-clock", "a{sv}", 1, "scope", "s", "cpu");
        for (int i = 0; i < 64; i++)
                g_ptr_array_add(samplers, sampler_create(alice, (const char *const *) counters, 500,
                                                         "a{sv}", 0));
        for (int i = 0; i < 100; i++) {
                uint64_t begin = boottime_usec();

                g_assert_false(samplers_any(bob));
                worst = MAX(worst, boottime_usec() - begin);
        }
        g_test_message("a call took %" G_GUINT64_FORMAT " us at most", worst);
        g_assert_cmpuint(worst, <, 500 * MSEC);
        for (int i = 0; i < 16; i++)
                g_free(counters[i]);
}

static void test_stays(void) {
        g_autoptr(Client) alice = NULL;
        g_autoptr(Sampler) s = NULL;
        pid_t pid;

        rig_configure("[Limits]\nIdleExitSec=20ms\n");
        alice = client_new("alice");
        samplers_do(alice, "BlockSamplers");
        pid = service_pid();
        await_time(boottime_usec() + 100 * MSEC);
        s = sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0);
        g_assert_true(client_get_number(alice, s->path, SAMPLER, "Blocked", 'b'));
        samplers_do(alice, "UnblockSamplers");
        await_time(boottime_usec() + 100 * MSEC);
        g_assert_cmpint(service_pid(), ==, pid);
        rig_configure("");
}

static void test_floor(void) {
        g_autoptr(Client) alice = NULL;

        rig_configure("[Limits]\nSamplerIntervalMinSec=1s\nSamplerSignalMinSec=100ms\n");
        alice = client_new("alice");
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, NO_COUNTERS, 999 * MSEC, "a{sv}", 1,
                        "signal", "b", 1);
        g_assert_nonnull(strstr(alice->refusal, "SamplerIntervalMinSec"));
        sampler_free(sampler_create(alice, NO_COUNTERS, USEC_PER_SEC, "a{sv}", 0));
        rig_configure("");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/sampler/grid/never-early-always-the-latest-none-lost", test_grid);
        g_test_add_func("/sampler/grid/starts-when-asked-to", test_start);
        g_test_add_func("/sampler/grid/interval-0-ticks-once", test_one_tick);
        g_test_add_func("/sampler/grid/a-stopped-service-misses-and-counts", test_stopped_service);
        g_test_add_func("/sampler/block/time-runs-on-and-is-counted", test_block);
        g_test_add_func("/sampler/block/holds-for-samplers-made-later", test_block_before);
        g_test_add_func("/sampler/block/slow-handlers-skip-and-know-it", test_slow_handlers);
        g_test_add_func("/sampler/has-tells-of-one's-own", test_has);
        g_test_add_func("/sampler/owner/same-uid-and-root", test_owner);
        g_test_add_func("/sampler/owner/everybody-may-read-properties", test_properties);
        g_test_add_func("/sampler/refused/times", test_bad_times);
        g_test_add_func("/sampler/refused/options", test_bad_options);
        g_test_add_func("/sampler/refused/counters", test_bad_counters);
        g_test_add_func("/sampler/refused/ten-thousand", test_many);
        g_test_add_func("/sampler/service/announces-them", test_announced);
        g_test_add_func("/sampler/service/answers-others-under-load", test_load);
        g_test_add_func("/sampler/service/stays-while-there-are-any", test_stays);
        g_test_add_func("/sampler/service/has-a-floor-that-can-be-set", test_floor);
        return g_test_run();
}
