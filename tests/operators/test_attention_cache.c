/* SPDX-License-Identifier: MIT
 * Attention with caches (PR-4): token by token, several new rows, lengths and counts of each sequence, block tables,
 * masks; sequences that are left out; what fails a run, and that it changes no cache; and what is refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

static float draw_one(uint64_t *seed) { return (float)test_random_below(seed, 201) / 100 - 1; }

/* Decoding --------------------------------------------------------------------------------------------------------- */

enum { B = 2, H = 4, G = 2, S = 19, D = 20 };

/* One row of a head, with a scale of 1/2. */
static void attend(const double *q, const double *k, const double *v, size_t columns, double *y) {
  double scores[S] = {0}, most = -INFINITY, sum = 0;
  for (size_t j = 0; j < columns; j++) {
    for (size_t d = 0; d < D; d++) scores[j] += 0.5 * q[d] * k[j * D + d];
    most = fmax(most, scores[j]);
  }
  for (size_t d = 0; d < D; d++) y[d] = 0;
  for (size_t j = 0; j < columns; j++) sum += exp(scores[j] - most);
  for (size_t j = 0; j < columns; j++)
    for (size_t d = 0; d < D; d++) y[d] += exp(scores[j] - most) / sum * v[j * D + d];
}

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
  for (size_t i = 0; i < count; i++) exact[i] = (double)(row[i] = draw_one(seed));
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
      attend(q + head * D, k_cache[group][0], v_cache[group][0], (size_t)at + 1, wanted);
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

