#include "guest-util.h"
#include <sys/ioctl.h>
#include <linux/perf_event.h>
static void t(void) {
        g_autoptr(Actor) worker = worker_new("alice");
        EventSpec e = { .kind = INSTRUCTIONS, .pid = worker->pid, .cpu = -1, .user = true, .pinned = true };
        EventSpec k = { .kind = INSTRUCTIONS, .pid = worker->pid, .cpu = -1, .user = false, .pinned = true };
        EventSpec self = { .kind = INSTRUCTIONS, .pid = 0, .cpu = -1, .user = true, .pinned = true };
        EventTimes was = {}, now, kwas={}, know;
        worker_burn(worker, 1);
        int fd = event_open(&e, -1), fk=event_open(&k,-1), fs;
        for (int i = 0; i < 12; i++) {
                worker_burn(worker, 2);
                event_read(fd, &now); event_read(fk,&know);
                printf("# user %lu all %lu\n", now.value - was.value, know.value-kwas.value); was = now; kwas=know;
        }
        fs = event_open(&self, -1);
        event_read(fs, &was);
        for (int i = 0; i < 8; i++) {
          burn(2000000);
                event_read(fs, &now);
                printf("# self %lu\n", now.value - was.value); was = now;
        }
        g_assert_true(false);
}
int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/dbg", t);
        return g_test_run();
}
