/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* Linux 5.19 */
#endif

/* It is no sandbox: kernels before 5.16 would slow down the program, as they do those. */
#define FLAGS (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW)

static void context_freep(scmp_filter_ctx *context) {
        if (*context)
                seccomp_release(*context);
}

static int filter_export(int fd) {
        static const int forwarded[] = { SCMP_SYS(perf_event_open),
                                         SCMP_SYS(landlock_restrict_self) };
        _cleanup_(context_freep) scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        if (!context)
                return -ENOMEM;
        r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
        for (size_t i = 0; i < ELEMENTSOF(forwarded) && r == 0; i++)
                r = seccomp_rule_add(context, SCMP_ACT_NOTIFY, forwarded[i], 0);
        return r < 0 ? r : seccomp_export_bpf(context, fd);
}

/* libseccomp 2.5 cannot set WAIT_KILLABLE_RECV, so the filter is only taken from it. */
static int filter_read(Filter *f, int fd) {
        struct stat st;
        size_t size;

        if (fstat(fd, &st) < 0)
                return -errno;
        size = (size_t) st.st_size;
        f->program.filter = malloc(MAX(size, 1u));
        if (!f->program.filter)
                return -ENOMEM;
        f->program.len = (unsigned short) (size / sizeof(struct sock_filter));
        return pread(fd, f->program.filter, size, 0) == (ssize_t) size ? 0 : -EIO;
}

int filter_build(Filter *ret) {
        _cleanup_close_ int fd = memfd_create("filter", MFD_CLOEXEC);
        _cleanup_(filter_done) Filter f = FILTER_NULL;
        int r;

        if (fd < 0)
                return -errno;
        r = filter_export(fd);
        if (r == 0)
                r = filter_read(&f, fd);
        if (r < 0)
                return r;
        *ret = f;
        f = FILTER_NULL;
        return 0;
}

void filter_done(Filter *f) {
        free(f->program.filter);
        *f = FILTER_NULL;
}

/* Without WAIT_KILLABLE_RECV a signal interrupts a call that is being answered, which then begins
 * again: with a timer's signals it might never end. */
int filter_install(const Filter *f) {
        static const unsigned long flags[] = { SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0 };
        long fd = -1;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        errno = EINVAL;
        for (size_t i = 0; i < ELEMENTSOF(flags) && fd < 0 && errno == EINVAL; i++)
                fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i] | FLAGS, &f->program);
        return fd < 0 ? -errno : (int) fd;
}
