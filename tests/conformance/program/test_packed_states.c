/* SPDX-License-Identifier: MIT
 * Packed states (PR-13): weights of convolutions that a library stores in an order of its own. What is written, read,
 * saved and computed is the same as with plain_states, bit for bit, whatever shares the states, in every order of
 * compilation. Where no library packs, both are plain.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "support/test_ranks.h"

/* A convolution of flat images. */
typedef struct layer {
  size_t in, out, groups, edge, kernel, stride;
} layer;

enum { MOST_ROWS = 8, MOST_X = MOST_ROWS * 64 * 18 * 18, MOST_W = 64 * 64 * 9, MOST_Y = MOST_X };

static const layer usual = {.in = 16, .out = 64, .groups = 1, .edge = 9, .kernel = 3, .stride = 1};
static const layer layers[] = {
    {.in = 16, .out = 64, .groups = 1, .edge = 9, .kernel = 3, .stride = 1},
    {.in = 64, .out = 64, .groups = 1, .edge = 7, .kernel = 3, .stride = 2},
    {.in = 3, .out = 32, .groups = 1, .edge = 18, .kernel = 7, .stride = 2}, /* few channels */
    {.in = 32, .out = 32, .groups = 1, .edge = 14, .kernel = 1, .stride = 2},
    {.in = 64, .out = 64, .groups = 2, .edge = 8, .kernel = 3, .stride = 1},
    {.in = 32, .out = 32, .groups = 32, .edge = 12, .kernel = 3, .stride = 1}, /* depthwise */
    {.in = 20, .out = 36, .groups = 1, .edge = 12, .kernel = 3, .stride = 1},  /* not multiples of vectors */
};

static size_t result_edge(const layer *l) { return (l->edge + 2 * (l->kernel / 2) - l->kernel) / l->stride + 1; }
static size_t count_x(const layer *l, size_t rows) { return rows * l->in * l->edge * l->edge; }
static size_t count_w(const layer *l) { return l->out * (l->in / l->groups) * l->kernel * l->kernel; }
static size_t count_y(const layer *l, size_t rows) { return rows * l->out * result_edge(l) * result_edge(l); }

/* What a program does besides y = relu(conv(x, w) + bias). */
typedef enum extra { NOTHING, MEASURES, SHOWS, TRAINS, ASSIGNS } extra;

/* The sum of the squares of the weights reads their rows, as a view. */
static void add_norm(rondo_program *program, rondo_value w, const layer *l) {
  const size_t flat[] = {1, count_w(l)};
  rondo_value row, column, norm;
  assert_ok(rondo_op_reshape(program, w, flat, 2, &row));
  assert_ok(rondo_op_transpose(program, row, 0, 1, &column));
  assert_ok(rondo_op_matmul(program, row, column, (rondo_value){0}, &norm));
  assert_ok(rondo_program_output(program, "norm", norm));
}

static void add_training(rondo_program *program, rondo_value y) {
  rondo_value loss, rate;
  assert_ok(rondo_program_cell(program, "rate", 0.25f, &rate));
  assert_ok(rondo_op_square(program, y, &loss));
  assert_ok(rondo_op_mean(program, loss, NULL, 0, false, &loss));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, loss, &sgd));
}

static void add_extra(rondo_program *program, extra what, rondo_value w, rondo_value y, const layer *l) {
  rondo_value more;
  if (what == MEASURES) add_norm(program, w, l);
  if (what == SHOWS) assert_ok(rondo_program_output(program, "shown", w));
  if (what == TRAINS) add_training(program, y);
  if (what == ASSIGNS) {
    assert_ok(rondo_op_add_constant(program, w, 0.5f, &more));
    assert_ok(rondo_program_assign(program, w, more));
  }
}

