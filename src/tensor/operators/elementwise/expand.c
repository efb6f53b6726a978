/* SPDX-License-Identifier: MIT
 * expand: broadcasts a value of any type to the shape in the attributes. Its gradient is the sum over the broadcast
 * dimensions. Threads: as tensor/program/operator.h says.
 */
#include "base/error.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/program/operation.h"

RONDO_TERM_CHUNK(expand_floats, float, float, a)
RONDO_TERM_CHUNK(expand_integers, int64_t, int64_t, a)

RONDO_BROADCAST_CPU(expand)
RONDO_NUMBER_KERNEL(expand, expand, RONDO_BROADCAST_PARAMETERS_1);

static rondo_status infer_expand(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_attributes *attributes = &operation->attributes;
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_shape_make("expand", value->type, attributes->sizes, attributes->size_count, &results[0]));
  bool fits = value->rank <= results[0].rank;
  for (uint32_t d = 1; fits && d <= value->rank; d++) {
    const size_t dim = value->dims[value->rank - d];
    fits = dim == 1 || dim == results[0].dims[results[0].rank - d];
  }
  if (fits) return RONDO_OK;
  char text[RONDO_SHAPE_TEXT];
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "it does not broadcast to %s: each dimension, aligned at the last, must be equal or 1",
                              rondo_shape_text(text, &results[0]));
}

static rondo_status differentiate_expand(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  return rondo_add_sum_to(program, result_gradients[0], operation->inputs[0], &input_gradients[0]);
}

static const rondo_broadcast_row expand_family = {
    .code = expand_code, .floats = expand_floats, .integers = expand_integers};

RONDO_OPERATOR(expand, .types = RONDO_ALL_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .family = &expand_family, .infer = infer_expand, .differentiate = differentiate_expand,
               .emit = rondo_emit_broadcast, .element = RONDO_ELEMENT(rondo_compute_broadcast, expand, expand));

rondo_status rondo_op_expand(rondo_program *program, rondo_value value, const size_t *shape, size_t rank,
                             rondo_value *out_value) {
  rondo_attributes attributes;
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_read_dimensions("expand", shape, rank, &attributes));
  return rondo_program_apply(program, &rondo_operator_expand, &value, 1, &attributes, out_value);
}
