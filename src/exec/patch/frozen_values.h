/* SPDX-License-Identifier: MIT
 * Detecting frozen values: the grids and scalar arguments of kernels, the sizes of copies and fills, and the values of
 * fills, memory operations and semaphores are noted while a body runs, so that two runs can be compared. A value that
 * differs would be frozen by a recording. Two runs are compared only if they enqueue the same work, with the same
 * kernels, in the same order.
 *
 * Ignored are pointers, words that may be addresses, and a generator's arguments (RONDO_RANDOM_ARGS). The arguments of
 * libraries' kernels are unknown.
 *
 * Threads: each thread notes only its own launches, if it has begun to note.
 */
#ifndef RONDO_EXEC_PATCH_FROZEN_VALUES_H
#define RONDO_EXEC_PATCH_FROZEN_VALUES_H

#include "base/array.h"
#include "device/device.h"
#include "graph/graph_internal.h"

/* The max number of values, and of launches, that are noted. A run with more of them is not compared. */
#define RONDO_LAUNCH_VALUES_MOST (UINT32_C(1) << 16)

typedef struct rondo_launch_value {
  uint64_t value;
  uint16_t parameter, offset; /* of the kernel; byte in its argument. Or the number of the operation or semaphore */
  uint8_t bytes;              /* at most 8 */
  bool is_number;             /* it is no address, whatever it is */
} rondo_launch_value;

/* A launch of a kernel, or other work with values. */
typedef struct rondo_noted_launch {
  uint64_t kind; /* a hash of all that must be equal for a comparison */
  rondo_node_kind work;
  uint32_t first;    /* index of its first value */
  uint64_t sizes[3]; /* the grid of a kernel, or width, height and depth of a copy or fill */
  char name[40];     /* of the kernel */
} rondo_noted_launch;

typedef struct rondo_launch_values {
  rondo_allocator allocator;
  struct rondo_launch_values *outer; /* the enclosing one, which pauses meanwhile */
  RONDO_ARRAY(rondo_noted_launch) launches;
  RONDO_ARRAY(rondo_launch_value) values;
  bool is_complete; /* it has begun, and nothing was omitted */
} rondo_launch_values;

/* Begin and end noting. `values` is zeros at first. The caller frees it, and may move it after the end. */
void rondo_launch_values_begin(rondo_launch_values *values, const rondo_allocator *allocator);
void rondo_launch_values_end(rondo_launch_values *values);
void rondo_launch_values_free(rondo_launch_values *values); /* zeros are allowed */

/* Launches of the thread between the two calls are not noted. */
rondo_launch_values *rondo_launch_values_pause(void);
void rondo_launch_values_resume(rondo_launch_values *paused);

/* Whether the calling thread notes its launches. */
static inline bool rondo_launch_values_are_noted(void) {
  return rondo_is_thread_watched() && rondo_this_thread.values != NULL;
}

/* Notes work that is launched or captured, and was not checked yet, on a thread that notes. */
void rondo_launch_values_note(const rondo_node_params *work);

/* Whether a value of the later run differs from that of the earlier one. If so, `message` describes the first
 * difference. */
bool rondo_launch_values_differ(const rondo_launch_values *earlier, const rondo_launch_values *later, char *message,
                                size_t capacity);

#endif
