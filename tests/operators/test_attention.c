/* SPDX-License-Identifier: MIT
 * attention (PR-4): groups of heads, causal or not, tiles at the edge; masks, windows, slopes and lengths; rows that
 * see nothing; and what is refused. test_attention_cache.c has caches.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { BATCHES, HEADS, GROUPS, ROWS, COLUMNS, SIZE, CAUSAL, WINDOW, MASKED, SLOPES, LENGTHS }; /* sizes */
enum { SCALE };                                                                                /* numbers */
enum { NO_MASK, BOOLEAN, ADDED, ADDED_F32, MASK_KINDS };                                       /* of MASKED */
enum { Q, K, V, EXTRAS };                                                                      /* inputs */

static void draw_of(uint64_t *seed, test_call *call, size_t heads, size_t rows, size_t size) {
  size_t *s = call->sizes;
  s[BATCHES] = test_draw_between(seed, 1, heads);
  s[GROUPS] = test_draw_between(seed, 1, heads);
  s[HEADS] = s[GROUPS] * test_draw_between(seed, 1, heads);
  s[ROWS] = test_draw_between(seed, 1, rows);
  s[COLUMNS] = test_draw_between(seed, 1, rows);
  s[SIZE] = test_draw_between(seed, 1, size);
  s[CAUSAL] = test_draw_between(seed, 0, 1);
  if (s[CAUSAL] && s[ROWS] > s[COLUMNS]) s[ROWS] = s[COLUMNS];
  call->numbers[SCALE] = test_draw_between(seed, 0, 1) ? 0.3 : 1 / sqrt((double)s[SIZE]);
  test_add_float(call, (const size_t[]){s[BATCHES], s[HEADS], s[ROWS], s[SIZE]}, 4, -2, 2);
  test_add_float(call, (const size_t[]){s[BATCHES], s[GROUPS], s[COLUMNS], s[SIZE]}, 4, -2, 2);
  test_add_float(call, (const size_t[]){s[BATCHES], s[GROUPS], s[COLUMNS], s[SIZE]}, 4, -1, 1);
}

static void draw(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 9, 12); }

/* Several tiles on each device. */
static void draw_long(uint64_t *seed, test_call *call) { draw_of(seed, call, 1, 90, 20); }
static void draw_wide(uint64_t *seed, test_call *call) { draw_of(seed, call, 1, 20, 256); }

/* A mask with some of its dimensions 1 or left out. */
static void draw_mask(uint64_t *seed, test_call *call) {
  const size_t *s = call->sizes, full[] = {s[BATCHES], s[HEADS], s[ROWS], s[COLUMNS]};
  const size_t rank = test_draw_between(seed, 1, 4);
  size_t shape[4];
  for (size_t i = 0; i < rank; i++) shape[i] = test_draw_between(seed, 0, 2) == 0 ? 1 : full[4 - rank + i];
  if (s[MASKED] == BOOLEAN) test_add_index(call, shape, rank, 2)->type = RONDO_BOOL;
  if (s[MASKED] == ADDED || s[MASKED] == ADDED_F32) {
    test_tensor *mask = test_add_float(call, shape, rank, -2, 2);
    if (s[MASKED] == ADDED_F32) mask->type = RONDO_F32;
    mask->has_rounded_gradient = true;
  }
}

/* What hides columns or is added to scores: at least one of all kinds. */
static void draw_extras(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[MASKED] = test_draw_between(seed, 0, MASK_KINDS - 1);
  s[WINDOW] = test_draw_between(seed, 0, 2) ? 0 : test_draw_between(seed, 1, s[COLUMNS]);
  s[SLOPES] = test_draw_between(seed, 0, 2) == 0;
  s[LENGTHS] = s[MASKED] == NO_MASK || test_draw_between(seed, 0, 2) == 0;
  draw_mask(seed, call);
  if (s[SLOPES]) {
    test_tensor *slopes = test_add_float(call, &s[HEADS], 1, 0, 0.5);
    slopes->type = RONDO_F32;
    slopes->has_no_gradient = true;
  }
  if (s[LENGTHS]) test_add_index(call, &s[BATCHES], test_draw_between(seed, 0, 1), s[COLUMNS] + 1);
}

