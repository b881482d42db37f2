/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu-watch.h"

#include <string.h>
#include <sys/epoll.h>

#include "perf/pmu/hotplug.h"
#include "service/bus/host-state.h"
#include "service/hold/hold-probe.h"
#include "service/util/log.h"

/* A CPU that went offline and came back before this call has gone and come. */
static void cpus_follow(Manager *manager, const CpuSet *before, const CpuGenerations *generations) {
        const PmuTable *pmus = &manager->context.pmus;

        CPU_FOREACH (cpu, &pmus->possible) {
                bool was = cpuset_has(before, (unsigned) cpu);
                bool is = cpuset_has(&pmus->online, (unsigned) cpu);
                bool other =
                        cpu_generations_differ(generations, &pmus->generations, (unsigned) cpu);

                if (was && (!is || other))
                        counters_cpu_changed(&manager->counters, (unsigned) cpu, false);
                if (is && (!was || other)) {
                        counters_cpu_changed(&manager->counters, (unsigned) cpu, true);
                        holds_cpu_joined(&manager->holds, (unsigned) cpu);
                }
        }
}

/* Some CPU came or went. The kernel's list says which. */
static int cpus_changed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *manager = userdata;
        PmuTable *pmus = &manager->context.pmus;
        _cleanup_(cpuset_done) CpuSet before = CPUSET_NULL;
        _cleanup_(cpu_generations_done) CpuGenerations generations = CPU_GENERATIONS_NULL;

        if (!hotplug_read(fd) || cpuset_copy(&before, &pmus->online) < 0 ||
            cpu_generations_load(pmus->generations.ids, pmus->generations.n, &generations) < 0 ||
            pmu_table_refresh_online(pmus) < 0)
                return 0;
        pmu_table_refresh_masks(pmus);
        cpus_follow(manager, &before, &generations);
        host_state_save(&manager->context);
        return 0;
}

int cpu_watch_new(Manager *manager, sd_event_source **ret) {
        int fd = hotplug_open(), r;

        if (fd < 0) {
                log_plain(LOG_WARNING,
                          "CPUs that go offline or come online will not be noticed: %s",
                          strerror(-fd));
                return 0;
        }
        r = sd_event_add_io(manager->context.event, ret, fd, EPOLLIN, cpus_changed, manager);
        if (r < 0) {
                close_fd(fd);
                return r;
        }
        return sd_event_source_set_io_fd_own(*ret, true);
}

void cpu_watch_catch_up(Manager *manager) {
        CpuSet *was_offline = &manager->context.host->was_offline;

        CPU_FOREACH (cpu, was_offline)
                holds_cpu_joined(&manager->holds, (unsigned) cpu);
        cpuset_done(was_offline);
}
