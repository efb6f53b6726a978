/* SPDX-License-Identifier: MIT
 * Building programs: values and their tags, every refusal of names, shapes and types with its message, differentiation,
 * and that a call that fails leaves the program unchanged. No device.
 */
#include <rondo/program.h>

#include <string.h>

#include "support/rondo_test.h"
#include "tensor/compile/layout.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"

static const rondo_value none = {0};

static rondo_program *make_program(const char *name) {
  rondo_program *program = NULL;
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = name};
  assert_ok(rondo_program_create(&options, &program));
  return program;
}

static rondo_value input(rondo_program *program, const char *name, rondo_type type, size_t rank, size_t m, size_t n) {
  const size_t shape[] = {m, n};
  rondo_value value;
  assert_ok(rondo_program_input(program, name, type, shape, rank, &value));
  return value;
}

static rondo_value state_of(rondo_program *program, const char *name, size_t m, size_t n) {
  const size_t shape[] = {m, n};
  rondo_value value;
  assert_ok(rondo_program_state(program, name, RONDO_F32, shape, 2, &value));
  return value;
}

#define BAD RONDO_INVALID_ARGUMENT

/* Values ----------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_types) {
  assert_string_equal(rondo_type_name(RONDO_F32), "f32");
  assert_string_equal(rondo_type_name(RONDO_I32), "i32");
  assert_string_equal(rondo_type_name(RONDO_BF16), "bf16");
  assert_string_equal(rondo_type_name((rondo_type)0), "unknown");
  assert_string_equal(rondo_type_name((rondo_type)77), "unknown");
  assert_int_equal(rondo_type_bytes(RONDO_F32), 4);
  assert_int_equal(rondo_type_bytes(RONDO_F16), 2);
  assert_int_equal(rondo_type_bytes(RONDO_I64), 8);
  assert_int_equal(rondo_type_bytes((rondo_type)0), 0);
}

UNIT_TEST(test_values_have_their_shapes) {
  rondo_program *program = make_program("p");
  const size_t dims[] = {2, 3, 4, 5};
  rondo_type type;
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  rondo_value x, cell, flat;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, dims, 4, &x));
  assert_ok(rondo_program_cell(program, "rate", 0.5f, &cell));
  assert_ok(rondo_op_reshape(program, x, (const size_t[]){6, 20}, 2, &flat));
  assert_ok(rondo_value_shape(program, x, &type, shape, &rank));
  assert_int_equal(type, RONDO_F32);
  assert_int_equal(rank, 4);
  assert_memory_equal(shape, dims, sizeof dims);
  assert_ok(rondo_value_shape(program, cell, &type, shape, &rank));
  assert_int_equal(rank, 0);
  assert_ok(rondo_value_shape(program, flat, &type, shape, &rank));
  assert_true(rank == 2 && shape[0] == 6 && shape[1] == 20);
  assert_error(rondo_value_shape(program, none, &type, shape, &rank), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_value_shape(NULL, x, &type, shape, &rank), BAD, RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
  rondo_program_destroy(NULL);
}

UNIT_TEST(test_wrong_declarations_are_refused) {
  rondo_program *program = make_program("p");
  const size_t good[] = {2, 2, 2, 2, 2, 2, 2}, zero[] = {2, 0}, huge[] = {(size_t)1 << 40, (size_t)1 << 40};
  rondo_value value = input(program, "x", RONDO_F32, 2, 2, 2);
  assert_error(rondo_program_input(program, "x", RONDO_F32, good, 1, &value), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_int_equal(value.id, 0);
  assert_error(rondo_program_state(program, "x", RONDO_F32, good, 1, &value), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_error(rondo_program_cell(program, "x", 1, &value), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_error(rondo_program_state(program, "", RONDO_F32, good, 1, &value), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_state(program, NULL, RONDO_F32, good, 1, &value), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_state(program, "s", (rondo_type)3, good, 1, &value), BAD, RONDO_REASON_TYPE);
  assert_message("'s'");
  assert_error(rondo_program_state(program, "s", RONDO_F32, good, 7, &value), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_program_state(program, "s", RONDO_F32, zero, 2, &value), BAD, RONDO_REASON_SHAPE);
  assert_message("dimension 1 of 2 is 0");
  assert_error(rondo_program_state(program, "s", RONDO_F32, NULL, 2, &value), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_program_state: shape is NULL");
  assert_error(rondo_program_state(program, "s", RONDO_F32, huge, 2, &value), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_BAD_SIZE);
  assert_error(rondo_program_state(NULL, "s", RONDO_F32, good, 2, &value), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_state(program, "s", RONDO_F32, good, 2, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_program_state: out_value is NULL");
  assert_ok(rondo_program_state(program, "s", RONDO_F32, good, 2, &value));
  assert_error(rondo_program_output(program, "s", value), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_ok(rondo_program_output(program, "out", value));
  assert_error(rondo_program_output(program, "out", value), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_error(rondo_program_cell(program, "out", 1, &value), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_error(rondo_program_output(program, "more", none), BAD, RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

UNIT_TEST(test_options_are_checked) {
  rondo_program *program = (rondo_program *)1;
  const rondo_allocator half = {0};
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &half};
  assert_fails(rondo_program_create(&options, &program), BAD);
  assert_null(program);
  assert_error(rondo_program_create(NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
}

UNIT_TEST(test_a_value_needs_a_name) {
  static const char *const names[] = {NULL, ""};
  const size_t one = 1, empty = 0;
  rondo_program *program = make_program("mine");
  rondo_value x;
  for (size_t i = 0; i < 2; i++) {
    assert_error(rondo_program_input(program, names[i], RONDO_F32, &one, 1, &x), BAD, RONDO_REASON_NULL_ARGUMENT);
    assert_message("rondo_program_input: a value of program 'mine' needs a name");
    assert_error(rondo_program_input(program, names[i], RONDO_F32, &empty, 1, &x), BAD, RONDO_REASON_NULL_ARGUMENT);
    assert_message("rondo_program_input: a value of program 'mine' needs a name");
  }
  rondo_program_destroy(program);
}

UNIT_TEST(test_tags_of_other_programs_are_found) {
  rondo_program *mine = make_program("mine");
  rondo_program *other = make_program("other");
  const rondo_value foreign = input(other, "x", RONDO_F32, 2, 2, 2);
  rondo_value y = {7};
  (void)input(mine, "x", RONDO_F32, 2, 2, 2);
  assert_error(rondo_op_tanh(mine, foreign, &y), BAD, RONDO_REASON_UNKNOWN_NAME);
  assert_message("tanh: value is a value of another program, not of program 'mine'");
  assert_int_equal(y.id, 0);
  assert_error(rondo_program_output(mine, "y", foreign), BAD, RONDO_REASON_UNKNOWN_NAME);
  assert_error(rondo_op_tanh(mine, (rondo_value){foreign.id + 100}, &y), BAD, RONDO_REASON_UNKNOWN_NAME);
  assert_error(rondo_op_tanh(mine, none, &y), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_op_tanh(NULL, foreign, &y), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_op_tanh(other, foreign, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(mine);
  assert_ok(rondo_program_create(NULL, &mine));
  assert_error(rondo_op_tanh(mine, foreign, &y), BAD, RONDO_REASON_UNKNOWN_NAME);
  assert_message("tanh: value is a value of another program, not of the program");
  rondo_program_destroy(mine);
  rondo_program_destroy(other);
}

/* Operators -------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_wrong_products_are_refused) {
  rondo_program *program = make_program("p");
  const rondo_value x = input(program, "x", RONDO_F32, 2, 4, 5), w = input(program, "w", RONDO_F32, 2, 6, 7);
  const rondo_value v = input(program, "v", RONDO_F32, 1, 5, 0), n = input(program, "n", RONDO_I32, 2, 5, 3);
  const rondo_value u = input(program, "u", RONDO_F32, 2, 5, 3);
  rondo_value y;
  assert_error(rondo_op_matmul(program, x, w, none, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("matmul(a 'x' [4, 5], b 'w' [6, 7]): the inner dimensions 5 and 6 differ");
  assert_error(rondo_op_matmul(program, x, v, none, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("a and b must have at least 2 dimensions");
  assert_error(rondo_op_matmul(program, x, n, none, &y), BAD, RONDO_REASON_TYPE);
  assert_message("b 'n' [5, 3] i32");
  assert_error(rondo_op_matmul(program, x, u, v, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("the bias has 5 elements; it needs one for each of the 3 columns");
  assert_error(rondo_op_matmul(program, x, u, u, &y), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_op_matmul(program, x, none, none, &y), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_message("matmul: b is no value");
  const rondo_value tall = input(program, "tall", RONDO_F32, 2, (size_t)1 << 40, 1);
  const rondo_value wide = input(program, "wide", RONDO_F32, 2, 1, (size_t)1 << 40);
  assert_error(rondo_op_matmul(program, tall, wide, none, &y), RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE);
  assert_ok(rondo_op_matmul(program, x, u, none, &y));
  assert_error(rondo_op_matmul(program, y, w, none, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("a result of matmul (operator 0) [4, 3]");
  rondo_program_destroy(program);
}

UNIT_TEST(test_other_wrong_operators_are_refused) {
  rondo_program *program = make_program("p");
  const rondo_value x = input(program, "x", RONDO_F32, 2, 4, 5), n = input(program, "n", RONDO_I32, 1, 4, 0);
  const rondo_value five = input(program, "five", RONDO_I32, 1, 5, 0);
  const size_t dims[] = {1, 1, 1, 1, 1, 1, 1};
  rondo_value y, deep, cell;
  assert_ok(rondo_program_input(program, "deep", RONDO_I32, dims, 6, &deep));
  assert_ok(rondo_program_cell(program, "cell", 1, &cell));
  assert_error(rondo_op_embedding(program, n, n, &y), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_op_embedding(program, x, x, &y), BAD, RONDO_REASON_TYPE);
  assert_message("indices must be i32 or i64, not f32");
  assert_error(rondo_op_embedding(program, x, deep, &y), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_op_reshape(program, x, (const size_t[]){3, 7}, 2, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("reshape(value 'x' [4, 5]): [3, 7] has 21 elements, the value has 20");
  assert_error(rondo_op_reshape(program, x, (const size_t[]){4, SIZE_MAX}, 2, &y), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_BAD_SIZE);
  assert_message(
      "reshape: dimension 1 is 18446744073709551615, so its bytes do not fit in 64 bits: make it smaller; -1 stands "
      "for no other size");
  assert_error(rondo_op_reshape(program, x, dims, 7, &y), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_op_reshape(program, x, NULL, 1, &y), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_op_reshape(program, x, (const size_t[]){0, 20}, 2, &y), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_op_tanh(program, n, &y), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_op_softmax(program, cell, &y), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_op_softmax(program, n, &y), BAD, RONDO_REASON_TYPE);
  assert_error(rondo_op_cross_entropy(program, x, five, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("labels must have the dimensions of logits without the last, which is that of the classes");
  assert_error(rondo_op_cross_entropy(program, x, x, &y), BAD, RONDO_REASON_TYPE);
  assert_ok(rondo_op_cross_entropy(program, x, n, &y));
  assert_int_equal(program->operations.count, 1);
  rondo_program_destroy(program);
}

static rondo_value sized(rondo_program *program, const char *name, rondo_type type, uint32_t rank, const size_t *dims) {
  rondo_value value;
  assert_ok(rondo_program_input(program, name, type, dims, rank, &value));
  return value;
}

UNIT_TEST(test_wrong_attention_is_refused) {
  rondo_program *program = make_program("p");
  const rondo_value q = sized(program, "q", RONDO_F32, 4, (const size_t[]){1, 2, 1, 8});
  const rondo_value two = sized(program, "two", RONDO_F32, 4, (const size_t[]){1, 2, 2, 8});
  const rondo_value wide = sized(program, "wide", RONDO_F32, 4, (const size_t[]){1, 2, 1, 257});
  const rondo_attention_options causal = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_attention_options decode = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_value y;
  assert_ok(rondo_program_cell(program, "scale", 1, &decode.lengths));
  for (int i = 0; i < 2; i++)
    assert_ok(rondo_program_state(program, i == 0 ? "k cache" : "v cache", RONDO_F32, (const size_t[]){1, 2, 4, 8}, 4,
                                  i == 0 ? &decode.k_cache : &decode.v_cache));
  assert_error(rondo_op_attention(program, wide, wide, wide, NULL, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("a head has 257 elements; the maximum is 256: use more heads");
  assert_error(rondo_op_attention(program, two, q, q, &causal, &y), BAD, RONDO_REASON_SHAPE);
  assert_error(rondo_op_attention(program, q, q, q, &decode, &y), BAD, RONDO_REASON_TYPE);
  decode.lengths = sized(program, "steps", RONDO_I32, 0, NULL);
  assert_error(rondo_op_attention(program, q, two, two, &decode, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("q, k and v must have as many rows");
  assert_int_equal(program->operations.count, 0);
  rondo_program_destroy(program);
}

UNIT_TEST(test_wrong_parts_of_images_are_refused) {
  rondo_program *program = make_program("p");
  const rondo_value x = sized(program, "x", RONDO_F32, 4, (const size_t[]){1, 2, 4, 4});
  const rondo_value weight = sized(program, "weight", RONDO_F32, 4, (const size_t[]){3, 2, 1, 1});
  const rondo_value few = input(program, "few", RONDO_F32, 1, 2, 0);
  const rondo_conv_options convolution = {RONDO_CONV_OPTIONS_INIT, .bias = few};
  const rondo_batch_norm_options statistics = {RONDO_BATCH_NORM_OPTIONS_INIT, .momentum = 0.1f, .running_mean = few,
                                               .running_variance = few};
  rondo_value y;
  assert_error(rondo_op_conv(program, x, weight, &convolution, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("the bias has 2 elements; it needs one for each of the 3 channels");
  assert_error(rondo_op_batch_norm(program, x, &statistics, &y), BAD, RONDO_REASON_TYPE);
  assert_message("must be a state");
  assert_int_equal(program->operations.count, 0);
  rondo_program_destroy(program);
}

UNIT_TEST(test_wrong_bags_and_norms_are_refused) {
  rondo_program *program = make_program("p");
  const rondo_value table = input(program, "table", RONDO_F32, 2, 4, 5);
  const rondo_value indices = input(program, "indices", RONDO_I32, 1, 3, 0);
  const rondo_value bags = input(program, "bags", RONDO_I32, 2, 3, 2);
  const rondo_value begins = input(program, "begins", RONDO_I32, 1, 2, 0);
  const rondo_value half = input(program, "half", RONDO_F16, 1, 3, 0), one = sized(program, "one", RONDO_I32, 0, NULL);
  const rondo_value deep = sized(program, "deep", RONDO_I32, 6, (const size_t[]){1, 1, 1, 1, 1, 1});
  const rondo_value scale = input(program, "scale", RONDO_F32, 1, 5, 0),
                    shift = input(program, "shift", RONDO_F16, 1, 5, 0);
  const rondo_value rows = input(program, "rows", RONDO_F16, 2, 4, 5);
  rondo_value y;
  assert_error(rondo_op_embedding_bag(program, table, indices, begins, half, RONDO_COMBINE_SUM, &y), BAD,
               RONDO_REASON_TYPE);
  assert_message("weights must be of the table's type");
  assert_error(rondo_op_embedding_bag(program, table, bags, begins, none, RONDO_COMBINE_SUM, &y), BAD,
               RONDO_REASON_SHAPE);
  assert_error(rondo_op_embedding_bag(program, table, one, none, none, RONDO_COMBINE_SUM, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("a scalar has no bags");
  assert_error(rondo_op_layer_norm(program, rows, scale, shift, 1, 0, &y), BAD, RONDO_REASON_TYPE);
  assert_message("scale and shift must have one type");
  assert_error(rondo_op_one_hot(program, deep, 2, RONDO_F32, &y), BAD, RONDO_REASON_SHAPE);
  assert_message("7 dimensions");
  assert_int_equal(program->operations.count, 0);
  rondo_program_destroy(program);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* loss = sum of tanh(x w) v, and what is between. */
