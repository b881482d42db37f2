/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/breakpoint-event.h"

#include <linux/hw_breakpoint.h>

#include "hits.h"
#include "machine.h"
#include "perf/event/test-fake-sysfs.h"

static void test_breakpoints_are_read_as_perf_has_them(void) {
        static const struct {
                const char *event;
                uint64_t address, length;
                uint32_t access;
                bool kernel_excluded;
        } events[] = {
                { "mem:0x1000", 0x1000, 4, HW_BREAKPOINT_RW, false },
                { "mem:4096", 0x1000, 4, HW_BREAKPOINT_RW, false },
                { "mem:0x1000/8:w", 0x1000, 8, HW_BREAKPOINT_W, false },
                { "mem:0x1000/1:wr:u", 0x1000, 1, HW_BREAKPOINT_RW, true },
                { "mem:0x1000:u", 0x1000, 4, HW_BREAKPOINT_RW, true },
                { "mem:0x1000:k", 0x1000, 4, HW_BREAKPOINT_RW, false },
                { "mem:0x1000:x", 0x1000, sizeof(long), HW_BREAKPOINT_X, false },
                { "mem:0x1000/2:rwx", 0x1000, 2, 7, false },
                { "mem:0xffffffff81000000/8:rw", 0xffffffff81000000, 8, HW_BREAKPOINT_RW, false },
                { "mem:0xffffffff81000000:x:uk", 0xffffffff81000000, 8, HW_BREAKPOINT_X, false },
                { "mem:0x7ffffffffffffff8/8", 0x7ffffffffffffff8, 8, HW_BREAKPOINT_RW, false },
                { "mem:0x7ffffffffffffffc/8", 0x7ffffffffffffffc, 8, HW_BREAKPOINT_RW, false },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("arm-big-little"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i].event);

                g_assert_cmpuint(e.attr.type, ==, PERF_TYPE_BREAKPOINT);
                g_assert_cmphex(e.attr.bp_addr, ==, events[i].address);
                g_assert_cmpuint(e.attr.bp_len, ==, events[i].length);
                g_assert_cmpuint(e.attr.bp_type, ==, events[i].access);
                g_assert_true(e.attr.exclude_kernel == events[i].kernel_excluded);
                g_assert_cmpstr(e.pmu->name, ==, "breakpoint");
        }
        fake_sysfs_done(&m);
}

static void test_wrong_breakpoints_are_refused(void) {
        static const struct {
                const char *event;
                int code;
                const char *words;
        } events[] = {
                { "mem:", REFUSAL_INVALID_EVENT, "address" },
                { "mem:main", REFUSAL_INVALID_EVENT, "'main' is not an address" },
                { "mem:-1", REFUSAL_INVALID_EVENT, "'-1'" },
                { "mem:0x", REFUSAL_INVALID_EVENT, "'0x'" },
                { "mem:0x10000000000000000", REFUSAL_INVALID_EVENT, "64 bits" },
                { "mem:0x1000/0", REFUSAL_INVALID_EVENT, "'0' bytes" },
                { "mem:0x1000/9", REFUSAL_INVALID_EVENT, "'9' bytes|1 to 8" },
                { "mem:0x1000/", REFUSAL_INVALID_EVENT, "bytes" },
                { "mem:0x1000:", REFUSAL_INVALID_EVENT, "access" },
                { "mem:0x1000:rr", REFUSAL_INVALID_EVENT, "access" },
                { "mem:0x1000:rw:", REFUSAL_INVALID_EVENT, "modifiers" },
                { "mem:0x1000:rw:q", REFUSAL_INVALID_EVENT, "modifiers" },
                { "mem:0x1000:rw:u/", REFUSAL_INVALID_EVENT, "modifiers" },
                { "mem:0xffffffffffffffff/2", REFUSAL_BAD_ADDRESS, "exceed the address space" },
                { "mem:0xffffffff81000000:u", REFUSAL_BAD_ADDRESS, "kernel's half" },
                { "mem:0x7ffffffffffffffc/8:rw:u", REFUSAL_BAD_ADDRESS, "kernel's half" },
                { "breakpoint/config1=0x1000/", REFUSAL_INVALID_EVENT, "mem:ADDRESS" },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("arm-big-little"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i].event, events[i].code, events[i].words);
        fake_sysfs_done(&m);
}

static volatile uint64_t watched;

static void count_writes(void) {
        FakeSysfs m = fake_sysfs_of(NULL);
        g_autofree char *string = g_strdup_printf("mem:%p/8:w:u", (void *) &watched);
        _cleanup_(event_done) Event e = parse(&m, string);
        _cleanup_close_ int fd = open_event(&e, true, 0);
        uint64_t value;

        g_assert_cmpint(fd, >=, 0);
        for (int i = 0; i < 1000; i++)
                watched++;
        g_assert_cmpint(read(fd, &value, sizeof(value)), ==, sizeof(value));
        g_assert_cmpuint(value, ==, 1000);
        fake_sysfs_done(&m);
}

static void test_breakpoint_counts_the_writes_to_its_address(void) {
        if (hits_never)
                g_test_skip(
                        "not on this machine: breakpoints that ever fire; elsewhere other tests "
                        "compare what they count");
        else if (!machine_lacks(MACHINE_PROC | MACHINE_SYSFS | MACHINE_BREAKPOINTS))
                count_writes();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/breakpoint-event/breakpoints-are-read-as-perf-has-them",
                        test_breakpoints_are_read_as_perf_has_them);
        g_test_add_func("/breakpoint-event/wrong-breakpoints-are-refused",
                        test_wrong_breakpoints_are_refused);
        g_test_add_func("/machine/breakpoint-event/counts-the-writes-to-its-address",
                        test_breakpoint_counts_the_writes_to_its_address);
        return g_test_run();
}
