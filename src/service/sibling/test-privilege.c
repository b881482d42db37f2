/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/sibling/privilege.h"

#include <glib.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "machine.h"

#define BIT(cap) (UINT64_C(1) << (cap))
#define UNIT_CAPS                                                                                  \
        (BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYS_ADMIN))
#define NOBODY 65534

/* What a process has, as it says of itself to its parent. */
typedef struct Outcome {
        int r;
        uint64_t inheritable, permitted, effective, bounding, ambient;
        int no_new_privs;
} Outcome;

static uint64_t status_number(const char *status, const char *name) {
        g_autofree char *field = g_strdup_printf("\n%s:\t", name);
        const char *at = strstr(status, field);

        return at ? g_ascii_strtoull(at + strlen(field), NULL, 16) : UINT64_MAX;
}

static void outcome_read(Outcome *o) {
        g_autofree char *status = NULL;

        if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL))
                _exit(1);
        o->inheritable = status_number(status, "CapInh");
        o->permitted = status_number(status, "CapPrm");
        o->effective = status_number(status, "CapEff");
        o->bounding = status_number(status, "CapBnd");
        o->ambient = status_number(status, "CapAmb");
        o->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

/* As a unit with User= and AmbientCapabilities= starts: these capabilities in all sets, nobody's
 * uid. */
static bool become(uint64_t caps) {
        cap_t c = cap_init();
        bool ok = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setgroups(0, NULL) == 0 &&
                  setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0;

        for (cap_value_t cap = 0; ok && cap < 64; cap++)
                if (caps & BIT(cap))
                        ok = cap_set_flag(c, CAP_PERMITTED, 1, &cap, CAP_SET) == 0 &&
                             cap_set_flag(c, CAP_EFFECTIVE, 1, &cap, CAP_SET) == 0 &&
                             cap_set_flag(c, CAP_INHERITABLE, 1, &cap, CAP_SET) == 0;
        ok = ok && cap_set_proc(c) == 0;
        for (cap_value_t cap = 0; ok && cap < 64; cap++)
                if (caps & BIT(cap))
                        ok = cap_set_ambient(cap, CAP_SET) == 0;
        cap_free(c);
        return ok;
}

/* Runs f in a process of its own: as it is, or (drop) as nobody with these capabilities. */
static Outcome run(uint64_t caps, bool drop, int (*f)(void)) {
        Outcome o;
        int ends[2];
        pid_t pid;

        g_assert_cmpint(pipe(ends), ==, 0);
        pid = fork();
        if (pid == 0) {
                if (drop && !become(caps))
                        _exit(1);
                o.r = f ? f() : 0;
                outcome_read(&o);
                _exit(write(ends[1], &o, sizeof(o)) != sizeof(o));
        }
        close_fd(ends[1]);
        g_assert_cmpint(read(ends[0], &o, sizeof(o)), ==, sizeof(o));
        close_fd(ends[0]);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
        return o;
}

static int open_kernel_event(void) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_CPU_CLOCK,
                                        .disabled = 1 };
        int fd = (int) syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : close_fd(fd) + 1;
}

static int trim_then_leave(void) {
        int r = privilege_trim();

        return r < 0 ? r : privilege_leave_to_siblings();
}

static int trim_then_read(void) {
        int r = privilege_trim();

        return r < 0 ? r : privilege_trim_reader();
}

static int trim_then_open(void) {
        int r = privilege_trim();

        if (r >= 0)
                r = privilege_trim_opener();
        return r < 0 ? r : open_kernel_event();
}

/* CAP_SYS_ADMIN is kept where this kernel wants it for events, CAP_PERFMON or not. */
static uint64_t wanted(uint64_t caps) {
        bool perfmon = run(BIT(CAP_PERFMON), true, open_kernel_event).r == 0;

        return perfmon ? caps & ~BIT(CAP_SYS_ADMIN) : caps;
}

