/* SPDX-License-Identifier: MIT
 * Runs a body eagerly (eager_call.c) and returns its outputs (outputs.c).
 */
#ifndef RONDO_TREE_EAGER_CALL_H
#define RONDO_TREE_EAGER_CALL_H

#include "tree/tree_internal.h"

/* Begins to run the body eagerly, also inside another body. Fills `call`. Updates `form` from the run at the end; NULL
 * is allowed. */
void rondo_eager_begin(rondo_call *call, rondo_function *function, rondo_form *form, rondo_stream *stream,
                       rondo_resolved_input *inputs, bool is_warm_up);
/* Ends the run, in which the body returned `returned`. */
RONDO_MUST_USE rondo_status rondo_eager_end(rondo_call *call, rondo_status returned, rondo_buffer **outputs,
                                            size_t count);
RONDO_MUST_USE rondo_status rondo_eager_host_step(rondo_call *call, rondo_host_function step, void *user);

void rondo_form_forget_notes(const rondo_tree *tree, rondo_form *form);
void rondo_form_forget_orders(const rondo_tree *tree, rondo_form *form);

/* Who provides the memory of fresh outputs. */
typedef enum rondo_output_source {
  RONDO_OUTPUTS_EAGER,
  RONDO_OUTPUTS_CAPTURED, /* in a capture of the caller */
  RONDO_OUTPUTS_NESTED,
  RONDO_OUTPUTS_RECORDED
} rondo_output_source;

/* Reserves scratch memory, so that calls may request fewer outputs than `count`. */
RONDO_MUST_USE rondo_status rondo_outputs_reserve(rondo_tree *tree, size_t count);
/* Makes buffers for the outputs. Returns the first `count` of them, each with one reference, and releases the others.
 * Memory was reserved for all. After a failure (OUT_OF_MEMORY), buffers own the memory of the first *out_made_buffers
 * outputs, and the caller owns the rest. */
RONDO_MUST_USE rondo_status rondo_outputs_make(rondo_function *function, rondo_output_source source,
                                               const rondo_output *made, size_t made_count,
                                               const rondo_resolved_input *inputs, rondo_buffer **outputs, size_t count,
                                               size_t *out_made_buffers);
RONDO_MUST_USE rondo_status rondo_outputs_check_count(const rondo_function *function, size_t made, size_t asked);

#endif
