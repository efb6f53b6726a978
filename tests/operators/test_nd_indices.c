/* SPDX-License-Identifier: MIT
 * Indices of several dimensions, gather_nd and scatter_nd; indices from the end; and results whose number depends on
 * data, with a bound and a count: non_zero, compress and unique; reverse_sequence and one_hot_values.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* gather_nd and scatter_nd ----------------------------------------------------------------------------------------- */

enum { BATCH, COLUMNS };          /* sizes */
enum { VALUE, INDICES, UPDATES }; /* inputs */

typedef struct scatter {
  rondo_scatter_reduction reduction;
  double (*combine)(double old, double update);
} scatter;

/* Rows of indices, some of them from the end. */
static void add_indices(uint64_t *seed, test_call *call, const size_t *value, const size_t *shape, size_t rank) {
  static double indices[512];
  const size_t columns = shape[rank - 1], count = test_elements(shape, rank);
  assert_true(count <= sizeof indices / sizeof *indices);
  for (size_t i = 0; i < count; i++) {
    const size_t size = value[call->sizes[BATCH] + i % columns];
    indices[i] = (double)test_random_below(seed, (uint32_t)size);
    if (test_random_below(seed, 3) == 0) indices[i] -= (double)size;
  }
  test_tensor *added = test_add_index(call, shape, rank, 1);
  added->values = indices;
  if (test_random_below(seed, 2) == 0) added->type = RONDO_I64;
}

static void draw_gather(uint64_t *seed, test_call *call) {
  size_t value[RONDO_MAX_DIMENSIONS], shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), batch = test_random_below(seed, (uint32_t)rank);
  test_draw_shape(seed, rank, 5, value);
  call->sizes[BATCH] = batch < 2 ? batch : 0;
  call->sizes[COLUMNS] = test_draw_between(seed, 1, rank - call->sizes[BATCH]);
  test_add_float(call, value, rank, -2, 2);
  memcpy(shape, value, sizeof shape);
  const size_t more = test_draw_between(seed, 0, 2), dims = call->sizes[BATCH] + more + 1;
  for (size_t d = 0; d < more; d++) shape[call->sizes[BATCH] + d] = test_draw_between(seed, 1, 4);
  shape[dims - 1] = call->sizes[COLUMNS];
  add_indices(seed, call, value, shape, dims);
}

/* The number of the part that row i of the indices names, and how many elements a part has. */
static size_t part_of(const test_call *call, double *const *in, size_t i, size_t *out_inner) {
  const test_tensor *value = &call->inputs[VALUE], *indices = &call->inputs[INDICES];
  const size_t batch = call->sizes[BATCH], columns = call->sizes[COLUMNS];
  const size_t batches = test_elements(value->shape, batch), rows = test_input_elements(call, INDICES) / columns;
  size_t part = i / (rows / batches);
  for (size_t c = 0; c < columns; c++) {
    const double index = in[INDICES][i * columns + c], size = (double)value->shape[batch + c];
    part = part * value->shape[batch + c] + (size_t)(index < 0 ? index + size : index);
  }
  *out_inner = test_elements(value->shape + batch + columns, value->rank - batch - columns);
  (void)indices;
  return part;
}

static rondo_status build_gather(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  return rondo_op_gather_nd(program, in[VALUE], in[INDICES], call->sizes[BATCH], y);
}

static void reference_gather(const test_call *call, double *const *in, double *y) {
  for (size_t i = 0; i < test_input_elements(call, INDICES) / call->sizes[COLUMNS]; i++) {
    size_t inner;
    const size_t part = part_of(call, in, i, &inner);
    memcpy(y + i * inner, in[VALUE] + part * inner, inner * sizeof *y);
  }
}

