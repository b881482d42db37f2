/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shape.h"

unsigned counter_use_general(const CounterUse *use, uint32_t taken) {
        unsigned n = use->takes.general;

        for (uint32_t rest = use->takes.fixed & taken; rest; rest &= rest - 1)
                n += use->spill[__builtin_ctz(rest)];
        return n;
}

void counter_use_add(CounterUse *use, const CounterUse *more) {
        use->takes.general += counter_use_general(more, use->takes.fixed);
        for (uint32_t rest = more->takes.fixed & ~use->takes.fixed; rest; rest &= rest - 1)
                use->spill[__builtin_ctz(rest)] = more->spill[__builtin_ctz(rest)];
        use->takes.fixed |= more->takes.fixed;
}

void counter_use_add_open(CounterUse *use, const CounterUse *more) {
        CounterUse open = *more;

        if (open.takes.general >= SHAPE_NO_SPILL)
                open.takes.general = 0;
        for (unsigned i = 0; i < SHAPE_FIXED_MAX; i++)
                if (open.spill[i] == SHAPE_NO_SPILL && use->takes.fixed & 1u << i)
                        open.takes.fixed &= ~(1u << i);
        counter_use_add(use, &open);
}
