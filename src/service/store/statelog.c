/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "statelog.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define HEADER_SIZE 4096u
#define GROW_SIZE   (64ul << 10)
#define STALE_MIN   (1ul << 20)
#define MAGIC       "perfstat"

typedef struct StateHeader {
        char magic[8];
        uint32_t format;
        uint32_t generation;
        uint32_t complete;
        uint32_t active;  /* which half is the log */
        uint64_t used[2]; /* bytes of each */
} StateHeader;

static StateHeader *header(const StateLog *l) {
        return (StateHeader *) l->map;
}

static uint8_t *area(const StateLog *l, unsigned half) {
        return l->map + HEADER_SIZE + half * STATELOG_AREA_MAX;
}

/* Places are offsets in the log's half, plus 8: no record is at 0. */
static StateEntry *entry_at(const StateLog *l, uint64_t place) {
        return (StateEntry *) (area(l, header(l)->active) + place - 8);
}

static int statelog_map(StateLog *l, int protection) {
        l->n_map = HEADER_SIZE + 2 * STATELOG_AREA_MAX;
        l->map = mmap(NULL, l->n_map, protection, MAP_SHARED | MAP_NORESERVE, l->fd, 0);
        if (l->map == MAP_FAILED) {
                l->map = NULL;
                return -errno;
        }
        return 0;
}

/* Allocates memory first: a store to a page that cannot have any is a SIGBUS. */
static int statelog_reserve(StateLog *l, unsigned half, uint64_t end) {
        uint64_t grown = MIN((end + GROW_SIZE - 1) / GROW_SIZE * GROW_SIZE, STATELOG_AREA_MAX);
        uint64_t allocated = l->allocated[half];

        if (end > STATELOG_AREA_MAX)
                return -ENOSPC;
        if (end <= allocated)
                return 0;
        if (fallocate(l->fd, FALLOC_FL_KEEP_SIZE,
                      (off_t) (HEADER_SIZE + half * STATELOG_AREA_MAX + allocated),
                      (off_t) (grown - allocated)) < 0)
                return -errno;
        /* one call, for a page fault each; Linux before 5.14 does not know it */
        (void) madvise(area(l, half) + allocated, grown - allocated, MADV_POPULATE_WRITE);
        l->allocated[half] = grown;
        return 0;
}

int statelog_new(uint32_t generation, StateLog **ret) {
        _cleanup_(statelog_freep) StateLog *l = calloc(1, sizeof(StateLog));
        int r;

        if (!l)
                return -ENOMEM;
        l->fd = memfd_create("perfalloc-state", MFD_CLOEXEC);
        if (l->fd < 0)
                return -errno;
        if (ftruncate(l->fd, (off_t) (HEADER_SIZE + 2 * STATELOG_AREA_MAX)) < 0 ||
            fallocate(l->fd, FALLOC_FL_KEEP_SIZE, 0, HEADER_SIZE) < 0)
                return -errno;
        r = statelog_map(l, PROT_READ | PROT_WRITE);
        if (r < 0)
                return r;
        *header(l) = (StateHeader){ .format = STATELOG_FORMAT, .generation = generation };
        memcpy(header(l)->magic, MAGIC, sizeof(header(l)->magic));
        *ret = TAKE_PTR(l);
        return 0;
}

static int statelog_check(const StateLog *l) {
        const StateHeader *h = header(l);

        if (memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0 || h->format == 0)
                return -EBADMSG;
        if (h->format > STATELOG_FORMAT)
                return -EPROTONOSUPPORT;
        if (h->active > 1 || h->used[h->active] > STATELOG_AREA_MAX || h->used[h->active] % 8 != 0)
                return -EBADMSG;
        return 0;
}

