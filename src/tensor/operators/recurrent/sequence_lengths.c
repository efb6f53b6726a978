/* SPDX-License-Identifier: MIT
 * sequence_lengths: checks how many steps the sequences of lstm, gru, rnn and reverse_sequence have: 0 to all. A wrong
 * length makes the run fail, as a wrong index does, and becomes 0. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/operator_tools.h"

enum { STEPS }; /* sizes */

static void sequence_lengths_cpu(rondo_blocks blocks, void *const *args) {
  const void *lengths = RONDO_ARG(const void *, 0);
  const size_t count = RONDO_ARG(size_t, 1), steps = RONDO_ARG(size_t, 2);
  const uint32_t is_wide = RONDO_ARG(uint32_t, 3);
  int32_t *to = RONDO_ARG(int32_t *, 4);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 5);
  RONDO_EACH_ITEM(i, blocks, count) {
    const int64_t length = rondo_index_at(lengths, is_wide, i);
    to[i] = rondo_check_index(cell, i, length, steps + 1) ? (int32_t)length : 0;
  }
}

RONDO_UNTYPED_KERNEL(sequence_lengths, sequence_lengths, RONDO_READS, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t),
                     RONDO_SCALAR(uint32_t), RONDO_WRITES, RONDO_CHECK_PARAMETERS);

static rondo_status infer_lengths(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(rondo_require_indices(program, operation, 0, 1));
  if (operation->attributes.sizes[STEPS] >= INT32_MAX)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the sequences have more steps than an i32 can count");
  results[0] = rondo_shape_vector(RONDO_I32, rondo_operation_input(program, operation, 0)->dims[0]);
  return RONDO_OK;
}

static rondo_status emit_lengths(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *given = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t count = given->dims[0], steps = operation->attributes.sizes[STEPS];
  const uint32_t is_wide = given->type == RONDO_I64;
  return rondo_emit_operands(emitter, operation, &sequence_lengths_code,
                             rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_INPUT(0), RONDO_OBJECT(count), RONDO_OBJECT(steps),
                                            RONDO_OBJECT(is_wide), RONDO_RESULT(0), RONDO_CHECK(0, steps + 1)));
}

RONDO_OPERATOR(sequence_lengths, .inputs = {"lengths"}, .required = 1, .result_count = 1, .checks_indices = 1,
               .index_rule = "length 0 was used instead", .infer = infer_lengths, .emit = emit_lengths);
