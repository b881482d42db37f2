/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PERFALLOC_QTDBUS_H
#define PERFALLOC_QTDBUS_H

/*
 * The types that the interfaces of org.perfalloc1 name for Qt (C++17, Qt 5 or 6):
 *
 *         qdbusxml2cpp -i perfalloc/qtdbus.h -p manager
 * /usr/share/dbus-1/interfaces/org.perfalloc1.Manager.xml
 *
 * Header only. Call Perfalloc::registerTypes() once before the first call.
 */

#include <QtDBus/QtDBus>

namespace Perfalloc {

/* What Read, ReadCounters and the signal Sample give. */
struct Reading {
        qulonglong value, enabledNSec, runningNSec, estimate;
        QString quality;
};

/* One row of ReadEach. */
struct Row {
        int cpu;
        uint tid;
        qulonglong value, enabledNSec, runningNSec;
        QString quality;
};

/* One row of ReadParts. */
struct Part {
        int cpu;
        uint pid, tid;
        QString pmu;
        qulonglong value, enabledNSec, runningNSec, estimate;
        QString quality;
};

/* Who is in a hold's way: pid 0 is the kernel. */
struct Obstacle {
        uint pid;
        QString who;
};

/* What was promised of one PMU. */
struct Promise {
        QString pmu;
        uint counters;
        QStringList fixed;
};

/* One row of ListPersistent. */
struct Persistent {
        QString id;
        QDBusObjectPath counter;
        QString event;
};

/* One row of ListEvents. */
struct Event {
        QString name, pmu, description;
};

/* One row of ListUsers. */
struct User {
        uint pid, uid;
        QString command, unit;
        uint descriptors;
};

/* One row of Probe. */
struct FreeCounters {
        uint cpu, free;
};

/* Both directions of one struct, its fields in the order of its signature. */
#define PERFALLOC_QTDBUS_FIELDS(type, ...)                                                         \
        inline QDBusArgument &operator<<(QDBusArgument &argument, const type &from) {              \
                const auto &[__VA_ARGS__] = from;                                                  \
                return writeFields(argument, __VA_ARGS__);                                         \
        }                                                                                          \
        inline const QDBusArgument &operator>>(const QDBusArgument &argument, type &to) {          \
                auto &[__VA_ARGS__] = to;                                                          \
                return readFields(argument, __VA_ARGS__);                                          \
        }

template <typename... Fields>
QDBusArgument &writeFields(QDBusArgument &argument, const Fields &...fields) {
        argument.beginStructure();
        (argument << ... << fields);
        argument.endStructure();
        return argument;
}

template <typename... Fields>
const QDBusArgument &readFields(const QDBusArgument &argument, Fields &...fields) {
        argument.beginStructure();
        (argument >> ... >> fields);
        argument.endStructure();
        return argument;
}

PERFALLOC_QTDBUS_FIELDS(Reading, value, enabled, running, estimate, quality)
PERFALLOC_QTDBUS_FIELDS(Row, cpu, tid, value, enabled, running, quality)
PERFALLOC_QTDBUS_FIELDS(Part, cpu, pid, tid, pmu, value, enabled, running, estimate, quality)
PERFALLOC_QTDBUS_FIELDS(Obstacle, pid, who)
PERFALLOC_QTDBUS_FIELDS(Promise, pmu, counters, fixed)
PERFALLOC_QTDBUS_FIELDS(Persistent, id, counter, event)
PERFALLOC_QTDBUS_FIELDS(Event, name, pmu, description)
PERFALLOC_QTDBUS_FIELDS(User, pid, uid, command, unit, descriptors)
PERFALLOC_QTDBUS_FIELDS(FreeCounters, cpu, free)

#undef PERFALLOC_QTDBUS_FIELDS

} // namespace Perfalloc

Q_DECLARE_METATYPE(Perfalloc::Reading)
Q_DECLARE_METATYPE(Perfalloc::Row)
Q_DECLARE_METATYPE(Perfalloc::Part)
Q_DECLARE_METATYPE(Perfalloc::Obstacle)
Q_DECLARE_METATYPE(Perfalloc::Promise)
Q_DECLARE_METATYPE(Perfalloc::Persistent)
Q_DECLARE_METATYPE(Perfalloc::Event)
Q_DECLARE_METATYPE(Perfalloc::User)
Q_DECLARE_METATYPE(Perfalloc::FreeCounters)

namespace Perfalloc {

template <typename... Types> void registerListsOf() {
        (qDBusRegisterMetaType<Types>(), ...);
        (qDBusRegisterMetaType<QList<Types>>(), ...);
}

inline void registerTypes() {
        registerListsOf<Reading, Row, Part, Obstacle, Promise, Persistent, Event, User,
                        FreeCounters>();
        qDBusRegisterMetaType<QList<uint>>();
        qDBusRegisterMetaType<QList<QDBusUnixFileDescriptor>>();
}

} // namespace Perfalloc

#endif
