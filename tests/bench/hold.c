/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A hold, from call to HoldGranted with 6 CPU-wide monitors giving way, by a user and by root;
 * beside it PCP's lock with pmdaperfevent giving way, and power-profiles-daemon's HoldProfile,
 * which frees nothing. Run in tests/rig/fast by tests/bench/fast.sh:
 *
 *         bench-hold [PID-OF-PMDAPERFEVENT PERFLOCK]
 */

#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define MONITORS   6u
#define HOLDS      5u /* in turns with one of PCP's, which takes a tenth of a second */
#define EVENTS_MAX 2048u

#define PROFILES "net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "net.hadess.PowerProfiles"

#define POLKIT                                                                                     \
        "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",                     \
                "org.freedesktop.PolicyKit1.Authority"

#define PCP_WAIT_USEC 5000u
#define PCP_LIMIT     1000u /* waits */

/* ---- ours ---- */

static sd_bus_message *next_message(sd_bus *bus) {
        sd_bus_message *m = NULL;
        int r;

        for (;;) {
                r = sd_bus_process(bus, &m);
                check(r, "the bus");
                if (m)
                        return m;
                if (r == 0)
                        check(sd_bus_wait(bus, UINT64_MAX), "the bus");
        }
}

static void watch_grants(sd_bus *bus) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        check(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                 "org.freedesktop.DBus", "AddMatch", &error, NULL, "s",
                                 "type='signal',sender='" SERVICE "',member='HoldGranted'"),
              "AddMatch");
}

/* Until HoldGranted, which comes after the reply. */
static sd_bus_message *hold_until_granted(sd_bus *bus, double *ret_usec) {
        sd_bus_message *m = hold_message(bus, "software"), *reply = NULL;
        uint64_t start = clock_nsec(CLOCK_MONOTONIC), cookie, replied;

        check(sd_bus_send(bus, m, &cookie), "Hold");
        sd_bus_message_unref(m);
        for (;;) {
                m = next_message(bus);
                if (sd_bus_message_is_method_error(m, NULL))
                        check(-sd_bus_message_get_errno(m),
                              sd_bus_message_get_error(m)->message ?: "Hold");
                if (sd_bus_message_is_signal(m, NULL, "HoldGranted"))
                        break;
                if (sd_bus_message_get_reply_cookie(m, &replied) >= 0 && replied == cookie)
                        reply = sd_bus_message_ref(m);
                sd_bus_message_unref(m);
        }
        *ret_usec = usec_since(start);
        sd_bus_message_unref(m);
        check(reply ? 0 : -EBADMSG, "HoldGranted came before the reply");
        return reply;
}

static void hold_trial(sd_bus *bus, Watch *w, const char *const rows[]) {
        sd_bus_message *reply;
        const char *path;
        uint64_t start, last;
        double usec;

        bus_drain(bus); /* signals of other grants */
        reply = hold_until_granted(bus, &usec);
        for (size_t i = 0; rows[i]; i++)
                sample(rows[i], OURS, usec);
        check(watch_is_off(w) ? 0 : -EBUSY, "a monitor counts during a hold");
        (void) watch_last_off(w);
        check(sd_bus_message_read(reply, "oh", &path, NULL), "Hold");
        start = clock_nsec(CLOCK_MONOTONIC_RAW);
        hold_release(bus, path);
        last = watch_last_on(w);
        check(last > 0 ? 0 : -ETIME, "a monitor does not count after Release was answered");
        sample("release", OURS, (double) (last - start) / 1e3);
        sd_bus_message_unref(reply);
        bus_drain(bus);
}

/* ---- theirs ---- */

static void lock_set(int fd, short type) {
        struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

        check_errno(fcntl(fd, F_SETLK, &lock), "PCP's lock");
}

