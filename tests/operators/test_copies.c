/* SPDX-License-Identifier: MIT
 * Operators that copy elements (PR-6): concat and stack along any dimension, split, slice, permute and transpose.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

/* concat and stack ------------------------------------------------------------------------------------------------- */

enum { DIMENSION, STACKS, COUNT }; /* sizes */

static void draw_concat(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), count = test_draw_between(seed, 2, TEST_MAX_TENSORS);
  const bool is_even = test_random_below(seed, 2) == 0; /* so that several elements go together */
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[DIMENSION] = test_random_below(seed, (uint32_t)rank);
  for (size_t i = 0; i < count; i++) {
    shape[call->sizes[DIMENSION]] = is_even ? 8 * test_draw_between(seed, 1, 2) : test_draw_between(seed, 1, 9);
    test_add_float(call, shape, rank, -1, 1);
  }
}

/* One part is long and its length is not a multiple of anything; the other parts have equal lengths. */
static void draw_long_concat(uint64_t *seed, test_call *call) {
  const size_t rows = test_draw_between(seed, 1, 60), count = test_draw_between(seed, 2, TEST_MAX_TENSORS);
  call->sizes[DIMENSION] = 1;
  for (size_t i = 0; i < count; i++) {
    const size_t shape[] = {rows, i == 1 ? test_draw_between(seed, 700, 745) : 16};
    test_add_float(call, shape, 2, -1, 1);
  }
}

static void draw_stack(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4), count = test_draw_between(seed, 2, TEST_MAX_TENSORS);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[STACKS] = 1;
  call->sizes[DIMENSION] = test_random_below(seed, (uint32_t)rank + 1);
  for (size_t i = 0; i < count; i++) test_add_float(call, shape, rank, -1, 1);
}

static rondo_status build_concat(const test_call *call, rondo_program *program, const rondo_value *in,
                                 rondo_value *result) {
  return (call->sizes[STACKS] == 1 ? rondo_op_stack : rondo_op_concat)(program, in, call->input_count,
                                                                       call->sizes[DIMENSION], result);
}

static void reference_concat(const test_call *call, double *const *in, double *y) {
  const size_t dimension = call->sizes[DIMENSION];
  const size_t rows = test_elements(call->inputs[0].shape, dimension);
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < call->input_count; i++) {
      const size_t run = test_input_elements(call, i) / rows;
      for (size_t k = 0; k < run; k++) *y++ = in[i][row * run + k];
    }
  }
}