/* With a length, and a count of rows, for all sequences. */
static rondo_compiled *compile_part(test_fixture *t) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value y;
  const rondo_value qkv = add_packed(program, FILLED);
  add_caches(program, &options);
  assert_ok(rondo_program_input(program, "length", RONDO_I32, NULL, 0, &options.lengths));
  assert_ok(rondo_program_input(program, "count", RONDO_I32, NULL, 0, &options.new_rows));
  assert_ok(rondo_op_attention_packed(program, qkv, H, G, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
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
  for (size_t i = 0; i < B * S * ROW; i++) (&rows[0][0][0])[i] = draw_one(&seed);
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

/* Against a reference ---------------------------------------------------------------------------------------------- */

enum { MOST_BATCHES = 3, MOST_NEW = 70, MOST_BLOCKS = 24 };

/* A decoder of random shape, and what its caches hold. */
typedef struct decoder {
  size_t batches, heads, groups, rows, size;     /* rows: new ones of a run */
  size_t capacity, block_rows, blocks, of_table; /* blocks of the caches; entries of a row of the table, 0: none */
  size_t window;
  rondo_type type;
  bool is_packed, has_mask, has_slopes, has_counts;
  float *k, *v, *mask; /* [b, g, capacity, d]; [t, capacity] */
  float slopes[8];
  int32_t lengths[MOST_BATCHES], counts[MOST_BATCHES], table[MOST_BATCHES * MOST_BLOCKS];
  rondo_compiled *compiled;
} decoder;

/* A value of the type, which both sides compute with; F16 and BF16 hold multiples of 1/16 to 2 exactly. */
static float draw_exact(uint64_t *seed) { return (float)test_random_below(seed, 65) / 16 - 2; }

static uint16_t to_half(rondo_type type, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (type == RONDO_BF16) return (uint16_t)(bits >> 16);
  if (x == 0) return 0;
  return (uint16_t)((bits >> 16 & 0x8000u) | ((bits >> 23 & 255u) - 112u) << 10 | (bits >> 13 & 0x3ffu));
}

static float from_half(rondo_type type, uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  if (type == RONDO_F16 && (half & 0x7fffu) == 0) return 0;
  if (type == RONDO_F16) bits = (half & 0x8000u) << 16 | (((half & 0x7fffu) << 13) + 0x38000000u);
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void write_floats(const decoder *d, const char *name, const float *x, size_t count) {
  uint16_t *halves = calloc(count, sizeof *halves);
  assert_non_null(halves);
  for (size_t i = 0; i < count; i++) halves[i] = to_half(d->type, x[i]);
  if (d->type == RONDO_F32)
    assert_ok(rondo_compiled_write(d->compiled, name, x, count * sizeof *x));
  else
    assert_ok(rondo_compiled_write(d->compiled, name, halves, count * sizeof *halves));
  free(halves);
}

static void read_floats(const decoder *d, const char *name, float *x, size_t count) {
  uint16_t *halves = calloc(count, sizeof *halves);
  assert_non_null(halves);
  if (d->type == RONDO_F32)
    assert_ok(rondo_compiled_read(d->compiled, name, x, count * sizeof *x));
  else
    assert_ok(rondo_compiled_read(d->compiled, name, halves, count * sizeof *halves));
  for (size_t i = 0; d->type != RONDO_F32 && i < count; i++) x[i] = from_half(d->type, halves[i]);
  free(halves);
}

static void draw_decoder(decoder *d, uint64_t *seed, rondo_type type) {
  *d = (decoder){.type = type,
                 .batches = test_draw_between(seed, 1, MOST_BATCHES),
                 .groups = test_draw_between(seed, 1, 2),
                 .size = test_draw_between(seed, 1, test_draw_between(seed, 0, 3) ? 20 : 200),
                 .window = test_draw_between(seed, 0, 2) ? 0 : test_draw_between(seed, 1, 40),
                 .is_packed = test_draw_between(seed, 0, 1),
                 .has_mask = test_draw_between(seed, 0, 2) == 0,
                 .has_slopes = test_draw_between(seed, 0, 2) == 0,
                 .has_counts = test_draw_between(seed, 0, 1)};
  d->heads = d->groups * test_draw_between(seed, 1, 3);
  d->rows =
      test_draw_between(seed, 0, 1) ? 1 : test_draw_between(seed, 2, test_draw_between(seed, 0, 2) ? 9 : MOST_NEW);
  d->of_table = test_draw_between(seed, 0, 1) ? 0 : test_draw_between(seed, 1, MOST_BLOCKS - 4);
  d->block_rows = d->of_table > 0 ? d->rows / d->of_table + test_draw_between(seed, 1, 9)
                                  : d->rows + test_draw_between(seed, 0, 90);
  d->capacity = d->block_rows * (d->of_table > 0 ? d->of_table : 1);
  d->blocks = d->of_table > 0 ? d->batches * d->of_table + 2 : d->batches;
}

/* Blocks of the pool in any order; no two sequences share one. */
static void draw_table(decoder *d, uint64_t *seed) {
  int32_t order[MOST_BATCHES * MOST_BLOCKS + 2];
  for (size_t i = 0; i < d->blocks; i++) order[i] = (int32_t)i;
  for (size_t i = d->blocks; i > 1; i--) {
    const size_t other = test_random_below(seed, (uint32_t)i);
    const int32_t kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
  memcpy(d->table, order, d->batches * d->of_table * sizeof *order);
}

static void add_inputs(const decoder *d, rondo_program *program, rondo_attention_options *options) {
  const size_t batches = d->batches;
  const size_t cache[] = {d->blocks, d->groups, d->block_rows, d->size};
  assert_ok(rondo_program_state(program, "k cache", d->type, cache, 4, &options->k_cache));
  assert_ok(rondo_program_state(program, "v cache", d->type, cache, 4, &options->v_cache));
  assert_ok(rondo_program_input(program, "lengths", RONDO_I32, &batches, 1, &options->lengths));
  if (d->has_counts) assert_ok(rondo_program_input(program, "counts", RONDO_I32, &batches, 1, &options->new_rows));
  if (d->of_table > 0)
    assert_ok(rondo_program_input(program, "table", RONDO_I32, (const size_t[]){batches, d->of_table}, 2,
                                  &options->block_table));
  if (d->has_mask)
    assert_ok(
        rondo_program_input(program, "mask", RONDO_F32, (const size_t[]){d->rows, d->capacity}, 2, &options->mask));
  if (d->has_slopes) assert_ok(rondo_program_input(program, "slopes", RONDO_F32, &d->heads, 1, &options->alibi_slopes));
}

static void compile_decoder(test_fixture *t, decoder *d) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .scale = 0.25f, .window = d->window};
  rondo_program *program = test_new_program();
  rondo_value q, k, v, y;
  add_inputs(d, program, &options);
  if (d->is_packed) {
    const size_t shape[] = {d->batches, d->rows, (d->heads + 2 * d->groups) * d->size};
    assert_ok(rondo_program_input(program, "qkv", d->type, shape, 3, &q));
    assert_ok(rondo_op_attention_packed(program, q, d->heads, d->groups, &options, &y));
  } else {
    const size_t of_q[] = {d->batches, d->heads, d->rows, d->size}, of_k[] = {d->batches, d->groups, d->rows, d->size};
    assert_ok(rondo_program_input(program, "q", d->type, of_q, 4, &q));
    assert_ok(rondo_program_input(program, "k", d->type, of_k, 4, &k));
    assert_ok(rondo_program_input(program, "v", d->type, of_k, 4, &v));
    assert_ok(rondo_op_attention(program, q, k, v, &options, &y));
  }
  assert_ok(rondo_program_output(program, "y", y));
  d->compiled = test_compile(program, t->device, NULL);
}

static void begin_decoder(test_fixture *t, decoder *d, uint64_t *seed, rondo_type type) {
  draw_decoder(d, seed, type);
  const size_t cached = d->batches * d->groups * d->capacity * d->size;
  d->k = calloc(cached, sizeof *d->k);
  d->v = calloc(cached, sizeof *d->v);
  d->mask = calloc(d->rows * d->capacity, sizeof *d->mask);
  assert_true(d->k != NULL && d->v != NULL && d->mask != NULL);
  compile_decoder(t, d);
  for (size_t i = 0; i < d->rows * d->capacity; i++)
    d->mask[i] = test_draw_between(seed, 0, 5) == 0 ? -INFINITY : draw_exact(seed);
  for (size_t i = 0; i < d->heads; i++) d->slopes[i] = (float)test_draw_between(seed, 0, 8) / 16;
  if (d->has_mask)
    assert_ok(rondo_compiled_write(d->compiled, "mask", d->mask, d->rows * d->capacity * sizeof *d->mask));
  if (d->has_slopes) assert_ok(rondo_compiled_write(d->compiled, "slopes", d->slopes, d->heads * sizeof *d->slopes));
  draw_table(d, seed);
}

static void end_decoder(decoder *d) {
  assert_ok(rondo_compiled_destroy(d->compiled));
  free(d->k);
  free(d->v);
  free(d->mask);
}

/* Row `row` of head `head` in q, k or v, [b, heads, t, d]. */
static size_t row_at(const decoder *d, size_t heads, size_t batch, size_t head, size_t row) {
  return ((batch * heads + head) * d->rows + row) * d->size;
}

static void pack_rows(const decoder *d, const float *from, size_t heads, size_t first, float *to) {
  const size_t width = (d->heads + 2 * d->groups) * d->size;
  for (size_t i = 0; i < d->batches * heads * d->rows; i++) {
    const size_t row = i % d->rows, head = i / d->rows % heads, batch = i / d->rows / heads;
    memcpy(to + (batch * d->rows + row) * width + (first + head) * d->size, from + i * d->size, d->size * sizeof *from);
  }
}

static void write_rows(const decoder *d, const float *q, const float *k, const float *v) {
  const size_t of_q = d->batches * d->heads * d->rows * d->size, of_k = d->batches * d->groups * d->rows * d->size;
  if (d->is_packed) {
    float *packed = calloc(of_q + 2 * of_k, sizeof *packed);
    assert_non_null(packed);
    pack_rows(d, q, d->heads, 0, packed);
    pack_rows(d, k, d->groups, d->heads, packed);
    pack_rows(d, v, d->groups, d->heads + d->groups, packed);
    write_floats(d, "qkv", packed, of_q + 2 * of_k);
    free(packed);
    return;
  }
  write_floats(d, "q", q, of_q);
  write_floats(d, "k", k, of_k);
  write_floats(d, "v", v, of_k);
}

/* The reference: one row of q of one head, over the columns of its caches, which hold the new rows already. */
static void reference_row(const decoder *d, const float *q, size_t batch, size_t head, size_t row, double *y) {
  const size_t group = head / (d->heads / d->groups), position = (size_t)d->lengths[batch] + row;
  const size_t begin = (batch * d->groups + group) * d->capacity * d->size;
  double most = -INFINITY, sum = 0, *scores = calloc(d->capacity, sizeof *scores);
  assert_non_null(scores);
  for (size_t j = 0; j <= position; j++) {
    for (size_t i = 0; i < d->size; i++)
      scores[j] += 0.25 * (double)q[row_at(d, d->heads, batch, head, row) + i] * (double)d->k[begin + j * d->size + i];
    if (d->has_mask) scores[j] += (double)d->mask[row * d->capacity + j];
    if (d->has_slopes) scores[j] -= (double)d->slopes[head] * (double)(position - j);
    if (d->window > 0 && position - j >= d->window) scores[j] = -INFINITY;
    most = fmax(most, scores[j]);
  }
  for (size_t i = 0; i < d->size; i++) y[i] = 0;
  for (size_t j = 0; most > -INFINITY && j <= position; j++) {
    const double weight = exp(scores[j] - most);
    sum += weight;
    for (size_t i = 0; i < d->size; i++) y[i] += weight * (double)d->v[begin + j * d->size + i];
  }
  for (size_t i = 0; sum > 0 && i < d->size; i++) y[i] /= sum;
  free(scores);
}

/* Appends the rows that each sequence has to the reference's caches. */
static void keep_rows(decoder *d, const float *k, const float *v) {
  for (size_t i = 0; i < d->batches * d->groups; i++) {
    const size_t batch = i / d->groups, count = (size_t)d->counts[batch];
    const size_t at = (i * d->capacity + (size_t)d->lengths[batch]) * d->size, from = i * d->rows * d->size;
    memcpy(d->k + at, k + from, count * d->size * sizeof *k);
    memcpy(d->v + at, v + from, count * d->size * sizeof *v);
  }
}

static size_t y_at(const decoder *d, size_t batch, size_t head, size_t row) {
  if (!d->is_packed) return row_at(d, d->heads, batch, head, row);
  return ((batch * d->rows + row) * d->heads + head) * d->size;
}

static void compare(const decoder *d, const float *q, const float *y) {
  const double tolerance = d->type == RONDO_F32 ? 2e-5 : d->type == RONDO_F16 ? 0x1p-10 : 0x1p-7;
  double wanted[256];
  for (size_t i = 0; i < d->batches * d->heads * d->rows; i++) {
    const size_t row = i % d->rows, head = i / d->rows % d->heads, batch = i / d->rows / d->heads;
    const float *got = y + y_at(d, batch, head, row);
    memset(wanted, 0, sizeof wanted);
    if (row < (size_t)d->counts[batch]) reference_row(d, q, batch, head, row, wanted);
    for (size_t j = 0; j < d->size; j++) {
      if (fabs((double)got[j] - wanted[j]) > tolerance * fmax(1, fabs(wanted[j])))
        fail_msg("sequence %zu, head %zu, row %zu, element %zu is %.9g, not %.9g", batch, head, row, j, (double)got[j],
                 wanted[j]);
    }
  }
}

/* The caches hold the reference's rows, and nothing else has changed: the rest is zeros. */
static void compare_cache(const decoder *d, const char *name, const float *wanted) {
  const size_t count = d->blocks * d->groups * d->block_rows * d->size;
  float *got = calloc(count, sizeof *got), *all = calloc(count, sizeof *all);
  assert_true(got != NULL && all != NULL);
  read_floats(d, name, got, count);
  for (size_t i = 0; i < d->batches * d->groups * d->capacity; i++) {
    const size_t row = i % d->capacity, group = i / d->capacity % d->groups, batch = i / d->capacity / d->groups;
    const size_t block = d->of_table > 0 ? (size_t)d->table[batch * d->of_table + row / d->block_rows] : batch;
    memcpy(all + ((block * d->groups + group) * d->block_rows + row % d->block_rows) * d->size, wanted + i * d->size,
           d->size * sizeof *all);
  }
  assert_memory_equal(got, all, count * sizeof *got);
  free(got);
  free(all);
}

static void write_numbers(const decoder *d) {
  int32_t table[MOST_BATCHES * MOST_BLOCKS];
  assert_ok(rondo_compiled_write(d->compiled, "lengths", d->lengths, d->batches * sizeof *d->lengths));
  if (d->has_counts) assert_ok(rondo_compiled_write(d->compiled, "counts", d->counts, d->batches * sizeof *d->counts));
  if (d->of_table == 0) return;
  memcpy(table, d->table, sizeof table);
  for (size_t i = 0; i < d->batches * d->of_table; i++) { /* entries that no row uses may be anything */
    const size_t batch = i / d->of_table, used = (size_t)d->lengths[batch] + (size_t)d->counts[batch];
    if (i % d->of_table * d->block_rows >= used) table[i] = -7;
  }
  assert_ok(rondo_compiled_write(d->compiled, "table", table, d->batches * d->of_table * sizeof *table));
}

/* How many rows each sequence gets, which fit; sometimes a sequence goes back, as after guesses that were refused. */
static void draw_counts(decoder *d, uint64_t *seed) {
  for (size_t i = 0; i < d->batches; i++) {
    if (d->lengths[i] > 0 && test_random_below(seed, 8) == 0)
      d->lengths[i] -= (int32_t)test_draw_between(seed, 1, 2) % (d->lengths[i] + 1);
    const size_t space = d->capacity - (size_t)d->lengths[i];
    d->counts[i] = (int32_t)d->rows;
    if (d->has_counts)
      d->counts[i] = (int32_t)test_draw_between(seed, 0, space < d->rows ? space : d->rows);
    else if (space < d->rows)
      d->lengths[i] = (int32_t)(d->capacity - d->rows);
  }
}

static void run_step(decoder *d, uint64_t *seed, bool is_eager) {
  const size_t of_q = d->batches * d->heads * d->rows * d->size, of_k = d->batches * d->groups * d->rows * d->size;
  float *rows = calloc(2 * of_q + 2 * of_k, sizeof *rows), *k = rows + of_q, *v = k + of_k, *y = v + of_k;
  assert_non_null(rows);
  for (size_t i = 0; i < of_q + 2 * of_k; i++) rows[i] = draw_exact(seed);
  draw_counts(d, seed);
  write_rows(d, rows, k, v);
  write_numbers(d);
  assert_ok(is_eager ? rondo_compiled_run_eager(d->compiled) : rondo_compiled_run(d->compiled));
  read_floats(d, "y", y, of_q);
  keep_rows(d, k, v);
  compare(d, rows, y);
  compare_cache(d, "k cache", d->k);
  compare_cache(d, "v cache", d->v);
  for (size_t i = 0; i < d->batches; i++) d->lengths[i] += d->counts[i];
  free(rows);
}

TEST(test_pr4_caches_give_what_the_reference_does) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  uint64_t seed = 11;
  for (size_t i = 0; i < 48; i++) {
    decoder d;
    begin_decoder(t, &d, &seed, types[i % 3]);
    for (int step = 0; step < 6; step++) run_step(&d, &seed, step % 3 == 1);
    end_decoder(&d);
  }
}

/* Sequences are computed by themselves ----------------------------------------------------------------------------- */

/* The result of a run of [3, 1, .] in which only some sequences are active. */
static void run_active(rondo_compiled *compiled, const float (*rows)[ROW], const int32_t *lengths,
                       const int32_t *active, float (*y)[H * D]) {
  assert_ok(rondo_compiled_write(compiled, "qkv", rows, 3 * sizeof *rows));
  assert_ok(rondo_compiled_write(compiled, "lengths", lengths, 3 * sizeof *lengths));
  assert_ok(rondo_compiled_write(compiled, "active", active, 3 * sizeof *active));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, 3 * sizeof *y));
}

