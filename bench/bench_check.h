/* SPDX-License-Identifier: MIT
 * Errors in benchmarks: a failure ends the program immediately, with a message. Nothing is destroyed, because the
 * process ends.
 */
#ifndef RONDO_BENCH_BENCH_CHECK_H
#define RONDO_BENCH_BENCH_CHECK_H

#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bare_driver.h"
#include "common/timing.h"
#include "common/tool.h"

static inline void bench_exit(void) {
  (void)fflush(NULL);
  _exit(EXIT_FAILURE);
}

static inline void check(rondo_status status) {
  if (status == RONDO_OK) return;
  (void)tool_fail_status("%s", rondo_status_name(status));
  bench_exit();
}

/* Checks the result of a function of tools/rondo, which has printed the message. */
static inline void check_tool(int result) {
  if (result != TOOL_OK) bench_exit();
}

/* Checks the result of a direct call of the CUDA driver. */
static inline void check_bare(int code) { check_tool(bare_check(code, "a benchmark")); }

static inline void *bench_allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) check_tool(tool_fail_memory("%zu elements of %zu bytes", count, bytes));
  return memory;
}

static inline rondo_program *bench_program(const char *name) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = name};
  rondo_program *program = NULL;
  check(rondo_program_create(&options, &program));
  return program;
}

/* Compiles a program and destroys it. */
static inline rondo_compiled *bench_compile(rondo_program *program, rondo_device *device,
                                            const rondo_compile_options *options) {
  rondo_compiled *compiled = NULL;
  check(rondo_compile(program, device, options, &compiled));
  rondo_program_destroy(program);
  return compiled;
}

/* The nodes of a graph; the caller frees them. */
static inline rondo_node *bench_list_nodes(const rondo_graph *graph, size_t *out_count) {
  check(rondo_graph_nodes(graph, NULL, out_count));
  rondo_node *nodes = bench_allocate(*out_count, sizeof *nodes);
  check(rondo_graph_nodes(graph, nodes, out_count));
  return nodes;
}

static inline void bench_samples_create(samples *set, size_t capacity) {
  if (!samples_create(set, capacity)) check_tool(tool_fail_memory("%zu times", capacity));
}

/* Finds one of f32, bf16 and f16. Returns TOOL_OK, or TOOL_USAGE after a message. */
static inline int bench_find_type(const char *name, rondo_type *out) {
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    *out = types[i];
    if (strcmp(rondo_type_name(types[i]), name) == 0) return TOOL_OK;
  }
  return tool_fail_usage("--type takes f32, bf16 or f16, not '%s'", name);
}

#endif
