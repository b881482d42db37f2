/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rubbish-value.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define DESCRIPTORS_MAX 8u /* per message: beyond 16 the bus disconnects the sender */

/* The options of the contract, and the methods that have them. */
static const struct {
        const char *key, *type, *methods;
} options[] = {
        { "pmus", "as", "Hold HoldUnattended RegisterMonitor" },
        { "cpus", "s", "Hold HoldUnattended RegisterMonitor OpenCounters" },
        { "counters", "u", "Hold HoldUnattended" },
        { "mode", "s", "Hold HoldUnattended" },
        { "wait_usec", "t", "Hold HoldUnattended" },
        { "yield_usec", "t", "Hold HoldUnattended" },
        { "best_effort", "b", "Hold HoldUnattended" },
        { "scope", "s", "OpenCounters" },
        { "pid", "u", "OpenCounters" },
        { "pidfd", "h", "OpenCounters AttachProcess OpenEvent OpenEvents" },
        { "procfd", "h", "OpenCounters AttachProcess OpenEvent OpenEvents" },
        { "attach", "b", "OpenCounters" },
        { "descendants", "b", "OpenCounters AttachProcess OpenEvents" },
        { "cgroup", "h", "OpenCounters OpenEvent" },
        { "cpu", "u", "OpenEvents" },
        { "group", "b", "OpenCounters" },
        { "group", "h", "OpenEvent" },
        { "pinned", "b", "OpenCounters" },
        { "role", "s", "OpenCounters" },
        { "priority", "u", "OpenCounters RegisterMonitor" },
        { "yield", "s", "OpenCounters" },
        { "name", "s", "OpenCounters" },
        { "start", "b", "OpenCounters" },
        { "persistent", "b", "OpenCounters" },
        { "start_usec", "t", "CreateSampler" },
        { "tag", "t", "CreateSampler" },
        { "signal", "b", "CreateSampler" },
        { "map", "b", "CreateSampler" },
        { "allow", "as", "Broker" },
};

static const char *const words[] = {
        "",
        "a word",
        "shared",
        "exclusive",
        "process",
        "cpu",
        "cgroup",
        "foreground",
        "monitor",
        "always",
        "never",
        "breakpoint",
        "software",
        "tracepoint",
        "msr",
        "0",
        "0-1",
        "1-0",
        "0-8191",
        "0-8192",
        "0,,1",
        "cpu-clock",
        "task-clock",
        "page-faults:u",
        "cs",
        "msr/tsc/",
        "mem:0x1000/8:w",
        "mem:0x1001/8:rw",
        "mem:-1/9:x",
        "mem:0xffffffff80000000/4:x",
        "software/config=0/",
        "software/config=99999999999999999999/",
        "cpu/event=0x3c,umask=0/u",
        "uprobe/config=1/",
        "cycles:ukhp",
        "skl::UOPS_RETIRED:ALL",
        "*",
        "[!a-z]?*\\",
        "**************x",
        "%s%n%s%n",
        "../../etc/passwd",
        "\t\n\033[31m",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
        "count-own",
        "sample-own",
        "org.perfalloc1.manage",
};

/* Valid or plausible values for an argument or option of that name. */
static const struct {
        const char *name, *values;
} hints[] = {
        { "pmus", "breakpoint breakpoint software msr" },
        { "cpus", "0 1 0-1" },
        { "mode", "shared exclusive" },
        { "scope", "process cpu" },
        { "role", "foreground monitor" },
        { "yield", "always exclusive" },
        { "events", "cpu-clock task-clock page-faults:u msr/tsc/ mem:0x1000/8:w mem:0x2000/4:rw" },
        { "event", "cpu-clock msr/tsc/ mem:0x1000/8:w" },
        { "pattern", "* *tsc* cpu-*" },
};