typedef struct chain {
  rondo_program *program;
  rondo_value w, v, product, loss;
} chain;

static chain make_chain(void) {
  chain c = {.program = make_program("chain")};
  const rondo_value x = input(c.program, "x", RONDO_F32, 2, 1, 3);
  c.w = state_of(c.program, "w", 3, 4);
  c.v = state_of(c.program, "v", 4, 1);
  rondo_value y;
  assert_ok(rondo_op_matmul(c.program, x, c.w, none, &c.product));
  assert_ok(rondo_op_tanh(c.program, c.product, &y));
  assert_ok(rondo_op_matmul(c.program, y, c.v, none, &y));
  assert_ok(rondo_op_reshape(c.program, y, NULL, 0, &c.loss));
  return c;
}

UNIT_TEST(test_gradients_have_the_values_shapes) {
  chain c = make_chain();
  const rondo_value idle = input(c.program, "idle", RONDO_F32, 2, 5, 6);
  const rondo_value asked[] = {c.w, c.product, c.loss, idle, c.w};
  rondo_value gradients[5];
  rondo_type type;
  size_t want[RONDO_MAX_DIMENSIONS], have[RONDO_MAX_DIMENSIONS], want_rank, have_rank;
  assert_ok(rondo_program_gradients(c.program, c.loss, asked, 5, gradients));
  for (size_t i = 0; i < 5; i++) {
    assert_ok(rondo_value_shape(c.program, asked[i], &type, want, &want_rank));
    assert_ok(rondo_value_shape(c.program, gradients[i], &type, have, &have_rank));
    assert_int_equal(have_rank, want_rank);
    assert_memory_equal(have, want, want_rank * sizeof *want);
  }
  assert_int_equal(gradients[0].id, gradients[4].id);
  assert_ok(rondo_program_gradients(c.program, c.loss, NULL, 0, NULL));
  rondo_program_destroy(c.program);
}

