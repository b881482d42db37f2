/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Scopes of counters: cgroups, and combinations of options. */

#include "writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

/* ---- cgroups ---- */

/* The mount point of a cgroup file system of that type (and with these options), or NULL. */
static char *cgroup_mount(const char *type, const char *options) {
        g_autofree char *mounts = NULL;
        g_auto(GStrv) lines = NULL;

        g_assert_true(g_file_get_contents("/proc/self/mounts", &mounts, NULL, NULL));
        lines = g_strsplit(mounts, "\n", -1);
        for (char **line = lines; *line; line++) {
                g_auto(GStrv) fields = g_strsplit(*line, " ", 5);

                if (g_strv_length(fields) == 5 && strcmp(fields[2], type) == 0 &&
                    strstr(fields[3], options))
                        return g_strdup(fields[1]);
        }
        return NULL;
}

typedef struct Cgroup {
        char *path;
        int fd;
} Cgroup;

/* False: this machine has none for perf events. Version 1 if that is mounted, else 2. */
static bool cgroup_make(Cgroup *g) {
        g_autofree char *v1 = cgroup_mount("cgroup", "perf_event");
        g_autofree char *mount = v1 ? g_strdup(v1) : cgroup_mount("cgroup2", "");

        if (mount)
                g->path = g_strdup_printf("%s/perfalloc-test-%d", mount, (int) getpid());
        if (!mount || mkdir(g->path, 0755) < 0) {
                g_test_skip("no cgroup can be made here");
                return false;
        }
        g->fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        g_assert_cmpint(g->fd, >=, 0);
        return true;
}

static void cgroup_enter(const Cgroup *g, pid_t pid) {
        g_autofree char *path = g_build_filename(g->path, "cgroup.procs", NULL);
        g_autofree char *text = g_strdup_printf("%d", (int) pid);
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        g_assert_cmpint(write(fd, text, strlen(text)), ==, (ssize_t) strlen(text));
        close(fd);
}

static void cgroup_remove(Cgroup *g) {
        close(g->fd);
        await(rmdir(g->path) == 0); /* once the last process has ended */
        g_free(g->path);
}

static void test_cgroup_counts_who_is_in_it(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *event = watched_event(0), *counter = NULL;
        Actor *inside = NULL;
        g_autoptr(Actor) outside = NULL;
        g_autoptr(sd_bus_message) rows = NULL;
        unsigned n_rows = 0;
        Cgroup g;

        if (!cgroup_make(&g))
                return;
        inside = writer_new("bob");
        outside = writer_new("bob");
        cgroup_enter(&g, inside->pid);
        counter =
                counter_open(alice, event, "a{sv}", 2, "scope", "s", "cgroup", "cgroup", "h", g.fd);
        writer_write(inside);
        writer_write(outside);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(100));
        cgroup_enter(&g, outside->pid);
        writer_write(outside);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(200));

        rows = client_call(alice, counter, COUNTER, "ReadEach", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(rows, 'a', "(iuttts)"), >, 0);
        while (sd_bus_message_skip(rows, "(iuttts)") > 0)
                n_rows++;
        g_assert_cmpuint(n_rows, ==, n_cpus());
        client_refused(alice, PERFALLOC_ERROR_WRONG_SCOPE, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) inside->pid, 0);
        counter_do(alice, counter, "Close");
        actor_free(inside);
        actor_free(g_steal_pointer(&outside));
        cgroup_remove(&g);
}

static int play_spinner(int fd, const void *data) {
        for (;;)
                ;
        return 0;
}

