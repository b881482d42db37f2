/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters of the service beside perf stat, which counts the same at the same time, per CPU (-A)
 * and in sum. */

#include "guest-util.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#define EVENT    "instructions:u" /* QEMU counts those of all CPUs on each, but for user space */
#define CPUS     2
#define BUSY_CPU 0

typedef struct PerfStat {
        pid_t pid;
        int control, ack; /* perf-stat(1), --control */
        char *file;
        unsigned n_events;
} PerfStat;

/* Passes both descriptors on, and opens the events disabled. */
static PerfStat perf_stat_start(bool by_cpu, unsigned n_events) {
        g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
        PerfStat p = { .n_events = n_events };
        int control[2], ack[2];

        g_assert_cmpint(pipe(control), ==, 0);
        g_assert_cmpint(pipe(ack), ==, 0);
        p.file = g_strdup_printf("/run/perf-stat-%s", by_cpu ? "each" : "sum");
        for (const char *const *word = (const char *[]){ "perf", "stat", "-x,", "-a", "-D", "-1",
                                                         "-o", p.file, NULL };
             *word; word++)
                g_ptr_array_add(argv, g_strdup(*word));
        g_ptr_array_add(argv, g_strdup_printf("--control=fd:%d,%d", control[0], ack[1]));
        if (by_cpu)
                g_ptr_array_add(argv, g_strdup("-A"));
        for (unsigned i = 0; i < n_events; i++)
                g_ptr_array_add(argv, g_strdup("-e" EVENT));
        g_ptr_array_add(argv, NULL);
        p.pid = fork();
        if (p.pid == 0) {
                execvp("perf", (char **) argv->pdata);
                _exit(127);
        }
        close(control[0]);
        close(ack[1]);
        p.control = control[1];
        p.ack = ack[0];
        return p;
}

/* "enable" or "disable", which perf acknowledges. */
static void perf_stat_tell(const PerfStat *p, const char *command) {
        char answer[16];

        g_assert_cmpint(write(p->control, command, strlen(command)), ==, strlen(command));
        g_assert_cmpint(read(p->ack, answer, sizeof(answer)), >=, 4);
        g_assert_cmpint(strncmp(answer, "ack\n", 4), ==, 0);
}

/* Of the fields "value,unit,event,running,percent,...", what would have been in so much enabled
 * time: it began to count a little earlier than the service, and ended later. */
static double line_value(const char *fields, double enabled) {
        g_auto(GStrv) field = g_strsplit(fields, ",", -1);
        double running, percent;

        g_assert_cmpuint(g_strv_length(field), >=, 5);
        running = g_ascii_strtod(field[3], NULL);
        percent = g_ascii_strtod(field[4], NULL);
        g_assert_cmpfloat(running, >, 0);
        return g_ascii_strtod(field[0], NULL) * enabled / (running * 100 / percent);
}

/* The mean of the events; of one CPU, or without -A. */
static double perf_stat_value(const PerfStat *p, int cpu, double enabled) {
        g_autofree char *text = NULL, *prefix = g_strdup_printf("CPU%d,", cpu);
        size_t skipped = cpu < 0 ? 0 : strlen(prefix);
        g_auto(GStrv) lines = NULL;
        double sum = 0;

        g_assert_true(g_file_get_contents(p->file, &text, NULL, NULL));
        lines = g_strsplit(text, "\n", -1);
        for (char **line = lines; *line; line++)
                if (strstr(*line, EVENT) && (cpu < 0 || g_str_has_prefix(*line, prefix)))
                        sum += line_value(*line + skipped, enabled);
        return sum / p->n_events;
}

static void perf_stat_end(PerfStat *p) {
        int status;

        g_assert_cmpint(kill(p->pid, SIGINT), ==, 0);
        g_assert_cmpint(waitpid(p->pid, &status, 0), ==, p->pid);
        close(p->control);
        close(p->ack);
}

static void perf_stat_done(PerfStat *p) {
        (void) unlink(p->file);
        g_free(p->file);
}

