/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The SPANK plugin (spank(7), perfalloc-slurm(7)): --perfalloc for srun, sbatch and salloc.
 *
 * In srun it starts the barrier. In the slurmstepd of each node it takes the hold, as root, and
 * waits at the barrier. A step that must not run still starts, and each of its tasks ends before it
 * executes anything: an error of a plugin in slurmstepd would drain the node.
 */

#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/timespan.h"
#include "slurm/barrier.h"
#include "slurm/node-hold.h"
#include "slurm/slurm-option.h"

/* what Slurm looks up by name */
#pragma GCC visibility push(default)
SPANK_PLUGIN(perfalloc, 1)

#define BARRIER_VARIABLE "PERFALLOC_SLURM_BARRIER"
#define NODE_NAME_MAX    65
#define NODE_LIST_MAX    8192

static SlurmOption option;
static Barrier barrier = BARRIER_NULL;
static NodeHold hold;
static uint64_t timeout_usec = 60 * USEC_PER_SEC;
static bool stopped; /* no task of the step may run */
static bool told;    /* srun has said why */
static char why_stopped[BARRIER_LINE_MAX];

static void step_stop(const char *words) {
        stopped = true;
        (void) snprintf(why_stopped, sizeof(why_stopped), "%s", words);
}

/* ---- the option ---- */

static int option_read(int val, const char *text, int remote) {
        Refusal why;
        int r;

        slurm_option_done(&option);
        r = slurm_option_parse(text, &option, &why);
        if (r == 0)
                return 0;
        if (remote) /* srun has checked it: somebody has changed it since */
                step_stop(r < 0 ? strerror(-r) : why.text);
        else
                slurm_error("--perfalloc: %s", r < 0 ? strerror(-r) : why.text);
        return remote ? 0 : -1;
}

static struct spank_option spank_row = {
        .name = (char *) "perfalloc",
        .arginfo = (char *) "[exclusive,counters=N,pmus=NAME+NAME,wait=TIME,best-effort]",
        .usage = (char *) "hold the performance counters of all nodes of the step",
        .has_arg = 2,
        .cb = option_read,
};

int slurm_spank_init(spank_t sp, int ac, char **av) {
        for (int i = 0; i < ac; i++)
                if (strncmp(av[i], "timeout=", 8) != 0 ||
                    timespan_parse(av[i] + 8, &timeout_usec) != 0)
                        slurm_error("perfalloc: plugstack.conf: '%s' is not timeout=TIME", av[i]);
        return spank_option_register(sp, &spank_row) == ESPANK_SUCCESS ? 0 : -1;
}

/* ---- srun ---- */

/* Called once for each component of a heterogeneous step, before any of them is launched. */
int slurm_spank_local_user_init(spank_t sp, int ac, char **av) {
        const char *nodes = getenv("SLURM_STEP_NODELIST") ?: getenv("SLURM_JOB_NODELIST");
        uint32_t n = 0;
        int r = 0;

        if (!option.given)
                return 0;
        if (spank_get_item(sp, S_JOB_NNODES, &n) != ESPANK_SUCCESS)
                r = -EINVAL;
        if (r == 0 && barrier.control < 0)
                r = barrier_start(&barrier, nodes ?: "the nodes",
                                  usec_add(timeout_usec, option.wait_usec));
        if (r == 0)
                r = barrier_expect(&barrier, n);
        if (r == 0 && setenv(BARRIER_VARIABLE, barrier.address, 1) < 0)
                r = -errno;
        if (r < 0)
                slurm_error("perfalloc: the nodes' barrier cannot be made: %s", strerror(-r));
        return r;
}

/* ---- slurmstepd ---- */

