/* SPDX-License-Identifier: MIT
 * Graphs that are a line of kernels, each with one block of one thread and two arguments, made and launched by Rondo
 * or, on a CUDA device, by the driver without Rondo. A benchmark runs the same code on both targets.
 *
 * What fails ends the program. A target belongs to one thread and lives as long as the program.
 */
#ifndef RONDO_BENCH_LINE_TARGET_H
#define RONDO_BENCH_LINE_TARGET_H

#include <rondo/rondo.h>

#include "bench/bare_driver.h"

enum { LINE_MARKED = 16, LINE_INPUTS = 8 };

/* `arguments` gives the arguments of kernel `index`: addresses, or numbers in the low bytes. The nodes of `marked`
 * kernels from `first_marked` on are kept, so that their arguments can be set. */
typedef struct line_work {
  uint32_t nodes, first_marked, marked;
  void (*arguments)(const void *user, uint32_t index, uint64_t values[2]);
  const void *user;
} line_work;

typedef union line_node {
  rondo_node rondo;
  bare_node bare;
} line_node;

typedef struct line_graph {
  void *graph;
  line_node marked[LINE_MARKED];
} line_graph;

typedef struct line_target line_target;

struct line_target {
  uint64_t (*allocate)(line_target *target, size_t bytes);
  void (*build)(line_target *target, const line_work *work, line_graph *out);
  void *(*instantiate)(line_target *target, const line_graph *graph);
  void (*discard_graph)(line_target *target, const line_graph *graph);
  void (*discard_exec)(line_target *target, void *exec);
  void (*update)(line_target *target, void *exec, const line_graph *graph);
  /* Sets the arguments of a marked kernel. */
  void (*set)(line_target *target, void *exec, const line_graph *graph, size_t mark, const uint64_t values[2]);
  void (*copy)(line_target *target, uint64_t dst, uint64_t src, size_t bytes);
  void (*launch)(line_target *target, void *exec);
  void (*wait)(line_target *target);
};

line_target *line_rondo_open(rondo_device *device, const rondo_kernel_options *kernel);
rondo_stream *line_rondo_stream(line_target *target);
/* NULL for a device that is no CUDA device. */
line_target *line_bare_open(const char *device_name, const rondo_kernel_options *kernel);

/* The first `readers` kernels read the first of LINE_INPUTS inputs, the others read one of the others; all write
 * `out`. */
typedef struct line_inputs {
  uint32_t readers;
  uint64_t inputs[LINE_INPUTS], out;
} line_inputs;

static inline void line_input_arguments(const void *user, uint32_t index, uint64_t values[2]) {
  const line_inputs *of = (const line_inputs *)user;
  values[0] = of->inputs[index < of->readers ? 0 : 1 + index % (LINE_INPUTS - 1)];
  values[1] = of->out;
}

#endif