static void assert_as_before(const rondo_program *program, const rondo_program_mark *before) {
  const rondo_program_mark now = rondo_program_get_mark(program);
  assert_memory_equal(&now, before, sizeof now);
}

UNIT_TEST(test_wrong_gradients_are_refused) {
  chain c = make_chain();
  const rondo_value numbers = input(c.program, "numbers", RONDO_I32, 1, 3, 0);
  const rondo_value asked[] = {c.w, numbers};
  rondo_value gradients[2], row, second;
  const rondo_program_mark before = rondo_program_get_mark(c.program);
  assert_error(rondo_program_gradients(c.program, c.product, asked, 1, gradients), BAD, RONDO_REASON_SHAPE);
  assert_message("the loss must be a scalar f32, not [1, 4]");
  assert_error(rondo_program_gradients(c.program, c.loss, asked, 2, gradients), BAD, RONDO_REASON_TYPE);
  assert_message("value 1 of the list is 'numbers' [3] i32; only f32, f16 and bf16 have gradients");
  assert_error(rondo_program_gradients(c.program, c.loss, &none, 1, gradients), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_gradients(c.program, none, asked, 1, gradients), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_gradients(c.program, c.loss, NULL, 1, gradients), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_program_gradients: values is NULL");
  assert_as_before(c.program, &before);
  /* A gradient of a gradient: tanh_gradient has none. */
  assert_ok(rondo_program_gradients(c.program, c.loss, &c.product, 1, gradients));
  assert_ok(rondo_op_reshape(c.program, gradients[0], (const size_t[]){1, 4}, 2, &row));
  assert_ok(rondo_op_matmul(c.program, row, c.v, none, &second));
  assert_ok(rondo_op_reshape(c.program, second, NULL, 0, &second));
  const rondo_program_mark later = rondo_program_get_mark(c.program);
  assert_error(rondo_program_gradients(c.program, second, &c.w, 1, gradients), RONDO_UNSUPPORTED,
               RONDO_REASON_NO_FUNCTION);
  assert_message("tanh_gradient (operator");
  assert_message("has no gradient, but the loss depends through it on a value whose gradient is requested");
  assert_as_before(c.program, &later);
  assert_int_equal(gradients[0].id, 0);
  rondo_program_destroy(c.program);
}

/* An operator without a gradient matters only on the way. */
UNIT_TEST(test_gradients_go_only_where_they_are_needed) {
  chain c = make_chain();
  rondo_value gradient, beside, second;
  assert_ok(rondo_program_gradients(c.program, c.loss, &c.product, 1, &gradient));
  assert_ok(rondo_op_matmul(c.program, gradient, c.v, none, &beside));
  assert_ok(rondo_op_reshape(c.program, beside, NULL, 0, &beside));
  const size_t before = c.program->operations.count;
  const rondo_value free_state = state_of(c.program, "u", 1, 1);
  rondo_value loss;
  assert_ok(rondo_op_reshape(c.program, beside, (const size_t[]){1, 1}, 2, &loss));
  assert_ok(rondo_op_matmul(c.program, loss, free_state, none, &loss));
  assert_ok(rondo_op_reshape(c.program, loss, NULL, 0, &loss));
  assert_ok(rondo_program_gradients(c.program, loss, &free_state, 1, &second));
  assert_true(c.program->operations.count > before);
  rondo_program_destroy(c.program);
}

/* Optimizers ------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_wrong_optimizers_are_refused) {
  chain c = make_chain();
  rondo_value rate, lonely;
  assert_ok(rondo_program_cell(c.program, "rate", 0.1f, &rate));
  assert_ok(rondo_op_reshape(c.program, rate, NULL, 0, &lonely));
  const rondo_program_mark before = rondo_program_get_mark(c.program);
  rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = c.w};
  assert_error(rondo_program_adam(c.program, c.loss, &adam), BAD, RONDO_REASON_SHAPE);
  assert_message("not a scalar f32, such as a cell");
  adam.learning_rate = none;
  assert_error(rondo_program_adam(c.program, c.loss, &adam), BAD, RONDO_REASON_NULL_ARGUMENT);
  adam.learning_rate = rate;
  adam.beta1 = 1;
  assert_error(rondo_program_adam(c.program, c.loss, &adam), BAD, RONDO_REASON_OUT_OF_RANGE);
  adam.beta1 = 0;
  assert_error(rondo_program_adam(c.program, c.product, &adam), BAD, RONDO_REASON_SHAPE);
  assert_fails(rondo_program_adam(c.program, lonely, &adam), BAD);
  assert_message("has no gradient for any f32 state");
  assert_error(rondo_program_adam(c.program, c.loss, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_program_adam: options is NULL");
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = c.v};
  assert_error(rondo_program_sgd(c.program, c.loss, &sgd), BAD, RONDO_REASON_SHAPE);
  assert_as_before(c.program, &before);
  const rondo_value taken = state_of(c.program, "v.m", 1, 1);
  (void)taken;
  const rondo_program_mark later = rondo_program_get_mark(c.program);
  assert_error(rondo_program_adam(c.program, c.loss, &adam), BAD, RONDO_REASON_DUPLICATE_NAME);
  assert_message("'v.m'");
  assert_as_before(c.program, &later);
  assert_null(c.program->optimizer);
  const rondo_sgd_options plain = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(c.program, c.loss, &plain));
  assert_fails(rondo_program_adam(c.program, c.loss, &adam), RONDO_INVALID_STATE);
  rondo_program_destroy(c.program);
}

/* Layout ----------------------------------------------------------------------------------------------------------- */

static bool runs(const rondo_layout *layout, const rondo_program *program, const char *name) {
  for (size_t i = 0; i < layout->schedule.count; i++) {
    if (strcmp(program->operations.items[layout->schedule.order[i]].row->name, name) == 0) return true;
  }
  return false;
}

/* Whether whatever else reads the state that the operation at `position` updates comes before it. */
static bool is_last_reader(const rondo_layout *layout, const rondo_program *program, uint32_t position) {
  const uint32_t state = program->operations.items[layout->schedule.order[position]].inputs[0];
  for (uint32_t p = position + 1; p < layout->schedule.count; p++) {
    const rondo_operation *operation = &program->operations.items[layout->schedule.order[p]];
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] == state) return false;
    }
  }
  return true;
}

