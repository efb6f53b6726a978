/* SPDX-License-Identifier: MIT
 * The values that kernels and fills are given, noted while a body runs, so that two runs can be compared. A value that
 * differs is one that a recording would freeze. Two runs are compared only if they launch the same kernels over the
 * same grids in the same order.
 *
 * Not values are pointers, words that may be addresses, and what a generator gives a kernel (RONDO_RANDOM_ARGS). The
 * arguments of libraries' kernels are not seen.
 *
 * Threads: what a thread launches is noted if that thread has begun to note.
 */
#ifndef RONDO_EXEC_PATCH_FROZEN_VALUES_H
#define RONDO_EXEC_PATCH_FROZEN_VALUES_H

#include "base/array.h"
#include "device/device.h"
#include "graph/graph_internal.h"

/* The most values that are noted of a run; of a longer run nothing can be said. */
#define RONDO_LAUNCH_VALUES_MOST (UINT32_C(1) << 16)

typedef struct rondo_launch_value {
  uint64_t value;
  uint16_t parameter, offset; /* of the kernel, and in its argument */
  uint8_t bytes;              /* at most 8 */
} rondo_launch_value;

/* A kernel's launch, or a fill. */
typedef struct rondo_noted_launch {
  uint64_t kind;  /* a hash of what must be equal for two to be compared */
  uint32_t first; /* of its values */
  char name[40];  /* the kernel's; "" for a fill */
} rondo_noted_launch;

typedef struct rondo_launch_values {
  rondo_allocator allocator;
  struct rondo_launch_values *outer; /* while it notes: what noted before, and will again */
  RONDO_ARRAY(rondo_noted_launch) launches;
  RONDO_ARRAY(rondo_launch_value) values;
  bool is_complete; /* it was begun, and nothing was left out */
} rondo_launch_values;

/* Begins to note, and ends. `values` is zeros at first; the caller frees it, and may move it when noting has ended. */
void rondo_launch_values_begin(rondo_launch_values *values, const rondo_allocator *allocator);
void rondo_launch_values_end(rondo_launch_values *values);
void rondo_launch_values_free(rondo_launch_values *values); /* zeros are fine */

/* What the thread launches between the two is noted nowhere. */
rondo_launch_values *rondo_launch_values_pause(void);
void rondo_launch_values_resume(rondo_launch_values *paused);

/* Whether the calling thread notes. */
static inline bool rondo_launch_values_are_noted(void) {
  return rondo_is_thread_watched() && rondo_this_thread.values != NULL;
}

/* Something is launched or captured that was not checked yet, on a thread that notes. Never fails. */
void rondo_launch_values_note(const rondo_node_params *work);

/* Whether the later run was given another value than the earlier one in the same place; the first such place is
 * described. */
bool rondo_launch_values_differ(const rondo_launch_values *earlier, const rondo_launch_values *later, char *message,
                                size_t room);

#endif
