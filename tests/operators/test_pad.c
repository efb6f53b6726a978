/* SPDX-License-Identifier: MIT
 * pad (PR-8): each mode, for up to six dimensions, and of bytes.
 */
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { MODE, BEFORE, AFTER = BEFORE + 6 }; /* sizes; counts are stored plus 10, because they may be negative */
#define COUNT(call, place, d) ((int64_t)(call)->sizes[(place) + (d)] - 10)

static void draw_of(uint64_t *seed, test_call *call, rondo_pad_mode mode) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 5);
  test_draw_shape(seed, rank, rank > 3 ? 3 : 6, shape);
  if (rank > 0 && test_random_below(seed, 3) == 0) shape[rank - 1] = test_draw_between(seed, 60, 140);
  call->sizes[MODE] = mode;
  for (size_t d = 0; d < rank; d++) {
    const size_t most = mode == RONDO_PAD_REFLECT ? shape[d] - 1 : mode == RONDO_PAD_CIRCULAR ? shape[d] : 4;
    for (size_t side = BEFORE; side <= AFTER; side += AFTER - BEFORE)
      call->sizes[side + d] = 10 + test_draw_between(seed, 0, most < 4 ? most : 4);
    if (mode == RONDO_PAD_CONSTANT && test_random_below(seed, 3) == 0)
      call->sizes[BEFORE + d] = 10 - test_draw_between(seed, 0, shape[d] - 1);
  }
  test_add_float(call, shape, rank, -3, 3);
}

static void draw_constant(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_PAD_CONSTANT); }
static void draw_reflect(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_PAD_REFLECT); }
static void draw_replicate(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_PAD_REPLICATE); }
static void draw_circular(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_PAD_CIRCULAR); }

static void draw_bytes(uint64_t *seed, test_call *call) {
  draw_of(seed, call, (rondo_pad_mode)test_draw_between(seed, 0, 3));
  call->inputs[0].type = test_random_below(seed, 2) == 0 ? RONDO_I8 : RONDO_I64;
  call->inputs[0].low = -90;
  call->inputs[0].high = 90;
}

/* One dimension of many, so that blocks begin within rows. */
static void draw_long(uint64_t *seed, test_call *call) {
  const size_t shape[] = {2, 9000 + test_draw_between(seed, 0, 5)};
  call->sizes[MODE] = test_draw_between(seed, 0, 3);
  for (size_t d = 0; d < 2; d++)
    call->sizes[BEFORE + d] = call->sizes[AFTER + d] = 10 + d * test_draw_between(seed, 0, 9);
  test_add_float(call, shape, 2, -3, 3);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  int64_t before[RONDO_MAX_DIMENSIONS], after[RONDO_MAX_DIMENSIONS];
  for (size_t d = 0; d < call->inputs[0].rank; d++) {
    before[d] = COUNT(call, BEFORE, d);
    after[d] = COUNT(call, AFTER, d);
  }
  return rondo_op_pad(program, in[0], before, after, (rondo_pad_mode)call->sizes[MODE], 7, result);
}

/* The index in the value, by steps: back and forth, or round and round. */
static int64_t index_of(rondo_pad_mode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == RONDO_PAD_CONSTANT) return -1;
  if (mode == RONDO_PAD_REPLICATE) return at < 0 ? 0 : size - 1;
  const int64_t period = mode == RONDO_PAD_CIRCULAR ? size : 2 * size - 2;
  const int64_t in_period = (at % period + period) % period;
  return in_period < size ? in_period : period - in_period;
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  size_t shape[RONDO_MAX_DIMENSIONS];
  for (size_t d = 0; d < value->rank; d++)
    shape[d] = (size_t)((int64_t)value->shape[d] + COUNT(call, BEFORE, d) + COUNT(call, AFTER, d));
  for (size_t i = 0; i < test_elements(shape, value->rank); i++) {
    size_t rest = i, from = 0, weight = 1;
    bool is_constant = false;
    for (size_t d = value->rank; d > 0; d--) {
      const int64_t at =
          index_of((rondo_pad_mode)call->sizes[MODE], (int64_t)(rest % shape[d - 1]) - COUNT(call, BEFORE, d - 1),
                   (int64_t)value->shape[d - 1]);
      is_constant = is_constant || at < 0;
      from += (size_t)(at < 0 ? 0 : at) * weight;
      weight *= value->shape[d - 1];
      rest /= shape[d - 1];
    }
    y[i] = is_constant ? 7 : in[0][from];
  }
}

static void refuse(rondo_program *program, rondo_value x, int64_t before, int64_t after, rondo_pad_mode mode,
                   rondo_reason reason) {
  rondo_value y;
  assert_error(rondo_op_pad(program, x, &before, &after, mode, 0, &y), RONDO_INVALID_ARGUMENT, reason);
  assert_true(y.id == 0);
}

UNIT_TEST(test_what_cannot_be_padded) {
  rondo_program *program = test_new_program();
  rondo_value x, bytes, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3}, 1, &x));
  assert_ok(rondo_program_input(program, "bytes", RONDO_U8, (size_t[]){3}, 1, &bytes));
  refuse(program, x, 3, 0, RONDO_PAD_REFLECT, RONDO_REASON_SHAPE);
  assert_message("pad(value 'x' [3]): dimension 0, which has 3 elements, cannot get 3 before and 0 after");
  refuse(program, x, 0, 4, RONDO_PAD_CIRCULAR, RONDO_REASON_SHAPE);
  refuse(program, x, -1, 0, RONDO_PAD_REPLICATE, RONDO_REASON_SHAPE);
  refuse(program, x, -1, -2, RONDO_PAD_CONSTANT, RONDO_REASON_SHAPE);
  refuse(program, x, INT64_MAX, INT64_MAX, RONDO_PAD_CONSTANT, RONDO_REASON_SHAPE);
  refuse(program, x, INT64_MIN, 0, RONDO_PAD_CONSTANT, RONDO_REASON_SHAPE);
  refuse(program, x, 0, 0, (rondo_pad_mode)4, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_pad(program, bytes, (int64_t[]){1}, (int64_t[]){1}, RONDO_PAD_CONSTANT, -1, &y),
               RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_pad(program, x, NULL, (int64_t[]){1}, RONDO_PAD_CONSTANT, 0, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

#define PAD .build = build, .reference = reference

static const test_operator rows[] = {
    {.name = "pad", .draw = draw_constant, PAD},
    {.name = "pad", .draw = draw_reflect, PAD},
    {.name = "pad", .draw = draw_replicate, PAD},
    {.name = "pad", .draw = draw_circular, PAD},
    {.name = "pad", .draw = draw_bytes, PAD, .only_f32 = true, .has_no_gradient = true},
    {.name = "pad", .draw = draw_long, PAD, .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
