/* SPDX-License-Identifier: MIT
 * The memory that a launch may write, before it and after one order.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_SNAPSHOT_H
#define RONDO_DEVICE_CHECK_CHECK_SNAPSHOT_H

#include "device/check/check.h"

typedef struct check_entry {
  check_area *area; /* NULL: host memory */
  char *begin;
  size_t bytes;
  check_life life_before, life_after;
  char *before, *after; /* its bytes; NULL while it is not live */
} check_entry;

typedef struct check_snapshot {
  check_state *check;
  RONDO_ARRAY(check_entry) entries;
} check_snapshot;

/* Keeps what an executable's nodes may write. False if that is not known, or there is no memory. */
bool check_snapshot_take(check_snapshot *snapshot, check_state *check, const cpu_executable *executable);
void check_snapshot_free(check_snapshot *snapshot);
bool check_snapshot_keep_result(check_snapshot *snapshot);
void check_snapshot_restore(check_snapshot *snapshot, bool result);

/* Finds the first entry whose contents differ from the kept result, and the offset there. NULL if all are equal. */
const check_entry *check_snapshot_compare(const check_snapshot *snapshot, size_t *out_offset);

#endif