static void draw_scatter(uint64_t *seed, test_call *call) {
  size_t value[RONDO_MAX_DIMENSIONS], shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), more = test_draw_between(seed, 0, 2);
  test_draw_shape(seed, rank, 5, value);
  const size_t columns = call->sizes[COLUMNS] = test_draw_between(seed, 1, rank);
  test_add_float(call, value, rank, -2, 2);
  for (size_t d = 0; d < more; d++) shape[d] = test_draw_between(seed, 1, 5);
  shape[more] = columns;
  add_indices(seed, call, value, shape, more + 1);
  memcpy(shape + more, value + columns, (rank - columns) * sizeof *shape);
  test_add_float(call, shape, more + rank - columns, -2, 2);
}

static void draw_integers(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8};
  draw_scatter(seed, call);
  for (size_t i = 0; i < 3; i += 2) {
    call->inputs[i].type = i == 0 ? types[test_random_below(seed, 3)] : call->inputs[0].type;
    call->inputs[i].low = -2;
    call->inputs[i].high = 3;
  }
}

/* One index for each part, for which the gradient of a replacement is defined. */
static void draw_different(uint64_t *seed, test_call *call) {
  static double indices[8];
  const size_t size = test_draw_between(seed, 2, 8), picked = test_draw_between(seed, 1, size);
  const size_t value[] = {size, 3}, updates[] = {picked, 3};
  for (size_t i = 0; i < picked; i++) indices[i] = (double)((i + 1) % size);
  call->sizes[COLUMNS] = 1;
  test_add_float(call, value, 2, -2, 2);
  test_add_index(call, (size_t[]){picked, 1}, 2, size)->values = indices;
  test_add_float(call, updates, 2, -2, 2);
}

/* Many updates of few wide parts. */
static void draw_wide(uint64_t *seed, test_call *call) {
  const size_t value[] = {3, 700 + test_draw_between(seed, 0, 7)}, updates[] = {100, value[1]};
  call->sizes[COLUMNS] = 1;
  test_add_float(call, value, 2, -2, 2);
  add_indices(seed, call, value, (size_t[]){100, 1}, 2);
  test_add_float(call, updates, 2, -2, 2);
}

static rondo_status build_scatter(const test_call *call, rondo_program *program, const rondo_value *in,
                                  rondo_value *y) {
  const scatter *family = call->op->family;
  return rondo_op_scatter_nd(program, in[VALUE], in[INDICES], in[UPDATES], family->reduction, y);
}

static void reference_scatter(const test_call *call, double *const *in, double *y) {
  const scatter *family = call->op->family;
  memcpy(y, in[VALUE], test_input_elements(call, VALUE) * sizeof *y);
  for (size_t i = 0; i < test_input_elements(call, INDICES) / call->sizes[COLUMNS]; i++) {
    size_t inner;
    const size_t part = part_of(call, in, i, &inner);
    for (size_t k = 0; k < inner; k++) {
      double *to = &y[part * inner + k];
      *to = family->combine(*to, in[UPDATES][i * inner + k]);
      if (call->inputs[VALUE].type == RONDO_I8) *to = (double)(int8_t)(uint8_t)(int)*to;
    }
  }
}

static double replaced(double old, double update) {
  (void)old;
  return update;
}
static double sum(double old, double update) { return old + update; }
static double product(double old, double update) { return old * update; }

TEST(test_on3_wrong_indices_of_ravel_indices) {
  static const int64_t indices[4][2] = {{0, 1}, {-2, -3}, {1, 3}, {2, 0}};
  float y[2][3];
  rondo_program *program = test_new_program();
  rondo_value value, updates, in, out;
  assert_ok(rondo_op_full(program, RONDO_F32, (size_t[]){2, 3}, 2, 0, &value));
  assert_ok(rondo_op_full(program, RONDO_F32, (size_t[]){4}, 1, 7, &updates));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){4, 2}, 2, &in));
  assert_ok(rondo_op_scatter_nd(program, value, in, updates, RONDO_SCATTER_REPLACE, &out));
  test_wrong_index(t, program, out, indices, sizeof indices, "indices has 3 at position 5, which is not in 0 .. 2", y,
                   sizeof y);
  assert_memory_equal(y, ((float[]){7, 7, 0, 0, 0, 0}), sizeof y);
  rondo_program_destroy(program);
}

