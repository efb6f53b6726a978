/* SPDX-License-Identifier: MIT
 * Sparse updates of tables (PR-7): SGD, Adagrad and lazy Adam change the rows alone that look-ups read. SGD and Adagrad
 * against dense updates, which leave other rows as they are too; Adam against plain C. One and several look-ups, bags,
 * indices that come more than once, clipping and scaled losses, many indices; several runs for one update; the same
 * bits for any number of workers; wrong indices change no state (PR-11); what cannot be sparse is refused.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { ROWS = 37, WIDTH = 6, TABLE = ROWS * WIDTH, INDICES = 24, RUNS = 4, MANY = 5000, IN_BAGS = 20 };

static const rondo_value none;

typedef enum method { SGD, ADAGRAD, ADAM, METHODS } method;
typedef enum reading { ONE, TWICE, TEN_TIMES, BAGS, WEIGHTED_BAGS, OFFSETS, LAST_OFFSET, READINGS } reading;

typedef struct setting {
  method by;
  reading how;
  bool sparse, eager, wide;
  rondo_gradient_options gradients;
  size_t rows, count; /* 0: ROWS, INDICES */
  size_t max_indices;
} setting;

static size_t rows_of(const setting *s) { return s->rows == 0 ? ROWS : s->rows; }
static size_t count_of(const setting *s) { return s->count == 0 ? INDICES : s->count; }

/* Programs --------------------------------------------------------------------------------------------------------- */

/* The rows that are read, times a factor for each, summed. */
static rondo_value look_up(rondo_program *program, const setting *s, rondo_value table, rondo_value indices) {
  const size_t bags[] = {count_of(s) / 4, 4}, starts = 5;
  const bool at_offsets = s->how == OFFSETS || s->how == LAST_OFFSET;
  rondo_value y, weights = none, offsets = none;
  if (s->how == BAGS || s->how == WEIGHTED_BAGS) assert_ok(rondo_op_reshape(program, indices, bags, 2, &indices));
  if (s->how == WEIGHTED_BAGS) assert_ok(rondo_program_input(program, "weights", RONDO_F32, bags, 2, &weights));
  if (at_offsets) assert_ok(rondo_program_input(program, "offsets", RONDO_I32, &starts, 1, &offsets));
  const rondo_embedding_bag_options options = {
      RONDO_EMBEDDING_BAG_OPTIONS_INIT, .combine = s->how == WEIGHTED_BAGS ? RONDO_COMBINE_SUM : RONDO_COMBINE_MEAN,
      .offsets = offsets, .weights = weights, .include_last_offset = s->how == LAST_OFFSET};
  if (s->how < BAGS)
    assert_ok(rondo_op_embedding(program, table, indices, &y));
  else
    assert_ok(rondo_op_embedding_bag_with(program, table, indices, &options, &y));
  return y;
}

/* loss = sum(tanh(y)^2) over what is looked up; for several look-ups, of parts of the indices. */
static rondo_value add_loss(rondo_program *program, const setting *s, rondo_value table, rondo_value indices) {
  const int parts = s->how == TEN_TIMES ? 10 : s->how == TWICE ? 2 : 1;
  rondo_value loss = none;
  for (int i = 0; i < parts; i++) {
    const size_t begin = count_of(s) * (size_t)i / (size_t)parts, end = count_of(s) * (size_t)(i + 1) / (size_t)parts;
    rondo_value part = indices, y;
    const size_t length = end - begin;
    if (parts > 1) assert_ok(rondo_op_slice(program, indices, &begin, &length, NULL, &part));
    y = look_up(program, s, table, part);
    assert_ok(rondo_op_tanh(program, y, &y));
    assert_ok(rondo_op_square(program, y, &y));
    assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
    if (i == 0)
      loss = y;
    else
      assert_ok(rondo_op_add(program, loss, y, &loss));
  }
  return loss;
}