static void pcp_trial(int lock, Watch *w) {
        uint64_t start, last;
        unsigned i;

        sleep_usec((uint64_t) random() % 100000); /* it looks every 100 ms */
        watch_look(w);
        start = clock_nsec(CLOCK_MONOTONIC_RAW);
        lock_set(lock, F_RDLCK);
        for (i = 0; i < PCP_LIMIT && !watch_is_off(w); i++)
                sleep_usec(PCP_WAIT_USEC);
        check(i < PCP_LIMIT ? 0 : -ETIME, "pmdaperfevent does not give way");
        last = watch_last_off(w);
        sample("hold-user", THEIRS, (double) (last - start) / 1e3);
        sample("hold-root", THEIRS, (double) (last - start) / 1e3);
        sleep_usec((uint64_t) random() % 100000);
        start = clock_nsec(CLOCK_MONOTONIC_RAW);
        lock_set(lock, F_UNLCK);
        for (i = 0; i < PCP_LIMIT && (last = watch_last_on(w)) == 0; i++)
                sleep_usec(PCP_WAIT_USEC);
        check(i < PCP_LIMIT ? 0 : -ETIME, "pmdaperfevent does not go on");
        sample("release", THEIRS, (double) (last - start) / 1e3);
}

static bool profiles_there(sd_bus *bus) {
        char *profile;
        int r = sd_bus_get_property_string(bus, PROFILES, "ActiveProfile", NULL, &profile);

        if (r < 0) {
                say("hold-profile", "skip", "power-profiles-daemon cannot be run: %s",
                    strerror(-r));
                return false;
        }
        free(profile);
        return true;
}

static void profile_trial(sd_bus *bus) {
        sd_bus_message *m = bus_message(bus, PROFILES, "HoldProfile"), *reply;
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);
        uint32_t cookie;

        check(sd_bus_message_append(m, "sss", "power-saver", "benchmark", "perfalloc"),
              "HoldProfile");
        reply = bus_call(bus, m);
        sample("hold-profile", THEIRS, usec_since(start));
        check(sd_bus_message_read(reply, "u", &cookie), "HoldProfile");
        sd_bus_message_unref(reply);
        m = bus_message(bus, PROFILES, "ReleaseProfile");
        check(sd_bus_message_append(m, "u", cookie), "ReleaseProfile");
        sd_bus_message_unref(bus_call(bus, m));
}

/* polkit's part of it: the same CheckAuthorization alone. */
static void polkit_trial(sd_bus *root, sd_bus *user) {
        sd_bus_message *m = bus_message(root, POLKIT, "CheckAuthorization");
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);
        const char *name;

        check(sd_bus_get_unique_name(user, &name), "name");
        check(sd_bus_message_append(m, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s", name,
                                    "org.perfalloc1.hold", 0, 0u, ""),
              "CheckAuthorization");
        sd_bus_message_unref(bus_call(root, m));
        sample("hold-polkit", THEIRS, usec_since(start));
}

int main(int argc, char *argv[]) {
        static const char *const rows_user[] = { "hold-user", "hold-profile", "hold-polkit", NULL };
        static const char *const rows_root[] = { "hold-root", NULL };
        static int fds[EVENTS_MAX], pcp_fds[EVENTS_MAX];
        sd_bus *root = bus_open("root"), *user = bus_open("alice");
        sd_bus_message *counters = monitors_open(root, "context-switches", MONITORS);
        size_t n = events_take(bus_pid(root, SERVICE), fds, EVENTS_MAX), n_pcp = 0;
        bool profiles = profiles_there(user);
        Watch w, pcp;
        int lock = -1;

        watch_init(&w, fds, n);
        watch_grants(root);
        watch_grants(user);
        if (argc == 3) {
                lock = check_errno(open(argv[2], O_RDWR | O_CLOEXEC), argv[2]);
                n_pcp = events_take((pid_t) atoi(argv[1]), pcp_fds, EVENTS_MAX);
                check(n_pcp > 0 ? 0 : -ENOENT, "pmdaperfevent has no events open");
                say("hold-root", "note", "%zu descriptors of ours, %zu of pmdaperfevent", n, n_pcp);
        }
        watch_init(&pcp, pcp_fds, n_pcp);
        for (unsigned i = trials(60); i > 0; i--) {
                if (profiles)
                        profile_trial(user);
                polkit_trial(root, user);
                for (unsigned j = 0; j < HOLDS; j++) {
                        hold_trial(user, &w, rows_user);
                        hold_trial(root, &w, rows_root);
                }
                if (lock >= 0)
                        pcp_trial(lock, &pcp);
        }
        watch_done(&w);
        watch_done(&pcp);
        events_close(fds, n);
        events_close(pcp_fds, n_pcp);
        counters_close(root, counters);
        sd_bus_flush_close_unref(user);
        sd_bus_flush_close_unref(root);
        return EXIT_SUCCESS;
}
