/* SPDX-License-Identifier: MIT
 * Optimizers against plain C: weight decay, clipping, gradients accumulated over runs, a scaled loss with an overflow
 * (FW-4, FW-5, RC-6); recorded and eager runs give the same bits.
 *
 * The loss is x·w (a row times a column). So the gradient of w is x for every w, and the test chooses the gradients.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

#define COUNT 5
#define MOST_RUNS 12

static const rondo_value none;

/* RMSPROP_ALL is centered and has momentum. */
typedef enum method { SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP, RMSPROP_ALL } method;

/* The options of an optimizer. */
typedef struct setting {
  method by;
  float decay, beta1, beta2, epsilon; /* of these 0: as the library has it */
  rondo_gradient_options gradients;
  rondo_type type; /* of the product, and so of the gradient; 0: F32. It has all numbers that gradients have here */
} setting;

static const float rate_of_all = 0.1f, momentum_of_all = 0.5f;

/* Programs --------------------------------------------------------------------------------------------------------- */

static void add_adaptive(rondo_program *program, rondo_value loss, const setting *s, rondo_value rate,
                         rondo_value momentum) {
  const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate, .weight_decay = s->decay,
                                         .epsilon = s->epsilon,      .rate_decay = 0.25f,   .initial_sum = 0.5f,
                                         .gradients = &s->gradients};
  const rondo_rmsprop_options rmsprop = {RONDO_RMSPROP_OPTIONS_INIT, .learning_rate = rate,
                                         .weight_decay = s->decay,   .epsilon = s->epsilon,
                                         .alpha = s->beta1,          .centered = s->by == RMSPROP_ALL,
                                         .momentum = momentum,       .gradients = &s->gradients};
  assert_ok(s->by == ADAGRAD ? rondo_program_adagrad(program, loss, &adagrad)
                             : rondo_program_rmsprop(program, loss, &rmsprop));
}

static void add_optimizer(rondo_program *program, rondo_value loss, const setting *s) {
  rondo_value rate, momentum = none;
  assert_ok(rondo_program_cell(program, "rate", rate_of_all, &rate));
  if (s->by == MOMENTUM || s->by == RMSPROP_ALL)
    assert_ok(rondo_program_cell(program, "momentum", momentum_of_all, &momentum));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT,   .learning_rate = rate, .weight_decay = s->decay,
                                   .beta1 = s->beta1,         .beta2 = s->beta2,     .epsilon = s->epsilon,
                                   .gradients = &s->gradients};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = momentum,
                                 .weight_decay = s->decay, .gradients = &s->gradients};
  if (s->by >= ADAGRAD)
    add_adaptive(program, loss, s, rate, momentum);
  else
    assert_ok(s->by == ADAM ? rondo_program_adam(program, loss, &adam) : rondo_program_sgd(program, loss, &sgd));
}