static rondo_status add_optimizer(rondo_program *program, rondo_value loss, const setting *s) {
  rondo_value rate;
  TRY(rondo_program_cell(program, "rate", 0.125f, &rate));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .gradients = &s->gradients};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .gradients = &s->gradients};
  const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate, .rate_decay = 0.25f,
                                         .gradients = &s->gradients};
  return s->by == SGD    ? rondo_program_sgd(program, loss, &sgd)
         : s->by == ADAM ? rondo_program_adam(program, loss, &adam)
                         : rondo_program_adagrad(program, loss, &adagrad);
}

static rondo_value add_bounded_table(rondo_program *program, size_t rows, bool sparse, size_t max_indices) {
  const size_t shape[] = {rows, WIDTH};
  const rondo_state_options options = {RONDO_STATE_OPTIONS_INIT, .sparse = sparse, .max_indices = max_indices};
  rondo_value table;
  assert_ok(rondo_program_state_with(program, "table", RONDO_F32, shape, 2, &options, &table));
  return table;
}

static rondo_value add_table(rondo_program *program, size_t rows, bool sparse) {
  return add_bounded_table(program, rows, sparse, 0);
}

static rondo_program *make_program(const setting *s) {
  const size_t count = count_of(s);
  rondo_program *program = test_new_program();
  rondo_value indices;
  const rondo_value table = add_bounded_table(program, rows_of(s), s->sparse, s->sparse ? s->max_indices : 0);
  assert_ok(rondo_program_input(program, "indices", s->wide ? RONDO_I64 : RONDO_I32, &count, 1, &indices));
  const rondo_value loss = add_loss(program, s, table, indices);
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(add_optimizer(program, loss, s));
  return program;
}

static rondo_compiled *compile(rondo_device *device, const setting *s) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = s->eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  rondo_program *program = make_program(s);
  rondo_compiled *compiled = test_compile_kept(program, device, &options);
  rondo_program_destroy(program);
  return compiled;
}

/* Training --------------------------------------------------------------------------------------------------------- */

/* Some rows come often, a third never. */
static int32_t index_at(int run, size_t i, size_t rows) {
  const size_t x = i * 7 + (size_t)run * 3;
  return (int32_t)(x % 3 == 0 ? 1 : x * x % (rows - rows / 3));
}

/* Indices after the last offset: wrong ones, and that of the last row, which no other reads. */
static void write_indices(rondo_compiled *compiled, const setting *s, int run) {
  int32_t narrow[MANY];
  int64_t wide[MANY];
  for (size_t i = 0; i < count_of(s); i++) {
    const bool is_ignored = s->how == LAST_OFFSET && i >= IN_BAGS;
    wide[i] = narrow[i] = !is_ignored ? index_at(run, i, rows_of(s)) : i % 2 == 0 ? -1 : ROWS - 1;
  }
  const void *data = s->wide ? (const void *)wide : narrow;
  assert_ok(rondo_compiled_write(compiled, "indices", data, count_of(s) * (s->wide ? sizeof *wide : sizeof *narrow)));
}

static void start(rondo_compiled *compiled, const setting *s) {
  static const int32_t offsets[] = {0, 3, 3, 10, IN_BAGS};
  float table[TABLE], weights[INDICES];
  for (size_t i = 0; i < TABLE; i++) table[i] = (float)((i * 37) % 23) / 16 - 0.7f;
  for (size_t i = 0; i < INDICES; i++) weights[i] = (float)(i % 5) / 4;
  if (rows_of(s) == ROWS) assert_ok(rondo_compiled_write(compiled, "table", table, sizeof table));
  if (s->how == WEIGHTED_BAGS) assert_ok(rondo_compiled_write(compiled, "weights", weights, sizeof weights));
  if (s->how >= OFFSETS) assert_ok(rondo_compiled_write(compiled, "offsets", offsets, sizeof offsets));
}