static rondo_compiled *compile_three(test_fixture *t) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value qkv, y;
  const size_t three = 3, shape[] = {3, 1, ROW}, cache[] = {3, G, S, D};
  assert_ok(rondo_program_input(program, "qkv", RONDO_F32, shape, 3, &qkv));
  assert_ok(rondo_program_state(program, "k cache", RONDO_F32, cache, 4, &options.k_cache));
  assert_ok(rondo_program_state(program, "v cache", RONDO_F32, cache, 4, &options.v_cache));
  assert_ok(rondo_program_input(program, "lengths", RONDO_I32, &three, 1, &options.lengths));
  assert_ok(rondo_program_input(program, "active", RONDO_I32, &three, 1, &options.new_rows));
  assert_ok(rondo_op_attention_packed(program, qkv, H, G, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return test_compile(program, t->device, NULL);
}

/* A sequence gives the same bits alone as with others, and a sequence that is left out gives zeros. */
TEST(test_pr4_sequences_do_not_depend_on_each_other) {
  rondo_compiled *compiled = compile_three(t);
  const int32_t all[] = {1, 1, 1};
  float rows[S][3][ROW], together[S][3][H * D], alone[3][H * D];
  uint64_t seed = 21;
  for (size_t i = 0; i < S * 3 * ROW; i++) (&rows[0][0][0])[i] = draw_one(&seed);
  for (int32_t at = 0; at < S; at++)
    run_active(compiled, (const float(*)[ROW])rows[at], (const int32_t[]){at, at, at}, all, together[at]);
  for (size_t i = 0; i < 3; i++) {
    for (int32_t at = 0; at < S; at++) {
      const int32_t one[] = {i == 0, i == 1, i == 2}, lengths[] = {at - (i != 0), 99 * (i != 1) + at * (i == 1), at};
      run_active(compiled, (const float(*)[ROW])rows[at], lengths, one, alone);
      assert_memory_equal(alone[i], together[at][i], sizeof alone[i]);
      for (size_t j = 0; j < H * D; j++) assert_true(alone[(i + 1) % 3][j] == 0 && alone[(i + 2) % 3][j] == 0);
    }
  }
}

/* A prompt in parts of any length gives what the prompt at once does. */
TEST(test_pr4_parts_of_a_prompt_give_what_the_whole_does) {
  static float rows[B][S][ROW], wanted[B][S][H * D];
  uint64_t seed = 9;
  for (size_t i = 0; i < B * S * ROW; i++) (&rows[0][0][0])[i] = draw_one(&seed);
  rondo_compiled *whole = compile_whole(t), *part = compile_part(t);
  assert_ok(rondo_compiled_write(whole, "qkv", rows, sizeof rows));
  assert_ok(rondo_compiled_run(whole));
  assert_ok(rondo_compiled_read(whole, "y", wanted, sizeof wanted));
  for (int32_t at = 0; at < S; at += FILLED) {
    const int32_t count = S - at < FILLED ? S - at : FILLED;
    float some[B][FILLED][ROW] = {{{0}}}, got[B][FILLED][H * D];
    for (size_t i = 0; i < B; i++) memcpy(some[i], rows[i][at], (size_t)count * sizeof *some[i]);
    assert_ok(rondo_compiled_write(part, "qkv", some, sizeof some));
    assert_ok(rondo_compiled_write(part, "length", &at, sizeof at));
    assert_ok(rondo_compiled_write(part, "count", &count, sizeof count));
    assert_ok(rondo_compiled_run(part));
    assert_ok(rondo_compiled_read(part, "y", got, sizeof got));
    for (size_t i = 0; i < B * FILLED * H * D; i++) {
      const size_t batch = i / (FILLED * H * D), row = i / (H * D) % FILLED, j = i % (H * D);
      const float right = row < (size_t)count ? wanted[batch][(size_t)at + row][j] : 0;
      assert_true(fabsf(got[batch][row][j] - right) < 1e-5f);
    }
  }
}

/* Numbers that are none -------------------------------------------------------------------------------------------- */

enum { CACHED = 16, HELD = 20, MOST_ROWS = 3 };

/* New rows of two sequences, with a mask. */
static rondo_compiled *compile_seen(test_fixture *t, size_t rows) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  const size_t two = 2, shape[] = {2, 1, rows, D}, cache[] = {2, 1, HELD, D}, mask[] = {2, 1, rows, HELD};
  rondo_value q, x, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, shape, 4, &q));
  assert_ok(rondo_op_full(program, RONDO_F32, shape, 4, 0.5, &x));
  assert_ok(rondo_program_state(program, "k", RONDO_F32, cache, 4, &options.k_cache));
  assert_ok(rondo_program_state(program, "v", RONDO_F32, cache, 4, &options.v_cache));
  assert_ok(rondo_op_full(program, RONDO_I32, &two, 1, CACHED, &options.lengths));
  assert_ok(rondo_program_input(program, "mask", RONDO_BOOL, mask, 4, &options.mask));
  assert_ok(rondo_op_attention(program, q, x, x, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return test_compile(program, t->device, NULL);
}

/* Which rows are NaN, if `at` of the second sequence's keys is, or row 0 of its q. With `is_only`, rows see that key
 * alone; otherwise all but the row's own number. */
static void assert_passed_on(rondo_compiled *compiled, size_t rows, size_t at, bool is_q, bool is_only) {
  float q[2 * MOST_ROWS * D], y[2 * MOST_ROWS * D], k[2][HELD][D], v[2][HELD][D];
  bool mask[2 * MOST_ROWS][HELD];
  uint64_t seed = 4;
  for (size_t i = 0; i < 2 * rows * D; i++) q[i] = draw_one(&seed);
  for (size_t i = 0; i < 2 * HELD * D; i++) (&k[0][0][0])[i] = draw_one(&seed), (&v[0][0][0])[i] = draw_one(&seed);
  for (size_t i = 0; i < 2 * rows * HELD; i++)
    mask[i / HELD][i % HELD] = is_only ? i % HELD == at : i % HELD != i / HELD % rows;
  if (is_q)
    q[rows * D + 3] = NAN;
  else
    k[1][at][7] = NAN;
  assert_ok(rondo_compiled_write(compiled, "q", q, 2 * rows * D * sizeof *q));
  assert_ok(rondo_compiled_write(compiled, "k", k, sizeof k));
  assert_ok(rondo_compiled_write(compiled, "v", v, sizeof v));
  assert_ok(rondo_compiled_write(compiled, "mask", mask, 2 * rows * HELD * sizeof **mask));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, 2 * rows * D * sizeof *y));
  for (size_t i = 0; i < 2 * rows * D; i++) {
    const size_t row = i / D;
    assert_int_equal(isnan(y[i]) != 0, row >= rows && (is_q ? row == rows : mask[row][at]));
  }
}

