/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "service/daemon/service.h"
#include "service/sibling/privilege.h"
#include "service/util/log.h"

#define CONFIG_PATH PERFALLOC_SYSCONFDIR "/perfalloc/perfallocd.conf"

static int usage(FILE *f) {
        (void) fprintf(f, "Usage: perfallocd [OPTION]...\n"
                          "Allocates the performance counters of this machine, over D-Bus. systemd "
                          "starts it.\n\n"
                          "  -c, --config=FILE  read FILE instead of " CONFIG_PATH "\n"
                          "  -D, --debug        log debug messages\n"
                          "  -h, --help         display this help and exit\n"
                          "  -V, --version      display the version and exit\n");
        return f == stderr ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run(const char *config_path) {
        _cleanup_(service_freep) Service *service = NULL;
        _cleanup_(reader_freep) Reader *reader = NULL;
        _cleanup_(opener_freep) Opener *opener = NULL;
        int r;

        r = privilege_trim();
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot set up capabilities: %s", strerror(-r));
                return r;
        }
        r = opener_fork(&opener);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot start the opener process: %s", strerror(-r));
                return r;
        }
        /* after the opener, which it then knows and does not name as an obstacle */
        r = reader_fork(&reader);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot start the reader process: %s", strerror(-r));
                return r;
        }
        r = privilege_leave_to_siblings();
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot drop capabilities: %s", strerror(-r));
                return r;
        }
        r = service_new(TAKE_PTR(reader), TAKE_PTR(opener), config_path, &service);
        if (r == -ECANCELED)
                return 0; /* told to stop while waiting for the bus */
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot start: %s", strerror(-r));
                return r;
        }
        return service_run(service);
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },
                { "debug", no_argument, NULL, 'D' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                {},
        };
        const char *config_path = CONFIG_PATH;
        sigset_t signals;
        int c;

        while ((c = getopt_long(argc, argv, "c:DhV", options, NULL)) >= 0)
                switch (c) {
                case 'c':
                        config_path = optarg;
                        break;
                case 'D':
                        log_max_priority = LOG_DEBUG;
                        break;
                case 'h':
                        return usage(stdout);
                case 'V':
                        (void) puts("perfallocd " PERFALLOC_VERSION);
                        return EXIT_SUCCESS;
                default:
                        return usage(stderr);
                }
        if (optind < argc)
                return usage(stderr);

        /* The loop reads them. They are blocked from the start, so that none is lost. */
        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigaddset(&signals, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        (void) signal(SIGPIPE, SIG_IGN);

        return run(config_path) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
