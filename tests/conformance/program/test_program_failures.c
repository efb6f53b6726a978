/* SPDX-License-Identifier: MIT
 * A run that fails changes no state (PR-11): weights, moments, running means, caches and counters keep their bits,
 * recorded or eager, in programs, divided programs and sessions. Runs before and after a failed one count as usual,
 * also when nothing waited in between.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { BATCH = 6, IDS = 10, CHANNELS = 8, CLASSES = 5, MOST_BYTES = 4096, MOST_STATES = 40 };

static const rondo_value none;

/* ADAGRAD has a decay of the rate; RMSPROP is centered and has momentum; GROUPS is SGD, which clips w alone. */
typedef enum method { SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP, GROUPS, METHODS } method;

/* The operators between a failure and the states. */
typedef struct form {
  method by;
  bool is_scheduled, is_controlled, is_eager;
} form;

/* All states of a program, in its order. */
typedef struct snapshot {
  unsigned char bytes[MOST_STATES][MOST_BYTES];
  size_t sizes[MOST_STATES], count;
} snapshot;

/* The program ------------------------------------------------------------------------------------------------------ */

static void add_optimizer(rondo_program *program, rondo_value loss, rondo_value w, const form *f) {
  const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_LINEAR, .rate = 0.05f,
                                       .period = 100};
  const rondo_gradient_options controlled = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .max_norm = 1,
                                             .scale_loss = true, .growth_interval = 2};
  rondo_value rate = none, momentum = none;
  if (!f->is_scheduled) assert_ok(rondo_program_cell(program, "rate", 0.05f, &rate));
  if (f->by == MOMENTUM || f->by == RMSPROP) assert_ok(rondo_program_cell(program, "momentum", 0.5f, &momentum));
  const rondo_rate_options *by_schedule = f->is_scheduled ? &schedule : NULL;
  const rondo_gradient_options *gradients = f->is_controlled ? &controlled : NULL;
  const rondo_parameter_group clipped = {.states = &w, .state_count = 1, .max_norm = 0.25f};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .schedule = by_schedule,
                                   .gradients = gradients};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT,
                                 .learning_rate = rate,
                                 .momentum = momentum,
                                 .schedule = by_schedule,
                                 .gradients = gradients,
                                 .groups = &clipped,
                                 .group_count = f->by == GROUPS ? 1 : 0};
  const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate, .rate_decay = 0.25f,
                                         .schedule = by_schedule, .gradients = gradients};
  const rondo_rmsprop_options rmsprop = {RONDO_RMSPROP_OPTIONS_INIT, .learning_rate = rate,   .momentum = momentum,
                                         .centered = true,           .schedule = by_schedule, .gradients = gradients};
  if (f->by == ADAM)
    assert_ok(rondo_program_adam(program, loss, &adam));
  else if (f->by == ADAGRAD)
    assert_ok(rondo_program_adagrad(program, loss, &adagrad));
  else if (f->by == RMSPROP)
    assert_ok(rondo_program_rmsprop(program, loss, &rmsprop));
  else
    assert_ok(rondo_program_sgd(program, loss, &sgd));
}

static rondo_value add_state(rondo_program *program, const char *name, size_t m, size_t n) {
  const size_t shape[] = {m, n};
  rondo_value value;
  assert_ok(rondo_program_state(program, name, RONDO_F32, shape, n == 0 ? 1 : 2, &value));
  return value;
}

/* Values that a test places. */
typedef struct network {
  rondo_program *program;
  rondo_value table, normed, logits;
} network;

/* logits = dropout(batch_norm(table[ids])) w: a check before the running means and the random numbers, and one after
 * them. */