static const uint64_t numbers[] = {
        0,
        1,
        2,
        3,
        4,
        15,
        64,
        1000,
        100000,
        1000000,
        0x7fff,
        0x10000,
        INT32_MAX,
        1u << 31,
        UINT32_MAX,
        UINT32_MAX - 1,
        UINT64_C(1) << 32,
        INT64_MAX,
        UINT64_C(1) << 63,
        UINT64_MAX,
        UINT64_MAX - 999,
};

static const char *const types[] = { "b", "y", "u", "i",  "t",  "x",     "d",    "s",     "o",
                                     "g", "h", "v", "as", "ao", "a{sv}", "(us)", "a(ss)", "ay" };

unsigned rubbish_below(size_t n) {
        return (unsigned) g_test_rand_int_range(0, (gint32) n);
}

bool rubbish_chance(unsigned n) {
        return rubbish_below(n) == 0;
}

static uint64_t any_bits(void) {
        return (uint64_t) (uint32_t) g_test_rand_int() << 32 | (uint32_t) g_test_rand_int();
}

/* A small number, mostly. */
static unsigned several(void) {
        return rubbish_chance(100) ? rubbish_below(1500) : rubbish_below(4);
}

void rubbish_check(int r) {
        if (r < 0)
                g_error("no message: %s", g_strerror(-r));
}

static uint64_t any_number(const Rubbish *r) {
        if (r->careful && !strstr(r->name, "pid"))
                return strstr(r->name, "usec") ? rubbish_below(50000) : rubbish_below(5);
        switch (rubbish_below(4)) {
        case 0:
                return (uint64_t) g_array_index(r->pids, pid_t, rubbish_below(r->pids->len));
        case 1:
                return any_bits() >> rubbish_below(64);
        default:
                return numbers[rubbish_below(G_N_ELEMENTS(numbers))];
        }
}

static const char *any_of(const GPtrArray *memory) {
        return memory->len > 0 ? memory->pdata[rubbish_below(memory->len)] : "";
}

/* NULL where there is no hint. */
static char *hinted(const Rubbish *r) {
        for (size_t i = 0; i < G_N_ELEMENTS(hints); i++)
                if (strcmp(hints[i].name, r->name) == 0) {
                        g_auto(GStrv) values = g_strsplit(hints[i].values, " ", -1);

                        return g_strdup(values[rubbish_below(g_strv_length(values))]);
                }
        return NULL;
}

static char *long_word(Rubbish *r) {
        size_t n = rubbish_chance(20) ? 1u << 20 : rubbish_below(2000);

        if (r->n_bytes + n > r->bytes_max)
                n = 0;
        r->n_bytes += n;
        return g_strnfill(n, (char) (1 + rubbish_below(127)));
}

static char *any_word_at_all(Rubbish *r) {
        g_autofree char *hint = r->careful && !rubbish_chance(30) ? hinted(r) : NULL;

        if (hint)
                return g_steal_pointer(&hint);
        switch (rubbish_below(8)) {
        case 0:
                return g_strdup(any_of(r->words));
        case 1:
        case 2:
                return g_strdup(any_of(r->names));
        case 3:
                return long_word(r);
        default:
                return g_strdup(words[rubbish_below(G_N_ELEMENTS(words))]);
        }
}

static char *any_word(Rubbish *r) {
        g_autofree char *word = any_word_at_all(r);

        if (r->soft && strstr(word, "mem:"))
                return g_strdup("page-faults");
        if (r->soft && strstr(word, "breakpoint"))
                return g_strdup("software");
        return g_steal_pointer(&word);
}

static bool path_is(const char *path, const char *kind) {
        g_autofree char *prefix = g_strdup_printf(PERFALLOC_OBJECT_PATH "/%s/", kind);

        return g_str_has_prefix(path, prefix);
}

