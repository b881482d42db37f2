/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Samplers whose client maps the last record, and has it refreshed when it wants to. */

#include "sampler-util.h"

#include <fcntl.h>
#include <sys/mman.h>

#define NEVER (3600 * USEC_PER_SEC)

typedef struct Mapped {
        Sampler *sampler;
        size_t record_size;
        const struct perfalloc_map *map;
} Mapped;

static Mapped map_create(Client *c, const char *const *counters, uint64_t interval) {
        Mapped m = {
                .record_size = PERFALLOC_SAMPLE_SIZE(g_strv_length((char **) counters)),
                .sampler = sampler_create(c, counters, interval, "a{sv}", 1, "map", "b", 1),
        };
        void *map = mmap(NULL, PERFALLOC_MAP_SIZE(m.record_size), PROT_READ, MAP_SHARED,
                         m.sampler->stream, 0);

        g_assert_true(map != MAP_FAILED);
        m.map = map;
        return m;
}

static void map_free(Mapped *m) {
        g_assert_cmpint(munmap((void *) m->map, PERFALLOC_MAP_SIZE(m->record_size)), ==, 0);
        sampler_free(m->sampler);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Mapped, map_free)

static void map_refresh(const Mapped *m) {
        sd_bus_message_unref(
                client_call(m->sampler->client, m->sampler->path, SAMPLER, "Refresh", NULL));
}

static bool map_get(const Mapped *m, Record *ret) {
        return perfalloc_map_read(m->map, &ret->head, m->record_size);
}

/* ---- readings ---- */

/* The same numbers as ReadCounters' of events that do not happen meanwhile. */
static void test_readings(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0), *other = watched_event(1);
        g_autofree char *counted = counter_open(alice, event, "a{sv}", 0);
        g_autofree char *stopped = counter_open(alice, other, "a{sv}", 1, "start", "b", 0);
        const char *const counters[] = { stopped, counted, NULL };
        g_auto(Mapped) m = map_create(alice, counters, NEVER);
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t value, enabled, running, estimate;
        const char *quality;
        Record r;

        g_assert_false(map_get(&m, &r)); /* the first tick is due in an hour */
        watched_write(0, 1234);
        map_refresh(&m);
        g_assert_true(map_get(&m, &r));
        counter_do(alice, counted, "Stop");
        map_refresh(&m);
        g_assert_true(map_get(&m, &r));
        reply = client_call(alice, MANAGER, "ReadCounters", "ao", 2, stopped, counted);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(tttts)"), >, 0);
        g_assert_cmpuint(r.head.n_readings, ==, 2);
        for (size_t i = 0; i < 2; i++) {
                g_assert_cmpint(sd_bus_message_read(reply, "(tttts)", &value, &enabled, &running,
                                                    &estimate, &quality),
                                >, 0);
                g_assert_cmpuint(r.readings[i].value, ==, value);
                g_assert_cmpuint(r.readings[i].value, ==, hits(i == 1 ? 1234 : 0));
                g_assert_cmpuint(r.readings[i].enabled_nsec, ==, enabled);
                g_assert_cmpuint(r.readings[i].running_nsec, ==, running);
                g_assert_cmpuint(r.readings[i].estimate, ==, estimate);
                g_assert_cmpint(r.readings[i].quality == PERFALLOC_QUALITY_EXACT, ==,
                                strcmp(quality, "exact") == 0);
        }
}

/* A refresh is no tick: of the rest of the record only the time of reading changes. */
static void test_refresh_between_ticks(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 0);
        g_auto(Mapped) m = map_create(alice, ONE_COUNTER(counter), 0);
        Record first, r;

        await(map_get(&m, &first)); /* its only tick */
        for (uint64_t i = 1; i <= 3; i++) {
                watched_write(0, 10);
                map_refresh(&m);
                g_assert_true(map_get(&m, &r));
                g_assert_cmpuint(r.readings[0].value, ==, hits(10 * i));
                g_assert_cmpuint(r.head.tick, ==, 0);
                g_assert_cmpuint(r.head.missed, ==, 0);
                g_assert_cmpuint(r.head.boottime_nsec, >, first.head.boottime_nsec);
        }
        samplers_do(alice, "BlockSamplers");
        watched_write(0, 10);
        map_refresh(&m);
        g_assert_true(map_get(&m, &r));
        g_assert_cmpuint(r.readings[0].value, ==, hits(40));
        g_assert_cmpuint(sampler_number(m.sampler, "Ticks"), ==, 1);
        g_assert_cmpuint(sampler_number(m.sampler, "Missed"), ==, 0);
}

