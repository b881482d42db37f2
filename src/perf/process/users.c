/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "users.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "perf/pmu/event-order.h"
#include "perf/process/procfs.h"

#define PERF_LINK "anon_inode:[perf_event]"

typedef struct Pids {
        size_t n_pids;
        pid_t *pids;
} Pids;

static void pids_done(Pids *p) {
        free(p->pids);
}

static void closedirp(DIR **d) {
        if (*d)
                closedir(*d);
}

static bool pids_has(const pid_t *pids, size_t n_pids, pid_t pid) {
        for (size_t i = 0; i < n_pids; i++)
                if (pids[i] == pid)
                        return true;
        return false;
}

static int pids_add(Pids *p, pid_t pid) {
        if ((p->n_pids & (p->n_pids - 1)) == 0) {
                pid_t *pids = reallocarray(p->pids, p->n_pids ? p->n_pids * 2 : 1, sizeof(pid_t));

                if (!pids)
                        return -ENOMEM;
                p->pids = pids;
        }
        p->pids[p->n_pids++] = pid;
        return 0;
}

/* All processes, which the kernel lists by ascending number. */
static int pids_list(Pids *ret, const pid_t *skip, size_t n_skip) {
        _cleanup_(closedirp) DIR *d = opendir("/proc");

        if (!d)
                return -errno;
        for (struct dirent *e; (e = readdir(d));) {
                pid_t pid = (pid_t) strtol(e->d_name, NULL, 10);
                int r = pid > 0 && !pids_has(skip, n_skip, pid) ? pids_add(ret, pid) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_perf_event(int directory, const char *name) {
        char link[sizeof(PERF_LINK)];
        ssize_t length = readlinkat(directory, name, link, sizeof(link));

        return length == sizeof(PERF_LINK) - 1 && memcmp(link, PERF_LINK, (size_t) length) == 0;
}

static uint64_t order_of(int pidfd, const char *name) {
        int number = (int) strtol(name, NULL, 10);
        _cleanup_close_ int fd = (int) syscall(SYS_pidfd_getfd, pidfd, number, 0u);

        return fd < 0 ? 0 : event_order(fd);
}

/* No descriptors also: it has ended or may not be seen. */
static void read_descriptors(pid_t pid, User *ret) {
        _cleanup_(closedirp) DIR *d = NULL;
        _cleanup_close_ int pidfd = -1;
        char path[sizeof("/proc/-2147483648/fd")];

        memset(ret, 0, sizeof(*ret)); /* the padding too */
        (void) snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
        d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));) {
                uint64_t order;

                if (!is_perf_event(dirfd(d), e->d_name))
                        continue;
                if (ret->n_descriptors == 0)
                        pidfd = (int) syscall(SYS_pidfd_open, pid, 0u);
                order = order_of(pidfd, e->d_name);
                ret->oldest = ret->n_descriptors++ == 0 ? order : MIN(ret->oldest, order);
        }
}

/* A file may have that name too, but then a slash comes before it. */
static bool has_mapping(pid_t pid) {
        char path[sizeof("/proc/-2147483648/maps")], line[512];
        bool found = false, begins = true;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/%d/maps", (int) pid);
        f = fopen(path, "re");
        while (f && !found && fgets(line, sizeof(line), f)) {
                const char *name = begins ? strchr(line, '/') : NULL;
                const char *perf = begins ? strstr(line, PERF_LINK) : NULL;

                found = perf && (!name || perf < name);
                begins = strchr(line, '\n');
        }
        if (f)
                fclose(f);
        return found;
}

static bool has_suffix(const char *name, size_t length, const char *suffix) {
        size_t n = strlen(suffix);

        return length > n && memcmp(name + length - n, suffix, n) == 0;
}

static bool is_unit(const char *name, size_t length) {
        static const char *const suffixes[] = { ".service", ".scope", ".socket", ".mount",
                                                ".swap" };

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (has_suffix(name, length, suffixes[i]))
                        return true;
        return false;
}

/* The innermost unit of a cgroup path: below it may be cgroups of the unit's own, above it slices.
 * A slice is found only if there is nothing else. */
static void find_unit(const char *path, char *ret, size_t size) {
        bool only_slices = true;

        for (const char *name = path; *name && *name != '\n';) {
                size_t length = strcspn(name, "/\n");
                bool unit = is_unit(name, length);

                if (unit || (only_slices && has_suffix(name, length, ".slice")))
                        procfs_clean(ret, size, name, length);
                only_slices &= !unit;
                name += length + (name[length] == '/');
        }
}

/* The line of cgroups(7) version 2, "0::/PATH", or of systemd's own version 1 hierarchy. */
void user_unit(const char *cgroup, char *ret, size_t size) {
        const char *line = strstr(cgroup, ":name=systemd:");

        ret[0] = '\0';
        if (line)
                find_unit(line + strlen(":name=systemd:"), ret, size);
        line = strncmp(cgroup, "0::", 3) == 0 ? cgroup : strstr(cgroup, "\n0::");
        if (line && !ret[0])
                find_unit(strstr(line, "::") + 2, ret, size);
}

/* Adds whose process it is. False: it has ended meanwhile. */
static bool user_read(pid_t pid, User *ret) {
        _cleanup_free_ char *status = NULL, *stat = NULL, *cgroup = NULL;
        const char *ids;
        unsigned uid;

        if (procfs_read(pid, "status", &status, NULL) < 0 ||
            procfs_read(pid, "stat", &stat, NULL) < 0 || !procfs_stat(stat, ret->command))
                return false;
        ids = procfs_field(status, "Uid");
        if (!ids || sscanf(ids, "%*u %u", &uid) != 1)
                return false;
        ret->pid = pid;
        ret->uid = uid;
        if (procfs_read(pid, "cgroup", &cgroup, NULL) == 0)
                user_unit(cgroup, ret->unit, sizeof(ret->unit));
        return true;
}

int users_scan(const pid_t *skip, size_t n_skip, int (*found)(void *userdata, const User *user),
               void *userdata) {
        _cleanup_(pids_done) Pids pids = {};
        unsigned n_found = 0;
        int r;

        r = pids_list(&pids, skip, n_skip);
        /* Descriptors first: reading them never waits, so a process that delays the reading of its
         * mappings hides no process with descriptors. */
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; r >= 0 && i < pids.n_pids && n_found < USERS_MAX; i++) {
                        User user = {};

                        if (pids.pids[i] == 0)
                                continue;
                        if (pass == 0)
                                read_descriptors(pids.pids[i], &user);
                        if (pass == 0 ? user.n_descriptors == 0 : !has_mapping(pids.pids[i]))
                                continue;
                        if (user_read(pids.pids[i], &user)) {
                                r = found(userdata, &user);
                                n_found++;
                        }
                        pids.pids[i] = 0;
                }
        return MIN(r, 0);
}
