/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#define FIELDS_MAX 32

int log_max_priority = LOG_INFO;

/* Whether standard error is the journal's own stream (systemd.exec(5), $JOURNAL_STREAM). */
static bool log_is_journal(void) {
        static int cached = -1;
        const char *stream = getenv("JOURNAL_STREAM");
        uintmax_t device, inode;
        struct stat st;

        if (cached < 0)
                cached = stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
                         fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
                         st.st_ino == inode;
        return cached > 0;
}

static void log_iovec(int priority, struct iovec *iov, int n, const char *message) {
        if (log_is_journal() && sd_journal_sendv(iov, n) >= 0)
                return;
        (void) fprintf(stderr, "<%d>%s\n", priority, message);
}

void log_plain(int priority, const char *format, ...) {
        char text[2048];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        log_event(priority, NULL, text, NULL);
}

static int field_format(struct iovec *iov, const char *name, const char *value) {
        char *field;
        int n = asprintf(&field, "%s=%s", name, value);

        if (n < 0)
                return -ENOMEM;
        *iov = (struct iovec){ field, (size_t) n };
        return 0;
}

void log_event(int priority, const char *message_id, const char *message,
               const char *const fields[]) {
        struct iovec iov[FIELDS_MAX];
        char level[4];
        int n = 0;

        if (priority > log_max_priority)
                return;
        (void) snprintf(level, sizeof(level), "%d", priority);
        if (field_format(&iov[n], "MESSAGE", message) == 0)
                n++;
        if (field_format(&iov[n], "PRIORITY", level) == 0)
                n++;
        if (message_id && field_format(&iov[n], "MESSAGE_ID", message_id) == 0)
                n++;
        for (; fields && fields[0] && n < FIELDS_MAX; fields += 2)
                if (field_format(&iov[n], fields[0], fields[1]) == 0)
                        n++;
        log_iovec(priority, iov, n, message);
        while (n > 0)
                free(iov[--n].iov_base);
}
