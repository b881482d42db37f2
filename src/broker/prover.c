/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "prover.h"

#include <poll.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/fd-message.h"
#include "perf/process/proof.h"

bool prover_is(int fd) {
        int domain = 0, type = 0;
        socklen_t size = sizeof(int);

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
               getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* False: there is no answer any more. *ret_proof may be -1. */
static bool answer_receive(int prover, uint64_t deadline_usec, int32_t *ret_pid, int *ret_proof) {
        uint64_t now = now_usec(CLOCK_MONOTONIC);
        struct pollfd p = { .fd = prover, .events = POLLIN };
        size_t n_fds = 0;
        int how;

        *ret_proof = -1;
        if (now >= deadline_usec ||
            poll(&p, 1, (int) ((deadline_usec - now) / USEC_PER_MSEC) + 1) <= 0)
                return false;
        return fd_message_receive(prover, ret_pid, sizeof(*ret_pid), ret_proof, 1, &n_fds,
                                  MSG_DONTWAIT, &how) == sizeof(*ret_pid);
}

/* Answers to earlier questions may still come. */
bool prover_proves(int prover, int pidfd, pid_t pid) {
        uint64_t deadline = now_usec(CLOCK_MONOTONIC) + PROVER_WAIT_MSEC * USEC_PER_MSEC;
        int32_t asked = pid, answered;
        int proof;

        if (send(prover, &asked, sizeof(asked), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(asked))
                return false;
        while (answer_receive(prover, deadline, &answered, &proof)) {
                bool proven = proof >= 0 && proof_check(proof, PROOF_HOST, pidfd, NULL) == 0;

                close_fd(proof);
                if (answered == asked)
                        return proven;
        }
        return false;
}