static void train(rondo_device *device, const setting *s, float *table) {
  rondo_compiled *compiled = compile(device, s);
  start(compiled, s);
  for (int run = 0; run < RUNS; run++) {
    write_indices(compiled, s, run);
    assert_ok(rondo_compiled_run(compiled));
  }
  assert_ok(rondo_compiled_read(compiled, "table", table, TABLE * sizeof *table));
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* Without a norm, one look-up has the same bits on CPUs: each row is the same sum. */
TEST(test_pr7_sgd_and_adagrad_agree_with_dense_updates) {
  const rondo_gradient_options forms[] = {
      {RONDO_GRADIENT_OPTIONS_INIT},
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.5f, .norm_output = "norm"},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = 256},
  };
  for (int by = SGD; by <= ADAGRAD; by++) {
    for (int how = ONE; how < READINGS; how++) {
      for (size_t f = 0; f < 3; f++) {
        setting s = {.by = (method)by, .how = (reading)how, .gradients = forms[f], .wide = f == 1};
        float dense[TABLE], sparse[TABLE], eager[TABLE];
        train(t->device, &s, dense);
        s.sparse = true;
        train(t->device, &s, sparse);
        s.eager = true;
        train(t->device, &s, eager);
        assert_memory_equal(eager, sparse, sizeof eager);
        assert_near(sparse, dense, TABLE, 2e-6f);
        const bool is_same = f == 0 && how != TWICE && how != TEN_TIMES;
        if (is_same && !test_device_is("cuda:0")) assert_memory_equal(sparse, dense, sizeof dense);
      }
    }
  }
}

/* Several runs make one update; the last of them may not be complete. */
TEST(test_pr7_accumulated_rows_agree_with_dense_updates) {
  const rondo_gradient_options forms[] = {
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .max_norm = 0.5f, .norm_output = "norm"},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .scale_loss = true, .initial_scale = 256},
  };
  for (int by = SGD; by <= ADAGRAD; by++) {
    for (int how = ONE; how < READINGS; how++) {
      for (size_t f = 0; f < 4; f++) {
        setting s = {.by = (method)by, .how = (reading)how, .gradients = forms[f], .wide = f == 1};
        float dense[TABLE], sparse[TABLE], eager[TABLE], bounded[TABLE];
        train(t->device, &s, dense);
        s.sparse = true;
        train(t->device, &s, sparse);
        s.max_indices = 2 * INDICES;
        train(t->device, &s, bounded);
        s.eager = true;
        train(t->device, &s, eager);
        assert_memory_equal(eager, bounded, sizeof eager);
        assert_near(bounded, sparse, TABLE, 2e-6f);
        assert_near(sparse, dense, TABLE, 2e-6f);
        const bool is_same = f < 2 && how != TWICE && how != TEN_TIMES;
        if (is_same && !test_device_is("cuda:0")) assert_memory_equal(sparse, dense, sizeof dense);
        if (f < 2) assert_memory_equal(bounded, sparse, sizeof sparse);
      }
    }
  }
}

/* As if the indices after the last offset were not there: dense gradients leave their rows alone, too, and so does
 * Adam, which moves every row that has moments. */
