/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What an earlier run of the service has stored: records, their log, and groups of counters. The
 * input is used as each of the three.
 */

#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "core/pack.h"
#include "perf/group/group-save.h"
#include "service/store/statelog.h"

#define HEADER_SIZE 4096u
#define DEPTH_MAX   8u
#define FDS_MAX     4u

static PmuTable pmus;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        promise(pmu_table_load(&pmus, "/sys") >= 0);
        return 0;
}

/* ---- a record ---- */

typedef struct Thing {
        bool flag;
        uint32_t small;
        uint64_t large;
        char *text;
} Thing;

static const PackField thing_fields[] = {
        PACK_FIELD(PACK_BOOL, "flag", Thing, flag),
        PACK_FIELD(PACK_U32, "small", Thing, small),
        PACK_FIELD(PACK_U64, "large", Thing, large),
        PACK_FIELD(PACK_STRING, "text", Thing, text),
};

static bool is_within(const Unpack *u, const void *data, size_t n) {
        const uint8_t *begin = data;

        return begin >= u->data && n <= u->n && begin + n <= u->data + u->n;
}

static void record_look(const Unpack *u, unsigned depth) {
        const char *text = unpack_string(u, "text");
        const void *bytes;
        Thing t = {};
        Unpack element;
        size_t place = 0, n;
        int r = unpack_struct(u, thing_fields, ELEMENTSOF(thing_fields), &t);

        promise(r == 0 || r == -EBADMSG);
        promise(!text || is_within(u, text, strlen(text) + 1));
        if (r == 0 && text)
                promise(t.text);
        (void) unpack_u64(u, "large", 7);
        bytes = unpack_bytes(u, "bytes", &n);
        promise(!bytes || is_within(u, bytes, n));
        while (unpack_next(u, "list", &place, &element)) {
                promise(is_within(u, element.data, element.n));
                promise(unpack_is_valid(&element)); /* a valid record is valid in all parts */
                if (depth < DEPTH_MAX)
                        record_look(&element, depth + 1);
        }
        free(t.text);
}

/* ---- a group of counters ---- */

/* With descriptors that are none of perf's. */
static void group_look_with(const Unpack *u, size_t n_fds) {
        int fds[FDS_MAX];
        Group *group = NULL;
        int r;

        for (size_t i = 0; i < n_fds; i++) {
                fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
                promise(fds[i] >= 0);
        }
        r = group_load(u, u, &pmus, fds, n_fds, &group);
        promise(r <= 0 && (r == 0) == (group != NULL));
        group_free(group);
        for (size_t i = 0; i < n_fds; i++)
                close_fd(fds[i]);
}

static void group_look(const Unpack *u) {
        for (size_t n = 0; n <= FDS_MAX; n++)
                group_look_with(u, n);
}

/* ---- the log ---- */

/* The file's own header, with numbers that are not all far off. */
typedef struct Header {
        char magic[8];
        uint32_t format, generation, complete, active;
        uint64_t used[2];
} Header;

static int file_make(const uint8_t *data, size_t size) {
        int fd = memfd_create("state", MFD_CLOEXEC);
        Header h = { .magic = "perfstat" };

        if (size >= 8)
                h = (Header){ .magic = "perfstat",
                              .format = data[0] % 3,
                              .generation = data[1],
                              .complete = data[2],
                              .active = data[3] % 3,
                              .used = { 8u * data[4],
                                        data[5] == 255 ? UINT64_MAX : 8u * data[5] } };
        promise(fd >= 0 && ftruncate(fd, HEADER_SIZE + 2 * (off_t) STATELOG_AREA_MAX) == 0);
        promise(pwrite(fd, &h, sizeof(h), 0) == sizeof(h));
        for (int half = 0; half < 2 && size > 8; half++)
                promise(pwrite(fd, data + 8, size - 8,
                               HEADER_SIZE + half * (off_t) STATELOG_AREA_MAX) ==
                        (ssize_t) size - 8);
        return fd;
}

static void log_look(const uint8_t *data, size_t size) {
        const StateEntry *e;
        uint64_t place = 0, before = 0;
        int fd = file_make(data, size);
        StateLog *log;
        int r = statelog_open(fd, &log);

        promise(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT);
        if (r < 0) {
                close_fd(fd);
                return;
        }
        (void) statelog_generation(log);
        (void) statelog_is_complete(log);
        while ((e = statelog_next(log, &place))) {
                Unpack state = { e->state, e->n_state };

                promise(place > before && !e->gone);
                promise(e->size >= sizeof(*e) + e->n_state && e->size % 8 == 0);
                before = place;
                if (unpack_is_valid(&state))
                        record_look(&state, 0);
        }
        statelog_free(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Unpack u = { data, size };

        if (unpack_is_valid(&u)) {
                record_look(&u, 0);
                group_look(&u);
        }
        log_look(data, size);
        return 0;
}
