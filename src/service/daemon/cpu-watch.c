/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu-watch.h"

#include <string.h>
#include <sys/epoll.h>

#include "perf/pmu/hotplug.h"
#include "service/bus/host-state.h"
#include "service/hold/hold-joined.h"
#include "service/util/log.h"

#define AGAIN_USEC USEC_PER_SEC

struct CpuWatch {
        Manager *manager;
        sd_event_source *events; /* the kernel's */
        sd_event_source *again;
};

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
static int cpus_refresh(Manager *manager) {
        PmuTable *pmus = &manager->context.pmus;
        _cleanup_(cpuset_done) CpuSet before = CPUSET_NULL;
        _cleanup_(cpu_generations_done) CpuGenerations generations = CPU_GENERATIONS_NULL;
        int r = pmu_table_refresh_masks(pmus);

        if (r >= 0)
                r = pmu_table_refresh_online(pmus, &before, &generations);
        if (r < 0)
                return r;
        cpus_follow(manager, &before, &generations);
        host_state_save(&manager->context);
        return 0;
}

/* What there was no memory or descriptor for is done later. */
static void cpus_changed(CpuWatch *w) {
        if (cpus_refresh(w->manager) >= 0)
                return;
        (void) sd_event_source_set_time_relative(w->again, AGAIN_USEC);
        (void) sd_event_source_set_enabled(w->again, SD_EVENT_ONESHOT);
}

static int on_event(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        if (hotplug_read(fd))
                cpus_changed(userdata);
        return 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        cpus_changed(userdata);
        return 0;
}

static int cpu_watch_begin(CpuWatch *w, int fd) {
        sd_event *event = w->manager->context.event;
        int r = sd_event_add_time(event, &w->again, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, on_again, w);

        if (r >= 0)
                r = sd_event_source_set_enabled(w->again, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_io(event, &w->events, fd, EPOLLIN, on_event, w);
        if (r >= 0) /* the next call already knows of the CPUs that came before it */
                r = sd_event_source_set_priority(w->events, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_io_fd_own(w->events, true);
        if (r < 0)
                close_fd(fd);
        return r;
}

int cpu_watch_new(Manager *manager, CpuWatch **ret) {
        _cleanup_(cpu_watch_freep) CpuWatch *w = calloc(1, sizeof(CpuWatch));
        int fd, r = 0;

        if (!w)
                return -ENOMEM;
        w->manager = manager;
        fd = hotplug_open();
        if (fd < 0)
                log_plain(LOG_WARNING,
                          "CPUs that go offline or come online will not be noticed: %s",
                          strerror(-fd));
        else
                r = cpu_watch_begin(w, fd);
        if (r >= 0)
                *ret = TAKE_PTR(w);
        return r;
}

CpuWatch *cpu_watch_free(CpuWatch *w) {
        if (!w)
                return NULL;
        sd_event_source_disable_unref(w->events);
        sd_event_source_disable_unref(w->again);
        free(w);
        return NULL;
}

void cpu_watch_catch_up(Manager *manager) {
        CpuSet *was_offline = &manager->context.host->was_offline;

        CPU_FOREACH (cpu, was_offline)
                holds_cpu_joined(&manager->holds, (unsigned) cpu);
        cpuset_done(was_offline);
}