UNIT_TEST(test_on3_what_nd_indices_do_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x, indices, updates, floats, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){4, 3}, 2, &indices));
  assert_ok(rondo_program_input(program, "updates", RONDO_F32, (size_t[]){4}, 1, &updates));
  assert_ok(rondo_program_input(program, "floats", RONDO_F32, (size_t[]){4, 1}, 2, &floats));
  assert_error(rondo_op_gather_nd(program, x, indices, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message(
      "gather_nd: indices [4, 3] i32 do not fit value [2, 3]: after 0 common dimensions, the last one of the indices "
      "has "
      "an index for each of the value's next dimensions");
  assert_error(rondo_op_gather_nd(program, x, indices, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_gather_nd(program, x, floats, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_ok(rondo_program_input(program, "pairs", RONDO_I32, (size_t[]){5, 2}, 2, &indices));
  assert_error(rondo_op_scatter_nd(program, x, indices, updates, RONDO_SCATTER_ADD, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_message("scatter_nd: the updates are [4]; these indices need [5]");
  assert_error(rondo_op_scatter_nd(program, x, indices, updates, (rondo_scatter_reduction)9, &y),
               RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_wrap_indices(program, x, 3, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

/* non_zero and compress -------------------------------------------------------------------------------------------- */

/* Several tiles; the places of each element that is not 0, padded with zeros, or the first ones and the whole count. */
static void check_non_zero(test_fixture *t, size_t rows, size_t columns, size_t bound, uint32_t one_in) {
  const size_t shape[] = {rows, columns}, elements = rows * columns, places = bound == 0 ? elements : bound;
  float *x = calloc(elements, sizeof *x);
  int64_t *wanted = calloc(2 * places, sizeof *wanted), *got = malloc(2 * places * sizeof *got), count, found = 0;
  rondo_program *program = test_new_program();
  rondo_value in, indices, of_count;
  uint64_t seed = 11;
  assert_true(x != NULL && wanted != NULL && got != NULL);
  for (size_t i = 0; i < elements; i++) {
    if (test_random_below(&seed, one_in) != 0) continue;
    x[i] = i % 5 == 0 ? NAN : -2;
    if ((size_t)found < places) {
      wanted[found] = (int64_t)(i / columns);
      wanted[places + (size_t)found] = (int64_t)(i % columns);
    }
    found++;
  }
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(rondo_op_non_zero(program, in, bound, &indices, &of_count));
  assert_ok(rondo_program_output(program, "indices", indices));
  assert_ok(rondo_program_output(program, "count", of_count));
  test_run_program(
      t, program, (const test_bytes[]){{"x", x, elements * sizeof *x}, {.name = NULL}},
      (const test_bytes[]){{"indices", got, 2 * places * sizeof *got}, TEST_BYTES("count", count), {.name = NULL}});
  assert_int_equal(count, found);
  assert_memory_equal(got, wanted, 2 * places * sizeof *got);
  free(x);
  free(wanted);
  free(got);
}

TEST(test_on3_places_of_non_zero) {
  check_non_zero(t, 3, 5, 0, 2);
  check_non_zero(t, 1, 1, 0, 1);
  check_non_zero(t, 70, 101, 0, 3);   /* four tiles */
  check_non_zero(t, 70, 101, 100, 3); /* more than the bound */
  check_non_zero(t, 9, 700, 5000, 100);
}

TEST(test_on3_compress) {
  static const float x[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  static const uint8_t condition[] = {0, 1, 0, 2};
  float y[2][3], all[8], dx[2][4];
  int64_t count, of_all;
  rondo_program *program = test_new_program();
  rondo_value in, flags, out, of_count, flat, loss, gradient;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 4}, 2, &in));
  assert_ok(rondo_program_input(program, "condition", RONDO_BOOL, (size_t[]){4}, 1, &flags));
  assert_ok(rondo_op_compress(program, in, flags, 1, 3, &out, &of_count));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_program_output(program, "count", of_count));
  assert_ok(rondo_op_sum(program, out, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "dx", gradient));
  assert_ok(rondo_op_reshape(program, in, (size_t[]){8}, 1, &flat));
  assert_ok(rondo_op_compress(program, flat, flags, 0, 0, &out, &of_count));
  assert_ok(rondo_program_output(program, "of_all", of_count));
  assert_ok(rondo_op_pad(program, out, (int64_t[]){0}, (int64_t[]){4}, RONDO_PAD_CONSTANT, 0, &out));
  assert_ok(rondo_program_output(program, "all", out));
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("x", x), TEST_BYTES("condition", condition), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y),
                                        TEST_BYTES("count", count),
                                        TEST_BYTES("dx", dx),
                                        TEST_BYTES("all", all),
                                        TEST_BYTES("of_all", of_all),
                                        {.name = NULL}});
  assert_memory_equal(y, ((float[]){2, 4, 0, 6, 8, 0}), sizeof y);
  assert_memory_equal(dx, ((float[]){0, 1, 0, 1, 0, 1, 0, 1}), sizeof dx);
  assert_memory_equal(all, ((float[]){2, 4, 0, 0, 0, 0, 0, 0}), sizeof all);
  assert_true(count == 2 && of_all == 2);
}

UNIT_TEST(test_on3_bounds) {
  rondo_program *program = test_new_program();
  rondo_value x, flags, y, count;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_ok(rondo_program_input(program, "flags", RONDO_BOOL, (size_t[]){4}, 1, &flags));
  assert_error(rondo_op_non_zero(program, x, 7, &y, &count), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the bound is 7, but there are 6 elements: use 0 for as many");
  assert_error(rondo_op_non_zero(program, x, 0, &y, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_op_compress(program, x, flags, 1, 0, &y, &count), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_compress(program, x, x, 1, 0, &y, &count), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_true(y.id == 0 && count.id == 0);
  rondo_program_destroy(program);
}

/* unique ----------------------------------------------------------------------------------------------------------- */

enum { MOST_UNIQUE = 700 };

/* What unique gives for integers; all of them have room for all groups. */
typedef struct unique_results {
  int64_t values[MOST_UNIQUE], first[MOST_UNIQUE], counts[MOST_UNIQUE], inverse[MOST_UNIQUE], count;
} unique_results;

/* By searching the next larger number, without sorting. */
static void find_unique(const int64_t *x, size_t elements, unique_results *out) {
  int64_t last = INT64_MIN;
  *out = (unique_results){.count = 0};
  for (size_t done = 0; done < elements; done += (size_t)out->counts[out->count++]) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < elements; i++)
      if (x[i] < next && (done == 0 || x[i] > last)) next = x[i];
    last = out->values[out->count] = next;
    for (size_t i = elements; i > 0; i--) {
      if (x[i - 1] != next) continue;
      out->first[out->count] = (int64_t)i - 1;
      out->counts[out->count]++;
      out->inverse[i - 1] = out->count;
    }
  }
}

static void add_unique(rondo_program *program, rondo_type type, const size_t *shape, size_t bound) {
  rondo_value x;
  rondo_unique made;
  assert_ok(rondo_program_input(program, "x", type, shape, 2, &x));
  assert_ok(rondo_op_unique(program, x, bound, &made));
  assert_ok(rondo_program_output(program, "values", made.values));
  assert_ok(rondo_program_output(program, "first", made.first));
  assert_ok(rondo_program_output(program, "counts", made.counts));
  assert_ok(rondo_program_output(program, "inverse", made.inverse));
  assert_ok(rondo_program_output(program, "count", made.count));
}

/* Numbers that are below `different`. What is past the bound is left out, what is past the count is 0. */
static void check_unique(test_fixture *t, size_t rows, size_t columns, uint32_t different, size_t bound) {
  static unique_results wanted, got;
  const size_t elements = rows * columns, places = bound == 0 ? elements : bound, bytes = places * sizeof(int64_t);
  rondo_program *program = test_new_program();
  int64_t x[MOST_UNIQUE];
  uint64_t seed = 7 + elements;
  assert_true(elements <= MOST_UNIQUE);
  for (size_t i = 0; i < elements; i++) x[i] = (int64_t)test_random_below(&seed, different) * 3000000000 - 4000000000;
  find_unique(x, elements, &wanted);
  add_unique(program, RONDO_I64, (size_t[]){rows, columns}, bound);
  test_run_program(t, program, (const test_bytes[]){{"x", x, elements * sizeof *x}, {.name = NULL}},
                   (const test_bytes[]){{"values", got.values, bytes},
                                        {"first", got.first, bytes},
                                        {"counts", got.counts, bytes},
                                        {"inverse", got.inverse, elements * sizeof *x},
                                        TEST_BYTES("count", got.count),
                                        {.name = NULL}});
  assert_int_equal(got.count, wanted.count);
  assert_memory_equal(got.values, wanted.values, bytes);
  assert_memory_equal(got.first, wanted.first, bytes);
  assert_memory_equal(got.counts, wanted.counts, bytes);
  assert_memory_equal(got.inverse, wanted.inverse, elements * sizeof *x);
}

TEST(test_on3_unique_integers) {
  check_unique(t, 1, 1, 9, 0);
  check_unique(t, 5, 7, 6, 0);
  check_unique(t, 3, 4, 1, 0); /* all equal */
  check_unique(t, 20, 30, 1000, 0);
  check_unique(t, 20, 30, 50, 50);
  check_unique(t, 9, 11, 40, 13); /* more groups than the bound */
}

/* Zeros are equal, whatever their sign; a NaN equals nothing. The gradient goes to the first of equal elements. */
TEST(test_on3_unique_floats) {
  static const float x[] = {2, NAN, -0.0f, -5, 0, 2, NAN, INFINITY};
  float values[8], dx[8];
  int64_t inverse[8], count;
  rondo_program *program = test_new_program();
  rondo_value in, loss, gradient;
  rondo_unique made;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){8}, 1, &in));
  assert_ok(rondo_op_unique(program, in, 0, &made));
  assert_ok(rondo_op_sum(program, made.values, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "values", made.values));
  assert_ok(rondo_program_output(program, "inverse", made.inverse));
  assert_ok(rondo_program_output(program, "count", made.count));
  assert_ok(rondo_program_output(program, "dx", gradient));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("values", values),
                                        TEST_BYTES("inverse", inverse),
                                        TEST_BYTES("count", count),
                                        TEST_BYTES("dx", dx),
                                        {.name = NULL}});
  assert_int_equal(count, 6);
  assert_true(values[0] == -5 && values[1] == 0 && values[2] == 2 && values[3] == INFINITY);
  assert_true(isnan(values[4]) && isnan(values[5]) && values[6] == 0 && values[7] == 0);
  assert_memory_equal(inverse, ((int64_t[]){2, 4, 1, 0, 1, 2, 5, 3}), sizeof inverse);
  assert_memory_equal(dx, ((float[]){1, 1, 1, 1, 0, 0, 1, 1}), sizeof dx);
}

