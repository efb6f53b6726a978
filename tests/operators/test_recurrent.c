/* SPDX-License-Identifier: MIT
 * lstm, gru and rnn (PR-8): layers, directions, initial states, lengths, batches first, biases; and without gradients,
 * the cells of ONNX: activations, clip, peepholes, coupled gates, a GRU that resets first. The result of a case is y,
 * the last states and the last cells one after the other, so that all of them have gradients. All weights are one
 * input.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { RNN, GRU, LSTM };
enum { /* sizes */
       LAYERS,
       BIDIRECTIONAL,
       REVERSED,
       BATCH_FIRST,
       RELU,
       HAS_STATES,
       HAS_LENGTHS,
       BIASES,
       T,
       B,
       N,
       H,
       RESETS_FIRST,
       COUPLED,
       PEEPHOLES,
       ACTIVATIONS /* a kind for each direction and gates, candidate, cell */
};
enum { X, WEIGHTS, STATES, LENGTHS }; /* inputs */
enum { CLIP };                        /* numbers */

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
  const size_t peephole = call->sizes[PEEPHOLES] ? 3 * call->sizes[H] : 0;
  return wide * (features_of(call, part) + call->sizes[H] + has_bias(call, 0) + has_bias(call, 1)) + peephole;
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
  s[RELU] = kind_of(call) == RNN && test_random_below(seed, 4) == 0;
  s[HAS_STATES] = test_draw_between(seed, 0, 1);
  s[HAS_LENGTHS] = test_draw_between(seed, 0, 1);
  s[BIASES] = test_draw_between(seed, 0, 3);
  s[T] = test_draw_between(seed, 1, 4);
  s[B] = test_draw_between(seed, 1, 3);
  s[N] = test_draw_between(seed, 1, 5);
  s[H] = test_draw_between(seed, 1, 6);
  add_inputs(seed, call);
}

/* Several blocks of sequences, and states of several chunks; on CUDA, several blocks of units, with products of which
 * several warps compute parts, where rows are aligned for wide reads or not. */
static void draw_large(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[LAYERS] = 1;
  s[HAS_STATES] = s[HAS_LENGTHS] = 1;
  s[BIASES] = 3;
  s[T] = 3;
  s[B] = test_random_below(seed, 3) == 0 ? test_draw_between(seed, 4, 8) : test_draw_between(seed, 9, 13);
  s[N] = 4;
  const size_t wide = test_random_below(seed, 2) == 0 ? 256 : 270;
  s[H] = test_random_below(seed, 8) == 0 ? wide : test_draw_between(seed, 16, 30);
  add_inputs(seed, call);
  call->inputs[WEIGHTS].low = -0.1;
  call->inputs[WEIGHTS].high = 0.1;
}

