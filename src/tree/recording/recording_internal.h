/* SPDX-License-Identifier: MIT
 * The recording object.
 *
 * A recording is in one of three states: empty (no capture, graph or exec), capturing (`capture` is set and not over)
 * or ready (`exec` and `graph` are set). A capture that another call has ended counts as none.
 *
 * Threads: one at a time. Exception: any thread may free host memory that `watch` observes.
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
  bool was_reset; /* it was reset when it had a capture or an exec */
  uint64_t captures, replays, resets;
  char label[RONDO_RECORDING_LABEL]; /* "recording 'step'" */
};

/* Checks that the captured graph can be replayed, and watches the host memory that it uses. Errors: those of
 * rondo_recording_capture_end about nodes. */
RONDO_MUST_USE rondo_status rondo_recording_check(rondo_recording *recording, const char *call);

#endif
