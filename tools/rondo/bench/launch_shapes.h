/* SPDX-License-Identifier: MIT
 * The benchmark of launches: the work that is launched. A shape is empty kernels with an order among them; the same
 * calls enqueue it on a target's streams or, while the first stream captures, make the graph of it.
 *
 * Calls return TOOL_OK, or TOOL_FAILURE after a message.
 */
#ifndef RONDO_TOOL_LAUNCH_SHAPES_H
#define RONDO_TOOL_LAUNCH_SHAPES_H

#include "bench/bench_target.h"
#include "common/timed_runs.h"

typedef struct launch_shape {
  const char *name;
  uint32_t nodes, streams;
  int (*enqueue)(bench_target *target, uint32_t nodes);
} launch_shape;

/* The document's three shapes of 32 kernels, then straight lines of 320, 3200 and 10,000. */
enum { SHAPE_LINE, SHAPE_BRANCHES, SHAPE_FORK, SHAPE_LINE_320, SHAPE_LINE_3200, SHAPE_LINE_10000, LAUNCH_SHAPES };
extern const launch_shape launch_shapes[LAUNCH_SHAPES];

/* Captures the shape and instantiates it, ready to be launched on the first stream. */
int launch_record(bench_target *target, const launch_shape *shape, void **out_exec);

/* Does the shape's work `repeats` times with each way of measuring, waiting after each: by streams when exec is NULL.
 */
int launch_measure(bench_target *target, const launch_shape *shape, void *exec, uint32_t repeats, cost *to);

/* Launches exec once and waits; adds the host's time of the launch. */
int launch_measure_call(bench_target *target, void *exec, samples *host);

/* Launches exec `count` times in a row; adds the device's time of one. */
int launch_measure_row(bench_target *target, void *exec, uint32_t count, samples *device);

/* The physical limit: one thread calls the functions of as many kernels in a loop. Adds the mean of several loops. */
void launch_measure_loop(uint32_t nodes, samples *times);

#endif
