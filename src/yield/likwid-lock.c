/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "likwid-lock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <syslog.h>

#include "yield/lock-file.h"

/* Which file was lent to which user. This is recorded before the owner is changed, so the file may
 * still belong to the owner before that. */
typedef struct Loan {
        uint64_t device, inode;
        uid_t owner, borrower, before;
} Loan;

typedef struct LikwidLock {
        Bridge bridge;
        char *path, *saved;
        int fd; /* O_PATH, of the lent file; -1: none */
        Loan loan;
} LikwidLock;

static LikwidLock *lock_of(const Bridge *b) {
        return container_of(b, LikwidLock, bridge);
}

static bool can_chown(void) {
        cap_flag_value_t has = CAP_CLEAR;
        cap_t caps = cap_get_proc();

        if (!caps)
                return false;
        (void) cap_get_flag(caps, CAP_CHOWN, CAP_EFFECTIVE, &has);
        (void) cap_free(caps);
        return has == CAP_SET;
}

/* ---- the record ---- */

static void loan_save(const LikwidLock *l) {
        char text[128];
        int n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %u %u %u\n", l->loan.device,
                         l->loan.inode, (unsigned) l->loan.owner, (unsigned) l->loan.borrower,
                         (unsigned) l->loan.before);
        _cleanup_free_ char *fresh = NULL;
        _cleanup_close_ int fd = -1;

        if (!l->saved)
                return;
        /* by rename: there is a record at any moment */
        if (asprintf(&fresh, "%s.new", l->saved) < 0)
                fresh = NULL;
        if (fresh)
                fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, text, (size_t) n) != n || rename(fresh, l->saved) < 0)
                bridge_say((Bridge *) &l->bridge, LOG_WARNING,
                           "Bridge likwid-lock: cannot record the owner of the file; it is not "
                           "restored after a crash.");
}

