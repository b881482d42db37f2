/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: directories that stand in for /sys, from the descriptions in tests/sysfs (README.md
 * there).
 */

/* Makes the tree NAME.tree; returns its path, which fixture_done() removes and frees. */
char *fixture_tree(const char *name);

/* An empty one, with a directory for PMUs. */
char *fixture_empty(void);

/* Writes a file, and the directories above it, below bus/event_source/devices of a tree. */
void fixture_write(const char *tree, const char *path, const char *text);

void fixture_done(char *tree);
