/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attr-rules.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "core/address.h"

const AttrNumber attr_numbers[_ATTR_PLACE_MAX] = {
        [ATTR_TYPE] = { "type", 0, 4 },
        [ATTR_SIZE] = { "size", 4, 4 },
        [ATTR_CONFIG] = { "config", 8, 8 },
        [ATTR_SAMPLE_PERIOD] = { "sample_period", 16, 8 },
        [ATTR_SAMPLE_TYPE] = { "sample_type", 24, 8 },
        [ATTR_READ_FORMAT] = { "read_format", 32, 8 },
        [ATTR_FLAGS] = { "the flags after read_format", 40, 8 },
        [ATTR_WAKEUP] = { "wakeup_events", 48, 4 },
        [ATTR_BP_TYPE] = { "bp_type", 52, 4 },
        [ATTR_CONFIG1] = { "config1", 56, 8 },
        [ATTR_CONFIG2] = { "config2", 64, 8 },
        [ATTR_BRANCH_SAMPLE_TYPE] = { "branch_sample_type", 72, 8 },
        [ATTR_SAMPLE_REGS_USER] = { "sample_regs_user", 80, 8 },
        [ATTR_SAMPLE_STACK_USER] = { "sample_stack_user", 88, 4 },
        [ATTR_CLOCKID] = { "clockid", 92, 4 },
        [ATTR_SAMPLE_REGS_INTR] = { "sample_regs_intr", 96, 8 },
        [ATTR_AUX_WATERMARK] = { "aux_watermark", 104, 4 },
        [ATTR_SAMPLE_MAX_STACK] = { "sample_max_stack", 108, 2 },
        [ATTR_RESERVED_2] = { "__reserved_2", 110, 2 },
        [ATTR_AUX_SAMPLE_SIZE] = { "aux_sample_size", 112, 4 },
        [ATTR_AUX_ACTION] = { "aux_action", 116, 4 },
        [ATTR_SIG_DATA] = { "sig_data", 120, 8 },
        [ATTR_CONFIG3] = { "config3", 128, 8 },
        [ATTR_CONFIG4] = { "config4", 136, 8 },
};

/* Bit fields begin at the lowest bit or at the highest, as the machine's C does. */
#if __BYTE_ORDER == __LITTLE_ENDIAN
#define FLAG(i) (UINT64_C(1) << (i))
#else
#define FLAG(i) (UINT64_C(1) << (63 - (i)))
#endif

#define ALL    UINT64_MAX
#define BIT(i) (UINT64_C(1) << (i))

#define KERNEL  (1u << ATTR_NEED_KERNEL)
#define CONTENT (1u << ATTR_NEED_CONTENT)
#define RAW     (1u << ATTR_NEED_RAW)
#define HOLD    (1u << ATTR_NEED_HOLD)
#define NEVER   (1u << ATTR_NEVER)

#define NUMBER(place)                                                                              \
        { (place), ALL, NULL }
#define SAMPLE(i, name, ...)                                                                       \
        { ATTR_SAMPLE_TYPE, BIT(i), "PERF_SAMPLE_" name, __VA_ARGS__ }
#define BRANCH(i, name, ...)                                                                       \
        { ATTR_BRANCH_SAMPLE_TYPE, BIT(i), "PERF_SAMPLE_BRANCH_" name, __VA_ARGS__ }
#define FORMAT(i, name)                                                                            \
        { ATTR_READ_FORMAT, BIT(i), "PERF_FORMAT_" name }
#define FIELD(i, name, ...)                                                                        \
        { ATTR_FLAGS, FLAG(i), name, __VA_ARGS__ }

/* perf_event_open(2), include/uapi/linux/perf_event.h; where the kernel itself asks for privilege:
 * perf_copy_attr() and perf_event_open() of kernel/events/core.c. */
