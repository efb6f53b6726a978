/* SPDX-License-Identifier: MIT
 * The benchmark of launches: the work that is launched. A shape is empty kernels with an order among them; the same
 * calls hand it to streams node by node or, while the first stream captures, make the graph of it.
 */
#ifndef RONDO_TOOL_LAUNCH_RIG_H
#define RONDO_TOOL_LAUNCH_RIG_H

#include <rondo/rondo.h>
#include <stdbool.h>

#include "timing.h"

/* Kernels side by side in fork and join; each has a stream of its own. */
#define LAUNCH_STREAMS 30

typedef struct launch_rig {
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *streams[LAUNCH_STREAMS];
  rondo_event *fork, *joins[LAUNCH_STREAMS];
  rondo_event *begin, *end; /* with timing */
} launch_rig;

/* The device is the caller's. destroy takes what a failed create left. */
rondo_status launch_rig_create(rondo_device *device, launch_rig *out);
rondo_status launch_rig_destroy(launch_rig *rig);

typedef struct launch_shape {
  const char *name;
  uint32_t nodes, streams;
  rondo_status (*enqueue)(const launch_rig *rig, uint32_t nodes);
} launch_shape;

/* The document's three shapes of 32 kernels, then straight lines of 320, 3200 and 10,000. */
enum { SHAPE_LINE, SHAPE_BRANCHES, SHAPE_FORK, SHAPE_LINE_320, SHAPE_LINE_3200, SHAPE_LINE_10000, LAUNCH_SHAPES };
extern const launch_shape launch_shapes[LAUNCH_SHAPES];

/* Captures the shape and instantiates it, uploaded to the first stream. */
rondo_status launch_rig_record(const launch_rig *rig, const launch_shape *shape, rondo_exec **out_exec);

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
rondo_status launch_rig_measure(const launch_rig *rig, const launch_shape *shape, rondo_exec *exec, uint32_t repeats,
                                launch_times *times);

/* The physical limit: one thread calls the functions of as many kernels in a loop. Adds the mean of several loops. */
void launch_measure_loop(uint32_t nodes, samples *times);

#endif