static network make_network(const form *f) {
  const size_t batch = BATCH;
  network n = {0};
  rondo_value ids, labels, x, p, w, loss;
  assert_ok(rondo_program_create(NULL, &n.program));
  assert_ok(rondo_program_input(n.program, "ids", RONDO_I32, &batch, 1, &ids));
  assert_ok(rondo_program_input(n.program, "labels", RONDO_I32, &batch, 1, &labels));
  n.table = add_state(n.program, "table", IDS, CHANNELS);
  w = add_state(n.program, "w", CHANNELS, CLASSES);
  const rondo_batch_norm_options norm = {RONDO_BATCH_NORM_OPTIONS_INIT, .momentum = 0.25f,
                                         .running_mean = add_state(n.program, "mean", CHANNELS, 0),
                                         .running_variance = add_state(n.program, "variance", CHANNELS, 0)};
  assert_ok(rondo_op_embedding(n.program, n.table, ids, &x));
  assert_ok(rondo_op_batch_norm(n.program, x, &norm, &n.normed));
  assert_ok(rondo_program_cell(n.program, "p", 0.25f, &p));
  assert_ok(rondo_op_dropout(n.program, n.normed, p, &x));
  assert_ok(rondo_op_matmul(n.program, x, w, none, &n.logits));
  assert_ok(rondo_op_cross_entropy(n.program, n.logits, labels, &loss));
  assert_ok(rondo_program_output(n.program, "loss", loss));
  add_optimizer(n.program, loss, w, f);
  return n;
}

static void fill_reals(float *to, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; i++) to[i] = (float)((int)((i * 37 + seed * 11) % 23) - 11) / 16;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Both forms of a program. */
typedef struct runner {
  rondo_compiled *compiled;
  rondo_divided *divided;
  bool is_eager;
} runner;

static rondo_status put(const runner *r, const char *name, const void *data, size_t bytes) {
  return r->compiled != NULL ? rondo_compiled_write(r->compiled, name, data, bytes)
                             : rondo_divided_write(r->divided, name, data, bytes);
}

static rondo_status get(const runner *r, const char *name, void *data, size_t bytes) {
  return r->compiled != NULL ? rondo_compiled_read(r->compiled, name, data, bytes)
                             : rondo_divided_read(r->divided, name, data, bytes);
}

static rondo_status wait_for(const runner *r) {
  return r->compiled != NULL ? rondo_compiled_synchronize(r->compiled) : rondo_divided_synchronize(r->divided);
}

static rondo_status run_once(const runner *r) {
  if (r->compiled != NULL) return r->is_eager ? rondo_compiled_run_eager(r->compiled) : rondo_compiled_run(r->compiled);
  return r->is_eager ? rondo_divided_run_eager(r->divided) : rondo_divided_run(r->divided);
}

/* A run with these batches, of which a wrong id or label is the last. Does not wait. */
static void enqueue(const runner *r, unsigned seed, int32_t last_id, int32_t last_label) {
  int32_t ids[BATCH], labels[BATCH];
  for (unsigned i = 0; i < BATCH; i++)
    ids[i] = (int32_t)((i * 3 + seed) % IDS), labels[i] = (int32_t)((i + seed) % CLASSES);
  ids[BATCH - 1] = last_id;
  labels[BATCH - 1] = last_label;
  assert_ok(put(r, "ids", ids, sizeof ids));
  assert_ok(put(r, "labels", labels, sizeof labels));
  assert_ok(run_once(r));
}

static void start(const runner *r) {
  float table[IDS * CHANNELS], w[CHANNELS * CLASSES], of_channels[CHANNELS];
  fill_reals(table, IDS * CHANNELS, 1);
  fill_reals(w, CHANNELS * CLASSES, 2);
  fill_reals(of_channels, CHANNELS, 3);
  assert_ok(put(r, "table", table, sizeof table));
  assert_ok(put(r, "w", w, sizeof w));
  assert_ok(put(r, "mean", of_channels, sizeof of_channels));
  assert_ok(put(r, "variance", of_channels, sizeof of_channels));
}

static void note(snapshot *s, const runner *r, const char *name, size_t bytes) {
  assert_true(s->count < MOST_STATES && bytes <= MOST_BYTES);
  s->sizes[s->count] = bytes;
  assert_ok(get(r, name, s->bytes[s->count++], bytes));
}

static void note_states(snapshot *s, const runner *r, const rondo_compiled *of) {
  for (size_t i = 0;; i++) {
    rondo_compiled_value value = {.struct_size = sizeof value};
    if (rondo_compiled_get_value(of, i, &value) != RONDO_OK) return;
    if (value.kind == 's') note(s, r, value.name, value.bytes);
  }
}

