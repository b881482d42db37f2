/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* For scripts: whether breakpoints count here. */

#include "hits.h"

int main(void) {
        return hits_never;
}
