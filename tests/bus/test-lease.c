/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The lease: a descriptor whose last close ends the hold, whichever process closes it, and
 * however. */

#include "bus-util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Sends descriptors over the socket, as a process passes them to another one. */
static void fds_send(int sock, const int *fds, size_t n) {
        char control[CMSG_SPACE(4 * sizeof(int))] = {}, byte = 'l';
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);

        *c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                               .cmsg_type = SCM_RIGHTS,
                               .cmsg_len = CMSG_LEN(n * sizeof(int)) };
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
        g_assert_cmpint(sendmsg(sock, &m, MSG_NOSIGNAL), ==, 1);
}

static int fd_receive(int sock) {
        char control[CMSG_SPACE(sizeof(int))], byte;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control) };
        int fd;

        g_assert_cmpint(recvmsg(sock, &m, MSG_CMSG_CLOEXEC), ==, 1);
        g_assert_nonnull(CMSG_FIRSTHDR(&m));
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
        return fd;
}

typedef struct Play {
        bool pass; /* passes a copy of the lease to the other side */
} Play;

/* Takes a hold, writes its number to the other side and stays until it is killed. */
static int play_holder(int fd, const void *data) {
        const Play *play = data;
        g_autoptr(Client) me = client_new("alice");
        g_autofree char *path = NULL;
        int lease;

        path = hold_take(me, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(me, path));
        if (play->pass)
                fds_send(fd, &lease, 1);
        dprintf(fd, "%s\n", path);
        while (act_hear(fd))
                ;
        return 0;
}

static char *holder_path(Actor *a) {
        GString *path = g_string_new(NULL);

        for (char c = actor_hear(a); c != '\n'; c = actor_hear(a))
                g_string_append_c(path, c);
        return g_string_free(path, FALSE);
}

static void actor_kill(Actor *a) {
        g_assert_cmpint(kill(a->pid, SIGKILL), ==, 0);
        g_assert_cmpint(actor_join(a), ==, 128 + SIGKILL);
}

static void assert_ends(Client *c, const char *path) {
        await(hold_is(c, path, "ended"));
        g_assert_true(client_reads(c, path, HOLD, "Result", "lease-closed"));
}

static void test_close(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        int lease;

        path = hold_take(alice, &lease, "a{sv}", 0);
        (void) hold_wait(alice, path);
        close_fd(lease);
        assert_ends(alice, path);
}

static void test_disconnect(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        (void) hold_wait(alice, path);
        client_free(TAKE_PTR(alice));
        await(hold_wait(other, path));
        g_assert_true(hold_is(other, path, "granted"));
}

static void test_kill(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) holder = actor_new("alice", play_holder, &(Play){});
        g_autofree char *path = holder_path(holder);

        g_assert_true(hold_is(root, path, "granted"));
        actor_kill(holder);
        assert_ends(root, path);
}

static void test_last_copy(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) holder = actor_new("alice", play_holder, &(Play){ .pass = true });
        _cleanup_close_ int copy = fd_receive(holder->fd);
        g_autofree char *path = holder_path(holder);

        actor_kill(holder);
        /* a hold that is taken and ended after the death: its lease is checked after the dead
         * process's */
        for (int i = 0; i < 3; i++) {
                g_autofree char *other = NULL;
                int lease;

                other = hold_take(root, &lease, "a{sv}", 0);
                close_fd(lease);
                assert_ends(root, other);
        }
        g_assert_true(hold_is(root, path, "granted"));
        copy = close_fd(copy);
        assert_ends(root, path);
}

static void test_in_flight(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        int pair[2], lease;

        path = hold_take(alice, &lease, "a{sv}", 0);
        (void) hold_wait(alice, path);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
        fds_send(pair[0], &lease, 1);
        close_fd(lease);
        close_fd(pair[0]);
        g_assert_true(hold_is(alice, path, "granted"));
        close_fd(pair[1]);
        assert_ends(alice, path);
}

/* Two sockets that keep each other alive in their own queues, and the lease with them: the kernel's
 * collector finds them. */
static void test_cycle(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        int pair[2], other[2], lease;

        path = hold_take(alice, &lease, "a{sv}", 0);
        (void) hold_wait(alice, path);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
        fds_send(pair[0], (const int[]){ pair[0], pair[1], lease }, 3);
        fds_send(pair[1], (const int[]){ pair[0], pair[1], lease }, 3);
        close_fd(lease);
        close_fd(pair[0]);
        close_fd(pair[1]);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other), ==, 0);
        close_fd(other[0]);
        close_fd(other[1]);
        assert_ends(alice, path);
}

static void test_writing(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;
        char junk[65536] = {};

        path = hold_take(alice, &lease, "a{sv}", 0);
        (void) hold_wait(alice, path);
        for (int i = 0; i < 4; i++)
                (void) !write(lease, junk, sizeof(junk));
        g_assert_true(hold_is(alice, path, "granted"));
        lease = close_fd(lease);
        assert_ends(alice, path);
}

static bool lease_has_error(int lease, int timeout) {
        struct pollfd p = { .fd = lease };

        return poll(&p, 1, timeout) == 1 && p.revents & POLLERR;
}

static void test_error(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        (void) hold_wait(alice, path);
        g_assert_false(lease_has_error(lease, 0));
        hold_release(alice, path);
        g_assert_true(lease_has_error(lease, AWAIT_SEC * 1000));
        g_assert_true(client_reads(alice, path, HOLD, "Result", "released"));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/lease/closing-it-ends-the-hold", test_close);
        g_test_add_func("/lease/it-keeps-the-hold-when-the-connection-is-closed", test_disconnect);
        g_test_add_func("/lease/killing-the-client-ends-the-hold", test_kill);
        g_test_add_func("/lease/only-the-last-copy-counts", test_last_copy);
        g_test_add_func("/lease/a-lease-nobody-can-receive-any-more-is-closed", test_in_flight);
        g_test_add_func("/lease/a-lease-sent-over-sockets-that-hold-themselves-is-closed",
                        test_cycle);
        g_test_add_func("/lease/writing-to-it-does-nothing", test_writing);
        g_test_add_func("/lease/it-reports-an-error-when-the-hold-ends-first", test_error);
        return g_test_run();
}