TEST(test_pr7_indices_after_the_last_offset_touch_no_row) {
  for (int form = 0; form < 4; form++) {
    const setting s = {.by = form % 2 == 0 ? SGD : ADAM, .how = LAST_OFFSET, .sparse = form / 2 == 0};
    rondo_compiled *compiled = compile(t->device, &s);
    float before[TABLE], after[TABLE];
    start(compiled, &s);
    assert_ok(rondo_compiled_read(compiled, "table", before, sizeof before));
    write_indices(compiled, &s, 0);
    for (int run = 0; run < 2; run++) assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "table", after, sizeof after));
    for (size_t row = 0; row < ROWS; row++) {
      bool is_read = false;
      for (size_t i = 0; i < IN_BAGS; i++) is_read = is_read || (size_t)index_at(0, i, ROWS) == row;
      assert_true((memcmp(before + row * WIDTH, after + row * WIDTH, WIDTH * sizeof *before) != 0) == is_read);
    }
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* The moments of a row change if any run of the round read it; those of other rows do not. */
TEST(test_pr7_adam_accumulates_the_rows_of_all_runs) {
  const rondo_gradient_options twice = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2};
  const setting s = {.by = ADAM, .sparse = true, .gradients = twice};
  rondo_compiled *compiled = compile(t->device, &s);
  float before[TABLE], after[TABLE], moments[TABLE];
  start(compiled, &s);
  assert_ok(rondo_compiled_read(compiled, "table", before, sizeof before));
  for (int run = 0; run < 2; run++) {
    write_indices(compiled, &s, run);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "table", after, sizeof after));
    if (run == 0) assert_memory_equal(before, after, sizeof after);
  }
  assert_ok(rondo_compiled_read(compiled, "table.m", moments, sizeof moments));
  for (size_t row = 0; row < ROWS; row++) {
    bool is_read = false;
    for (size_t i = 0; i < 2 * INDICES; i++)
      is_read = is_read || (size_t)index_at((int)(i / INDICES), i % INDICES, ROWS) == row;
    for (size_t k = row * WIDTH; k < (row + 1) * WIDTH; k++) assert_true((moments[k] != 0) == is_read);
    assert_true((memcmp(before + row * WIDTH, after + row * WIDTH, WIDTH * sizeof *before) != 0) == is_read);
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Runs of one round have different numbers of indices. */
static void train_with_last_batch(rondo_device *device, const setting *s, float *table) {
  setting shorter = *s;
  rondo_compiled *compiled = compile(device, s);
  start(compiled, s);
  write_indices(compiled, s, 0);
  assert_ok(rondo_compiled_run(compiled));
  shorter.count = INDICES / 2;
  rondo_program *program = make_program(&shorter);
  assert_ok(rondo_compiled_recompile(compiled, program, NULL));
  rondo_program_destroy(program);
  write_indices(compiled, &shorter, 1);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "table", table, TABLE * sizeof *table));
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_pr7_a_last_batch_accumulates_within_max_indices) {
  const rondo_gradient_options twice = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2};
  setting s = {.by = ADAGRAD, .gradients = twice, .max_indices = INDICES + 5};
  float dense[TABLE], sparse[TABLE];
  train_with_last_batch(t->device, &s, dense);
  s.sparse = true;
  train_with_last_batch(t->device, &s, sparse);
  assert_near(sparse, dense, TABLE, 2e-6f);
  if (!test_device_is("cuda:0")) assert_memory_equal(sparse, dense, sizeof dense);
}

/* Lazy: moments change with their row; the step counts all updates. */
static void expect_adam(float *out) {
  double w[TABLE], m[TABLE] = {0}, v[TABLE] = {0};
  for (size_t i = 0; i < TABLE; i++) w[i] = (double)((float)((i * 37) % 23) / 16 - 0.7f);
  for (int run = 0; run < RUNS; run++) {
    double g[TABLE] = {0};
    bool is_read[ROWS] = {false};
    for (size_t i = 0; i < INDICES; i++) {
      const size_t row = (size_t)index_at(run, i, ROWS);
      is_read[row] = true;
      for (size_t k = row * WIDTH; k < (row + 1) * WIDTH; k++) g[k] += 2 * tanh(w[k]) * (1 - tanh(w[k]) * tanh(w[k]));
    }
    for (size_t k = 0; k < TABLE; k++) {
      if (!is_read[k / WIDTH]) continue;
      m[k] = 0.9 * m[k] + 0.1 * g[k];
      v[k] = 0.999 * v[k] + 0.001 * g[k] * g[k];
      const double mean = m[k] / (1 - pow(0.9, run + 1)), square = v[k] / (1 - pow(0.999, run + 1));
      w[k] -= 0.125 * mean / (sqrt(square) + 1e-8);
    }
  }
  for (size_t k = 0; k < TABLE; k++) out[k] = (float)w[k];
}

TEST(test_pr7_adam_is_lazy) {
  float wanted[TABLE], first[TABLE], got[TABLE];
  expect_adam(wanted);
  for (int form = 0; form < 4; form++) {
    const setting s = {.by = ADAM, .how = form / 2 == 0 ? ONE : TEN_TIMES, .sparse = true, .eager = form % 2 == 1};
    train(t->device, &s, got);
    if (form % 2 == 0) memcpy(first, got, sizeof got);
    assert_memory_equal(got, first, sizeof got);
    assert_near(got, wanted, TABLE, 5e-6f);
  }
}

