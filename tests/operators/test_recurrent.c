/* SPDX-License-Identifier: MIT
 * lstm, gru and rnn: layers, directions, initial states, lengths, batches first, biases. The result of a case is y, the
 * last states and the last cells one after the other, so that all of them have gradients. All weights are one input.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { RNN, GRU, LSTM };
enum { LAYERS, BIDIRECTIONAL, REVERSED, BATCH_FIRST, RELU, HAS_STATES, HAS_LENGTHS, BIASES, T, B, N, H }; /* sizes */
enum { X, WEIGHTS, STATES, LENGTHS };                                                                     /* inputs */

typedef struct cell {
  size_t kind, gates;
} cell;

static size_t gates_of(const test_call *call) { return ((const cell *)call->op->family)->gates; }
static size_t kind_of(const test_call *call) { return ((const cell *)call->op->family)->kind; }
static size_t directions_of(const test_call *call) { return call->sizes[BIDIRECTIONAL] ? 2 : 1; }
static size_t parts_of(const test_call *call) { return call->sizes[LAYERS] * directions_of(call); }
static bool has_bias(const test_call *call, size_t which) { return (call->sizes[BIASES] >> which & 1) != 0; }

static size_t features_of(const test_call *call, size_t part) {
  const size_t directions = directions_of(call);
  return part < directions ? call->sizes[N] : directions * call->sizes[H];
}

/* The weights of a part: input, hidden, and the biases. */
static size_t weights_of(const test_call *call, size_t part) {
  const size_t wide = gates_of(call) * call->sizes[H];
  return wide * (features_of(call, part) + call->sizes[H] + has_bias(call, 0) + has_bias(call, 1));
}

static size_t all_weights(const test_call *call) {
  size_t count = 0;
  for (size_t i = 0; i < parts_of(call); i++) count += weights_of(call, i);
  return count;
}

/* Drawing ---------------------------------------------------------------------------------------------------------- */

static void add_inputs(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  const size_t weights = all_weights(call), states = 2 * parts_of(call) * s[B] * s[H];
  const size_t shape[] = {s[BATCH_FIRST] ? s[B] : s[T], s[BATCH_FIRST] ? s[T] : s[B], s[N]};
  test_add_float(call, shape, 3, -1, 1);
  test_add_float(call, &weights, 1, -0.5, 0.5);
  test_add_float(call, &states, 1, -1, 1);
  if (!s[HAS_LENGTHS]) return;
  test_tensor *lengths = test_add_index(call, &s[B], 1, s[T] + 1);
  if (test_random_below(seed, 2) == 0) lengths->type = RONDO_I64;
}

static void draw(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[LAYERS] = test_draw_between(seed, 1, 2);
  s[BIDIRECTIONAL] = test_draw_between(seed, 0, 1);
  s[REVERSED] = !s[BIDIRECTIONAL] && test_draw_between(seed, 0, 1);
  s[BATCH_FIRST] = test_draw_between(seed, 0, 1);
  s[RELU] = test_random_below(seed, 4) == 0;
  s[HAS_STATES] = test_draw_between(seed, 0, 1);
  s[HAS_LENGTHS] = test_draw_between(seed, 0, 1);
  s[BIASES] = test_draw_between(seed, 0, 3);
  s[T] = test_draw_between(seed, 1, 4);
  s[B] = test_draw_between(seed, 1, 3);
  s[N] = test_draw_between(seed, 1, 5);
  s[H] = test_draw_between(seed, 1, 6);
  add_inputs(seed, call);
}

/* Several blocks of sequences, and states of several chunks. */
static void draw_large(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[LAYERS] = 1;
  s[HAS_STATES] = s[HAS_LENGTHS] = 1;
  s[BIASES] = 3;
  s[T] = 3;
  s[B] = test_draw_between(seed, 9, 13);
  s[N] = 4;
  s[H] = test_random_below(seed, 8) == 0 ? 270 : test_draw_between(seed, 16, 30);
  add_inputs(seed, call);
  call->inputs[WEIGHTS].low = -0.1;
  call->inputs[WEIGHTS].high = 0.1;
}

/* Building --------------------------------------------------------------------------------------------------------- */

static rondo_value take(rondo_program *program, rondo_value flat, size_t *first, size_t rows, size_t columns) {
  const size_t count = columns == 0 ? rows : rows * columns, shape[] = {rows, columns};
  rondo_value part;
  assert_ok(rondo_op_slice(program, flat, first, &count, NULL, &part));
  assert_ok(rondo_op_reshape(program, part, shape, columns == 0 ? 1 : 2, &part));
  *first += count;
  return part;
}

