/* SPDX-License-Identifier: MIT
 * attention: groups of heads, causal or not, tiles at the edge; and token by token with a cache.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { BATCHES, HEADS, GROUPS, ROWS, COLUMNS, SIZE, CAUSAL }; /* sizes */
enum { SCALE };                                               /* numbers */

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
static void draw_wide(uint64_t *seed, test_call *call) { draw_of(seed, call, 1, 20, 128); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const bool is_usual = call->numbers[SCALE] != 0.3;
  const rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = call->sizes[CAUSAL] != 0,
                                           .scale = is_usual ? 0 : 0.3f};
  return rondo_op_attention(program, inputs[0], inputs[1], inputs[2], is_usual && !options.causal ? NULL : &options,
                            result);
}

/* One row of a head: k and v have `columns` rows. */
static void attend(const double *q, const double *k, const double *v, size_t columns, size_t size, double scale,
                   double *y) {
  double most = -INFINITY, sum = 0;
  double *scores = calloc(columns, sizeof *scores);
  assert_non_null(scores);
  for (size_t j = 0; j < columns; j++) {
    for (size_t d = 0; d < size; d++) scores[j] += scale * q[d] * k[j * size + d];
    most = fmax(most, scores[j]);
  }
  for (size_t d = 0; d < size; d++) y[d] = 0;
  for (size_t j = 0; j < columns; j++) {
    const double weight = exp(scores[j] - most);
    sum += weight;
    for (size_t d = 0; d < size; d++) y[d] += weight * v[j * size + d];
  }
  for (size_t d = 0; d < size; d++) y[d] /= sum;
  free(scores);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, of_group = s[HEADS] / s[GROUPS], each = s[COLUMNS] * s[SIZE];
  for (size_t head = 0; head < s[BATCHES] * s[HEADS]; head++) {
    const size_t group = head / s[HEADS] * s[GROUPS] + head % s[HEADS] / of_group;
    for (size_t i = 0; i < s[ROWS]; i++) {
      const size_t row = (head * s[ROWS] + i) * s[SIZE];
      attend(inputs[0] + row, inputs[1] + group * each, inputs[2] + group * each,
             s[CAUSAL] ? s[COLUMNS] - s[ROWS] + i + 1 : s[COLUMNS], s[SIZE], call->numbers[SCALE], result + row);
    }
  }
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
      attend(q + i * s[SIZE], k + group * each, v + group * each, s[CAUSAL] ? at + 1 : s[ROWS], s[SIZE],
             call->numbers[SCALE], result + ((batch * s[ROWS] + at) * s[HEADS] + head) * s[SIZE]);
    }
    free(q);
    free(k);
    free(v);
  }
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

enum { B = 2, H = 4, G = 2, S = 19, D = 20 };

static void add_caches(rondo_program *program, rondo_attention_options *options) {
  const size_t shape[] = {B, G, S, D};
  assert_ok(rondo_program_state(program, "k cache", RONDO_F32, shape, 4, &options->k_cache));
  assert_ok(rondo_program_state(program, "v cache", RONDO_F32, shape, 4, &options->v_cache));
}

static rondo_program *make_decoder(void) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .scale = 0.5f};
  rondo_program *program = test_new_program();
  rondo_value q, k, v, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, (const size_t[]){B, H, 1, D}, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F32, (const size_t[]){B, G, 1, D}, 4, &k));
  assert_ok(rondo_program_input(program, "v", RONDO_F32, (const size_t[]){B, G, 1, D}, 4, &v));
  add_caches(program, &options);
  assert_ok(rondo_program_input(program, "length", RONDO_I32, NULL, 0, &options.lengths));
  assert_ok(rondo_op_attention(program, q, k, v, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static void draw_row(uint64_t *seed, rondo_compiled *compiled, const char *name, size_t count, double *exact) {
  float row[B * H * D];
  for (size_t i = 0; i < count; i++) exact[i] = (double)(row[i] = (float)test_random_below(seed, 201) / 100 - 1);
  assert_ok(rondo_compiled_write(compiled, name, row, count * sizeof *row));
}

/* Row `at` of what the references' caches hold. */
static void keep_row(const double *row, size_t at, double (*cache)[S][D]) {
  for (size_t i = 0; i < B * G; i++) memcpy(cache[i][at], row + i * D, D * sizeof *row);
}

TEST(test_tokens_see_those_before_them) {
  static double k_cache[B * G][S][D], v_cache[B * G][S][D];
  rondo_program *program = make_decoder();
  uint64_t seed = 5;
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (int32_t at = 0; at < S; at++) {
    double q[B * H * D], row[B * G * D], wanted[D];
    float y[B * H * D];
    draw_row(&seed, compiled, "q", B * H * D, q);
    draw_row(&seed, compiled, "k", B * G * D, row);
    keep_row(row, (size_t)at, k_cache);
    draw_row(&seed, compiled, "v", B * G * D, row);
    keep_row(row, (size_t)at, v_cache);
    assert_ok(rondo_compiled_write(compiled, "length", &at, sizeof at));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    for (size_t head = 0; head < B * H; head++) {
      const size_t group = head / (H / G);
      attend(q + head * D, k_cache[group][0], v_cache[group][0], (size_t)at + 1, D, 0.5, wanted);
      for (size_t i = 0; i < D; i++) assert_true(fabs((double)y[head * D + i] - wanted[i]) < 1e-5);
    }
  }
  const int32_t full = S;
  assert_ok(rondo_compiled_write(compiled, "length", &full, sizeof full));
  assert_ok(rondo_compiled_run(compiled));
  assert_fails(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED);
  assert_message("attention_plan");
  assert_message("lengths has 19 at position 0, which is not in 0 .. 18");
}

enum { ROW = (H + 2 * G) * D, FILLED = 7 };

static rondo_value add_packed(rondo_program *program, size_t rows) {
  rondo_value qkv;
  assert_ok(rondo_program_input(program, "qkv", RONDO_F32, (const size_t[]){B, rows, ROW}, 3, &qkv));
  return qkv;
}

static rondo_compiled *compile(test_fixture *t, rondo_program *program, rondo_compiled *share) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share};
  return test_compile(program, t->device, &options);
}