TEST(test_pr4_nans_are_passed_on) {
  static const size_t places[] = {0, 1, 5, 13};
  for (size_t rows = 1; rows <= MOST_ROWS; rows += 2) {
    rondo_compiled *compiled = compile_seen(t, rows);
    for (size_t i = 0; i < 4; i++)
      for (int form = 0; form < 4; form++) assert_passed_on(compiled, rows, places[i], form % 2 == 1, form / 2 == 1);
  }
}

/* What fails a run ------------------------------------------------------------------------------------------------- */

enum { POOL = 5, IN_BLOCK = 4, ENTRIES = 3, NEW = 2 };

typedef struct wrong_numbers {
  int32_t lengths[2], counts[2], table[2][ENTRIES];
  const char *message;
} wrong_numbers;

static rondo_compiled *compile_pool(test_fixture *t) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  const size_t two = 2, cache[] = {POOL, 1, IN_BLOCK, D};
  assert_ok(rondo_op_full(program, RONDO_F32, (const size_t[]){2, 1, NEW, D}, 4, 1, &x));
  assert_ok(rondo_program_state(program, "k", RONDO_F32, cache, 4, &options.k_cache));
  assert_ok(rondo_program_state(program, "v", RONDO_F32, cache, 4, &options.v_cache));
  assert_ok(rondo_program_input(program, "lengths", RONDO_I32, &two, 1, &options.lengths));
  assert_ok(rondo_program_input(program, "counts", RONDO_I32, &two, 1, &options.new_rows));
  assert_ok(rondo_program_input(program, "table", RONDO_I32, (const size_t[]){2, ENTRIES}, 2, &options.block_table));
  assert_ok(rondo_op_attention(program, x, x, x, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return test_compile(program, t->device, NULL);
}

/* The wrong sequence gives zeros, and no cache changes, not even that of the other. The next run is right. */
TEST(test_pr4_wrong_numbers_fail_the_run) {
  static const wrong_numbers all[] = {
      {{0, -1}, {1, 1}, {{0}, {1}}, "lengths has -1 at position 1, which is not in 0 .. 11; new rows must fit too"},
      {{0, 11}, {1, 2}, {{0}, {1}}, "lengths has 11 at position 1, which is not in 0 .. 11; new rows must fit too"},
      {{0, 0}, {1, 3}, {{0}, {1}}, "new_rows has 3 at position 1, which is not in 0 .. 2"},
      {{0, 0}, {1, -1}, {{0}, {1}}, "new_rows has -1 at position 1, which is not in 0 .. 2"},
      {{0, 4}, {1, 1}, {{0}, {1, POOL}}, "block_table has 5 at position 4, which is not in 0 .. 4"},
      {{0, 3}, {1, 2}, {{0}, {1, -1}}, "block_table has -1 at position 4, which is not in 0 .. 4"},
  };
  rondo_compiled *compiled = compile_pool(t);
  float y[2][NEW][D], cache[POOL][IN_BLOCK][D];
  const int32_t right[2][ENTRIES] = {{3, -1, 99}, {4, 7, 8}}, none[] = {0, 0}, one[] = {1, 1};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    assert_ok(rondo_compiled_write(compiled, "lengths", all[i].lengths, sizeof all[i].lengths));
    assert_ok(rondo_compiled_write(compiled, "counts", all[i].counts, sizeof all[i].counts));
    assert_ok(rondo_compiled_write(compiled, "table", all[i].table, sizeof all[i].table));
    assert_ok(rondo_compiled_run(compiled));
    assert_error(rondo_compiled_read(compiled, "y", y, sizeof y), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
    assert_message(all[i].message);
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    for (size_t j = 0; j < D; j++) assert_true(y[0][0][j] == 1 && y[1][0][j] == 0);
    assert_ok(rondo_compiled_read(compiled, "k", cache, sizeof cache));
    for (size_t j = 0; j < POOL * IN_BLOCK * D; j++) assert_true((&cache[0][0][0])[j] == 0);
  }
  assert_ok(rondo_compiled_write(compiled, "lengths", none, sizeof none));
  assert_ok(rondo_compiled_write(compiled, "counts", one, sizeof one));
  assert_ok(rondo_compiled_write(compiled, "table", right, sizeof right));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "v", cache, sizeof cache));
  for (size_t j = 0; j < D; j++) assert_true(cache[3][0][j] == 1 && cache[4][0][j] == 1 && cache[3][1][j] == 0);
}

