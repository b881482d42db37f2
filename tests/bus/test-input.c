/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bad input is refused with the right error, which names the fault, and nothing is half done. */

#include "bus-util.h"

#include <fcntl.h>
#include <gio/gio.h>

#define INVALID SD_BUS_ERROR_INVALID_ARGS

enum { MEGABYTE = 1 << 20 };

typedef struct Fixture {
        Client *root, *alice;
        unsigned descriptors, holds, counters;
} Fixture;

static void fixture_set_up(Fixture *f, const void *data) {
        f->root = client_new("root");
        f->alice = client_new("alice");
        f->holds = holds_count(f->root);
        f->counters = client_count(f->root, "counter");
        f->descriptors = service_descriptors();
}

static void fixture_tear_down(Fixture *f, const void *data) {
        g_assert_cmpuint(holds_count(f->root), ==, f->holds);
        g_assert_cmpuint(client_count(f->root, "counter"), ==, f->counters);
        g_assert_cmpuint(service_descriptors(), ==, f->descriptors);
        client_free(f->alice);
        client_free(f->root);
}

/* The call is refused, with a text that contains the words and is not too long to read. */
static void refused(Client *c, const char *error, const char *words, const char *member,
                    const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, member);
        va_list ap;

        va_start(ap, types);
        g_assert_cmpint(sd_bus_message_appendv(m, types, ap), >=, 0);
        va_end(ap);
        client_refused_message(c, error, m);
        if (!strstr(c->refusal, words))
                g_error("%s: the refusal does not say '%s' but: %s", member, words, c->refusal);
        g_assert_cmpuint(strlen(c->refusal), <, 2048);
        for (const char *p = c->refusal; *p; p++)
                g_assert_false(g_ascii_iscntrl(*p));
}

static char *repeat(const char *text, size_t bytes) {
        GString *s = g_string_sized_new(bytes);

        while (s->len < bytes)
                g_string_append(s, text);
        return g_string_free(s, FALSE);
}

/* ---- options ---- */