static rondo_compiled *compile_setting(test_fixture *t, const setting *s, bool eager) {
  const size_t row[] = {1, COUNT}, column[] = {COUNT, 1};
  rondo_program *program = test_new_program();
  rondo_value x, w, loss;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, row, 2, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, column, 2, &w));
  const rondo_type type = s->type == 0 ? RONDO_F32 : s->type;
  assert_ok(rondo_op_cast(program, x, type, &x));
  assert_ok(rondo_op_cast(program, w, type, &w));
  assert_ok(rondo_op_matmul(program, x, w, none, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  assert_ok(rondo_op_cast(program, loss, RONDO_F32, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  add_optimizer(program, loss, s);
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  return test_compile(program, t->device, &options);
}

/* The gradient of run i. */
static void gradient_of(int run, float *g) {
  for (int k = 0; k < COUNT; k++) g[k] = (float)((run * 5 + k * 3) % 7 - 3) / 4;
}

static void start(float *w) {
  for (int k = 0; k < COUNT; k++) w[k] = 0.5f - 0.25f * (float)k;
}

static void run_setting(test_fixture *t, const setting *s, int runs, bool eager, float *w) {
  float g[COUNT];
  rondo_compiled *compiled = compile_setting(t, s, eager);
  start(w);
  assert_ok(rondo_compiled_write(compiled, "w", w, COUNT * sizeof *w));
  for (int i = 0; i < runs; i++) {
    gradient_of(i, g);
    assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
    assert_ok(rondo_compiled_run(compiled));
  }
  assert_ok(rondo_compiled_read(compiled, "w", w, COUNT * sizeof *w));
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Reference -------------------------------------------------------------------------------------------------------- */

typedef struct reference {
  double w[COUNT], first[COUNT], second[COUNT], third[COUNT];
  int steps;
} reference;

static void clip(double *g, double most) {
  double squares = 0;
  for (int k = 0; k < COUNT; k++) squares += g[k] * g[k];
  const double norm = sqrt(squares);
  for (int k = 0; k < COUNT && most > 0 && norm > most; k++) g[k] *= most / (norm + 1e-6);
}

/* As in the documentation of torch.optim.Adagrad and RMSprop. */
static void update_adaptive(reference *r, const setting *s, double g, int k) {
  const double rate = (double)rate_of_all, alpha = s->beta1 == 0 ? 0.99 : (double)s->beta1;
  const double least = s->by == ADAGRAD ? 1e-10 : 1e-8, epsilon = s->epsilon == 0 ? least : (double)s->epsilon;
  g += (double)s->decay * r->w[k];
  if (s->by == ADAGRAD) {
    if (r->steps == 1) r->first[k] = 0.5;
    r->first[k] += g * g;
    r->w[k] -= rate / (1 + (r->steps - 1) * 0.25) * g / (sqrt(r->first[k]) + epsilon);
    return;
  }
  r->first[k] = alpha * r->first[k] + (1 - alpha) * g * g;
  if (s->by == RMSPROP_ALL) r->second[k] = alpha * r->second[k] + (1 - alpha) * g;
  const double momentum = s->by == RMSPROP_ALL ? (double)momentum_of_all : 0;
  r->third[k] = momentum * r->third[k] + g / (sqrt(r->first[k] - r->second[k] * r->second[k]) + epsilon);
  r->w[k] -= rate * r->third[k];
}

static void update(reference *r, const setting *s, const double *g) {
  const double rate = (double)rate_of_all, decay = (double)s->decay,
               epsilon = s->epsilon == 0 ? 1e-8 : (double)s->epsilon;
  const double beta1 = s->beta1 == 0 ? 0.9 : (double)s->beta1, beta2 = s->beta2 == 0 ? 0.999 : (double)s->beta2;
  r->steps++;
  for (int k = 0; k < COUNT; k++) {
    if (s->by >= ADAGRAD) {
      update_adaptive(r, s, g[k], k);
    } else if (s->by == ADAM) {
      r->first[k] = beta1 * r->first[k] + (1 - beta1) * g[k];
      r->second[k] = beta2 * r->second[k] + (1 - beta2) * g[k] * g[k];
      const double mean = r->first[k] / (1 - pow(beta1, r->steps)), square = r->second[k] / (1 - pow(beta2, r->steps));
      r->w[k] = r->w[k] * (1 - rate * decay) - rate * mean / (sqrt(square) + epsilon);
    } else {
      const double momentum = s->by == MOMENTUM ? (double)momentum_of_all : 0;
      r->first[k] = momentum * r->first[k] + g[k] + decay * r->w[k];
      r->w[k] -= rate * r->first[k];
    }
  }
}

static void run_reference(const setting *s, int runs, float *w) {
  const int round = s->gradients.accumulate == 0 ? 1 : (int)s->gradients.accumulate;
  reference r = {.steps = 0};
  double sum[COUNT] = {0};
  float g[COUNT];
  start(g);
  for (int k = 0; k < COUNT; k++) r.w[k] = (double)g[k];
  for (int i = 0; i < runs; i++) {
    gradient_of(i, g);
    for (int k = 0; k < COUNT; k++) sum[k] += (double)g[k] / round;
    if ((i + 1) % round != 0) continue;
    clip(sum, (double)s->gradients.max_norm);
    update(&r, s, sum);
    memset(sum, 0, sizeof sum);
  }
  for (int k = 0; k < COUNT; k++) w[k] = (float)r.w[k];
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

TEST(test_fw4_optimizers_agree_with_plain_c) {
  const rondo_gradient_options forms[] = {
      {RONDO_GRADIENT_OPTIONS_INIT},
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.7f},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 4, .max_norm = 0.4f, .norm_output = "norm"},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .growth_interval = 2, .accumulate = 2, .max_norm = 0.5f},
  };
  for (int by = SGD; by <= RMSPROP_ALL; by++) {
    for (size_t f = 0; f < 2 * sizeof forms / sizeof forms[0]; f++) {
      const setting s = {.by = (method)by, .decay = f % 2 == 0 ? 0 : 0.1f, .gradients = forms[f / 2]};
      float got[COUNT], again[COUNT], wanted[COUNT];
      run_setting(t, &s, MOST_RUNS, false, got);
      run_setting(t, &s, MOST_RUNS, true, again);
      run_reference(&s, MOST_RUNS, wanted);
      assert_memory_equal(got, again, sizeof got);
      /* A variance is a difference of squares, which have rounding errors of their own. */
      assert_near(got, wanted, COUNT, by == RMSPROP_ALL ? 2e-5f : 2e-6f);
    }
  }
}

TEST(test_fw4_adams_numbers_are_the_callers) {
  const setting forms[] = {{.by = ADAM, .beta1 = 0.5f},
                           {.by = ADAM, .beta2 = 0.75f},
                           {.by = ADAM, .epsilon = 0.125f},
                           {.by = ADAM, .beta1 = FLT_MIN, .beta2 = FLT_MIN}, /* as 0 */
                           {.by = ADAM, .beta1 = 0.25f, .beta2 = 0.5f, .epsilon = 0.5f, .decay = 0.1f}};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    float got[COUNT], wanted[COUNT];
    run_setting(t, &forms[i], MOST_RUNS, false, got);
    run_reference(&forms[i], MOST_RUNS, wanted);
    assert_near(got, wanted, COUNT, 2e-6f);
  }
}

/* At the rate of 0.1, a step subtracts half of the parameter, or as much as twice of it. */
TEST(test_fw4_a_decay_may_be_large) {
  for (int by = SGD; by <= RMSPROP_ALL; by++) {
    for (int large = 0; large < 2; large++) {
      const setting s = {.by = (method)by, .decay = large ? 20 : 5};
      float got[COUNT], wanted[COUNT];
      run_setting(t, &s, 3, false, got);
      run_reference(&s, 3, wanted);
      assert_near(got, wanted, COUNT, 1e-4f);
    }
  }
}

/* Gradients of F16 and BF16 have the values of F32 here, and so do the results, bit for bit. */
TEST(test_fw4_gradients_of_every_type_are_taken) {
  const rondo_gradient_options forms[] = {
      {RONDO_GRADIENT_OPTIONS_INIT},
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.7f},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = 256, .accumulate = 2, .max_norm = 0.5f},
  };
  static const rondo_type types[] = {RONDO_F16, RONDO_BF16};
  for (int by = SGD; by <= RMSPROP_ALL; by++) {
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
      float wanted[COUNT], got[COUNT];
      setting s = {.by = (method)by, .decay = 0.1f, .gradients = forms[f]};
      run_setting(t, &s, MOST_RUNS, false, wanted);
      for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        s.type = types[i];
        run_setting(t, &s, MOST_RUNS, false, got);
        assert_memory_equal(got, wanted, sizeof got);
      }
    }
  }
}

