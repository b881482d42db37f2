/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the fuzzers share. Each is a program with libFuzzer's entry (llvm.org/docs/LibFuzzer.html),
 * built by clang with -Dfuzz=true. They look for more than crashes: accepted input must keep the
 * promises of the header.
 */

#include <stdio.h>
#include <string.h>

#include "core/refusal.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* assert(), whatever NDEBUG says. */
#define promise(condition)                                                                         \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);    \
                        abort();                                                                   \
                }                                                                                  \
        } while (0)

/* The input as a string, to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1);

        promise(text);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        return text;
}

/* It was accepted, or refused with a printable text. */
static inline void fuzz_outcome(int r, const Refusal *why) {
        promise(r >= 0);
        if (r == 0)
                return;
        promise(r == why->code && refusal_name(r));
        promise(*why->text && memchr(why->text, '\0', sizeof(why->text)));
        for (const char *p = why->text; *p; p++)
                promise((unsigned char) *p >= ' ' && *p != 127);
}