static void test_unknown(Fixture *f, const void *data) {
        g_autofree char *key = repeat("k", MEGABYTE);

        refused(f->alice, INVALID, "no_such", "Hold", "sa{sv}", "r", 1, "no_such", "b", 1);
        refused(f->alice, INVALID, "no_such", "HoldUnattended", "sta{sv}", "r", UINT64_C(0), 1,
                "no_such", "b", 1);
        refused(f->alice, INVALID, "no_such", "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                "no_such", "b", 1);
        refused(f->alice, INVALID, "''", "Hold", "sa{sv}", "r", 1, "", "b", 1);
        refused(f->alice, INVALID, "kkkk", "Hold", "sa{sv}", "r", 1, key, "b", 1);
        /* known ones around it change nothing */
        refused(f->alice, INVALID, "no_such", "Hold", "sa{sv}", "r", 3, "mode", "s", "shared",
                "no_such", "s", "x", "counters", "u", 0);
}

static void test_types(Fixture *f, const void *data) {
        static const char *const keys[] = { "pmus", "cpus",      "counters",
                                            "mode", "wait_usec", "yield_usec" };
        static const char *const open_call_keys[] = { "scope",    "pid",    "pidfd",
                                                      "cpus",     "cgroup", "role",
                                                      "priority", "yield",  "name" };

        for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
                refused(f->alice, INVALID, keys[i], "Hold", "sa{sv}", "r", 1, keys[i], "b", 1);
        refused(f->alice, INVALID, "best_effort", "Hold", "sa{sv}", "r", 1, "best_effort", "s",
                "yes");
        refused(f->alice, INVALID, "counters", "Hold", "sa{sv}", "r", 1, "counters", "i", 1);
        refused(f->alice, INVALID, "wait_usec", "Hold", "sa{sv}", "r", 1, "wait_usec", "x",
                INT64_C(-1));
        refused(f->alice, INVALID, "mode", "Hold", "sa{sv}", "r", 1, "mode", "v", "s", "shared");
        refused(f->alice, INVALID, "pmus", "Hold", "sa{sv}", "r", 1, "pmus", "ao", 0);
        for (size_t i = 0; i < G_N_ELEMENTS(open_call_keys); i++)
                refused(f->alice, INVALID, open_call_keys[i], "OpenCounters", "asa{sv}", 1,
                        "cpu-clock", 1, open_call_keys[i], "b", 1);
        refused(f->alice, INVALID, "group", "OpenCounters", "asa{sv}", 1, "cpu-clock", 1, "group",
                "u", 1);
}

static void test_signatures(Fixture *f, const void *data) {
        refused(f->alice, INVALID, "", "Hold", "s", "r");
        refused(f->alice, INVALID, "", "Hold", "sa{ss}", "r", 0);
        refused(f->alice, INVALID, "", "HoldUnattended", "sua{sv}", "r", 0, 0);
        refused(f->alice, INVALID, "", "OpenCounters", "sa{sv}", "cpu-clock", 0);
        refused(f->alice, INVALID, "", "ReadCounters", "as", 0);
}

static void test_twice(Fixture *f, const void *data) {
        refused(f->alice, INVALID, "mode", "Hold", "sa{sv}", "r", 2, "mode", "s", "shared", "mode",
                "s", "shared");
        refused(f->alice, INVALID, "pmus", "Hold", "sa{sv}", "r", 2, "pmus", "as", 1, "software",
                "pmus", "as", 1, "breakpoint");
        refused(f->alice, INVALID, "role", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "role",
                "s", "monitor", "role", "s", "foreground");
}

static void test_words(Fixture *f, const void *data) {
        static const char *const keys[] = { "scope", "role" };

        refused(f->alice, INVALID, "mode", "Hold", "sa{sv}", "r", 1, "mode", "s", "both");
        refused(f->alice, INVALID, "mode", "Hold", "sa{sv}", "r", 1, "mode", "s", "");
        refused(f->alice, INVALID, "mode", "Hold", "sa{sv}", "r", 1, "mode", "s", "Shared");
        refused(f->alice, INVALID, "mode", "Hold", "sa{sv}", "r", 1, "mode", "s", "\033[31m\n");
        for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
                refused(f->alice, INVALID, keys[i], "OpenCounters", "asa{sv}", 1, "cpu-clock", 1,
                        keys[i], "s", "everything");
        refused(f->alice, INVALID, "yield", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "role",
                "s", "monitor", "yield", "s", "sometimes");
}

static void test_combinations(Fixture *f, const void *data) {
        refused(f->alice, INVALID, "cpus", "OpenCounters", "asa{sv}", 1, "cpu-clock", 1, "cpus",
                "s", "0");
        refused(f->alice, INVALID, "pid", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope",
                "s", "cpu", "pid", "u", 1);
        refused(f->alice, INVALID, "pidfd", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "pid",
                "u", 1, "pidfd", "h", 0);
        refused(f->alice, INVALID, "cgroup", "OpenCounters", "asa{sv}", 1, "cpu-clock", 1, "scope",
                "s", "cgroup");
        refused(f->alice, INVALID, "priority", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2,
                "scope", "s", "cpu", "priority", "u", 1);
        refused(f->alice, INVALID, "yield", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope",
                "s", "cpu", "yield", "s", "always");
}

/* ---- CPUs and PMUs ---- */

static void test_cpus(Fixture *f, const void *data) {
        static const char *const lists[] = { "8191",   "99999999999999999999",
                                             "0-8191", "",
                                             "x",      "1-0",
                                             "-1",     "0,,0",
                                             "0-",     ",",
                                             " ",      "0;1",
                                             "0x0" };
        g_autofree char *number = g_strdup_printf("%u", n_cpus());

        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
                refused(f->alice, INVALID, "", "Hold", "sa{sv}", "r", 1, "cpus", "s", lists[i]);
                refused(f->alice, INVALID, "", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2,
                        "scope", "s", "cpu", "cpus", "s", lists[i]);
        }
        refused(f->alice, INVALID, number, "Hold", "sa{sv}", "r", 1, "cpus", "s", number);
}