TEST(test_on3_unique_truths) {
  static const uint8_t x[] = {1, 0, 1, 1, 1, 1};
  uint8_t values[3];
  int64_t first[3], counts[3], inverse[6], count;
  rondo_program *program = test_new_program();
  add_unique(program, RONDO_BOOL, (size_t[]){2, 3}, 3);
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("values", values),
                                        TEST_BYTES("first", first),
                                        TEST_BYTES("counts", counts),
                                        TEST_BYTES("inverse", inverse),
                                        TEST_BYTES("count", count),
                                        {.name = NULL}});
  assert_true(count == 2 && values[0] == 0 && values[1] == 1 && values[2] == 0);
  assert_memory_equal(first, ((int64_t[]){1, 0, 0}), sizeof first);
  assert_memory_equal(counts, ((int64_t[]){1, 5, 0}), sizeof counts);
  assert_memory_equal(inverse, ((int64_t[]){1, 0, 1, 1, 1, 1}), sizeof inverse);
}

UNIT_TEST(test_on3_unique_refuses) {
  rondo_program *program = test_new_program();
  rondo_value x, wrong = {0};
  rondo_unique made;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_error(rondo_op_unique(program, x, 7, &made), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the bound is 7, but value [2, 3] has 6 elements");
  assert_true(made.values.id == 0 && made.count.id == 0 && made.inverse.id == 0);
  assert_error(rondo_op_unique(program, x, 0, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_fails(rondo_op_unique(program, wrong, 0, &made), RONDO_INVALID_ARGUMENT);
  assert_ok(rondo_program_input(program, "f8", RONDO_F8_E4M3, (size_t[]){3}, 1, &x));
  assert_error(rondo_op_unique(program, x, 0, &made), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

/* reverse_sequence and one_hot_values ------------------------------------------------------------------------------ */

/* Of reverse_sequence: the sequence with the wrong length stays as it is. */
TEST(test_on3_wrong_lengths_of_sequence_lengths) {
  static const int64_t lengths[][2] = {{2, -1}, {2, 4}, {2, INT64_MIN}};
  static const char *const messages[] = {"lengths has -1 at position 1, which is not in 0 .. 3",
                                         "lengths has 4 at position 1, which is not in 0 .. 3",
                                         "lengths has -2147483648 or less at position 1"};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    float y[2][3];
    rondo_program *program = test_new_program();
    rondo_value value, in;
    assert_ok(rondo_op_arange(program, RONDO_F32, 6, 0, 1, &value));
    assert_ok(rondo_op_reshape(program, value, (size_t[]){2, 3}, 2, &value));
    assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){2}, 1, &in));
    assert_ok(rondo_op_reverse_sequence(program, value, in, 1, 0, &value));
    test_wrong_index(t, program, value, lengths[i], sizeof lengths[i], messages[i], y, sizeof y);
    assert_memory_equal(y, ((float[]){1, 0, 2, 3, 4, 5}), sizeof y);
    rondo_program_destroy(program);
  }
}

enum { TIME, OF_BATCH }; /* sizes */

static void draw_sequences(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 2, 4), time = test_random_below(seed, (uint32_t)rank);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[TIME] = time;
  call->sizes[OF_BATCH] = (time + test_draw_between(seed, 1, rank - 1)) % rank;
  test_add_float(call, shape, rank, -2, 2);
  test_tensor *lengths = test_add_index(call, &shape[call->sizes[OF_BATCH]], 1, shape[time] + 1);
  if (test_random_below(seed, 2) == 0) lengths->type = RONDO_I64;
}

