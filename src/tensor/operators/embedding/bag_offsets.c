/* SPDX-License-Identifier: MIT
 * bag_offsets: looks at where the bags of an embedding_bag begin: the first at 0, none before the one before it, none
 * behind the last index. One that is wrong fails the run, as a wrong index does, and becomes an empty bag at the end.
 */
#include "tensor/compile/emit.h"
#include "tensor/operators/common/kernel_support.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

enum { OFFSETS, INDICES }; /* inputs */

static void bag_offsets_cpu(rondo_blocks blocks, void *const *args) {
  const void *offsets = RONDO_ARG(const void *, 0);
  const size_t bags = RONDO_ARG(size_t, 1);
  const size_t count = RONDO_ARG(size_t, 2);
  const uint32_t is_wide = RONDO_ARG(uint32_t, 3);
  int32_t *to = RONDO_ARG(int32_t *, 4);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 5);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, bags, 1);
    for (size_t i = span.first; i < span.last; i++) {
      const int64_t offset = rondo_index_at(offsets, is_wide, i);
      const int64_t least = i == 0 ? 0 : rondo_index_at(offsets, is_wide, i - 1);
      const bool is_right = offset >= least && (i > 0 || offset == 0);
      /* A bound of 0 makes any index wrong. */
      to[i] = rondo_check_index(cell, i, offset, is_right ? count + 1 : 0) ? (int32_t)offset : (int32_t)count;
    }
  }
}

static const rondo_kernel_options bag_offsets_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "bag_offsets", .cpu = bag_offsets_cpu, RONDO_CUDA(bag_offsets),
    .params = {RONDO_READS, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(uint32_t), RONDO_WRITES,
               RONDO_CHECK_PARAMETERS}};

static rondo_status infer_bag_offsets(const rondo_program *program, const rondo_operation *operation,
                                      rondo_shape *results) {
  RONDO_TRY(rondo_require_indices(program, operation, OFFSETS, 1));
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, 1));
  if (rondo_operation_input(program, operation, INDICES)->dims[0] >= INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "more indices than i32 can count");
  }
  results[0] = rondo_shape_vector(RONDO_I32, rondo_operation_input(program, operation, OFFSETS)->dims[0]);
  return RONDO_OK;
}

static rondo_status emit_bag_offsets(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *given = rondo_emit_shape(emitter, operation->inputs[OFFSETS]);
  const size_t bags = given->dims[0], count = rondo_emit_shape(emitter, operation->inputs[INDICES])->dims[0];
  const uint32_t is_wide = given->type == RONDO_I64;
  const void *offsets = rondo_emit_address(emitter, operation->inputs[OFFSETS]);
  int32_t *to = rondo_emit_address(emitter, operation->results[0]);
  rondo_check_memory check;
  RONDO_TRY(rondo_emit_index_check(emitter, OFFSETS, count + 1, &check));
  return rondo_emit_kernel(emitter, &bag_offsets_code, rondo_emit_grid(emitter, bags, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&offsets, &bags, &count, &is_wide, &to, RONDO_CHECK_ARGUMENTS(check)));
}

const rondo_operator rondo_operator_bag_offsets = {.name = "bag_offsets",
                                                   .inputs = {"offsets", "indices"},
                                                   .required = 2,
                                                   .result_count = 1,
                                                   .checks_indices = true,
                                                   .index_rule = "bags begin one after the other, the first at 0",
                                                   .infer = infer_bag_offsets,
                                                   .emit = emit_bag_offsets};
