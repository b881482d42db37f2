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