/* Rows that are not read keep their bits, and so do their moments. */
TEST(test_pr7_other_rows_are_left) {
  const setting s = {.by = ADAM, .sparse = true};
  rondo_compiled *compiled = compile(t->device, &s);
  float before[TABLE], after[TABLE], moments[TABLE];
  start(compiled, &s);
  assert_ok(rondo_compiled_read(compiled, "table", before, sizeof before));
  write_indices(compiled, &s, 0);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "table", after, sizeof after));
  assert_ok(rondo_compiled_read(compiled, "table.v", moments, sizeof moments));
  for (size_t row = 0; row < ROWS; row++) {
    bool is_read = false;
    for (size_t i = 0; i < INDICES; i++) is_read = is_read || (size_t)index_at(0, i, ROWS) == row;
    assert_true((memcmp(before + row * WIDTH, after + row * WIDTH, WIDTH * sizeof *before) != 0) == is_read);
    for (size_t k = row * WIDTH; k < (row + 1) * WIDTH; k++) assert_true((moments[k] != 0) == is_read);
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

/* More indices than are sorted at once on CUDA, and more rows than three digits. */
TEST(test_pr7_many_indices_have_the_same_bits) {
  static float first[70000 * WIDTH], got[70000 * WIDTH];
  const setting s = {.by = ADAGRAD, .sparse = true, .count = MANY, .rows = 70000};
  for (int form = 0; form < 3; form++) {
    const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = form == 1 ? 1 : 4};
    rondo_device *device = form == 0 ? t->device : NULL;
    if (form > 0 && !test_device_is("cpu")) break;
    if (form > 0) device = test_device(form == 1 ? "cpu:1" : "cpu:2", &options);
    rondo_compiled *compiled = compile(device, &s);
    for (size_t i = 0; i < 70000 * WIDTH; i++) got[i] = (float)(i % 101) / 64 - 0.7f;
    assert_ok(rondo_compiled_write(compiled, "table", got, sizeof got));
    for (int run = 0; run < 2; run++) {
      write_indices(compiled, &s, run);
      assert_ok(rondo_compiled_run(compiled));
    }
    assert_ok(rondo_compiled_read(compiled, "table", got, sizeof got));
    if (form == 0) memcpy(first, got, sizeof got);
    assert_memory_equal(got, first, sizeof got);
    assert_ok(rondo_compiled_destroy(compiled));
  }
  setting dense = s;
  dense.sparse = false;
  rondo_compiled *compiled = compile(t->device, &dense);
  for (size_t i = 0; i < 70000 * WIDTH; i++) got[i] = (float)(i % 101) / 64 - 0.7f;
  assert_ok(rondo_compiled_write(compiled, "table", got, sizeof got));
  for (int run = 0; run < 2; run++) {
    write_indices(compiled, &dense, run);
    assert_ok(rondo_compiled_run(compiled));
  }
  assert_ok(rondo_compiled_read(compiled, "table", got, sizeof got));
  assert_near(got, first, 70000 * WIDTH, 2e-5f);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* No value of a run is as large as the table. */
TEST(test_pr7_the_memory_of_a_step_does_not_grow_with_the_table) {
  for (int by = SGD; by < METHODS; by++) {
    const rondo_gradient_options clipped = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1};
    setting s = {.by = (method)by, .sparse = true, .gradients = clipped, .rows = 100};
    rondo_compiled *compiled = compile(t->device, &s);
    const uint64_t bytes = test_compiled_info(compiled).arena_bytes;
    assert_ok(rondo_compiled_destroy(compiled));
    s.rows = 50000;
    compiled = compile(t->device, &s);
    assert_int_equal(test_compiled_info(compiled).arena_bytes, bytes);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

enum { STATES_BYTES = 16 * TABLE * sizeof(float) };

/* Reads all states, one after another. */
static size_t read_states(rondo_compiled *compiled, unsigned char *out) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  size_t bytes = 0;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 's') continue;
    assert_true(bytes + value.bytes <= STATES_BYTES);
    assert_ok(rondo_compiled_read(compiled, value.name, out + bytes, value.bytes));
    bytes += value.bytes;
  }
  return bytes;
}

