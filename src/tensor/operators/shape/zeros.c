/* SPDX-License-Identifier: MIT
 * zeros, full and arange: tensors without inputs, of floats or integers. Each run computes them again, so their memory
 * is shared like that of all results. zeros is also the gradient of values that the loss does not depend on. Threads:
 * as tensor/program/operator.h says.
 */
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/shape/zeros.h"

enum { DIMS = 0, RANK = RONDO_MAX_DIMENSIONS, TYPE, FIRST, STEP }; /* sizes; FIRST and STEP: bits of a double */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel; without padding. */
typedef struct series_shape {
  size_t count;
  double first, step;
  uint32_t type, unused;
} series_shape;

static void put_number(rondo_type type, double x, void *to, size_t at) {
  if (rondo_is_integer(type))
    rondo_store_integers(type, to, at, 1, &(int64_t){(int64_t)x});
  else
    rondo_store_one(type, to, at, (float)x);
}

static void series_cpu(rondo_blocks blocks, void *const *args) {
  const series_shape *shape = args[0];
  void *to = RONDO_ARG(void *, 1);
  RONDO_EACH_ITEM(i, blocks, shape->count)
    put_number((rondo_type)shape->type, shape->first + (double)i * shape->step, to, i);
}

RONDO_UNTYPED_KERNEL(series, zeros, RONDO_SCALAR(series_shape), RONDO_WRITES);

static rondo_status fill_zeros(rondo_resources *resources, rondo_stream *stream, const void *user) {
  (void)resources;
  return rondo_fill_async(stream, user);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static double number_at(const rondo_attributes *attributes, uint32_t place) {
  const uint64_t bits = attributes->sizes[place];
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static void set_number(rondo_attributes *attributes, uint32_t place, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  attributes->sizes[place] = bits;
}

static rondo_status infer_series(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)program;
  const size_t *sizes = operation->attributes.sizes;
  return rondo_shape_make(operation->row->name, (rondo_type)sizes[TYPE], sizes + DIMS, sizes[RANK], &results[0]);
}

static rondo_status differentiate_series(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  (void)program;
  (void)operation;
  (void)result_gradients;
  (void)input_gradients;
  return RONDO_OK;
}

/* A fill needs no kernel. */
static rondo_status emit_zeros(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t bytes = rondo_shape_bytes(rondo_emit_shape(emitter, operation->results[0]));
  const uint32_t element_bytes = bytes % 4 == 0 ? 4 : 1;
  const rondo_fill fill = {.dst = rondo_emit_address(emitter, operation->results[0]),
                           .element_bytes = element_bytes,
                           .width = bytes / element_bytes};
  return rondo_emit_call(emitter, fill_zeros, &fill, sizeof fill);
}

static rondo_status emit_series(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const series_shape shape = {.count = rondo_shape_elements(result),
                              .first = number_at(&operation->attributes, FIRST),
                              .step = number_at(&operation->attributes, STEP),
                              .type = result->type};
  return rondo_emit_operands(emitter, operation, &series_code,
                             rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_RESULT(0)));
}

RONDO_OPERATOR(zeros, .result_count = 1, .infer = infer_series, .differentiate = differentiate_series,
               .emit = emit_zeros);
RONDO_OPERATOR(full, .types = RONDO_ALL_TYPES, .result_count = 1, .infer = infer_series,
               .differentiate = differentiate_series, .emit = emit_series);
RONDO_OPERATOR(arange, .types = RONDO_ALL_TYPES, .result_count = 1, .infer = infer_series,
               .differentiate = differentiate_series, .emit = emit_series);

rondo_status rondo_program_add_zeros(rondo_program *program, const rondo_shape *shape, uint32_t *out_value) {
  rondo_attributes attributes = {.size_count = STEP + 1};
  memcpy(attributes.sizes + DIMS, shape->dims, sizeof shape->dims);
  attributes.sizes[RANK] = shape->rank;
  attributes.sizes[TYPE] = shape->type;
  return rondo_program_add(program, &rondo_operator_zeros, NULL, 0, &attributes, out_value);
}

