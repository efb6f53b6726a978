/* SPDX-License-Identifier: MIT
 * bag_offsets: checks the offsets of an embedding_bag: the first is 0, they do not decrease, and none is after the last
 * index. A wrong offset makes the run fail, as a wrong index does, and its bag becomes empty, at the end. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/common/operator_tools.h"

enum { OFFSETS, INDICES }; /* inputs */

static void bag_offsets_cpu(rondo_blocks blocks, void *const *args) {
  const void *offsets = RONDO_ARG(const void *, 0);
  const size_t bags = RONDO_ARG(size_t, 1);
  const size_t count = RONDO_ARG(size_t, 2);
  const uint32_t is_wide = RONDO_ARG(uint32_t, 3);
  int32_t *to = RONDO_ARG(int32_t *, 4);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 5);
  RONDO_EACH_ITEM(i, blocks, bags) {
    const int64_t offset = rondo_index_at(offsets, is_wide, i);
    const int64_t least = i == 0 ? 0 : rondo_index_at(offsets, is_wide, i - 1);
    const bool is_right = offset >= least && (i > 0 || offset == 0);
    /* A bound of 0 makes any index wrong. */
    to[i] = rondo_check_index(cell, i, offset, is_right ? count + 1 : 0) ? (int32_t)offset : (int32_t)count;
  }
}

RONDO_UNTYPED_KERNEL(bag_offsets, bag_offsets, RONDO_READS, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t),
                     RONDO_SCALAR(uint32_t), RONDO_WRITES, RONDO_CHECK_PARAMETERS);

static rondo_status infer_bag_offsets(const rondo_program *program, const rondo_operation *operation,
                                      rondo_shape *results) {
  RONDO_TRY(rondo_require_indices(program, operation, OFFSETS, 1));
  RONDO_TRY(rondo_require_indices(program, operation, INDICES, 1));
  if (rondo_operation_input(program, operation, INDICES)->dims[0] >= INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "there are more indices than an i32 can count");
  }
  results[0] = rondo_shape_vector(RONDO_I32, rondo_operation_input(program, operation, OFFSETS)->dims[0]);
  return RONDO_OK;
}

static rondo_status emit_bag_offsets(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *given = rondo_emit_shape(emitter, operation->inputs[OFFSETS]);
  const size_t bags = given->dims[0], count = rondo_emit_shape(emitter, operation->inputs[INDICES])->dims[0];
  const uint32_t is_wide = given->type == RONDO_I64;
  return rondo_emit_operands(emitter, operation, &bag_offsets_code,
                             rondo_emit_grid(emitter, bags, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_INPUT(OFFSETS), RONDO_OBJECT(bags), RONDO_OBJECT(count),
                                            RONDO_OBJECT(is_wide), RONDO_RESULT(0), RONDO_CHECK(OFFSETS, count + 1)));
}

RONDO_OPERATOR(bag_offsets, .inputs = {"offsets", "indices"}, .required = 2, .result_count = 1, .checks_indices = 1,
               .index_rule = "bags begin one after the other, the first at 0", .infer = infer_bag_offsets,
               .emit = emit_bag_offsets);