static bool need_root(void) {
        if (geteuid() == 0 && run(UNIT_CAPS, true, NULL).effective == UNIT_CAPS)
                return true;
        g_test_skip("needs root with the capabilities of the unit");
        return false;
}

static void assert_has(const Outcome *o, uint64_t caps) {
        g_assert_cmpint(o->r, ==, 0);
        g_assert_cmphex(o->permitted, ==, caps);
        g_assert_cmphex(o->effective, ==, caps);
        g_assert_cmphex(o->inheritable, ==, 0);
        g_assert_cmphex(o->ambient, ==, 0);
}

static void test_service_keeps_what_it_and_its_reader_need(void) {
        Outcome o;

        if (!need_root())
                return;
        o = run(UNIT_CAPS | BIT(CAP_KILL) | BIT(CAP_NET_ADMIN), true, privilege_trim);
        assert_has(&o, wanted(UNIT_CAPS));
        g_assert_cmpint(o.no_new_privs, ==, 1);
}

static void test_root_by_hand_is_trimmed_too(void) {
        Outcome o;

        if (!need_root())
                return;
        o = run(0, false, privilege_trim);
        assert_has(&o, wanted(UNIT_CAPS | BIT(CAP_CHOWN)));
}

static void test_all_is_left_to_the_siblings(void) {
        Outcome o;

        if (!need_root())
                return;
        o = run(UNIT_CAPS, true, trim_then_leave);
        assert_has(&o, 0);
        o = run(UNIT_CAPS, true, trim_then_read);
        assert_has(&o, BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH));
        o = run(UNIT_CAPS, true, trim_then_open);
        assert_has(&o, wanted(BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN)));
}

static void test_bridge_to_likwid_keeps_its_capability(void) {
        Outcome o;

        if (!need_root())
                return;
        o = run(UNIT_CAPS | BIT(CAP_CHOWN), true, trim_then_leave);
        assert_has(&o, BIT(CAP_CHOWN));
        o = run(UNIT_CAPS | BIT(CAP_CHOWN), true, trim_then_open);
        assert_has(&o, wanted(BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN)));
}

static void test_events_can_be_opened_afterwards(void) {
        if (!need_root())
                return;
        g_assert_cmpint(run(UNIT_CAPS, true, trim_then_open).r, ==, 0);
        g_assert_cmpint(run(0, false, trim_then_open).r, ==, 0);
}

static void test_nothing_is_gained(void) {
        static const uint64_t few[] = { 0, BIT(CAP_PERFMON), BIT(CAP_SYS_PTRACE), BIT(CAP_KILL) };

        if (!need_root())
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(few); i++) {
                Outcome trimmed = run(few[i], true, privilege_trim);
                Outcome left = run(few[i], true, trim_then_leave);

                assert_has(&trimmed, few[i] & UNIT_CAPS);
                assert_has(&left, 0);
        }
}

/* It is the unit's to set. */
static void test_bounding_set_is_left_alone(void) {
        if (!need_root())
                return;
        g_assert_cmphex(run(UNIT_CAPS, true, trim_then_leave).bounding, ==,
                        run(UNIT_CAPS, true, NULL).bounding);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_ROOT | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/privilege/service-keeps-what-it-and-its-reader-need",
                        test_service_keeps_what_it_and_its_reader_need);
        g_test_add_func("/privilege/root-by-hand-is-trimmed-too", test_root_by_hand_is_trimmed_too);
        g_test_add_func("/privilege/all-is-left-to-the-siblings", test_all_is_left_to_the_siblings);
        g_test_add_func("/privilege/bridge-to-likwid-keeps-its-capability",
                        test_bridge_to_likwid_keeps_its_capability);
        g_test_add_func("/privilege/events-can-be-opened-afterwards",
                        test_events_can_be_opened_afterwards);
        g_test_add_func("/privilege/nothing-is-gained", test_nothing_is_gained);
        g_test_add_func("/privilege/bounding-set-is-left-alone", test_bounding_set_is_left_alone);
        return g_test_run();
}
