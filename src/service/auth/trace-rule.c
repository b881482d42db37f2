/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-rule.h"

#include <fcntl.h>

bool trace_rule_is_void(const char *path) {
        char c = 0;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 || read(fd, &c, 1) != 1 || (c != '0' && c != '2');
}

const char *trace_rule_denies(const Peer *peer, const ProcessFacts *facts) {
        if (peer->root)
                return NULL;
        if (trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE))
                return "fs.suid_dumpable is 1 or cannot be read, and it may become privileged "
                       "later";
        return process_untraceable(facts, peer->uid, peer->gids, peer->n_gids);
}