/* Whether the operator repeats elements, or changes them by rounding at most. */
static bool keeps_elements(const rondo_program *program, const rondo_operation *operation) {
  const rondo_operator *row = operation->row;
  const bool is_rounding = row == &rondo_operator_cast &&
                           rondo_shape_is_float(rondo_program_shape(program, operation->inputs[0])) &&
                           rondo_shape_is_float(rondo_program_shape(program, operation->results[0]));
  return is_rounding || row == &rondo_operator_reshape || row == &rondo_operator_expand;
}

bool rondo_program_number(const rondo_program *program, uint32_t value, double *out) {
  const rondo_program_value *of = &program->values.items[value];
  while (of->kind == RONDO_VALUE_RESULT && keeps_elements(program, &program->operations.items[of->operation]))
    of = &program->values.items[program->operations.items[of->operation].inputs[0]];
  const bool is_number = of->kind == RONDO_VALUE_CONSTANT && of->elements == NULL;
  *out = is_number ? (double)of->initial : 0;
  if (of->kind != RONDO_VALUE_RESULT) return is_number;
  const rondo_operation *maker = &program->operations.items[of->operation];
  if (maker->row == &rondo_operator_full) *out = number_at(&maker->attributes, FIRST);
  return maker->row == &rondo_operator_full || maker->row == &rondo_operator_zeros;
}

/* Public ----------------------------------------------------------------------------------------------------------- */

bool rondo_program_number_fits(rondo_type type, double number) {
  static const struct {
    double low, high;
  } ranges[] = {[RONDO_I32] = {INT32_MIN, INT32_MAX},
                [RONDO_I64] = {-0x1p53, 0x1p53},
                [RONDO_I8] = {INT8_MIN, INT8_MAX},
                [RONDO_U8] = {0, UINT8_MAX},
                [RONDO_BOOL] = {0, 1}};
  return !rondo_is_integer(type) ||
         (number == floor(number) && number >= ranges[type].low && number <= ranges[type].high);
}

static rondo_status add_series(const rondo_operator *row, rondo_program *program, rondo_type type, const size_t *shape,
                               size_t rank, double first, double step, rondo_value *out_value) {
  rondo_attributes attributes = {.size_count = STEP + 1};
  rondo_shape made;
  RONDO_TRY(rondo_require(row->name, "out_value", out_value));
  *out_value = (rondo_value){0};
  if (rank > 0) RONDO_TRY(rondo_require(row->name, "shape", shape));
  RONDO_TRY(rondo_shape_make(row->name, type, shape, rank, &made));
  const double last = first + step * (double)(rondo_shape_elements(&made) - 1);
  if (!rondo_program_number_fits(type, first) || !rondo_program_number_fits(type, step) ||
      !rondo_program_number_fits(type, last)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: type %s cannot represent all numbers from %g to %g with step %g exactly", row->name,
                      rondo_type_name(type), first, last, step);
  }
  memcpy(attributes.sizes + DIMS, made.dims, sizeof made.dims);
  attributes.sizes[RANK] = rank;
  attributes.sizes[TYPE] = type;
  set_number(&attributes, FIRST, first);
  set_number(&attributes, STEP, step);
  return rondo_program_apply(program, row, NULL, 0, &attributes, out_value);
}

rondo_status rondo_op_full(rondo_program *program, rondo_type type, const size_t *shape, size_t rank, double number,
                           rondo_value *out_value) {
  const rondo_operator *row = number == 0 && !signbit(number) ? &rondo_operator_zeros : &rondo_operator_full;
  return add_series(row, program, type, shape, rank, number, 0, out_value);
}

rondo_status rondo_op_arange(rondo_program *program, rondo_type type, size_t count, double first, double step,
                             rondo_value *out_value) {
  return add_series(&rondo_operator_arange, program, type, &count, 1, first, step, out_value);
}