static rondo_status build_sequences(const test_call *call, rondo_program *program, const rondo_value *in,
                                    rondo_value *y) {
  return rondo_op_reverse_sequence(program, in[0], in[1], call->sizes[TIME], call->sizes[OF_BATCH], y);
}

static void reference_sequences(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  for (size_t at = 0; at < test_input_elements(call, 0); at++) {
    size_t position[RONDO_MAX_DIMENSIONS] = {0}, rest = at, from = 0;
    for (size_t d = value->rank; d > 0; d--) {
      position[d - 1] = rest % value->shape[d - 1];
      rest /= value->shape[d - 1];
    }
    const size_t length = (size_t)in[1][position[call->sizes[OF_BATCH]]], k = position[call->sizes[TIME]];
    position[call->sizes[TIME]] = k < length ? length - 1 - k : k;
    for (size_t d = 0; d < value->rank; d++) from = from * value->shape[d] + position[d];
    y[at] = in[0][from];
  }
}

/* sizes[0]: the dimension; the values are inputs 1 and 2. Some indices are from the end, some are wrong. */
static void draw_one_hot(uint64_t *seed, test_call *call) {
  static double indices[128];
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 3);
  test_draw_shape(seed, rank, 4, shape);
  call->sizes[0] = test_draw_between(seed, 0, rank);
  for (size_t i = 0; i < test_elements(shape, rank); i++) indices[i] = (double)test_random_below(seed, 14) - 7;
  test_add_index(call, shape, rank, 1)->values = indices;
  test_add_float(call, (size_t[]){1}, 1, -2, 2);
  test_add_float(call, NULL, 0, -2, 2);
}

