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

/* What fresh memory is. */
typedef enum rondo_output_source {
  RONDO_OUTPUTS_EAGER,
  RONDO_OUTPUTS_CAPTURED, /* by the caller */
  RONDO_OUTPUTS_NESTED,
  RONDO_OUTPUTS_RECORDED
} rondo_output_source;

/* Room for handing out fewer than so many outputs. */
RONDO_MUST_USE rondo_status rondo_outputs_reserve(rondo_tree *tree, size_t count);
/* Buffers for the first `count` of the outputs that were made, each held once by the caller; the others' are released.
 * The memory of the first *out_handed_out ones belongs to buffers then, also on failure: OUT_OF_MEMORY. There is room
 * for all. */
RONDO_MUST_USE rondo_status rondo_outputs_hand_out(rondo_function *function, rondo_output_source source,
                                                   const rondo_output *made, size_t made_count,
                                                   const rondo_resolved_input *inputs, rondo_buffer **outputs,
                                                   size_t count, size_t *out_handed_out);
RONDO_MUST_USE rondo_status rondo_outputs_check_count(const rondo_function *function, size_t made, size_t asked);

#endif
