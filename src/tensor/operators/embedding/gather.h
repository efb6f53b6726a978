/* SPDX-License-Identifier: MIT
 * gather and index_select: elements picked along a dimension, by indices of the result's shape or by one list that
 * all share.
 */
#ifndef RONDO_TENSOR_OPERATORS_EMBEDDING_GATHER_H
#define RONDO_TENSOR_OPERATORS_EMBEDDING_GATHER_H

#include "tensor/program/program_internal.h"

/* The same of elements that were picked along a dimension by indices, of the gradient's shape or, where they are
 * shared, one list for all (operators/gather.c). Only where there is a sum and the picks are few: else it adds nothing,
 * and out_is_added is false. */
RONDO_MUST_USE rondo_status rondo_program_add_picked_gradient(rondo_program *program,
                                                              const uint32_t *gradient_and_indices, size_t dimension,
                                                              bool shares, uint32_t *inout_sum, bool *out_is_added);

#endif
