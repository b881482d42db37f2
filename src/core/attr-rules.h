/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a client may put into a struct perf_event_attr, field by field and bit by bit, and which
 * authorization each needs. What is in no row of the table is refused by name.
 *
 * The rules are the kernel's own. What it gives any user at perf_event_paranoid 2, for processes
 * that the user may trace, needs nothing here; what it requires CAP_PERFMON for tells of the
 * kernel. This is decided before the kernel is asked, which sees the service's privileges instead
 * of the client's. Two things that the kernel does not check are checked here: copies of the memory
 * and registers of another program, and what a PMU's driver puts into raw samples.
 */

#include <linux/perf_event.h>

#include "core/refusal.h"

typedef union Attr Attr;
typedef struct AttrNumber AttrNumber;
typedef struct AttrRule AttrRule;
typedef struct AttrNeeds AttrNeeds;

#define ATTR_SIZE_MIN   64u   /* PERF_ATTR_SIZE_VER0 */
#define ATTR_SIZE_KNOWN 144u  /* with config4 (Linux 6.19); our header may know less */
#define ATTR_SIZE_MAX   4096u /* the kernel reads no more than a page */

/* As attr_read() returns it: zero behind the end of the client's. */
union Attr {
        struct perf_event_attr known;
        unsigned char bytes[ATTR_SIZE_KNOWN];
};

/* The numbers that an attr is made of. */
typedef enum AttrPlace {
        ATTR_TYPE,
        ATTR_SIZE,
        ATTR_CONFIG,
        ATTR_SAMPLE_PERIOD,
        ATTR_SAMPLE_TYPE,
        ATTR_READ_FORMAT,
        ATTR_FLAGS,
        ATTR_WAKEUP,
        ATTR_BP_TYPE,
        ATTR_CONFIG1,
        ATTR_CONFIG2,
        ATTR_BRANCH_SAMPLE_TYPE,
        ATTR_SAMPLE_REGS_USER,
        ATTR_SAMPLE_STACK_USER,
        ATTR_CLOCKID,
        ATTR_SAMPLE_REGS_INTR,
        ATTR_AUX_WATERMARK,
        ATTR_SAMPLE_MAX_STACK,
        ATTR_RESERVED_2,
        ATTR_AUX_SAMPLE_SIZE,
        ATTR_AUX_ACTION,
        ATTR_SIG_DATA,
        ATTR_CONFIG3,
        ATTR_CONFIG4,
        _ATTR_PLACE_MAX,
} AttrPlace;

struct AttrNumber {
        const char *name;
        unsigned offset, size; /* bytes */
};

/* What a row asks for. */
typedef enum AttrNeed {
        ATTR_NEED_KERNEL,  /* it tells of the kernel: count-kernel, or one that includes it */
        ATTR_NEED_CONTENT, /* copies of a program's memory or registers: count-raw, unless the
                            * caller may trace the program */
        ATTR_NEED_RAW,     /* count-raw */
        ATTR_NEED_SYSTEM,  /* it counts other programs too: count-system */
        ATTR_NEED_HOLD,    /* a hold on the PMU */
        _ATTR_NEED_MAX,
        ATTR_NEVER = _ATTR_NEED_MAX, /* not through the service */
} AttrNeed;

struct AttrRule {
        AttrPlace place;
        uint64_t bits; /* of that number */
        const char *name;
        unsigned needs;  /* 1 << AttrNeed, ..., when one of the bits is set */
        bool unless;     /* needs apply when the bits are clear */
        const char *why; /* of what is never allowed */
};

/* For each need, the name of the first field that has it; NULL: none. */
struct AttrNeeds {
        const char *by[_ATTR_NEED_MAX];
};

#define ATTR_NEEDS_NULL ((AttrNeeds){})

/* The kind of the PMU that the attr's type names. */
typedef enum AttrPmu {
        ATTR_PMU_CORE,
        ATTR_PMU_SOFTWARE,
        ATTR_PMU_BREAKPOINT,
        ATTR_PMU_TRACEPOINT,
        ATTR_PMU_PROBE, /* kprobe and uprobe */
        ATTR_PMU_UNCORE,
        ATTR_PMU_OTHER,
        _ATTR_PMU_MAX,
} AttrPmu;

extern const AttrNumber attr_numbers[_ATTR_PLACE_MAX];
extern const AttrRule attr_rules[];
extern const size_t n_attr_rules;

uint64_t attr_number(const Attr *a, AttrPlace place);
void attr_set_number(Attr *a, AttrPlace place, uint64_t value);

/* The bit of flags that the i-th one-bit field of perf_event_attr is (disabled is 0). */
uint64_t attr_flag(unsigned i);

/* Whether all its bits are in the table. */
bool attr_is_known(const Attr *a);

/* What the attr needs. REFUSAL_NOT_PERMITTED names a field or bit that is unknown or never allowed.
 * Pure. */
int attr_rules_check(const Attr *a, AttrPmu pmu, AttrNeeds *ret, Refusal *why);

/* Removes what an event of user space alone could still tell of the kernel: the call chain of a
 * sample that was taken late (skid), in the kernel. An attr without call chains stays as it is, for
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES compares it with the caller's. */
void attr_confine(Attr *a);