static bool map_has_tick(const Mapped *m, uint64_t tick, Record *ret) {
        return map_get(m, ret) && ret->head.tick >= tick;
}

static void test_ticks(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_auto(Mapped) m = map_create(alice, NO_COUNTERS, 2 * MSEC);
        Record r;

        for (uint64_t tick = 0; tick < 100; tick = r.head.tick + 1) {
                await(map_has_tick(&m, tick, &r));
                g_assert_cmpuint(r.head.boottime_nsec / NSEC_PER_USEC, >=,
                                 m.sampler->start + r.head.tick * m.sampler->interval);
        }
        samplers_do(alice, "BlockSamplers");
        g_assert_true(map_get(&m, &r));
        g_assert_cmpuint(sampler_number(m.sampler, "Ticks") + sampler_number(m.sampler, "Missed"),
                         ==, r.head.tick + 1);
}

static void test_tag(void) {
        const uint64_t tag = 0xfedcba9876543210;
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Sampler) s =
                sampler_create(alice, NO_COUNTERS, 0, "a{sv}", 2, "map", "b", 1, "tag", "t", tag);
        size_t size = PERFALLOC_MAP_SIZE(PERFALLOC_SAMPLE_TAGGED_SIZE(0));
        const struct perfalloc_map *map = mmap(NULL, size, PROT_READ, MAP_SHARED, s->stream, 0);
        Record r;

        g_assert_true(map != MAP_FAILED);
        await(perfalloc_map_read(map, &r.head, PERFALLOC_SAMPLE_TAGGED_SIZE(0)));
        g_assert_cmphex(perfalloc_sample_tag(&r.head), ==, tag);
        g_assert_cmpint(munmap((void *) map, size), ==, 0);
}

/* ---- who may what ---- */

static void test_owner(void) {
        g_autoptr(Client) alice = client_new("alice"), again = client_new("alice");
        g_autoptr(Client) bob = client_new("bob"), root = client_new("root");
        g_autofree char *counter = counter_open(alice, "task-clock:u", "a{sv}", 0);
        g_auto(Mapped) m = map_create(alice, ONE_COUNTER(counter), NEVER);
        g_autoptr(Sampler) streams = sampler_create(alice, NO_COUNTERS, NEVER, "a{sv}", 0);

        sampler_refused(bob, PERFALLOC_ERROR_NOT_OWNER, ONE_COUNTER(counter), NEVER, "a{sv}", 1,
                        "map", "b", 1);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, m.sampler->path, SAMPLER, "Refresh", NULL);
        sd_bus_message_unref(client_call(again, m.sampler->path, SAMPLER, "Refresh", NULL));
        sd_bus_message_unref(client_call(root, m.sampler->path, SAMPLER, "Refresh", NULL));
        client_refused(alice, PERFALLOC_ERROR_NOT_SUPPORTED, streams->path, SAMPLER, "Refresh",
                       NULL);
        g_assert_nonnull(strstr(alice->refusal, "'map'"));
        sampler_refused(alice, SD_BUS_ERROR_INVALID_ARGS, ONE_COUNTER(counter), NEVER, "a{sv}", 1,
                        "map", "s", "yes");
        g_assert_nonnull(strstr(alice->refusal, "map"));
}