/* A block to which one sequence writes, and which another one uses, or writes to as well, or which it has twice itself.
 * Blocks that are only read may be shared, as by sequences of one prompt. */
TEST(test_pr4_a_written_block_belongs_to_one_sequence) {
  static const char rule[] = ": a sequence writes to this block, and another entry of the table names it, too";
  static const struct {
    wrong_numbers numbers; /* no message: they are right */
    bool has_zeros[2];
  } all[] = {
      {{{0, 0}, {1, 1}, {{3}, {3}}, "block_table has 3 at position 0"}, {true, true}},
      {{{0, 6}, {1, 1}, {{2}, {2, 1}}, "block_table has 2 at position 3"}, {false, true}},
      {{{5, 6}, {2, 1}, {{0, 1}, {1, 3}}, "block_table has 1 at position 3"}, {false, true}},
      {{{4, 9}, {1, 2}, {{0, 2}, {0, 1, 2}}, "block_table has 2 at position 1"}, {true, true}},
      {{{0, 4}, {0, 1}, {{4}, {1, 1}}, "block_table has 1 at position 3"}, {true, true}}, /* the first is left out */
      {{{3, 3}, {2, 1}, {{0, 0}, {1}}, "block_table has 0 at position 0"}, {true, false}},
      {{{4, 4}, {1, 1}, {{0, 2}, {0, 1}}, NULL}, {false, false}},
      {{{4, 4}, {1, 1}, {{0, 2, 1}, {0, 1, 2}}, NULL}, {false, false}}, /* entries that no row uses */
      {{{0, 0}, {0, 1}, {{1}, {1}}, NULL}, {true, false}},
  };
  rondo_compiled *compiled = compile_pool(t);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const wrong_numbers *n = &all[i].numbers;
    float y[2][NEW][D];
    assert_ok(rondo_compiled_write(compiled, "lengths", n->lengths, sizeof n->lengths));
    assert_ok(rondo_compiled_write(compiled, "counts", n->counts, sizeof n->counts));
    assert_ok(rondo_compiled_write(compiled, "table", n->table, sizeof n->table));
    assert_ok(rondo_compiled_run(compiled));
    if (n->message != NULL) {
      assert_error(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
      assert_message(n->message);
      assert_message(rule);
    }
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    for (size_t batch = 0; batch < 2; batch++) assert_true((y[batch][0][0] == 0) == all[i].has_zeros[batch]);
  }
}

