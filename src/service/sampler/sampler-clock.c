/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-clock.h"

#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "core/clock.h"
#include "service/counter/counter.h"
#include "service/util/log.h"

#define SIGNALS_QUEUED_MAX 1024 /* messages of the service that the bus has not taken yet */

static void sampler_read(const Sampler *a, uint64_t slot, uint64_t nsec, uint64_t instant) {
        struct perfalloc_sample *record = a->send_log.record;
        struct perfalloc_reading *reading = record->readings;

        record->tick = slot;
        record->boottime_nsec = nsec;
        for (size_t i = 0; i < a->n_counters; i++, reading++) {
                ReadingCache *s = a->counters[i];

                reading_cache_read(s, instant);
                reading->value = s->reading.value;
                reading->enabled_nsec = s->reading.enabled;
                reading->running_nsec = s->reading.running;
                reading->estimate = s->reading.estimate;
                reading->quality = s->reading.quality;
        }
}

/* For perfallocd --debug. r is what became of the record. */
static void sampler_trace(const Sampler *a, int r) {
        const struct perfalloc_sample *record = a->send_log.record;
        uint64_t due_usec = a->tick.start_usec + record->tick * a->tick.interval_usec;

        if (log_max_priority >= LOG_DEBUG)
                log_plain(LOG_DEBUG,
                          "Sampler %" PRIu64 ": tick %" PRIu64 ", taken %" PRIu64
                          " us after it was due, %" PRIu64 " missed before it: %s.",
                          a->object.id, record->tick,
                          record->boottime_nsec / NSEC_PER_USEC - due_usec, record->missed,
                          r < 0 ? strerror(-r) : "sent");
}

/* Counted before it can be seen: a run that is killed in between has missed no tick. */
static int sampler_put(Sampler *a, const TickCount *after) {
        if (!a->mapped)
                return send_log_send(&a->send_log, a->stream, after);
        send_log_put(&a->send_log, after);
        mapping_publish(&a->mapping);
        return 0;
}

/* False: the client end is closed. A client that is slow loses the record, as does one for whose
 * record the kernel has no memory. */
static bool sampler_send(Sampler *a) {
        TickCount after = a->streamed;
        int r;

        a->send_log.record->missed = tick_count_missed(&a->streamed, a->send_log.record->tick);
        tick_count_tell(&after, a->send_log.record->tick);
        r = sampler_put(a, &after);
        sampler_trace(a, r);
        if (r >= 0) {
                totals_add(&a->all->context->totals, TOTAL_TICKS, 1);
                totals_add(&a->all->context->totals, TOTAL_TICKS_MISSED,
                           after.missed - a->streamed.missed);
                a->streamed = after;
        }
        return r != -EPIPE && r != -ECONNRESET;
}

