/* SPDX-License-Identifier: MIT
 * det: determinants of matrices by elimination with partial pivoting, in F32 (Golub and Van Loan, "Matrix
 * Computations", 3.4). A thread computes one matrix, on a copy in the workspace. Threads: as tensor/program/operator.h
 * says.
 */
#include <math.h>

#include "tensor/operators/common/operator_tools.h"

#define MOST_ROWS 256

/* The row with the largest element of a column, from `column` on. */
static size_t pivot_of(const float *a, size_t m, size_t column) {
  size_t best = column;
  for (size_t i = column + 1; i < m; i++)
    if (fabsf(a[i * m + column]) > fabsf(a[best * m + column])) best = i;
  return best;
}

static void swap_rows(float *a, size_t m, size_t i, size_t j) {
  for (size_t k = 0; k < m; k++) {
    const float held = a[i * m + k];
    a[i * m + k] = a[j * m + k];
    a[j * m + k] = held;
  }
}

/* Overwrites a. */
static float determinant(float *a, size_t m) {
  float product = 1;
  for (size_t column = 0; column < m; column++) {
    const size_t pivot = pivot_of(a, m, column);
    if (pivot != column) {
      swap_rows(a, m, pivot, column);
      product = -product;
    }
    const float of = a[column * m + column];
    product *= of;
    for (size_t i = column + 1; i < m && of != 0; i++) {
      const float factor = a[i * m + column] / of;
      for (size_t k = column + 1; k < m; k++) a[i * m + k] -= factor * a[column * m + k];
    }
  }
  return product;
}

/* count, m, x, workspace, y */
static void det_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const size_t count = RONDO_ARG(size_t, 0), m = RONDO_ARG(size_t, 1);
  const void *x = RONDO_ARG(const void *, 2);
  float *copies = RONDO_ARG(float *, 3);
  RONDO_EACH_ITEM(i, blocks, count) {
    float *copy = copies + i * m * m;
    for (size_t k = 0; k < m * m; k++) copy[k] = rondo_load_one(type, x, i * m * m + k);
    rondo_store_one(type, RONDO_ARG(void *, 4), i, determinant(copy, m));
  }
}

RONDO_TYPED_KERNEL(det, determinant, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_READS, RONDO_UPDATES,
                   RONDO_WRITES);

static rondo_status infer_det(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2] || x->dims[x->rank - 1] > MOST_ROWS)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "x must be [.., m, m] with m at most %d; larger determinants overflow f32", MOST_ROWS);
  results[0] = *x;
  results[0].rank -= 2;
  return RONDO_OK;
}

static rondo_status prepare_det(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                size_t *out_workspace_bytes) {
  (void)resources;
  const rondo_shape *x = rondo_program_shape(program, program->operations.items[number].inputs[0]);
  *out_workspace_bytes = rondo_shape_elements(x) * sizeof(float);
  return RONDO_OK;
}

static rondo_status emit_det(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *x = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t m = x->dims[x->rank - 1], count = rondo_shape_elements(x) / (m * m);
  const rondo_grain grain = {4096 / (m * m * m) + 1, RONDO_CUDA_THREADS};
  return rondo_emit_operands(
      emitter, operation, &det_code[x->type], rondo_emit_grid(emitter, count, grain),
      RONDO_OPERANDS(RONDO_OBJECT(count), RONDO_OBJECT(m), RONDO_INPUT(0), RONDO_WORKSPACE, RONDO_RESULT(0)));
}

RONDO_OPERATOR(det, .types = RONDO_FLOATS, .inputs = {"x"}, .required = 1, .result_count = 1, .constants = 1,
               .infer = infer_det, .prepare = prepare_det, .emit = emit_det);

rondo_status rondo_op_det(rondo_program *program, rondo_value x, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_det, &x, 1, NULL, out_value);
}
