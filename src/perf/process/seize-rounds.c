/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seize-rounds.h"

#define QUIET_ROUNDS 2

int seize_rounds(int (*look)(void *userdata, bool *ret_new), void *userdata) {
        for (unsigned quiet = 0; quiet < QUIET_ROUNDS;) {
                bool found = false;
                int r = look(userdata, &found);

                if (r != 0)
                        return r;
                quiet = found ? 0 : quiet + 1;
        }
        return 0;
}