/* Gradients that are not finite change nothing but the scale, which then recovers. */
TEST(test_overflow_leaves_the_update_out) {
  const setting s = {.by = ADAM,
                     .decay = 0.1f,
                     .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = 1024,
                                   .growth_interval = 2, .norm_output = "norm"}};
  rondo_compiled *compiled = compile_setting(t, &s, false);
  float w[COUNT], before[COUNT], g[COUNT];
  int32_t steps;
  assert_true(test_read_number(compiled, "gradient.scale") == 1024);
  for (int i = 0; i < 5; i++) {
    static const float scales[] = {1024, 512, 512, 1024, 1024};
    gradient_of(i, g);
    if (i == 1) g[2] = INFINITY;
    assert_ok(rondo_compiled_read(compiled, "w", before, sizeof before));
    assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "w", w, sizeof w));
    assert_true((memcmp(w, before, sizeof w) == 0) == (i == 1));
    assert_true(test_read_number(compiled, "gradient.scale") == scales[i]);
    assert_true(isfinite(test_read_number(compiled, "norm")) == (i != 1));
  }
  assert_ok(rondo_compiled_read(compiled, "adam.step", &steps, sizeof steps));
  assert_int_equal(steps, 4);
}

/* The counters are states, to which a program can write any number. */
TEST(test_counters_may_have_any_value) {
  const setting s = {.by = SGD,
                     .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = 1024,
                                   .growth_interval = 2, .accumulate = 2}};
  const int32_t most = INT32_MAX;
  const float g[COUNT] = {1, 1, 1, 1, 1};
  float w[COUNT] = {0};
  int32_t runs, good;
  rondo_compiled *compiled = compile_setting(t, &s, false);
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
  assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
  assert_ok(rondo_compiled_write(compiled, "gradient.runs", &most, sizeof most));
  assert_ok(rondo_compiled_write(compiled, "gradient.good_updates", &most, sizeof most));
  assert_ok(rondo_compiled_run(compiled)); /* the last run of a round */
  assert_ok(rondo_compiled_read(compiled, "gradient.runs", &runs, sizeof runs));
  assert_ok(rondo_compiled_read(compiled, "gradient.good_updates", &good, sizeof good));
  assert_ok(rondo_compiled_read(compiled, "w", w, sizeof w));
  assert_int_equal(runs, 0);
  assert_int_equal(good, 0);
  assert_true(test_read_number(compiled, "gradient.scale") == 2048);
  assert_true(w[0] < 0 && isfinite(w[0]));
}

