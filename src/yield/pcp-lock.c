/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pcp-lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "yield/lock-file.h"

#define CONF_LINES_MAX 10000u

typedef struct PcpLock {
        Bridge bridge;
        char *path;
        int fd; /* of the file, locked while taken; -1: none */
} PcpLock;

static PcpLock *lock_of(const Bridge *b) {
        return container_of(b, PcpLock, bridge);
}

/* ---- where it is ---- */

/* Removes quotes too: the file is read by shells. */
static char *value_trim(char *value) {
        size_t n;

        value += strspn(value, " \t\"'");
        n = strcspn(value, " \t\"'\r\n");
        value[n] = '\0';
        return value;
}

int pcp_lock_find(const char *conf, char **ret) {
        static const char key[] = "PCP_PMDAS_DIR=";
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *line = NULL;
        struct stat st;
        size_t size = 0;
        FILE *f;
        int r = 0;

        *ret = NULL;
        fd = open(conf, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        f = fdopen(fd, "re");
        if (!f)
                return -ENOMEM;
        (void) TAKE_FD(fd);
        for (unsigned i = 0; i < CONF_LINES_MAX && getline(&line, &size, f) >= 0; i++) {
                const char *directory;

                if (strncmp(line, key, strlen(key)) != 0)
                        continue;
                directory = value_trim(line + strlen(key));
                if (*directory == '/' && asprintf(ret, "%s/perfevent/perflock", directory) < 0) {
                        *ret = NULL;
                        r = -ENOMEM;
                }
                break;
        }
        (void) fclose(f);
        return r;
}

/* ---- the lock ---- */

/* The first lock of others that conflicts with one of this type. */
static struct flock lock_look(int fd, short type) {
        struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
                lock.l_type = F_UNLCK;
        return lock;
}

/* The descriptor stays open, so that checks wake no process that watches the file. It is opened
 * anew when there is another file at the path. */
static LockFile lock_refresh(PcpLock *l, Refusal *why) {
        struct stat there, had;

        if (l->fd >= 0 && lstat(l->path, &there) == 0 && fstat(l->fd, &had) == 0 &&
            there.st_dev == had.st_dev && there.st_ino == had.st_ino)
                return LOCK_FILE_OPEN;
        l->fd = close_fd(l->fd);
        return lock_file_open(l->path, O_RDONLY, &l->fd, &had, why);
}

pid_t pcp_lock_holder(Bridge *b) {
        PcpLock *l = lock_of(b);
        struct flock lock;

        if (!b->taken && lock_refresh(l, NULL) != LOCK_FILE_OPEN)
                return 0;
        /* a read lock, which PCP's perfalloc takes, conflicts with write locks alone */
        lock = lock_look(l->fd, F_WRLCK);
        return lock.l_type != F_RDLCK ? 0 : lock.l_pid > 0 ? lock.l_pid : -1;
}

/* Warns once, however often it is tried. */
static BridgeAnswer lock_complain(PcpLock *l, BridgeAnswer answer, const char *what) {
        char text[REFUSAL_TEXT_MAX + 128];

        (void) snprintf(text, sizeof(text), "Bridge pcp-lock: %s. PCP's monitor does not yield.",
                        what);
        bridge_say(&l->bridge, LOG_WARNING, text);
        return answer;
}

static BridgeAnswer lock_take(Bridge *b, uid_t uid) {
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1 };
        PcpLock *l = lock_of(b);
        Refusal why = REFUSAL_NULL;
        char what[REFUSAL_TEXT_MAX];

        switch (lock_refresh(l, &why)) {
        case LOCK_FILE_ABSENT:
                return BRIDGE_ABSENT;
        case LOCK_FILE_UNUSABLE:
                return lock_complain(l, BRIDGE_ABSENT, why.text);
        default:
                break;
        }
        if (fcntl(l->fd, F_OFD_SETLK, &lock) == 0) {
                bridge_say(b, LOG_INFO, NULL);
                return BRIDGE_TAKEN;
        }
        if (errno != EAGAIN && errno != EACCES) {
                (void) snprintf(what, sizeof(what), "cannot lock %s: %s", l->path, strerror(errno));
                return lock_complain(l, BRIDGE_ABSENT, what);
        }
        (void) snprintf(what, sizeof(what), "somebody has a write lock on %s", l->path);
        return lock_complain(l, BRIDGE_RETRY, what);
}

static void lock_release(Bridge *b) {
        struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1 };

        (void) fcntl(lock_of(b)->fd, F_OFD_SETLK, &lock);
}

/* The stored descriptor has kept the lock all the time. */
static BridgeAnswer lock_restore(Bridge *b, BridgePast *past, bool wanted) {
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1 };
        PcpLock *l = lock_of(b);

        if (past->fd < 0 || fcntl(past->fd, F_OFD_SETLK, &lock) < 0)
                return BRIDGE_ABSENT;
        l->fd = TAKE_FD(past->fd);
        return BRIDGE_TAKEN;
}

static int lock_fd(const Bridge *b) {
        return lock_of(b)->fd;
}

static bool lock_is_active(const Bridge *b) {
        struct stat st;

        return lstat(lock_of(b)->path, &st) == 0 && S_ISREG(st.st_mode);
}

static void lock_describe(const Bridge *b, pid_t *ret_pid, char *buffer, size_t size) {
        const PcpLock *l = lock_of(b);
        struct flock lock = { .l_type = F_UNLCK };

        *ret_pid = 0;
        if (!b->taken && l->fd >= 0)
                lock = lock_look(l->fd, F_RDLCK);
        if (lock.l_type == F_WRLCK && lock.l_pid > 0)
                *ret_pid = lock.l_pid;
        (void) snprintf(buffer, size, "%s %s",
                        lock.l_type == F_WRLCK ? "a write lock on" : "PCP's pmdaperfevent, by",
                        l->path);
}

static void lock_free(Bridge *b) {
        PcpLock *l = lock_of(b);

        close_fd(l->fd);
        free(l->path);
        free(l);
}

static const BridgeOps lock_ops = {
        .name = "pcp-lock",
        .take = lock_take,
        .release = lock_release,
        .restore = lock_restore,
        .fd = lock_fd,
        .is_active = lock_is_active,
        .describe = lock_describe,
        .free = lock_free,
};

int pcp_lock_new(const BridgeHost *host, const char *path, uint64_t grace_usec, Bridge **ret) {
        PcpLock *l = calloc(1, sizeof(PcpLock));
        int r = -ENOMEM;

        if (!l)
                return -ENOMEM;
        l->fd = -1;
        l->path = strdup(path);
        if (l->path)
                r = bridge_init(&l->bridge, &lock_ops, host, grace_usec);
        if (r < 0) {
                lock_free(&l->bridge);
                return r;
        }
        *ret = &l->bridge;
        return 0;
}