static rondo_program *make(const layer *l, size_t rows, extra what) {
  rondo_program *program = test_new_program();
  const size_t pad = l->kernel / 2;
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {l->stride, l->stride}, .padding = {pad, pad},
                                .groups = (uint32_t)l->groups};
  rondo_value x, w, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){rows, l->in, l->edge, l->edge}, 4, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32,
                                (const size_t[]){l->out, l->in / l->groups, l->kernel, l->kernel}, 4, &w));
  assert_ok(rondo_program_state(program, "bias", RONDO_F32, &l->out, 1, &options.bias));
  assert_ok(rondo_op_conv(program, x, w, &options, &y));
  assert_ok(rondo_op_relu(program, y, &y));
  assert_ok(rondo_program_output(program, "y", y));
  add_extra(program, what, w, y, l);
  return program;
}

static rondo_compiled *compile_with(test_fixture *t, const layer *l, size_t rows, extra what,
                                    rondo_compile_options options) {
  options.struct_size = sizeof options;
  return test_compile(make(l, rows, what), t->device, &options);
}

static rondo_compiled *compile(test_fixture *t, size_t rows, extra what, rondo_compiled *share) {
  return compile_with(t, &usual, rows, what, (rondo_compile_options){.share = share});
}

/* Values ----------------------------------------------------------------------------------------------------------- */

static void draw(float *out, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) out[i] = (float)test_random_below(&seed, 2001) / 1000 - 1;
}

static void write_drawn(rondo_compiled *compiled, const char *name, size_t count, uint64_t seed) {
  static float drawn[MOST_X];
  draw(drawn, count, seed);
  assert_ok(rondo_compiled_write(compiled, name, drawn, count * sizeof *drawn));
}

static void write_weights(rondo_compiled *compiled, const layer *l, uint64_t seed) {
  write_drawn(compiled, "w", count_w(l), seed);
  write_drawn(compiled, "bias", l->out, seed + 1);
}

static const float *read_value(rondo_compiled *compiled, const char *name, size_t count, float *out) {
  assert_ok(rondo_compiled_read(compiled, name, out, count * sizeof *out));
  return out;
}

static void assert_weights(rondo_compiled *compiled, const layer *l, uint64_t seed) {
  static float is[MOST_W], drawn[MOST_W];
  draw(drawn, count_w(l), seed);
  assert_memory_equal(read_value(compiled, "w", count_w(l), is), drawn, count_w(l) * sizeof *is);
}

/* A run, whose result is left in `out`. */
static const float *run(rondo_compiled *compiled, const layer *l, size_t rows, bool eager, float *out) {
  write_drawn(compiled, "x", count_x(l, rows), 7);
  assert_ok(eager ? rondo_compiled_run_eager(compiled) : rondo_compiled_run(compiled));
  return read_value(compiled, "y", count_y(l, rows), out);
}

/* Both programs compute the same bits from the same rows of images. */
static void assert_same(rondo_compiled *a, rondo_compiled *b, const layer *l, size_t rows) {
  static float of_a[MOST_Y], of_b[MOST_Y];
  for (int eager = 0; eager < 2; eager++)
    assert_memory_equal(run(a, l, rows, eager == 1, of_a), run(b, l, rows, eager == 1, of_b),
                        count_y(l, rows) * sizeof *of_a);
}

static rondo_compiled *compile_plain(test_fixture *t, const layer *l, size_t rows, extra what, rondo_compiled *share) {
  const rondo_compile_options options = {.share = share, .plain_states = true};
  return compile_with(t, l, rows, what, options);
}

/* Whether convolutions of this device are oneDNN's. */
static bool has_library(void) {
  rondo_library_info info = {RONDO_LIBRARY_INFO_INIT};
  for (size_t i = 0; rondo_library_enumerate(i, &info) == RONDO_OK; i++)
    if (strstr(info.purpose, "convolutions on CPU") != NULL) return test_device_is("cpu") && info.path != NULL;
  return false;
}

static bool is_packed(const rondo_compiled *compiled) {
  const bool packed = test_compiled_info(compiled).packed_bytes > 0;
  assert_int_equal(test_compiled_value(compiled, 's', "w").address == NULL, packed);
  assert_true(test_compiled_value(compiled, 's', "bias").address != NULL);
  return packed;
}

/* One program ------------------------------------------------------------------------------------------------------ */