TEST(test_concat_that_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x[9], y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x[0]));
  assert_ok(rondo_program_input(program, "z", RONDO_F32, (size_t[]){5, 6}, 2, &x[1]));
  assert_invalid(rondo_op_concat(program, x, 2, 1, &y), RONDO_REASON_SHAPE);
  assert_message("concat(a 'x' [4, 6], b 'z' [5, 6]");
  assert_invalid(rondo_op_concat(program, x, 2, 2, &y), RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: a has 2, counted from 0");
  assert_invalid(rondo_op_stack(program, x, 2, 0, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_stack(program, x, 2, 3, &y), RONDO_REASON_SHAPE);
  assert_message("dimension 3 cannot be inserted into a value with 2 dimensions: choose 0 to 2");
  for (size_t i = 1; i < 9; i++) x[i] = x[0];
  assert_invalid(rondo_op_concat(program, x, 0, 0, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_op_concat(program, x, 8, 0, &y));
  x[3] = (rondo_value){0};
  assert_invalid(rondo_op_concat(program, x, 8, 0, &y), RONDO_REASON_NULL_ARGUMENT);
}

/* As torch.cat, torch.stack and torch.split take it: no kernel runs. */
TEST(test_one_part_is_the_whole) {
  rondo_program *program = test_new_program();
  rondo_value x, y, parts[1];
  const size_t lengths[] = {6};
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  assert_ok(rondo_op_concat(program, &x, 1, 1, &y));
  assert_ok(rondo_op_split(program, y, 1, lengths, 1, parts));
  assert_ok(rondo_op_stack(program, parts, 1, 1, &y));
  assert_ok(rondo_value_shape(program, y, &type, dims, &rank));
  assert_true(rank == 3 && dims[0] == 4 && dims[1] == 1 && dims[2] == 6);
  assert_ok(rondo_program_output(program, "y", y));
  assert_int_equal(test_compiled_info(test_compile_kept(program, t->device, NULL)).kernels, 0);
  assert_invalid(rondo_op_concat(program, &x, 1, 2, &y), RONDO_REASON_SHAPE);
  assert_message("concat: there is no dimension 2: the value has 2, counted from 0");
  assert_invalid(rondo_op_split(program, x, 2, lengths, 1, parts), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 0, lengths, 1, parts), RONDO_REASON_SHAPE);
  assert_message("split: the only length is 6, and dimension 0 has 4 elements");
  assert_invalid(rondo_op_split(program, x, 0, lengths, 0, parts), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_stack(program, &x, 0, 0, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_stack(program, &x, 1, 3, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_concat(program, &(rondo_value){0}, 1, 0, &y), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_split(program, (rondo_value){0}, 0, lengths, 1, parts), RONDO_REASON_NULL_ARGUMENT);
}

/* Splits x into many parts and concatenates or stacks them from the last to the first. Checks the result, and the
 * gradient of its sum weighted by w. */
static void run_many(test_fixture *t, size_t count, bool stacks) {
  enum { ROWS = 2, MOST = 513 };
  static rondo_value parts[MOST], turned[MOST];
  static size_t lengths[MOST], starts[MOST];
  static float x[ROWS * 3 * MOST], w[ROWS * 3 * MOST], y[ROWS * 3 * MOST], g[ROWS * 3 * MOST];
  size_t width = 0;
  rondo_program *program = test_new_program();
  rondo_value in, weights, whole, loss, gradient;
  for (size_t i = 0; i < count; i++) starts[i] = width, width += lengths[i] = stacks ? 2 : 1 + i % 3;
  const size_t shape[] = {ROWS, width};
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(rondo_program_input(program, "w", RONDO_F32, shape, 2, &weights));
  assert_ok(rondo_op_split(program, in, 1, lengths, count, parts));
  for (size_t i = 0; i < count; i++) turned[i] = parts[count - 1 - i];
  assert_ok((stacks ? rondo_op_stack : rondo_op_concat)(program, turned, count, 1, &whole));
  assert_ok(rondo_op_reshape(program, whole, shape, 2, &whole));
  assert_ok(rondo_program_output(program, "y", whole));
  assert_ok(rondo_op_mul(program, whole, weights, &loss));
  assert_ok(rondo_op_sum(program, loss, (const size_t[]){0, 1}, 2, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "g", gradient));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (size_t i = 0; i < ROWS * width; i++) x[i] = (float)i, w[i] = (float)(i % 17);
  const size_t bytes = ROWS * width * sizeof *x;
  assert_ok(rondo_compiled_write(compiled, "x", x, bytes));
  assert_ok(rondo_compiled_write(compiled, "w", w, bytes));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, bytes));
  assert_ok(rondo_compiled_read(compiled, "g", g, bytes));
  for (size_t row = 0; row < ROWS; row++) {
    for (size_t i = count, at = row * width; i-- > 0;) {
      for (size_t k = 0; k < lengths[i]; k++, at++) {
        const size_t from = row * width + starts[i] + k;
        assert_true(y[at] == x[from] && g[from] == w[at]);
      }
    }
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_pr6_any_number_of_values) {
  static const size_t counts[] = {2, 8, 9, 15, 64, 65, 200, 513};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    run_many(t, counts[i], false);
    run_many(t, counts[i], true);
  }
}

/* A failure near the end of the list leaves the program unchanged. */
TEST(test_pr6_one_of_many_does_not_fit) {
  enum { MANY = 100 };
  rondo_program *program = test_new_program();
  rondo_value x[MANY], y[MANY], other, z;
  size_t lengths[MANY];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){MANY, 6}, 2, &x[0]));
  assert_ok(rondo_program_input(program, "z", RONDO_F32, (size_t[]){MANY, 5}, 2, &other));
  for (size_t i = 0; i < MANY; i++) x[i] = x[0], lengths[i] = 1;
  x[90] = other;
  assert_invalid(rondo_op_concat(program, x, MANY, 0, &z), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_stack(program, x, MANY, 0, &z), RONDO_REASON_SHAPE);
  lengths[0] = 0, lengths[1] = 2;
  assert_invalid(rondo_op_split(program, x[0], 0, lengths, MANY, y), RONDO_REASON_SHAPE);
  for (size_t i = 0; i < MANY; i++) assert_true(y[i].id == 0);
  assert_ok(rondo_op_concat(program, x, 2, 0, &z));
  assert_ok(rondo_program_output(program, "z and z", z));
  assert_int_equal((uint32_t)z.id, 3); /* the third value: nothing is left of those that failed */
}