static void take_snapshot(snapshot *s, const runner *r) {
  s->count = 0;
  if (r->compiled != NULL) {
    note_states(s, r, r->compiled);
    return;
  }
  rondo_divided_info info = {.struct_size = sizeof info};
  assert_ok(rondo_divided_get_info(r->divided, &info));
  for (uint32_t p = 0; p < info.parts; p++) {
    rondo_divided_part part = {.struct_size = sizeof part};
    assert_ok(rondo_divided_get_part(r->divided, p, &part));
    note_states(s, r, part.compiled);
  }
}

static bool is_same(const snapshot *a, const snapshot *b) {
  assert_true(a->count > 0 && a->count == b->count);
  bool same = true;
  for (size_t i = 0; i < a->count; i++) same = same && memcmp(a->bytes[i], b->bytes[i], a->sizes[i]) == 0;
  return same;
}

/* Each state, so that a message says which. */
static void assert_unchanged(const snapshot *before, const runner *r) {
  static snapshot now;
  take_snapshot(&now, r);
  assert_int_equal(now.count, before->count);
  for (size_t i = 0; i < now.count; i++) assert_memory_equal(now.bytes[i], before->bytes[i], now.sizes[i]);
}

static void assert_told(const runner *r) {
  assert_error(wait_for(r), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(wait_for(r));
}

static void end(runner *r) {
  assert_ok(rondo_compiled_destroy(r->compiled));
  assert_ok(rondo_divided_destroy(r->divided));
}

static runner compile_form(test_fixture *t, const form *f) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = f->is_eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  runner r = {.is_eager = f->is_eager};
  network n = make_network(f);
  assert_ok(rondo_compile(n.program, t->device, &options, &r.compiled));
  rondo_program_destroy(n.program);
  start(&r);
  return r;
}

/* Programs --------------------------------------------------------------------------------------------------------- */

/* Two good runs, a wrong one, two more; a twin has only the good ones. */
static void try_failures(const runner *r, const runner *twin) {
  static const int32_t wrong[][2] = {{1, CLASSES}, {IDS, 1}, {-1, -1}};
  static snapshot before, after;
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    for (unsigned k = 0; k < 3; k++) enqueue(r, 7 * i + k, 2, 3), enqueue(twin, 7 * i + k, 2, 3);
    assert_ok(wait_for(r));
    take_snapshot(&before, r);
    for (unsigned k = 0; k < 2; k++) {
      enqueue(r, i + k, wrong[i][0], wrong[i][1]);
      assert_told(r);
      assert_unchanged(&before, r);
    }
    enqueue(r, 7 * i + 5, 2, 3), enqueue(twin, 7 * i + 5, 2, 3);
    assert_ok(wait_for(r));
    take_snapshot(&after, r);
    assert_false(is_same(&before, &after));
    take_snapshot(&before, twin);
    assert_true(is_same(&before, &after));
  }
}