/* The rule, entry by entry: whether another entry that is written names the block of an entry that is used. */
static bool is_shared(const wrong_numbers *n, size_t batch, size_t entry) {
  for (size_t other = 0; other < 2; other++) {
    const size_t first = (size_t)n->lengths[other] / IN_BLOCK;
    const size_t used = (size_t)(n->lengths[other] + n->counts[other] + IN_BLOCK - 1) / IN_BLOCK;
    for (size_t i = first; i < used && n->counts[other] > 0; i++)
      if (n->table[other][i] == n->table[batch][entry] && (other != batch || i != entry)) return true;
  }
  return false;
}

static bool is_left_out(const wrong_numbers *n, size_t batch) {
  const size_t used = (size_t)(n->lengths[batch] + n->counts[batch] + IN_BLOCK - 1) / IN_BLOCK;
  for (size_t i = 0; i < used && n->counts[batch] > 0; i++)
    if (n->table[batch][i] < 0 || n->table[batch][i] >= POOL || is_shared(n, batch, i)) return true;
  return n->counts[batch] == 0;
}

TEST(test_pr4_random_tables_are_checked) {
  rondo_compiled *compiled = compile_pool(t);
  uint64_t seed = 23;
  size_t counts[2] = {0, 0};
  for (int round = 0; round < 200; round++) {
    wrong_numbers n = {.message = NULL};
    float y[2][NEW][D];
    for (size_t i = 0; i < 2; i++) {
      n.counts[i] = (int32_t)test_random_below(&seed, NEW + 1);
      n.lengths[i] = (int32_t)test_random_below(&seed, ENTRIES * IN_BLOCK - NEW + 1);
      for (size_t k = 0; k < ENTRIES; k++) n.table[i][k] = (int32_t)test_random_below(&seed, POOL + 1);
    }
    assert_ok(rondo_compiled_write(compiled, "lengths", n.lengths, sizeof n.lengths));
    assert_ok(rondo_compiled_write(compiled, "counts", n.counts, sizeof n.counts));
    assert_ok(rondo_compiled_write(compiled, "table", n.table, sizeof n.table));
    assert_ok(rondo_compiled_run(compiled));
    const bool fails = (n.counts[0] > 0 && is_left_out(&n, 0)) || (n.counts[1] > 0 && is_left_out(&n, 1));
    assert_int_equal(rondo_compiled_synchronize(compiled), fails ? RONDO_EXECUTION_FAILED : RONDO_OK);
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    for (size_t i = 0; i < 2; i++) assert_int_equal(y[i][0][0] == 0, is_left_out(&n, i));
    counts[fails]++;
  }
  assert_true(counts[0] > 10 && counts[1] > 10);
}

/* A batch too large for one block of threads, more entries than it has threads, and more than one block counts. */
TEST(test_pr4_written_blocks_of_many_sequences) {
  enum { MANY = 2500, EACH = 2 };
  static const size_t forms[][2] = {{300, 2}, {2, 300}, {MANY, EACH}};
  static int32_t table[MANY * EACH];
  static float y[MANY];
  char message[64];
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
    const size_t batches = forms[form][0], each = forms[form][1], blocks = batches * each;
    const size_t cache[] = {blocks, 1, 1, 1}, shape[] = {batches, 1, 1, 1};
    rondo_program *program = test_new_program();
    rondo_value x, out;
    assert_ok(rondo_op_full(program, RONDO_F32, shape, 4, 1, &x));
    assert_ok(rondo_program_state(program, "k", RONDO_F32, cache, 4, &options.k_cache));
    assert_ok(rondo_program_state(program, "v", RONDO_F32, cache, 4, &options.v_cache));
    assert_ok(rondo_op_full(program, RONDO_I32, NULL, 0, (double)(each - 1), &options.lengths));
    assert_ok(
        rondo_program_input(program, "table", RONDO_I32, (const size_t[]){batches, each}, 2, &options.block_table));
    assert_ok(rondo_op_attention(program, x, x, x, &options, &out));
    assert_ok(rondo_program_output(program, "y", out));
    rondo_compiled *compiled = test_compile(program, t->device, NULL);
    for (size_t i = 0; i < blocks; i++) table[i] = (int32_t)(blocks - 1 - i);
    assert_ok(rondo_compiled_write(compiled, "table", table, blocks * sizeof *table));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "y", y, batches * sizeof *y));
    table[blocks - 2] = table[each - 1]; /* the last sequence reads the block that the first one writes */
    assert_ok(rondo_compiled_write(compiled, "table", table, blocks * sizeof *table));
    assert_ok(rondo_compiled_run(compiled));
    assert_error(rondo_compiled_read(compiled, "y", y, batches * sizeof *y), RONDO_EXECUTION_FAILED,
                 RONDO_REASON_OUT_OF_RANGE);
    (void)snprintf(message, sizeof message, "at position %zu: a sequence writes to this block", blocks - 2);
    assert_message(message);
    assert_ok(rondo_compiled_read(compiled, "y", y, batches * sizeof *y));
    assert_true(y[batches - 1] == 0 && y[0] > 0);
  }
}

/* Reading and appending alone -------------------------------------------------------------------------------------- */

enum { BLOCK_ROWS = 8, OF_TABLE = 3, SOURCE_POOL = 7, WRITTEN = 11, MOST_READERS = 70 };

/* Caches of sources, which one program appends to and another one reads: in blocks of a pool, or not. */
typedef struct source_caches {
  bool has_table;
  size_t rows; /* of q */
  rondo_compiled *writer, *reader;
  float k[B][G][S][D], v[B][G][S][D];
} source_caches;

static const int32_t source_table[B][OF_TABLE] = {{5, 0, 3}, {2, 6, 1}};