/* The result may be written into an entry of the list, even by a call that fails. */
TEST(test_the_result_goes_into_the_list) {
  rondo_program *program = test_new_program();
  rondo_value x[3], none = {0};
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x[0]));
  x[1] = x[2] = x[0];
  assert_ok(rondo_op_concat(program, x, 3, 0, &x[0]));
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  rondo_type type;
  assert_ok(rondo_value_shape(program, x[0], &type, dims, &rank));
  assert_int_equal(dims[0], 12);
  assert_ok(rondo_op_stack(program, x + 1, 2, 0, &x[2]));
  assert_ok(rondo_value_shape(program, x[2], &type, dims, &rank));
  assert_int_equal(rank, 3);
  x[0] = none;
  assert_invalid(rondo_op_concat(program, x, 2, 0, &x[1]), RONDO_REASON_NULL_ARGUMENT);
  assert_message("entry 0 is not a value");
  assert_true(x[1].id == 0);
}

/* split ------------------------------------------------------------------------------------------------------------ */

/* Sizes. TAKEN: the part that is the result; PARTS: all parts, the last first. */
enum { SPLIT_DIMENSION, PARTS, TAKEN, LENGTHS };

static void draw_split(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), count = test_draw_between(seed, 2, 8);
  const size_t dimension = test_random_below(seed, (uint32_t)rank), unit = test_random_below(seed, 2) == 0 ? 8 : 1;
  test_draw_shape(seed, rank, 6, shape);
  shape[dimension] = 0;
  for (size_t i = 0; i < count; i++) {
    call->sizes[LENGTHS + i] = unit * test_draw_between(seed, 1, 3);
    shape[dimension] += call->sizes[LENGTHS + i];
  }
  call->sizes[SPLIT_DIMENSION] = dimension;
  call->sizes[PARTS] = count;
  call->sizes[TAKEN] = test_random_below(seed, (uint32_t)count + 1);
  test_add_float(call, shape, rank, -1, 1);
}

/* Of all parts the last comes first. */
static rondo_status build_split(const test_call *call, rondo_program *program, const rondo_value *in,
                                rondo_value *result) {
  rondo_value parts[9];
  const size_t count = call->sizes[PARTS];
  const rondo_status status =
      rondo_op_split(program, in[0], call->sizes[SPLIT_DIMENSION], call->sizes + LENGTHS, count, parts + 1);
  if (status != RONDO_OK) return status;
  *result = parts[1 + call->sizes[TAKEN] % count];
  if (call->sizes[TAKEN] < count) return RONDO_OK;
  parts[0] = parts[count];
  return rondo_op_concat(program, parts, count, call->sizes[SPLIT_DIMENSION], result);
}

static void reference_split(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t dimension = call->sizes[SPLIT_DIMENSION], count = call->sizes[PARTS];
  const size_t rows = test_elements(value->shape, dimension), width = test_input_elements(call, 0) / rows;
  const size_t inner = width / value->shape[dimension];
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < count; i++) {
      const size_t part = call->sizes[TAKEN] < count ? i : (i + count - 1) % count;
      size_t start = 0;
      if (call->sizes[TAKEN] < count && part != call->sizes[TAKEN]) continue;
      for (size_t k = 0; k < part; k++) start += call->sizes[LENGTHS + k] * inner;
      for (size_t k = 0; k < call->sizes[LENGTHS + part] * inner; k++) *y++ = in[0][row * width + start + k];
    }
  }
}

TEST(test_split_that_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x, y[9];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){3, 4}, 2, y), RONDO_REASON_SHAPE);
  assert_message("must add up to the 6 elements of dimension 1");
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){6, 0}, 2, y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){SIZE_MAX, 7}, 2, y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 2, (size_t[]){3, 3}, 2, y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){6}, 0, y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_split(program, x, 1, (size_t[]){5}, 1, y), RONDO_REASON_SHAPE);
}

/* slice ------------------------------------------------------------------------------------------------------------ */

enum { START = 0, LENGTH = RONDO_MAX_DIMENSIONS, STEP = 2 * RONDO_MAX_DIMENSIONS }; /* sizes */

static void draw_slice(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  const bool is_plain = test_random_below(seed, 2) == 0;
  test_draw_shape(seed, rank, rank > 3 ? 5 : 40, shape);
  test_add_float(call, shape, rank, -1, 1);
  for (size_t i = 0; i < rank; i++) {
    const size_t step = is_plain ? 1 : test_draw_between(seed, 1, 3);
    const size_t start = test_random_below(seed, 2) == 0 ? 0 : test_random_below(seed, (uint32_t)shape[i]);
    call->sizes[START + i] = start;
    call->sizes[STEP + i] = step;
    call->sizes[LENGTH + i] = test_draw_between(seed, 1, (shape[i] - start + step - 1) / step);
  }
}

