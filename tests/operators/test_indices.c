/* SPDX-License-Identifier: MIT
 * Operators with indices: embedding, embedding_bag (bags of one size and bags at offsets, empty ones among them; sums
 * and means; weights), gather, index_select and one_hot, by indices of both types; wrong indices and offsets.
 */
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSION }; /* sizes of gather and index_select */

/* embedding -------------------------------------------------------------------------------------------------------- */

static void draw_embedding(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rows = test_draw_between(seed, 1, 30), rank = test_draw_between(seed, 0, 3);
  const size_t columns =
      test_random_below(seed, 6) == 0 ? test_draw_between(seed, 250, 1200) : test_draw_between(seed, 1, 40);
  test_draw_shape(seed, rank, 6, shape);
  test_add_float(call, (size_t[]){rows, columns}, 2, -2, 2);
  test_tensor *indices = test_add_index(call, shape, rank, rows);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
}

/* Many indices, many rows and wide rows; every gradient is compared. */
static void draw_chosen_embedding(uint64_t *seed, test_call *call) {
  static const size_t chosen[][3] = {{5, 3, 1600}, {4200, 2, 30}, {3, 1100, 5}};
  const size_t *sizes = chosen[test_random_below(seed, 3)];
  test_add_float(call, sizes, 2, -1, 1);
  (void)test_add_index(call, &sizes[2], 1, sizes[0]);
}

static rondo_status build_embedding(const test_call *call, rondo_program *program, const rondo_value *in,
                                    rondo_value *result) {
  (void)call;
  return rondo_op_embedding(program, in[0], in[1], result);
}

static void reference_embedding(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[1];
  for (size_t i = 0; i < test_input_elements(call, 1); i++) {
    for (size_t k = 0; k < columns; k++) y[i * columns + k] = in[0][(size_t)in[1][i] * columns + k];
  }
}

TEST(test_wrong_indices_embedding) {
  rondo_program *program = test_new_program();
  rondo_value table, indices, y;
  const int64_t wrong[] = {0, 4, 5, -7};
  float result[12];
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (size_t[]){5, 3}, 2, &table));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){4}, 1, &indices));
  assert_ok(rondo_op_embedding(program, table, indices, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "embedding (operator 0): indices has 5 at position 2, which is not in 0 .. 4; row 0 was used instead", result,
      sizeof result);
}

/* gather and index_select ------------------------------------------------------------------------------------------ */

/* index_select has one list of indices for all; its rows may be long. */
static void draw_gather(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const bool shares = call->op->family != NULL;
  const size_t rank = test_draw_between(seed, 1, 4), dimension = test_random_below(seed, (uint32_t)rank);
  test_draw_shape(seed, rank, 8, shape);
  if (shares && test_random_below(seed, 8) == 0) shape[rank - 1] = test_draw_between(seed, 200, 600);
  test_add_float(call, shape, rank, -2, 2);
  const size_t size = shape[dimension], picked = shape[dimension] = test_draw_between(seed, 1, 9);
  for (size_t d = 0; !shares && d < rank && test_random_below(seed, 3) == 0; d++)
    if (d != dimension) shape[d] = test_draw_between(seed, 1, shape[d]);
  const size_t list[] = {test_draw_between(seed, 1, 3), picked},
               list_rank = rank > 3 ? 1 : test_draw_between(seed, 0, 2);
  test_tensor *indices = shares ? test_add_index(call, list_rank == 1 ? &picked : list, list_rank, size)
                                : test_add_index(call, shape, rank, size);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
  call->sizes[DIMENSION] = dimension;
}

static rondo_status build_gather(const test_call *call, rondo_program *program, const rondo_value *in,
                                 rondo_value *result) {
  return (call->op->family != NULL ? rondo_op_index_select : rondo_op_gather)(program, in[0], in[1],
                                                                              call->sizes[DIMENSION], result);
}

static void reference_picks(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0], *indices = &call->inputs[1];
  const size_t dimension = call->sizes[DIMENSION];
  const bool shares = call->op->family != NULL;
  size_t sizes[RONDO_MAX_DIMENSIONS];
  memcpy(sizes, shares ? value->shape : indices->shape, sizeof sizes);
  if (shares) sizes[dimension] = test_input_elements(call, 1);
  for (size_t at = 0; at < test_elements(sizes, value->rank); at++) {
    size_t rest = at, from = 0, stride = 1;
    for (size_t d = value->rank; d > 0; d--) {
      const size_t i = rest % sizes[d - 1];
      from += (d - 1 == dimension ? (size_t)in[1][shares ? i : at] : i) * stride;
      stride *= value->shape[d - 1];
      rest /= sizes[d - 1];
    }
    y[at] = in[0][from];
  }
}