static void test_long_cpus(Fixture *f, const void *data) {
        g_autofree char *list = repeat("0,", MEGABYTE), *digits = repeat("0", MEGABYTE);

        list[MEGABYTE - 1] = '\0';
        refused(f->alice, INVALID, "CPU", "Hold", "sa{sv}", "r", 1, "cpus", "s", list);
        refused(f->alice, INVALID, "CPU", "Hold", "sa{sv}", "r", 1, "cpus", "s", digits);
        refused(f->alice, INVALID, "CPU", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope",
                "s", "cpu", "cpus", "s", list);
}

static void test_pmus(Fixture *f, const void *data) {
        g_autofree char *name = repeat("p", MEGABYTE);

        refused(f->alice, INVALID, "no_such", "Hold", "sa{sv}", "r", 1, "pmus", "as", 1, "no_such");
        refused(f->alice, INVALID, "no_such", "Hold", "sa{sv}", "r", 1, "pmus", "as", 2,
                "breakpoint", "no_such");
        refused(f->alice, INVALID, "pmus", "Hold", "sa{sv}", "r", 1, "pmus", "as", 0);
        refused(f->alice, INVALID, "pmus", "Hold", "sa{sv}", "r", 1, "pmus", "as", 1, "");
        refused(f->alice, INVALID, "pmus", "Hold", "sa{sv}", "r", 1, "pmus", "as", 1,
                "../software");
        refused(f->alice, INVALID, "pmus", "Hold", "sa{sv}", "r", 1, "pmus", "as", 1, name);
}

static void test_numbers(Fixture *f, const void *data) {
        refused(f->alice, INVALID, "counters", "Hold", "sa{sv}", "r", 2, BREAKPOINTS, "counters",
                "u", UINT32_MAX);
        refused(f->alice, PERFALLOC_ERROR_INVALID_PROCESS, "pid", "OpenCounters", "asa{sv}", 1,
                "cpu-clock", 1, "pid", "u", UINT32_MAX);
        refused(f->alice, PERFALLOC_ERROR_INVALID_PROCESS, "pid", "OpenCounters", "asa{sv}", 1,
                "cpu-clock", 1, "pid", "u", 0);
}

/* ---- texts ---- */

static void test_reason(Fixture *f, const void *data) {
        static const char *const texts[] = { "a\nb", "\033[31mred", "\t", "a\177", "\001" };
        g_autofree char *text = repeat("reason ", MEGABYTE), *exact = repeat("r", 1025);

        for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
                refused(f->alice, INVALID, "reason", "Hold", "sa{sv}", texts[i], 0);
        refused(f->alice, INVALID, "reason", "Hold", "sa{sv}", text, 0);
        refused(f->alice, INVALID, "reason", "HoldUnattended", "sta{sv}", text, UINT64_C(0), 0);
        refused(f->alice, INVALID, "reason", "Hold", "sa{sv}", exact, 0);
}

static void test_names(Fixture *f, const void *data) {
        g_autofree char *name = repeat("n", MEGABYTE);

        refused(f->alice, INVALID, "name", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope",
                "s", "cpu", "name", "s", name);
        refused(f->alice, INVALID, "name", "OpenCounters", "asa{sv}", 1, "cpu-clock", 2, "scope",
                "s", "cpu", "name", "s", "a\nb");
}

/* ---- events ---- */

static void refused_event(Fixture *f, const char *error, const char *event) {
        refused(f->alice, error, "", "OpenCounters", "asa{sv}", 1, event, 1, "scope", "s", "cpu");
        client_refused(f->alice, error, MANAGER, "EncodeEvent", "s", event);
}