static void add_source_caches(rondo_program *program, const source_caches *c, rondo_attention_options *options) {
  const size_t pool[] = {SOURCE_POOL, G, BLOCK_ROWS, D}, table[] = {B, OF_TABLE}, batches = B;
  if (!c->has_table) add_caches(program, options);
  if (c->has_table) {
    assert_ok(rondo_program_state(program, "k cache", RONDO_F32, pool, 4, &options->k_cache));
    assert_ok(rondo_program_state(program, "v cache", RONDO_F32, pool, 4, &options->v_cache));
    assert_ok(rondo_program_input(program, "table", RONDO_I32, table, 2, &options->block_table));
  }
  assert_ok(rondo_program_input(program, "lengths", RONDO_I32, &batches, 1, &options->lengths));
  assert_ok(rondo_program_input(program, "counts", RONDO_I32, &batches, 1, &options->new_rows));
}

static rondo_compiled *compile_source(test_fixture *t, const source_caches *c, rondo_program *program,
                                      rondo_compiled *share) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share,
                                         .share_states_only = share != NULL};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  if (c->has_table) assert_ok(rondo_compiled_write(compiled, "table", source_table, sizeof source_table));
  return compiled;
}

static void make_source(test_fixture *t, source_caches *c) {
  const size_t of_k[] = {B, G, WRITTEN, D}, of_q[] = {B, H, c->rows, D};
  rondo_attention_options to = {RONDO_ATTENTION_OPTIONS_INIT}, from = {RONDO_ATTENTION_OPTIONS_INIT, .scale = 0.5f};
  rondo_program *writer = test_new_program(), *reader = test_new_program();
  rondo_value k, v, q, y;
  add_source_caches(writer, c, &to);
  assert_ok(rondo_program_input(writer, "k", RONDO_F32, of_k, 4, &k));
  assert_ok(rondo_program_input(writer, "v", RONDO_F32, of_k, 4, &v));
  assert_ok(rondo_op_attention_append(writer, k, v, &to));
  c->writer = compile_source(t, c, writer, NULL);
  add_source_caches(reader, c, &from);
  assert_ok(rondo_program_input(reader, "q", RONDO_F32, of_q, 4, &q));
  assert_ok(rondo_op_attention(reader, q, (rondo_value){0}, (rondo_value){0}, &from, &y));
  assert_ok(rondo_program_output(reader, "y", y));
  c->reader = compile_source(t, c, reader, c->writer);
}

static void write_counts(rondo_compiled *compiled, const int32_t *lengths, const int32_t *counts) {
  assert_ok(rondo_compiled_write(compiled, "lengths", lengths, B * sizeof *lengths));
  assert_ok(rondo_compiled_write(compiled, "counts", counts, B * sizeof *counts));
}

static void append_source(source_caches *c, uint64_t *seed, const int32_t *lengths, const int32_t *counts) {
  static float k[B][G][WRITTEN][D], v[B][G][WRITTEN][D];
  for (size_t i = 0; i < B * G * WRITTEN * D; i++) (&k[0][0][0][0])[i] = draw_one(seed);
  for (size_t i = 0; i < B * G * WRITTEN * D; i++) (&v[0][0][0][0])[i] = draw_one(seed);
  for (size_t i = 0; i < B * G; i++) {
    const size_t b = i / G, g = i % G, bytes = (size_t)counts[b] * sizeof k[b][g][0];
    memcpy(c->k[b][g][lengths[b]], k[b][g], bytes);
    memcpy(c->v[b][g][lengths[b]], v[b][g], bytes);
  }
  assert_ok(rondo_compiled_write(c->writer, "k", k, sizeof k));
  assert_ok(rondo_compiled_write(c->writer, "v", v, sizeof v));
  write_counts(c->writer, lengths, counts);
  assert_ok(rondo_compiled_run(c->writer));
  assert_ok(rondo_compiled_synchronize(c->writer)); /* the reader has a stream of its own */
}

/* Rows past the count of a sequence give zeros, and so do rows that read nothing. */
static void assert_row_reads(const source_caches *c, size_t b, size_t h, const float *q, bool is_row, size_t length,
                             const float *y) {
  static double k[S][D], v[S][D];
  double row[D], wanted[D] = {0};
  for (size_t i = 0; i < S * D; i++) k[i / D][i % D] = (double)c->k[b][h / (H / G)][i / D][i % D];
  for (size_t i = 0; i < S * D; i++) v[i / D][i % D] = (double)c->v[b][h / (H / G)][i / D][i % D];
  for (size_t i = 0; i < D; i++) row[i] = (double)q[i];
  if (is_row && length > 0) attend(row, k[0], v[0], length, wanted);
  for (size_t i = 0; i < D; i++) assert_true(fabs((double)y[i] - wanted[i]) < 1e-5);
}

static void read_source(const source_caches *c, uint64_t *seed, const int32_t *lengths, const int32_t *counts) {
  static float q[B * H * MOST_READERS * D], y[B * H * MOST_READERS * D];
  const size_t count = B * H * c->rows * D;
  for (size_t i = 0; i < count; i++) q[i] = draw_one(seed);
  assert_ok(rondo_compiled_write(c->reader, "q", q, count * sizeof *q));
  write_counts(c->reader, lengths, counts);
  assert_ok(rondo_compiled_run(c->reader));
  assert_ok(rondo_compiled_read(c->reader, "y", y, count * sizeof *y));
  for (size_t i = 0; i < B * H * c->rows; i++) {
    const size_t b = i / c->rows / H;
    assert_row_reads(c, b, i / c->rows % H, q + i * D, i % c->rows < (size_t)counts[b], (size_t)lengths[b], y + i * D);
  }
}

TEST(test_pr4_rows_are_appended_by_one_program_and_read_by_another) {
  static const size_t rows[] = {1, 5, MOST_READERS};
  static const int32_t none[B] = {0, 0}, written[B] = {WRITTEN, 6}, more[B] = {S - WRITTEN, 2}, all[B] = {S, 8};
  uint64_t seed = 3;
  for (size_t i = 0; i < 6; i++) {
    static source_caches c;
    c = (source_caches){.has_table = i % 2 == 1, .rows = rows[i / 2]};
    const int32_t each[B] = {(int32_t)c.rows, (int32_t)c.rows}, some[B] = {(int32_t)c.rows / 2, 1};
    make_source(t, &c);
    append_source(&c, &seed, none, written);
    read_source(&c, &seed, written, each);
    append_source(&c, &seed, written, more);
    read_source(&c, &seed, all, each); /* what was read before is still there */
    read_source(&c, &seed, written, some);
    read_source(&c, &seed, none, each);
    assert_ok(rondo_compiled_destroy(c.reader));
    assert_ok(rondo_compiled_destroy(c.writer));
  }
}