TEST(test_wrong_indices_gather) {
  rondo_program *program = test_new_program();
  rondo_value value, indices, many, y;
  const int32_t wrong[] = {0, 2, 1, 3};
  float result[4];
  assert_ok(rondo_program_input(program, "value", RONDO_F32, (size_t[]){2, 3}, 2, &value));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2, 2}, 2, &indices));
  assert_invalid(rondo_op_gather(program, value, indices, 2, &y), RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: value has 2, counted from 0");
  assert_ok(rondo_program_input(program, "many", RONDO_I32, (size_t[]){3, 2}, 2, &many));
  assert_invalid(rondo_op_gather(program, value, many, 1, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_gather(program, value, value, 1, &y), RONDO_REASON_TYPE);
  assert_ok(rondo_op_gather(program, value, indices, 1, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "gather (operator 0): indices has 3 at position 3, which is not in 0 .. 2; element 0 was used instead", result,
      sizeof result);
}

TEST(test_wrong_indices_index_select) {
  rondo_program *program = test_new_program();
  rondo_value value, indices, y;
  const int32_t wrong[] = {1, -1};
  int32_t result[2][2];
  assert_ok(rondo_op_arange(program, RONDO_I32, 6, 1, 1, &value));
  assert_ok(rondo_op_reshape(program, value, (size_t[]){2, 3}, 2, &value));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2}, 1, &indices));
  assert_invalid(rondo_op_index_select(program, value, indices, 2, &y), RONDO_REASON_SHAPE);
  assert_ok(rondo_program_input(program, "floats", RONDO_F32, (size_t[]){2}, 1, &y));
  assert_invalid(rondo_op_index_select(program, value, y, 1, &y), RONDO_REASON_TYPE);
  assert_ok(rondo_op_index_select(program, value, indices, 1, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "index_select (operator 2): indices has -1 at position 1, which is not in 0 .. 2; element 0 was used instead",
      result, sizeof result);
  assert_memory_equal(result, ((int32_t[2][2]){{2, 1}, {5, 4}}), sizeof result);
}

/* one_hot ---------------------------------------------------------------------------------------------------------- */

enum { SIZE, TYPE }; /* sizes of one_hot */

static void draw_one_hot(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32,
                                     RONDO_I64, RONDO_I8,  RONDO_U8,   RONDO_BOOL};
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 3);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[SIZE] = test_draw_between(seed, 1, 12);
  call->sizes[TYPE] = types[test_random_below(seed, 8)];
  test_tensor *indices = test_add_index(call, shape, rank, call->sizes[SIZE]);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
}

static rondo_status build_one_hot(const test_call *call, rondo_program *program, const rondo_value *in,
                                  rondo_value *result) {
  return rondo_op_one_hot(program, in[0], call->sizes[SIZE], (rondo_type)call->sizes[TYPE], result);
}

static void reference_one_hot(const test_call *call, double *const *in, double *y) {
  const size_t size = call->sizes[SIZE];
  for (size_t i = 0; i < test_input_elements(call, 0) * size; i++) y[i] = in[0][i / size] == (double)(i % size);
}

TEST(test_wrong_indices_one_hot) {
  rondo_program *program = test_new_program();
  rondo_value indices, y, other;
  const int64_t wrong[] = {1, INT64_C(1) << 40};
  float result[2][2];
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){2}, 1, &indices));
  assert_invalid(rondo_op_one_hot(program, indices, 0, RONDO_F32, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_one_hot(program, indices, 2, (rondo_type)77, &y), RONDO_REASON_TYPE);
  assert_ok(rondo_op_one_hot(program, indices, 2, RONDO_F32, &y));
  assert_invalid(rondo_op_one_hot(program, y, 2, RONDO_F32, &other), RONDO_REASON_TYPE);
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "one_hot (operator 0): indices has 2147483647 or more at position 1, which is not in 0 .. 1; its row is zeros",
      result, sizeof result);
  assert_near(result[0], ((float[]){0, 1, 0, 0}), 4, 0);
}

/* embedding_bag ---------------------------------------------------------------------------------------------------- */

enum { COMBINE, HAS_OFFSETS, HAS_WEIGHTS, HAS_LAST }; /* sizes */

#define MOST_BAGS 12

static void draw_bag_table(uint64_t *seed, test_call *call) {
  const size_t rows = test_draw_between(seed, 1, 20);
  const size_t columns =
      test_random_below(seed, 6) == 0 ? test_draw_between(seed, 250, 1200) : test_draw_between(seed, 1, 40);
  test_add_float(call, (size_t[]){rows, columns}, 2, -1, 1);
  call->sizes[COMBINE] = test_random_below(seed, 2) == 0 ? RONDO_COMBINE_MEAN : RONDO_COMBINE_SUM;
  call->sizes[HAS_WEIGHTS] = test_random_below(seed, 2);
}

