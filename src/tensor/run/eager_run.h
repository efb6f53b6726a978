/* SPDX-License-Identifier: MIT
 * Eager runs of a compiled program by an executor (exec/eager/executor.h): which of its nodes are expensive,
 * measured when it is compiled, and whether the executor is faster than a sequential run.
 */
#ifndef RONDO_TENSOR_RUN_EAGER_RUN_H
#define RONDO_TENSOR_RUN_EAGER_RUN_H

#include <rondo/program.h>

#include "exec/eager/executor.h"

typedef struct rondo_layout rondo_layout;
typedef struct rondo_run_node rondo_run_node;

typedef struct rondo_executed {
  rondo_executor *executor; /* NULL: none was given */
  rondo_executor_policy policy;
  rondo_run_node *nodes;
  uint32_t count;
  rondo_executor_plan *plan; /* NULL: runs are sequential */
} rondo_executed;

/* What the options say, checked and kept. Errors: INVALID_ARGUMENT with OTHER_DEVICE, BAD_OPTIONS. */
RONDO_MUST_USE rondo_status rondo_executed_keep(rondo_compiled *compiled, const rondo_compile_options *given);

/* Makes a program that has warmed up ready for its executor, if it has one, and decides. Runs it, which changes its
 * memory. Errors: OUT_OF_MEMORY, and what runs return. */
RONDO_MUST_USE rondo_status rondo_executed_make(const rondo_program *program, const rondo_layout *layout,
                                                rondo_compiled *compiled);

/* Its runs are done. */
void rondo_executed_deinit(rondo_compiled *compiled);

/* Enqueues a run, by the executor or sequentially. */
RONDO_MUST_USE rondo_status rondo_executed_enqueue(rondo_compiled *compiled);

#endif