TEST(test_pr4_reading_past_the_caches_fails_the_run) {
  static source_caches c;
  static const int32_t long_one[B] = {3, S + 1}, ones[B] = {1, 1}, full[B] = {S, 3};
  c = (source_caches){.rows = 1};
  make_source(t, &c);
  write_counts(c.reader, long_one, ones);
  assert_ok(rondo_compiled_run(c.reader));
  assert_fails(rondo_compiled_synchronize(c.reader), RONDO_EXECUTION_FAILED);
  assert_message("lengths has 20 at position 1, which is not in 0 .. 19");
  write_counts(c.writer, full, ones); /* no space for one more row */
  assert_ok(rondo_compiled_run(c.writer));
  assert_fails(rondo_compiled_synchronize(c.writer), RONDO_EXECUTION_FAILED);
  assert_message("attention_plan");
}

UNIT_TEST(test_pr4_reading_and_appending_that_is_refused) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT}, causal = options;
  rondo_program *program = test_new_program();
  const rondo_value none = {0};
  rondo_value q, k, wide, y;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, (size_t[]){B, H, 3, D}, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F32, (size_t[]){B, G, 3, D}, 4, &k));
  assert_ok(rondo_program_input(program, "wide", RONDO_F32, (size_t[]){B, G, S + 1, D}, 4, &wide));
  assert_invalid(rondo_op_attention(program, q, none, none, &options, &y), RONDO_REASON_BAD_OPTIONS);
  assert_message("k and v are no values");
  assert_invalid(rondo_op_attention_append(program, k, k, &options), RONDO_REASON_BAD_OPTIONS);
  assert_message("there are no caches");
  add_caches(program, &options);
  causal = options;
  causal.causal = true;
  assert_invalid(rondo_op_attention(program, q, none, none, &causal, &y), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_op_attention_append(program, k, k, &causal), RONDO_REASON_BAD_OPTIONS);
  assert_message("nothing attends");
  assert_fails(rondo_op_attention(program, q, none, k, &options, &y), RONDO_INVALID_ARGUMENT); /* v without k */
  assert_invalid(rondo_op_attention(program, k, none, none, &causal, &y), RONDO_REASON_BAD_OPTIONS);
  rondo_value odd;
  assert_ok(rondo_program_input(program, "odd", RONDO_F32, (size_t[]){B, G + 1, 3, D}, 4, &odd));
  assert_invalid(rondo_op_attention(program, odd, none, none, &options, &y), RONDO_REASON_SHAPE);
  assert_message("with h a multiple of g");
  assert_invalid(rondo_op_attention_append(program, wide, wide, &options), RONDO_REASON_SHAPE);
  assert_message("with space for t rows");
  assert_invalid(rondo_op_attention_append(program, k, wide, &options), RONDO_REASON_SHAPE);
  assert_message("attention_append");
  assert_error(rondo_op_attention_append(NULL, k, k, &options), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_op_attention_append(program, k, k, &options));
  assert_ok(rondo_op_attention(program, q, none, none, &options, &y));
  rondo_program_destroy(program);
}

/* What is refused -------------------------------------------------------------------------------------------------- */

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

/* Two layers with the same caches. Rows of other lengths, and the same rows again, are no conflict. */
UNIT_TEST(test_pr4_rows_that_are_written_twice_are_refused) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT}, later;
  rondo_program *program = test_new_program();
  const rondo_value none = {0};
  rondo_value q, k, y;
  add_caches(program, &options);
  const rondo_value qkv = add_packed(program, 3), other = options.v_cache;
  assert_ok(rondo_program_input(program, "q", RONDO_F32, (size_t[]){B, H, 3, D}, 4, &q));
  assert_ok(rondo_program_input(program, "k", RONDO_F32, (size_t[]){B, G, 3, D}, 4, &k));
  assert_ok(rondo_program_input(program, "lengths", RONDO_I32, NULL, 0, &options.lengths));
  assert_ok(rondo_op_attention(program, q, k, k, &options, &y));
  assert_ok(rondo_op_attention(program, q, k, k, &options, &y));
  assert_ok(rondo_op_attention(program, q, none, none, &options, &y));
  assert_invalid(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_REASON_BAD_OPTIONS);
  assert_message("an earlier attention of ");
  assert_message("give each layer caches of its own");
  assert_int_equal(y.id, 0);
  later = options;
  assert_ok(rondo_program_state(program, "k 2", RONDO_F32, (const size_t[]){B, G, S, D}, 4, &later.v_cache));
  later.k_cache = other; /* of which the first layer keeps v */
  assert_invalid(rondo_op_attention_append(program, q, q, &later), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_attention_packed(program, qkv, H, G, &later, &y), RONDO_REASON_BAD_OPTIONS);
  later = options;
  assert_ok(rondo_program_input(program, "later", RONDO_I32, NULL, 0, &later.lengths));
  assert_ok(rondo_op_attention_packed(program, qkv, H, G, &later, &y));
  assert_invalid(rondo_op_attention_append(program, k, k, &later), RONDO_REASON_BAD_OPTIONS);
  rondo_program_destroy(program);
}

UNIT_TEST(test_pr4_tables_that_do_not_fit_are_refused) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value y;
  const rondo_value qkv = add_packed(program, 3);
  assert_ok(rondo_program_state(program, "k pool", RONDO_F32, (const size_t[]){9, G, 2, D}, 4, &options.k_cache));
  assert_ok(rondo_program_state(program, "v pool", RONDO_F32, (const size_t[]){9, G, 2, D}, 4, &options.v_cache));
  assert_fails(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("the caches must be [b, g, s, d]");
  assert_ok(rondo_op_full(program, RONDO_I32, (const size_t[]){B + 1, 4}, 2, 0, &options.block_table));
  assert_error(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the block table must be [b, blocks]");
  assert_ok(rondo_op_full(program, RONDO_I32, (const size_t[]){B, 1}, 2, 0, &options.block_table));
  assert_fails(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("the caches must be [blocks, g, rows of a block, d], with space for t rows");
  assert_ok(rondo_op_full(program, RONDO_I32, (const size_t[]){B * 4}, 1, 0, &options.block_table));
  assert_fails(rondo_op_attention_packed(program, qkv, H, G, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_ok(rondo_op_full(program, RONDO_I32, (const size_t[]){B, 4}, 2, 0, &options.block_table));
  assert_ok(rondo_op_attention_packed(program, qkv, H, G, &options, &y));
  rondo_program_destroy(program);
}

int main(void) { return test_run_registered(); }