static void add_bag_indices(uint64_t *seed, test_call *call, const size_t *shape, size_t rank) {
  test_tensor *indices = test_add_index(call, shape, rank, call->inputs[0].shape[0]);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
  if (call->sizes[HAS_WEIGHTS]) test_add_float(call, shape, rank, -1, 1);
}

static void draw_even_bags(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 3);
  draw_bag_table(seed, call);
  test_draw_shape(seed, rank, 7, shape);
  add_bag_indices(seed, call, shape, rank);
}

static void draw_at_offsets(uint64_t *seed, test_call *call, size_t least) {
  static double offsets[MOST_BAGS];
  const size_t count = test_draw_between(seed, 1, 30), bags = test_draw_between(seed, least, MOST_BAGS);
  size_t at = 0;
  draw_bag_table(seed, call);
  add_bag_indices(seed, call, &count, 1);
  for (size_t i = 0; i < bags; i++) {
    offsets[i] = (double)at;
    at += test_draw_between(seed, 0, (count - at) / 2);
  }
  test_tensor *input = test_add_index(call, &bags, 1, count);
  input->values = offsets;
  if (test_random_below(seed, 2) == 0) input->type = RONDO_I64;
  call->sizes[HAS_OFFSETS] = 1;
}

static void draw_bags_at_offsets(uint64_t *seed, test_call *call) { draw_at_offsets(seed, call, 1); }

/* The last offset ends the last bag; there may be indices after it. */
static void draw_bags_with_last_offset(uint64_t *seed, test_call *call) {
  draw_at_offsets(seed, call, 2);
  call->sizes[HAS_LAST] = 1;
}

static rondo_status build_bag(const test_call *call, rondo_program *program, const rondo_value *in,
                              rondo_value *result) {
  const rondo_value none = {0};
  const rondo_value weights = call->sizes[HAS_WEIGHTS] ? in[2] : none;
  const rondo_value offsets = call->sizes[HAS_OFFSETS] ? in[2 + call->sizes[HAS_WEIGHTS]] : none;
  const rondo_embedding_bag_options options = {RONDO_EMBEDDING_BAG_OPTIONS_INIT,
                                               .combine = (rondo_combine)call->sizes[COMBINE], .offsets = offsets,
                                               .weights = weights, .include_last_offset = call->sizes[HAS_LAST] != 0};
  return rondo_op_embedding_bag_with(program, in[0], in[1], &options, result);
}

static void reduce_bag(const test_call *call, double *const *in, size_t first, size_t last, double *y) {
  const size_t columns = call->inputs[0].shape[1];
  for (size_t k = 0; k < columns; k++) {
    y[k] = 0;
    for (size_t i = first; i < last; i++)
      y[k] += in[0][(size_t)in[1][i] * columns + k] * (call->sizes[HAS_WEIGHTS] ? in[2][i] : 1);
    if (call->sizes[COMBINE] == RONDO_COMBINE_MEAN && last > first) y[k] /= (double)(last - first);
  }
}

static void reference_bag(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[1], count = test_input_elements(call, 1);
  const size_t size = call->inputs[1].shape[call->inputs[1].rank - 1], at = 2 + call->sizes[HAS_WEIGHTS];
  const size_t begins = call->sizes[HAS_OFFSETS] ? test_input_elements(call, at) : count / size;
  const size_t bags = begins - call->sizes[HAS_LAST];
  for (size_t i = 0; i < bags; i++) {
    size_t first = i * size, last = first + size;
    if (call->sizes[HAS_OFFSETS]) {
      first = (size_t)in[at][i];
      last = i + 1 < begins ? (size_t)in[at][i + 1] : count;
    }
    reduce_bag(call, in, first, last, y + i * columns);
  }
}

TEST(test_bags_that_do_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value table, indices, weights, y;
  const rondo_value none = {0};
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
  rondo_embedding_bag_options options = {RONDO_EMBEDDING_BAG_OPTIONS_INIT, .include_last_offset = true};
  assert_invalid(rondo_op_embedding_bag_with(program, table, indices, &options, &y), RONDO_REASON_SHAPE);
  assert_message("include_last_offset needs offsets");
  assert_ok(rondo_program_input(program, "one", RONDO_I32, (size_t[]){1}, 1, &options.offsets));
  assert_invalid(rondo_op_embedding_bag_with(program, table, options.offsets, &options, &y), RONDO_REASON_SHAPE);
  assert_message("at least 2");
  assert_invalid(rondo_op_embedding_bag_with(program, table, indices, NULL, &y), RONDO_REASON_NULL_ARGUMENT);
}