static void draw_hidden(uint64_t *seed, test_call *call) {
  draw(seed, call);
  draw_extras(seed, call);
}
static void draw_long_hidden(uint64_t *seed, test_call *call) {
  draw_of(seed, call, 2, 150, 9);
  draw_extras(seed, call);
}
static void draw_wide_hidden(uint64_t *seed, test_call *call) {
  draw_of(seed, call, 1, 40, 256);
  draw_extras(seed, call);
}

/* The input with this extra, which are in a fixed order. */
static size_t extra_input(const size_t *s, size_t extra) {
  size_t input = EXTRAS;
  if (extra > MASKED) input += s[MASKED] != NO_MASK;
  if (extra > SLOPES) input += s[SLOPES];
  return input;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const size_t *s = call->sizes;
  const bool is_usual = call->numbers[SCALE] != 0.3, is_plain = is_usual && call->input_count == EXTRAS;
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = s[CAUSAL] != 0, .window = s[WINDOW],
                                     .scale = is_usual ? 0 : 0.3f};
  if (s[MASKED] != NO_MASK) options.mask = inputs[extra_input(s, MASKED)];
  if (s[SLOPES]) options.alibi_slopes = inputs[extra_input(s, SLOPES)];
  if (s[LENGTHS]) options.lengths = inputs[extra_input(s, LENGTHS)];
  return rondo_op_attention(program, inputs[Q], inputs[K], inputs[V], is_plain && !options.causal ? NULL : &options,
                            result);
}

/* One row of a head. `added` is what each column's score gets. */
static void attend(const double *q, const double *k, const double *v, const double *added, size_t columns, size_t size,
                   double scale, double *y) {
  double most = -INFINITY, sum = 0;
  double *scores = calloc(columns + 1, sizeof *scores);
  assert_non_null(scores);
  for (size_t d = 0; d < size; d++) y[d] = 0;
  for (size_t j = 0; j < columns; j++) {
    for (size_t d = 0; d < size; d++) scores[j] += scale * q[d] * k[j * size + d];
    scores[j] += added == NULL ? 0 : added[j];
    most = fmax(most, scores[j]);
  }
  for (size_t j = 0; most > -INFINITY && j < columns; j++) {
    const double weight = exp(scores[j] - most);
    sum += weight;
    for (size_t d = 0; d < size; d++) y[d] += weight * v[j * size + d];
  }
  for (size_t d = 0; sum > 0 && d < size; d++) y[d] /= sum;
  free(scores);
}

/* The element of a mask for the batch, head, row and column `at`. */
static double mask_at(const test_call *call, const double *mask, const size_t *at) {
  const test_tensor *tensor = &call->inputs[extra_input(call->sizes, MASKED)];
  size_t index = 0;
  for (size_t i = 0; i < tensor->rank; i++)
    index = index * tensor->shape[i] + (tensor->shape[i] == 1 ? 0 : at[4 - tensor->rank + i]);
  if (call->sizes[MASKED] == BOOLEAN) return mask[index] != 0 ? 0 : -INFINITY;
  return mask[index];
}