static void run_wrong_indices(rondo_compiled *compiled) {
  const int32_t indices[INDICES] = {1, 2, 3, ROWS, -1};
  assert_ok(rondo_compiled_write(compiled, "indices", indices, sizeof indices));
  assert_ok(rondo_compiled_run(compiled));
  assert_error(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
}

/* Also the moments, the counters, and what is accumulated: the run can be made again. */
TEST(test_pr7_pr11_a_wrong_index_changes_no_state) {
  static unsigned char before[STATES_BYTES], after[STATES_BYTES];
  for (int by = SGD; by < METHODS; by++) {
    for (int form = 0; form < 4; form++) {
      const rondo_gradient_options options = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = form / 2 == 0 ? 1 : 3};
      const setting s = {.by = (method)by, .sparse = true, .eager = form % 2 == 1, .gradients = options};
      rondo_compiled *compiled = compile(t->device, &s);
      float wanted[TABLE], got[TABLE];
      start(compiled, &s);
      for (int run = 0; run < RUNS; run++) {
        const size_t bytes = read_states(compiled, before);
        run_wrong_indices(compiled);
        assert_int_equal(read_states(compiled, after), bytes);
        assert_memory_equal(before, after, bytes);
        write_indices(compiled, &s, run);
        assert_ok(rondo_compiled_run(compiled));
      }
      assert_ok(rondo_compiled_read(compiled, "table", got, sizeof got));
      assert_ok(rondo_compiled_destroy(compiled));
      train(t->device, &s, wanted);
      assert_memory_equal(got, wanted, sizeof got);
    }
  }
}

/* Gradients that the caller asks for are whole, also of a sparse state. */
TEST(test_pr7_requested_gradients_are_whole) {
  const setting s = {.by = SGD, .sparse = true};
  rondo_program *program = test_new_program();
  const size_t count = INDICES;
  rondo_value indices, gradient;
  const rondo_value table = add_table(program, ROWS, true);
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  rondo_type type;
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, &count, 1, &indices));
  const rondo_value loss = add_loss(program, &s, table, indices);
  assert_ok(rondo_program_gradients(program, loss, &table, 1, &gradient));
  assert_ok(rondo_value_shape(program, gradient, &type, shape, &rank));
  assert_true(rank == 2 && shape[0] == ROWS && shape[1] == WIDTH);
}

