/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: directory trees in place of /sys, made from the descriptions in tests/sysfs (see its
 * README.md).
 */

/* Makes the tree NAME.tree; returns its path, which fixture_done() removes and frees. */
char *fixture_tree(const char *name);

/* A tree without PMUs. */
char *fixture_empty(void);

/* Writes a file below bus/event_source/devices of a tree, with its directories. */
void fixture_write(const char *tree, const char *path, const char *text);

void fixture_done(char *tree);
