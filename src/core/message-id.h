/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ids of the service's journal entries, for administrators and perfallocctl log to search for; the
 * catalog explains them.
 */

#define LOG_ID_HOLD_GRANTED    "8e1f7ad2c0b94a5b8d6a3f2e4c7b9d10"
#define LOG_ID_HOLD_ENDED      "3b0c5e9f6d784c1e9a2f7d8b1c4e6a32"
#define LOG_ID_HOLD_OBSTRUCTED "f4a6d1c83e5b4720b1c9e8d7a6f5b453"
#define LOG_ID_DENIED          "5d2e9b7c1a3f4e86b0d4c6f8a1e3b574"
#define LOG_ID_DEGRADED        "c7b9e3f15a8d4260974ed2b8c6a1f095"