static rondo_value take_states(const test_call *call, rondo_program *program, rondo_value flat, size_t which) {
  const size_t shape[] = {parts_of(call), call->sizes[B], call->sizes[H]};
  const size_t count = test_elements(shape, 3), first = which * count;
  rondo_value part;
  if (!call->sizes[HAS_STATES]) return (rondo_value){0};
  assert_ok(rondo_op_slice(program, flat, &first, &count, NULL, &part));
  assert_ok(rondo_op_reshape(program, part, shape, 3, &part));
  return part;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const size_t *s = call->sizes, wide = gates_of(call) * s[H];
  rondo_recurrent_weights weights[4];
  rondo_value out[3] = {{0}};
  size_t first = 0;
  for (size_t i = 0; i < parts_of(call); i++) {
    weights[i].input = take(program, in[WEIGHTS], &first, wide, features_of(call, i));
    weights[i].hidden = take(program, in[WEIGHTS], &first, wide, s[H]);
    weights[i].input_bias = has_bias(call, 0) ? take(program, in[WEIGHTS], &first, wide, 0) : (rondo_value){0};
    weights[i].hidden_bias = has_bias(call, 1) ? take(program, in[WEIGHTS], &first, wide, 0) : (rondo_value){0};
  }
  const rondo_recurrent_options options = {
      RONDO_RECURRENT_OPTIONS_INIT,
      .layers = s[LAYERS],
      .bidirectional = s[BIDIRECTIONAL] != 0,
      .reversed = s[REVERSED] != 0,
      .batch_first = s[BATCH_FIRST] != 0,
      .relu = s[RELU] != 0,
      .hidden = take_states(call, program, in[STATES], 0),
      .cell = kind_of(call) == LSTM ? take_states(call, program, in[STATES], 1) : (rondo_value){0},
      .lengths = s[HAS_LENGTHS] ? in[LENGTHS] : (rondo_value){0}};
  rondo_status status = RONDO_OK;
  if (kind_of(call) == LSTM) status = rondo_op_lstm(program, in[X], weights, &options, &out[0], &out[1], &out[2]);
  if (kind_of(call) == GRU) status = rondo_op_gru(program, in[X], weights, &options, &out[0], &out[1]);
  if (kind_of(call) == RNN) status = rondo_op_rnn(program, in[X], weights, &options, &out[0], &out[1]);
  if (status != RONDO_OK) return status;
  const size_t lengths[] = {s[T] * s[B] * directions_of(call) * s[H], parts_of(call) * s[B] * s[H]};
  for (int i = 0; i < (kind_of(call) == LSTM ? 3 : 2); i++)
    assert_ok(rondo_op_reshape(program, out[i], &lengths[i == 0 ? 0 : 1], 1, &out[i]));
  return rondo_op_concat(program, out, kind_of(call) == LSTM ? 3 : 2, 0, result);
}

/* Reference -------------------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double product(const double *row, const double *x, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += row[i] * x[i];
  return sum;
}

/* One step of one sequence: h and c change. */
static void step(const test_call *call, size_t part, const double *w, const double *x, double *h, double *c) {
  const size_t hidden = call->sizes[H], gates = gates_of(call), wide = gates * hidden, n = features_of(call, part);
  const double *of_h = w + wide * n, *bias = of_h + wide * hidden;
  const double *hidden_bias = bias + (has_bias(call, 0) ? wide : 0);
  double next[300];
  for (size_t i = 0; i < hidden; i++) {
    double a[4] = {0}, b[4] = {0};
    for (size_t k = 0; k < gates; k++) {
      const size_t row = k * hidden + i;
      a[k] = product(w + row * n, x, n) + (has_bias(call, 0) ? bias[row] : 0);
      b[k] = product(of_h + row * hidden, h, hidden) + (has_bias(call, 1) ? hidden_bias[row] : 0);
    }
    if (kind_of(call) == RNN) {
      next[i] = call->sizes[RELU] ? fmax(0, a[0] + b[0]) : tanh(a[0] + b[0]);
    } else if (kind_of(call) == GRU) {
      const double z = sigmoid(a[1] + b[1]);
      next[i] = (1 - z) * tanh(a[2] + sigmoid(a[0] + b[0]) * b[2]) + z * h[i];
    } else {
      c[i] = sigmoid(a[1] + b[1]) * c[i] + sigmoid(a[0] + b[0]) * tanh(a[2] + b[2]);
      next[i] = sigmoid(a[3] + b[3]) * tanh(c[i]);
    }
  }
  memcpy(h, next, hidden * sizeof *h);
}

/* A part over all sequences: from [t, b, n] to its columns of y [t, b, directions h]. */
static void run_part(const test_call *call, size_t part, const double *w, const double *lengths, const double *x,
                     double *y, double *h, double *c) {
  const size_t *s = call->sizes, directions = directions_of(call), n = features_of(call, part);
  const bool is_backward = s[REVERSED] || part % directions != 0;
  for (size_t b = 0; b < s[B]; b++) {
    const size_t length = lengths == NULL ? s[T] : (size_t)lengths[b];
    for (size_t k = 0; k < length; k++) {
      const size_t at = (is_backward ? length - 1 - k : k) * s[B] + b;
      step(call, part, w, x + at * n, h + b * s[H], c + b * s[H]);
      memcpy(y + (at * directions + part % directions) * s[H], h + b * s[H], s[H] * sizeof *y);
    }
  }
}