/* The scale always has an inverse, so that the next gradients are finite again. */
TEST(test_the_scale_does_not_vanish) {
  const setting s = {.by = SGD,
                     .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = 0x1p-120f}};
  rondo_compiled *compiled = compile_setting(t, &s, false);
  float g[COUNT] = {INFINITY}, w[COUNT];
  assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
  for (int i = 0; i < 40; i++) assert_ok(rondo_compiled_run(compiled));
  assert_true(test_read_number(compiled, "gradient.scale") == 0x1p-126f);
  for (size_t i = 0; i < COUNT; i++) g[i] = 1;
  assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "w", w, sizeof w));
  for (size_t i = 0; i < COUNT; i++) assert_true(isfinite(w[i]) && w[i] != 0);
}

/* Squares that add up to more than an F32 holds count as gradients that are not finite, until they add up to less. */
TEST(test_a_norm_may_be_too_large) {
  const setting s = {.by = SGD, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1, .norm_output = "norm"}};
  static const float sizes[] = {0x1p63f, 0x1p64f, -0x1p63f};
  rondo_compiled *compiled = compile_setting(t, &s, false);
  float w[COUNT] = {0}, before;
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
  for (int i = 0; i < 3; i++) {
    const float g[COUNT] = {sizes[i]};
    before = w[0];
    assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "w", w, sizeof w));
    assert_true((w[0] == before) == (i == 1));
    assert_true(fabsf(w[0]) <= rate_of_all);
    assert_true(test_read_number(compiled, "norm") == (i == 1 ? INFINITY : 0x1p63f));
  }
}

/* RC-6: a cell that changes between runs changes the step, not the graph. */
TEST(test_rc6_the_rate_changes_between_runs) {
  const setting s = {.by = SGD, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 100}};
  rondo_compiled *compiled = compile_setting(t, &s, false);
  const float g[COUNT] = {1, 1, 1, 1, 1}, rates[] = {0.5f, 0.25f, 0};
  float wanted = 0;
  assert_ok(rondo_compiled_write(compiled, "x", g, sizeof g));
  for (int i = 0; i < 3; i++) {
    float w[COUNT];
    assert_ok(rondo_compiled_write(compiled, "rate", &rates[i], sizeof rates[i]));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "w", w, sizeof w));
    wanted -= rates[i];
    assert_true(w[0] == wanted && w[COUNT - 1] == wanted);
  }
}

