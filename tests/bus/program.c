/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pwd.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/fd-message.h"
#include "program-trick.h"

#define WAIT_KILLABLE (1u << 5)

typedef struct ProgramShared {
        char user[32];
        ProgramKind kind;
        ProgramCall call;
        const char *path;
        int fd, n;
        long result;
} ProgramShared;

/* ---- the program ---- */

static int filter_install(ProgramKind kind) {
        const unsigned foreign = kind == PROGRAM_LOST ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
        const unsigned second = kind == PROGRAM_FORWARDS ? SYS_getpgid : SYS_perf_event_open;
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xc000003e, 1, 0), /* AUDIT_ARCH_X86_64 */
                BPF_STMT(BPF_RET | BPF_K, foreign),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_restrict_self, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = G_N_ELEMENTS(code), .filter = code };

        if (kind != PROGRAM_PRIVILEGES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -1;
        return (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                             SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE, &program);
}

static void slow_memory_make(void) {
        struct uffdio_api api = { .api = UFFD_API };
        struct uffdio_register area = { .range = { (uintptr_t) PROGRAM_SLOW_ADDRESS, 4096 },
                                        .mode = UFFDIO_REGISTER_MODE_MISSING };
        void *p = mmap((void *) (uintptr_t) PROGRAM_SLOW_ADDRESS, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        int fd = (int) syscall(SYS_userfaultfd, O_CLOEXEC);

        if (p == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 ||
            ioctl(fd, UFFDIO_REGISTER, &area) < 0)
                _exit(121);
}

static void user_become(const char *user) {
        const struct passwd *pw = user_find(user);

        if (setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
                _exit(120);
        (void) prctl(PR_SET_DUMPABLE, 1);
}

static long program_do(ProgramShared *s, char what) {
        uint64_t value;

        switch (what) {
        case 'o':
                return trick_open(&s->call);
        case 't':
                return trick_open_in_thread(&s->call);
        case 'c':
                return trick_open_in_child(&s->call);
        case 'k':
                return trick_open_of_child(&s->call);
        case 'w':
                return trick_open_while_changing(&s->call, s->n);
        case 'r':
                return read(s->fd, &value, sizeof(value)) == sizeof(value) ? (long) value : -1;
        case 'f':
                return fcntl(s->fd, F_GETFD);
        case 'g':
                return syscall(SYS_getpgid, 0) == getpgrp();
        case 'd':
                return cgroup_open();
        case 'l':
                return trick_landlock();
        case 'n':
                return trick_open_in_namespaces(&s->call);
        case 'i':
                return trick_call_i386(s->n, &s->call);
        case 'x':
                return trick_open_and_exec(&s->call, s->path);
        case 'e':
                return trick_exec(s->path);
        default:
                return -EINVAL;
        }
}

static int play_program(int fd, const void *data) {
        ProgramShared *s = (ProgramShared *) (uintptr_t) data;
        char what;

        if (s->kind == PROGRAM_SLOW)
                slow_memory_make();
        if (s->kind == PROGRAM_NAMESPACE && unshare(CLONE_NEWUSER) < 0)
                return 119;
        if (s->kind == PROGRAM_PID_NAMESPACE)
                trick_enter_pid_namespace();
        if (s->kind == PROGRAM_LENT)
                trick_map_as_root();
        if (s->kind == PROGRAM_NESTED)
                trick_map(geteuid());
        if (s->kind == PROGRAM_MAPPED || s->kind == PROGRAM_NESTED)
                trick_map(geteuid());
        if (s->kind != PROGRAM_NATIVE) {
                int listener = filter_install(s->kind);

                if (fd_message_send(fd, "l", 1, &listener, listener >= 0, 0) < 0)
                        return 118;
                close_fd(listener);
        }
        if (geteuid() == 0)
                user_become(s->user);
        if (s->kind >= PROGRAM_MAPPED)
                trick_drop_capabilities();
        act_say(fd, 'r');
        while ((what = act_hear(fd))) {
                s->result = program_do(s, what);
                act_say(fd, 'd');
        }
        return 0;
}

/* ---- the test ---- */

Program *program_new(const char *user, ProgramKind kind) {
        const bool root = kind == PROGRAM_PRIVILEGES || kind == PROGRAM_SLOW ||
                          kind == PROGRAM_PID_NAMESPACE || kind == PROGRAM_LENT;
        Program *p = g_new0(Program, 1);
        size_t n_fds = 0;
        char byte;
        int how;

        p->listener = -1;
        p->shared = mmap(NULL, sizeof(ProgramShared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        g_assert_true(p->shared != MAP_FAILED);
        p->shared->kind = kind;
        g_strlcpy(p->shared->user, user, sizeof(p->shared->user));
        p->actor = actor_new(root ? "root" : user, play_program, p->shared);
        if (kind != PROGRAM_NATIVE) {
                g_assert_cmpint(fd_message_receive(p->actor->fd, &byte, 1, &p->listener, 1, &n_fds,
                                                   0, &how),
                                ==, 1);
                g_assert_cmpint(n_fds, ==, 1);
        }
        g_assert_cmpint(actor_hear(p->actor), ==, 'r');
        return p;
}

void program_free(Program *p) {
        if (!p)
                return;
        actor_free(p->actor);
        close_fd(p->listener);
        (void) munmap(p->shared, sizeof(*p->shared));
        g_free(p);
}

static void append_allow(sd_bus_message *m, const char *allow) {
        g_auto(GStrv) actions = g_strsplit(allow, " ", 0);

        g_assert_cmpint(sd_bus_message_open_container(m, 'e', "sv"), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "s", "allow"), >=, 0);
        g_assert_cmpint(sd_bus_message_open_container(m, 'v', "as"), >=, 0);
        g_assert_cmpint(sd_bus_message_append_strv(m, actions), >=, 0);
        for (int i = 0; i < 2; i++)
                g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
}

static void broker_call(Program *p, Client *c, const char *allow, int prover) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "Broker"), reply = NULL;

        g_assert_cmpint(sd_bus_message_append(m, "h", p->listener), >=, 0);
        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "{sv}"), >=, 0);
        append_allow(m, allow);
        if (prover >= 0)
                g_assert_cmpint(sd_bus_message_append(m, "{sv}", "prover", "h", prover), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        reply = client_call_message(c, m);
        p->listener = close_fd(p->listener);
}

