/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "other.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "broker/prover.h"
#include "perf/process/label.h"
#include "perf/process/procfs.h"
#include "perf/process/tree.h"

static int start_read(pid_t pid, uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        const char *fields;

        if (procfs_read(pid, "stat", &text, NULL) < 0)
                return -ESRCH;
        fields = procfs_stat(text, NULL);
        /* state is the third field, starttime the 22nd (proc_pid_stat(5)) */
        return fields && sscanf(fields,
                                "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                "%*d %*d %*d %" SCNu64,
                                ret) == 1
                       ? 0
                       : -EPROTO;
}

static bool is_pid(const void *userdata, pid_t pid) {
        return pid == *(const pid_t *) userdata;
}

static bool labels_are_same(pid_t a, pid_t b) {
        _cleanup_free_ char *first = NULL, *second = NULL;

        return label_read(a, &first) == 0 && label_read(b, &second) == 0 &&
               strcmp(first, second) == 0;
}

/* By number: the caller looks afterwards whether that was its own. */
static int other_read_rest(pid_t pid, const TaskFacts *task, OtherFacts *ret) {
        TaskFacts first;
        int r = task_read(pid, &first);

        if (r == 0)
                r = start_read(pid, &ret->start);
        if (r < 0)
                return r;
        ret->no_new_privs = first.no_new_privs;
        ret->same_user_ns = first.same_namespaces && first.user_namespace == task->user_namespace;
        ret->same_label = labels_are_same(task->tid, pid);
        ret->descends = tree_descends(pid, is_pid, &task->process);
        return 0;
}

int other_read(pid_t tid, const TaskFacts *task, int prover, OtherFacts *ret, int *ret_pidfd) {
        _cleanup_close_ int pidfd = -1;
        OtherFacts o;
        Refusal why;
        int r;

        memset(&o, 0, sizeof(o)); /* the padding too, as it is sent */
        r = process_open(task_process(tid), &pidfd, &why);
        if (r == 0)
                r = process_read(pidfd, &o.process, &why);
        if (r == 0)
                r = other_read_rest(o.process.pid, task, &o);
        if (r != 0)
                return r < 0 ? r : r == REFUSAL_NOT_PERMITTED ? -EACCES : -ESRCH;
        if (!o.descends && prover >= 0)
                o.proven = prover_proves(prover, pidfd, o.process.pid);
        /* the thread may have ended since, and its number be another's */
        if (task_process(tid) != o.process.pid || !process_exists(pidfd))
                return -ESRCH;
        *ret = o;
        *ret_pidfd = TAKE_FD(pidfd);
        return 0;
}

bool other_is_same(int pidfd, const OtherFacts *o) {
        ProcessFacts now;

        if (process_read(pidfd, &now, NULL) != 0)
                return false;
        /* what changes without consequences */
        now.tracer = o->process.tracer;
        memcpy(now.comm, o->process.comm, sizeof(now.comm));
        return memcmp(&now, &o->process, sizeof(now)) == 0;
}

uint64_t other_now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_BOOTTIME, &t);
        return (uint64_t) t.tv_sec * (uint64_t) sysconf(_SC_CLK_TCK) +
               (uint64_t) t.tv_nsec / (NSEC_PER_SEC / (uint64_t) sysconf(_SC_CLK_TCK));
}