TEST(test_pr11_a_failed_run_leaves_every_state) {
  for (unsigned i = 0; i < 8 * METHODS; i++) {
    const form f = {(method)(i / 8), (i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
    runner r = compile_form(t, &f), twin = compile_form(t, &f);
    try_failures(&r, &twin);
    end(&r);
    end(&twin);
  }
}

/* No wait in between: the good runs count, the wrong ones do not, and one of these is reported. */
TEST(test_pr11_runs_around_a_failed_one_count) {
  static snapshot mine, wanted;
  for (unsigned i = 0; i < 4; i++) {
    const form f = {ADAM, false, (i & 1) != 0, (i & 2) != 0};
    runner r = compile_form(t, &f), twin = compile_form(t, &f);
    enqueue(&r, 0, IDS, 1);
    for (unsigned k = 1; k < 8; k++) {
      if (k % 3 == 0) enqueue(&r, k, 1, k == 3 ? CLASSES : -1);
      enqueue(&r, k, 1, 1);
      enqueue(&twin, k, 1, 1);
    }
    assert_told(&r);
    take_snapshot(&mine, &r);
    take_snapshot(&wanted, &twin);
    assert_true(is_same(&mine, &wanted));
    end(&r);
    end(&twin);
  }
}

/* Many look-ups side by side: one of them fails, the first or the last. */
TEST(test_pr11_any_of_many_checks_holds_updates_back) {
  enum { TABLES = 20 };
  const size_t batch = BATCH;
  rondo_program *program = test_new_program();
  rondo_value sum = none, loss, rate;
  static snapshot before;
  for (int i = 0; i < TABLES; i++) {
    char name[16];
    rondo_value ids, row;
    (void)snprintf(name, sizeof name, "ids%d", i);
    assert_ok(rondo_program_input(program, name, RONDO_I32, &batch, 1, &ids));
    (void)snprintf(name, sizeof name, "table%d", i);
    assert_ok(rondo_op_embedding(program, add_state(program, name, IDS, CHANNELS), ids, &row));
    if (i == 0)
      sum = row;
    else
      assert_ok(rondo_op_add(program, sum, row, &sum));
  }
  assert_ok(rondo_op_square(program, sum, &sum));
  assert_ok(rondo_op_add_constant(program, sum, 1, &sum));
  assert_ok(rondo_op_sum(program, sum, (const size_t[]){0, 1}, 2, false, &loss));
  assert_ok(rondo_program_cell(program, "rate", 0.1f, &rate));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, loss, &sgd));
  runner r = {0};
  assert_ok(rondo_compile(program, t->device, NULL, &r.compiled));
  rondo_program_destroy(program);
  for (int i = 0; i < TABLES; i++) {
    float table[IDS * CHANNELS];
    char name[16];
    fill_reals(table, IDS * CHANNELS, (unsigned)i);
    (void)snprintf(name, sizeof name, "table%d", i);
    assert_ok(put(&r, name, table, sizeof table));
  }
  take_snapshot(&before, &r);
  for (int i = 0; i < TABLES; i += TABLES - 1) {
    const int32_t wrong[BATCH] = {0, 1, 2, 3, 4, IDS}, right[BATCH] = {0};
    char name[16];
    (void)snprintf(name, sizeof name, "ids%d", i);
    assert_ok(put(&r, name, wrong, sizeof wrong));
    assert_ok(run_once(&r));
    assert_told(&r);
    assert_unchanged(&before, &r);
    assert_ok(put(&r, name, right, sizeof right));
  }
  assert_ok(run_once(&r));
  static snapshot after;
  take_snapshot(&after, &r);
  assert_false(is_same(&before, &after));
  end(&r);
}

/* Caches ----------------------------------------------------------------------------------------------------------- */

enum { SIZE = 4, LONG = 8, SHORT = 3 };

static void add_decode(rondo_program *program, rondo_value row, rondo_value length, const char *k, const char *v,
                       size_t capacity, rondo_value *out) {
  const size_t shape[] = {1, 1, capacity, SIZE};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .lengths = length};
  assert_ok(rondo_program_state(program, k, RONDO_F32, shape, 4, &options.k_cache));
  assert_ok(rondo_program_state(program, v, RONDO_F32, shape, 4, &options.v_cache));
  assert_ok(rondo_op_attention(program, row, row, row, &options, out));
}

/* A length that fits in one pair of caches but not in the other: neither is written. Where nothing reads the result of
 * decoding, its check still counts. */
TEST(test_pr11_caches_are_written_together_or_not) {
  for (int i = 0; i < 4; i++) {
    static snapshot before;
    const bool is_read = i / 2 == 0;
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                           .record = i % 2 == 0 ? RONDO_RECORD_ALWAYS : RONDO_RECORD_NEVER};
    rondo_value row, length, y, z, both;
    rondo_program *program = test_new_program();
    assert_ok(rondo_program_input(program, "row", RONDO_F32, (const size_t[]){1, 1, 1, SIZE}, 4, &row));
    assert_ok(rondo_program_input(program, "length", RONDO_I32, NULL, 0, &length));
    add_decode(program, row, length, "k long", "v long", LONG, &y);
    add_decode(program, row, length, "k short", "v short", SHORT, &z);
    assert_ok(rondo_op_add(program, y, is_read ? z : y, &both));
    assert_ok(rondo_program_output(program, "y", both));
    runner r = {0};
    assert_ok(rondo_compile(program, t->device, &options, &r.compiled));
    rondo_program_destroy(program);
    for (int32_t at = 0; at <= SHORT; at++) {
      const float numbers[SIZE] = {(float)at + 1, 2, 3, 4};
      take_snapshot(&before, &r);
      assert_ok(put(&r, "row", numbers, sizeof numbers));
      assert_ok(put(&r, "length", &at, sizeof at));
      assert_ok(run_once(&r));
      if (at < SHORT) {
        static snapshot after;
        take_snapshot(&after, &r);
        assert_false(is_same(&before, &after));
        continue;
      }
      assert_told(&r);
      assert_unchanged(&before, &r);
    }
    end(&r);
  }
}