/* [t, b, n] to or from [b, t, n] */
static void exchange(const test_call *call, const double *from, double *to, size_t n, bool to_batch_first) {
  const size_t t = call->sizes[T], b = call->sizes[B];
  for (size_t i = 0; i < t; i++) {
    for (size_t k = 0; k < b; k++) {
      const size_t steps_first = (i * b + k) * n, batch_first = (k * t + i) * n;
      memcpy(to + (to_batch_first ? batch_first : steps_first), from + (to_batch_first ? steps_first : batch_first),
             n * sizeof *to);
    }
  }
}

static void reference(const test_call *call, double *const *in, double *result) {
  const size_t *s = call->sizes, directions = directions_of(call), own = s[B] * s[H], states = parts_of(call) * own;
  const size_t count = s[T] * s[B] * directions * s[H];
  const double *w = in[WEIGHTS];
  double *x = calloc(s[T] * s[B] * s[N] + count, sizeof *x), *y = calloc(count, sizeof *y);
  double *last = calloc(2 * states, sizeof *last);
  assert_true(x != NULL && y != NULL && last != NULL);
  if (s[BATCH_FIRST])
    exchange(call, in[X], x, s[N], false);
  else
    memcpy(x, in[X], s[T] * s[B] * s[N] * sizeof *x);
  if (s[HAS_STATES]) memcpy(last, in[STATES], 2 * states * sizeof *last);
  for (size_t i = 0; i < parts_of(call); i++) {
    run_part(call, i, w, s[HAS_LENGTHS] ? in[LENGTHS] : NULL, x, y, last + i * own, last + states + i * own);
    w += weights_of(call, i);
    if (i % directions != directions - 1) continue;
    memcpy(x, y, count * sizeof *x);
    if (i + 1 < parts_of(call)) memset(y, 0, count * sizeof *y);
  }
  if (s[BATCH_FIRST])
    exchange(call, y, result, directions * s[H], true);
  else
    memcpy(result, y, count * sizeof *y);
  memcpy(result + count, last, (kind_of(call) == LSTM ? 2 : 1) * states * sizeof *last);
  free(x);
  free(y);
  free(last);
}

/* Bad input -------------------------------------------------------------------------------------------------------- */

static rondo_value matrix(rondo_program *program, const char *name, size_t rows, size_t columns) {
  const size_t shape[] = {rows, columns};
  rondo_value value;
  assert_ok(rondo_program_input(program, name, RONDO_F32, shape, columns == 0 ? 1 : 2, &value));
  return value;
}

UNIT_TEST(test_what_is_no_network) {
  rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value x, flat, y, h, c;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){5, 2, 3}, 3, &x));
  assert_ok(rondo_program_input(program, "flat", RONDO_F32, (size_t[]){5, 2}, 2, &flat));
  rondo_recurrent_weights w = {matrix(program, "in", 16, 3), matrix(program, "own", 16, 4), {0}, {0}};
  assert_ok(rondo_op_lstm(program, x, &w, NULL, &y, NULL, NULL));
  assert_error(rondo_op_lstm(program, flat, &w, NULL, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_true(y.id == 0 && h.id == 0 && c.id == 0);
  assert_error(rondo_op_gru(program, x, &w, NULL, &y, &h), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("gru: input of layer 0 is f32 [16, 3]; it must be f32 [12, 3]");
  assert_error(rondo_op_lstm(program, x, NULL, NULL, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  options.bidirectional = options.reversed = true;
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  options.bidirectional = options.reversed = false;
  options.layers = 100000;
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options.layers = 1;
  options.hidden = flat;
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the initial hidden state");
  options.hidden = (rondo_value){0};
  options.lengths = x;
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  options.lengths = (rondo_value){0};
  w.hidden_bias = matrix(program, "bias", 15, 0);
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  w.hidden_bias = w.input = (rondo_value){0};
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

/* In 16-bit types, the gates and each state are rounded. */
#define NETWORK(own_kind, own_gates) \
  .build = build, .reference = reference, .family = &(const cell) { own_kind, own_gates }
#define F32 .tolerance = 1e-5, .gradient_tolerance = 1e-3, .gradient_samples = 24, .only_f32 = true
#define LARGE .tolerance = 1e-5, .gradient_tolerance = 1e-3, .gradient_samples = 6, .only_f32 = true
#define HALVES .tolerance = 0.06, .gradient_tolerance = 0.3, .gradient_samples = 8

static const test_operator rows[] = {
    {.name = "lstm", NETWORK(LSTM, 4), .draw = draw, F32},
    {.name = "lstm", NETWORK(LSTM, 4), .draw = draw_large, LARGE},
    {.name = "lstm", NETWORK(LSTM, 4), .draw = draw, HALVES},
    {.name = "gru", NETWORK(GRU, 3), .draw = draw, F32},
    {.name = "gru", NETWORK(GRU, 3), .draw = draw_large, LARGE},
    {.name = "gru", NETWORK(GRU, 3), .draw = draw, HALVES},
    {.name = "rnn", NETWORK(RNN, 1), .draw = draw, F32, .has_ties = true},
    {.name = "rnn", NETWORK(RNN, 1), .draw = draw_large, LARGE},
    {.name = "rnn", NETWORK(RNN, 1), .draw = draw, HALVES, .has_ties = true},
};

TEST_OPERATOR_MAIN(rows)
