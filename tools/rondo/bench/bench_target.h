/* SPDX-License-Identifier: MIT
 * What benchmarks compare: Rondo and, on a CUDA device, the bare driver. Both are called through one table of
 * functions, so that both do the same work. A target has one kernel, which runs one block of one thread, and some
 * streams. It can enqueue the kernel on its streams, capture it from the first stream, or build a graph that is a line
 * of kernels.
 *
 * Calls return TOOL_OK, or TOOL_FAILURE after a message. A target belongs to one thread.
 */
#ifndef RONDO_TOOL_BENCH_TARGET_H
#define RONDO_TOOL_BENCH_TARGET_H

#include <rondo/rondo.h>
#include <stdbool.h>

#include "bench/bare_driver.h"

enum { TARGET_STREAMS = 30, TARGET_MARKED = 16, TARGET_INPUTS = 8 };

/* A line of kernels with two arguments. `arguments` sets those of kernel `index`: addresses, or numbers in the low
 * bytes. The nodes of `marked` kernels, beginning with `first_marked`, are kept so that their arguments can be set
 * later. */
typedef struct target_line {
  uint32_t nodes, first_marked, marked;
  void (*arguments)(const void *user, uint32_t index, uint64_t values[2]);
  const void *user;
} target_line;

typedef union target_node {
  rondo_node rondo;
  bare_node bare;
} target_node;

typedef struct target_graph {
  void *graph;
  target_node marked[TARGET_MARKED];
} target_graph;

typedef struct bench_target bench_target;

typedef struct target_calls {
  int (*enqueue)(bench_target *target, size_t stream);                /* the kernel, without arguments */
  int (*enqueue_line)(bench_target *target, const target_line *line); /* on the first stream */
  int (*fork)(bench_target *target);                                  /* records an event on the first stream */
  int (*follow)(bench_target *target, size_t stream);                 /* the stream waits for that event */
  int (*join)(bench_target *target, size_t stream);                   /* the first stream waits for this stream */
  int (*wait)(bench_target *target, size_t stream);
  int (*mark)(bench_target *target, bool is_end); /* records the begin or end event on the first stream */
  int (*elapsed)(bench_target *target, double *out_us);
  int (*allocate)(bench_target *target, size_t bytes, uint64_t *out_address); /* never freed */
  int (*copy)(bench_target *target, uint64_t dst, uint64_t src, size_t bytes);
  int (*begin_capture)(bench_target *target);
  int (*end_capture)(bench_target *target, target_graph *out);
  int (*build)(bench_target *target, const target_line *line, target_graph *out);
  int (*instantiate)(bench_target *target, const target_graph *graph, bool uploads, void **out_exec);
  int (*update)(bench_target *target, void *exec, const target_graph *graph);
  /* Sets the arguments of a marked kernel node. */
  int (*set)(bench_target *target, void *exec, const target_graph *graph, size_t mark, const uint64_t values[2]);
  int (*launch)(bench_target *target, void *exec, size_t stream);
  int (*discard_graph)(bench_target *target, const target_graph *graph);
  int (*discard_exec)(bench_target *target, void *exec);
  int (*destroy)(bench_target *target);
} target_calls;

/* Each target's struct begins with this one. */
struct bench_target {
  const target_calls *calls;
};

/* Creates a target with `streams` streams, at most TARGET_STREAMS. The caller owns the device. *out is NULL after a
 * failure. */
int rondo_target_create(rondo_device *device, const rondo_kernel_options *kernel, size_t streams, bench_target **out);
rondo_stream *rondo_target_stream(bench_target *target); /* the first one */
/* Returns TOOL_OK and sets *out to NULL if the device is not a CUDA device. */
int bare_target_create(const char *device_name, const rondo_kernel_options *kernel, size_t streams, bench_target **out);
const bare_device *bare_target_device(bench_target *target);
bare_stream bare_target_stream(bench_target *target); /* the first one */
/* NULL is allowed. */
int bench_target_destroy(bench_target *target);

/* The first `readers` kernels of a line read the first input, and each of the others reads one of the other inputs. All
 * write `out`. */
typedef struct target_inputs {
  uint32_t readers;
  uint64_t inputs[TARGET_INPUTS], out;
} target_inputs;

void target_input_arguments(const void *inputs, uint32_t index, uint64_t values[2]);

#endif