static char *any_path(const Rubbish *r, const char *kind) {
        static const char *const odd[] = { "/",
                                           PERFALLOC_OBJECT_PATH,
                                           PERFALLOC_OBJECT_PATH "/hold",
                                           PERFALLOC_OBJECT_PATH "/hold/0",
                                           PERFALLOC_OBJECT_PATH "/hold/18446744073709551616",
                                           PERFALLOC_OBJECT_PATH "/counter/01",
                                           PERFALLOC_OBJECT_PATH "/counter/x",
                                           PERFALLOC_OBJECT_PATH "/pmu/_2f",
                                           PERFALLOC_OBJECT_PATH "/pmu/_",
                                           "/org/freedesktop/DBus" };

        if (rubbish_chance(r->careful ? 100 : 10))
                return g_strdup(odd[rubbish_below(G_N_ELEMENTS(odd))]);
        if (strcmp(kind, "manager") == 0)
                return g_strdup(PERFALLOC_OBJECT_PATH);
        if (strcmp(kind, "pmu") == 0 && rubbish_chance(2))
                return g_strdup(PERFALLOC_OBJECT_PATH "/pmu/breakpoint");
        for (unsigned tries = 0; tries < 64 && r->paths->len > 0; tries++) {
                const char *path = any_of(r->paths);

                if (path_is(path, kind) || rubbish_chance(40))
                        return g_strdup(path);
        }
        return g_strdup_printf(PERFALLOC_OBJECT_PATH "/%s/%u", *kind ? kind : "hold",
                               rubbish_below(50));
}

char *rubbish_path(const Rubbish *r, const char *kind) {
        g_autofree char *path = any_path(r, kind);

        if (r->soft && strstr(path, "breakpoint"))
                return g_strdup(PERFALLOC_OBJECT_PATH "/pmu/software");
        return g_steal_pointer(&path);
}

/* Of a pair, the first; the other one is closed. */
static int half(int r, int fds[2]) {
        if (r < 0)
                return -1;
        (void) close(fds[0]);
        return fds[1];
}

static int any_descriptor(const Rubbish *r) {
        int fds[2];

        if (r->descriptors->len > 0 && rubbish_chance(3))
                return fcntl(g_array_index(r->descriptors, int, rubbish_below(r->descriptors->len)),
                             F_DUPFD_CLOEXEC, 3);
        switch (rubbish_below(10)) {
        case 0:
                return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        case 1:
                return open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        case 2:
                return open("/etc/passwd", O_PATH | O_CLOEXEC);
        case 3:
                return half(pipe2(fds, O_CLOEXEC), fds);
        case 4:
                return half(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), fds);
        case 5:
                return eventfd(0, EFD_CLOEXEC);
        case 6:
                return memfd_create("rubbish", MFD_CLOEXEC);
        case 7:
                return r->soft ? -1 : breakpoint_open(0, -1);
        default:
                return (int) syscall(SYS_pidfd_open, getpid(), 0);
        }
}

static void append_descriptor(Rubbish *r, sd_bus_message *m) {
        _cleanup_close_ int fd = any_descriptor(r);

        if (fd < 0)
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        rubbish_check(sd_bus_message_append_basic(m, 'h', &fd));
        r->n_descriptors++;
}

/* A struct perf_event_attr with a few flipped bits. */
static void append_attr(const Rubbish *r, sd_bus_message *m) {
        union {
                struct perf_event_attr attr;
                unsigned char bytes[256];
        } u = { .attr = { .type = rubbish_below(r->soft ? PERF_TYPE_BREAKPOINT : 7),
                          .size = sizeof(u.attr),
                          .config = rubbish_below(12) } };
        size_t n = rubbish_chance(4) ? rubbish_below(sizeof(u) + 1) : sizeof(u.attr);

        u.attr.disabled = rubbish_below(2);
        u.attr.exclude_kernel = u.attr.exclude_hv = !rubbish_chance(4);
        if (rubbish_chance(8))
                u.attr.size = (uint32_t) any_number(r);
        if (rubbish_chance(8))
                u.attr.config = any_bits();
        for (unsigned i = rubbish_below(4); i > 0; i--)
                u.bytes[rubbish_below(n + 1) % sizeof(u)] ^=
                        (unsigned char) (1u << rubbish_below(8));
        rubbish_check(sd_bus_message_append_array(m, 'y', u.bytes, n));
}

