/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "details.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Characters that a prompt cannot show, or shows as something else. */
static const struct {
        uint32_t first, last;
} unprintable[] = {
        { 0x0000, 0x001f }, { 0x007f, 0x009f }, /* controls */
        { 0x00ad, 0x00ad }, { 0x061c, 0x061c }, /* soft hyphen, Arabic letter mark */
        { 0x115f, 0x1160 }, { 0x180b, 0x180f }, /* fillers, Mongolian selectors */
        { 0x200b, 0x200f }, { 0x2028, 0x202e }, /* zero width, direction; line ends, embeddings */
        { 0x2060, 0x206f }, { 0x3164, 0x3164 }, /* invisible operators, isolates; filler */
        { 0xd800, 0xf8ff }, { 0xfe00, 0xfe0f }, /* surrogates, private use; variations */
        { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, /* byte order mark; filler */
        { 0xfff0, 0xffff }, { 0xe0000, 0x10ffff }, /* specials; tags, private use */
};

static bool is_printable(uint32_t c) {
        for (size_t i = 0; i < ELEMENTSOF(unprintable); i++)
                if (c >= unprintable[i].first && c <= unprintable[i].last)
                        return false;
        return true;
}

/* The length of the UTF-8 character at s in bytes, with its code point in ret. 0: it is invalid. */
static size_t utf8_decode(const char *s, uint32_t *ret) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        unsigned char lead = (unsigned char) *s;
        size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        uint32_t c = length == 1 ? lead : lead & (0x7f >> length);

        if (length == 0 || lead >= 0xf8)
                return 0;
        for (size_t i = 1; i < length; i++) {
                if (((unsigned char) s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | ((unsigned char) s[i] & 0x3f);
        }
        if (c < least[length] || c > 0x10ffff)
                return 0;
        *ret = c;
        return length;
}

void details_quote(char *buf, const char *text) {
        char *p = buf;

        *p++ = '"';
        for (size_t n = 0; *text && n < DETAILS_PRINTABLE_MAX; n++) {
                uint32_t c = 0;
                size_t length = utf8_decode(text, &c);

                if (length == 0 || !is_printable(c))
                        *p++ = '?';
                else if (c == '"')
                        *p++ = '\'';
                else
                        p = mempcpy(p, text, length);
                text += length > 0 ? length : 1;
        }
        *p++ = '"';
        *p = '\0';
}

static void quote_program(char *buf, pid_t pid) {
        _cleanup_close_ int fd = -1;
        char path[sizeof("/proc//comm") + 3 * sizeof(pid)];
        char comm[17]; /* at most 15 bytes and a newline (proc(5)) */
        ssize_t n;

        (void) stpcpy(buf, DETAILS_UNKNOWN);
        if (pid <= 0)
                return;
        (void) snprintf(path, sizeof(path), "/proc/%ld/comm", (long) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return;
        n = read(fd, comm, sizeof(comm) - 1);
        if (n <= 0)
                return;
        if (comm[n - 1] == '\n')
                n--;
        comm[n] = '\0';
        details_quote(buf, comm);
}

static void quote_known(char *buf, const char *text) {
        if (text && *text)
                details_quote(buf, text);
        else
                (void) stpcpy(buf, DETAILS_UNKNOWN);
}

void details_fill(Details *d, uid_t uid, pid_t pid, const Asked *asked) {
        static const Asked nothing = ASKED_NULL;
        const Asked *a = asked ?: &nothing;

        *d = (Details){ .uid = uid };
        quote_program(d->program, pid);
        if (a->reason)
                details_quote(d->reason, a->reason);
        else
                (void) stpcpy(d->reason, DETAILS_UNKNOWN);
        quote_known(d->scope, a->scope);
        quote_known(d->mode, a->mode);
        quote_known(d->tag, a->tag);
        quote_known(d->pmus, a->pmus);
        quote_known(d->events, a->events);
        quote_known(d->cpus, a->cpus);
        if (a->target == ASKED_NOBODY)
                (void) stpcpy(d->target, DETAILS_UNKNOWN);
        else
                (void) snprintf(d->target, sizeof(d->target), "%u", (unsigned) a->target);
}

static const struct {
        const char *key;
        size_t offset;
} texts[] = {
        { "perfalloc.program", offsetof(Details, program) },
        { "perfalloc.reason", offsetof(Details, reason) },
        { "perfalloc.pmus", offsetof(Details, pmus) },
        { "perfalloc.events", offsetof(Details, events) },
        { "perfalloc.scope", offsetof(Details, scope) },
        { "perfalloc.mode", offsetof(Details, mode) },
        { "perfalloc.tag", offsetof(Details, tag) },
        { "perfalloc.cpus", offsetof(Details, cpus) },
        { "perfalloc.target-uid", offsetof(Details, target) },
};

static const char *details_text(const Details *d, size_t i) {
        return (const char *) d + texts[i].offset;
}

bool details_equal(const Details *a, const Details *b) {
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (strcmp(details_text(a, i), details_text(b, i)) != 0)
                        return false;
        return a->uid == b->uid;
}

int details_append(const Details *d, sd_bus_message *m) {
        char uid[3 * sizeof(uid_t) + 1];
        int r;

        (void) snprintf(uid, sizeof(uid), "%lu", (unsigned long) d->uid);

        r = sd_bus_message_open_container(m, 'a', "{ss}");
        if (r >= 0)
                r = sd_bus_message_append(m, "{ss}", "perfalloc.uid", uid);
        for (size_t i = 0; i < ELEMENTSOF(texts) && r >= 0; i++)
                r = sd_bus_message_append(m, "{ss}", texts[i].key, details_text(d, i));
        return r < 0 ? r : sd_bus_message_close_container(m);
}
