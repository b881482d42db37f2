/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "privilege.h"

#include <linux/perf_event.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void cap_freep(cap_t *caps) {
        if (*caps)
                (void) cap_free(*caps);
}

/* Keeps those of these capabilities that the process has, permitted and effective, and drops all
 * others from all sets but the bounding one. A process that is run as root by hand is treated the
 * same. */
static int privilege_keep(const cap_value_t *keep, size_t n) {
        _cleanup_(cap_freep) cap_t now = cap_get_proc(), then = cap_init();

        if (!now || !then)
                return -errno;
        for (size_t i = 0; i < n; i++) {
                cap_flag_value_t has;

                if (cap_get_flag(now, keep[i], CAP_PERMITTED, &has) < 0)
                        return -errno;
                if (has == CAP_SET &&
                    (cap_set_flag(then, CAP_PERMITTED, 1, &keep[i], CAP_SET) < 0 ||
                     cap_set_flag(then, CAP_EFFECTIVE, 1, &keep[i], CAP_SET) < 0))
                        return -errno;
        }
        /* what is not inheritable cannot stay ambient either (capabilities(7)) */
        return cap_set_proc(then) < 0 ? -errno : 0;
}

/* Whether the effective capabilities can open a CPU-wide event that counts the kernel. */
static bool can_open_events(void) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_CPU_CLOCK,
                .disabled = 1,
        };
        _cleanup_close_ int fd =
                (int) syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

        return fd >= 0 || errno == ENODEV; /* CPU 0 is offline: permission was checked before */
}

/* Takes one capability out of the effective set, or puts it back. */
static int privilege_raise(cap_value_t cap, cap_flag_value_t value) {
        _cleanup_(cap_freep) cap_t now = cap_get_proc();

        if (!now || cap_set_flag(now, CAP_EFFECTIVE, 1, &cap, value) < 0 || cap_set_proc(now) < 0)
                return -errno;
        return 0;
}

int privilege_trim(void) {
        static const cap_value_t keep[] = { CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH,
                                            CAP_CHOWN, CAP_SYS_ADMIN };
        int r = privilege_keep(keep, ELEMENTSOF(keep));

        if (r < 0)
                return r;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = privilege_raise(CAP_SYS_ADMIN, CAP_CLEAR);
        if (r < 0)
                return r;
        if (can_open_events())
                return privilege_keep(keep, ELEMENTSOF(keep) - 1);
        (void) privilege_raise(CAP_SYS_ADMIN, CAP_SET); /* EPERM: never had it */
        return 0;
}

int privilege_leave_to_siblings(void) {
        /* where the drop-in of the bridge to LIKWID gives it */
        static const cap_value_t keep[] = { CAP_CHOWN };

        return privilege_keep(keep, ELEMENTSOF(keep));
}

int privilege_trim_reader(void) {
        static const cap_value_t keep[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH };

        return privilege_keep(keep, ELEMENTSOF(keep));
}

int privilege_trim_opener(void) {
        static const cap_value_t keep[] = { CAP_PERFMON, CAP_SYS_ADMIN };

        return privilege_keep(keep, ELEMENTSOF(keep));
}