static double added_at(const test_call *call, double *const *inputs, const size_t *at) {
  const size_t *s = call->sizes, lengths = extra_input(s, LENGTHS);
  const double position = (double)at[2] + (double)s[COLUMNS] - (double)s[ROWS], column = (double)at[3];
  double added = 0;
  if (s[CAUSAL] && column > position) return -INFINITY;
  if (s[WINDOW] > 0 && fabs(position - column) >= (double)s[WINDOW]) return -INFINITY;
  if (s[LENGTHS] && column >= inputs[lengths][call->inputs[lengths].rank == 0 ? 0 : at[0]]) return -INFINITY;
  if (s[MASKED] != NO_MASK) added += mask_at(call, inputs[extra_input(s, MASKED)], at);
  if (s[SLOPES]) added -= inputs[extra_input(s, SLOPES)][at[1]] * fabs(position - column);
  return added;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, of_group = s[HEADS] / s[GROUPS], each = s[COLUMNS] * s[SIZE];
  double *added = calloc(s[COLUMNS], sizeof *added);
  assert_non_null(added);
  for (size_t head = 0; head < s[BATCHES] * s[HEADS]; head++) {
    const size_t group = head / s[HEADS] * s[GROUPS] + head % s[HEADS] / of_group;
    for (size_t i = 0; i < s[ROWS]; i++) {
      const size_t row = (head * s[ROWS] + i) * s[SIZE];
      for (size_t j = 0; j < s[COLUMNS]; j++)
        added[j] = added_at(call, inputs, (const size_t[]){head / s[HEADS], head % s[HEADS], i, j});
      attend(inputs[Q] + row, inputs[K] + group * each, inputs[V] + group * each, added, s[COLUMNS], s[SIZE],
             call->numbers[SCALE], result + row);
    }
  }
  free(added);
}

/* Packed ----------------------------------------------------------------------------------------------------------- */

static void draw_packed(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[BATCHES] = test_draw_between(seed, 1, 3);
  s[GROUPS] = test_draw_between(seed, 1, 2);
  s[HEADS] = s[GROUPS] * test_draw_between(seed, 1, 3);
  s[ROWS] = s[COLUMNS] = test_draw_between(seed, 1, test_draw_between(seed, 0, 3) ? 9 : 80);
  s[SIZE] = test_draw_between(seed, 1, 12);
  s[CAUSAL] = test_draw_between(seed, 0, 1);
  call->numbers[SCALE] = 0.3;
  test_add_float(call, (const size_t[]){s[BATCHES], s[ROWS], (s[HEADS] + 2 * s[GROUPS]) * s[SIZE]}, 3, -1, 1);
}

static rondo_status build_packed(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                 rondo_value *result) {
  const rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = call->sizes[CAUSAL] != 0,
                                           .scale = 0.3f};
  return rondo_op_attention_packed(program, inputs[0], call->sizes[HEADS], call->sizes[GROUPS], &options, result);
}

/* Heads [.., rows, size] of a batch out of rows from element `first` on. */
static double *take_heads(const double *rows, size_t count, size_t row, size_t first, size_t heads, size_t size) {
  double *taken = calloc(heads * count * size, sizeof *taken);
  assert_non_null(taken);
  for (size_t i = 0; i < heads * count; i++)
    memcpy(taken + i * size, rows + i % count * row + first + i / count * size, size * sizeof *taken);
  return taken;
}

static void reference_packed(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, row = (s[HEADS] + 2 * s[GROUPS]) * s[SIZE], each = s[ROWS] * s[SIZE];
  for (size_t batch = 0; batch < s[BATCHES]; batch++) {
    const double *rows = inputs[0] + batch * s[ROWS] * row;
    double *q = take_heads(rows, s[ROWS], row, 0, s[HEADS], s[SIZE]);
    double *k = take_heads(rows, s[ROWS], row, s[HEADS] * s[SIZE], s[GROUPS], s[SIZE]);
    double *v = take_heads(rows, s[ROWS], row, (s[HEADS] + s[GROUPS]) * s[SIZE], s[GROUPS], s[SIZE]);
    for (size_t i = 0; i < s[HEADS] * s[ROWS]; i++) {
      const size_t head = i / s[ROWS], at = i % s[ROWS], group = head / (s[HEADS] / s[GROUPS]);
      attend(q + i * s[SIZE], k + group * each, v + group * each, NULL, s[CAUSAL] ? at + 1 : s[ROWS], s[SIZE],
             call->numbers[SCALE], result + ((batch * s[ROWS] + at) * s[HEADS] + head) * s[SIZE]);
    }
    free(q);
    free(k);
    free(v);
  }
}

/* Rows that see nothing -------------------------------------------------------------------------------------------- */

enum { T = 3, D = 5 };