/* Each order has one element for each of the rows, so it is enough to read and to compute what was written. */
TEST(test_pr13_packed_weights_are_read_as_they_were_written) {
  for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
    const layer *l = &layers[i];
    for (size_t rows = 1; rows <= MOST_ROWS; rows += 7) {
      rondo_compiled *packed = compile_with(t, l, rows, NOTHING, (rondo_compile_options){.plain_states = false});
      rondo_compiled *plain = compile_plain(t, l, rows, NOTHING, NULL);
      assert_false(is_packed(plain));
      write_weights(packed, l, i);
      write_weights(plain, l, i);
      assert_same(packed, plain, l, rows);
      assert_weights(packed, l, i);
      assert_ok(rondo_compiled_destroy(packed));
      assert_ok(rondo_compiled_destroy(plain));
    }
  }
}

/* No run copies the weights, and none has memory for a copy. */
TEST(test_pr13_packed_weights_take_no_workspace) {
  const rondo_compiled *packed = compile(t, MOST_ROWS, NOTHING, NULL);
  const rondo_compiled_info info = test_compiled_info(packed);
  const rondo_compiled_info plain = test_compiled_info(compile_plain(t, &usual, MOST_ROWS, NOTHING, NULL));
  const size_t bytes = count_w(&usual) * sizeof(float);
  assert_int_equal(plain.packed_bytes, 0);
  assert_int_equal(info.state_bytes, plain.state_bytes);
  assert_int_equal(is_packed(packed), has_library());
  if (!has_library()) return;
  assert_int_equal(info.packed_bytes, bytes);
  assert_int_equal(info.kernels, plain.kernels - 1);
  assert_true(info.arena_bytes + bytes <= plain.arena_bytes);
}

TEST(test_pr13_states_that_something_else_uses_are_rows) {
  static const extra others[] = {MEASURES, SHOWS, TRAINS, ASSIGNS};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    rondo_compiled *compiled = compile(t, 2, others[i], NULL);
    assert_false(is_packed(compiled));
    write_weights(compiled, &usual, 3);
    assert_weights(compiled, &usual, 3);
  }
}

TEST(test_pr13_states_begin_as_zeros) {
  rondo_compiled *compiled = compile(t, 1, NOTHING, NULL);
  static float w[MOST_W], zeros[MOST_W];
  assert_memory_equal(read_value(compiled, "w", count_w(&usual), w), zeros, count_w(&usual) * sizeof *w);
}

TEST(test_pr13_measuring_a_program_keeps_packed_states) {
  rondo_compiled *compiled = compile(t, 2, NOTHING, NULL);
  rondo_gain gain = {.struct_size = sizeof gain};
  write_weights(compiled, &usual, 4);
  assert_ok(rondo_compiled_measure(compiled, 1, &gain));
  assert_weights(compiled, &usual, 4);
}

TEST(test_pr13_explanations_count_packed_states) {
  const rondo_compiled *compiled = compile(t, 2, NOTHING, NULL);
  char *text = NULL;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_JSON, &text));
  assert_non_null(strstr(text, is_packed(compiled) ? "\"packed_bytes\":36864" : "\"packed_bytes\":0"));
  rondo_text_free(text);
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &text));
  assert_int_equal(strstr(text, "packed states") != NULL, is_packed(compiled));
  rondo_text_free(text);
}

/* Several programs ------------------------------------------------------------------------------------------------- */

/* Slices of the output channels differ: one image has four, and eight images have one. */
TEST(test_pr13_programs_of_other_sizes_share_packed_states) {
  for (size_t first = 1; first <= MOST_ROWS; first += 7) {
    const size_t second = MOST_ROWS + 1 - first;
    rondo_compiled *a = compile(t, first, NOTHING, NULL), *b = compile(t, second, NOTHING, a);
    assert_int_equal(is_packed(a), is_packed(b));
    assert_int_equal(is_packed(a), has_library());
    assert_int_equal(test_compiled_info(b).state_bytes, test_compiled_info(a).state_bytes);
    write_weights(b, &usual, first);
    assert_weights(a, &usual, first);
    rondo_compiled *plain_a = compile_plain(t, &usual, first, NOTHING, NULL);
    rondo_compiled *plain_b = compile_plain(t, &usual, second, NOTHING, plain_a);
    write_weights(plain_a, &usual, first);
    assert_same(a, plain_a, &usual, first);
    assert_same(b, plain_b, &usual, second);
    assert_ok(rondo_compiled_destroy(a));
    assert_same(b, plain_b, &usual, second);
  }
}

