/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PERFALLOC_SAMPLE_H
#define PERFALLOC_SAMPLE_H

/*
 * What a sampler of org.perfalloc1 writes to its stream: one record for each tick. See
 * perfalloc-sample(5).
 *
 * The stream keeps records apart (SOCK_SEQPACKET): one recv(2) gives one whole record. It is at the
 * end when recv(2) returns 0. With option map there is no stream: the last record is in memory that
 * the client maps (struct perfalloc_map). All words are in the byte order of the host.
 */

#include <stdint.h>
#include <string.h>

#define PERFALLOC_QUALITY_EXACT 0 /* counted all the time that it was enabled */
#define PERFALLOC_QUALITY_SCALED                                                                   \
        1 /* multiplexed: value is what was counted, estimate what it stands for */
#define PERFALLOC_QUALITY_NOT_COUNTED                                                              \
        2 /* never counted yet, or not counting now: yielded, in error, closed */

/* The most readings in a record: a sampler has that many counters at most. */
#define PERFALLOC_READINGS_MAX 1024

struct perfalloc_reading {
        uint64_t value;        /* over all CPUs or threads, raw */
        uint64_t enabled_nsec; /* for how long it was to count, summed over them */
        uint64_t running_nsec; /* for how long it really counted */
        uint64_t estimate;     /* value * enabled / running of each of them, summed */
        uint64_t quality;      /* PERFALLOC_QUALITY_... */
};

/* C++ has an array without a size as an extension only. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
struct perfalloc_sample {
        uint64_t tick; /* its place on the grid, from 0: due at StartUSec + tick * IntervalUSec */
        uint64_t boottime_nsec; /* when it was taken, CLOCK_BOOTTIME: never before it was due */
        uint64_t missed;        /* ticks between the record before and this one */
        uint64_t n_readings;
        struct perfalloc_reading readings[]; /* in the order of the sampler's counters */
};
#pragma GCC diagnostic pop

/* The size of a record, in bytes. */
#define PERFALLOC_SAMPLE_SIZE(n_readings)                                                          \
        (sizeof(struct perfalloc_sample) + (n_readings) * sizeof(struct perfalloc_reading))

/* The same of a sampler with option tag: the tag comes after the readings. */
#define PERFALLOC_SAMPLE_TAGGED_SIZE(n_readings)                                                   \
        (PERFALLOC_SAMPLE_SIZE(n_readings) + sizeof(uint64_t))

static inline uint64_t perfalloc_sample_tag(const struct perfalloc_sample *sample) {
        uint64_t tag;

        memcpy(&tag, (const char *) sample + PERFALLOC_SAMPLE_SIZE(sample->n_readings),
               sizeof(tag));
        return tag;
}

/* The memory of a sampler with option map: this, and then the last record. */
struct perfalloc_map {
        uint64_t sequence; /* 0: there is no record yet; odd: it is being written */
        uint64_t ended;    /* 1: the sampler has ended, and the record stays as it is */
};

/* What is to be mapped (PROT_READ, MAP_SHARED) for a record of that size. */
#define PERFALLOC_MAP_SIZE(record_size) (sizeof(struct perfalloc_map) + (record_size))

/* Copies the record, record_size bytes, to record. 0: there is none yet, or it is being written,
 * and what was copied means nothing; try again. */
static inline int perfalloc_map_read(const struct perfalloc_map *map,
                                     struct perfalloc_sample *record, size_t record_size) {
        uint64_t sequence = __atomic_load_n(&map->sequence, __ATOMIC_ACQUIRE);

        if (sequence == 0 || sequence % 2 != 0)
                return 0;
        memcpy((void *) record, (const void *) (map + 1), record_size);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return __atomic_load_n(&map->sequence, __ATOMIC_RELAXED) == sequence;
}

#ifdef __cplusplus
#define PERFALLOC_STATIC_ASSERT static_assert
#else
#define PERFALLOC_STATIC_ASSERT _Static_assert
#endif
PERFALLOC_STATIC_ASSERT(sizeof(struct perfalloc_reading) == 5 * 8, "a reading has five words");
PERFALLOC_STATIC_ASSERT(sizeof(struct perfalloc_sample) == 4 * 8, "four words come before them");
PERFALLOC_STATIC_ASSERT(sizeof(struct perfalloc_map) == 2 * 8, "two words come before a record");
#undef PERFALLOC_STATIC_ASSERT

#endif