const AttrRule attr_rules[] = {
        /* what these mean depends on the PMU, see pmu_rules */
        NUMBER(ATTR_TYPE),
        NUMBER(ATTR_SIZE),
        NUMBER(ATTR_CONFIG),
        NUMBER(ATTR_CONFIG1),
        NUMBER(ATTR_CONFIG2),
        NUMBER(ATTR_CONFIG3),
        NUMBER(ATTR_CONFIG4),
        NUMBER(ATTR_BP_TYPE),

        NUMBER(ATTR_SAMPLE_PERIOD),
        NUMBER(ATTR_WAKEUP),
        NUMBER(ATTR_CLOCKID),
        NUMBER(ATTR_SAMPLE_MAX_STACK),
        /* of no effect without the bit of sample_type */
        NUMBER(ATTR_SAMPLE_REGS_USER),
        NUMBER(ATTR_SAMPLE_STACK_USER),
        NUMBER(ATTR_SAMPLE_REGS_INTR),
        NUMBER(ATTR_AUX_SAMPLE_SIZE),
        NUMBER(ATTR_AUX_WATERMARK),
        NUMBER(ATTR_SIG_DATA), /* without sigtrap */
        { ATTR_AUX_ACTION, BIT(0), "aux_start_paused" },
        { ATTR_AUX_ACTION, BIT(1), "aux_pause" },
        { ATTR_AUX_ACTION, BIT(2), "aux_resume" },

        SAMPLE(0, "IP"),
        SAMPLE(1, "TID"),
        SAMPLE(2, "TIME"),
        SAMPLE(3, "ADDR"),
        SAMPLE(4, "READ"),
        SAMPLE(5, "CALLCHAIN"), /* see attr_confine() */
        SAMPLE(6, "ID"),
        SAMPLE(7, "CPU"),
        SAMPLE(8, "PERIOD"),
        SAMPLE(9, "STREAM_ID"),
        SAMPLE(10, "RAW", RAW), /* whatever the PMU's driver gives: AMD's IBS physical addresses */
        SAMPLE(11, "BRANCH_STACK"), /* see attr_check_branches() */
        SAMPLE(12, "REGS_USER", CONTENT),
        SAMPLE(13, "STACK_USER", CONTENT),
        SAMPLE(14, "WEIGHT"),
        SAMPLE(15, "DATA_SRC"),
        SAMPLE(16, "IDENTIFIER"),
        SAMPLE(17, "TRANSACTION"),
        SAMPLE(18, "REGS_INTR", KERNEL | CONTENT), /* by skid they may be the kernel's */
        SAMPLE(19, "PHYS_ADDR", KERNEL),
        SAMPLE(20, "AUX", CONTENT),
        SAMPLE(21, "CGROUP"),
        SAMPLE(22, "DATA_PAGE_SIZE"),
        SAMPLE(23, "CODE_PAGE_SIZE"),
        SAMPLE(24, "WEIGHT_STRUCT"),

        FORMAT(0, "TOTAL_TIME_ENABLED"),
        FORMAT(1, "TOTAL_TIME_RUNNING"),
        FORMAT(2, "ID"),
        FORMAT(3, "GROUP"),
        FORMAT(4, "LOST"),

        BRANCH(0, "USER"),
        BRANCH(1, "KERNEL", KERNEL),
        BRANCH(2, "HV", KERNEL),
        BRANCH(3, "ANY"),
        BRANCH(4, "ANY_CALL"),
        BRANCH(5, "ANY_RETURN"),
        BRANCH(6, "IND_CALL"),
        BRANCH(7, "ABORT_TX"),
        BRANCH(8, "IN_TX"),
        BRANCH(9, "NO_TX"),
        BRANCH(10, "COND"),
        BRANCH(11, "CALL_STACK"),
        BRANCH(12, "IND_JUMP"),
        BRANCH(13, "CALL"),
        BRANCH(14, "NO_FLAGS"),
        BRANCH(15, "NO_CYCLES"),
        BRANCH(16, "TYPE_SAVE"),
        BRANCH(17, "HW_INDEX"),
        BRANCH(18, "PRIV_SAVE"),
        BRANCH(19, "COUNTERS"),

        FIELD(0, "disabled"),
        FIELD(1, "inherit"),
        FIELD(2, "pinned", HOLD),    /* takes a counter from all others while it is open */
        FIELD(3, "exclusive", HOLD), /* takes the whole PMU */
        FIELD(4, "exclude_user"),
        FIELD(5, "exclude_kernel", KERNEL, true),
        FIELD(6, "exclude_hv"), /* the kernel checks no privilege for it alone */
        FIELD(7, "exclude_idle"),
        FIELD(8, "mmap"),
        FIELD(9, "comm"),
        FIELD(10, "freq"),
        FIELD(11, "inherit_stat"),
        FIELD(12, "enable_on_exec"),
        FIELD(13, "task"),
        FIELD(14, "watermark"),
        { ATTR_FLAGS, FLAG(15) | FLAG(16), "precise_ip" },
        FIELD(17, "mmap_data"),
        FIELD(18, "sample_id_all"),
        FIELD(19, "exclude_host"),
        FIELD(20, "exclude_guest"),
        FIELD(21, "exclude_callchain_kernel"),
        FIELD(22, "exclude_callchain_user"),
        FIELD(23, "mmap2"),
        FIELD(24, "comm_exec"),
        FIELD(25, "use_clockid"),
        FIELD(26, "context_switch"),
        FIELD(27, "write_backward"),
        FIELD(28, "namespaces", KERNEL),
        FIELD(29, "ksymbol"),   /* what the counted task itself loads into the kernel, */
        FIELD(30, "bpf_event"), /* which the kernel tells any user */
        FIELD(31, "aux_output"),
        FIELD(32, "cgroup"),
        FIELD(33, "text_poke", KERNEL),
        FIELD(34, "build_id"),
        FIELD(35, "inherit_thread"),
        FIELD(36, "remove_on_exec"),
        FIELD(37, "sigtrap", NEVER, false,
              "the kernel would check the service's right to send signals, not yours; to have them "
              "sent to your own threads, open the event yourself, with exclude_kernel"),
        FIELD(38, "defer_callchain"),
        FIELD(39, "defer_output"),
};
const size_t n_attr_rules = ELEMENTSOF(attr_rules);