static uint64_t run_nsec(pid_t pid) {
        struct timespec t;
        clockid_t clock;

        g_assert_cmpint(clock_getcpuclockid(pid, &clock), ==, 0);
        g_assert_cmpint(clock_gettime(clock, &t), ==, 0);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

/* When the first event of a cgroup is enabled while a task of it is running, the kernel goes on
 * with the cgroup's time from when an event was last enabled there. Beside an event that is enabled
 * all the time, as the manual says, no stop is counted as enabled time. */
static void test_cgroup_times_beside_a_dummy(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *dummy = NULL, *counter = NULL;
        gint64 counted_usec = 0;
        g_auto(Measured) m = {};
        Actor *spinner;
        Cgroup g;

        if (!cgroup_make(&g))
                return;
        dummy = counter_open(alice, "dummy", "a{sv}", 2, "scope", "s", "cgroup", "cgroup", "h",
                             g.fd);
        counter = counter_open(alice, "cpu-clock", "a{sv}", 3, "scope", "s", "cgroup", "cgroup",
                               "h", g.fd, "start", "b", false);
        spinner = actor_new("bob", play_spinner, NULL);
        cgroup_enter(&g, spinner->pid);
        for (int round = 0; round < 20; round++) {
                uint64_t before = counter_value(alice, counter), ran;
                gint64 start = g_get_monotonic_time();

                counter_do(alice, counter, "Start");
                await(counter_value(alice, counter) > before);
                counter_do(alice, counter, "Stop");
                counted_usec += g_get_monotonic_time() - start;
                ran = run_nsec(spinner->pid);
                await(run_nsec(spinner->pid) > ran + 20 * USEC_PER_MSEC * NSEC_PER_USEC);
        }
        m = counter_read(alice, counter);
        g_test_message("%" G_GUINT64_FORMAT " ns enabled in %" G_GINT64_FORMAT " us", m.enabled,
                       counted_usec);
        g_assert_cmpuint(m.enabled, <=, (guint64) counted_usec * 1000);
        g_assert_cmpuint(m.enabled, ==, m.running);
        counter_do(alice, counter, "Close");
        counter_do(alice, dummy, "Close");
        actor_free(spinner);
        cgroup_remove(&g);
}

static void test_cgroup_needs_count_system(void) {
        g_autoptr(Client) bob = client_new("bob");
        Cgroup g;

        if (!cgroup_make(&g))
                return;
        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope", "s", "cgroup",
                       "cgroup", "h", g.fd);
        g_assert_nonnull(strstr(bob->refusal, "org.perfalloc1.count-system"));
        cgroup_remove(&g);
}

static void refused_cgroup(Client *c, int fd) {
        client_refused(c, PERFALLOC_ERROR_BAD_DESCRIPTOR, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "cpu-clock", 2, "scope", "s", "cgroup", "cgroup", "h", fd);
        close(fd);
}

static void test_cgroup_is_a_cgroup(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *v1 = cgroup_mount("cgroup", "freezer"), *v2 = cgroup_mount("cgroup2", "");
        int pipes[2];

        refused_cgroup(alice, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        refused_cgroup(alice, open("/dev/null", O_RDONLY | O_CLOEXEC));
        g_assert_cmpint(pipe2(pipes, O_CLOEXEC), ==, 0);
        refused_cgroup(alice, pipes[0]);
        close(pipes[1]);
        if (v2) {
                g_autofree char *file = g_build_filename(v2, "cgroup.procs", NULL);

                refused_cgroup(alice, open(v2, O_PATH | O_CLOEXEC));
                refused_cgroup(alice, open(file, O_RDONLY | O_CLOEXEC));
        }
        if (v1) /* of another controller */
                refused_cgroup(alice, open(v1, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* ---- pinned ---- */

static void test_pinned_counts(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 2, "pinned", "b", true,
                                                "pid", "u", (uint32_t) writer->pid);
        g_auto(Measured) m = {};

        writer_write(writer);
        m = counter_read(alice, counter);
        g_assert_cmpuint(m.value, ==, hits(100));
        g_assert_cmpstr(m.quality, ==, "exact");
        g_assert_true(counter_is(alice, counter, "counting"));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/scope/cgroup/counts-who-is-in-it", test_cgroup_counts_who_is_in_it);
        g_test_add_func("/scope/cgroup/times-beside-a-dummy", test_cgroup_times_beside_a_dummy);
        g_test_add_func("/scope/cgroup/needs-count-system", test_cgroup_needs_count_system);
        g_test_add_func("/scope/cgroup/is-a-cgroup", test_cgroup_is_a_cgroup);
        g_test_add_func("/scope/pinned-counts", test_pinned_counts);
        return g_test_run();
}
