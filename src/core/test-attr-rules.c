/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/attr-rules.h"

#include <glib.h>
#include <string.h>

/* User space of the kernel's own dummy event: needs nothing. */
static Attr plain(void) {
        return (Attr){ .known = { .type = PERF_TYPE_SOFTWARE,
                                  .config = PERF_COUNT_SW_DUMMY,
                                  .exclude_kernel = 1,
                                  .exclude_hv = 1 } };
}

static AttrNeeds check(const Attr *a, AttrPmu pmu) {
        AttrNeeds needs = ATTR_NEEDS_NULL;
        Refusal why = REFUSAL_NULL;

        if (attr_rules_check(a, pmu, &needs, &why) != 0)
                g_error("%s", why.text);
        return needs;
}

static void assert_needs(const Attr *a, AttrPmu pmu, unsigned expected) {
        AttrNeeds needs = check(a, pmu);

        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                g_assert_cmpint(needs.by[need] != NULL, ==, (expected >> need) & 1);
}

static void assert_refused(const Attr *a, AttrPmu pmu, int code, const char *words) {
        AttrNeeds needs = ATTR_NEEDS_NULL;
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(attr_rules_check(a, pmu, &needs, &why), ==, code);
        g_assert_cmpint(why.code, ==, code);
        if (!strstr(why.text, words))
                g_error("'%s' does not say '%s'", why.text, words);
        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                g_assert_null(needs.by[need]);
}

/* ---- the table ---- */

#define PLACE(place, field)                                                                        \
        {                                                                                          \
                place, offsetof(struct perf_event_attr, field),                                    \
                        sizeof(((struct perf_event_attr *) NULL)->field)                           \
        }

static void test_numbers_are_where_the_header_has_them(void) {
        static const struct {
                AttrPlace place;
                size_t offset, size;
        } fields[] = {
                PLACE(ATTR_TYPE, type),
                PLACE(ATTR_SIZE, size),
                PLACE(ATTR_CONFIG, config),
                PLACE(ATTR_SAMPLE_PERIOD, sample_period),
                PLACE(ATTR_SAMPLE_TYPE, sample_type),
                PLACE(ATTR_READ_FORMAT, read_format),
                PLACE(ATTR_WAKEUP, wakeup_events),
                PLACE(ATTR_BP_TYPE, bp_type),
                PLACE(ATTR_CONFIG1, config1),
                PLACE(ATTR_CONFIG2, config2),
                PLACE(ATTR_BRANCH_SAMPLE_TYPE, branch_sample_type),
                PLACE(ATTR_SAMPLE_REGS_USER, sample_regs_user),
                PLACE(ATTR_SAMPLE_STACK_USER, sample_stack_user),
                PLACE(ATTR_CLOCKID, clockid),
                PLACE(ATTR_SAMPLE_REGS_INTR, sample_regs_intr),
                PLACE(ATTR_AUX_WATERMARK, aux_watermark),
                PLACE(ATTR_SAMPLE_MAX_STACK, sample_max_stack),
                PLACE(ATTR_AUX_SAMPLE_SIZE, aux_sample_size),
                PLACE(ATTR_SIG_DATA, sig_data),
        };

        for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
                const AttrNumber *number = &attr_numbers[fields[i].place];

                g_assert_cmpuint(number->offset, ==, fields[i].offset);
                g_assert_cmpuint(number->size, ==, fields[i].size);
        }
}

/* A byte in no number would never be checked. */
static void test_numbers_lie_side_by_side(void) {
        unsigned end = 0;

        for (int place = 0; place < _ATTR_PLACE_MAX; place++) {
                g_assert_cmpuint(attr_numbers[place].offset, ==, end);
                end += attr_numbers[place].size;
        }
        g_assert_cmpuint(end, ==, ATTR_SIZE_KNOWN);
}

static const AttrRule *rule_of(const char *name) {
        for (size_t i = 0; i < n_attr_rules; i++)
                if (attr_rules[i].name && strcmp(attr_rules[i].name, name) == 0)
                        return &attr_rules[i];
        g_error("no rule is called %s", name);
}