/* Divided programs ------------------------------------------------------------------------------------------------- */

/* Lookups on one device, the rest on the other, and the reverse: both have checks and updates. */
static runner divide_form(const form *f, rondo_device *const *devices, uint32_t front) {
  const rondo_divide_options options = {RONDO_DIVIDE_OPTIONS_INIT};
  runner r = {.is_eager = f->is_eager};
  network n = make_network(f);
  assert_ok(rondo_program_place(n.program, n.table, front));
  assert_ok(rondo_program_place(n.program, n.normed, front));
  assert_ok(rondo_program_place(n.program, n.logits, 1 - front));
  assert_ok(rondo_compile_divided(n.program, devices, 2, &options, &r.divided));
  rondo_program_destroy(n.program);
  start(&r);
  return r;
}

TEST(test_pr11_a_failed_run_of_a_divided_program_leaves_every_state) {
  rondo_device *devices[] = {t->device, NULL};
  assert_ok(rondo_device_open(test_device_is("cpu") ? "cpu:1" : "cpu", NULL, &devices[1]));
  for (unsigned i = 0; i < 8; i++) {
    const form f = {ADAM, false, (i & 1) != 0, (i & 2) != 0};
    runner r = divide_form(&f, devices, i / 4), twin = divide_form(&f, devices, i / 4);
    rondo_divided_info info = {.struct_size = sizeof info};
    assert_ok(rondo_divided_get_info(r.divided, &info));
    assert_true(info.parts > 1);
    try_failures(&r, &twin);
    end(&r);
    end(&twin);
  }
  assert_ok(rondo_device_close(devices[1]));
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

/* A model with a running mean of what it has seen, as programs of sessions may have. */
static rondo_status build_seen(void *user, size_t rows, rondo_program *program) {
  const size_t table_shape[] = {IDS, CHANNELS}, channels = CHANNELS;
  rondo_value ids = {0}, table = {0}, mean = {0}, variance = {0}, x = {0};
  (void)user;
  rondo_status status = rondo_program_input(program, "ids", RONDO_I32, &rows, 1, &ids);
  if (!status) status = rondo_program_state(program, "table", RONDO_F32, table_shape, 2, &table);
  if (!status) status = rondo_program_state(program, "mean", RONDO_F32, &channels, 1, &mean);
  if (!status) status = rondo_program_state(program, "variance", RONDO_F32, &channels, 1, &variance);
  if (!status) status = rondo_op_embedding(program, table, ids, &x);
  const rondo_batch_norm_options norm = {RONDO_BATCH_NORM_OPTIONS_INIT, .momentum = 0.5f, .running_mean = mean,
                                         .running_variance = variance};
  if (!status) status = rondo_op_batch_norm(program, x, &norm, &x);
  if (!status) status = rondo_op_add(program, x, mean, &x); /* as it was before the run */
  return status ? status : rondo_program_output(program, "y", x);
}

static rondo_session *open_seen(test_fixture *t) {
  static const size_t history[] = {BATCH};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build_seen, .history = history,
                                     .history_count = 1};
  float table[IDS * CHANNELS];
  rondo_session *session = NULL;
  fill_reals(table, IDS * CHANNELS, 1);
  assert_ok(rondo_session_create(t->device, &options, &session));
  assert_ok(rondo_session_add_model(session, "seen", &model));
  assert_ok(rondo_session_write(session, "seen", "table", table, sizeof table));
  return session;
}

static rondo_status ask(rondo_session *session, rondo_run_mode mode, int32_t last, float *y) {
  const int32_t ids[BATCH] = {0, 3, 5, 7, 9, last};
  const void *inputs[] = {ids};
  void *outputs[] = {y};
  const rondo_request r = {RONDO_REQUEST_INIT, .rows = BATCH, .inputs = inputs, .outputs = outputs, .mode = mode};
  return rondo_session_run(session, "seen", &r, NULL);
}

TEST(test_pr3_a_state_that_runs_change_needs_one_stream) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 2};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build_seen};
  rondo_session *session = NULL;
  assert_ok(rondo_session_create(t->device, &options, &session));
  assert_error(rondo_session_add_model(session, "seen", &model), RONDO_UNSUPPORTED, RONDO_REASON_RACE);
  assert_message("model 'seen' changes the state 'mean' by ");
  assert_message("on 2 streams at once: use one stream");
  assert_ok(rondo_session_destroy(session));
}

