/* SPDX-License-Identifier: MIT
 * Views, for which nothing runs. reshape: the same bytes with another shape (attributes: sizes). stop_gradient: the
 * value itself, like detach in PyTorch; gradients do not pass through it. bitcast: the same bytes as another type.
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/operator_tools.h"

static rondo_status infer_reshape(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  const rondo_attributes *attributes = &operation->attributes;
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_shape_make("reshape", value->type, attributes->sizes, attributes->size_count, &results[0]));
  if (rondo_shape_elements(value) == rondo_shape_elements(&results[0])) return RONDO_OK;
  char text[RONDO_SHAPE_TEXT];
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s has %zu elements, the value has %zu",
                              rondo_shape_text(text, &results[0]), rondo_shape_elements(&results[0]),
                              rondo_shape_elements(value));
}

static rondo_status differentiate_reshape(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  return rondo_program_add_shaped(program, &rondo_operator_reshape, result_gradients[0],
                                  *rondo_operation_input(program, operation, 0), &input_gradients[0]);
}

RONDO_OPERATOR(reshape, .types = RONDO_STORED_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .is_view = true, .infer = infer_reshape, .differentiate = differentiate_reshape);

rondo_status rondo_op_reshape(rondo_program *program, rondo_value value, const size_t *shape, size_t rank,
                              rondo_value *out_value) {
  if (out_value != NULL) *out_value = (rondo_value){0};
  rondo_attributes attributes;
  RONDO_TRY(rondo_read_dimensions("reshape", shape, rank, &attributes));
  return rondo_program_apply(program, &rondo_operator_reshape, &value, 1, &attributes, out_value);
}

/* stop_gradient ---------------------------------------------------------------------------------------------------- */

RONDO_OPERATOR(stop_gradient, .types = RONDO_ALL_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .is_view = true, .stops_gradients = true, .infer = rondo_infer_same);

rondo_status rondo_op_stop_gradient(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_stop_gradient, &value, 1, NULL, out_value);
}

/* bitcast ---------------------------------------------------------------------------------------------------------- */

enum { TYPE }; /* sizes */

/* The last dimension has the bytes that it had. */
static rondo_status infer_bitcast(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  const rondo_type type = (rondo_type)operation->attributes.sizes[TYPE];
  const size_t bytes = rondo_type_bytes(type);
  results[0] = *rondo_operation_input(program, operation, 0);
  const size_t from = rondo_type_bytes(results[0].type), row = rondo_shape_last(&results[0]) * from;
  if (row % bytes != 0 || (results[0].rank == 0 && bytes != from))
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the last dimension has %zu bytes, which are no whole number of %s", row,
                                rondo_type_name(type));
  if (results[0].rank > 0) results[0].dims[results[0].rank - 1] = row / bytes;
  results[0].type = type;
  return RONDO_OK;
}

RONDO_OPERATOR(bitcast, .types = RONDO_STORED_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .is_view = true, .stops_gradients = true, .infer = infer_bitcast);

rondo_status rondo_op_bitcast(rondo_program *program, rondo_value value, rondo_type type, rondo_value *out_value) {
  const rondo_attributes attributes = {.sizes = {(size_t)type}, .size_count = 1};
  rondo_shape unused;
  RONDO_TRY(rondo_program_begin(program, "bitcast", out_value));
  RONDO_TRY(rondo_shape_make("bitcast", type, NULL, 0, &unused));
  return rondo_program_apply(program, &rondo_operator_bitcast, &value, 1, &attributes, out_value);
}
