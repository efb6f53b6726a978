/* SPDX-License-Identifier: MIT
 * depth_to_space and space_to_depth move elements between the channels and the blocks of an image, by one permute.
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/composition.h"

/* A call: the image is [n, c, h, w]. */
typedef struct block_call {
  const char *name;
  size_t block;
  bool channels_first;
  bool to_space;
  rondo_shape shape;
} block_call;

static rondo_status check(const block_call *of) {
  char text[RONDO_SHAPE_TEXT];
  const size_t block = of->block, *dims = of->shape.dims;
  size_t squared;
  if (of->shape.rank == 4 && block > 0 && rondo_checked_multiply(block, block, &squared) &&
      (of->to_space ? dims[1] % squared == 0 : dims[2] % block == 0 && dims[3] % block == 0))
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    of->to_space
                        ? "%s: the value is %s; it must be [n, c, h, w] with c a multiple of the block squared, "
                          "and the block is %zu"
                        : "%s: the value is %s; it must be [n, c, h, w] with h and w multiples of the block, "
                          "which is %zu",
                    of->name, rondo_shape_text(text, &of->shape), block);
}

/* Before the permute: [n, b, b, c, h, w], or [n, c, b, b, h, w] with the channels first. */
static rondo_status add_to_space(rondo_program *program, const block_call *of, rondo_value *inout_value) {
  static const size_t orders[2][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
  const size_t *dims = of->shape.dims, b = of->block, c = dims[1] / (b * b);
  const size_t wide[2][6] = {{dims[0], b, b, c, dims[2], dims[3]}, {dims[0], c, b, b, dims[2], dims[3]}};
  RONDO_TRY(rondo_op_reshape(program, *inout_value, wide[of->channels_first], 6, inout_value));
  RONDO_TRY(rondo_op_permute(program, *inout_value, orders[of->channels_first], inout_value));
  return rondo_op_reshape(program, *inout_value, (size_t[]){dims[0], c, dims[2] * b, dims[3] * b}, 4, inout_value);
}

static rondo_status add_to_depth(rondo_program *program, const block_call *of, rondo_value *inout_value) {
  static const size_t orders[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
  const size_t *dims = of->shape.dims, b = of->block, h = dims[2] / b, w = dims[3] / b;
  RONDO_TRY(rondo_op_reshape(program, *inout_value, (size_t[]){dims[0], dims[1], h, b, w, b}, 6, inout_value));
  RONDO_TRY(rondo_op_permute(program, *inout_value, orders[of->channels_first], inout_value));
  return rondo_op_reshape(program, *inout_value, (size_t[]){dims[0], dims[1] * b * b, h, w}, 4, inout_value);
}

static rondo_status apply(rondo_program *program, block_call *of, rondo_value value, rondo_value *out_value) {
  rondo_value made = value;
  RONDO_TRY(rondo_program_begin(program, of->name, out_value));
  RONDO_TRY(rondo_given_shape(program, value, of->name, "value", &of->shape));
  RONDO_TRY(check(of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = of->to_space ? add_to_space(program, of, &made) : add_to_depth(program, of, &made);
  return rondo_compose_end(program, of->name, mark, status, made, out_value);
}

rondo_status rondo_op_depth_to_space(rondo_program *program, rondo_value value, size_t block, bool channels_first,
                                     rondo_value *out_value) {
  block_call of = {.name = "depth_to_space", .block = block, .channels_first = channels_first, .to_space = true};
  return apply(program, &of, value, out_value);
}

rondo_status rondo_op_space_to_depth(rondo_program *program, rondo_value value, size_t block, bool channels_first,
                                     rondo_value *out_value) {
  block_call of = {.name = "space_to_depth", .block = block, .channels_first = channels_first};
  return apply(program, &of, value, out_value);
}