/* The sum of attention with this mask [T, T], and the gradients, as outputs. */
static rondo_program *make_masked(rondo_type mask_type, bool has_lengths) {
  static const char *const names[] = {"q", "k", "v"}, *const gradients[] = {"dq", "dk", "dv", "dmask"};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value in[4], made[4], y, sum;
  for (int i = 0; i < 3; i++)
    assert_ok(rondo_program_input(program, names[i], RONDO_F32, (const size_t[]){1, 1, T, D}, 4, &in[i]));
  assert_ok(rondo_program_input(program, "mask", mask_type, (const size_t[]){T, T}, 2, &in[3]));
  if (has_lengths) assert_ok(rondo_program_input(program, "lengths", RONDO_I32, NULL, 0, &options.lengths));
  options.mask = in[3];
  assert_ok(rondo_op_attention(program, in[0], in[1], in[2], &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &sum));
  const size_t count = mask_type == RONDO_F32 ? 4 : 3;
  assert_ok(rondo_program_gradients(program, sum, in, count, made));
  for (size_t i = 0; i < count; i++) assert_ok(rondo_program_output(program, gradients[i], made[i]));
  return program;
}

static void fill(float *x, size_t count, uint64_t *seed) {
  for (size_t i = 0; i < count; i++) x[i] = (float)test_random_below(seed, 201) / 100 - 1;
}

static void assert_zeros(const float *x, size_t count) {
  for (size_t i = 0; i < count; i++) assert_true(x[i] == 0);
}

static void assert_finite(const float *x, size_t count) {
  for (size_t i = 0; i < count; i++) assert_true(isfinite(x[i]));
}

/* Numbers that are none -------------------------------------------------------------------------------------------- */

enum { LONGEST = 150, MOST_ELEMENTS = LONGEST * D };

/* A row of the result is NaN where its row of q is, or where it sees a row of k that is; the others are numbers. */
static void assert_passed_on(rondo_compiled *compiled, size_t count, bool is_q, size_t at, const bool *mask) {
  static float x[3][MOST_ELEMENTS], y[MOST_ELEMENTS];
  static const char *const names[] = {"q", "k", "v"};
  uint64_t seed = 5;
  const size_t bytes = count * D * sizeof **x;
  for (int i = 0; i < 3; i++) fill(x[i], count * D, &seed);
  x[is_q ? Q : K][at * D + 2] = NAN;
  for (int i = 0; i < 3; i++) assert_ok(rondo_compiled_write(compiled, names[i], x[i], bytes));
  if (mask != NULL) assert_ok(rondo_compiled_write(compiled, "mask", mask, count * count * sizeof *mask));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, bytes));
  for (size_t i = 0; i < count * D; i++) {
    const size_t row = i / D;
    assert_int_equal(isnan(y[i]) != 0, is_q ? row == at : mask == NULL || mask[row * count + at]);
  }
}

