/* SPDX-License-Identifier: MIT
 * What operators of one input that work element by element share.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

/* Kernels ---------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(unary_blocks, (rondo_type type, rondo_unary_chunk chunk, rondo_blocks blocks, void *const *args),
                 (type, chunk, blocks, args)) {
  const void *x = RONDO_ARG(const void *, 0);
  void *y = RONDO_ARG(void *, 1);
  const size_t count = RONDO_ARG(size_t, 2);
  float rooms[2][RONDO_CHUNK];
  const rondo_span span = rondo_blocks_span(blocks, count, RONDO_LANES);
  RONDO_EACH_CHUNK(at, length, span.first, span.last) {
    float *to = rondo_chunk_of(type, y, at, rooms[1]);
    chunk(rondo_load_chunk(type, x, at, length, rooms[0]), to, length);
    rondo_store_chunk(type, y, at, length, to);
  }
}

RONDO_VECTORISED(slope_blocks, (rondo_type type, rondo_slope_chunk chunk, rondo_blocks blocks, void *const *args),
                 (type, chunk, blocks, args)) {
  const void *kept = RONDO_ARG(const void *, 0);
  const void *dy = RONDO_ARG(const void *, 1);
  void *dx = RONDO_ARG(void *, 2);
  const size_t count = RONDO_ARG(size_t, 3);
  float rooms[3][RONDO_CHUNK];
  const rondo_span span = rondo_blocks_span(blocks, count, RONDO_LANES);
  RONDO_EACH_CHUNK(at, length, span.first, span.last) {
    float *to = rondo_chunk_of(type, dx, at, rooms[2]);
    chunk(rondo_load_chunk(type, kept, at, length, rooms[0]), rondo_load_chunk(type, dy, at, length, rooms[1]), to,
          length);
    rondo_store_chunk(type, dx, at, length, to);
  }
}

void rondo_unary_cpu(rondo_type type, rondo_unary_chunk chunk, rondo_blocks blocks, void *const *args) {
  unary_blocks(type, chunk, blocks, args);
}

void rondo_slope_cpu(rondo_type type, rondo_slope_chunk chunk, rondo_blocks blocks, void *const *args) {
  slope_blocks(type, chunk, blocks, args);
}

void rondo_compute_unary(const rondo_chunk_call *call) {
  const rondo_unary *family = call->row->family;
  family->chunk(call->terms[0], call->result, call->count);
}

void rondo_compute_slope(const rondo_chunk_call *call) {
  const rondo_unary *family = call->row->family;
  family->slope(call->terms[0], call->terms[1], call->result, call->count);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

rondo_status rondo_infer_unary(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

rondo_status rondo_infer_slope(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_infer_unary(program, operation, results));
  return rondo_require_same_shape(program, operation, 0, 1);
}

rondo_status rondo_differentiate_unary(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_unary *family = operation->row->family;
  const uint32_t inputs[] = {family->keeps_result ? operation->results[0] : operation->inputs[0], result_gradients[0]};
  return rondo_program_add(program, family->gradient, inputs, 2, NULL, &input_gradients[0]);
}

rondo_status rondo_emit_unary(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_unary *family = operation->row->family;
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t count = rondo_shape_elements(shape);
  const void *x = rondo_emit_address(emitter, operation->inputs[0]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &family->code[shape->type], rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN),
                           RONDO_ARGS(&x, &y, &count));
}

rondo_status rondo_emit_slope(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_unary *family = operation->row->family;
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t count = rondo_shape_elements(shape);
  const void *kept = rondo_emit_address(emitter, operation->inputs[0]);
  const void *dy = rondo_emit_address(emitter, operation->inputs[1]);
  void *dx = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &family->code[shape->type], rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN),
                           RONDO_ARGS(&kept, &dy, &dx, &count));
}