#define ONE_BIT(field)                                                                             \
        do {                                                                                       \
                Attr _a = {};                                                                      \
                _a.known.field = 1;                                                                \
                g_assert_cmphex(attr_number(&_a, ATTR_FLAGS), ==, rule_of(#field)->bits);          \
        } while (0)

static void test_flags_are_those_of_the_header(void) {
        Attr a = { .known = { .precise_ip = 3 } };

        g_assert_cmphex(attr_number(&a, ATTR_FLAGS), ==, rule_of("precise_ip")->bits);
        ONE_BIT(disabled);
        ONE_BIT(inherit);
        ONE_BIT(pinned);
        ONE_BIT(exclusive);
        ONE_BIT(exclude_user);
        ONE_BIT(exclude_kernel);
        ONE_BIT(exclude_hv);
        ONE_BIT(exclude_idle);
        ONE_BIT(mmap);
        ONE_BIT(comm);
        ONE_BIT(freq);
        ONE_BIT(inherit_stat);
        ONE_BIT(enable_on_exec);
        ONE_BIT(task);
        ONE_BIT(watermark);
        ONE_BIT(mmap_data);
        ONE_BIT(sample_id_all);
        ONE_BIT(exclude_host);
        ONE_BIT(exclude_guest);
        ONE_BIT(exclude_callchain_kernel);
        ONE_BIT(exclude_callchain_user);
        ONE_BIT(mmap2);
        ONE_BIT(comm_exec);
        ONE_BIT(use_clockid);
        ONE_BIT(context_switch);
        ONE_BIT(write_backward);
        ONE_BIT(namespaces);
        ONE_BIT(ksymbol);
        ONE_BIT(bpf_event);
        ONE_BIT(aux_output);
        ONE_BIT(cgroup);
        ONE_BIT(text_poke);
        ONE_BIT(build_id);
        ONE_BIT(inherit_thread);
        ONE_BIT(remove_on_exec);
        ONE_BIT(sigtrap);
}

static void test_a_bit_has_one_rule(void) {
        for (size_t i = 0; i < n_attr_rules; i++)
                for (size_t j = 0; j < i; j++)
                        if (attr_rules[i].place == attr_rules[j].place)
                                g_assert_cmphex(attr_rules[i].bits & attr_rules[j].bits, ==, 0);
}

/* ---- what it does ---- */

static void test_each_rule_is_applied_and_named(void) {
        for (size_t i = 0; i < n_attr_rules; i++) {
                const AttrRule *rule = &attr_rules[i];
                Attr a = plain();
                uint64_t number = attr_number(&a, rule->place);

                /* rules that depend on the PMU have their own test */
                if (!rule->name)
                        continue;
                attr_set_number(&a, rule->place,
                                rule->unless ? number & ~rule->bits : number | rule->bits);
                if (rule->needs >> ATTR_NEVER) {
                        g_assert_nonnull(rule->why);
                        assert_refused(&a, ATTR_PMU_SOFTWARE, REFUSAL_NOT_PERMITTED, rule->name);
                        continue;
                }
                assert_needs(&a, ATTR_PMU_SOFTWARE, rule->needs);
                for (int need = 0; need < _ATTR_NEED_MAX; need++)
                        if (rule->needs >> need & 1)
                                g_assert_true(g_str_has_prefix(
                                        check(&a, ATTR_PMU_SOFTWARE).by[need], rule->name));
        }
}

static bool is_known(AttrPlace place, uint64_t bit) {
        for (size_t i = 0; i < n_attr_rules; i++)
                if (attr_rules[i].place == place && attr_rules[i].bits & bit)
                        return true;
        return false;
}

static void test_every_other_bit_is_refused_by_name(void) {
        unsigned n_unknown = 0;

        for (int place = 0; place < _ATTR_PLACE_MAX; place++)
                for (unsigned i = 0; i < 8 * attr_numbers[place].size; i++) {
                        Attr a = plain();
                        uint64_t bit = place == ATTR_FLAGS ? attr_flag(i) : UINT64_C(1) << i;
                        g_autofree char *words =
                                g_strdup_printf("bit %u of %s", i, attr_numbers[place].name);

                        if (is_known((AttrPlace) place, bit))
                                continue;
                        n_unknown++;
                        attr_set_number(&a, (AttrPlace) place,
                                        attr_number(&a, (AttrPlace) place) | bit);
                        assert_refused(&a, ATTR_PMU_SOFTWARE, REFUSAL_NOT_PERMITTED, words);
                }
        g_assert_cmpuint(n_unknown, >, 100);
}

static void test_pmus_have_needs_of_their_own(void) {
        static const struct {
                AttrPmu pmu;
                unsigned needs;
        } pmus[] = {
                { ATTR_PMU_CORE, 0 },
                { ATTR_PMU_SOFTWARE, 0 },
                { ATTR_PMU_BREAKPOINT, 0 },
                { ATTR_PMU_TRACEPOINT, 1u << ATTR_NEED_RAW },
                { ATTR_PMU_UNCORE, 1u << ATTR_NEED_SYSTEM },
                { ATTR_PMU_OTHER, 1u << ATTR_NEED_KERNEL },
        };
        Attr a = plain();

        for (size_t i = 0; i < G_N_ELEMENTS(pmus); i++)
                assert_needs(&a, pmus[i].pmu, pmus[i].needs);
        assert_refused(&a, ATTR_PMU_PROBE, REFUSAL_NOT_PERMITTED, "config1");
}

static void test_counting_a_users_address_tells_nothing_of_the_kernel(void) {
        static const struct {
                uint64_t address, length, period;
                bool kernel;
        } breakpoints[] = {
                { 0x1000, 8, 0, false },    { INT64_MAX - 7, 8, 0, false },
                { INT64_MAX, 8, 0, true },  { (uint64_t) INT64_MAX + 1, 1, 0, true },
                { UINT64_MAX, 8, 0, true }, { 0x1000, UINT64_MAX, 0, true },
                { 0x1000, 8, 1, true },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(breakpoints); i++) {
                Attr a = { .known = { .type = PERF_TYPE_BREAKPOINT,
                                      .bp_addr = breakpoints[i].address,
                                      .bp_len = breakpoints[i].length,
                                      .sample_period = breakpoints[i].period } };

                assert_needs(&a, ATTR_PMU_BREAKPOINT,
                             breakpoints[i].kernel ? 1u << ATTR_NEED_KERNEL : 0);
        }
}

static void test_branches_of_no_level_are_of_the_events_levels(void) {
        static const struct {
                uint64_t branches;
                bool exclude_hv, kernel;
        } events[] = {
                { PERF_SAMPLE_BRANCH_ANY, true, false },
                { PERF_SAMPLE_BRANCH_ANY, false, true },
                { PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER, false, false },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                Attr a = plain();

                a.known.exclude_hv = events[i].exclude_hv;
                a.known.sample_type = PERF_SAMPLE_BRANCH_STACK;
                a.known.branch_sample_type = events[i].branches;
                assert_needs(&a, ATTR_PMU_CORE, events[i].kernel ? 1u << ATTR_NEED_KERNEL : 0);
        }
}

static void test_any_thread_is_everybodys(void) {
        Attr a = plain();
        unsigned needs = 0;

#if defined(__x86_64__) || defined(__i386__)
        needs = 1u << ATTR_NEED_SYSTEM;
#endif
        a.known.type = PERF_TYPE_RAW;
        a.known.config = 0x3c | 1 << 21;
        assert_needs(&a, ATTR_PMU_CORE, needs);
        a.known.config = 0x3c;
        assert_needs(&a, ATTR_PMU_CORE, 0);
        a.known.type = PERF_TYPE_HARDWARE; /* not this bit there */
        a.known.config = 1 << 21;
        assert_needs(&a, ATTR_PMU_CORE, 0);
}

static void test_confined_call_chains_end_at_the_kernel(void) {
        Attr a = plain(), b;

        a.known.sample_type |= PERF_SAMPLE_CALLCHAIN;
        b = a;
        attr_confine(&a);
        g_assert_true(a.known.exclude_callchain_kernel);
        b.known.exclude_callchain_kernel = 1;
        g_assert_cmpmem(&a, sizeof(a), &b, sizeof(b));
        /* with kernel samples it may be seen */
        b = (Attr){ .known.sample_type = PERF_SAMPLE_CALLCHAIN };
        attr_confine(&b);
        g_assert_false(b.known.exclude_callchain_kernel);
        /* without call chains there is nothing to end */
        a = b = plain();
        attr_confine(&a);
        g_assert_cmpmem(&a, sizeof(a), &b, sizeof(b));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/attr-rules/numbers-are-where-the-header-has-them",
                        test_numbers_are_where_the_header_has_them);
        g_test_add_func("/attr-rules/numbers-lie-side-by-side", test_numbers_lie_side_by_side);
        g_test_add_func("/attr-rules/flags-are-those-of-the-header",
                        test_flags_are_those_of_the_header);
        g_test_add_func("/attr-rules/a-bit-has-one-rule", test_a_bit_has_one_rule);
        g_test_add_func("/attr-rules/each-rule-is-applied-and-named",
                        test_each_rule_is_applied_and_named);
        g_test_add_func("/attr-rules/every-other-bit-is-refused-by-name",
                        test_every_other_bit_is_refused_by_name);
        g_test_add_func("/attr-rules/pmus-have-needs-of-their-own",
                        test_pmus_have_needs_of_their_own);
        g_test_add_func("/attr-rules/counting-a-users-address-tells-nothing-of-the-kernel",
                        test_counting_a_users_address_tells_nothing_of_the_kernel);
        g_test_add_func("/attr-rules/branches-of-no-level-are-of-the-events-levels",
                        test_branches_of_no_level_are_of_the_events_levels);
        g_test_add_func("/attr-rules/any-thread-is-everybodys", test_any_thread_is_everybodys);
        g_test_add_func("/attr-rules/confined-call-chains-end-at-the-kernel",
                        test_confined_call_chains_end_at_the_kernel);
        return g_test_run();
}
