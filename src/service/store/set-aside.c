/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "set-aside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>

#include "service/store/restore-watch.h"
#include "service/store/store-record.h"
#include "service/util/log.h"

#define FILE_NAME "state-set-aside"

/* The log is sparse, and so is the copy. */
static int copy_data(int from, int to, off_t size) {
        off_t at = 0, hole;

        while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
                hole = lseek(from, at, SEEK_HOLE);
                if (hole < 0 || lseek(to, at, SEEK_SET) < 0)
                        return -errno;
                while (at < hole) {
                        ssize_t n = sendfile(to, from, &at, (size_t) (hole - at));

                        if (n <= 0)
                                return n < 0 ? -errno : -EIO;
                }
        }
        return ftruncate(to, size) < 0 ? -errno : 0;
}

static int copy_log(const StateLog *log, const char *path) {
        _cleanup_close_ int fd =
                open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

        return fd < 0 ? -errno : copy_data(log->fd, fd, lseek(log->fd, 0, SEEK_END));
}

static void describe_log(const StateLog *log, char *text, size_t size) {
        static const char *const names[] = {
                [STORE_HOLD] = "holds",
                [STORE_COUNTERS] = "counters or groups of them",
                [STORE_SAMPLER] = "samplers",
                [STORE_MONITOR] = "registered monitors",
        };
        unsigned n[ELEMENTSOF(names)] = {};
        const StateEntry *e;
        uint64_t place = 0;
        size_t used = 0;

        while ((e = statelog_next(log, &place)))
                if (e->kind < ELEMENTSOF(names))
                        n[e->kind]++;
        *text = '\0';
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (names[i] && n[i] > 0 && used < size)
                        used += (size_t) snprintf(text + used, size - used, "%s%u %s",
                                                  used > 0 ? ", " : "", n[i], names[i]);
}

void set_aside(const StateLog *log, const char *directory, bool describe) {
        _cleanup_free_ char *path = NULL;
        char lost[256] = "", text[1024];
        int r = -ENOENT;

        if (directory && asprintf(&path, "%s/" FILE_NAME, directory) >= 0)
                r = copy_log(log, path);
        if (describe)
                describe_log(log, lost, sizeof(lost));
        (void) snprintf(
                text, sizeof(text),
                "The service has crashed %u times while it restored its state. The state is "
                "set aside, and what was held and counted has ended: %s. %s%s",
                RESTORE_CRASHES_MAX, *lost ? lost : "how much is not known",
                r == 0 ? "For a bug report it is in " : "It could not be copied: ",
                r == 0 ? path : strerror(-r));
        log_event(LOG_ERR, LOG_ID_DEGRADED, text, NULL);
}
