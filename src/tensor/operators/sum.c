/* SPDX-License-Identifier: MIT
 * sum and mean over dimensions; a gradient is repeated along them.
 */
#include "tensor/operators/reduce.h"
#include "tensor/operators/unary.h"

RONDO_VECTORISED(add_to, (float *restrict into, const float *restrict x, size_t count), (into, x, count)) {
  RONDO_EACH_LANE(i, lane, count, into[i] += x[i]);
}

static const rondo_joining summing = {add_to, 0};

static void sum_rows_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_rows_cpu(type, &summing, blocks, args);
}

static void sum_columns_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_columns_cpu(type, &summing, blocks, args);
}

static void sum_parts_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_parts_cpu(type, &summing, blocks, args);
}

RONDO_TYPED_KERNEL(sum_rows, sum, RONDO_REDUCTION_PARAMETERS);
RONDO_TYPED_KERNEL(sum_columns, sum, RONDO_REDUCTION_PARAMETERS);
RONDO_TYPED_KERNEL(sum_parts, sum, RONDO_REDUCTION_PARAMETERS);

static const rondo_reduction_row sum_family = {sum_rows_code, sum_columns_code, sum_parts_code, .is_mean = false};
static const rondo_reduction_row mean_family = {sum_rows_code, sum_columns_code, sum_parts_code, .is_mean = true};

static rondo_status differentiate_sum(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  return rondo_add_spread(program, operation, result_gradients[0], &input_gradients[0]);
}

static rondo_status differentiate_mean(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes share = rondo_scale_attributes(1.0f / (float)rondo_reduction_elements(program, operation));
  uint32_t scaled;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_scale, &result_gradients[0], 1, &share, &scaled));
  return rondo_add_spread(program, operation, scaled, &input_gradients[0]);
}

const rondo_operator rondo_operator_sum = {
    .name = "sum", .family = &sum_family, .differentiate = differentiate_sum, RONDO_REDUCTION_ROW};
const rondo_operator rondo_operator_mean = {
    .name = "mean", .family = &mean_family, .differentiate = differentiate_mean, RONDO_REDUCTION_ROW};

rondo_status rondo_op_sum(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, bool keeps,
                          rondo_value *out_value) {
  return rondo_apply_reduction(program, &rondo_operator_sum, value, dims, dim_count, keeps, out_value);
}

rondo_status rondo_op_mean(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, bool keeps,
                           rondo_value *out_value) {
  return rondo_apply_reduction(program, &rondo_operator_mean, value, dims, dim_count, keeps, out_value);
}
