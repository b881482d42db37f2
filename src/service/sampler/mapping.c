/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAPPING_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static int mapping_map(int fd, const struct perfalloc_sample *record, size_t record_size,
                       Mapping *ret) {
        size_t size = PERFALLOC_MAP_SIZE(record_size);
        struct perfalloc_map *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (map == MAP_FAILED)
                return -errno;
        *ret = (Mapping){ .map = map, .size = size, .record = record, .record_size = record_size };
        return 0;
}

/* The same file, open for reading. */
static int open_for_reading(int fd) {
        char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        int again;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC);
        return again < 0 ? -errno : again;
}

int mapping_new(const struct perfalloc_sample *record, size_t record_size, Mapping *ret,
                int *ret_fd, int *ret_client) {
        _cleanup_close_ int fd = memfd_create("perfalloc-map", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        _cleanup_close_ int client = -1;
        int r;

        if (fd < 0)
                return -errno;
        /* allocate now: later a lack of memory would be a SIGBUS */
        if (fallocate(fd, 0, 0, (off_t) PERFALLOC_MAP_SIZE(record_size)) < 0)
                return errno == ENOSPC ? -ENOMEM : -errno;
        if (fcntl(fd, F_ADD_SEALS, MAPPING_SEALS | F_SEAL_SEAL) < 0 || fchmod(fd, 0600) < 0)
                return -errno;
        client = open_for_reading(fd);
        if (client < 0)
                return client;
        r = mapping_map(fd, record, record_size, ret);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        *ret_client = TAKE_FD(client);
        return 0;
}

int mapping_open(int fd, const struct perfalloc_sample *record, size_t record_size, Mapping *ret) {
        int seals = fcntl(fd, F_GET_SEALS), r;
        struct stat st;

        if (seals < 0 || (seals & MAPPING_SEALS) != MAPPING_SEALS)
                return -EBADMSG;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size != (off_t) PERFALLOC_MAP_SIZE(record_size))
                return -EBADMSG;
        r = mapping_map(fd, record, record_size, ret);
        if (r == 0 && ret->map->sequence % 2 != 0)
                mapping_publish(ret);
        return r;
}

void mapping_done(Mapping *m) {
        if (m->map)
                (void) munmap(m->map, m->size);
        *m = MAPPING_NULL;
}

/* A reader that sees the same even sequence before and after has seen no half of it. */
void mapping_publish(Mapping *m) {
        uint64_t sequence = m->map->sequence | 1; /* it is odd if an earlier run was killed here */

        __atomic_store_n(&m->map->sequence, sequence, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        memcpy(m->map + 1, m->record, m->record_size);
        __atomic_store_n(&m->map->sequence, sequence + 1, __ATOMIC_RELEASE);
}

void mapping_end(Mapping *m) {
        if (m->map)
                __atomic_store_n(&m->map->ended, 1, __ATOMIC_RELEASE);
}