static rondo_compiled *compile_square(test_fixture *t, size_t count, bool is_masked) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  const size_t shape[] = {1, 1, count, D};
  rondo_value q, k, v, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, shape, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F32, shape, 4, &k));
  assert_ok(rondo_program_input(program, "v", RONDO_F32, shape, 4, &v));
  if (is_masked)
    assert_ok(rondo_program_input(program, "mask", RONDO_BOOL, (const size_t[]){count, count}, 2, &options.mask));
  assert_ok(rondo_op_attention(program, q, k, v, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return test_compile(program, t->device, NULL);
}

/* As in PyTorch. In the second mask, each row sees only its own column. */
TEST(test_pr4_nans_are_passed_on) {
  static const size_t counts[] = {8, 20, LONGEST}, places[] = {0, 5, 13, 17, 80, 131};
  static bool masks[2][LONGEST * LONGEST];
  for (size_t c = 0; c < 3; c++) {
    const size_t count = counts[c];
    rondo_compiled *plain = compile_square(t, count, false), *masked = compile_square(t, count, true);
    for (size_t i = 0; i < count * count; i++) {
      const size_t row = i / count, column = i % count;
      masks[0][i] = (row + column) % 3 != 0;
      masks[1][i] = row == column;
    }
    for (size_t i = 0; i < 6 && places[i] < count; i++) {
      for (int is_q = 0; is_q < 2; is_q++) {
        assert_passed_on(plain, count, is_q, places[i], NULL);
        for (int m = 0; m < 2; m++) assert_passed_on(masked, count, is_q, places[i], masks[m]);
      }
    }
  }
}

/* The second row sees nothing. */
TEST(test_pr4_rows_that_see_nothing_are_zeros) {
  const bool hidden[T][T] = {{1, 0, 0}, {0, 0, 0}, {1, 1, 1}};
  const float added[T][T] = {{0, -INFINITY, -INFINITY}, {-INFINITY, -INFINITY, -INFINITY}, {0, 1, 0}};
  for (int i = 0; i < 2; i++) {
    float in[3][T][D], y[T][D], made[3][T][D], dmask[T][T] = {{0}};
    uint64_t seed = 3;
    fill(&in[0][0][0], 3 * T * D, &seed);
    const test_bytes inputs[] = {
        TEST_BYTES("q", in[0]),
        TEST_BYTES("k", in[1]),
        TEST_BYTES("v", in[2]),
        i == 0 ? (test_bytes)TEST_BYTES("mask", hidden) : (test_bytes)TEST_BYTES("mask", added),
        {0}};
    test_bytes outputs[] = {TEST_BYTES("y", y),        TEST_BYTES("dq", made[0]),  TEST_BYTES("dk", made[1]),
                            TEST_BYTES("dv", made[2]), TEST_BYTES("dmask", dmask), {0}};
    if (i == 0) outputs[4] = (test_bytes){0};
    test_run_program(t, make_masked(i == 0 ? RONDO_BOOL : RONDO_F32, false), inputs, outputs);
    assert_zeros(y[1], D);
    assert_zeros(made[0][1], D);
    assert_zeros(dmask[1], T);
    assert_memory_equal(y[0], in[2][0], sizeof y[0]); /* the first row sees one column */
    assert_finite(y[0], T * D);
    assert_finite(made[0][0], 3 * T * D);
  }
}

/* k and v at and after the length may be anything, and get no gradient. */
TEST(test_pr4_padding_is_not_read) {
  const bool mask[T][T] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  const int32_t length = 2;
  float in[3][T][D], y[2][T][D], made[2][3][T][D];
  for (int i = 0; i < 2; i++) {
    uint64_t seed = 3;
    fill(&in[0][0][0], 3 * T * D, &seed);
    for (size_t d = 0; i == 1 && d < D; d++) in[1][2][d] = in[2][2][d] = NAN;
    const test_bytes inputs[] = {TEST_BYTES("q", in[0]),   TEST_BYTES("k", in[1]),        TEST_BYTES("v", in[2]),
                                 TEST_BYTES("mask", mask), TEST_BYTES("lengths", length), {0}};
    const test_bytes outputs[] = {TEST_BYTES("y", y[i]),
                                  TEST_BYTES("dq", made[i][0]),
                                  TEST_BYTES("dk", made[i][1]),
                                  TEST_BYTES("dv", made[i][2]),
                                  {0}};
    test_run_program(t, make_masked(RONDO_BOOL, true), inputs, outputs);
    assert_zeros(made[i][1][2], D);
    assert_zeros(made[i][2][2], D);
  }
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  assert_memory_equal(made[0], made[1], sizeof made[0]);
}

TEST(test_pr4_lengths_out_of_range_fail) {
  const int32_t wrong[] = {-1, T + 1};
  for (int i = 0; i < 2; i++) {
    rondo_program *program = test_new_program();
    rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
    rondo_value x, y;
    float result[2][1][T][D];
    const int32_t lengths[] = {T, wrong[i]};
    assert_ok(rondo_op_full(program, RONDO_F32, (const size_t[]){2, 1, T, D}, 4, 1, &x));
    assert_ok(rondo_program_input(program, "indices", RONDO_I32, (const size_t[]){2}, 1, &options.lengths));
    assert_ok(rondo_op_attention(program, x, x, x, &options, &y));
    test_wrong_index(t, program, y, lengths, sizeof lengths,
                     i == 0 ? "attention_plan (operator 1): lengths has -1 at position 1, which is not in 0 .. 3"
                            : "attention_plan (operator 1): lengths has 4 at position 1, which is not in 0 .. 3",
                     result, sizeof result);
    assert_true(result[0][0][0][0] == 1);
    assert_zeros(result[1][0][0], T * D);
    rondo_program_destroy(program);
  }
}

/* Workers ---------------------------------------------------------------------------------------------------------- */

enum { LONG = 150, BITS = 2 * 3 * LONG * D };

/* y and the gradients of x, which is q, k and v, and of a mask that both batches share. */
typedef struct worker_bits {
  float y[BITS], dx[BITS], dmask[LONG];
} worker_bits;

static void run_with_workers(uint32_t workers, worker_bits *out) {
  const rondo_device_options device_options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true, .window = 100};
  rondo_device *device = NULL;
  rondo_program *program = test_new_program();
  rondo_value x, y, sum, made[2];
  static float numbers[BITS];
  uint64_t seed = 4;
  fill(numbers, BITS, &seed);
  assert_ok(rondo_device_open(test_device_name(), &device_options, &device));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){2, 3, LONG, D}, 4, &x));
  assert_ok(rondo_program_input(program, "mask", RONDO_F32, (const size_t[]){LONG}, 1, &options.mask));
  assert_ok(rondo_op_attention(program, x, x, x, &options, &y));
  assert_ok(rondo_op_square(program, y, &sum));
  assert_ok(rondo_op_sum(program, sum, NULL, 0, false, &sum));
  assert_ok(rondo_program_gradients(program, sum, (const rondo_value[]){x, options.mask}, 2, made));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "dx", made[0]));
  assert_ok(rondo_program_output(program, "dmask", made[1]));
  rondo_compiled *compiled = test_compile(program, device, NULL);
  assert_ok(rondo_compiled_write(compiled, "x", numbers, sizeof numbers));
  assert_ok(rondo_compiled_write(compiled, "mask", numbers, LONG * sizeof *numbers));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", out->y, sizeof out->y));
  assert_ok(rondo_compiled_read(compiled, "dx", out->dx, sizeof out->dx));
  assert_ok(rondo_compiled_read(compiled, "dmask", out->dmask, sizeof out->dmask));
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
}