void program_broker(Program *p, Client *c, const char *allow) {
        broker_call(p, c, allow, -1);
}

int program_broker_proving(Program *p, Client *c, const char *allow) {
        int pair[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
        broker_call(p, c, allow, pair[1]);
        close(pair[1]);
        return pair[0];
}

pid_t prover_hear(int prover) {
        struct pollfd f = { .fd = prover, .events = POLLIN };
        int32_t pid = 0;

        g_assert_cmpint(poll(&f, 1, AWAIT_SEC * 1000), ==, 1);
        g_assert_cmpint(recv(prover, &pid, sizeof(pid), 0), ==, sizeof(pid));
        return pid;
}

bool prover_say(int prover, pid_t pid, int proof) {
        int32_t about = pid;
        int r = fd_message_send(prover, &about, sizeof(about), &proof, proof >= 0, 0);

        g_assert_true(r == 0 || r == -EPIPE);
        return r == 0;
}

static long program_ask(Program *p, char what) {
        actor_tell(p->actor, what);
        g_assert_cmpint(actor_hear(p->actor), ==, 'd');
        return p->shared->result;
}

static long program_call(Program *p, ProgramCall call, char what) {
        p->shared->call = call;
        return program_ask(p, what);
}

int program_open(Program *p, ProgramCall call) {
        return (int) program_call(p, call, 'o');
}

uint32_t program_attr_size(const Program *p) {
        return p->shared->call.attr.size;
}

void program_open_begin(Program *p, ProgramCall call) {
        p->shared->call = call;
        actor_tell(p->actor, 'o');
}

int program_open_end(Program *p) {
        g_assert_cmpint(actor_hear(p->actor), ==, 'd');
        return (int) p->shared->result;
}

bool program_waits(Program *p) {
        g_autofree char *path = g_strdup_printf("/proc/%d/syscall", p->actor->pid), *text = NULL;

        return g_file_get_contents(path, &text, NULL, NULL) && atoi(text) == SYS_perf_event_open;
}

int program_open_in_thread(Program *p, ProgramCall call) {
        return (int) program_call(p, call, 't');
}

int program_open_in_child(Program *p, ProgramCall call) {
        return (int) program_call(p, call, 'c');
}

int program_open_of_child(Program *p, ProgramCall call) {
        return (int) program_call(p, call, 'k');
}

int program_open_while_changing(Program *p, ProgramCall call, int n) {
        p->shared->n = n;
        return (int) program_call(p, call, 'w');
}

uint64_t program_read(Program *p, int fd) {
        p->shared->fd = fd;
        return (uint64_t) program_ask(p, 'r');
}

int program_flags(Program *p, int fd) {
        p->shared->fd = fd;
        return (int) program_ask(p, 'f');
}

bool program_getpgid(Program *p) {
        return program_ask(p, 'g');
}

int program_open_cgroup(Program *p) {
        return (int) program_ask(p, 'd');
}

bool program_landlock(Program *p) {
        return program_ask(p, 'l') == 0;
}

int program_open_in_namespaces(Program *p, ProgramCall call) {
        return (int) program_call(p, call, 'n');
}

long program_call_i386(Program *p, int number, ProgramCall call) {
        p->shared->n = number;
        return program_call(p, call, 'i');
}

void program_open_and_exec(Program *p, ProgramCall call, const char *path) {
        p->shared->call = call;
        p->shared->path = path;
        actor_tell(p->actor, 'x');
}

void program_exec(Program *p, const char *path) {
        p->shared->path = path;
        actor_tell(p->actor, 'e');
}

PerfAttr kernel_attr(uint64_t config) {
        PerfAttr attr = software_attr(config);

        attr.exclude_kernel = attr.exclude_hv = 0;
        return attr;
}

static bool is_worker(const char *pid) {
        g_autofree char *path = g_strdup_printf("/proc/%s/comm", pid), *comm = NULL;

        return g_file_get_contents(path, &comm, NULL, NULL) &&
               strcmp(comm, "perfalloc-broke\n") == 0;
}

unsigned workers_list(pid_t *ret, unsigned max) {
        DIR *d = opendir("/proc");
        struct dirent *entry;
        unsigned n = 0;

        g_assert_nonnull(d);
        while ((entry = readdir(d)))
                if (g_ascii_isdigit(*entry->d_name) && is_worker(entry->d_name)) {
                        if (n < max)
                                ret[n] = atoi(entry->d_name);
                        n++;
                }
        (void) closedir(d);
        return n;
}