/* Sessions that are captured, in either way, and one that is not, have seen the same. */
TEST(test_pr3_measuring_changes_no_state) {
  rondo_session *sessions[] = {open_seen(t), open_seen(t), open_seen(t)};
  float y[3][BATCH * CHANNELS];
  assert_ok(rondo_session_capture_begin(sessions[0], "seen"));
  assert_ok(ask(sessions[0], RONDO_RUN_AUTO, 2, y[0]));
  assert_ok(rondo_session_capture_end(sessions[0]));
  assert_ok(rondo_session_capture(sessions[1], "seen"));
  for (int i = 0; i < 3; i++) assert_ok(ask(sessions[i], RONDO_RUN_EAGER, 2, y[i]));
  for (int i = 0; i < 3; i++) assert_ok(ask(sessions[i], RONDO_RUN_EAGER, 4, y[i]));
  for (int i = 0; i < 2; i++) assert_memory_equal(y[i], y[2], sizeof y[2]);
  for (int i = 0; i < 3; i++) assert_ok(rondo_session_destroy(sessions[i]));
}

/* One session gets wrong requests too: the others' answers show the same means in both. */
TEST(test_pr11_a_failed_request_of_a_session_leaves_every_state) {
  rondo_session *sessions[] = {open_seen(t), open_seen(t)};
  float y[2][BATCH * CHANNELS], before[BATCH * CHANNELS];
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_session_capture_begin(sessions[i], "seen"));
    assert_ok(ask(sessions[i], RONDO_RUN_AUTO, 2, y[i]));
    assert_ok(rondo_session_capture_end(sessions[i]));
  }
  for (int mode = RONDO_RUN_RECORDED; mode <= RONDO_RUN_EAGER; mode += RONDO_RUN_EAGER - RONDO_RUN_RECORDED) {
    for (int i = 0; i < 2; i++) assert_ok(ask(sessions[i], (rondo_run_mode)mode, 4, y[i]));
    memcpy(before, y[0], sizeof before);
    assert_error(ask(sessions[0], (rondo_run_mode)mode, IDS, y[0]), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
    for (int i = 0; i < 2; i++) assert_ok(ask(sessions[i], (rondo_run_mode)mode, 4, y[i]));
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_not_equal(y[0], before, sizeof before); /* its content moves */
  }
  for (int i = 0; i < 2; i++) assert_ok(rondo_session_destroy(sessions[i]));
}

/* Requests that are split ----------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 16, TOGETHER = 4, EACH = 3 };

/* The rows of a request, and how many runs the model had seen before each of them. */
typedef struct counted {
  int32_t ids[MOST_ROWS];
  float y[MOST_ROWS];
  const void *inputs[1];
  void *outputs[1];
  rondo_request request;
} counted;

/* y = table[ids] + count, where the table is zeros, and each run adds 1 to the count. */
static rondo_status build_counted(void *user, size_t rows, rondo_program *program) {
  const size_t table_shape[] = {IDS, 1}, one = 1;
  rondo_value ids = {0}, table = {0}, count = {0}, step = {0}, next = {0}, y = {0};
  (void)user;
  rondo_status status = rondo_program_input(program, "ids", RONDO_I32, &rows, 1, &ids);
  if (!status) status = rondo_program_state(program, "table", RONDO_F32, table_shape, 2, &table);
  if (!status) status = rondo_program_state(program, "count", RONDO_F32, &one, 1, &count);
  if (!status) status = rondo_op_embedding(program, table, ids, &y);
  if (!status) status = rondo_op_add(program, y, count, &y);
  if (!status) status = rondo_op_full(program, RONDO_F32, &one, 1, 1, &step);
  if (!status) status = rondo_op_add(program, count, step, &next);
  if (!status) status = rondo_program_assign(program, count, next);
  return status ? status : rondo_program_output(program, "y", y);
}

static void fill_counted(counted *c, size_t rows, rondo_run_mode mode, int32_t last) {
  *c = (counted){.inputs = {c->ids}, .outputs = {c->y}};
  c->ids[rows - 1] = last;
  c->request =
      (rondo_request){RONDO_REQUEST_INIT, .rows = rows, .inputs = c->inputs, .outputs = c->outputs, .mode = mode};
}