static int append_readings(sd_bus_message *m, const Sampler *a) {
        int r = sd_bus_message_open_container(m, 'a', "(tttts)");

        for (size_t i = 0; i < a->n_counters && r >= 0; i++) {
                const struct perfalloc_reading *reading = &a->send_log.record->readings[i];

                r = sd_bus_message_append(m, "(tttts)", reading->value, reading->enabled_nsec,
                                          reading->running_nsec, reading->estimate,
                                          quality_name((Quality) reading->quality));
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Whether the user's signals are within their rate. The bytes are about the size of a message. */
static bool sampler_may_signal(const Sampler *a) {
        RateLimit *signals = &a->all->signals;
        uint64_t bytes = 192 + 56 * (uint64_t) a->n_counters;

        signals->per_sec = a->all->context->quota.limits[QUOTA_SIGNAL_BYTES];
        return a->object.uid == 0 ||
               rate_limit_take(signals, a->object.uid, now_usec(CLOCK_MONOTONIC), bytes,
                               signals->per_sec);
}

/* Signals the owner only. A signal that cannot be sent is missed too. */
static void sampler_signal(Sampler *a) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint64_t slot = a->send_log.record->tick, n_queued;
        int r;

        r = sd_bus_get_n_queued_write(a->all->context->bus, &n_queued);
        if (r < 0 || n_queued > SIGNALS_QUEUED_MAX || !sampler_may_signal(a))
                return;
        r = sd_bus_message_new_signal(a->all->context->bus, &m, a->object.path,
                                      PERFALLOC_SAMPLER_INTERFACE, "Sample");
        if (r >= 0)
                r = sd_bus_message_append(m, "ttt", slot, a->send_log.record->boottime_nsec,
                                          tick_count_missed(&a->signalled, slot));
        if (r >= 0)
                r = append_readings(m, a);
        if (r >= 0)
                r = sd_bus_message_set_destination(m, a->client->peer->name);
        if (r < 0)
                return;
        send_log_set_signalled(&a->send_log, slot + 1);
        r = sd_bus_send(a->all->context->bus, m, NULL);
        if (r >= 0)
                tick_count_tell(&a->signalled, slot);
        else
                send_log_set_signalled(&a->send_log, a->signalled.next);
}

static void sampler_tick(Sampler *a, uint64_t nsec, uint64_t instant) {
        uint64_t slot;

        if (!tick_take(&a->tick, nsec / NSEC_PER_USEC, &slot))
                return;
        prioq_move(&a->all->schedule, &a->entry, tick_due(&a->tick));
        sampler_read(a, slot, nsec, instant);
        if (a->signal)
                sampler_signal(a);
        if (!sampler_send(a))
                a->all->hung_up(a);
}

void sampler_refresh(Sampler *a) {
        sampler_read(a, a->send_log.record->tick, now_nsec(CLOCK_BOOTTIME),
                     counters_now(a->all->counters));
        mapping_publish(&a->mapping);
}

/* Runs the samplers that are due, for one slice. They share the instant, so each counter is read
 * once. */
static int sampler_clock_ticked(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Samplers *all = userdata;
        uint64_t begin = now_nsec(CLOCK_BOOTTIME), end = begin, instant;
        const PrioqNode *first;

        all->armed_usec = TICK_NEVER;
        instant = counters_now(all->counters);
        while ((first = all->schedule.first) && first->key <= begin / NSEC_PER_USEC &&
               end - begin < SAMPLERS_SLICE_USEC * NSEC_PER_USEC) {
                sampler_tick(container_of(first, Sampler, entry), begin, instant);
                end = now_nsec(CLOCK_BOOTTIME);
        }
        all->not_before_usec = (end + (end - begin)) / NSEC_PER_USEC;
        sampler_clock_set(all);
        return 0;
}

void sampler_clock_set(Samplers *all) {
        const PrioqNode *first = all->schedule.first;
        uint64_t usec = first ? first->key : TICK_NEVER;
        struct itimerspec t = {};

        if (usec != TICK_NEVER)
                usec = MAX(usec, all->not_before_usec);
        if (usec == all->armed_usec)
                return;
        all->armed_usec = usec;
        if (usec != TICK_NEVER) {
                t.it_value.tv_sec = (time_t) (usec / USEC_PER_SEC);
                t.it_value.tv_nsec = (long) (usec % USEC_PER_SEC * NSEC_PER_USEC);
        }
        (void) timerfd_settime(all->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Edge-triggered: the timer is set anew each time, so it need not be read. */
int sampler_clock_init(Samplers *all) {
        int r;

        all->armed_usec = TICK_NEVER;
        all->not_before_usec = 1; /* 0 would stop the timer */
        all->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (all->timer < 0)
                return -errno;
        r = sd_event_add_io(all->context->event, &all->source, all->timer, EPOLLIN | EPOLLET,
                            sampler_clock_ticked, all);
        if (r < 0)
                return r;
        /* ticks have a time, calls do not */
        return sd_event_source_set_priority(all->source, SD_EVENT_PRIORITY_NORMAL - 1);
}

void sampler_clock_done(Samplers *all) {
        sd_event_source_disable_unref(all->source);
        all->timer = close_fd(all->timer);
}