#define ATTR_FLAG_EXCLUDE_KERNEL           FLAG(5)
#define ATTR_FLAG_EXCLUDE_HV               FLAG(6)
#define ATTR_FLAG_EXCLUDE_CALLCHAIN_KERNEL FLAG(21)

/* What events of a PMU need, whatever else is in the attr. */
static const struct {
        const char *name;
        int need; /* AttrNeed, -1: none */
} pmu_rules[_ATTR_PMU_MAX] = {
        [ATTR_PMU_CORE] = { "type", -1 },
        [ATTR_PMU_SOFTWARE] = { "type", -1 },
        [ATTR_PMU_BREAKPOINT] = { "type", -1 },
        [ATTR_PMU_TRACEPOINT] = { "type (a tracepoint)", ATTR_NEED_RAW },
        [ATTR_PMU_PROBE] = { "config1", ATTR_NEVER },
        [ATTR_PMU_UNCORE] = { "type (an uncore PMU)", ATTR_NEED_SYSTEM },
        /* Some drivers require privilege for bits of config (Arm SPE: physical addresses), so all
         * such events count as telling of the kernel. */
        [ATTR_PMU_OTHER] = { "type (neither a core PMU nor the kernel's own)", ATTR_NEED_KERNEL },
};

uint64_t attr_flag(unsigned i) {
        return FLAG(i);
}

uint64_t attr_number(const Attr *a, AttrPlace place) {
        const unsigned char *p = &a->bytes[attr_numbers[place].offset];
        uint64_t u64;
        uint32_t u32;
        uint16_t u16;

        switch (attr_numbers[place].size) {
        case 8:
                return memcpy(&u64, p, sizeof(u64)), u64;
        case 4:
                return memcpy(&u32, p, sizeof(u32)), u32;
        default:
                return memcpy(&u16, p, sizeof(u16)), u16;
        }
}

void attr_set_number(Attr *a, AttrPlace place, uint64_t value) {
        unsigned char *p = &a->bytes[attr_numbers[place].offset];

        switch (attr_numbers[place].size) {
        case 8:
                memcpy(p, &value, sizeof(value));
                break;
        case 4:
                memcpy(p, &(uint32_t){ (uint32_t) value }, sizeof(uint32_t));
                break;
        default:
                memcpy(p, &(uint16_t){ (uint16_t) value }, sizeof(uint16_t));
        }
}

/* The bits that have a row, by place. */
static const uint64_t *places_known(void) {
        static uint64_t known[_ATTR_PLACE_MAX];
        static bool done; /* once, as the table is long and each event is checked */

        for (size_t i = 0; i < n_attr_rules && !done; i++)
                known[attr_rules[i].place] |= attr_rules[i].bits;
        done = true;
        return known;
}

/* Counted in the order of the C fields. */
static unsigned bit_number(AttrPlace place, uint64_t bits) {
        unsigned i = 0;

        while (!(bits & (place == ATTR_FLAGS ? FLAG(i) : BIT(i))))
                i++;
        return i;
}

static int attr_check_known(const Attr *a, Refusal *why) {
        const uint64_t *known = places_known();

        for (AttrPlace place = 0; place < _ATTR_PLACE_MAX; place++) {
                uint64_t unknown = attr_number(a, place) & ~known[place];

                if (unknown != 0)
                        return refuse(why, REFUSAL_NOT_PERMITTED,
                                      "attr: bit %u of %s is unknown to this service, which "
                                      "therefore refuses it; clear it",
                                      bit_number(place, unknown), attr_numbers[place].name);
        }
        return 0;
}

bool attr_is_known(const Attr *a) {
        return attr_check_known(a, NULL) == 0;
}

static void needs_add(AttrNeeds *needs, unsigned bits, const char *name) {
        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                if (bits & 1u << need && !needs->by[need])
                        needs->by[need] = name;
}

