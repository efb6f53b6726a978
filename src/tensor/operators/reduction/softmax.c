/* SPDX-License-Identifier: MIT
 * softmax and log_softmax over the last dimension, with the row's maximum subtracted first; and their gradients, from
 * the result y: dx = y (dy - y·dy), and dx = dy - exp(y) sum(dy). Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

typedef struct softmax_family {
  bool is_log;
  const rondo_operator *gradient;
} softmax_family;

/* A scalar argument of the kernels; without padding. */
typedef struct softmax_shape {
  size_t rows, columns;
  size_t is_log;
} softmax_shape;

static softmax_shape shape_of(const rondo_shape *value, const rondo_operation *operation) {
  const softmax_family *family = operation->row->family;
  const size_t columns = rondo_shape_last(value);
  assert(rondo_shape_elements(value) % columns == 0);
  return (softmax_shape){rondo_shape_elements(value) / columns, columns, family->is_log};
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

RONDO_INLINE void shift_chunk(const float *restrict x, float by, float *restrict y, size_t count) {
  RONDO_EACH_LANE(i, lane, count, y[i] = x[i] - by);
}

RONDO_INLINE void softmax_row(rondo_type type, const softmax_shape *shape, size_t first, const void *x, void *y) {
  float buffers[2][RONDO_CHUNK];
  const float largest = rondo_typed_row_max(type, x, first, shape->columns);
  const float sum = rondo_typed_row_exp_sum(type, x, first, largest, shape->columns);
  const float log_sum = logf(sum);
  RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
    const float *from = rondo_load_chunk(type, x, first + at, length, buffers[0]);
    float *to = rondo_chunk_of(type, y, first + at, buffers[1]);
    if (shape->is_log != 0) {
      shift_chunk(from, largest, to, length); /* in two steps, because largest + log_sum might round log_sum away */
      for (size_t i = 0; i < length; i++) to[i] -= log_sum;
    } else {
      rondo_row_scaled_exp(from, largest, 1.0f / sum, to, length);
    }
    rondo_store_chunk(type, y, first + at, length, to);
  }
}

RONDO_VECTORISED_KERNEL(softmax_cpu) {
  const softmax_shape *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  RONDO_EACH_ITEM(row, blocks, shape->rows) softmax_row(type, shape, row * shape->columns, x, y);
}

RONDO_TYPED_KERNEL(softmax, softmax, RONDO_SCALAR(softmax_shape), RONDO_READS, RONDO_WRITES);

static rondo_status infer_softmax(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  if (results[0].rank > 0) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "a scalar has no last dimension");
}

static rondo_status differentiate_softmax(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  const softmax_family *family = operation->row->family;
  const uint32_t inputs[] = {operation->results[0], result_gradients[0]};
  return rondo_program_add(program, family->gradient, inputs, 2, NULL, &input_gradients[0]);
}

static rondo_status emit_softmax(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const softmax_shape shape = shape_of(value, operation);
  return rondo_emit_operands(emitter, operation, &softmax_code[value->type],
                             rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.columns)),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* y·dy of the row, or the sum of dy. */
RONDO_INLINE float gradient_sum(rondo_type type, const softmax_shape *shape, size_t first, const void *y,
                                const void *dy) {
  float sums[RONDO_LANES] = {0}, buffers[2][RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
    const float *of_y = rondo_load_chunk(type, y, first + at, length, buffers[0]);
    const float *of_dy = rondo_load_chunk(type, dy, first + at, length, buffers[1]);
    if (shape->is_log != 0)
      RONDO_EACH_LANE(i, lane, length, sums[lane] += of_dy[i]);
    else
      RONDO_EACH_LANE(i, lane, length, sums[lane] += of_y[i] * of_dy[i]);
  }
  return rondo_join_lanes(sums);
}

RONDO_INLINE void softmax_slope(const float *restrict y, const float *restrict dy, float sum, float *restrict dx,
                                size_t count) {
  RONDO_EACH_LANE(i, lane, count, dx[i] = y[i] * (dy[i] - sum));
}

RONDO_INLINE void log_softmax_slope(const float *restrict y, const float *restrict dy, float sum, float *restrict dx,
                                    size_t count) {
  RONDO_EACH_LANE(i, lane, count, dx[i] = dy[i] - rondo_exp_negative(y[i]) * sum);
}

RONDO_VECTORISED_KERNEL(softmax_gradient_cpu) {
  const softmax_shape *shape = args[0];
  const void *y = RONDO_ARG(const void *, 1);
  const void *dy = RONDO_ARG(const void *, 2);
  void *dx = RONDO_ARG(void *, 3);
  float buffers[3][RONDO_CHUNK];
  RONDO_EACH_ITEM(row, blocks, shape->rows) {
    const size_t first = row * shape->columns;
    const float sum = gradient_sum(type, shape, first, y, dy);
    RONDO_EACH_CHUNK(at, length, 0, shape->columns) {
      float *to = rondo_chunk_of(type, dx, first + at, buffers[2]);
      const float *of_y = rondo_load_chunk(type, y, first + at, length, buffers[0]);
      const float *of_dy = rondo_load_chunk(type, dy, first + at, length, buffers[1]);
      if (shape->is_log != 0)
        log_softmax_slope(of_y, of_dy, sum, to, length);
      else
        softmax_slope(of_y, of_dy, sum, to, length);
      rondo_store_chunk(type, dx, first + at, length, to);
    }
  }
}

RONDO_TYPED_KERNEL(softmax_gradient, softmax, RONDO_SCALAR(softmax_shape), RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_softmax_gradient(const rondo_program *program, const rondo_operation *operation,
                                           rondo_shape *results) {
  RONDO_TRY(infer_softmax(program, operation, results));
  return rondo_require_same_shape(program, operation, 0, 1);
}

static rondo_status emit_softmax_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const softmax_shape shape = shape_of(value, operation);
  return rondo_emit_operands(emitter, operation, &softmax_gradient_code[value->type],
                             rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.columns)),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_INPUT(1), RONDO_RESULT(0)));
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static const softmax_family softmax_rows = {false, &rondo_operator_softmax_gradient};
static const softmax_family log_softmax_rows = {true, &rondo_operator_log_softmax_gradient};

#define FORWARD_ROW                                                              \
  .inputs = {"value"}, .required = 1, .result_count = 1, .infer = infer_softmax, \
  .differentiate = differentiate_softmax, .emit = emit_softmax
#define GRADIENT_ROW                                                                                   \
  .inputs = {"result", "gradient"}, .required = 2, .result_count = 1, .infer = infer_softmax_gradient, \
  .emit = emit_softmax_gradient

RONDO_OPERATOR(softmax, .types = RONDO_FLOATS, .family = &softmax_rows, FORWARD_ROW);
RONDO_OPERATOR(softmax_gradient, .family = &softmax_rows, GRADIENT_ROW);
RONDO_OPERATOR(log_softmax, .types = RONDO_FLOATS, .family = &log_softmax_rows, FORWARD_ROW);
RONDO_OPERATOR(log_softmax_gradient, .family = &log_softmax_rows, GRADIENT_ROW);

rondo_status rondo_op_softmax(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_softmax, &value, 1, NULL, out_value);
}

rondo_status rondo_op_log_softmax(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_log_softmax, &value, 1, NULL, out_value);
}