/* Only what an output or an update needs is in the order; what reads a state comes before its update. */
UNIT_TEST(test_layout_drops_and_orders) {
  chain c = make_chain();
  rondo_value rate, side, gradients[2];
  const rondo_value both[] = {c.w, c.v};
  assert_ok(rondo_program_cell(c.program, "rate", 0.1f, &rate));
  assert_ok(rondo_program_gradients(c.program, c.loss, both, 2, gradients));
  assert_ok(rondo_program_output(c.program, "loss", c.loss));
  rondo_layout layout;
  assert_ok(rondo_layout_make(c.program, NULL, &layout));
  assert_int_equal(layout.schedule.count, 3);
  assert_false(runs(&layout, c.program, "tanh_gradient"));
  rondo_layout_free(c.program, &layout);
  const rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(c.program, c.loss, &options));
  assert_ok(rondo_op_softmax(c.program, c.product, &side));
  assert_ok(rondo_program_output(c.program, "side", side));
  assert_ok(rondo_layout_make(c.program, NULL, &layout));
  assert_true(runs(&layout, c.program, "tanh_gradient") && runs(&layout, c.program, "softmax"));
  for (uint32_t p = 0; p < layout.schedule.count; p++) {
    const rondo_operator *row = c.program->operations.items[layout.schedule.order[p]].row;
    if (row->updates != 0) assert_true(is_last_reader(&layout, c.program, p));
  }
  for (size_t i = 0; i < layout.schedule.values; i++)
    assert_int_equal(layout.locations[i].offset % RONDO_VALUE_ALIGNMENT, 0);
  assert_true(layout.arena_bound <= layout.arena_bytes && layout.arena_bytes <= layout.arena_sum);
  rondo_layout_free(c.program, &layout);
  rondo_program_destroy(c.program);
}

