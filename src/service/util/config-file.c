/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-file.h"

#include <fcntl.h>
#include <ini.h>
#include <string.h>
#include <sys/stat.h>

#include "service/util/log.h"

#define READ_ROUNDS 3

void config_file_done(ConfigFile *c) {
        free(c->path);
        free(c->text);
        *c = CONFIG_FILE_NULL;
}

static bool stat_equal(const struct stat *a, const struct stat *b) {
        return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the whole of an open file. -EAGAIN: it changed meanwhile. */
static int text_read(int fd, char **ret) {
        _cleanup_free_ char *text = NULL;
        struct stat before, after;
        ssize_t n;

        if (fstat(fd, &before) < 0)
                return -errno;
        if (!S_ISREG(before.st_mode))
                return S_ISDIR(before.st_mode) ? -EISDIR : -EINVAL;
        if (before.st_size > CONFIG_FILE_MAX)
                return -EFBIG;
        text = malloc((size_t) before.st_size + 1);
        if (!text)
                return -ENOMEM;
        n = pread(fd, text, (size_t) before.st_size, 0);
        if (n < 0 || fstat(fd, &after) < 0)
                return -errno;
        if (n != before.st_size || !stat_equal(&before, &after))
                return -EAGAIN;
        text[n] = '\0';
        if (strlen(text) != (size_t) n)
                return -EINVAL; /* not a text file */
        *ret = TAKE_PTR(text);
        return 0;
}

static int file_read(const char *path, char **ret) {
        int r = -EAGAIN;

        for (int round = 0; round < READ_ROUNDS && r == -EAGAIN; round++) {
                /* reopened each time: editors replace the file */
                _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

                r = fd < 0 ? -errno : text_read(fd, ret);
        }
        return r;
}

int config_file_read(const char *path, ConfigFile *ret) {
        _cleanup_(config_file_done) ConfigFile c = CONFIG_FILE_NULL;
        int r;

        c.path = strdup(path);
        if (!c.path)
                return -ENOMEM;
        r = file_read(path, &c.text);
        if (r < 0) {
                if (r != -ENOENT)
                        log_plain(LOG_WARNING, "%s: not used: %s", path,
                                  r == -EINVAL   ? "it is not a regular text file"
                                  : r == -EAGAIN ? "it changes while it is being read"
                                                 : strerror(-r));
                return r;
        }
        *ret = c;
        c = CONFIG_FILE_NULL;
        return 0;
}

typedef struct Parsing {
        const ConfigFile *file;
        const char *rest;
        int line; /* counted here: inih does not pass it on */
        ConfigSetting f;
        void *userdata;
        int n_wrong;
        int fault;
} Parsing;

static void parsing_complain(Parsing *p, const char *what) {
        p->n_wrong++;
        log_plain(LOG_WARNING, "%s:%d: %s", p->file->path, p->line, what);
}

static bool line_is_comment(const char *line) {
        line += strspn(line, " \t\r");
        return *line == '#' || *line == ';';
}

/* inih reports only the first line that it cannot parse. */
static bool line_is_readable(const char *line) {
        line += strspn(line, " \t\r\n");
        return *line == '\0' || line_is_comment(line) || strpbrk(line, *line == '[' ? "]" : "=:");
}

static char *line_read(char *buffer, int size, void *userdata) {
        Parsing *p = userdata;
        size_t n = strcspn(p->rest, "\n"), copied = MIN(n, (size_t) size - 2);

        if (!*p->rest)
                return NULL;
        p->line++;
        memcpy(buffer, p->rest, copied);
        memcpy(buffer + copied, "\n", 2);
        p->rest += n + (p->rest[n] == '\n');
        if (copied < n) {
                if (!line_is_comment(buffer))
                        parsing_complain(p, "the line is too long");
                *buffer = '\0';
        } else if (!line_is_readable(buffer)) {
                parsing_complain(p, "not a line like Setting=value");
                *buffer = '\0';
        }
        return buffer;
}

static int setting_read(void *userdata, const char *section, const char *name, const char *value) {
        Parsing *p = userdata;
        Refusal why = REFUSAL_NULL;
        int r = p->fault < 0 ? 0 : p->f(p->userdata, section, name, value, &why);

        if (r < 0)
                p->fault = r;
        else if (r > 0)
                parsing_complain(p, why.text);
        return 1;
}

int config_file_parse(const ConfigFile *c, ConfigSetting f, void *userdata) {
        Parsing p = { .file = c, .rest = c->text, .f = f, .userdata = userdata };

        (void) ini_parse_stream(line_read, &p, setting_read, &p);
        return p.fault < 0 ? p.fault : p.n_wrong;
}
