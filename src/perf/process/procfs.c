/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "procfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define COMM_SIZE 16

int procfs_read(pid_t pid, const char *name, char **ret, struct stat *st) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -1;
        size_t length = 0, size = 0;
        char path[128];

        if (snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (st && fstat(fd, st) < 0))
                return -errno;
        for (;;) {
                ssize_t n;

                if (length + 1 >= size) {
                        char *larger = size < PROCFS_TEXT_MAX ? realloc(text, size + 4096) : NULL;

                        if (!larger)
                                return size < PROCFS_TEXT_MAX ? -ENOMEM : -EFBIG;
                        text = larger;
                        size = size + 4096;
                }
                n = read(fd, text + length, size - length - 1);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        text[length] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

/* A line of mountinfo, proc_pid_mountinfo(5): 22 1 0:21 / /proc rw - proc proc rw,hidepid=2 */
static bool mount_hides(const char *line, size_t length) {
        _cleanup_free_ char *text = strndup(line, length);
        const char *type = text ? strstr(text, " - proc ") : NULL, *option;

        if (!type || !strstr(text, " /proc "))
                return false;
        option = strstr(type, "hidepid=");
        return option && strncmp(option, "hidepid=0", 9) != 0 &&
               strncmp(option, "hidepid=off", 11) != 0;
}

bool procfs_hides(void) {
        _cleanup_free_ char *text = NULL;
        bool hides = false;

        if (procfs_read(1, "mountinfo", &text, NULL) < 0)
                return true;
        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");

                hides = hides || mount_hides(line, n);
                line += n + (line[n] == '\n');
        }
        return hides;
}

int procfs_explain_hidden(pid_t pid, Refusal *why) {
        return pid > 0 && procfs_hides() ? procfs_refuse_unseen(pid, why) : 0;
}

int procfs_refuse_unseen(pid_t pid, Refusal *why) {
        if (!procfs_hides())
                return refuse(why, REFUSAL_NO_SUCH_PROCESS, "process %d does not exist", (int) pid);
        return refuse(why, REFUSAL_NO_SUCH_PROCESS,
                      "there is no process %d, or /proc hides it: it is mounted with hidepid=. If "
                      "it hides the caller's own processes from the service, name a group there "
                      "with gid=, and give it to perfallocd.service with SupplementaryGroups=",
                      (int) pid);
}

const char *procfs_field(const char *text, const char *name) {
        size_t length = strlen(name);

        for (const char *line = text; *line; line++) {
                if (strncmp(line, name, length) == 0 && line[length] == ':')
                        return line + length + 1 + strspn(line + length + 1, " \t");
                line = strchr(line, '\n');
                if (!line)
                        break;
        }
        return NULL;
}

void procfs_clean(char *ret, size_t size, const char *name, size_t length) {
        size_t n = 0;

        for (; n < length && n + 1 < size && name[n]; n++)
                ret[n] = name[n] >= ' ' && name[n] <= '~' ? name[n] : '?';
        ret[n] = '\0';
}

const char *procfs_stat(const char *text, char *comm) {
        const char *begin = strchr(text, '('), *end = strrchr(text, ')');

        if (!begin || !end || end < begin || end[1] != ' ')
                return NULL;
        if (comm)
                procfs_clean(comm, COMM_SIZE, begin + 1, (size_t) (end - begin - 1));
        return end + 2;
}