typedef struct Ours {
        double estimate, enabled, each[CPUS]; /* means; enabled is a sum over the CPUs */
        bool scaled;
} Ours;

static void ours_add_rows(Client *c, const char *path, Ours *o, unsigned n) {
        g_autoptr(sd_bus_message) reply = client_call(c, path, COUNTER, "ReadEach", NULL);
        uint64_t value, enabled, running;
        int32_t cpu;

        bus_check(sd_bus_message_enter_container(reply, 'a', "(iuttts)"), "ReadEach");
        while (sd_bus_message_read(reply, "(iuttts)", &cpu, NULL, &value, &enabled, &running,
                                   NULL) > 0) {
                g_assert_cmpint(cpu, <, CPUS);
                o->each[cpu] += (double) value * (double) enabled / (double) running / n;
        }
}

static Ours ours_read(Client *c, char *const *paths, unsigned n) {
        Ours o = {};

        for (unsigned i = 0; i < n; i++) {
                g_auto(Measured) m = counter_read(c, paths[i]);

                o.estimate += (double) m.estimate / n;
                o.enabled += (double) m.enabled / n;
                o.scaled |= strcmp(m.quality, "scaled") == 0;
                ours_add_rows(c, paths[i], &o, n);
        }
        return o;
}

static bool was_enabled(Client *c, const char *path, uint64_t nsec) {
        g_auto(Measured) m = counter_read(c, path);

        return m.enabled >= nsec;
}

static void assert_near(const char *what, double our, double their) {
        g_test_message("%s: %.0f, perf stat %.0f (%+.2f %%)", what, our, their,
                       100 * (our / their - 1));
        g_assert_cmpfloat(ABS(our / their - 1), <, 0.05);
}

/* All count for some seconds, in which one CPU of two is busy. */
static void compare(unsigned n_ours, unsigned n_theirs) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) spinner = spinner_new("alice", BUSY_CPU);
        PerfStat each = perf_stat_start(true, n_theirs), sum = perf_stat_start(false, n_theirs);
        bool scaled = n_ours + 2 * n_theirs > GENERAL;
        char *counters[GENERAL];
        double total = 0;
        Ours o;

        for (unsigned i = 0; i < n_ours; i++)
                counters[i] = counter_open(alice, EVENT, "a{sv}", 2, "scope", "s", "cpu", "start",
                                           "b", 0);
        perf_stat_tell(&each, "enable\n");
        perf_stat_tell(&sum, "enable\n");
        for (unsigned i = 0; i < n_ours; i++)
                counter_do(alice, counters[i], "Start");
        await(was_enabled(alice, counters[0], 6000000000));
        for (unsigned i = 0; i < n_ours; i++)
                counter_do(alice, counters[i], "Stop");
        perf_stat_tell(&each, "disable\n");
        perf_stat_tell(&sum, "disable\n");
        perf_stat_end(&each);
        perf_stat_end(&sum);
        o = ours_read(alice, counters, n_ours);
        g_assert_cmpint(o.scaled, ==, scaled);
        for (int cpu = 0; cpu < CPUS; cpu++)
                total += perf_stat_value(&each, cpu, o.enabled / CPUS);
        assert_near("busy CPU, -A", o.each[BUSY_CPU],
                    perf_stat_value(&each, BUSY_CPU, o.enabled / CPUS));
        assert_near("estimate, sum of -A", o.estimate, total);
        /* which scales the sums as one; here both CPUs are shared alike */
        assert_near("estimate, without -A", o.estimate, perf_stat_value(&sum, -1, o.enabled));
        perf_stat_done(&each);
        perf_stat_done(&sum);
        paths_free(counters, n_ours);
}

static void test_exact(void) {
        compare(2, 2);
}

static void test_multiplexed(void) {
        compare(4, 3);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/perf-stat/exact", test_exact);
        g_test_add_func("/perf-stat/multiplexed", test_multiplexed);
        return g_test_run();
}
