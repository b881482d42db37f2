/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

int cgroup_check(int fd, Refusal *why) {
        struct statfs fs;
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || flags & O_PATH)
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'cgroup': the kernel does not take a descriptor that was opened "
                              "with O_PATH; open the directory with O_RDONLY");
        if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || !S_ISDIR(st.st_mode) ||
            (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC))
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'cgroup': the descriptor is no directory of a cgroup file system "
                              "(/sys/fs/cgroup/...)");
        return 0;
}
