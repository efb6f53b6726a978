/* SPDX-License-Identifier: MIT
 * min over dimensions; not-a-number where there is one. A gradient is shared by all elements that are the smallest.
 */
#include <math.h>

#include "tensor/operators/reduction/reduction.h"

RONDO_VECTORISED(take_smaller, (float *restrict into, const float *restrict x, size_t count), (into, x, count)) {
  RONDO_EACH_LANE(i, lane, count, into[i] = ((x[i] < into[i]) | (x[i] != x[i])) ? x[i] : into[i]);
}

static const rondo_joining minimizing = {take_smaller, INFINITY};

static void min_rows_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_rows_cpu(type, &minimizing, blocks, args);
}

static void min_columns_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_columns_cpu(type, &minimizing, blocks, args);
}

static void min_parts_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_reduce_parts_cpu(type, &minimizing, blocks, args);
}

RONDO_TYPED_KERNEL(min_rows, min, RONDO_REDUCTION_PARAMETERS);
RONDO_TYPED_KERNEL(min_columns, min, RONDO_REDUCTION_PARAMETERS);
RONDO_TYPED_KERNEL(min_parts, min, RONDO_REDUCTION_PARAMETERS);

static const rondo_reduction_row min_family = {min_rows_code, min_columns_code, min_parts_code, .is_mean = false};

const rondo_operator rondo_operator_min = {.name = "min",
                                           .family = &min_family,
                                           .differentiate = rondo_differentiate_extreme,
                                           RONDO_REDUCTION_ROW(rondo_prepare_reduction, rondo_emit_reduction)};

rondo_status rondo_op_min(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, bool keeps,
                          rondo_value *out_value) {
  return rondo_apply_reduction(program, &rondo_operator_min, value, dims, dim_count, keeps, out_value);
}
