/* SPDX-License-Identifier: MIT
 * add: a + b, elementwise, of one shape. Sums the gradients of a value that is used more than once.
 */
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/kernel_support.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

static void add_span(const float *restrict a, const float *restrict b, float *restrict y, size_t count) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = i; lane < i + RONDO_LANES; lane++) y[lane] = a[lane] + b[lane];
  }
  for (; i < count; i++) y[i] = a[i] + b[i];
}

static void add_cpu(rondo_blocks blocks, void *const *args) {
  const float *a = RONDO_ARG(const float *, 0);
  const float *b = RONDO_ARG(const float *, 1);
  float *y = RONDO_ARG(float *, 2);
  const size_t count = RONDO_ARG(size_t, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    add_span(a + span.first, b + span.first, y + span.first, span.last - span.first);
  }
}

static const rondo_kernel_options add_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "add", .cpu = add_cpu, RONDO_CUDA(add),
                                              .params = {RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};

static rondo_status infer_add(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_same_shape(program, operation, 0, 1));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status differentiate_add(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  (void)program;
  (void)operation;
  input_gradients[0] = result_gradients[0];
  input_gradients[1] = result_gradients[0];
  return RONDO_OK;
}

static rondo_status emit_add(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[0]));
  const float *a = rondo_emit_address(emitter, operation->inputs[0]);
  const float *b = rondo_emit_address(emitter, operation->inputs[1]);
  float *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &add_code, rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&a, &b, &y, &count));
}

const rondo_operator rondo_operator_add = {.name = "add",
                                           .inputs = {"a", "b"},
                                           .required = 2,
                                           .result_count = 1,
                                           .infer = infer_add,
                                           .differentiate = differentiate_add,
                                           .emit = emit_add};