/* A pair of programs that share, and a pair of plain ones. */
typedef struct pairs {
  rondo_compiled *of[2], *plain[2];
} pairs;

static pairs compile_pairs(test_fixture *t, extra first, extra second, bool states_only) {
  pairs made;
  made.of[0] = compile(t, 2, first, NULL);
  made.plain[0] = compile_plain(t, &usual, 2, first, NULL);
  made.of[1] = compile_with(t, &usual, 2, second,
                            (rondo_compile_options){.share = made.of[0], .share_states_only = states_only});
  made.plain[1] = compile_plain(t, &usual, 2, second, made.plain[0]);
  return made;
}

static void write_by(const pairs *p, size_t who, uint64_t seed) {
  write_weights(p->of[who], &usual, seed);
  write_weights(p->plain[who], &usual, seed);
  assert_ok(rondo_compiled_synchronize(p->of[who]));
}

/* All programs of both pairs, one after the other: runs may change the weights. */
static void assert_pairs(const pairs *p) {
  static float w[MOST_W], plain_w[MOST_W];
  for (size_t round = 0; round < 3; round++) {
    for (size_t i = 0; i < 2; i++) {
      assert_same(p->of[i], p->plain[i], &usual, 2);
      for (size_t k = 0; k < 2; k++)
        assert_memory_equal(read_value(p->of[k], "w", count_w(&usual), w),
                            read_value(p->plain[k], "w", count_w(&usual), plain_w), count_w(&usual) * sizeof *w);
    }
  }
}

/* Another operator reads the rows, an output shows them, an optimizer or an assignment changes them, in a program that
 * is compiled before the convolution or after it. */
TEST(test_pr13_programs_that_need_rows_share_packed_states) {
  static const extra others[] = {MEASURES, SHOWS, TRAINS, ASSIGNS};
  for (size_t i = 0; i < 4 * sizeof others / sizeof others[0]; i++) {
    const extra other = others[i / 4];
    const bool is_after = i % 2 == 1, states_only = i / 2 % 2 == 1;
    const pairs p = compile_pairs(t, is_after ? NOTHING : other, is_after ? other : NOTHING, states_only);
    assert_int_equal(is_packed(p.of[0]), is_after && has_library());
    assert_int_equal(is_packed(p.of[1]), is_after && has_library());
    for (size_t who = 0; who < 2; who++) {
      write_by(&p, who, i + who);
      assert_pairs(&p);
    }
    for (size_t k = 2; k-- > 0;) assert_ok(rondo_compiled_destroy(p.of[(k + i) % 2]));
  }
}

/* What a program computes from rows is as new as the packed weights. */
TEST(test_pr13_rows_are_those_that_were_written) {
  rondo_compiled *packed = compile(t, 2, NOTHING, NULL), *norms = NULL;
  static float w[MOST_W];
  double wanted = 0;
  float norm;
  write_weights(packed, &usual, 1);
  norms = compile(t, 2, MEASURES, packed);
  assert_weights(norms, &usual, 1);
  write_weights(packed, &usual, 2);
  write_drawn(norms, "x", count_x(&usual, 2), 7);
  assert_ok(rondo_compiled_run(norms));
  norm = *read_value(norms, "norm", 1, &norm);
  draw(w, count_w(&usual), 2);
  for (size_t i = 0; i < count_w(&usual); i++) wanted += (double)w[i] * (double)w[i];
  assert_near(&norm, (const float[]){(float)wanted}, 1, 1e-5f);
}

