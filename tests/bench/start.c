/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whole processes. Run by tests/bench/fast.sh and tests/bench/systemd.sh:
 *
 *         bench-start race ROW SIDE PID N COMMAND...
 *
 * runs N times COMMAND (perfalloc of ours, or PCP's) with "bench-start stamp" at its end, which
 * says when it was started, and says how many were started before the events of process PID were
 * all off. Row ROW-start: how long it took until it ran and the events were off.
 *
 *         bench-start pairs ROW N 'OUR COMMAND' 'THEIR COMMAND'
 *
 * runs both, split at spaces, in turns, and says how long each took. Those before the first word
 * "--" are run before each of them, and are not timed.
 */

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "bench.h"

#define EVENTS_MAX 2048u
#define WORDS_MAX  32u

#define STAMP_OUT 8 /* descriptors that stamp is given */
#define STAMP_IN  9

extern char **environ;

/* ---- stamp ---- */

static int stamp(void) {
        uint64_t now = clock_nsec(CLOCK_MONOTONIC_RAW);
        char c;

        check_errno((int) write(STAMP_OUT, &now, sizeof(now)), "write");
        check_errno((int) read(STAMP_IN, &c, 1), "read");
        return EXIT_SUCCESS;
}

/* ---- race ---- */

static pid_t command_start(char *argv[], int out, int in) {
        pid_t pid = fork();

        check_errno(pid, "fork");
        if (pid > 0)
                return pid;
        check_errno(dup2(out, STAMP_OUT), "dup2");
        check_errno(dup2(in, STAMP_IN), "dup2");
        (void) execvp(argv[0], argv);
        (void) fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
}

static bool race_trial(Watch *w, const char *row, const char *side, char *argv[]) {
        int out[2], in[2], status;
        uint64_t begin, started, last;
        unsigned i;
        pid_t pid;

        check_errno(pipe2(out, O_CLOEXEC), "pipe");
        check_errno(pipe2(in, O_CLOEXEC), "pipe");
        watch_look(w);
        begin = clock_nsec(CLOCK_MONOTONIC_RAW);
        pid = command_start(argv, out[1], in[0]);
        close_fd(out[1]);
        close_fd(in[0]);
        check(read(out[0], &started, sizeof(started)) == sizeof(started) ? 0 : -EPIPE, argv[0]);
        for (i = 0; i < 1000 && !watch_is_off(w); i++)
                sleep_usec(1000);
        check(i < 1000 ? 0 : -ETIME, "the monitors do not give way");
        last = watch_last_off(w);
        sample(row, side, (double) (MAX(started, last) - begin) / 1e3);
        close_fd(in[1]);
        close_fd(out[0]);
        (void) waitpid(pid, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED, argv[0]);
        for (i = 0; i < 1000 && watch_last_on(w) == 0; i++)
                sleep_usec(1000);
        check(i < 1000 ? 0 : -ETIME, "the monitors do not go on");
        return started < last;
}

static int race(const char *row, const char *side, pid_t monitor, unsigned n, char *argv[]) {
        static int fds[EVENTS_MAX];
        size_t n_fds = events_take(monitor, fds, EVENTS_MAX);
        unsigned too_early = 0;
        char row_start[64];
        Watch w;

        (void) snprintf(row_start, sizeof(row_start), "%s-start", row);

        check(n_fds > 0 ? 0 : -ENOENT, "the monitor has no events");
        watch_init(&w, fds, n_fds);
        for (unsigned i = 0; i < n; i++) {
                if (race_trial(&w, row_start, side, argv))
                        too_early++;
                if (strcmp(side, THEIRS) == 0)
                        sleep_usec((uint64_t) random() % 100000);
        }
        sample(row, side, too_early);
        say(row, "note", "%s: %u of %u", side, too_early, n);
        watch_done(&w);
        return EXIT_SUCCESS;
}

/* ---- pairs ---- */

static void words_split(char *line, const char *words[WORDS_MAX]) {
        size_t n = 0;

        for (char *word = strtok(line, " "); word && n < WORDS_MAX - 1; word = strtok(NULL, " "))
                words[n++] = word;
        words[n] = NULL;
}

static void command_run(const char *const words[]) {
        int status, r;
        pid_t pid;

        r = posix_spawnp(&pid, words[0], NULL, NULL, (char *const *) words, environ);
        check(-r, words[0]);
        (void) waitpid(pid, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED, words[0]);
}

static void pair_run(const char *row, const char *side, const char *line) {
        char *copy = strdup(line);
        const char *words[WORDS_MAX];
        uint64_t start;

        check(copy ? 0 : -ENOMEM, line);
        words_split(copy, words);
        start = clock_nsec(CLOCK_MONOTONIC);
        command_run(words);
        sample(row, side, usec_since(start));
        free(copy);
}

static int pairs(const char *row, unsigned n, const char *ours, const char *theirs) {
        for (unsigned i = 0; i < n; i++) {
                pair_run(row, OURS, ours);
                pair_run(row, THEIRS, theirs);
        }
        return EXIT_SUCCESS;
}

/* ---- cold ---- */

static void cold_run(const char *row, const char *side, const char *unit, const char *name,
                     const char *path, const char *interface, const char *property) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus *bus = bus_open(NULL);
        char stop[256], *value;
        const char *const words[] = { "sh", "-c", stop, NULL };
        uint64_t start;

        /* forgotten, or it is soon started too often */
        (void) snprintf(stop, sizeof(stop),
                        "systemctl stop %1$s && { systemctl reset-failed %1$s 2>/dev/null || :; }",
                        unit);
        command_run(words);
        start = clock_nsec(CLOCK_MONOTONIC);
        check(sd_bus_get_property_string(bus, name, path, interface, property, &error, &value),
              error.message ?: name);
        sample(row, side, usec_since(start));
        free(value);
        sd_bus_flush_close_unref(bus);
}

static int cold(const char *row, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                cold_run(row, OURS, "perfallocd.service", MANAGER, "Version");
                cold_run(row, THEIRS, "systemd-hostnamed.service", "org.freedesktop.hostname1",
                         "/org/freedesktop/hostname1", "org.freedesktop.hostname1", "Hostname");
        }
        return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc == 2 && strcmp(argv[1], "stamp") == 0)
                return stamp();
        if (argc > 6 && strcmp(argv[1], "race") == 0)
                return race(argv[2], argv[3], (pid_t) atoi(argv[4]),
                            trials((unsigned) atoi(argv[5])), &argv[6]);
        if (argc == 6 && strcmp(argv[1], "pairs") == 0)
                return pairs(argv[2], trials((unsigned) atoi(argv[3])), argv[4], argv[5]);
        if (argc == 4 && strcmp(argv[1], "cold") == 0)
                return cold(argv[2], trials((unsigned) atoi(argv[3])));
        (void) fprintf(stderr, "usage: see %s\n", __FILE__);
        return EXIT_FAILURE;
}