TEST(test_pr4_bits_do_not_depend_on_the_workers) {
  static worker_bits one, more;
  (void)t;
  run_with_workers(1, &one);
  for (uint32_t workers = 2; workers <= 5; workers += 3) {
    run_with_workers(workers, &more);
    assert_memory_equal(&one, &more, sizeof one);
  }
}

/* Refused ---------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_packed_rows_that_do_not_fit_are_refused) {
  const size_t wrong[][2] = {{0, 1}, {4, 0}, {4, 3}, {5, 5}, {SIZE_MAX / 2, SIZE_MAX / 2}};
  rondo_program *program = test_new_program();
  rondo_value qkv, wide, y;
  assert_ok(rondo_program_input(program, "qkv", RONDO_F32, (const size_t[]){2, 3, 96}, 3, &qkv));
  assert_ok(rondo_program_input(program, "wide", RONDO_F32, (const size_t[]){2, 3, 3 * 257}, 3, &wide));
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_fails(rondo_op_attention_packed(program, qkv, wrong[i][0], wrong[i][1], NULL, &y), RONDO_INVALID_ARGUMENT);
    assert_message("a row of 96 elements cannot be");
    assert_int_equal(y.id, 0);
  }
  assert_fails(rondo_op_attention_packed(program, wide, 1, 1, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a head has 257 elements; the maximum is 256: use more heads");
  assert_ok(rondo_op_attention_packed(program, qkv, 4, 4, NULL, &y));
  rondo_program_destroy(program);
}

UNIT_TEST(test_pr4_masks_that_do_not_fit_are_refused) {
  static const size_t wrong[][5] = {{4, 5}, {3, 4, 5}, {2, 4, 3, 1}, {1, 1, 1, 1, 1}};
  static const size_t ranks[] = {2, 3, 4, 5};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value q, k, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F16, (const size_t[]){2, 4, 4, 8}, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F16, (const size_t[]){2, 2, 6, 8}, 4, &k));
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
    assert_ok(rondo_op_full(program, RONDO_F32, wrong[i], ranks[i], 0, &options.mask));
    assert_error(rondo_op_attention(program, q, k, k, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
    assert_message("the mask cannot be broadcast to [b, h, t, s], which is [2, 4, 4, 6]");
  }
  assert_ok(rondo_op_full(program, RONDO_BOOL, (const size_t[]){2, 6}, 2, 0, &options.mask));
  assert_error(rondo_op_attention(program, q, k, k, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("which is [2, 4, 4, 6]: reshape [b, s] to [b, 1, 1, s]");
  assert_ok(rondo_op_full(program, RONDO_BF16, (const size_t[]){4, 6}, 2, 0, &options.mask));
  assert_error(rondo_op_attention(program, q, k, k, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  options.mask = (rondo_value){0};
  assert_ok(rondo_op_full(program, RONDO_F32, (const size_t[]){2}, 1, 0, &options.alibi_slopes));
  assert_error(rondo_op_attention(program, q, k, k, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("there must be a slope for each of 4 heads of q");
  options.alibi_slopes = (rondo_value){0};
  assert_ok(rondo_op_full(program, RONDO_I32, (const size_t[]){3}, 1, 0, &options.lengths));
  assert_error(rondo_op_attention(program, q, k, k, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("lengths must be a scalar or [b]");
  options.lengths = (rondo_value){0};
  options.window = SIZE_MAX;
  assert_error(rondo_op_attention(program, q, k, k, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

UNIT_TEST(test_what_does_not_fit_is_refused) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_program *program = test_new_program();
  rondo_value q, k, long_q, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, (const size_t[]){2, 4, 1, 8}, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F32, (const size_t[]){2, 3, 1, 8}, 4, &k));
  assert_ok(rondo_program_input(program, "long", RONDO_F32, (const size_t[]){2, 3, 2, 8}, 4, &long_q));
  assert_fails(rondo_op_attention(program, q, k, k, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_message("with h a multiple of g; h is 4 and g is 3");
  assert_fails(rondo_op_attention(program, long_q, k, k, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("causal attention needs at least as many rows of k as of q: there are 1 and 2");
  assert_fails(rondo_op_attention(program, q, k, q, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_message("k and v must have one type and shape");
  options.scale = -1;
  assert_fails(rondo_op_attention(program, q, q, q, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("scale -1 must be finite and above 0");
  options = (rondo_attention_options){RONDO_ATTENTION_OPTIONS_INIT, .k_cache = q, .v_cache = q};
  assert_fails(rondo_op_attention(program, q, q, q, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("the caches must be two states");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

#define OPERATOR .build = build, .reference = reference
#define PACKED .build = build_packed, .reference = reference_packed

static const test_operator rows[] = {
    {.name = "attention", .draw = draw, OPERATOR, .gradient_tolerance = 4e-4},
    {.name = "long attention", .draw = draw_long, OPERATOR, .gradient_tolerance = 4e-3, .tolerance = 2e-5},
    {.name = "wide attention", .draw = draw_wide, OPERATOR, .gradient_tolerance = 4e-3, .tolerance = 2e-5},
    {.name = "hidden columns", .draw = draw_hidden, OPERATOR, .gradient_tolerance = 4e-4},
    {.name = "long hidden columns",
     .draw = draw_long_hidden,
     OPERATOR,
     .gradient_tolerance = 4e-3,
     .tolerance = 2e-5,
     .gradient_samples = 12},
    {.name = "wide hidden columns",
     .draw = draw_wide_hidden,
     OPERATOR,
     .gradient_tolerance = 4e-3,
     .tolerance = 2e-5,
     .gradient_samples = 12},
    {.name = "attention_packed", .draw = draw_packed, PACKED, .tolerance = 8e-6, .gradient_tolerance = 1e-3},
};

TEST_OPERATOR_MAIN(rows)