static void test_events(Fixture *f, const void *data) {
        static const struct {
                const char *event, *error;
        } events[] = {
                { "", PERFALLOC_ERROR_INVALID_EVENT },
                { "no-such-event", PERFALLOC_ERROR_NO_SUCH_EVENT },
                { "no_such_pmu/x/", PERFALLOC_ERROR_NO_SUCH_EVENT },
                { "msr/no_such/", PERFALLOC_ERROR_NO_SUCH_EVENT },
                { "../../etc/passwd", PERFALLOC_ERROR_NO_SUCH_EVENT },
                { "cpu-clock:zz", PERFALLOC_ERROR_NO_SUCH_EVENT },
                { "mem:", PERFALLOC_ERROR_INVALID_EVENT },
                { "mem:zz/8:w", PERFALLOC_ERROR_INVALID_EVENT },
                { "mem:0x1000/9:w", PERFALLOC_ERROR_INVALID_EVENT },
                { "mem:0x1000/0:w", PERFALLOC_ERROR_INVALID_EVENT },
                { "mem:0x1000/8:q", PERFALLOC_ERROR_INVALID_EVENT },
                { "mem:0x11111111111111111/8:w", PERFALLOC_ERROR_INVALID_EVENT },
                { "mem:0xffffffffffffffff/8:w", PERFALLOC_ERROR_BAD_ADDRESS },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                refused_event(f, events[i].error, events[i].event);
}

static void test_long_event(Fixture *f, const void *data) {
        g_autofree char *event = repeat("e", MEGABYTE), *address = repeat("mem:0", MEGABYTE),
                        *terms = repeat("msr/tsc/", MEGABYTE);

        refused_event(f, PERFALLOC_ERROR_INVALID_EVENT, event);
        refused_event(f, PERFALLOC_ERROR_INVALID_EVENT, address);
        refused_event(f, PERFALLOC_ERROR_INVALID_EVENT, terms);
}

static void open_many(Fixture *f, size_t n, const char *error) {
        g_autoptr(sd_bus_message) m = client_message(f->root, MANAGER, "OpenCounters");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (size_t i = 0; i < n; i++)
                g_assert_cmpint(sd_bus_message_append(m, "s", "cpu-clock"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 1, "scope", "s", "cpu"), >=, 0);
        client_refused_message(f->root, error, m);
}

static void test_number_of_events(Fixture *f, const void *data) {
        open_many(f, 0, INVALID);
        open_many(f, 1025, SD_BUS_ERROR_LIMITS_EXCEEDED);
        open_many(f, 10000, SD_BUS_ERROR_LIMITS_EXCEEDED);
}

/* ---- descriptors ---- */

static void test_descriptors(Fixture *f, const void *data) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC),
                            dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        refused(f->alice, PERFALLOC_ERROR_BAD_DESCRIPTOR, "", "OpenCounters", "asa{sv}", 1,
                "cpu-clock", 1, "pidfd", "h", null);
        refused(f->alice, PERFALLOC_ERROR_BAD_DESCRIPTOR, "", "OpenCounters", "asa{sv}", 1,
                "cpu-clock", 2, "scope", "s", "cgroup", "cgroup", "h", dir);
        refused(f->alice, PERFALLOC_ERROR_BAD_DESCRIPTOR, "", "OpenCounters", "asa{sv}", 1,
                "cpu-clock", 2, "scope", "s", "cgroup", "cgroup", "h", null);
}

/* ---- paths ---- */

static void test_paths(Fixture *f, const void *data) {
        static const char *const numbers[] = {
                "0",
                "01",
                "1_",
                "18446744073709551615",
                "18446744073709551616",
                "99999999999999999999999999999999",
                "x",
                "1/2",
                "_31",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
                g_autofree char *hold =
                        g_strconcat(PERFALLOC_OBJECT_PATH "/hold/", numbers[i], NULL);
                g_autofree char *counter =
                        g_strconcat(PERFALLOC_OBJECT_PATH "/counter/", numbers[i], NULL);

                client_refused(f->alice, SD_BUS_ERROR_UNKNOWN_OBJECT, hold, HOLD, "Wait", NULL);
                client_refused(f->alice, SD_BUS_ERROR_UNKNOWN_OBJECT, counter, COUNTER, "Read",
                               NULL);
                client_refused(f->alice, SD_BUS_ERROR_UNKNOWN_OBJECT, MANAGER, "ReadCounters", "ao",
                               1, counter);
        }
        client_refused(f->alice, SD_BUS_ERROR_UNKNOWN_OBJECT, PERFALLOC_OBJECT_PATH "/pmu/no_such",
                       PERFALLOC_PMU_INTERFACE, "Probe", NULL);
        client_refused(f->alice, SD_BUS_ERROR_UNKNOWN_OBJECT, MANAGER, "ReadCounters", "ao", 1,
                       "/");
        client_refused(f->alice, SD_BUS_ERROR_UNKNOWN_OBJECT, MANAGER, "ReadCounters", "ao", 1,
                       PERFALLOC_OBJECT_PATH "/hold/1");
}

