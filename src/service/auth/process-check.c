/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process-check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perf/process/procfs.h"
#include "service/auth/polkit-check.h"
#include "service/sibling/reader.h"

#define START_TIME 20u /* of the fields of /proc/PID/stat, from the state on */

struct ProcessCheck {
        Context *context;
        int pidfd;
        Action action;
        const char *reason;
        ProcessChecked done;
        void *userdata;

        ProcessFacts facts; /* as polkit was asked */
        PolkitSubject subject;
        Details details;
        ReaderJob *job;
        Check *check;
};

ProcessCheck *process_check_cancel(ProcessCheck *p) {
        if (!p)
                return NULL;
        p->job = reader_job_cancel(p->job);
        p->check = check_cancel(p->check);
        close_fd(p->pidfd);
        free(p);
        return NULL;
}

static void process_check_end(ProcessCheck *p, int r, const Refusal *why) {
        ProcessFacts facts = p->facts;
        ProcessChecked done = p->done;
        void *userdata = p->userdata;

        process_check_cancel(p);
        done(userdata, r, r == 0 ? &facts : NULL, why);
}

static void process_check_refuse(ProcessCheck *p, const char *words) {
        Refusal why;

        process_check_end(
                p, refuse(&why, REFUSAL_ACCESS_DENIED, "%s: %s", action_name(p->action), words),
                &why);
}

static bool facts_are_of_one_user(const ProcessFacts *f) {
        return f->uniform && f->uid[0] == f->uid[1] && f->uid[0] == f->uid[2];
}

/* When the process that pidfd holds was started; 0: it has ended, or /proc hides it. */
static uint64_t process_start_time(int pidfd, pid_t pid) {
        _cleanup_free_ char *text = NULL;
        const char *p = procfs_read(pid, "stat", &text, NULL) < 0 ? NULL : procfs_stat(text, NULL);
        uint64_t time;

        for (unsigned i = 1; p && i < START_TIME; i++) {
                p = strchr(p, ' ');
                p = p ? p + 1 : NULL;
        }
        if (!p || sscanf(p, "%" SCNu64, &time) != 1)
                return 0;
        return process_exists(pidfd) ? time : 0;
}

/* The reader has looked again. */
static void process_check_verified(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                   const Refusal *why) {
        ProcessCheck *p = userdata;

        p->job = NULL;
        if (r != 0)
                process_check_end(p, r, why);
        else if (facts->zombie || !facts_are_of_one_user(facts) || facts->uid[0] != p->facts.uid[0])
                process_check_refuse(p, "the process changed while polkit was asked");
        else
                process_check_end(p, 0, NULL);
}

static void process_check_answered(void *userdata, int r, const PolkitAnswer *answer,
                                   const sd_bus_error *error) {
        ProcessCheck *p = userdata;

        p->check = NULL;
        if (r == -ETIMEDOUT || (r == 0 && !answer))
                process_check_refuse(p, "polkit does not answer");
        else if (r < 0)
                process_check_end(p, r, NULL);
        else if (!answer->authorized)
                process_check_refuse(
                        p, answer->challenge ? "authentication is required, but not possible here"
                                             : "polkit denies it");
        else {
                r = reader_inspect(p->context->reader, p->pidfd, -1, process_check_verified, p,
                                   &p->job);
                if (r < 0)
                        process_check_end(p, r, NULL);
        }
}

static void process_check_ask(ProcessCheck *p) {
        Asked asked = ASKED_NULL;
        int r;

        p->subject = (PolkitSubject){
                .uid = p->facts.uid[0],
                .pidfd = p->pidfd,
                .pid = p->facts.pid,
                .start_time = process_start_time(p->pidfd, p->facts.pid),
        };
        if (p->subject.start_time == 0) {
                process_check_refuse(p, "the process has ended, or /proc hides it");
                return;
        }
        asked.reason = p->reason;
        details_fill(&p->details, p->subject.uid, p->subject.pid, &asked);
        r = checks_ask(auth_checks(p->context->auth), &p->subject, p->action, &p->details, false,
                       false, process_check_answered, p, &p->check);
        if (r == FAIRQUEUE_FULL)
                process_check_refuse(p, "too many calls of that user wait for polkit");
        else if (r < 0)
                process_check_end(p, r, NULL);
}

static void process_check_inspected(void *userdata, int r, const ProcessFacts *facts,
                                    bool neighbour, const Refusal *why) {
        ProcessCheck *p = userdata;

        p->job = NULL;
        if (r != 0) {
                process_check_end(p, r, why);
                return;
        }
        p->facts = *facts;
        if (facts->zombie || !facts_are_of_one_user(facts))
                process_check_refuse(p, "the process has ended, or does not run as one user alone");
        else if (process_is_root(facts))
                process_check_end(p, 0, NULL);
        else if (facts->uid[0] == 0) /* to whom polkit always says yes */
                process_check_refuse(p, "uid 0 without CAP_PERFMON is not root here");
        else
                process_check_ask(p);
}

int process_check_new(Context *context, int pidfd, Action action, const char *reason,
                      ProcessChecked done, void *userdata, ProcessCheck **ret) {
        ProcessCheck *p = malloc(sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        *p = (ProcessCheck){
                .context = context,
                .pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3),
                .action = action,
                .reason = reason,
                .done = done,
                .userdata = userdata,
        };
        r = p->pidfd < 0 ? -errno
                         : reader_inspect(context->reader, p->pidfd, -1, process_check_inspected, p,
                                          &p->job);
        if (r < 0) {
                process_check_cancel(p);
                return r;
        }
        *ret = p;
        return 0;
}
