/* SPDX-License-Identifier: MIT
 * Operators that move elements: flip, roll, tile, tril and triu, depth_to_space and space_to_depth; eye and bitcast.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* The position of element `at`. */
static void position_of(const size_t *shape, size_t rank, size_t at, size_t *position) {
  for (size_t d = rank; d > 0; d--) {
    position[d - 1] = at % shape[d - 1];
    at /= shape[d - 1];
  }
}

static size_t place_of(const size_t *shape, size_t rank, const size_t *position) {
  size_t place = 0;
  for (size_t d = 0; d < rank; d++) place = place * shape[d] + position[d];
  return place;
}

static void draw_any(uint64_t *seed, test_call *call, size_t least_rank) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, least_rank, 6);
  test_draw_shape(seed, rank, rank > 4 ? 3 : 6, shape);
  test_add_float(call, shape, rank, -2, 2);
}

/* flip: sizes are the dimensions after their number. roll: and the shifts, plus 8. --------------------------------- */

static void draw_flip(uint64_t *seed, test_call *call) {
  draw_any(seed, call, 0);
  call->sizes[0] = 0;
  for (size_t d = call->inputs[0].rank; d > 0; d--)
    if (test_random_below(seed, 2) == 0) call->sizes[1 + call->sizes[0]++] = d - 1;
}

/* Neighbours are copied together: rows whose length is even. */
static void draw_flip_of_rows(uint64_t *seed, test_call *call) {
  test_add_float(call, (size_t[]){2, 3, 2 * test_draw_between(seed, 1, 9)}, 3, -2, 2);
  call->sizes[0] = test_draw_between(seed, 1, 2);
  call->sizes[1] = test_random_below(seed, 2);
  call->sizes[2] = 1 - call->sizes[1];
}

static rondo_status build_flip(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  return rondo_op_flip(program, in[0], call->sizes + 1, call->sizes[0], y);
}

static void reference_flip(const test_call *call, double *const *in, double *y) {
  const test_tensor *x = &call->inputs[0];
  size_t position[RONDO_MAX_DIMENSIONS];
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    position_of(x->shape, x->rank, i, position);
    for (size_t k = 0; k < call->sizes[0]; k++) {
      const size_t d = call->sizes[1 + k];
      position[d] = x->shape[d] - 1 - position[d];
    }
    y[i] = in[0][place_of(x->shape, x->rank, position)];
  }
}

static void draw_roll(uint64_t *seed, test_call *call) {
  draw_flip(seed, call);
  for (size_t k = 0; k < call->sizes[0]; k++) call->sizes[8 + k] = test_random_below(seed, 17);
}

static rondo_status build_roll(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  int64_t shifts[RONDO_MAX_DIMENSIONS];
  for (size_t k = 0; k < call->sizes[0]; k++) shifts[k] = (int64_t)call->sizes[8 + k] - 8;
  return rondo_op_roll(program, in[0], shifts, call->sizes + 1, call->sizes[0], y);
}

static void reference_roll(const test_call *call, double *const *in, double *y) {
  const test_tensor *x = &call->inputs[0];
  size_t position[RONDO_MAX_DIMENSIONS];
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    position_of(x->shape, x->rank, i, position);
    for (size_t k = 0; k < call->sizes[0]; k++) {
      const size_t d = call->sizes[1 + k];
      position[d] = (position[d] + 16 * x->shape[d] + call->sizes[8 + k] - 8) % x->shape[d];
    }
    y[place_of(x->shape, x->rank, position)] = in[0][i];
  }
}

/* tile: sizes are the repeats -------------------------------------------------------------------------------------- */

static void draw_tile(uint64_t *seed, test_call *call) {
  draw_any(seed, call, 0);
  for (size_t d = 0; d < call->inputs[0].rank; d++)
    call->sizes[d] = test_random_below(seed, 2) == 0 ? 1 : test_draw_between(seed, 1, 3);
}

static rondo_status build_tile(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  return rondo_op_tile(program, in[0], call->sizes, y);
}