/* ---- patterns ---- */

/* No other client waits for one that asks for an expensive pattern. */
static void test_patterns(Fixture *f, const void *data) {
        static const char *const patterns[] = {
                "",
                "[",
                "\\",
                "**************************************************0",
                "*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*0",
                "*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*[!0]*0",
        };
        g_autofree char *longest = repeat("*a", MEGABYTE);

        for (size_t i = 0; i <= G_N_ELEMENTS(patterns); i++) {
                const char *pattern = i < G_N_ELEMENTS(patterns) ? patterns[i] : longest;
                uint64_t cookie = client_send(f->alice, MANAGER, "ListEvents", "s", pattern);
                gint64 asked = g_get_monotonic_time();

                g_assert_true(client_reads(f->root, MANAGER, "Version", PERFALLOC_VERSION));
                g_assert_cmpint(g_get_monotonic_time() - asked, <, 2 * G_USEC_PER_SEC);
                sd_bus_message_unref(client_receive(f->alice, cookie));
        }
}

#define ADD(name, test)                                                                            \
        g_test_add("/input/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

/* ---- descriptors ---- */

/* As alice: libsystemd sends no index of a descriptor that does not come with the message. */
static int play_wrong_index(int fd, const void *data) {
        g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(GVariant) reply = NULL;
        const char *const *call = data;
        g_autofree char *name = NULL;

        reply = g_dbus_connection_call_sync(bus, PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH,
                                            PERFALLOC_MANAGER_INTERFACE, call[0],
                                            g_variant_new_parsed(call[1]), NULL,
                                            G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
        name = error ? g_dbus_error_get_remote_error(error) : NULL;
        return g_strcmp0(name, INVALID) == 0 && strstr(error->message, call[2]) ? 0 : 1;
}

static void test_descriptor_indexes(Fixture *f, const void *data) {
        static const char *const calls[][3] = {
                { "Hold", "('mine', {'mode': <'shared'>, 'cgroup': <handle 3>})",
                  "option 'cgroup' refers to a descriptor" },
                { "Broker", "(handle 0, @a{sv} {})", "argument 1 refers to a descriptor" },
                { "HasSamplers", "('one', [handle 7])", "argument 2 refers to a descriptor" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
                g_autoptr(Actor) alice = actor_new("alice", play_wrong_index, calls[i]);

                g_test_message("%s", calls[i][0]);
                g_assert_cmpint(actor_join(alice), ==, 0);
        }
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("unknown-options-are-named", test_unknown);
        ADD("options-of-the-wrong-type-are-named", test_types);
        ADD("wrong-arguments-are-refused", test_signatures);
        ADD("options-given-twice-are-named", test_twice);
        ADD("words-that-mean-nothing-are-refused-by-option", test_words);
        ADD("options-that-do-not-go-together-are-named", test_combinations);
        ADD("cpus-that-do-not-exist-are-refused", test_cpus);
        ADD("a-megabyte-of-cpus-is-refused", test_long_cpus);
        ADD("pmus-that-do-not-exist-are-named", test_pmus);
        ADD("absurd-numbers-are-refused-by-option", test_numbers);
        ADD("reasons-are-short-and-printable", test_reason);
        ADD("names-are-short-and-printable", test_names);
        ADD("events-that-do-not-exist-are-refused", test_events);
        ADD("a-megabyte-of-event-is-refused", test_long_event);
        ADD("ten-thousand-events-are-refused", test_number_of_events);
        ADD("descriptors-of-something-else-are-refused", test_descriptors);
        ADD("descriptors-that-did-not-come-are-named", test_descriptor_indexes);
        ADD("paths-with-odd-numbers-are-unknown", test_paths);
        ADD("no-pattern-holds-up-others", test_patterns);
        return g_test_run();
}