static bool loan_load(const LikwidLock *l, Loan *ret) {
        _cleanup_close_ int fd = -1;
        unsigned owner, borrower, before;
        char text[128];
        ssize_t n;

        if (!l->saved)
                return false;
        fd = open(l->saved, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return false;
        text[n] = '\0';
        switch (sscanf(text, "%" SCNu64 " %" SCNu64 " %u %u %u", &ret->device, &ret->inode, &owner,
                       &borrower, &before)) {
        case 4: /* of an older version */
                before = borrower;
                break;
        case 5:
                break;
        default:
                return false;
        }
        ret->owner = owner;
        ret->borrower = borrower;
        ret->before = before;
        return true;
}

static void loan_forget(const LikwidLock *l) {
        if (l->saved)
                (void) unlink(l->saved);
}

/* ---- the file ---- */

static BridgeAnswer lock_complain(LikwidLock *l, const char *what) {
        char text[REFUSAL_TEXT_MAX + 128];

        (void) snprintf(text, sizeof(text),
                        "Bridge likwid-lock: %s. Programs that use LIKWID do not "
                        "yield.",
                        what);
        bridge_say(&l->bridge, LOG_WARNING, text);
        return BRIDGE_ABSENT;
}

/* LOCK_FILE_OPEN only if its owner can be changed safely. */
static LockFile lock_open(LikwidLock *l, int *ret_fd, struct stat *ret_st) {
        _cleanup_close_ int fd = -1;
        Refusal why = REFUSAL_NULL;
        LockFile r = lock_file_open(l->path, O_PATH, &fd, ret_st, &why);

        if (r == LOCK_FILE_OPEN && !lock_file_is_roots(l->path, ret_st)) {
                (void) refuse(&why, REFUSAL_INVALID_ARGS,
                              "%s may have been created by a user other than root", l->path);
                r = LOCK_FILE_UNUSABLE;
        }
        if (r == LOCK_FILE_OPEN && !can_chown()) {
                (void) refuse(
                        &why, REFUSAL_INVALID_ARGS,
                        "the owner of %s cannot be changed without CAP_CHOWN, which the drop-in "
                        "likwid-lock.conf gives (perfallocd.conf(5))",
                        l->path);
                r = LOCK_FILE_UNUSABLE;
        }
        if (r == LOCK_FILE_UNUSABLE)
                (void) lock_complain(l, why.text);
        if (r == LOCK_FILE_OPEN)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static int file_give(int fd, uid_t uid) {
        return fchownat(fd, "", uid, (gid_t) -1, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static BridgeAnswer lock_give_failed(LikwidLock *l, int error) {
        char what[256];

        (void) snprintf(what, sizeof(what), "cannot change the owner of %.128s: %s", l->path,
                        strerror(-error));
        return lock_complain(l, what);
}

static BridgeAnswer lock_take(Bridge *b, uid_t uid) {
        LikwidLock *l = lock_of(b);
        _cleanup_close_ int fd = -1;
        struct stat st;
        int r;

        if (lock_open(l, &fd, &st) != LOCK_FILE_OPEN)
                return BRIDGE_ABSENT;
        l->loan = (Loan){ .device = st.st_dev,
                          .inode = st.st_ino,
                          .owner = st.st_uid,
                          .borrower = uid,
                          .before = st.st_uid };
        loan_save(l); /* before the change, so that a crash cannot lose it */
        r = file_give(fd, uid);
        if (r < 0) {
                loan_forget(l);
                return lock_give_failed(l, r);
        }
        l->loan.before = uid;
        l->fd = TAKE_FD(fd);
        bridge_say(b, LOG_INFO, NULL);
        return BRIDGE_TAKEN;
}

/* False also if others have changed the owner meanwhile: then theirs stays. */
static bool is_lent(int fd, const Loan *loan) {
        struct stat st;

        return fstat(fd, &st) == 0 && st.st_dev == loan->device && st.st_ino == loan->inode &&
               (st.st_uid == loan->borrower || st.st_uid == loan->before);
}

static void lock_release(Bridge *b) {
        LikwidLock *l = lock_of(b);
        int r = is_lent(l->fd, &l->loan) ? file_give(l->fd, l->loan.owner) : 0;

        if (r < 0)
                (void) lock_give_failed(l, r);
        l->fd = close_fd(l->fd);
        loan_forget(l);
}

static void lock_hand_over(Bridge *b, uid_t uid) {
        LikwidLock *l = lock_of(b);
        Loan before = l->loan;

        if (uid == before.borrower || !is_lent(l->fd, &before))
                return;
        l->loan.borrower = uid;
        loan_save(l);
        if (file_give(l->fd, uid) < 0) {
                l->loan = before;
                loan_save(l);
        }
        l->loan.before = l->loan.borrower;
}

/* The file that an earlier run lent and did not take back. */
static bool lock_find_lent(const LikwidLock *l, Loan *ret, int *ret_fd) {
        _cleanup_close_ int fd = -1;
        struct stat st;

        if (!loan_load(l, ret) ||
            lock_file_open(l->path, O_PATH, &fd, &st, NULL) != LOCK_FILE_OPEN ||
            !is_lent(fd, ret) || !lock_file_is_roots(l->path, &st))
                return false;
        *ret_fd = TAKE_FD(fd);
        return true;
}

/* It stays lent, or is now. */
static BridgeAnswer lock_restore(Bridge *b, BridgePast *past, bool wanted) {
        LikwidLock *l = lock_of(b);
        _cleanup_close_ int fd = -1;
        Loan loan;

        if (!lock_find_lent(l, &loan, &fd)) {
                loan_forget(l);
                return BRIDGE_ABSENT;
        }
        if (file_give(fd, loan.borrower) < 0)
                return BRIDGE_ABSENT;
        loan.before = loan.borrower;
        l->loan = loan;
        l->fd = TAKE_FD(fd);
        return BRIDGE_TAKEN;
}

/* Gives back what an earlier run could not. */
static void lock_settle(LikwidLock *l) {
        _cleanup_close_ int fd = -1;
        Loan loan;

        if (lock_find_lent(l, &loan, &fd))
                (void) file_give(fd, loan.owner);
        loan_forget(l);
}

static bool lock_is_active(const Bridge *b) {
        struct stat st;

        return lstat(lock_of(b)->path, &st) == 0 && S_ISREG(st.st_mode) && can_chown() &&
               lock_file_is_roots(lock_of(b)->path, &st);
}

static void lock_describe(const Bridge *b, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = 0;
        (void) snprintf(buffer, size, "programs that use LIKWID, by %s", lock_of(b)->path);
}

static void lock_free(Bridge *b) {
        LikwidLock *l = lock_of(b);

        close_fd(l->fd);
        free(l->path);
        free(l->saved);
        free(l);
}

static const BridgeOps lock_ops = {
        .name = "likwid-lock",
        .take = lock_take,
        .release = lock_release,
        .restore = lock_restore,
        .hand_over = lock_hand_over,
        .is_active = lock_is_active,
        .describe = lock_describe,
        .free = lock_free,
};

int likwid_lock_new(const BridgeHost *host, const char *path, const char *saved,
                    uint64_t grace_usec, Bridge **ret) {
        LikwidLock *l = calloc(1, sizeof(LikwidLock));
        int r = -ENOMEM;

        if (!l)
                return -ENOMEM;
        l->fd = -1;
        l->path = strdup(path);
        l->saved = saved ? strdup(saved) : NULL;
        if (l->path && (l->saved || !saved)) {
                if (!host->past)
                        lock_settle(l);
                r = bridge_init(&l->bridge, &lock_ops, host, grace_usec);
        }
        if (r < 0) {
                lock_free(&l->bridge);
                return r;
        }
        *ret = &l->bridge;
        return 0;
}
