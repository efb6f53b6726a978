/* SPDX-License-Identifier: MIT
 * A recording inside: what recording.c keeps and recording_check.c looks through.
 *
 * It is in one of three states: empty (no capture, graph or exec), capturing (`capture` is set and not over) or ready
 * (`exec`, `graph`). A capture that somebody else ended is over and counts as none.
 *
 * Threads: one at a time, but for freeing host memory that `watch` is about.
 */
#ifndef RONDO_TREE_RECORDING_RECORDING_INTERNAL_H
#define RONDO_TREE_RECORDING_RECORDING_INTERNAL_H

#include <rondo/recording.h>

#include "exec/launch/exec_internal.h"
#include "memory/host_memory.h"

#define RONDO_RECORDING_LABEL 80

struct rondo_recording {
  rondo_exec *exec; /* NULL unless ready */
  rondo_host_watch watch;
  rondo_graph *graph;
  rondo_capture *capture; /* a reference; NULL when it does not capture */
  rondo_device *device;
  rondo_profile *profile; /* a reference; NULL when none */
  rondo_plan_options plan;
  bool relocate, lasting_host_memory;
  bool was_reset; /* it held or made a capture once, and was reset */
  uint64_t captures, replays, resets;
  char label[RONDO_RECORDING_LABEL]; /* "recording 'step'" */
};

/* Looks through the captured graph for what cannot be replayed, and watches the host memory that it names: the errors
 * of rondo_recording_capture_end about nodes. */
RONDO_MUST_USE rondo_status rondo_recording_check(rondo_recording *recording, const char *call);

#endif
