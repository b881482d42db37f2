/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/broker/broker-answer.h"

#include <errno.h>

#include "perf/event/test-fake-sysfs.h"

/* A machine on which more CPUs are possible than present, and a task that may count nothing. */
typedef struct Stage {
        Context context; /* its PMUs alone */
        Brokers brokers;
        Broker broker;
        gid_t gid;
        char *tree;
} Stage;

static void stage_up(Stage *s, gconstpointer userdata) {
        *s = (Stage){ .gid = 1000, .tree = fixture_tree("server-256") };
        s->brokers.context = &s->context;
        s->broker = (Broker){ .brokers = &s->brokers, .uid = 1000, .gids = &s->gid, .n_gids = 1 };
        g_assert_cmpint(pmu_table_load(&s->context.pmus, s->tree), ==, 0);
}

static void stage_down(Stage *s, gconstpointer userdata) {
        pmu_table_done(&s->context.pmus);
        fixture_done(s->tree);
}

static BrokerReply stage_ask(const Stage *s, BrokerTarget target, int cpu, uint64_t flags) {
        const struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                              .config = PERF_COUNT_SW_DUMMY,
                                              .size = sizeof(attr) };
        BrokerRequest q = { .task = { .uid = { 1000, 1000, 1000 },
                                      .gid = { 1000, 1000, 1000 },
                                      .no_new_privs = true,
                                      .same_namespaces = true },
                            .target = target,
                            .cpu = cpu,
                            .flags = flags };
        BrokerReply reply;

        memcpy(q.attr, &attr, sizeof(attr));
        g_assert_cmpint(broker_answer(&s->broker, &q, sizeof(attr), -1, -1, &reply), <, 0);
        return reply;
}

static void assert_impossible(const Stage *s, BrokerTarget target, int cpu, uint64_t flags) {
        BrokerReply reply = stage_ask(s, target, cpu, flags);

        g_assert_cmpuint(reply.answer, ==, BROKER_FAIL);
        g_assert_cmpint(reply.error, ==, EINVAL);
}

/* Of a CPU that may still be plugged in the kernel has more to say. */
static void cpus_that_can_come_are_the_kernels(Stage *s, gconstpointer userdata) {
        static const int possible[] = { 0, 200, 255, 256, 511 };

        for (size_t i = 0; i < G_N_ELEMENTS(possible); i++)
                g_assert_cmpuint(stage_ask(s, BROKER_CPU, possible[i], 0).answer, ==, BROKER_PASS);
        assert_impossible(s, BROKER_CPU, 512, 0);
        assert_impossible(s, BROKER_CPU, -2, 0);
        assert_impossible(s, BROKER_CPU, -1, 0);
}

static void a_cgroup_needs_a_directory_and_a_cpu(Stage *s, gconstpointer userdata) {
        g_assert_cmpuint(stage_ask(s, BROKER_CGROUP, 0, PERF_FLAG_PID_CGROUP).answer, ==,
                         BROKER_PASS);
        assert_impossible(s, BROKER_CGROUP, -1, PERF_FLAG_PID_CGROUP);
        assert_impossible(s, BROKER_NOBODY, 0, PERF_FLAG_PID_CGROUP);
}

#define CASE(path, f) g_test_add("/broker-answer/" path, Stage, NULL, stage_up, f, stage_down)

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        CASE("cpus-that-can-come-are-the-kernels", cpus_that_can_come_are_the_kernels);
        CASE("a-cgroup-needs-a-directory-and-a-cpu", a_cgroup_needs_a_directory_and_a_cpu);
        return g_test_run();
}
