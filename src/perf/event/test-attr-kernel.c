/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The rules for attrs beside this kernel's own: an ordinary user opens events at
 * perf_event_paranoid 2, and where the kernel asks for privilege the rules have to ask for an
 * authorization.
 */

#include "perf/event/attr.h"

#include <grp.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "machine.h"
#include "perf/pmu/perf-open.h"

#define NOBODY 65534

static const char *unable; /* why the kernel cannot be asked here */

/* ---- the kernel ---- */

/* 0 or the errno of perf_event_open(2), for this process. */
static int kernel_opens(const Attr *a) {
        PerfOpen o = PERF_OPEN_NULL;

        o.attr = *a;
        o.pid = 0;
        perf_open_here(&o, 1);
        if (o.fd < 0)
                return -o.fd;
        close(o.fd);
        return 0;
}

static bool kernel_asks(const Attr *a) {
        int error = kernel_opens(a);

        return error == EACCES || error == EPERM;
}

static bool rules_ask(const Attr *a, AttrPmu pmu) {
        AttrNeeds needs = ATTR_NEEDS_NULL;
        Refusal why;

        if (attr_rules_check(a, pmu, &needs, &why) != 0)
                return true;
        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                if (needs.by[need])
                        return true;
        return false;
}

/* ---- the events ---- */

static uint64_t watched; /* which nobody touches */

static const struct {
        const char *name;
        AttrPmu pmu;
        struct perf_event_attr attr; /* of user space, disabled */
} events[] = {
        { "dummy", ATTR_PMU_SOFTWARE, { .exclude_hv = 1 } },
        { "dummy with the hypervisor", ATTR_PMU_SOFTWARE, {} },
        { "dummy with branches",
          ATTR_PMU_SOFTWARE,
          { .exclude_hv = 1,
            .sample_type = PERF_SAMPLE_BRANCH_STACK,
            .branch_sample_type = PERF_SAMPLE_BRANCH_ANY } },
        { "dummy with branches and the hypervisor",
          ATTR_PMU_SOFTWARE,
          { .sample_type = PERF_SAMPLE_BRANCH_STACK,
            .branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER } },
        { "breakpoint",
          ATTR_PMU_BREAKPOINT,
          { .exclude_hv = 1,
            .type = PERF_TYPE_BREAKPOINT,
            .bp_type = HW_BREAKPOINT_W,
            .bp_len = sizeof(watched) } },
};

static Attr event_attr(size_t i) {
        Attr a = { .known = events[i].attr };

        if (a.known.type == 0) {
                a.known.type = PERF_TYPE_SOFTWARE;
                a.known.config = PERF_COUNT_SW_DUMMY;
        } else
                a.known.bp_addr = (uintptr_t) &watched;
        a.known.size = ATTR_SIZE_KNOWN;
        a.known.disabled = a.known.exclude_kernel = 1;
        return a;
}

/* ---- the bits ---- */

typedef struct Bit {
        AttrPlace place;
        uint64_t bit;
} Bit;

static void bit_flip(Attr *a, Bit b) {
        attr_set_number(a, b.place, attr_number(a, b.place) ^ b.bit);
}

/* All bits of the rules that have a name, each of which is a thing of its own. */
static GArray *named_bits(void) {
        GArray *bits = g_array_new(FALSE, FALSE, sizeof(Bit));

        for (size_t i = 0; i < n_attr_rules; i++)
                for (unsigned n = 0; n < 64 && attr_rules[i].name; n++)
                        if (attr_rules[i].bits >> n & 1) {
                                const Bit b = { attr_rules[i].place, UINT64_C(1) << n };

                                g_array_append_val(bits, b);
                        }
        return bits;
}

/* What says which event it is, and where its own tests are. */
static bool place_is_event(AttrPlace place) {
        return place == ATTR_TYPE || place == ATTR_SIZE || place == ATTR_CONFIG;
}

/* The contract's one exception: counting a user's address, though the kernel may touch it too. */
static bool is_plain_breakpoint(const Attr *a) {
        return a->known.type == PERF_TYPE_BREAKPOINT && !a->known.exclude_kernel &&
               a->known.sample_period == 0;
}