static rondo_status build_slice(const test_call *call, rondo_program *program, const rondo_value *in,
                                rondo_value *result) {
  bool is_plain = true;
  for (size_t i = 0; i < call->inputs[0].rank; i++) is_plain = is_plain && call->sizes[STEP + i] == 1;
  return rondo_op_slice(program, in[0], call->sizes + START, call->sizes + LENGTH, is_plain ? NULL : call->sizes + STEP,
                        result);
}

static void reference_slice(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t count = test_elements(call->sizes + LENGTH, value->rank);
  for (size_t i = 0; i < count; i++) {
    size_t rest = i, at = 0, weight = 1;
    for (size_t k = value->rank; k > 0; k--) {
      const size_t length = call->sizes[LENGTH + k - 1];
      at += (call->sizes[START + k - 1] + rest % length * call->sizes[STEP + k - 1]) * weight;
      rest /= length;
      weight *= value->shape[k - 1];
    }
    y[i] = in[0][at];
  }
}

TEST(test_slice_that_does_not_fit) {
  const struct {
    size_t start[2], length[2], step[2];
  } cases[] = {{{0, 0}, {5, 6}, {1, 1}},       {{1, 0}, {4, 6}, {1, 1}}, {{0, 0}, {4, 0}, {1, 1}},
               {{0, 0}, {4, 3}, {1, 0}},       {{0, 0}, {4, 4}, {1, 2}}, {{0, 0}, {4, 3}, {1, SIZE_MAX}},
               {{0, SIZE_MAX}, {4, 2}, {1, 1}}};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_invalid(rondo_op_slice(program, x, cases[i].start, cases[i].length, cases[i].step, &y), RONDO_REASON_SHAPE);
  }
  assert_message("slice(value 'x' [4, 6])");
  assert_invalid(rondo_op_slice(program, x, NULL, cases[0].length, NULL, &y), RONDO_REASON_NULL_ARGUMENT);
}

/* permute ---------------------------------------------------------------------------------------------------------- */

enum { ORDER = 0, EXCHANGES = RONDO_MAX_DIMENSIONS, A, B }; /* sizes */

static void draw_order(uint64_t *seed, size_t rank, size_t *order) {
  for (size_t i = 0; i < rank; i++) order[i] = i;
  for (size_t i = rank; i > 1; i--) {
    const size_t other = test_random_below(seed, (uint32_t)i), last = order[i - 1];
    order[i - 1] = order[other];
    order[other] = last;
  }
}

static void draw_permute(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  test_draw_shape(seed, rank, 4, shape);
  test_add_float(call, shape, rank, -1, 1);
  draw_order(seed, rank, call->sizes + ORDER);
}

static void draw_large_permute(uint64_t *seed, test_call *call) {
  const size_t shape[] = {test_draw_between(seed, 1, 3), test_draw_between(seed, 20, 90),
                          test_draw_between(seed, 20, 90)};
  test_add_float(call, shape, 3, -1, 1);
  draw_order(seed, 3, call->sizes + ORDER);
}

static void draw_exchange(uint64_t *seed, test_call *call) {
  draw_permute(seed, call);
  const size_t rank = call->inputs[0].rank;
  if (rank == 0) return;
  call->sizes[EXCHANGES] = 1;
  call->sizes[A] = test_random_below(seed, (uint32_t)rank);
  call->sizes[B] = test_random_below(seed, (uint32_t)rank);
  for (size_t i = 0; i < rank; i++) call->sizes[ORDER + i] = i;
  call->sizes[ORDER + call->sizes[A]] = call->sizes[B];
  call->sizes[ORDER + call->sizes[B]] = call->sizes[A];
}

static rondo_status build_permute(const test_call *call, rondo_program *program, const rondo_value *in,
                                  rondo_value *result) {
  if (call->sizes[EXCHANGES] == 1) return rondo_op_transpose(program, in[0], call->sizes[A], call->sizes[B], result);
  return rondo_op_permute(program, in[0], call->sizes + ORDER, result);
}

