/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "actor.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client.h"

static void act(const char *user, int fd, int (*play)(int fd, const void *data), const void *data) {
        const struct passwd *pw = user_find(user);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* The leases and connections of the test are not the actor's. */
        (void) dup2(fd, 3);
        (void) close_range(4, ~0U, 0);
        if (initgroups(user, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
                _exit(125);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_DUMPABLE, 1); /* as after an exec */
        _exit(play(3, data));
}

Actor *actor_new(const char *user, int (*play)(int fd, const void *data), const void *data) {
        Actor *a = g_new0(Actor, 1);
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                g_error("socketpair: %s", g_strerror(errno));
        a->pid = fork();
        if (a->pid < 0)
                g_error("fork: %s", g_strerror(errno));
        if (a->pid == 0)
                act(user, fds[1], play, data);
        (void) close(fds[1]);
        a->fd = fds[0];
        return a;
}

char actor_hear(Actor *a) {
        struct pollfd p = { .fd = a->fd, .events = POLLIN };
        char what;
        int status = 0;

        if (poll(&p, 1, AWAIT_SEC * 1000) != 1)
                g_error("the process %d says nothing", a->pid);
        if (read(a->fd, &what, 1) != 1) {
                (void) waitpid(a->pid, &status, 0);
                g_error("the process %d has ended, with wait status 0x%x", a->pid,
                        (unsigned) status);
        }
        return what;
}

void actor_tell(Actor *a, char what) {
        g_assert_cmpint(send(a->fd, &what, 1, MSG_NOSIGNAL), ==, 1);
}

int actor_join(Actor *a) {
        int status, r = 0;

        a->fd = close_fd(a->fd);
        await((r = waitpid(a->pid, &status, WNOHANG)) != 0);
        g_assert_cmpint(r, ==, a->pid);
        a->pid = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void actor_free(Actor *a) {
        if (!a)
                return;
        close_fd(a->fd);
        if (a->pid > 0) {
                (void) kill(a->pid, SIGKILL);
                (void) waitpid(a->pid, NULL, 0);
        }
        g_free(a);
}

void act_say(int fd, char what) {
        if (send(fd, &what, 1, MSG_NOSIGNAL) != 1)
                _exit(124);
}

char act_hear(int fd) {
        char what;

        return read(fd, &what, 1) == 1 ? what : '\0';
}

bool process_is_asleep(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int) pid);
        g_autofree char *text = NULL;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        return g_str_has_prefix(strrchr(text, ')'), ") S");
}
