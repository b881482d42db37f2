/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define CHUNK ((size_t) 4096)

int sysfs_open(int directory, const char *path) {
        int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int sysfs_read(int directory, const char *path, char **ret) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -1;
        size_t length = 0, size = 0;

        /* O_NONBLOCK: a recorded tree may have a FIFO. */
        fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        for (;;) {
                ssize_t n;

                if (length == size) {
                        char *larger =
                                size < SYSFS_TEXT_MAX ? realloc(text, size + CHUNK + 1) : NULL;

                        if (!larger)
                                return size < SYSFS_TEXT_MAX ? -ENOMEM : -EFBIG;
                        text = larger;
                        size += CHUNK;
                }
                n = read(fd, text + length, size - length);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        if (length > 0 && text[length - 1] == '\n')
                length--;
        text[length] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

bool sysfs_name_is_sane(const char *name) {
        if (*name == '\0' || *name == '.')
                return false;
        for (; *name; name++)
                if (!isascii(*name) || !(isalnum(*name) || strchr("_-+.", *name)))
                        return false;
        return true;
}

static void closedirp(DIR **d) {
        if (*d)
                closedir(*d);
}

int sysfs_visit(int directory, SysfsVisitor f, void *userdata) {
        _cleanup_(closedirp) DIR *d = NULL;
        int fd, r = 0;

        /* Opened anew: duplicates would share the position in the directory. */
        fd = sysfs_open(directory, ".");
        if (fd < 0)
                return sysfs_is_fatal(fd) ? fd : 0;
        d = fdopendir(fd);
        if (!d) {
                close_fd(fd);
                return -ENOMEM;
        }
        for (struct dirent *e; r == 0 && (e = readdir(d));)
                if (sysfs_name_is_sane(e->d_name))
                        r = f(userdata, directory, e->d_name);
        return r;
}
