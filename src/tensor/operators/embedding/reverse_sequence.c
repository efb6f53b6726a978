/* SPDX-License-Identifier: MIT
 * reverse_sequence: the first elements of each sequence of a batch in the reversed order, by gather_nd. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/common/composition.h"

static const char call[] = "reverse_sequence";

typedef struct sequences {
  rondo_value value, lengths;
  rondo_shape shape;
  size_t time, batch;                 /* dimensions */
  size_t order[RONDO_MAX_DIMENSIONS]; /* of a permute to [batch, time, ..] */
} sequences;

/* The lengths as I64 [batch, 1], checked when the program runs. */
static rondo_status add_lengths(rondo_program *program, const sequences *of, rondo_value *out_lengths) {
  const rondo_attributes attributes = {.sizes = {of->shape.dims[of->time]}, .size_count = 1};
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_sequence_lengths, &of->lengths, 1, &attributes, out_lengths));
  RONDO_TRY(rondo_op_cast(program, *out_lengths, RONDO_I64, out_lengths));
  return rondo_op_reshape(program, *out_lengths, (size_t[]){of->shape.dims[of->batch], 1}, 2, out_lengths);
}

/* I64 [batch, time, 1]: where each element comes from. */
static rondo_status add_sources(rondo_program *program, const sequences *of, rondo_value *out_indices) {
  const size_t batch = of->shape.dims[of->batch], time = of->shape.dims[of->time];
  rondo_value lengths, one, positions, is_reversed, reversed;
  RONDO_TRY(add_lengths(program, of, &lengths));
  RONDO_TRY(rondo_compose_positions(program, time, 0, 1, 2, &positions));
  RONDO_TRY(rondo_op_less(program, positions, lengths, &is_reversed));
  RONDO_TRY(rondo_compose_number(program, RONDO_I64, 1, &one));
  RONDO_TRY(rondo_op_sub(program, lengths, one, &reversed));
  RONDO_TRY(rondo_op_sub(program, reversed, positions, &reversed));
  RONDO_TRY(rondo_op_select(program, is_reversed, reversed, positions, out_indices));
  return rondo_op_reshape(program, *out_indices, (size_t[]){batch, time, 1}, 3, out_indices);
}

static rondo_status add_reversed(rondo_program *program, const sequences *of, rondo_value *out_value) {
  size_t back[RONDO_MAX_DIMENSIONS];
  rondo_value indices;
  for (uint32_t d = 0; d < of->shape.rank; d++) back[of->order[d]] = d;
  RONDO_TRY(add_sources(program, of, &indices));
  RONDO_TRY(rondo_op_permute(program, of->value, of->order, out_value));
  RONDO_TRY(rondo_op_gather_nd(program, *out_value, indices, 1, out_value));
  return rondo_op_permute(program, *out_value, back, out_value);
}

static rondo_status check(const rondo_program *program, sequences *of) {
  char texts[2][RONDO_SHAPE_TEXT];
  rondo_shape lengths;
  RONDO_TRY(rondo_given_shape(program, of->value, call, "value", &of->shape));
  RONDO_TRY(rondo_given_shape(program, of->lengths, call, "lengths", &lengths));
  const bool has_type = lengths.type == RONDO_I32 || lengths.type == RONDO_I64;
  if (has_type && of->time != of->batch && of->time < of->shape.rank && of->batch < of->shape.rank &&
      lengths.rank == 1 && lengths.dims[0] == of->shape.dims[of->batch])
    return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, has_type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
      "%s: lengths %s do not fit value %s with time in dimension %zu and the batch in dimension %zu: there "
      "is a length, i32 or i64, for each sequence of the batch",
      call, rondo_shape_text(texts[0], &lengths), rondo_shape_text(texts[1], &of->shape), of->time, of->batch);
}

rondo_status rondo_op_reverse_sequence(rondo_program *program, rondo_value value, rondo_value lengths,
                                       size_t time_dimension, size_t batch_dimension, rondo_value *out_value) {
  sequences of = {.value = value, .lengths = lengths, .time = time_dimension, .batch = batch_dimension};
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  RONDO_TRY(check(program, &of));
  of.order[0] = batch_dimension;
  of.order[1] = time_dimension;
  for (uint32_t d = 0, next = 2; d < of.shape.rank; d++)
    if (d != batch_dimension && d != time_dimension) of.order[next++] = d;
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_reversed(program, &of, &made);
  return rondo_compose_end(program, call, mark, status, made, out_value);
}