/* A cell that differs from PyTorch's in at least one thing. */
static void draw_general(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  const size_t most = test_random_below(seed, 2) == 0 ? 0 : RONDO_RECURRENT_SOFTPLUS;
  for (size_t i = 0; i < 6; i++) s[ACTIVATIONS + i] = test_draw_between(seed, 0, most);
  s[RESETS_FIRST] = kind_of(call) == GRU && test_draw_between(seed, 0, 1);
  s[COUPLED] = kind_of(call) == LSTM && test_draw_between(seed, 0, 1);
  s[PEEPHOLES] = kind_of(call) == LSTM && test_draw_between(seed, 0, 1);
  call->numbers[CLIP] = test_random_below(seed, 2) == 0 || most == 0 ? 0.4 : 0;
  draw(seed, call);
  s[RELU] = 0;
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

/* Of all activations; exact in floats. */
#define ALPHA 0.375f
#define BETA 0.25f

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const size_t *s = call->sizes, wide = gates_of(call) * s[H];
  rondo_recurrent_weights weights[4];
  rondo_value out[3] = {{0}};
  size_t first = 0;
  for (size_t i = 0; i < parts_of(call); i++) {
    weights[i] = (rondo_recurrent_weights){.input = {0}};
    weights[i].input = take(program, in[WEIGHTS], &first, wide, features_of(call, i));
    weights[i].hidden = take(program, in[WEIGHTS], &first, wide, s[H]);
    weights[i].input_bias = has_bias(call, 0) ? take(program, in[WEIGHTS], &first, wide, 0) : (rondo_value){0};
    weights[i].hidden_bias = has_bias(call, 1) ? take(program, in[WEIGHTS], &first, wide, 0) : (rondo_value){0};
    if (s[PEEPHOLES]) weights[i].peephole = take(program, in[WEIGHTS], &first, 3 * s[H], 0);
  }
  rondo_recurrent_options options = {
      RONDO_RECURRENT_OPTIONS_INIT,
      .layers = s[LAYERS],
      .bidirectional = s[BIDIRECTIONAL] != 0,
      .reversed = s[REVERSED] != 0,
      .batch_first = s[BATCH_FIRST] != 0,
      .relu = s[RELU] != 0,
      .hidden = take_states(call, program, in[STATES], 0),
      .cell = kind_of(call) == LSTM ? take_states(call, program, in[STATES], 1) : (rondo_value){0},
      .lengths = s[HAS_LENGTHS] ? in[LENGTHS] : (rondo_value){0},
      .reset_first = s[RESETS_FIRST] != 0,
      .coupled = s[COUPLED] != 0,
      .clip = (float)call->numbers[CLIP]};
  for (size_t i = 0; i < 6; i++)
    options.activations[i / 3][i % 3] =
        (rondo_recurrent_activation){(rondo_recurrent_activation_kind)s[ACTIVATIONS + i], ALPHA, BETA};
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

enum { OF_GATES, OF_CANDIDATE, OF_CELL };

static double activate(const test_call *call, size_t part, size_t which, double x) {
  const size_t direction = part % directions_of(call), kind = call->sizes[ACTIVATIONS + direction * 3 + which];
  const double clip = call->numbers[CLIP], alpha = (double)ALPHA, beta = (double)BETA;
  if (clip > 0) x = fmax(-clip, fmin(clip, x));
  switch ((rondo_recurrent_activation_kind)kind) {
    case RONDO_RECURRENT_DEFAULT:
      if (call->sizes[RELU] && kind_of(call) == RNN) return fmax(0, x);
      return which == OF_GATES && kind_of(call) != RNN ? sigmoid(x) : tanh(x);
    case RONDO_RECURRENT_SIGMOID:
      return sigmoid(x);
    case RONDO_RECURRENT_TANH:
      return tanh(x);
    case RONDO_RECURRENT_RELU:
      return fmax(0, x);
    case RONDO_RECURRENT_AFFINE:
      return alpha * x + beta;
    case RONDO_RECURRENT_LEAKY_RELU:
      return x < 0 ? alpha * x : x;
    case RONDO_RECURRENT_THRESHOLDED_RELU:
      return x < alpha ? 0 : x;
    case RONDO_RECURRENT_SCALED_TANH:
      return alpha * tanh(beta * x);
    case RONDO_RECURRENT_HARD_SIGMOID:
      return fmax(0, fmin(1, alpha * x + beta));
    case RONDO_RECURRENT_ELU:
      return x < 0 ? alpha * expm1(x) : x;
    case RONDO_RECURRENT_SOFTSIGN:
      return x / (1 + fabs(x));
    case RONDO_RECURRENT_SOFTPLUS:
      return log1p(exp(x));
  }
  return 0;
}

/* gru whose reset gates r multiply the state before its product with the last gate's weights. */
static double reset_product(const test_call *call, const double *weights, const double *r, const double *h) {
  double sum = 0;
  for (size_t i = 0; i < call->sizes[H]; i++) sum += weights[i] * r[i] * h[i];
  return sum;
}

/* One element of lstm: c changes; the result is that of h. */
static double lstm_element(const test_call *call, size_t part, const double *sums, const double *peephole, size_t i,
                           double *c) {
  const size_t hidden = call->sizes[H];
  double see[3] = {0};
  for (size_t k = 0; k < 3 && peephole != NULL; k++) see[k] = peephole[k * hidden + i];
  const double in = activate(call, part, OF_GATES, sums[0] + see[0] * *c);
  const double forget = call->sizes[COUPLED] ? 1 - in : activate(call, part, OF_GATES, sums[1] + see[1] * *c);
  *c = forget * *c + in * activate(call, part, OF_CANDIDATE, sums[2]);
  return activate(call, part, OF_GATES, sums[3] + see[2] * *c) * activate(call, part, OF_CELL, *c);
}

/* One step of one sequence: h and c change. */
static void step(const test_call *call, size_t part, const double *w, const double *x, double *h, double *c) {
  const size_t hidden = call->sizes[H], gates = gates_of(call), wide = gates * hidden, n = features_of(call, part);
  const double *of_h = w + wide * n, *bias = of_h + wide * hidden;
  const double *hidden_bias = bias + (has_bias(call, 0) ? wide : 0);
  const double *peephole = hidden_bias + (has_bias(call, 1) ? wide : 0);
  double next[300], sums[4][300], products[300], r[300];
  for (size_t row = 0; row < wide; row++) {
    const double p = product(of_h + row * hidden, h, hidden) + (has_bias(call, 1) ? hidden_bias[row] : 0);
    sums[row / hidden][row % hidden] =
        product(w + row * n, x, n) + (has_bias(call, 0) ? bias[row] : 0) + (gates == 3 && row >= 2 * hidden ? 0 : p);
    products[row % hidden] = p;
  }
  for (size_t i = 0; i < hidden; i++) r[i] = activate(call, part, OF_GATES, sums[0][i]);
  for (size_t i = 0; i < hidden; i++) {
    if (kind_of(call) == RNN) {
      next[i] = r[i];
    } else if (kind_of(call) == GRU) {
      const double z = activate(call, part, OF_GATES, sums[1][i]);
      const double *weights = of_h + (2 * hidden + i) * hidden;
      const double last_bias = has_bias(call, 1) ? hidden_bias[2 * hidden + i] : 0;
      const double last =
          call->sizes[RESETS_FIRST] ? reset_product(call, weights, r, h) + last_bias : r[i] * products[i];
      next[i] = (1 - z) * activate(call, part, OF_CANDIDATE, sums[2][i] + last) + z * h[i];
    } else {
      const double of[] = {sums[0][i], sums[1][i], sums[2][i], sums[3][i]};
      next[i] = lstm_element(call, part, of, call->sizes[PEEPHOLES] ? peephole : NULL, i, c + i);
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
  rondo_recurrent_weights w = {.input = matrix(program, "in", 16, 3), .hidden = matrix(program, "own", 16, 4)};
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
  options.relu = true;
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  options.relu = false;
  w.hidden_bias = matrix(program, "bias", 15, 0);
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  w.hidden_bias = w.input = (rondo_value){0};
  assert_error(rondo_op_lstm(program, x, &w, &options, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

UNIT_TEST(test_what_is_no_cell) {
  rondo_program *program = test_new_program();
  rondo_value x, y, h, c;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){5, 2, 3}, 3, &x));
  rondo_recurrent_weights lstm = {.input = matrix(program, "in", 16, 3), .hidden = matrix(program, "own", 16, 4)};
  const rondo_recurrent_weights rnn = {.input = matrix(program, "rin", 4, 3), .hidden = matrix(program, "rown", 4, 4)};
  static const rondo_recurrent_options wrong[] = {
      {RONDO_RECURRENT_OPTIONS_INIT, .clip = -1},
      {RONDO_RECURRENT_OPTIONS_INIT, .clip = INFINITY},
      {RONDO_RECURRENT_OPTIONS_INIT, .activations = {{{.kind = (rondo_recurrent_activation_kind)12}}}},
      {RONDO_RECURRENT_OPTIONS_INIT, .activations = {{{RONDO_RECURRENT_ELU, NAN, 0}}}},
      {RONDO_RECURRENT_OPTIONS_INIT, .reset_first = true}};
  for (size_t i = 0; i < 5; i++)
    assert_error(rondo_op_lstm(program, x, &lstm, &wrong[i], &y, &h, &c), RONDO_INVALID_ARGUMENT,
                 i < 4 ? RONDO_REASON_OUT_OF_RANGE : RONDO_REASON_BAD_OPTIONS);
  rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .coupled = true};
  assert_error(rondo_op_rnn(program, x, &rnn, &options, &y, &h), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  options = (rondo_recurrent_options){RONDO_RECURRENT_OPTIONS_INIT, .relu = true,
                                      .activations = {{{.kind = RONDO_RECURRENT_TANH}}}};
  assert_error(rondo_op_rnn(program, x, &rnn, &options, &y, &h), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  lstm.peephole = matrix(program, "peephole", 8, 0);
  assert_error(rondo_op_lstm(program, x, &lstm, NULL, &y, &h, &c), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("peephole of layer 0 is f32 [8]; it must be f32 [12]");
  rondo_program_destroy(program);
}

UNIT_TEST(test_cells_without_gradients) {
  rondo_program *program = test_new_program();
  rondo_value x, y, loss, gradient;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){5, 2, 3}, 3, &x));
  rondo_recurrent_weights w = {.input = matrix(program, "in", 16, 3), .hidden = matrix(program, "own", 16, 4)};
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .clip = 1};
  assert_ok(rondo_op_lstm(program, x, &w, &options, &y, NULL, NULL));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &loss));
  assert_error(rondo_program_gradients(program, loss, &w.hidden, 1, &gradient), RONDO_UNSUPPORTED,
               RONDO_REASON_NO_FUNCTION);
  assert_message("lstm_general (operator ");
  assert_message("has no gradient, but the loss depends through it on a value whose gradient is requested");
  rondo_program_destroy(program);
}