TEST(test_wrong_gradient_options_are_refused) {
  const rondo_gradient_options wrong[] = {
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = -1},
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = NAN},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = -2},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = INFINITY},
      {RONDO_GRADIENT_OPTIONS_INIT, .scale_loss = true, .initial_scale = 0x1p-130f},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = UINT32_MAX},
  };
  const size_t row[] = {1, COUNT}, column[] = {COUNT, 1};
  rondo_program *program = test_new_program();
  rondo_value x, w, loss, rate;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, row, 2, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, column, 2, &w));
  assert_ok(rondo_program_cell(program, "rate", 1, &rate));
  assert_ok(rondo_op_matmul(program, x, w, none, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    sgd.gradients = &wrong[i];
    assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_OUT_OF_RANGE);
  }
  sgd.gradients = NULL;
  static const float decays[] = {-0.5f, INFINITY, NAN};
  for (size_t i = 0; i < sizeof decays / sizeof decays[0]; i++) {
    sgd.weight_decay = decays[i];
    assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_OUT_OF_RANGE);
    assert_message("weight_decay is");
  }
  const rondo_gradient_options taken = {RONDO_GRADIENT_OPTIONS_INIT, .norm_output = "rate"};
  sgd.weight_decay = 0;
  sgd.gradients = &taken;
  assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_DUPLICATE_NAME);
  sgd.gradients = NULL; /* as before: an optimizer can be added */
  assert_ok(rondo_program_sgd(program, loss, &sgd));
}

/* States to which no gradient comes -------------------------------------------------------------------------------- */

#define CHANNELS 3

/* The loss: batch_norm of x with the statistics of states, times the weight w, summed. */
static rondo_compiled *compile_fixed_norm(test_fixture *t, const setting *s) {
  const size_t of_x[] = {4, CHANNELS}, of_w[] = {CHANNELS};
  rondo_program *program = test_new_program();
  rondo_value x, w, mean, variance, y, loss;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, of_x, 2, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, of_w, 1, &w));
  assert_ok(rondo_program_state(program, "mean", RONDO_F32, of_w, 1, &mean));
  assert_ok(rondo_program_state(program, "variance", RONDO_F32, of_w, 1, &variance));
  const rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .running_mean = mean,
                                            .running_variance = variance, .inference = true};
  assert_ok(rondo_op_batch_norm(program, x, &options, &y));
  assert_ok(rondo_op_mul(program, y, w, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  add_optimizer(program, loss, s);
  return test_compile(program, t->device, NULL);
}

TEST(test_fw4_states_without_a_gradient_are_left) {
  const float x[4 * CHANNELS] = {1, 2, 3, -1, 0.5f, 2, 3, 1, -2, 0, 1, 1};
  const float mean[CHANNELS] = {0.5f, -1, 2}, variance[CHANNELS] = {1, 4, 0.25f}, ones[CHANNELS] = {1, 1, 1};
  for (int by = SGD; by <= RMSPROP_ALL; by++) {
    const setting s = {
        .by = (method)by, .decay = 0.1f, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1, .accumulate = 2}};
    rondo_compiled *compiled = compile_fixed_norm(t, &s);
    float got[CHANNELS];
    assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
    assert_ok(rondo_compiled_write(compiled, "w", ones, sizeof ones));
    assert_ok(rondo_compiled_write(compiled, "mean", mean, sizeof mean));
    assert_ok(rondo_compiled_write(compiled, "variance", variance, sizeof variance));
    for (int i = 0; i < 4; i++) assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "mean", got, sizeof got));
    assert_memory_equal(got, mean, sizeof got);
    assert_ok(rondo_compiled_read(compiled, "variance", got, sizeof got));
    assert_memory_equal(got, variance, sizeof got);
    assert_ok(rondo_compiled_read(compiled, "w", got, sizeof got));
    assert_memory_not_equal(got, ones, sizeof got);
    assert_error(rondo_compiled_read(compiled, "mean.m", got, sizeof got), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* An operator that derives a value from a state, and passes no gradient on, leaves nothing to train. */
TEST(test_a_loss_without_a_trained_state_is_refused) {
  const size_t one[] = {CHANNELS};
  rondo_program *program = test_new_program();
  rondo_value rate, mean, variance, x, y, loss;
  assert_ok(rondo_program_cell(program, "rate", 1, &rate));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){2, CHANNELS}, 2, &x));
  assert_ok(rondo_program_state(program, "mean", RONDO_F32, one, 1, &mean));
  assert_ok(rondo_program_state(program, "variance", RONDO_F32, one, 1, &variance));
  const rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .running_mean = mean,
                                            .running_variance = variance, .inference = true};
  assert_ok(rondo_op_batch_norm(program, x, &options, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &loss));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.1f};
  assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_NONE);
  assert_message("has no gradient for any f32 state");
}