int statelog_open(int fd, StateLog **ret) {
        _cleanup_(statelog_freep) StateLog *l = calloc(1, sizeof(StateLog));
        struct stat st;
        int r;

        if (!l)
                return -ENOMEM;
        l->fd = -1; /* the caller's until it succeeds */
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size < (off_t) (HEADER_SIZE + 2 * STATELOG_AREA_MAX))
                return -EBADMSG;
        l->fd = fd;
        r = statelog_map(l, PROT_READ);
        if (r >= 0)
                r = statelog_check(l);
        if (r < 0) {
                l->fd = -1;
                return r;
        }
        *ret = TAKE_PTR(l);
        return 0;
}

StateLog *statelog_free(StateLog *l) {
        if (!l)
                return NULL;
        if (l->map)
                (void) munmap(l->map, l->n_map);
        close_fd(l->fd);
        free(l);
        return NULL;
}

uint32_t statelog_generation(const StateLog *l) {
        return header(l)->generation;
}

bool statelog_is_complete(const StateLog *l) {
        return header(l)->complete != 0;
}

void statelog_complete(StateLog *l) {
        __atomic_store_n(&header(l)->complete, 1, __ATOMIC_RELEASE);
}

int statelog_append(StateLog *l, const StateEntry *entry, const void *state, uint64_t *ret) {
        StateHeader *h = header(l);
        uint64_t used = h->used[h->active];
        uint64_t size = (sizeof(StateEntry) + entry->n_state + 7) / 8 * 8;
        StateEntry *e;
        int r;

        r = statelog_reserve(l, h->active, used + size);
        if (r < 0)
                return r;
        e = entry_at(l, used + 8);
        *e = *entry;
        e->size = (uint32_t) size;
        e->gone = 0;
        if (entry->n_state > 0)
                memcpy(e->state, state, entry->n_state);
        __atomic_store_n(&h->used[h->active], used + size, __ATOMIC_RELEASE);
        *ret = used + 8;
        return 0;
}

void statelog_forget(StateLog *l, uint64_t place) {
        StateEntry *e;

        if (place == 0)
                return;
        e = entry_at(l, place);
        __atomic_store_n(&e->gone, 1, __ATOMIC_RELEASE);
        l->n_garbage += e->size;
}

const StateEntry *statelog_next(const StateLog *l, uint64_t *place) {
        uint64_t used = header(l)->used[header(l)->active];
        uint64_t next = *place == 0 ? 8 : *place + entry_at(l, *place)->size;

        while (next - 8 < used) {
                const StateEntry *e = entry_at(l, next);
                uint64_t left = used - (next - 8);

                /* damage ends the log */
                if (left < sizeof(StateEntry) || e->size % 8 != 0 || e->size > left ||
                    e->size < sizeof(StateEntry) || e->n_state > e->size - sizeof(StateEntry))
                        return NULL;
                if (!e->gone) {
                        *place = next;
                        return e;
                }
                next += e->size;
        }
        return NULL;
}

bool statelog_is_stale(const StateLog *l) {
        const StateHeader *h = header(l);

        return l->n_garbage > STALE_MIN && l->n_garbage > h->used[h->active] / 2;
}

void statelog_copy_begin(StateLog *l) {
        header(l)->used[!header(l)->active] = 0;
}

int statelog_copy(StateLog *l, uint64_t *place) {
        StateHeader *h = header(l);
        const StateEntry *e = entry_at(l, *place);
        uint64_t used = h->used[!h->active];
        int r = statelog_reserve(l, !h->active, used + e->size);

        if (r < 0)
                return r;
        memcpy(area(l, !h->active) + used, e, e->size);
        h->used[!h->active] = used + e->size;
        *place = used + 8;
        return 0;
}

void statelog_copy_end(StateLog *l) {
        StateHeader *h = header(l);
        unsigned old = h->active;

        __atomic_store_n(&h->active, !old, __ATOMIC_RELEASE);
        l->n_garbage = 0;
        /* on failure the memory merely stays allocated */
        if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t) (HEADER_SIZE + old * STATELOG_AREA_MAX), STATELOG_AREA_MAX) == 0)
                l->allocated[old] = 0;
}