/* Failing allocators ----------------------------------------------------------------------------------------------- */

static rondo_status build(const rondo_allocator *allocator, rondo_program **out) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "swept", .allocator = allocator};
  const size_t shape[] = {3, 3}, count[] = {3};
  rondo_value x = {0}, n = {0}, w = {0}, y = {0}, rate = {0}, gradient = {0};
  rondo_status status = rondo_program_create(&options, out);
  if (status == RONDO_OK) status = rondo_program_input(*out, "x", RONDO_F32, shape, 2, &x);
  if (status == RONDO_OK) status = rondo_program_input(*out, "n", RONDO_I32, count, 1, &n);
  if (status == RONDO_OK) status = rondo_program_state(*out, "w", RONDO_F32, shape, 2, &w);
  if (status == RONDO_OK) status = rondo_program_cell(*out, "rate", 1, &rate);
  if (status == RONDO_OK) status = rondo_op_matmul(*out, x, w, none, &y);
  if (status == RONDO_OK) status = rondo_op_cross_entropy(*out, y, n, &y);
  if (status == RONDO_OK) status = rondo_program_gradients(*out, y, &w, 1, &gradient);
  if (status == RONDO_OK) status = rondo_program_output(*out, "gradient", gradient);
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  if (status == RONDO_OK) status = rondo_program_adam(*out, y, &adam);
  return status;
}

UNIT_TEST(test_failing_allocators_leak_nothing) {
  rondo_status status = RONDO_OUT_OF_MEMORY;
  for (size_t fail_at = 1; status != RONDO_OK; fail_at++) {
    test_allocator allocator;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, fail_at);
    rondo_program *program = NULL;
    rondo_layout layout = {0};
    status = build(&allocator.table, &program);
    if (status == RONDO_OK) {
      status = rondo_layout_make(program, NULL, &layout);
      rondo_layout_free(program, &layout);
    }
    rondo_program_destroy(program);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    assert_true(test_allocator_is_clean(&allocator));
    assert_true(fail_at < 1000);
  }
}