/* The rows that a program uses beside the packed elements are memory, too. */
TEST(test_pr13_memory_of_both_forms_is_counted) {
  rondo_compiled *packed = compile(t, 2, NOTHING, NULL);
  const rondo_compiled *norms = compile(t, 2, MEASURES, packed);
  const uint64_t rows = has_library() ? count_w(&usual) * sizeof(float) : 0;
  assert_int_equal(test_compiled_info(norms).state_bytes, test_compiled_info(packed).state_bytes + rows);
}

TEST(test_pr13_plain_states_refuse_packed_ones) {
  rondo_compiled *packed = compile(t, 2, NOTHING, NULL), *refused = NULL;
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = packed, .plain_states = true};
  if (!has_library()) return;
  write_weights(packed, &usual, 5);
  assert_invalid(rondo_compile(make(&usual, 4, NOTHING), t->device, &options, &refused), RONDO_REASON_BAD_OPTIONS);
  assert_message("'w'");
  assert_null(refused);
  assert_weights(packed, &usual, 5);
}

TEST(test_pr13_recompiling_keeps_packed_states) {
  rondo_compiled *compiled = compile(t, 1, NOTHING, NULL), *plain = compile_plain(t, &usual, 4, TRAINS, NULL);
  write_weights(compiled, &usual, 6);
  write_weights(plain, &usual, 6);
  assert_ok(rondo_compiled_recompile(compiled, make(&usual, 4, NOTHING), NULL));
  assert_int_equal(is_packed(compiled), has_library());
  assert_weights(compiled, &usual, 6);
  assert_ok(rondo_compiled_recompile(compiled, make(&usual, 4, TRAINS), NULL));
  assert_same(compiled, plain, &usual, 4);
}

/* Files ------------------------------------------------------------------------------------------------------------ */

static void save_and_load(rondo_weights **inout, bool is_checkpoint, const rondo_weights_options *options) {
  char path[] = "/tmp/rondo-packed-states-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(close(file), 0);
  assert_ok(is_checkpoint ? rondo_checkpoint_save(*inout, path) : rondo_weights_save(*inout, path));
  rondo_weights_destroy(*inout);
  assert_ok(is_checkpoint ? rondo_checkpoint_load(path, NULL, inout) : rondo_weights_load(path, options, inout));
  assert_int_equal(unlink(path), 0);
}

static void carry(rondo_compiled *from, rondo_compiled *to, bool is_checkpoint) {
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(is_checkpoint ? rondo_checkpoint_gather(weights, from) : rondo_weights_gather(weights, from, NULL, NULL));
  save_and_load(&weights, is_checkpoint, NULL);
  assert_ok(is_checkpoint ? rondo_checkpoint_apply(weights, to) : rondo_weights_apply(weights, to, NULL, NULL));
  rondo_weights_destroy(weights);
}

TEST(test_pr13_files_have_rows) {
  for (int i = 0; i < 4; i++) {
    rondo_compiled *packed = compile(t, 2, NOTHING, NULL), *plain = compile_plain(t, &usual, 2, NOTHING, NULL);
    rondo_compiled *from = i % 2 == 0 ? packed : plain, *to = i % 2 == 0 ? plain : packed;
    write_weights(from, &usual, 10);
    carry(from, to, i / 2 == 1);
    assert_weights(to, &usual, 10);
    assert_same(packed, plain, &usual, 2);
  }
}

/* Floats of another type come in pieces. */
TEST(test_pr13_weights_of_other_types_are_packed) {
  static uint16_t halves[MOST_W];
  static float w[MOST_W], is[MOST_W], bias[64];
  rondo_compiled *compiled = compile(t, 2, NOTHING, NULL);
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .convert_floats = true};
  rondo_weights *weights = NULL;
  rondo_weight given[] = {{"w", RONDO_BF16, 4, {64, 16, 3, 3}, halves, count_w(&usual) * 2},
                          {"bias", RONDO_F32, 1, {64}, bias, sizeof bias}};
  for (size_t i = 0; i < count_w(&usual); i++) {
    uint32_t bits;
    w[i] = (float)(int)(i % 255) - 127;
    memcpy(&bits, &w[i], sizeof bits);
    halves[i] = (uint16_t)(bits >> 16);
  }
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_weights_add(weights, &given[i]));
  save_and_load(&weights, false, &options);
  assert_ok(rondo_weights_apply(weights, compiled, NULL, NULL));
  rondo_weights_destroy(weights);
  assert_memory_equal(read_value(compiled, "w", count_w(&usual), is), w, count_w(&usual) * sizeof *w);
}