/* Only lstm has cells. A gradient of them would have another shape. */
UNIT_TEST(test_gru_and_rnn_have_no_cells) {
  rondo_program *program = test_new_program();
  rondo_value x, y, h, states;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){5, 2, 3}, 3, &x));
  assert_ok(rondo_program_input(program, "states", RONDO_F32, (size_t[]){1, 2, 4}, 3, &states));
  const rondo_recurrent_weights gru = {.input = matrix(program, "gru", 12, 3),
                                       .hidden = matrix(program, "own gru", 12, 4)};
  const rondo_recurrent_weights rnn = {.input = matrix(program, "rnn", 4, 3),
                                       .hidden = matrix(program, "own rnn", 4, 4)};
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .cell = states};
  assert_error(rondo_op_gru(program, x, &gru, &options, &y, &h), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_message("gru: an initial cell is given, but only lstm has cells");
  assert_error(rondo_op_rnn(program, x, &rnn, &options, &y, &h), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_true(y.id == 0 && h.id == 0);
  rondo_program_destroy(program);
}

/* Wrong lengths fail the run, which says which one. */
TEST(test_pr8_wrong_lengths_fail_the_run) {
  static const int64_t lengths[][2] = {{5, 6}, {-1, 5}, {INT64_MAX, 0}, {0, 5}};
  static const char *const messages[] = {
      "lengths has 6 at position 1, which is not in 0 .. 5; length 0 was used instead", "lengths has -1 at position 0",
      "lengths has 2147483647 or more at position 0"};
  rondo_program *program = test_new_program();
  rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT};
  rondo_value x, y;
  float result[5][2][4];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){5, 2, 3}, 3, &x));
  assert_ok(rondo_program_input(program, "lengths", RONDO_I64, (size_t[]){2}, 1, &options.lengths));
  const rondo_recurrent_weights w = {.input = matrix(program, "in", 16, 3), .hidden = matrix(program, "own", 16, 4)};
  assert_ok(rondo_op_lstm(program, x, &w, &options, &y, NULL, NULL));
  assert_ok(rondo_program_output(program, "y", y));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (int i = 0; i < 4; i++) {
    assert_ok(rondo_compiled_write(compiled, "lengths", lengths[i], sizeof lengths[i]));
    assert_ok(rondo_compiled_run(compiled));
    const rondo_status status = rondo_compiled_read(compiled, "y", result, sizeof result);
    if (i == 3) assert_ok(status);
    if (i == 3) break;
    assert_error(status, RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
    assert_message(messages[i]);
  }
}

