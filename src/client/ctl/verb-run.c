/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/ctl/verbs.h"
#include "client/launch.h"

/* run: COMMAND under the broker, without a hold. */

static int run_prepared(Ctl *c, Command *command, Refusal *why) {
        int r = command_run(command, c->event, c->signals);

        if (r > 0) {
                c->status = command->status;
                return refuse(why, CTL_E_FAILED, "cannot run %s: %s", c->options->command[0],
                              strerror(r));
        }
        while (r >= 0 && !command->ended)
                r = sd_event_run(c->event, UINT64_MAX);
        c->status = command->status;
        c->signo = command->signo;
        return r < 0 ? r : c->signo > 0 ? CTL_E_INTERRUPTED : 0;
}

int verb_run(Ctl *c, Refusal *why) {
        _cleanup_(command_done) Command command = COMMAND_NULL;
        _cleanup_(launch_done) Launch launch = { .mode = LAUNCH_YES,
                                                 .allow = c->options->hold.allow ?: LAUNCH_ALLOW,
                                                 .paranoid = c->options->hold.paranoid,
                                                 .strict = true,
                                                 .command = c->options->command,
                                                 .bus = c->bus,
                                                 .event = c->event,
                                                 .signals = c->signals,
                                                 .prover = PROVER_CLIENT_NULL };
        int r;

        if (!launch.command)
                return refuse(why, CTL_E_USAGE, "run: missing COMMAND");
        if (launch_allow_check(launch.allow, why) != 0)
                return CTL_E_USAGE;
        r = launch_prepare(&launch, &command, why);
        if (r == LAUNCH_E_INTERRUPTED)
                c->signo = launch.signo;
        if (r == LAUNCH_E_DENIED)
                return launch.denied.name ? ctl_refuse(&launch.denied, why) : CTL_E_USAGE;
        return r == LAUNCH_E_INTERRUPTED ? CTL_E_INTERRUPTED
               : r < 0                   ? r
                                         : run_prepared(c, &command, why);
}
