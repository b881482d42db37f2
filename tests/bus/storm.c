/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "storm.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

Storm *storm_new(void) {
        Storm *storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        g_assert_true(storm != MAP_FAILED);
        return storm;
}

void storm_free(Storm *storm) {
        munmap(storm, sizeof(*storm));
}

/* ---- forks ---- */

static void storm_write(Storm *storm) {
        watched_write(0, 1);
        storm->n_written++;
}

static pid_t storm_child(Storm *storm, bool stays) {
        pid_t pid = fork();

        if (pid != 0)
                return pid;
        storm->n_born++;
        while (stays && !storm->go) { /* nobody can be attached to their children */
                waitpid(storm_child(storm, false), NULL, 0);
                g_usleep(500);
        }
        if (storm->go)
                storm_write(storm);
        _exit(0);
}

static void *storm_thread(void *userdata) {
        Storm *storm = userdata;

        storm->n_born++;
        if (storm->go)
                storm_write(storm);
        return NULL;
}

/* A child that is created before go, and sees it afterwards, must be counted just as well. So
 * everything it needs is made before the check. */
static void storm_rage(Storm *storm) {
        for (int n = 0; !storm->go; n++) {
                bool stays = n < STORM_STAYING;
                pid_t child = storm_child(storm, stays);
                pthread_t thread;

                if (pthread_create(&thread, NULL, storm_thread, storm) == 0)
                        pthread_join(thread, NULL);
                if (!stays)
                        waitpid(child, NULL, 0);
        }
        storm_write(storm);
        for (int n = 0; n < 3; n++)
                waitpid(storm_child(storm, false), NULL, 0);
        while (wait(NULL) > 0)
                ;
        _exit(0);
}

int play_storm(int fd, const void *data) {
        Storm *storm = *(Storm *const *) data;

        for (int i = 0; i < STORM_FORKERS; i++)
                if (fork() == 0)
                        storm_rage(storm);
        while (wait(NULL) > 0)
                ;
        act_say(fd, 'd');
        (void) act_hear(fd);
        return 0;
}

/* ---- threads ---- */

static void *storm_breeder(void *userdata) {
        Storm *storm = userdata;
        uint64_t turn = 0;

        while (!storm->go) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, storm_thread, storm) == 0)
                        pthread_join(thread, NULL);
        }
        storm_write(storm);
        storm->n_done++;
        while (!storm->over) {
                if (turn < storm->turn) {
                        turn++;
                        storm_write(storm);
                }
                g_usleep(500);
        }
        return NULL;
}

int play_thread_storm(int fd, const void *data) {
        Storm *storm = *(Storm *const *) data;
        pthread_t threads[STORM_FORKERS];

        for (int i = 0; i < STORM_FORKERS; i++)
                if (pthread_create(&threads[i], NULL, storm_breeder, storm) != 0)
                        return 1;
        for (int i = 0; i < STORM_FORKERS; i++)
                pthread_join(threads[i], NULL);
        act_say(fd, 'd');
        (void) act_hear(fd);
        return 0;
}