static void reference_tile(const test_call *call, double *const *in, double *y) {
  const test_tensor *x = &call->inputs[0];
  size_t position[RONDO_MAX_DIMENSIONS], shape[RONDO_MAX_DIMENSIONS];
  for (size_t d = 0; d < x->rank; d++) shape[d] = x->shape[d] * call->sizes[d];
  for (size_t i = 0; i < test_elements(shape, x->rank); i++) {
    position_of(shape, x->rank, i, position);
    for (size_t d = 0; d < x->rank; d++) position[d] %= x->shape[d];
    y[i] = in[0][place_of(x->shape, x->rank, position)];
  }
}

/* tril and triu: sizes[0] is the diagonal plus 4; the family is not NULL for triu ---------------------------------- */

static void draw_triangle(uint64_t *seed, test_call *call) {
  draw_any(seed, call, 2);
  call->sizes[0] = test_random_below(seed, 12) == 0 ? 100 : test_random_below(seed, 9);
}

static rondo_status build_triangle(const test_call *call, rondo_program *program, const rondo_value *in,
                                   rondo_value *y) {
  const int64_t diagonal = (int64_t)call->sizes[0] - 4;
  return call->op->family == NULL ? rondo_op_tril(program, in[0], diagonal, y)
                                  : rondo_op_triu(program, in[0], diagonal, y);
}

static void reference_triangle(const test_call *call, double *const *in, double *y) {
  const test_tensor *x = &call->inputs[0];
  const size_t columns = x->shape[x->rank - 1], rows = x->shape[x->rank - 2];
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    const int64_t above = (int64_t)(i % columns) - (int64_t)(i / columns % rows) - ((int64_t)call->sizes[0] - 4);
    y[i] = (call->op->family == NULL ? above <= 0 : above >= 0) ? in[0][i] : 0;
  }
}

/* depth_to_space and space_to_depth: the block, the order, whether it is to depth ---------------------------------- */

enum { BLOCK, CHANNELS_FIRST, TO_DEPTH };

static void draw_blocks(uint64_t *seed, test_call *call) {
  const size_t block = call->sizes[BLOCK] = test_draw_between(seed, 1, 3), wide = test_random_below(seed, 2);
  call->sizes[CHANNELS_FIRST] = test_random_below(seed, 2);
  call->sizes[TO_DEPTH] = wide;
  const size_t c = test_draw_between(seed, 1, 3), h = test_draw_between(seed, 1, 3), w = test_draw_between(seed, 1, 4);
  const size_t shape[] = {test_draw_between(seed, 1, 2), wide != 0 ? c : c * block * block, wide != 0 ? h * block : h,
                          wide != 0 ? w * block : w};
  test_add_float(call, shape, 4, -2, 2);
}

static rondo_status build_blocks(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const bool first = call->sizes[CHANNELS_FIRST] != 0;
  return call->sizes[TO_DEPTH] != 0 ? rondo_op_space_to_depth(program, in[0], call->sizes[BLOCK], first, y)
                                    : rondo_op_depth_to_space(program, in[0], call->sizes[BLOCK], first, y);
}

/* Goes over the positions [n, k, y, x] of the image with few channels. */
static void reference_blocks(const test_call *call, double *const *in, double *y) {
  const size_t *given = call->inputs[0].shape, b = call->sizes[BLOCK];
  const bool to_depth = call->sizes[TO_DEPTH] != 0;
  const size_t few[] = {given[0], to_depth ? given[1] : given[1] / (b * b), to_depth ? given[2] : given[2] * b,
                        to_depth ? given[3] : given[3] * b};
  const size_t many[] = {few[0], few[1] * b * b, few[2] / b, few[3] / b};
  for (size_t at = 0; at < test_input_elements(call, 0); at++) {
    size_t p[4];
    position_of(few, 4, at, p);
    const size_t i = p[2] % b, j = p[3] % b;
    const size_t channel = call->sizes[CHANNELS_FIRST] != 0 ? (p[1] * b + i) * b + j : (i * b + j) * few[1] + p[1];
    const size_t other = place_of(many, 4, (size_t[]){p[0], channel, p[2] / b, p[3] / b});
    y[to_depth ? other : at] = in[0][to_depth ? at : other];
  }
}

