/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "label.h"

#include <string.h>

#include "perf/process/procfs.h"

int label_read(pid_t pid, char **ret) {
        int r = procfs_read(pid, "attr/current", ret, NULL);

        if (r != -EINVAL && r != -ENOENT && r != -ESRCH)
                return r;
        *ret = strdup("");
        return *ret ? 0 : -ENOMEM;
}
