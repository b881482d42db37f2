/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What qdbusxml2cpp makes of the interface files is a whole client: each type of theirs comes, as
 * <perfalloc/qtdbus.h> declares it, and descriptors come and go. Prints TAP. */

#include "proxies.h"

#include <perfalloc/dbus.h>
#include <perfalloc/qtdbus.h>

#include <QtCore/QCoreApplication>
#include <QtCore/QEventLoop>
#include <cstdio>
#include <sys/syscall.h>
#include <unistd.h>

using Manager = OrgPerfalloc1ManagerInterface;
using Hold = OrgPerfalloc1HoldInterface;
using Counter = OrgPerfalloc1CounterInterface;
using Sampler = OrgPerfalloc1SamplerInterface;
using Pmu = OrgPerfalloc1PmuInterface;

static const QString service = QStringLiteral(PERFALLOC_BUS_NAME);
static int cases, failures;

static void check(const char *promise, bool kept) {
        printf("%s %d %s\n", kept ? "ok" : "not ok", ++cases, promise);
        failures += !kept;
}

/* Waits for the reply; false, and says why, when it is an error or of other types. */
template <typename Reply> static bool came(Reply &&reply) {
        reply.waitForFinished();
        if (reply.isError())
                printf("# %s\n", qPrintable(reply.error().message()));
        return !reply.isError();
}

static QDBusConnection bus() {
        return QDBusConnection::systemBus();
}

/* The reply has a copy of the lease too, and goes here. */
static QDBusUnixFileDescriptor hold_take(Manager &manager, QString *path) {
        auto reply = manager.Hold("generated", { { "pmus", QStringList{ "software" } } });

        check("Hold gives a hold and its lease", came(reply) && reply.argumentAt<1>().isValid());
        *path = reply.argumentAt<0>().path();
        return reply.argumentAt<1>();
}

static void test_hold(Manager &manager) {
        QString path, result;
        QDBusUnixFileDescriptor lease = hold_take(manager, &path);
        Hold hold(service, path, bus());
        QEventLoop loop;

        check("Wait answers", came(hold.Wait()));
        check("Obstacles is a list of Obstacle", hold.property("Obstacles").isValid());
        check("Promised is a list of Promise",
              hold.promised().size() == 1 && hold.promised().first().pmu == "software");
        QObject::connect(&manager, &Manager::HoldEnded,
                         [&](const QDBusObjectPath &, const QString &how) {
                                 result = how;
                                 loop.quit();
                         });
        lease = QDBusUnixFileDescriptor();
        loop.exec();
        check("closing the lease ends the hold", result == "lease-closed");
}

static void test_counter(Manager &manager, const QDBusObjectPath &path) {
        Counter counter(service, path.path(), bus());
        auto readings = manager.ReadCounters({ path });
        auto rows = counter.ReadEach();
        auto fds = counter.GetFds();
        auto persistent = counter.Persist();
        auto list = manager.ListPersistent();

        check("Targets is a list of numbers: the process that a pidfd in the options names",
              counter.targets() == QList<uint>{ uint(getpid()) });
        check("ReadCounters gives a list of Reading",
              came(readings) && readings.value().size() == 1 && readings.value()[0].value > 0);
        check("ReadEach gives a list of Row",
              came(rows) && !rows.value().isEmpty() && !rows.value()[0].quality.isEmpty());
        auto parts = counter.ReadParts();
        check("ReadParts gives a list of Part", came(parts) && !parts.value().isEmpty() &&
                                                        parts.value()[0].pid == uint(getpid()) &&
                                                        !parts.value()[0].pmu.isEmpty());
        check("GetFds gives a list of descriptors",
              came(fds) && !fds.value().isEmpty() && fds.value()[0].isValid());
        auto users = manager.ListUsers();
        check("ListUsers gives a list of User: this process, which has that descriptor",
              came(users) && users.value().size() == 1 && users.value()[0].pid == uint(getpid()));
        check("ListPersistent gives a list of Persistent",
              came(persistent) && came(list) && list.value().size() == 1 &&
                      list.value()[0].id == persistent.value());
}

static void test_sampler(Manager &manager, const QDBusObjectPath &path) {
        auto reply = manager.CreateSampler({ path }, 100000, { { "signal", true } });
        QList<Perfalloc::Reading> readings;
        QEventLoop loop;

        check("CreateSampler gives a sampler and its stream",
              came(reply) && reply.argumentAt<1>().isValid());

        Sampler sampler(service, reply.argumentAt<0>().path(), bus());
        QObject::connect(&sampler, &Sampler::Sample,
                         [&](qulonglong, qulonglong, qulonglong, const auto &values) {
                                 readings = values;
                                 loop.quit();
                         });
        loop.exec();
        check("the signal Sample has a list of Reading", readings.size() == 1);
        check("Close answers", came(sampler.Close()));
}

static QDBusObjectPath counter_open(Manager &manager) {
        const int pidfd = int(syscall(SYS_pidfd_open, getpid(), 0));
        const QVariantMap options = { { "pidfd",
                                        QVariant::fromValue(QDBusUnixFileDescriptor(pidfd)) } };
        auto reply = manager.OpenCounters({ "task-clock" }, options);

        close(pidfd);
        check("OpenCounters takes a descriptor among its options", came(reply));
        return reply.isError() ? QDBusObjectPath() : reply.value().first();
}

static void test_lists(Manager &manager) {
        auto events = manager.ListEvents("task-clock");
        Pmu pmu(service, PERFALLOC_OBJECT_PATH "/pmu/breakpoint", bus());
        auto free = pmu.Probe();

        check("ListEvents gives a list of Event",
              came(events) && !events.value().isEmpty() && events.value()[0].name == "task-clock");
        check("Probe gives a list of FreeCounters", came(free) && !free.value().isEmpty());
}

int main(int argc, char *argv[]) {
        QCoreApplication application(argc, argv);
        Manager manager(service, PERFALLOC_OBJECT_PATH, bus());

        setvbuf(stdout, nullptr, _IOLBF, 0);
        Perfalloc::registerTypes();
        const QDBusObjectPath counter = counter_open(manager);
        test_hold(manager);
        test_counter(manager, counter);
        test_sampler(manager, counter);
        test_lists(manager);
        printf("1..%d\n", cases);
        return failures > 0;
}

#include "proxies.cpp"