/* A batch script and the processes that srun did not start have no step of their own. */
static bool step_is_of_srun(spank_t sp, uint32_t *ret_job, uint32_t *ret_step) {
        return spank_remote(sp) == 1 && option.given &&
               spank_get_item(sp, S_JOB_ID, ret_job) == ESPANK_SUCCESS &&
               spank_get_item(sp, S_JOB_STEPID, ret_step) == ESPANK_SUCCESS &&
               *ret_step != SLURM_BATCH_SCRIPT && *ret_step != SLURM_EXTERN_CONT;
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av) {
        char tag[96], reason[96];
        uint32_t job, step, restarts = 0;
        uid_t uid;
        int r;

        if (!step_is_of_srun(sp, &job, &step) || stopped)
                return 0;
        if (spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS) {
                step_stop("Slurm does not tell whose job it is");
                return 0;
        }
        (void) spank_get_item(sp, S_SLURM_RESTART_COUNT, &restarts);
        (void) snprintf(reason, sizeof(reason), "Slurm job %" PRIu32 ", step %" PRIu32, job, step);
        /* a step that is requeued is another one than that which ends */
        (void) snprintf(tag, sizeof(tag), "slurm-%" PRIu32 ".%" PRIu32 "-%" PRIu32 "-%d", job, step,
                        restarts, (int) getpid());
        r = node_hold_take(&hold, &option, uid, tag, reason);
        if (r != 0)
                step_stop(hold.words);
        return 0;
}

/*
 * For messages: by its place among the step's nodes. A hostlist_t is a pointer in Slurm 22.05, and
 * the struct itself in 24.11.
 */
static void node_name(spank_t sp, char name[static NODE_NAME_MAX]) {
        char list[NODE_LIST_MAX], *host = NULL;
        struct hostlist *nodes = NULL;
        uint32_t id = 0;

        (void) gethostname(name, NODE_NAME_MAX);
        name[NODE_NAME_MAX - 1] = '\0';
        if (spank_get_item(sp, S_JOB_NODEID, &id) == ESPANK_SUCCESS &&
            spank_getenv(sp, "SLURM_STEP_NODELIST", list, sizeof(list)) == ESPANK_SUCCESS)
                nodes = slurm_hostlist_create(list);
        for (uint32_t i = 0; nodes && i <= id; i++) {
                free(host);
                host = slurm_hostlist_shift(nodes);
        }
        if (host)
                (void) snprintf(name, NODE_NAME_MAX, "%s", host);
        free(host);
        if (nodes)
                slurm_hostlist_destroy(nodes);
}

/* Runs with the user's effective uid: the address comes from their environment. */
int slurm_spank_user_init(spank_t sp, int ac, char **av) {
        char address[BARRIER_ADDRESS_MAX], name[NODE_NAME_MAX], words[BARRIER_LINE_MAX];
        uint32_t job, step;
        BarrierReport report = { .node = name, .held = !stopped };
        int r;

        if (!step_is_of_srun(sp, &job, &step) ||
            spank_getenv(sp, BARRIER_VARIABLE, address, sizeof(address)) != ESPANK_SUCCESS)
                return 0;
        (void) spank_unsetenv(sp, BARRIER_VARIABLE);
        node_name(sp, name);
        report.words = stopped ? why_stopped : hold.words;
        r = barrier_report(address, &report, usec_add(timeout_usec, option.wait_usec), words);
        told = r != BARRIER_E_UNREACHABLE;
        if (r != 0)
                step_stop(words);
        return 0;
}

/* In each task, before it executes its program. */
int slurm_spank_task_init(spank_t sp, int ac, char **av) {
        int task = 0;

        if (!stopped || spank_remote(sp) != 1)
                return 0;
        (void) spank_get_item(sp, S_TASK_ID, &task);
        if (!told && task == 0)
                (void) fprintf(stderr, "perfalloc: no task is started here: %s\n", why_stopped);
        _exit(EXIT_FAILURE);
}

int slurm_spank_exit(spank_t sp, int ac, char **av) {
        if (spank_remote(sp) == 1)
                node_hold_release(&hold);
        barrier_done(&barrier);
        slurm_option_done(&option);
        return 0;
}