static void append_value(Rubbish *r, sd_bus_message *m, const GVariantType *type);

static void append_variant(Rubbish *r, sd_bus_message *m, const char *type) {
        rubbish_check(sd_bus_message_open_container(m, 'v', type));
        append_value(r, m, G_VARIANT_TYPE(type));
        rubbish_check(sd_bus_message_close_container(m));
}

static void append_option(Rubbish *r, sd_bus_message *m) {
        size_t i = rubbish_below(G_N_ELEMENTS(options));
        g_autofree char *word = any_word(r);
        const char *key, *type;

        for (unsigned tries = 0; tries < 100 && !strstr(options[i].methods, r->member); tries++)
                i = rubbish_below(G_N_ELEMENTS(options));
        key = !r->careful && rubbish_chance(10) ? word : options[i].key;
        type = !r->careful && rubbish_chance(10) ? types[rubbish_below(G_N_ELEMENTS(types))]
                                                 : options[i].type;
        r->name = options[i].key;
        if (*type == 'h' && r->n_descriptors >= DESCRIPTORS_MAX)
                type = "u";
        rubbish_check(sd_bus_message_open_container(m, 'e', "sv"));
        rubbish_check(sd_bus_message_append_basic(m, 's', key));
        append_variant(r, m, type);
        rubbish_check(sd_bus_message_close_container(m));
}

static void append_array(Rubbish *r, sd_bus_message *m, const GVariantType *type) {
        g_autofree char *element = g_variant_type_dup_string(g_variant_type_element(type));

        if (strcmp(element, "y") == 0) {
                append_attr(r, m);
                return;
        }
        rubbish_check(sd_bus_message_open_container(m, 'a', element));
        for (unsigned i = several(); i > 0; i--)
                if (strcmp(element, "{sv}") == 0)
                        append_option(r, m);
                else
                        append_value(r, m, g_variant_type_element(type));
        rubbish_check(sd_bus_message_close_container(m));
}

static void append_struct(Rubbish *r, sd_bus_message *m, const GVariantType *type) {
        g_autofree char *whole = g_variant_type_dup_string(type);
        g_autofree char *contents = g_strndup(whole + 1, strlen(whole) - 2);

        rubbish_check(sd_bus_message_open_container(m, 'r', contents));
        for (const GVariantType *t = g_variant_type_first(type); t; t = g_variant_type_next(t))
                append_value(r, m, t);
        rubbish_check(sd_bus_message_close_container(m));
}

static void append_value(Rubbish *r, sd_bus_message *m, const GVariantType *type) {
        char c = *g_variant_type_peek_string(type);
        uint64_t number = any_number(r);
        bool counters = g_str_has_prefix(r->name, "counter");
        g_autofree char *text = c == 's'   ? any_word(r)
                                : c == 'o' ? rubbish_path(r, counters ? "counter" : "hold")
                                           : NULL;

        switch (c) {
        case 'a':
                append_array(r, m, type);
                break;
        case '(':
                append_struct(r, m, type);
                break;
        case 'v':
                append_variant(r, m, types[rubbish_below(8)]);
                break;
        case 'h':
                append_descriptor(r, m);
                break;
        default:
                rubbish_check(sd_bus_message_append_basic(m, c,
                                                          text
                                                                  ?: c == 'g' ? (void *) "a{sv}"
                                                                              : &number));
        }
}

void rubbish_append(Rubbish *r, sd_bus_message *m, const char *type, const char *name) {
        r->name = name;
        append_value(r, m, G_VARIANT_TYPE(type));
}

void rubbish_append_any(Rubbish *r, sd_bus_message *m) {
        rubbish_append(r, m, types[rubbish_below(G_N_ELEMENTS(types))], "");
}
