/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gate.h"

#include "perf/group/switch.h"
#include "perf/process/tree.h"

static struct {
        void (*f)(void *userdata);
        void *userdata;
} gate_hook;

void gate_on_again(void (*f)(void *userdata), void *userdata) {
        gate_hook.f = f;
        gate_hook.userdata = userdata;
}

void gate_again(void) {
        if (gate_hook.f)
                gate_hook.f(gate_hook.userdata);
}

#define GATE_ROUNDS 4 /* at least two: what is born in the first is not reached by it */

bool gate_all(bool inherited, const Rest *rest, void (*f)(void *userdata), void *userdata) {
        for (int round = 0; round < GATE_ROUNDS; round++) {
                pid_t last = inherited ? tree_last_born() : 0;

                f(userdata);
                switches_flush();
                if (!inherited || (round == 0 && rest && rest_lasts(rest)))
                        return true;
                if (round > 0 && tree_last_born() == last)
                        break;
        }
        return false;
}
