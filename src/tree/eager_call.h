/* SPDX-License-Identifier: MIT
 * Runs a body eagerly (eager_call.c) and returns its outputs (outputs.c).
 */
#ifndef RONDO_TREE_EAGER_CALL_H
#define RONDO_TREE_EAGER_CALL_H

#include "tree/tree_internal.h"

/* Runs the body eagerly, also inside another body. `form` (may be NULL) is updated from the run. */
RONDO_MUST_USE rondo_status rondo_eager_run(rondo_function *function, rondo_form *form, rondo_stream *stream,
                                            rondo_resolved_input *inputs, bool is_warm_up, rondo_buffer **outputs,
                                            size_t count);
RONDO_MUST_USE rondo_status rondo_eager_host_step(rondo_call *call, rondo_host_function step, void *user);

void rondo_form_forget_notes(const rondo_tree *tree, rondo_form *form);
void rondo_form_forget_orders(const rondo_tree *tree, rondo_form *form);

/* Where fresh memory comes from. */
typedef enum rondo_output_source {
  RONDO_OUTPUTS_EAGER,
  RONDO_OUTPUTS_CAPTURED, /* by the caller */
  RONDO_OUTPUTS_NESTED,
  RONDO_OUTPUTS_RECORDED
} rondo_output_source;

/* Reserves buffers for fewer than so many outputs. */
RONDO_MUST_USE rondo_status rondo_outputs_reserve(rondo_tree *tree, size_t count);
/* Makes buffers for the first `count` outputs, each with one reference of the caller's, and releases the others.
 * Buffers own the memory of the first *out_made_buffers ones, on failure too: OUT_OF_MEMORY. There is room for all. */
RONDO_MUST_USE rondo_status rondo_outputs_make(rondo_function *function, rondo_output_source source,
                                               const rondo_output *made, size_t made_count,
                                               const rondo_resolved_input *inputs, rondo_buffer **outputs, size_t count,
                                               size_t *out_made_buffers);
RONDO_MUST_USE rondo_status rondo_outputs_check_count(const rondo_function *function, size_t made, size_t asked);

#endif
