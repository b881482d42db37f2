/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How often a test does what takes ten times as long with sanitizers, such as fork() of many
 * processes. What sanitizers look for is in each round.
 */

#ifdef __SANITIZE_ADDRESS__
#define ROUNDS(n) (((n) + 2) / 3)
#else
#define ROUNDS(n) (n)
#endif
