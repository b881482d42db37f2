/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/command.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "machine.h"

typedef struct Fixture {
        sd_event *event;
        Signals signals;
        Command command;
        int fds[2]; /* COMMAND has the write end as its descriptor 9 */
} Fixture;

#define TALK_FD 9

static void set_up(Fixture *f, const void *data) {
        g_assert_cmpint(sd_event_new(&f->event), >=, 0);
        g_assert_cmpint(pipe2(f->fds, O_CLOEXEC), ==, 0);
        g_assert_cmpint(dup2(f->fds[1], TALK_FD), ==, TALK_FD);
        close(f->fds[1]);
        signals_init(&f->signals);
}

static void tear_down(Fixture *f, const void *data) {
        signals_done(&f->signals);
        signals_restore(&f->signals);
        sd_event_unref(f->event);
        close(f->fds[0]);
        close(TALK_FD);
}

static int start(Fixture *f, const char *command) {
        static char *argv[4];

        argv[0] = (char *) "sh";
        argv[1] = (char *) "-c";
        argv[2] = (char *) command;
        return command_start(&f->command, argv, f->event, &f->signals);
}

static int start_word(Fixture *f, const char *word) {
        char *argv[] = { (char *) word, NULL };

        return command_start(&f->command, argv, f->event, &f->signals);
}

static void hear(Fixture *f, const char *expected) {
        char text[64] = "";

        for (size_t n = 0; n < strlen(expected); n++)
                g_assert_cmpint(read(f->fds[0], text + n, 1), ==, 1);
        g_assert_cmpstr(text, ==, expected);
}

static void run_to_end(Fixture *f) {
        while (!f->command.ended)
                g_assert_cmpint(sd_event_run(f->event, UINT64_MAX), >=, 0);
}

static void exit_status_comes_through(Fixture *f, const void *data) {
        g_assert_cmpint(start(f, "exit 77"), ==, 0);
        run_to_end(f);
        g_assert_cmpint(f->command.status, ==, 77);
        g_assert_cmpint(f->command.signo, ==, 0);
}

static void death_by_signal_comes_through(Fixture *f, const void *data) {
        g_assert_cmpint(start(f, "kill -KILL $$"), ==, 0);
        run_to_end(f);
        g_assert_cmpint(f->command.signo, ==, SIGKILL);
}

static void what_is_not_found_is_127(Fixture *f, const void *data) {
        g_assert_cmpint(start_word(f, "perfalloc-no-such-command"), ==, ENOENT);
        g_assert_true(f->command.ended);
        g_assert_cmpint(f->command.status, ==, COMMAND_NOT_FOUND);
        g_assert_cmpint(start_word(f, "/no/such/file"), ==, ENOENT);
        g_assert_cmpint(f->command.status, ==, COMMAND_NOT_FOUND);
}

static void what_cannot_be_run_is_126(Fixture *f, const void *data) {
        g_assert_cmpint(start_word(f, "/"), ==, EACCES);
        g_assert_true(f->command.ended);
        g_assert_cmpint(f->command.status, ==, COMMAND_CANNOT_RUN);
        g_assert_cmpint(start_word(f, "/etc/passwd"), ==, EACCES);
        g_assert_cmpint(f->command.status, ==, COMMAND_CANNOT_RUN);
}

static void name_in_locked_directory_is_not_found(Fixture *f, const void *data) {
        char *path = g_strdup(g_getenv("PATH")), *directory;

        if (geteuid() == 0 && (setegid(65534) < 0 || seteuid(65534) < 0))
                g_assert_not_reached();
        directory = g_dir_make_tmp("perfalloc-path-XXXXXX", NULL);
        g_assert_nonnull(directory);
        g_assert_cmpint(g_chmod(directory, 0), ==, 0);
        g_setenv("PATH", directory, TRUE);
        g_assert_cmpint(start_word(f, "perfalloc-no-such-command"), ==, ENOENT);
        g_assert_cmpint(f->command.status, ==, COMMAND_NOT_FOUND);
        g_setenv("PATH", path, TRUE);
        g_rmdir(directory);
        if (getuid() == 0 && (seteuid(0) < 0 || setegid(getgid()) < 0))
                g_assert_not_reached();
        g_free(directory);
        g_free(path);
}

