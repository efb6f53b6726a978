/* SPDX-License-Identifier: MIT
 * The gradient of gather, index_select and embedding, for operators that add it to a gradient in place. Threads: as
 * tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_EMBEDDING_GATHER_H
#define RONDO_TENSOR_OPERATORS_EMBEDDING_GATHER_H

#include "tensor/program/program_internal.h"

/* Adds the gradient of elements that were selected along a dimension to the sum of the other gradients, in place. The
 * indices have the gradient's shape or, if they are shared, are one list. Only if there is a sum and there are few
 * indices; else it adds nothing and *out_is_added is false. */
RONDO_MUST_USE rondo_status rondo_program_add_picked_gradient(rondo_program *program,
                                                              const uint32_t *gradient_and_indices, size_t dimension,
                                                              bool shares, uint32_t *inout_sum, bool *out_is_added);

#endif
