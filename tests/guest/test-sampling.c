/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sampling by an ordinary user, to whom this kernel allows no event. */

#include "guest-util.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "event-util.h"

#define PAGES   8
#define PERIOD  500000
#define WORK    20000000
#define REFUSED 77

typedef struct Ring {
        struct perf_event_mmap_page *page;
        const char *data;
        uint64_t size, tail;
} Ring;

static Ring ring_map(int fd) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        char *map = mmap(NULL, (1 + PAGES) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (map == MAP_FAILED)
                g_error("mmap: %s", g_strerror(errno));
        return (Ring){ .page = (void *) map, .data = map + page, .size = PAGES * page };
}

typedef struct Sample {
        struct perf_event_header header;
        uint64_t ip;
        uint32_t pid, tid;
} Sample;

/* Record sizes are multiples of eight bytes, so the ring's end splits no word. */
static bool ring_next(Ring *r, Sample *ret) {
        uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), words[3];

        if (r->tail >= head)
                return false;
        for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
                words[i] = *(const uint64_t *) (r->data + (r->tail + 8 * i) % r->size);
        memcpy(ret, words, sizeof(*ret));
        r->tail += ret->header.size;
        __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
        return true;
}

/* QEMU raises no interrupt in time when an instructions event overflows. */
static PerfAttr sampling_attr(void) {
        return (PerfAttr){
                .type = PERF_TYPE_HARDWARE,
                .size = sizeof(PerfAttr),
                .config = PERF_COUNT_HW_CPU_CYCLES,
                .sample_period = PERIOD,
                .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
                .exclude_kernel = 1,
                .exclude_hv = 1,
                .disabled = 1,
        };
}

/* The user's process, which samples its own work. */
static int sample(int fd, const void *data) {
        g_autoptr(Client) alice = client_new("alice");
        PerfAttr attr = sampling_attr();
        unsigned n = 0, at_work = 0;
        uint64_t expected;
        Sample s;
        int event;
        Ring r;

        if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0 || errno != EACCES)
                return REFUSED;
        event = raw_open(alice, (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 0);
        r = ring_map(event);
        g_assert_cmpint(ioctl(event, PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        burn(WORK);
        g_assert_cmpint(ioctl(event, PERF_EVENT_IOC_DISABLE, 0), ==, 0);
        while (ring_next(&r, &s)) {
                if (s.header.type != PERF_RECORD_SAMPLE)
                        continue;
                n++;
                g_assert_cmpint((pid_t) s.pid, ==, getpid());
                at_work += s.ip >= (uintptr_t) burn && s.ip < (uintptr_t) burn + 64;
        }
        /* there are several cycles to an instruction */
        expected = raw_value(event) / PERIOD;
        g_assert_cmpuint(expected, >=, WORK / PERIOD);
        g_assert_cmpuint(n, <=, expected);
        g_assert_cmpuint(n, >=, expected * 9 / 10);
        g_assert_cmpuint(at_work, >=, n * 9 / 10);
        return 0;
}

static void test_sampling(void) {
        g_autoptr(Actor) user = actor_new("alice", sample, NULL);

        g_assert_cmpint(actor_join(user), ==, 0);
}

static int ask_for_kernel(int fd, const void *data) {
        g_autoptr(Client) bob = client_new("bob");
        PerfAttr attr = sampling_attr();

        attr.exclude_kernel = 0;
        raw_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "count-kernel",
                    (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 0);
        return 0;
}

static void test_kernel_is_out_of_reach(void) {
        g_autoptr(Actor) user = actor_new("bob", ask_for_kernel, NULL);

        g_assert_cmpint(actor_join(user), ==, 0);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/sampling/records-reach-a-user-s-ring-buffer", test_sampling);
        g_test_add_func("/sampling/the-kernel-stays-out-of-reach", test_kernel_is_out_of_reach);
        return g_test_run();
}