static void assert_rules_ask(size_t i, const Attr *a, Bit b, Bit c) {
        if (!rules_ask(a, events[i].pmu) && kernel_asks(a) && !is_plain_breakpoint(a))
                g_error("%s, %s 0x%" G_GINT64_MODIFIER "x, %s 0x%" G_GINT64_MODIFIER
                        "x: the kernel asks for privilege, the rules for nothing",
                        events[i].name, attr_numbers[b.place].name, b.bit,
                        attr_numbers[c.place].name, c.bit);
}

static bool skipped(void) {
        if (unable)
                g_test_skip(unable);
        return unable;
}

static void test_each_bit(void) {
        if (skipped())
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                for (int place = 0; place < _ATTR_PLACE_MAX; place++)
                        for (unsigned n = 0; n < 8 * attr_numbers[place].size; n++) {
                                const Bit b = { (AttrPlace) place, UINT64_C(1) << n };
                                Attr a = event_attr(i);

                                if (place_is_event(b.place))
                                        continue;
                                bit_flip(&a, b);
                                assert_rules_ask(i, &a, b, b);
                        }
}

/* What one bit implies may depend on another. */
static void test_each_two_bits(void) {
        g_autoptr(GArray) bits = named_bits();
        unsigned n_asked = 0;

        if (skipped())
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                for (guint x = 0; x < bits->len; x++)
                        for (guint y = 0; y < x; y++) {
                                const Bit b = g_array_index(bits, Bit, x),
                                          c = g_array_index(bits, Bit, y);
                                Attr a = event_attr(i);

                                bit_flip(&a, b);
                                bit_flip(&a, c);
                                assert_rules_ask(i, &a, b, c);
                                n_asked++;
                        }
        g_assert_cmpuint(n_asked, >, 10000);
}

/* Where the kernel gives an ordinary user a bit and the rules ask for more: each has its reason in
 * the table. */
static void test_what_is_stricter(void) {
        static const char stricter[] =
                " PERF_SAMPLE_RAW PERF_SAMPLE_STACK_USER PERF_SAMPLE_AUX PERF_SAMPLE_BRANCH_KERNEL "
                "PERF_SAMPLE_BRANCH_HV pinned exclusive text_poke ";

        if (skipped())
                return;
        for (size_t i = 0; i < n_attr_rules; i++) {
                const AttrRule *rule = &attr_rules[i];
                g_autofree char *word = g_strdup_printf(" %s ", rule->name);
                Attr a = event_attr(0);

                if (!rule->name || rule->bits & (rule->bits - 1))
                        continue;
                bit_flip(&a, (Bit){ rule->place, rule->bits });
                if (kernel_opens(&a) == 0 && rules_ask(&a, ATTR_PMU_SOFTWARE) &&
                    !strstr(stricter, word))
                        g_error("%s: the rules ask for more than the kernel", rule->name);
        }
}

/* ---- becoming an ordinary user ---- */

static int paranoid(void) {
        g_autofree char *text = NULL;

        return g_file_get_contents("/proc/sys/kernel/perf_event_paranoid", &text, NULL, NULL)
                       ? atoi(text)
                       : -1;
}

static bool has_capabilities(void) {
        g_autofree char *status = NULL;
        const char *line;

        if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL))
                return true;
        line = strstr(status, "\nCapEff:");
        return !line || g_ascii_strtoull(line + strlen("\nCapEff:"), NULL, 16) != 0;
}

static void become_ordinary(void) {
        Attr plain = event_attr(0);

        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                               setresuid(NOBODY, NOBODY, NOBODY) < 0))
                unable = "root cannot become an ordinary user here";
        else if (has_capabilities())
                unable = "this user has capabilities";
        else if (paranoid() < 2)
                unable = "perf_event_paranoid is below 2: the kernel asks for less than it could";
        else if (kernel_opens(&plain) != 0)
                unable = "this kernel lets ordinary users open no events (perf_event_paranoid)";
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        become_ordinary();
        g_test_add_func("/attr-kernel/the-rules-ask-where-the-kernel-does", test_each_bit);
        g_test_add_func("/attr-kernel/and-for-each-two-bits", test_each_two_bits);
        g_test_add_func("/attr-kernel/what-is-stricter-is-named", test_what_is_stricter);
        return g_test_run();
}