static void reference_permute(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t count = test_input_elements(call, 0);
  for (size_t i = 0; i < count; i++) {
    size_t index[RONDO_MAX_DIMENSIONS], rest = i, at = 0;
    for (size_t k = value->rank; k > 0; k--) {
      const size_t dimension = call->sizes[ORDER + k - 1];
      index[dimension] = rest % value->shape[dimension];
      rest /= value->shape[dimension];
    }
    for (size_t k = 0; k < value->rank; k++) at = at * value->shape[k] + index[k];
    y[i] = in[0][at];
  }
}

/* Moving dimensions of 1 costs nothing; moving others costs a kernel. */
TEST(test_no_copy) {
  for (size_t middle = 1; middle <= 2; middle++) {
    rondo_program *program = NULL;
    rondo_compiled *compiled = NULL;
    rondo_compiled_info info = {.struct_size = sizeof info};
    rondo_value x, y;
    assert_ok(rondo_program_create(NULL, &program));
    assert_ok(rondo_program_input(program, "x", RONDO_I64, (size_t[]){4, middle, 6}, 3, &x));
    assert_ok(rondo_op_permute(program, x, (size_t[]){1, 0, 2}, &y));
    assert_ok(rondo_program_output(program, "y", y));
    assert_ok(rondo_compile(program, t->device, NULL, &compiled));
    assert_ok(rondo_compiled_get_info(compiled, &info));
    assert_int_equal(info.kernels, middle - 1);
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(program);
  }
}

TEST(test_permute_that_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 5, 6}, 3, &x));
  assert_invalid(rondo_op_permute(program, x, (size_t[]){0, 1, 1}, &y), RONDO_REASON_SHAPE);
  assert_message("permute(value 'x' [4, 5, 6]): the order must contain each of 0 .. 2 once; entry 2 is 1");
  assert_invalid(rondo_op_permute(program, x, (size_t[]){0, 1, 3}, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_permute(program, x, NULL, &y), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_transpose(program, x, 0, 3, &y), RONDO_REASON_SHAPE);
  assert_message("dimension 0 or 3 does not exist: the value has 3, counted from 0");
  assert_true(y.id == 0);
}

/* The table -------------------------------------------------------------------------------------------------------- */

/* The same of bytes, without gradients. */
static void of_bytes(test_call *call, rondo_type type) {
  for (size_t i = 0; i < call->input_count; i++) {
    call->inputs[i].type = type;
    call->inputs[i].low = 0;
    call->inputs[i].high = type == RONDO_BOOL ? 2 : 120;
  }
}

static void draw_concat_of_bytes(uint64_t *seed, test_call *call) {
  draw_concat(seed, call);
  of_bytes(call, RONDO_U8);
}

static void draw_split_of_bytes(uint64_t *seed, test_call *call) {
  draw_split(seed, call);
  of_bytes(call, RONDO_I8);
}

static void draw_slice_of_bytes(uint64_t *seed, test_call *call) {
  draw_slice(seed, call);
  of_bytes(call, RONDO_BOOL);
}

static void draw_permute_of_bytes(uint64_t *seed, test_call *call) {
  (test_random_below(seed, 2) == 0 ? draw_permute : draw_large_permute)(seed, call);
  of_bytes(call, RONDO_U8);
}

#define BYTES .only_f32 = true, .has_no_gradient = true
#define CONCAT .build = build_concat, .reference = reference_concat
#define SPLIT .build = build_split, .reference = reference_split
#define SLICE .build = build_slice, .reference = reference_slice
#define PERMUTE .build = build_permute, .reference = reference_permute

static const test_operator rows[] = {
    {.name = "concat", .draw = draw_concat, CONCAT},
    {.name = "long concat", .draw = draw_long_concat, CONCAT, .has_no_gradient = true},
    {.name = "stack", .draw = draw_stack, CONCAT},
    {.name = "split", .draw = draw_split, SPLIT},
    {.name = "slice", .draw = draw_slice, SLICE},
    {.name = "permute", .draw = draw_permute, PERMUTE},
    {.name = "permute", .draw = draw_large_permute, PERMUTE},
    {.name = "concat of bytes", .draw = draw_concat_of_bytes, CONCAT, BYTES},
    {.name = "split of bytes", .draw = draw_split_of_bytes, SPLIT, BYTES},
    {.name = "slice of bytes", .draw = draw_slice_of_bytes, SLICE, BYTES},
    {.name = "permute of bytes", .draw = draw_permute_of_bytes, PERMUTE, BYTES},
    {.name = "transpose", .draw = draw_exchange, PERMUTE},
};

TEST_OPERATOR_MAIN(rows)