/* Whatever the client does with its descriptor, the service goes on. */
static void test_only_to_be_read(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_auto(Mapped) m = map_create(alice, NO_COUNTERS, NEVER);
        g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", m.sampler->stream);
        char c = 0;
        Record r;

        g_assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, m.sampler->stream, 0) ==
                      MAP_FAILED);
        g_assert_cmpint(pwrite(m.sampler->stream, &c, 1, 0), <, 0);
        g_assert_cmpint(ftruncate(m.sampler->stream, 0), <, 0);
        g_assert_cmpint(fcntl(m.sampler->stream, F_ADD_SEALS, F_SEAL_WRITE), <, 0);
        g_assert_cmpint(seteuid(alice->uid), ==, 0);
        g_assert_cmpint(open(path, O_RDWR | O_CLOEXEC), <, 0);
        g_assert_cmpint(errno, ==, EACCES);
        g_assert_cmpint(seteuid(0), ==, 0);
        g_assert_cmpint(truncate(path, 0), <, 0); /* root may not either */
        map_refresh(&m);
        g_assert_true(map_get(&m, &r));
}

/* ---- its end ---- */

static void test_end(void) {
        g_autoptr(Client) alice = client_new("alice"), leaving = client_new("alice");
        g_auto(Mapped) closed = map_create(alice, NO_COUNTERS, 0);
        g_auto(Mapped) left = map_create(leaving, NO_COUNTERS, 0);
        Record r;

        await(map_get(&closed, &r));
        await(map_get(&left, &r));
        g_assert_cmpuint(closed.map->ended, ==, 0);
        sampler_close(closed.sampler);
        g_assert_cmpuint(closed.map->ended, ==, 1);
        g_assert_true(map_get(&closed, &r)); /* it can still be read */
        client_refused(alice, SD_BUS_ERROR_UNKNOWN_OBJECT, closed.sampler->path, SAMPLER, "Refresh",
                       NULL);
        g_clear_pointer(&leaving, client_free);
        await(left.map->ended == 1);
        g_assert_cmpuint(client_count(alice, "sampler"), ==, 0);
}

static void test_restart(gconstpointer command) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 0);
        g_auto(Mapped) ticking = map_create(alice, ONE_COUNTER(counter), 2 * MSEC);
        g_auto(Mapped) still = map_create(alice, ONE_COUNTER(counter), NEVER);
        Record r;

        watched_write(0, 7);
        map_refresh(&still);
        for (unsigned i = 0; i < 3; i++) {
                uint64_t tick;

                await(map_get(&ticking, &r));
                tick = r.head.tick;
                rig(command, NULL);
                g_assert_true(map_get(&still, &r));
                g_assert_cmpuint(r.readings[0].value, ==, hits(7 + i));
                watched_write(0, 1);
                map_refresh(&still);
                g_assert_true(map_get(&still, &r));
                g_assert_cmpuint(r.readings[0].value, ==, hits(8 + i));
                await(map_has_tick(&ticking, tick + 1, &r));
        }
        g_assert_cmpuint(ticking.map->ended, ==, 0);
        samplers_do(alice, "BlockSamplers");
        g_assert_true(map_get(&ticking, &r));
        g_assert_cmpuint(sampler_number(ticking.sampler, "Ticks") +
                                 sampler_number(ticking.sampler, "Missed"),
                         ==, r.head.tick + 1);
        sampler_close(still.sampler);
        g_assert_cmpuint(still.map->ended, ==, 1);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/sampler/map/readings-are-those-of-read-counters", test_readings);
        g_test_add_func("/sampler/map/refresh-is-no-tick", test_refresh_between_ticks);
        g_test_add_func("/sampler/map/ticks", test_ticks);
        g_test_add_func("/sampler/map/tag", test_tag);
        g_test_add_func("/sampler/map/owner", test_owner);
        g_test_add_func("/sampler/map/only-to-be-read", test_only_to_be_read);
        g_test_add_func("/sampler/map/says-that-it-ended", test_end);
        g_test_add_data_func("/sampler/map/restarted", "service-restart", test_restart);
        g_test_add_data_func("/sampler/map/killed", "service-kill --again", test_restart);
        return g_test_run();
}
