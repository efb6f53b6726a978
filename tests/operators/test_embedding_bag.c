/* SPDX-License-Identifier: MIT
 * embedding_bag: bags of one size and bags that begin at offsets, empty ones among them; sums and means; weights.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { COMBINE, HAS_OFFSETS, HAS_WEIGHTS }; /* sizes */

#define MOST_BAGS 12

static void draw_common(uint64_t *seed, test_call *call) {
  const size_t rows = test_draw_between(seed, 1, 20);
  const size_t columns =
      test_random_below(seed, 6) == 0 ? test_draw_between(seed, 250, 1200) : test_draw_between(seed, 1, 40);
  test_add_float(call, (size_t[]){rows, columns}, 2, -1, 1);
  call->sizes[COMBINE] = test_random_below(seed, 2) == 0 ? RONDO_COMBINE_MEAN : RONDO_COMBINE_SUM;
  call->sizes[HAS_WEIGHTS] = test_random_below(seed, 2);
}

static void add_indices(uint64_t *seed, test_call *call, const size_t *shape, size_t rank) {
  test_tensor *indices = test_add_index(call, shape, rank, call->inputs[0].shape[0]);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
  if (call->sizes[HAS_WEIGHTS]) test_add_float(call, shape, rank, -1, 1);
}

static void draw_even(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 3);
  draw_common(seed, call);
  test_draw_shape(seed, rank, 7, shape);
  add_indices(seed, call, shape, rank);
}

static void draw_offsets(uint64_t *seed, test_call *call) {
  static double offsets[MOST_BAGS];
  const size_t count = test_draw_between(seed, 1, 30), bags = test_draw_between(seed, 1, MOST_BAGS);
  size_t at = 0;
  draw_common(seed, call);
  add_indices(seed, call, &count, 1);
  for (size_t i = 0; i < bags; i++) {
    offsets[i] = (double)at;
    at += test_draw_between(seed, 0, (count - at) / 2);
  }
  test_tensor *input = test_add_index(call, &bags, 1, count);
  input->values = offsets;
  if (test_random_below(seed, 2) == 0) input->type = RONDO_I64;
  call->sizes[HAS_OFFSETS] = 1;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const rondo_value none = {0};
  const rondo_value weights = call->sizes[HAS_WEIGHTS] ? in[2] : none;
  const rondo_value offsets = call->sizes[HAS_OFFSETS] ? in[2 + call->sizes[HAS_WEIGHTS]] : none;
  return rondo_op_embedding_bag(program, in[0], in[1], offsets, weights, (rondo_combine)call->sizes[COMBINE], result);
}

static void bag(const test_call *call, double *const *in, size_t first, size_t last, double *y) {
  const size_t columns = call->inputs[0].shape[1];
  for (size_t k = 0; k < columns; k++) {
    y[k] = 0;
    for (size_t i = first; i < last; i++)
      y[k] += in[0][(size_t)in[1][i] * columns + k] * (call->sizes[HAS_WEIGHTS] ? in[2][i] : 1);
    if (call->sizes[COMBINE] == RONDO_COMBINE_MEAN && last > first) y[k] /= (double)(last - first);
  }
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[1], count = test_input_elements(call, 1);
  const size_t size = call->inputs[1].shape[call->inputs[1].rank - 1], at = 2 + call->sizes[HAS_WEIGHTS];
  const size_t bags = call->sizes[HAS_OFFSETS] ? test_input_elements(call, at) : count / size;
  for (size_t i = 0; i < bags; i++) {
    size_t first = i * size, last = first + size;
    if (call->sizes[HAS_OFFSETS]) {
      first = (size_t)in[at][i];
      last = i + 1 < bags ? (size_t)in[at][i + 1] : count;
    }
    bag(call, in, first, last, y + i * columns);
  }
}

TEST_OPERATOR(test_even_bags, .name = "embedding_bag", .draw = draw_even, .build = build, .reference = reference)
TEST_OPERATOR(test_bags_at_offsets, .name = "embedding_bag", .draw = draw_offsets, .build = build,
              .reference = reference)

static void test_what_does_not_fit(void **state) {
  rondo_program *program = test_new_program();
  rondo_value table, indices, weights, y;
  const rondo_value none = {0};
  (void)state;
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (size_t[]){5, 3}, 2, &table));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){4, 2}, 2, &indices));
  assert_ok(rondo_program_input(program, "weights", RONDO_F32, (size_t[]){4, 3}, 2, &weights));
  assert_invalid(rondo_op_embedding_bag(program, table, indices, none, weights, RONDO_COMBINE_SUM, &y),
                 RONDO_REASON_SHAPE);
  assert_message("weights 'weights' [4, 3]");
  assert_invalid(rondo_op_embedding_bag(program, table, indices, indices, none, RONDO_COMBINE_SUM, &y),
                 RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_embedding_bag(program, table, indices, none, none, (rondo_combine)9, &y),
                 RONDO_REASON_OUT_OF_RANGE);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_even_bags), test_case(test_bags_at_offsets),
                                     test_case(test_what_does_not_fit)};
  return test_main(tests);
}
