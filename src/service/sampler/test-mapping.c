/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a client can do with the memory of a sampler, and what it sees there. */

#include "service/sampler/mapping.h"

#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define N_READINGS 512
#define SIZE       PERFALLOC_SAMPLE_SIZE(N_READINGS)

typedef union Record {
        struct perfalloc_sample sample;
        uint8_t bytes[SIZE];
} Record;

typedef struct Stage {
        Mapping mapping;
        int fd, client;
        const struct perfalloc_map *seen; /* the client's */
        Record record;
} Stage;

static void stage_up(Stage *s, gconstpointer unused) {
        void *seen;

        g_assert_cmpint(mapping_new(&s->record.sample, SIZE, &s->mapping, &s->fd, &s->client), ==,
                        0);
        seen = mmap(NULL, PERFALLOC_MAP_SIZE(SIZE), PROT_READ, MAP_SHARED, s->client, 0);
        g_assert_true(seen != MAP_FAILED);
        s->seen = seen;
        s->record.sample.n_readings = N_READINGS;
}

static void stage_down(Stage *s, gconstpointer unused) {
        g_assert_cmpint(munmap((void *) s->seen, PERFALLOC_MAP_SIZE(SIZE)), ==, 0);
        mapping_done(&s->mapping);
        close_fd(s->fd);
        close_fd(s->client);
}

/* All that it says is this number. */
static void record_set(Record *r, uint64_t n) {
        r->sample.tick = n;
        for (size_t i = 0; i < N_READINGS; i++)
                r->sample.readings[i] = (struct perfalloc_reading){ n, n, n, n, n };
}

static void record_check(const Record *r) {
        for (size_t i = 0; i < N_READINGS; i++) {
                g_assert_cmpuint(r->sample.readings[i].value, ==, r->sample.tick);
                g_assert_cmpuint(r->sample.readings[i].quality, ==, r->sample.tick);
        }
}

static void test_whole_records(Stage *s, gconstpointer unused) {
        Record got;

        g_assert_false(perfalloc_map_read(s->seen, &got.sample, SIZE));
        for (uint64_t n = 1; n < 4; n++) {
                record_set(&s->record, n);
                mapping_publish(&s->mapping);
                record_set(&s->record, 100); /* the next one is being made */
                g_assert_true(perfalloc_map_read(s->seen, &got.sample, SIZE));
                g_assert_cmpuint(got.sample.tick, ==, n);
                g_assert_cmpuint(got.sample.n_readings, ==, N_READINGS);
                record_check(&got);
        }
        g_assert_cmpuint(s->seen->ended, ==, 0);
        mapping_end(&s->mapping);
        g_assert_cmpuint(s->seen->ended, ==, 1);
}

_Noreturn static void write_for_ever(Stage *s) {
        g_assert_cmpint(prctl(PR_SET_PDEATHSIG, SIGKILL), ==, 0);
        for (uint64_t n = 1;; n++) {
                record_set(&s->record, n);
                mapping_publish(&s->mapping);
        }
}

/* Read by this process, while another one writes as fast as it can. */
static void test_no_torn_record(Stage *s, gconstpointer unused) {
        pid_t writer = fork();
        unsigned n_read = 0;
        Record got;

        g_assert_cmpint(writer, >=, 0);
        if (writer == 0)
                write_for_ever(s);
        while (n_read < 20000)
                if (perfalloc_map_read(s->seen, &got.sample, SIZE)) {
                        record_check(&got);
                        n_read++;
                }
        g_assert_cmpint(kill(writer, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(writer, NULL, 0), ==, writer);
}

static void test_client_only_reads(Stage *s, gconstpointer unused) {
        size_t size = PERFALLOC_MAP_SIZE(SIZE);
        struct stat st;
        char c = 0;

        g_assert_true(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->client, 0) ==
                      MAP_FAILED);
        g_assert_cmpint(mprotect((void *) s->seen, size, PROT_READ | PROT_WRITE), <, 0);
        g_assert_cmpint(pwrite(s->client, &c, 1, 0), <, 0);
        g_assert_cmpint(ftruncate(s->client, 0), <, 0);
        g_assert_cmpint(fcntl(s->client, F_ADD_SEALS, F_SEAL_WRITE), <, 0);
        /* nobody else may open it again for writing */
        g_assert_cmpint(fstat(s->client, &st), ==, 0);
        g_assert_cmpint(st.st_mode & 07777, ==, 0600);
        /* not even who may write can take the memory away, or keep the service from writing */
        g_assert_cmpint(ftruncate(s->fd, 0), <, 0);
        g_assert_cmpint(ftruncate(s->fd, (off_t) size * 2), <, 0);
        g_assert_cmpint(fcntl(s->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), <, 0);
}

static void test_next_run(Stage *s, gconstpointer unused) {
        Record other = {}, got;
        Mapping next;

        record_set(&s->record, 1);
        mapping_publish(&s->mapping);
        record_set(&other, 2);
        g_assert_cmpint(mapping_open(s->fd, &other.sample, SIZE, &next), ==, 0);
        g_assert_true(perfalloc_map_read(s->seen, &got.sample, SIZE)); /* as it was */
        g_assert_cmpuint(got.sample.tick, ==, 1);
        mapping_publish(&next);
        g_assert_true(perfalloc_map_read(s->seen, &got.sample, SIZE));
        g_assert_cmpuint(got.sample.tick, ==, 2);
        mapping_done(&next);

        s->mapping.map->sequence++; /* killed while it wrote */
        g_assert_false(perfalloc_map_read(s->seen, &got.sample, SIZE));
        record_set(&other, 3);
        g_assert_cmpint(mapping_open(s->fd, &other.sample, SIZE, &next), ==, 0);
        g_assert_true(perfalloc_map_read(s->seen, &got.sample, SIZE));
        g_assert_cmpuint(got.sample.tick, ==, 3);
        record_check(&got);
        mapping_done(&next);
}

static void test_what_is_no_mapping(Stage *s, gconstpointer unused) {
        _cleanup_close_ int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        Mapping m;

        g_assert_cmpint(mapping_open(s->fd, &s->record.sample, SIZE - 8, &m), ==, -EBADMSG);
        g_assert_cmpint(mapping_open(s->fd, &s->record.sample, SIZE + 8, &m), ==, -EBADMSG);
        g_assert_cmpint(ftruncate(unsealed, (off_t) PERFALLOC_MAP_SIZE(SIZE)), ==, 0);
        g_assert_cmpint(mapping_open(unsealed, &s->record.sample, SIZE, &m), ==, -EBADMSG);
        g_assert_cmpint(mapping_open(STDIN_FILENO, &s->record.sample, SIZE, &m), ==, -EBADMSG);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add("/mapping/whole-records", Stage, NULL, stage_up, test_whole_records, stage_down);
        g_test_add("/mapping/no-torn-record", Stage, NULL, stage_up, test_no_torn_record,
                   stage_down);
        g_test_add("/mapping/client-only-reads", Stage, NULL, stage_up, test_client_only_reads,
                   stage_down);
        g_test_add("/mapping/next-run-goes-on", Stage, NULL, stage_up, test_next_run, stage_down);
        g_test_add("/mapping/what-is-none", Stage, NULL, stage_up, test_what_is_no_mapping,
                   stage_down);
        return g_test_run();
}