static rondo_status build_one_hot(const test_call *call, rondo_program *program, const rondo_value *in,
                                  rondo_value *y) {
  return rondo_op_one_hot_values(program, in[0], 5, call->sizes[0], in[1], in[2], y);
}

static void reference_one_hot(const test_call *call, double *const *in, double *y) {
  const test_tensor *indices = &call->inputs[0];
  const size_t inner = test_elements(indices->shape + call->sizes[0], indices->rank - call->sizes[0]);
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    const double index = in[0][i] < 0 ? in[0][i] + 5 : in[0][i];
    for (size_t k = 0; k < 5; k++) y[(i / inner * 5 + k) * inner + i % inner] = in[index == (double)k ? 2 : 1][0];
  }
}

TEST(test_on3_wrap_indices) {
  static const int32_t x[] = {-3, -1, 0, 2, 3, -4};
  int32_t y[6];
  rondo_program *program = test_new_program();
  rondo_value in, out;
  assert_ok(rondo_program_input(program, "x", RONDO_I32, (size_t[]){6}, 1, &in));
  assert_ok(rondo_op_wrap_indices(program, in, 3, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  assert_memory_equal(y, ((int32_t[]){0, 2, 0, 2, 3, -1}), sizeof y);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define SCATTER(reduction, combine) \
  .build = build_scatter, .reference = reference_scatter, .family = &(const scatter) { reduction, combine }
#define NO_GRADIENT .has_no_gradient = true
#define OF_INTEGERS .draw = draw_integers, .only_f32 = true, NO_GRADIENT

static const test_operator rows[] = {
    {.name = "gather_nd", .draw = draw_gather, .build = build_gather, .reference = reference_gather},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_REPLACE, replaced), .draw = draw_scatter, NO_GRADIENT},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_REPLACE, replaced), .draw = draw_different},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_REPLACE, replaced), .draw = draw_wide, NO_GRADIENT},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_ADD, sum), .draw = draw_scatter},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_ADD, sum), .draw = draw_wide, .tolerance = 2e-5, NO_GRADIENT},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_MUL, product), .draw = draw_scatter, .tolerance = 1e-5, NO_GRADIENT},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_MAX, fmax), .draw = draw_scatter, NO_GRADIENT},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_MIN, fmin), .draw = draw_scatter, NO_GRADIENT},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_ADD, sum), OF_INTEGERS},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_REPLACE, replaced), OF_INTEGERS},
    {.name = "scatter_nd", SCATTER(RONDO_SCATTER_MAX, fmax), OF_INTEGERS},
    {.name = "reverse_sequence", .draw = draw_sequences, .build = build_sequences, .reference = reference_sequences},
    {.name = "one_hot_values", .draw = draw_one_hot, .build = build_one_hot, .reference = reference_one_hot},
};

TEST_OPERATOR_MAIN(rows)
