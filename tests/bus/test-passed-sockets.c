/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sockets that are passed to the service and whose last close waits: SO_LINGER, with data that
 * nobody reads. The others are answered meanwhile.
 */

#include "bus-util.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <gio/gunixfdlist.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LINGER_SEC 3600

/* How the socket is passed. */
typedef struct Way {
        bool named; /* an argument refers to the descriptor */
        int packed; /* it waits in an AF_UNIX socket of this type that is passed; 0: it does not */
        bool again; /* the option is set again when the service has the socket */
} Way;

static void act_check(bool good) {
        if (!good)
                _exit(1);
}

/* ---- the socket ---- */

static void linger(int fd, int on) {
        const struct linger l = { .l_onoff = on, .l_linger = on ? LINGER_SEC : 0 };

        act_check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0);
}

static void fill(int fd) {
        static const char data[65536];

        act_check(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
        while (send(fd, data, sizeof(data), MSG_NOSIGNAL) > 0)
                ;
}

/* A process of its own has the end that is not read, until the test closes fd. */
static void receiver_keep(int receiver, int fd) {
        pid_t pid = fork();

        act_check(pid >= 0);
        if (pid > 0)
                return;
        act_check(dup2(receiver, fd + 1) >= 0);
        (void) close_range((unsigned) fd + 2, ~0U, 0);
        (void) act_hear(fd);
        _exit(0);
}

static int sender_new(int fd) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), sender, receiver;
        socklen_t size = sizeof(a);

        act_check(bind(listener, (struct sockaddr *) &a, size) == 0 && listen(listener, 1) == 0 &&
                  getsockname(listener, (struct sockaddr *) &a, &size) == 0);
        sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        act_check(connect(sender, (struct sockaddr *) &a, size) == 0);
        receiver = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        act_check(receiver >= 0);
        close(listener);
        receiver_keep(receiver, fd);
        close(receiver);
        fill(sender);
        linger(sender, 1);
        return sender;
}

/* An AF_UNIX socket, whose other end is closed, with the descriptor in its queue. */
static int pack(int fd, int type) {
        union {
                struct cmsghdr head;
                char space[CMSG_SPACE(sizeof(int))];
        } control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
        struct iovec data = { (char[]){ 'x' }, 1 };
        struct msghdr m = { .msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        int pair[2];

        act_check(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0);
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        act_check(sendmsg(pair[0], &m, 0) == 1);
        close(pair[0]);
        return pair[1];
}

/* ---- who passes it ---- */

/* libsystemd sends no descriptor that no argument refers to. */
static GDBusMessage *message_new(const char *interface, const char *member, GVariant *body,
                                 int fd) {
        g_autoptr(GUnixFDList) fds = g_unix_fd_list_new();
        GDBusMessage *m = g_dbus_message_new_method_call(PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH,
                                                         interface, member);

        act_check(g_unix_fd_list_append(fds, fd, NULL) == 0);
        g_dbus_message_set_unix_fd_list(m, fds);
        if (body)
                g_dbus_message_set_body(m, body);
        return m;
}

/* Returns when the bus has passed on what was sent before. */
static void bus_settle(GDBusConnection *bus) {
        g_autoptr(GVariant) done = g_dbus_connection_call_sync(
                bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                "GetId", NULL, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);

        act_check(done != NULL);
}

/* A call whose answer is not awaited. */
static void pass(GDBusConnection *bus, const Way *way, int fd) {
        g_autoptr(GDBusMessage) m =
                way->again ? message_new(PERFALLOC_MANAGER_INTERFACE, "Hold",
                                         g_variant_new_parsed("('mine', @a{sv} {})"), fd)
                           : message_new("org.freedesktop.DBus.Peer", "Ping",
                                         way->named ? g_variant_new("(h)", 0) : NULL, fd);

        act_check(
                g_dbus_connection_send_message(bus, m, G_DBUS_SEND_MESSAGE_FLAGS_NONE, NULL, NULL));
        bus_settle(bus);
}

/* Returns when the service has handled, or keeps, what was sent before. */
static void service_settle(GDBusConnection *bus) {
        g_autoptr(GVariant) done = g_dbus_connection_call_sync(
                bus, PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                "HasSamplers", NULL, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);

        act_check(done != NULL);
}

/* Only the service has the socket in the end: this process exits. */
static int play_pass(int fd, const void *data) {
        const Way *way = data;
        int sender = sender_new(fd), passed = way->packed ? pack(sender, way->packed) : sender;
        GDBusConnection *bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);

        act_check(bus != NULL);
        pass(bus, way, passed);
        if (way->again) {
                service_settle(bus);
                linger(sender, 1);
        }
        return 0;
}

/* ---- tests ---- */

static void assert_answered(Client *c) {
        uint64_t cookie = client_send(c, MANAGER, "HasSamplers", NULL);

        sd_bus_message_unref(client_receive(c, cookie));
}

static void assert_all_answered(Client *c) {
        for (unsigned i = 0; i < 10; i++)
                assert_answered(c);
}

/* Its child has the other end until it is freed. */
static Actor *bob_has_passed(const Way *way) {
        Actor *bob = actor_new("bob", play_pass, way);
        int status;

        g_assert_cmpint(waitpid(bob->pid, &status, 0), ==, bob->pid);
        g_assert_cmpint(status, ==, 0);
        bob->pid = 0;
        return bob;
}

static void test_passed(const void *data) {
        g_autoptr(Client) carol = client_new("carol");
        g_autoptr(Actor) bob = NULL;
        pid_t service = service_pid();

        assert_answered(carol);
        bus_check(kill(service, SIGSTOP) < 0 ? -errno : 0, "stop the service");
        bob = bob_has_passed(data);
        bus_check(kill(service, SIGCONT) < 0 ? -errno : 0, "continue the service");
        assert_all_answered(carol);
}

/* polkit keeps the call until its caller leaves. */
static void test_set_again(const void *data) {
        g_autoptr(Client) carol = client_new("carol");
        g_autoptr(Actor) bob = NULL;

        rig("polkit-signal STOP", NULL);
        bob = bob_has_passed(data);
        assert_all_answered(carol);
        rig("polkit-signal CONT", NULL);
}

int main(int argc, char *argv[]) {
        static const Way named = { .named = true }, hidden = {}, stream = { .packed = SOCK_STREAM },
                         packets = { .packed = SOCK_SEQPACKET }, again = { .again = true };

        g_test_init(&argc, &argv, NULL);

        g_test_add_data_func("/passed-sockets/argument", &named, test_passed);
        g_test_add_data_func("/passed-sockets/no-argument-refers-to-it", &hidden, test_passed);
        g_test_add_data_func("/passed-sockets/in-the-queue-of-another-one", &stream, test_passed);
        g_test_add_data_func("/passed-sockets/in-the-queue-of-one-as-a-prover", &packets,
                             test_passed);
        g_test_add_data_func("/passed-sockets/option-set-again", &again, test_set_again);

        return g_test_run();
}
