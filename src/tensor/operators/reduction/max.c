/* SPDX-License-Identifier: MIT
 * max over dimensions; not-a-number where there is one. A gradient is shared by all elements that are the largest.
 */
#include <math.h>

#include "tensor/operators/reduction/reduction.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"

RONDO_VECTORISED(take_larger, (float *restrict into, const float *restrict x, size_t count), (into, x, count)) {
  RONDO_EACH_LANE(i, lane, count, into[i] = ((x[i] > into[i]) | (x[i] != x[i])) ? x[i] : into[i]);
}

static const rondo_joining maximizing = {take_larger, -INFINITY};

static void max_rows_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_rows_cpu(type, &maximizing, blocks, args);
}

static void max_columns_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_columns_cpu(type, &maximizing, blocks, args);
}

static void max_parts_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_parts_cpu(type, &maximizing, blocks, args);
}

RONDO_TYPED_KERNEL(max_rows, max, RONDO_REDUCTION_PARAMETERS);
RONDO_TYPED_KERNEL(max_columns, max, RONDO_REDUCTION_PARAMETERS);
RONDO_TYPED_KERNEL(max_parts, max, RONDO_REDUCTION_PARAMETERS);

static const rondo_reduction_row max_family = {max_rows_code, max_columns_code, max_parts_code, .is_mean = false};

/* dx = dy / (how many are the largest) where x is the largest; of min, the smallest. */
rondo_status rondo_differentiate_extreme(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t x = operation->inputs[0];
  const rondo_attributes type = {.sizes = {rondo_program_shape(program, x)->type}, .size_count = 1};
  rondo_attributes kept = operation->attributes;
  uint32_t y, dy, is_extreme, ones, count, share;
  kept.flags[RONDO_REDUCE_KEEPS] = true;
  RONDO_TRY(rondo_add_kept(program, operation, operation->results[0], &y));
  RONDO_TRY(rondo_add_kept(program, operation, result_gradients[0], &dy));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_equal, (uint32_t[]){x, y}, 2, NULL, &is_extreme));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_cast, &is_extreme, 1, &type, &ones));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_sum, &ones, 1, &kept, &count));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_div, (uint32_t[]){dy, count}, 2, NULL, &share));
  return rondo_program_add(program, &rondo_operator_select_gradient_a, (uint32_t[]){is_extreme, share}, 2, NULL,
                           &input_gradients[0]);
}

const rondo_operator rondo_operator_max = {.name = "max",
                                           .family = &max_family,
                                           .differentiate = rondo_differentiate_extreme,
                                           RONDO_REDUCTION_ROW(rondo_prepare_reduction, rondo_emit_reduction)};

rondo_status rondo_op_max(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, bool keeps,
                          rondo_value *out_value) {
  return rondo_apply_reduction(program, &rondo_operator_max, value, dims, dim_count, keeps, out_value);
}
