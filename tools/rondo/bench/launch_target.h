/* SPDX-License-Identifier: MIT
 * The benchmark of launches: what launches, and the work that is launched. A target is Rondo or, on a CUDA device, the
 * driver without Rondo; both are used through one table of calls. A shape is empty kernels with an order among them;
 * the same calls hand it to streams node by node or, while the first stream captures, make the graph of it.
 *
 * Calls return TOOL_OK, or TOOL_FAILURE having said why.
 */
#ifndef RONDO_TOOL_LAUNCH_TARGET_H
#define RONDO_TOOL_LAUNCH_TARGET_H

#include <rondo/rondo.h>
#include <stdbool.h>

#include "common/timing.h"

/* Kernels side by side in fork and join; each has a stream of its own. */
#define LAUNCH_STREAMS 30

typedef struct launch_target launch_target;

typedef struct launch_calls {
  int (*launch)(launch_target *target, size_t stream); /* an empty kernel */
  int (*fork)(launch_target *target);                  /* remembers what the first stream has been given so far */
  int (*follow)(launch_target *target, size_t stream); /* the stream waits for that */
  int (*join)(launch_target *target, size_t stream);   /* the first stream waits for the stream */
  int (*begin_capture)(launch_target *target);         /* of the first stream */
  int (*end_capture)(launch_target *target, void **out_exec);
  int (*replay)(launch_target *target, void *exec); /* on the first stream */
  void (*discard)(launch_target *target, void *exec);
  int (*wait)(launch_target *target);              /* for the first stream */
  int (*mark)(launch_target *target, bool is_end); /* on the first stream: where the time of the device begins, ends */
  int (*elapsed)(launch_target *target, double *out_us);
  int (*destroy)(launch_target *target);
} launch_calls;

/* The targets' structs begin so. */
struct launch_target {
  const launch_calls *calls;
};

/* The device is the caller's. *out is NULL after a failure. */
int launch_rondo_create(rondo_device *device, launch_target **out);
/* *out is NULL, without a failure, for a device that no driver is under. */
int launch_bare_create(const char *device_name, launch_target **out);
/* NULL is fine. */
int launch_target_destroy(launch_target *target);

typedef struct launch_shape {
  const char *name;
  uint32_t nodes, streams;
  int (*enqueue)(launch_target *target, uint32_t nodes);
} launch_shape;

/* The document's three shapes of 32 kernels, then straight lines of 320, 3200 and 10,000. */
enum { SHAPE_LINE, SHAPE_BRANCHES, SHAPE_FORK, SHAPE_LINE_320, SHAPE_LINE_3200, SHAPE_LINE_10000, LAUNCH_SHAPES };
extern const launch_shape launch_shapes[LAUNCH_SHAPES];

/* Captures the shape and instantiates it, ready to be launched on the first stream. */
int launch_record(launch_target *target, const launch_shape *shape, void **out_exec);

/* What one way of launching costs. */
typedef struct launch_times {
  samples host;   /* of the calls that hand the work over */
  samples device; /* between two events around the work */
  samples total;  /* from the first call until the first stream is synchronized */
} launch_times;

/* False when there is no memory. */
bool launch_times_create(launch_times *times, size_t capacity);
void launch_times_destroy(launch_times *times);

/* Does the shape's work `repeats` times with each way of measuring, waiting after each: by streams when exec is NULL.
 */
int launch_measure(launch_target *target, const launch_shape *shape, void *exec, uint32_t repeats, launch_times *times);

/* Launches exec once and waits; adds the host's time of the launch. */
int launch_measure_call(launch_target *target, void *exec, samples *host);

/* Launches exec `count` times in a row; adds the device's time of one. */
int launch_measure_row(launch_target *target, void *exec, uint32_t count, samples *device);

/* The physical limit: one thread calls the functions of as many kernels in a loop. Adds the mean of several loops. */
void launch_measure_loop(uint32_t nodes, samples *times);

#endif