static rondo_status run_counted(rondo_session *session, counted *c, rondo_answer *answer) {
  *answer = (rondo_answer){.struct_size = sizeof *answer};
  return rondo_session_run(session, "counted", &c->request, answer);
}

/* With graphs of these sizes, which take so long. */
static rondo_session *open_counted(test_fixture *t, bool is_strict, const size_t *sizes, const double *us,
                                   size_t count) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1, .strict = is_strict};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build_counted};
  rondo_session *session = NULL;
  counted c;
  rondo_answer answer;
  assert_ok(rondo_session_create(t->device, &options, &session));
  assert_ok(rondo_session_add_model(session, "counted", &model));
  assert_ok(rondo_session_capture_begin(session, "counted"));
  for (size_t i = 0; i < count; i++) {
    fill_counted(&c, sizes[i], RONDO_RUN_AUTO, 0);
    assert_ok(run_counted(session, &c, &answer));
  }
  assert_ok(rondo_session_capture_end(session));
  assert_ok(rondo_session_set_times(session, "counted", us, NULL, count, 1));
  return session;
}

/* No graph has so many rows. If two ran, the first would change the state, also where the second fails. */
TEST(test_pr11_a_request_that_no_graph_can_run_is_not_split) {
  static const size_t sizes[] = {6};
  static const double us[] = {1};
  for (int is_strict = 0; is_strict < 2; is_strict++) {
    rondo_session *session = open_counted(t, is_strict == 1, sizes, us, 1);
    rondo_answer answer;
    counted c;
    float runs = 0;
    for (size_t rows = 10; rows <= 16 && is_strict == 0; rows += 6) { /* of which the dispatch table has the first */
      fill_counted(&c, rows, RONDO_RUN_AUTO, IDS);
      assert_error(run_counted(session, &c, &answer), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
      fill_counted(&c, rows, RONDO_RUN_AUTO, 0);
      assert_ok(run_counted(session, &c, &answer));
      assert_int_equal(answer.mode, RONDO_RUN_EAGER);
      assert_int_equal(answer.reason, RONDO_RUN_NO_GRAPH);
      assert_true(c.y[0] == runs && c.y[rows - 1] == runs);
      runs++;
    }
    fill_counted(&c, 10, is_strict == 1 ? RONDO_RUN_AUTO : RONDO_RUN_RECORDED, 0);
    assert_ok(run_counted(session, &c, &answer));
    assert_int_equal(answer.mode, RONDO_RUN_SPLIT);
    assert_true(c.y[5] == runs && c.y[6] == runs + 1);
    assert_ok(rondo_session_destroy(session));
  }
}

/* Three of the smaller graphs would be cheaper for all four. One graph runs them, and the right ones run again. */
TEST(test_pr11_a_batch_that_fails_counts_once) {
  static const size_t sizes[] = {16, 4};
  static const double us[] = {3.5, 1};
  rondo_session *session = open_counted(t, false, sizes, us, 2);
  rondo_stream *stream = NULL;
  rondo_ticket tickets[TOGETHER];
  rondo_answer answer;
  counted c[TOGETHER];
  assert_ok(rondo_session_acquire_stream(session, "counted", 0, &stream));
  for (size_t i = 0; i < TOGETHER; i++) {
    fill_counted(&c[i], EACH, RONDO_RUN_AUTO, i + 1 == TOGETHER ? IDS : 0);
    assert_ok(rondo_session_submit(session, "counted", &c[i].request, &tickets[i]));
  }
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i + 1 < TOGETHER; i++) {
    answer = (rondo_answer){.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_int_equal(answer.reason, RONDO_RUN_RETRY);
    assert_int_equal(answer.graphs, 1);
    assert_true(c[i].y[0] == (i < 2 ? 0 : 1) && c[i].y[EACH - 1] == c[i].y[0]);
  }
  assert_error(rondo_ticket_wait(tickets[TOGETHER - 1], NULL), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  fill_counted(&c[0], EACH, RONDO_RUN_AUTO, 0);
  assert_ok(run_counted(session, &c[0], &answer));
  assert_true(c[0].y[0] == 2);
  assert_ok(rondo_session_destroy(session));
}
