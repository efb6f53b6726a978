/* SPDX-License-Identifier: MIT
 * zeros: a tensor of zeros, filled anew in each run; its shape is in the attributes. The gradient of what the loss does
 * not depend on.
 */
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

static rondo_status infer_zeros(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)program;
  const rondo_attributes *attributes = &operation->attributes;
  return rondo_shape_make("zeros", RONDO_F32, attributes->sizes, attributes->size_count, &results[0]);
}

static rondo_status fill_zeros(rondo_resources *resources, rondo_stream *stream, const void *user) {
  (void)resources;
  return rondo_fill_async(stream, user);
}

static rondo_status emit_zeros(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_fill fill = {.dst = rondo_emit_address(emitter, operation->results[0]),
                           .element_bytes = sizeof(float),
                           .width = rondo_shape_elements(rondo_emit_shape(emitter, operation->results[0]))};
  return rondo_emit_call(emitter, fill_zeros, &fill, sizeof fill);
}

static rondo_status differentiate_zeros(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  (void)program;
  (void)operation;
  (void)result_gradients;
  (void)input_gradients;
  return RONDO_OK;
}

const rondo_operator rondo_operator_zeros = {
    .name = "zeros", .result_count = 1, .infer = infer_zeros, .differentiate = differentiate_zeros, .emit = emit_zeros};