/* Causal attention of all rows at once. */
static rondo_compiled *compile_whole(test_fixture *t) {
  const rondo_attention_options causal = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_program *program = test_new_program();
  rondo_value y;
  assert_ok(rondo_op_attention_packed(program, add_packed(program, S), H, G, &causal, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return compile(t, program, NULL);
}

static rondo_compiled *compile_fill(test_fixture *t) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value y;
  add_caches(program, &options);
  assert_ok(rondo_op_attention_packed(program, add_packed(program, FILLED), H, G, &options, &y));
  return compile(t, program, NULL);
}

static rondo_compiled *compile_one(test_fixture *t, rondo_compiled *share) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value y;
  const rondo_value qkv = add_packed(program, 1);
  add_caches(program, &options);
  assert_ok(rondo_program_input(program, "length", RONDO_I32, NULL, 0, &options.lengths));
  assert_ok(rondo_op_attention_packed(program, qkv, H, G, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return compile(t, program, share);
}

static void compare_tokens(rondo_compiled *one, float (*rows)[S][ROW], float (*wanted)[S][H * D], size_t first) {
  for (size_t at = first; at < S; at++) {
    const int32_t length = (int32_t)at;
    float token[B][ROW], got[B][H * D];
    for (size_t i = 0; i < B; i++) memcpy(token[i], rows[i][at], sizeof token[i]);
    assert_ok(rondo_compiled_write(one, "qkv", token, sizeof token));
    assert_ok(rondo_compiled_write(one, "length", &length, sizeof length));
    assert_ok(rondo_compiled_run(one));
    assert_ok(rondo_compiled_read(one, "y", got, sizeof got));
    for (size_t i = 0; i < B * H * D; i++)
      assert_true(fabsf(got[i / (H * D)][i % (H * D)] - wanted[i / (H * D)][at][i % (H * D)]) < 1e-5f);
  }
}

/* Token by token the same as all at once, from empty caches and from those that another program has begun. */
TEST(test_packed_tokens_give_what_all_at_once_do) {
  static float rows[B][S][ROW], wanted[B][S][H * D];
  float begun[B][FILLED][ROW];
  uint64_t seed = 9;
  for (size_t i = 0; i < B * S * ROW; i++) (&rows[0][0][0])[i] = (float)test_random_below(&seed, 201) / 100 - 1;
  for (size_t i = 0; i < B; i++) memcpy(begun[i], rows[i], sizeof begun[i]);
  rondo_compiled *whole = compile_whole(t), *fill = compile_fill(t), *one = compile_one(t, fill);
  assert_ok(rondo_compiled_write(whole, "qkv", rows, sizeof rows));
  assert_ok(rondo_compiled_run(whole));
  assert_ok(rondo_compiled_read(whole, "y", wanted, sizeof wanted));
  compare_tokens(one, rows, wanted, 0);
  assert_ok(rondo_compiled_write(fill, "qkv", begun, sizeof begun));
  assert_ok(rondo_compiled_run(fill));
  compare_tokens(one, rows, wanted, FILLED);
  assert_ok(rondo_compiled_destroy(one));
  assert_ok(rondo_compiled_destroy(fill));
  assert_ok(rondo_compiled_destroy(whole));
}

UNIT_TEST(test_caches_that_do_not_fit_are_refused) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value shorter, y;
  add_caches(program, &options);
  const rondo_value v_cache = options.v_cache, qkv = add_packed(program, S);
  assert_ok(rondo_program_state(program, "short", RONDO_F32, (const size_t[]){B, G, S - 1, D}, 4, &shorter));
  options.v_cache = options.k_cache;
  assert_fails(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("the caches must be two states");
  options.v_cache = shorter;
  assert_fails(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("k_cache and v_cache must have one type and shape");
  options.v_cache = (rondo_value){0};
  assert_error(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  assert_message("k_cache and v_cache must be given together");
  assert_ok(rondo_program_state(program, "short 2", RONDO_F32, (const size_t[]){B, G, S - 1, D}, 4, &options.v_cache));
  options.k_cache = shorter;
  assert_fails(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("with space for t rows");
  assert_fails(rondo_op_attention_packed(program, qkv, 0, 0, &options, &y), RONDO_INVALID_ARGUMENT);
  options = (rondo_attention_options){RONDO_ATTENTION_OPTIONS_INIT, .block_table = v_cache};
  assert_error(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  assert_message("block_table lists blocks of caches");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

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

UNIT_TEST(test_what_does_not_fit_is_refused) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_program *program = test_new_program();
  rondo_value q, k, long_q, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, (const size_t[]){2, 4, 1, 8}, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F32, (const size_t[]){2, 3, 1, 8}, 4, &k));
  assert_ok(rondo_program_input(program, "long", RONDO_F32, (const size_t[]){2, 3, 2, 8}, 4, &long_q));
  assert_fails(rondo_op_attention(program, q, k, k, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_message("with h a multiple of g");
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
    {.name = "attention_packed", .draw = draw_packed, PACKED, .tolerance = 8e-6, .gradient_tolerance = 1e-3},
};

TEST_OPERATOR_MAIN(rows)
