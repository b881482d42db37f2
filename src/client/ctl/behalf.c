/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "behalf.h"

#include <pwd.h>
#include <string.h>

#include "client/ctl/opening.h"
#include "core/number.h"

void behalf_done(Behalf *b) {
        b->cgroup = close_fd(b->cgroup);
        ctl_process_done(&b->process);
}

static int user_find(const char *name, uid_t *ret, Refusal *why) {
        const struct passwd *user;
        uint64_t number;

        if (number_parse(name, &number) == 0 && number < UINT32_MAX) {
                *ret = (uid_t) number;
                return 0;
        }
        user = getpwnam(name);
        if (!user)
                return refuse(why, CTL_E_UNKNOWN, "--uid: there is no user '%.64s'", name);
        *ret = user->pw_uid;
        return 0;
}

int behalf_prepare(const CtlOptions *o, Behalf *ret, Refusal *why) {
        _cleanup_(behalf_done) Behalf b = BEHALF_NULL;
        int r = 0;

        if (o->cgroup && o->pidfd > 0)
                return refuse(why, CTL_E_USAGE, "--cgroup and --pidfd exclude each other");
        if (o->uid)
                r = user_find(o->uid, &b.uid, why);
        if (r == 0 && o->cgroup)
                r = opening_cgroup(o->cgroup, &b.cgroup, why);
        if (r == 0 && o->pidfd > 0)
                r = ctl_process_open(o->pidfd, &b.process, why);
        if (r != 0)
                return r;
        *ret = b;
        b = BEHALF_NULL;
        return 0;
}

int behalf_append(sd_bus_message *m, const CtlOptions *o, const Behalf *b) {
        int r = 0;

        if (o->uid)
                r = sd_bus_message_append(m, "{sv}", "uid", "u", (uint32_t) b->uid);
        if (r >= 0 && o->tag)
                r = sd_bus_message_append(m, "{sv}", "tag", "s", o->tag);
        if (r >= 0 && b->cgroup >= 0)
                r = sd_bus_message_append(m, "{sv}", "cgroup", "h", b->cgroup);
        if (r >= 0 && b->process.pidfd >= 0)
                r = sd_bus_message_append(m, "{sv}", "pidfd", "h", b->process.pidfd);
        return r;
}