/* eye and bitcast -------------------------------------------------------------------------------------------------- */

TEST(test_on3_eye) {
  float a[6];
  uint8_t b[6];
  int64_t c[9];
  rondo_program *program = test_new_program();
  rondo_value out;
  assert_ok(rondo_op_eye(program, RONDO_F32, 2, 3, 1, &out));
  assert_ok(rondo_program_output(program, "a", out));
  assert_ok(rondo_op_eye(program, RONDO_BOOL, 3, 2, -1, &out));
  assert_ok(rondo_program_output(program, "b", out));
  assert_ok(rondo_op_eye(program, RONDO_I64, 3, 3, INT64_MAX, &out));
  assert_ok(rondo_program_output(program, "c", out));
  test_run_program(t, program, (const test_bytes[]){{.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("a", a), TEST_BYTES("b", b), TEST_BYTES("c", c), {.name = NULL}});
  assert_memory_equal(a, ((float[]){0, 1, 0, 0, 0, 1}), sizeof a);
  assert_memory_equal(b, ((uint8_t[]){0, 0, 1, 0, 0, 1}), sizeof b);
  for (size_t i = 0; i < 9; i++) assert_true(c[i] == 0);
}

TEST(test_on3_bytes_of_bitcast) {
  static const float x[2][2] = {{1, -2}, {0.5f, INFINITY}};
  int32_t whole[4];
  uint8_t bytes[16];
  rondo_program *program = test_new_program();
  rondo_value in, out;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 2}, 2, &in));
  assert_ok(rondo_op_bitcast(program, in, RONDO_I32, &out));
  assert_ok(rondo_op_bitwise_or(program, out, out, &out));
  assert_ok(rondo_program_output(program, "whole", out));
  assert_ok(rondo_op_bitcast(program, in, RONDO_U8, &out));
  assert_ok(rondo_op_reshape(program, out, (size_t[]){2, 8}, 2, &out)); /* [2, 8] */
  assert_ok(rondo_program_output(program, "bytes", out));
  assert_ok(rondo_op_bitcast(program, out, RONDO_I64, &out));
  assert_error(rondo_op_bitcast(program, out, RONDO_F64, &out), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("whole", whole), TEST_BYTES("bytes", bytes), {.name = NULL}});
  assert_memory_equal(whole, x, sizeof whole);
  assert_memory_equal(bytes, x, sizeof bytes);
}

UNIT_TEST(test_on3_what_cannot_be_moved) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  const size_t twice[] = {1, 1}, none[] = {1, 0}, many[] = {SIZE_MAX, 2};
  assert_ok(rondo_program_input(program, "x", RONDO_U8, (size_t[]){2, 3}, 2, &x));
  assert_error(rondo_op_flip(program, x, twice, 2, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("flip: dimension 1 is named twice, or does not exist: the value has 2, counted from 0");
  assert_error(rondo_op_roll(program, x, NULL, twice, 2, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_op_tile(program, x, none, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("tile: dimension 1, which has 3 elements, cannot be repeated 0 times");
  assert_error(rondo_op_tile(program, x, many, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_bitcast(program, x, RONDO_I32, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the last dimension has 3 bytes, which are no whole number of i32");
  assert_error(rondo_op_depth_to_space(program, x, 2, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_ok(rondo_op_reshape(program, x, (size_t[]){6}, 1, &x));
  assert_error(rondo_op_tril(program, x, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("tril: the value is [6] u8; it must be matrices [.., m, n]");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define ROW(operator) .draw = draw_##operator, .build = build_##operator, .reference = reference_##operator

static const test_operator rows[] = {
    {.name = "flip", ROW(flip)},
    {.name = "flip of rows", .draw = draw_flip_of_rows, .build = build_flip, .reference = reference_flip},
    {.name = "roll", ROW(roll)},
    {.name = "tile", ROW(tile)},
    {.name = "tril", ROW(triangle)},
    {.name = "triu", ROW(triangle), .family = ""},
    {.name = "depth_to_space and space_to_depth", ROW(blocks)},
};

TEST_OPERATOR_MAIN(rows)