/* Ranks ------------------------------------------------------------------------------------------------------------ */

/* What a rank reads and computes after a broadcast. */
typedef struct rank_results {
  float w[MOST_W], y[64 * 9 * 9];
} rank_results;
static rank_results of_ranks[TEST_RANKS];

static rondo_status build(rondo_program *program, rondo_communicator *communicator) {
  const size_t x_shape[] = {1, 16, 9, 9}, w_shape[] = {64, 16, 3, 3};
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}};
  rondo_value x, w, y, rate;
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT};
  if (communicator != NULL) TRY(rondo_program_data_parallel(program, communicator, NULL));
  TRY(rondo_program_input(program, "x", RONDO_F32, x_shape, 4, &x));
  TRY(rondo_program_state(program, "w", RONDO_F32, w_shape, 4, &w));
  TRY(rondo_op_conv(program, x, w, &options, &y));
  TRY(rondo_program_output(program, "y", y));
  if (communicator == NULL) return RONDO_OK;
  TRY(rondo_program_cell(program, "rate", 0.25f, &rate));
  TRY(rondo_op_mean(program, y, NULL, 0, false, &y));
  sgd.learning_rate = rate;
  return rondo_program_sgd(program, y, &sgd);
}

static rondo_status compile_rank(test_rank *rank, rondo_communicator *communicator, rondo_compiled *share,
                                 rondo_compiled **out) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share};
  rondo_program *program;
  TRY(rondo_program_create(NULL, &program));
  rondo_status status = build(program, communicator);
  if (status == RONDO_OK) status = rondo_compile(program, rank->fixture.device, &options, out);
  (rondo_program_destroy)(program);
  return status;
}

static rondo_status broadcast_and_run(rondo_compiled *packed, rondo_compiled *trains, uint32_t rank) {
  static const float x[16 * 9 * 9] = {1, 2, 3};
  rank_results *of = &of_ranks[rank];
  draw(of->w, count_w(&usual), rank);
  TRY(rondo_compiled_write(packed, "w", of->w, count_w(&usual) * sizeof(float)));
  TRY(rondo_compiled_broadcast(trains, 1));
  TRY(rondo_compiled_write(packed, "x", x, sizeof x));
  TRY(rondo_compiled_run(packed));
  TRY(rondo_compiled_read(packed, "y", of->y, sizeof of->y));
  return rondo_compiled_read(packed, "w", of->w, count_w(&usual) * sizeof(float));
}

static rondo_status broadcast_on(test_rank *rank, void *user) {
  rondo_compiled *packed = NULL, *trains = NULL;
  (void)user;
  rondo_status status = compile_rank(rank, NULL, NULL, &packed);
  if (status == RONDO_OK) status = compile_rank(rank, rank->communicator, packed, &trains);
  if (status == RONDO_OK) status = broadcast_and_run(packed, trains, rank->rank);
  const rondo_status first = (rondo_compiled_destroy)(trains), second = (rondo_compiled_destroy)(packed);
  return status != RONDO_OK ? status : first != RONDO_OK ? first : second;
}

DEVICE_TEST(test_pr13_a_broadcast_packs_states) {
  test_ranks ranks;
  static float sent[MOST_W];
  test_ranks_open(&ranks, NULL);
  test_ranks_do(&ranks, broadcast_on, NULL);
  draw(sent, count_w(&usual), 1);
  for (uint32_t i = 0; i < ranks.count; i++) {
    assert_memory_equal(of_ranks[i].w, sent, count_w(&usual) * sizeof *sent);
    assert_memory_equal(of_ranks[i].y, of_ranks[1].y, sizeof of_ranks[i].y);
  }
  test_ranks_close(&ranks);
}