/* The kernels of a layer of so many steps. */
static uint32_t kernels_of(rondo_device *device, size_t steps) {
  rondo_program *program = test_new_program();
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT};
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){steps, 2, 3}, 3, &x));
  const rondo_recurrent_weights w = {.input = matrix(program, "in", 16, 3), .hidden = matrix(program, "own", 16, 4)};
  assert_ok(rondo_op_lstm(program, x, &w, &options, &y, NULL, NULL));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_compiled_get_info(test_compile(program, device, NULL), &info));
  return info.kernels;
}

/* On CUDA, each step is a kernel, so that the whole GPU takes part; on a CPU, one kernel computes them all. */
TEST(test_pr8_kernels_of_steps) {
  rondo_device_info device = {.struct_size = sizeof device};
  assert_ok(rondo_device_get_info(t->device, &device));
  assert_int_equal(kernels_of(t->device, 9) - kernels_of(t->device, 4), device.cuda ? 5 : 0);
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
    {.name = "lstm_general", NETWORK(LSTM, 4), .draw = draw_general, F32, .has_no_gradient = true},
    {.name = "lstm_general", NETWORK(LSTM, 4), .draw = draw_general, HALVES, .has_no_gradient = true},
    {.name = "gru_general", NETWORK(GRU, 3), .draw = draw_general, F32, .has_no_gradient = true},
    {.name = "gru_general", NETWORK(GRU, 3), .draw = draw_general, HALVES, .has_no_gradient = true},
    {.name = "rnn_general", NETWORK(RNN, 1), .draw = draw_general, F32, .has_no_gradient = true},
    {.name = "rnn_general", NETWORK(RNN, 1), .draw = draw_general, HALVES, .has_no_gradient = true},
};

TEST_OPERATOR_MAIN(rows)