/* A breakpoint on a user address that only counts tells nothing of the kernel, although the kernel
 * may touch that address too; a sample would show where it did. */
static bool attr_is_plain_breakpoint(const Attr *a, AttrPmu pmu) {
        return pmu == ATTR_PMU_BREAKPOINT && attr_number(a, ATTR_SAMPLE_PERIOD) == 0 &&
               address_is_user(attr_number(a, ATTR_CONFIG1), attr_number(a, ATTR_CONFIG2),
                               address_user_max());
}

static int attr_check_rule(const Attr *a, const AttrRule *rule, AttrPmu pmu, AttrNeeds *needs,
                           Refusal *why) {
        bool set = attr_number(a, rule->place) & rule->bits;

        if (rule->needs == 0 || set == rule->unless)
                return 0;
        if (rule->needs & NEVER)
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "attr: %s is not allowed through this service: %s", rule->name,
                              rule->why);
        if (!rule->unless)
                needs_add(needs, rule->needs, rule->name);
        else if (!attr_is_plain_breakpoint(a, pmu))
                needs_add(needs, rule->needs, "exclude_kernel (which is 0)");
        return 0;
}

/* Branches of no privilege level are those of the event's levels, the hypervisor's included: the
 * kernel's perf_copy_attr(). */
static void attr_check_branches(const Attr *a, AttrNeeds *needs) {
        const uint64_t levels = PERF_SAMPLE_BRANCH_PLM_ALL;
        const uint64_t excluded = ATTR_FLAG_EXCLUDE_KERNEL | ATTR_FLAG_EXCLUDE_HV;

        if (attr_number(a, ATTR_SAMPLE_TYPE) & PERF_SAMPLE_BRANCH_STACK &&
            !(attr_number(a, ATTR_BRANCH_SAMPLE_TYPE) & levels) &&
            (attr_number(a, ATTR_FLAGS) & excluded) != excluded)
                needs_add(needs, KERNEL,
                          "PERF_SAMPLE_BRANCH_STACK (without a privilege level, exclude_kernel or "
                          "exclude_hv being 0)");
}

/* AnyThread, bit 21 of an Intel core PMU's config, counts the program on the sibling thread too:
 * the kernel's perf_allow_cpu(). */
static bool attr_counts_any_thread(const Attr *a, AttrPmu pmu) {
#if defined(__x86_64__) || defined(__i386__)
        uint64_t type = attr_number(a, ATTR_TYPE);

        return pmu == ATTR_PMU_CORE && type != PERF_TYPE_HARDWARE && type != PERF_TYPE_HW_CACHE &&
               attr_number(a, ATTR_CONFIG) & BIT(21);
#else
        return false;
#endif
}

static int attr_check_pmu(const Attr *a, AttrPmu pmu, AttrNeeds *needs, Refusal *why) {
        int need = pmu_rules[pmu].need;

        if (need == ATTR_NEVER)
                return refuse(
                        why, REFUSAL_NOT_PERMITTED,
                        "attr: %s of a kprobe or uprobe points into the memory of the process "
                        "that opens it, which is the service; create a tracepoint for it (tracefs: "
                        "kprobe_events, "
                        "uprobe_events) and open that",
                        pmu_rules[pmu].name);
        if (need >= 0)
                needs_add(needs, 1u << need, pmu_rules[pmu].name);
        if (attr_counts_any_thread(a, pmu))
                needs_add(needs, 1u << ATTR_NEED_SYSTEM, "config (its bit 21, any thread)");
        return 0;
}

int attr_rules_check(const Attr *a, AttrPmu pmu, AttrNeeds *ret, Refusal *why) {
        AttrNeeds needs = ATTR_NEEDS_NULL;
        int r;

        r = attr_check_known(a, why);
        for (size_t i = 0; i < n_attr_rules && r == 0; i++)
                r = attr_check_rule(a, &attr_rules[i], pmu, &needs, why);
        if (r == 0)
                r = attr_check_pmu(a, pmu, &needs, why);
        if (r != 0)
                return r;
        attr_check_branches(a, &needs);
        *ret = needs;
        return 0;
}

void attr_confine(Attr *a) {
        uint64_t flags = attr_number(a, ATTR_FLAGS);

        if (flags & ATTR_FLAG_EXCLUDE_KERNEL &&
            attr_number(a, ATTR_SAMPLE_TYPE) & PERF_SAMPLE_CALLCHAIN)
                attr_set_number(a, ATTR_FLAGS, flags | ATTR_FLAG_EXCLUDE_CALLCHAIN_KERNEL);
}