/* Blocked and ignored signals, from /proc. */
static char *signal_state(const char *status) {
        char **lines = g_strsplit(status, "\n", -1);
        GString *found = g_string_new(NULL);

        for (char **line = lines; *line; line++)
                if (g_str_has_prefix(*line, "SigBlk:") || g_str_has_prefix(*line, "SigIgn:"))
                        g_string_append(found, *line);
        g_strfreev(lines);
        return g_string_free(found, FALSE);
}

static void signals_are_as_perfalloc_found_them(void) {
        char *cp[] = { (char *) "cp", (char *) "/proc/self/status", (char *) "/dev/fd/9", NULL };
        char *status, *before, *after, buffer[8192];
        Fixture f = {};
        ssize_t n;

        (void) signal(SIGUSR2, SIG_IGN);
        (void) signal(SIGCHLD, SIG_IGN);
        g_assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
        before = signal_state(status);
        set_up(&f, NULL);
        /* no shell, because shells change signals */
        g_assert_cmpint(command_start(&f.command, cp, f.event, &f.signals), ==, 0);
        run_to_end(&f);
        n = read(f.fds[0], buffer, sizeof(buffer) - 1);
        g_assert_cmpint(n, >, 0);
        buffer[n] = '\0';
        after = signal_state(buffer);
        g_assert_cmpstr(after, ==, before);
        tear_down(&f, NULL);
        (void) signal(SIGUSR2, SIG_DFL);
        (void) signal(SIGCHLD, SIG_DFL);
        g_free(status);
        g_free(before);
        g_free(after);
}

#define EXITS_ON_SIGNALS                                                                           \
        "trap 'exit 8' USR1; trap 'exit 9' USR2; trap 'exit 10' TERM; trap 'exit 11' HUP; "        \
        "printf ready >&9; while :; do sleep 0.01; done"

static void signals_that_processes_send_are_handed_on(Fixture *f, const void *data) {
        static const int signals[] = { SIGUSR1, SIGUSR2, SIGTERM, SIGHUP };

        for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
                g_assert_cmpint(start(f, EXITS_ON_SIGNALS), ==, 0);
                hear(f, "ready");
                kill(getpid(), signals[i]);
                run_to_end(f);
                g_assert_cmpint(f->command.status, ==, 8 + (int) i);
        }
}

/* A signal from the kernel, as from a terminal; here from a timer. */
static void other_signals_are_not(Fixture *f, const void *data) {
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
        const struct itimerspec at_once = { .it_value.tv_nsec = 1 };
        timer_t timer;

        g_assert_cmpint(start(f, EXITS_ON_SIGNALS), ==, 0);
        hear(f, "ready");
        g_assert_cmpint(timer_create(CLOCK_MONOTONIC, &event, &timer), ==, 0);
        g_assert_cmpint(timer_settime(timer, 0, &at_once, NULL), ==, 0);
        g_assert_cmpint(sd_event_run(f->event, UINT64_MAX), >, 0);
        timer_delete(timer);
        kill(getpid(), SIGUSR2);
        run_to_end(f);
        g_assert_cmpint(f->command.status, ==, 9);
}

static void command_that_ends_first_is_not_signalled(Fixture *f, const void *data) {
        g_assert_cmpint(start(f, "exit 5"), ==, 0);
        run_to_end(f);
        kill(getpid(), SIGTERM);
        g_assert_cmpint(sd_event_run(f->event, UINT64_MAX), >, 0);
        g_assert_cmpint(f->command.status, ==, 5);
}

static int note_signal(void *userdata, const struct signalfd_siginfo *info) {
        *(int *) userdata = (int) info->ssi_signo;
        return 0;
}

static bool is_blocked(int signo) {
        sigset_t blocked;

        g_assert_cmpint(sigprocmask(SIG_BLOCK, NULL, &blocked), ==, 0);
        return sigismember(&blocked, signo) == 1;
}