/* Wrong offsets fail the run and touch no other memory. */
TEST(test_wrong_offsets_of_bag_offsets) {
  const struct {
    int32_t offsets[3];
    const char *message;
  } cases[] = {{{0, 3, 9}, "offsets has 9 at position 2, which is not in 0 .. 6; bags begin one after the other"},
               {{1, 3, 6}, "offsets has 1 at position 0"},
               {{0, 4, 3}, "offsets has 3 at position 2"},
               {{0, -1, 3}, "offsets has -1 at position 1"},
               {{0, INT32_MAX, INT32_MAX}, "offsets has 2147483647 at position 1"}};
  rondo_program *program = test_new_program();
  rondo_value table, indices, offsets, y, loss, gradient;
  float result[9];
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (size_t[]){5, 3}, 2, &table));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){6}, 1, &indices));
  assert_ok(rondo_program_input(program, "offsets", RONDO_I32, (size_t[]){3}, 1, &offsets));
  assert_ok(rondo_op_embedding_bag(program, table, indices, offsets, (rondo_value){0}, RONDO_COMBINE_MEAN, &y));
  assert_ok(rondo_op_mse(program, y, y, RONDO_COMBINE_SUM, &loss));
  assert_ok(rondo_program_gradients(program, loss, &table, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_ok(rondo_compiled_write(compiled, "offsets", cases[i].offsets, sizeof cases[i].offsets));
    assert_ok(rondo_compiled_run(compiled));
    assert_error(rondo_compiled_read(compiled, "y", result, sizeof result), RONDO_EXECUTION_FAILED,
                 RONDO_REASON_OUT_OF_RANGE);
    assert_message(cases[i].message);
  }
  const int32_t right[] = {0, 6, 6};
  assert_ok(rondo_compiled_write(compiled, "offsets", right, sizeof right));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", result, sizeof result));
}

/* Tied tables ------------------------------------------------------------------------------------------------------ */

/* The rows, or the bags of two, are also multiplied with the table, as a language model's are. So the gradient of the
 * look-ups is added to that of the product. */
static void draw_tied(uint64_t *seed, test_call *call) {
  const size_t rows = test_draw_between(seed, 3, 60), columns = test_draw_between(seed, 1, 12);
  const size_t bags = test_draw_between(seed, 65, 120);
  test_add_float(call, (size_t[]){rows, columns}, 2, -1, 1);
  call->sizes[COMBINE] = RONDO_COMBINE_SUM;
  add_bag_indices(seed, call, (size_t[]){bags, 2}, call->op->family == NULL ? 1 : 2);
}

static rondo_status build_tied(const test_call *call, rondo_program *program, const rondo_value *in,
                               rondo_value *result) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  const test_build build = call->op->family == NULL ? build_embedding : build_bag;
  rondo_value found;
  const rondo_status status = build(call, program, in, &found);
  return status != RONDO_OK ? status : rondo_op_matmul_with(program, found, in[0], &options, result);
}

static void reference_tied(const test_call *call, double *const *in, double *y) {
  static double found[120 * 12];
  const size_t rows = call->inputs[0].shape[0], columns = call->inputs[0].shape[1];
  const size_t bags = call->inputs[1].shape[0];
  (call->op->family == NULL ? reference_embedding : reference_bag)(call, in, found);
  for (size_t i = 0; i < bags * rows; i++) {
    y[i] = 0;
    for (size_t k = 0; k < columns; k++) y[i] += found[i / rows * columns + k] * in[0][i % rows * columns + k];
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define EMBEDDING \
  .build = build_embedding, .reference = reference_embedding, .tolerance = 2e-6, .gradient_tolerance = 1e-5

#define TIED .draw = draw_tied, .build = build_tied, .reference = reference_tied, .tolerance = 2e-5

static const test_operator rows[] = {
    {.name = "embedding", EMBEDDING, .draw = draw_embedding},
    {.name = "embedding", EMBEDDING, .draw = draw_chosen_embedding, .only_f32 = true, .gradient_samples = SIZE_MAX},
    {.name = "embedding", EMBEDDING, .draw = draw_embedding, .takes_nan = true},
    {.name = "gather", .draw = draw_gather, .build = build_gather, .reference = reference_picks},
    {.name = "index_select",
     .draw = draw_gather,
     .build = build_gather,
     .reference = reference_picks,
     .family = "shares its indices"},
    {.name = "one_hot",
     .draw = draw_one_hot,
     .build = build_one_hot,
     .reference = reference_one_hot,
     .only_f32 = true,
     .has_no_gradient = true},
    {.name = "embedding_bag", .draw = draw_even_bags, .build = build_bag, .reference = reference_bag},
    {.name = "embedding_bag", .draw = draw_bags_at_offsets, .build = build_bag, .reference = reference_bag},
    {.name = "embedding_bag", .draw = draw_bags_with_last_offset, .build = build_bag, .reference = reference_bag},
    {.name = "embedding", TIED},
    {.name = "embedding_bag", TIED, .family = "bags of two", .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