/* The table is on the second device. */
TEST(test_pr7_a_divided_program_updates_rows) {
  rondo_device *devices[] = {t->device, test_device(test_device_is("cpu") ? "cpu:1" : "cpu", NULL)};
  const setting s = {.by = ADAGRAD, .sparse = true};
  float wanted[TABLE], got[TABLE], table[TABLE];
  train(t->device, &s, wanted);
  const size_t count = INDICES;
  rondo_program *program = test_new_program();
  rondo_value indices;
  const rondo_value placed = add_table(program, ROWS, true);
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, &count, 1, &indices));
  const rondo_value loss = add_loss(program, &s, placed, indices);
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(add_optimizer(program, loss, &s));
  assert_ok(rondo_program_place(program, placed, 1));
  rondo_divided *divided = test_compile_divided(program, devices, 2, NULL);
  for (size_t i = 0; i < TABLE; i++) table[i] = (float)((i * 37) % 23) / 16 - 0.7f;
  assert_ok(rondo_divided_write(divided, "table", table, sizeof table));
  for (int run = 0; run < RUNS; run++) {
    int32_t narrow[INDICES];
    for (size_t i = 0; i < INDICES; i++) narrow[i] = index_at(run, i, ROWS);
    assert_ok(rondo_divided_write(divided, "indices", narrow, sizeof narrow));
    assert_ok(rondo_divided_run(divided));
  }
  assert_ok(rondo_divided_read(divided, "table", got, sizeof got));
  assert_near(got, wanted, TABLE, 1e-5f);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_pr7_what_cannot_be_sparse_is_refused) {
  const size_t count = INDICES, square[] = {WIDTH, WIDTH}, bags[] = {INDICES / 4, 4};
  rondo_program *program = test_new_program();
  rondo_value indices, rate, y, x, more, loss, loss_of_two, folded;
  const rondo_value table = add_table(program, ROWS, true);
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, &count, 1, &indices));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, square, 2, &x));
  assert_ok(rondo_program_cell(program, "rate", 0.125f, &rate));
  const setting s = {.how = ONE};
  loss = add_loss(program, &s, table, indices);
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = rate};
  assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_BAD_OPTIONS);
  assert_message("'table' [37, 6] is sparse");
  sgd.momentum = none;
  sgd.weight_decay = 0.1f;
  assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_BAD_OPTIONS);
  assert_message("weight decay");
  sgd.weight_decay = 0;
  const rondo_rmsprop_options rmsprop = {RONDO_RMSPROP_OPTIONS_INIT, .learning_rate = rate};
  assert_invalid(rondo_program_rmsprop(program, loss, &rmsprop), RONDO_REASON_BAD_OPTIONS);
  assert_ok(rondo_op_matmul(program, table, x, none, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
  assert_ok(rondo_op_add(program, loss, y, &more));
  assert_fails(rondo_program_sgd(program, more, &sgd), RONDO_UNSUPPORTED);
  assert_message("computed by matmul");
  assert_ok(rondo_op_cast(program, table, RONDO_F16, &y));
  assert_ok(rondo_program_input(program, "many", RONDO_I32, (const size_t[]){MANY}, 1, &more));
  assert_ok(rondo_op_embedding(program, y, more, &y));
  assert_ok(rondo_op_cast(program, y, RONDO_F32, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
  assert_fails(rondo_program_sgd(program, y, &sgd), RONDO_UNSUPPORTED);
  assert_message("computed by cast");
  assert_ok(rondo_op_reshape(program, indices, bags, 2, &folded));
  assert_ok(rondo_op_embedding_bag(program, table, folded, none, none, RONDO_COMBINE_SUM, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
  assert_ok(rondo_op_add(program, loss, y, &loss_of_two));
  assert_fails(rondo_program_sgd(program, loss_of_two, &sgd), RONDO_UNSUPPORTED);
  assert_message("embedding_bag");
  const rondo_parameter_group group = {.states = &table, .state_count = 1, .no_decay = true};
  const rondo_sgd_options right = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.1f,
                                   .groups = &group, .group_count = 1};
  assert_ok(rondo_program_sgd(program, loss, &right));
  const rondo_state_options sparse = {RONDO_STATE_OPTIONS_INIT, .sparse = true};
  assert_invalid(rondo_program_state_with(program, "a", RONDO_F16, square, 2, &sparse, &y), RONDO_REASON_TYPE);
  assert_invalid(rondo_program_state_with(program, "a", RONDO_F32, square, 1, &sparse, &y), RONDO_REASON_SHAPE);
}

TEST(test_pr7_what_does_not_fit_accumulation_is_refused) {
  const size_t count = INDICES, shape[] = {ROWS, WIDTH};
  const rondo_state_options bound_alone = {RONDO_STATE_OPTIONS_INIT, .max_indices = 5};
  const setting s = {.how = ONE};
  rondo_program *program = test_new_program();
  rondo_value indices, rate, y;
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, &count, 1, &indices));
  assert_ok(rondo_program_cell(program, "rate", 0.125f, &rate));
  assert_invalid(rondo_program_state_with(program, "a", RONDO_F32, shape, 2, &bound_alone, &y),
                 RONDO_REASON_BAD_OPTIONS);
  rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .gradients = &gradients};
  const rondo_value table = add_bounded_table(program, ROWS, true, INDICES - 1);
  rondo_value loss = add_loss(program, &s, table, indices);
  assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_OUT_OF_RANGE);
  assert_message("read at 24 indices, more than its max_indices 23");
  const rondo_state_options large = {RONDO_STATE_OPTIONS_INIT, .sparse = true, .max_indices = INT32_MAX};
  assert_ok(rondo_program_state_with(program, "large", RONDO_F32, shape, 2, &large, &y));
  loss = add_loss(program, &s, y, indices);
  assert_fails(rondo_program_sgd(program, loss, &sgd), RONDO_LIMIT_EXCEEDED);
  assert_message("more than an i32 can count");
  gradients.accumulate = 1;
  assert_ok(rondo_program_sgd(program, loss, &sgd));
}