/* What was blocked only to be forwarded acts again. */
static void signals_act_again_afterwards(Fixture *f, const void *data) {
        int signo = 0;

        g_assert_cmpint(start(f, "exit 5"), ==, 0);
        run_to_end(f);
        g_assert_true(is_blocked(SIGTSTP));
        g_assert_cmpint(signals_watch(&f->signals, f->event, SIGNALS_END, note_signal, &signo), >=,
                        0);
        g_assert_false(is_blocked(SIGTSTP));
        g_assert_false(is_blocked(SIGUSR1));
        g_assert_true(is_blocked(SIGCHLD));
        kill(getpid(), SIGTERM);
        g_assert_cmpint(sd_event_run(f->event, UINT64_MAX), >, 0);
        g_assert_cmpint(signo, ==, SIGTERM);
}

/* ---- prepared ---- */

static void assert_nothing_said(Fixture *f) {
        char byte;

        g_assert_cmpint(fcntl(f->fds[0], F_SETFL, O_NONBLOCK), ==, 0);
        g_assert_cmpint(read(f->fds[0], &byte, 1), <, 0);
        g_assert_cmpint(errno, ==, EAGAIN);
        g_assert_cmpint(fcntl(f->fds[0], F_SETFL, 0), ==, 0);
}

static void prepare(Fixture *f, const char *command) {
        char *argv[] = { (char *) "sh", (char *) "-c", (char *) command, NULL };

        g_assert_cmpint(command_prepare(&f->command, argv, NULL, &f->signals), ==, 0);
}

static void what_is_prepared_has_its_pid_and_waits(Fixture *f, const void *data) {
        char pid[16];

        prepare(f, "printf $$ >&9");
        (void) snprintf(pid, sizeof(pid), "%d", f->command.pid);
        assert_nothing_said(f);
        g_assert_cmpint(command_run(&f->command, f->event, &f->signals), ==, 0);
        hear(f, pid);
        run_to_end(f);
        command_done(&f->command);
}

static void what_is_prepared_and_not_run_is_gone(Fixture *f, const void *data) {
        prepare(f, "printf ran >&9");
        command_done(&f->command);
        g_assert_true(f->command.ended);
        g_assert_cmpint(kill(f->command.pid, 0), <, 0);
        assert_nothing_said(f);
}

/* As by ^C of the terminal, which the child gets too. */
static void what_is_killed_before_it_runs_has_ended(Fixture *f, const void *data) {
        siginfo_t info;

        prepare(f, "printf ran >&9");
        g_assert_cmpint(kill(f->command.pid, SIGINT), ==, 0);
        /* dead, and left for command_run */
        g_assert_cmpint(waitid(P_PID, (id_t) f->command.pid, &info, WEXITED | WNOWAIT), ==, 0);
        g_assert_cmpint(command_run(&f->command, f->event, &f->signals), ==, 0);
        run_to_end(f);
        g_assert_cmpint(f->command.signo, ==, SIGINT);
        command_done(&f->command);
}

#define ADD(name, f) g_test_add("/command/" name, Fixture, NULL, set_up, f, tear_down)

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        (void) signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore it, */
        (void) signal(SIGHUP, SIG_DFL); /* and nohup's this one */
        ADD("exit-status-comes-through", exit_status_comes_through);
        ADD("death-by-signal-comes-through", death_by_signal_comes_through);
        ADD("what-is-not-found-is-127", what_is_not_found_is_127);
        ADD("what-cannot-be-run-is-126", what_cannot_be_run_is_126);
        ADD("name-in-locked-directory-is-not-found", name_in_locked_directory_is_not_found);
        g_test_add_func("/command/signals-are-as-perfalloc-found-them",
                        signals_are_as_perfalloc_found_them);
        ADD("signals-that-processes-send-are-handed-on", signals_that_processes_send_are_handed_on);
        ADD("other-signals-are-not", other_signals_are_not);
        ADD("command-that-ends-first-is-not-signalled", command_that_ends_first_is_not_signalled);
        ADD("signals-act-again-afterwards", signals_act_again_afterwards);
        ADD("what-is-prepared-has-its-pid-and-waits", what_is_prepared_has_its_pid_and_waits);
        ADD("what-is-prepared-and-not-run-is-gone", what_is_prepared_and_not_run_is_gone);
        ADD("what-is-killed-before-it-runs-has-ended", what_is_killed_before_it_runs_has_ended);
        return g_test_run();
}
