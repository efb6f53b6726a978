/* SPDX-License-Identifier: MIT
 * Groups of parameters (PR-1): states with a rate, a schedule, a decay or a clipping of their own, and no decay of
 * states of few dimensions. Each state is trained as by an optimizer with its group's options alone, whether updates
 * are joined or not, recorded or eager; wrong groups are refused and leave the program as it was.
 *
 * The loss is x·w + y·v + sum(z b): the gradients are inputs, for every value of the states.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { COUNT = 4, RUNS = 7, W = 0, V, B, STATES };

static const char *const names[STATES] = {"w", "v", "b"}, *const inputs[STATES] = {"x", "y", "z"};

typedef struct network {
  rondo_program *program;
  rondo_value state[STATES], loss, rate, slow;
} network;

static rondo_value add_term(network *n, int i) {
  const size_t column[] = {COUNT, 1}, row[] = {COUNT};
  rondo_value x, y;
  assert_ok(rondo_program_input(n->program, inputs[i], RONDO_F32, i == B ? row : column, i == B ? 1 : 2, &x));
  assert_ok(rondo_program_state(n->program, names[i], RONDO_F32, i == B ? row : column, i == B ? 1 : 2, &n->state[i]));
  assert_ok(rondo_op_mul(n->program, x, n->state[i], &y));
  assert_ok(rondo_op_sum(n->program, y, (const size_t[]){0, 1}, i == B ? 1 : 2, false, &y));
  return y;
}

static network make_network(void) {
  network n = {.program = test_new_program()};
  n.loss = add_term(&n, W);
  for (int i = V; i < STATES; i++) assert_ok(rondo_op_add(n.program, n.loss, add_term(&n, i), &n.loss));
  assert_ok(rondo_program_output(n.program, "loss", n.loss));
  assert_ok(rondo_program_cell(n.program, "rate", 0.125f, &n.rate));
  assert_ok(rondo_program_cell(n.program, "slow", 0.0625f, &n.slow));
  return n;
}

/* Reference -------------------------------------------------------------------------------------------------------- */

typedef struct method {
  double rate[STATES], decay[STATES], max_norm[STATES];
  int set[STATES]; /* states of one number are clipped together */
  int warm_up[STATES];
  int accumulate;
  bool by_adam;
} method;

static float gradient_at(int run, int state, int k) { return (float)((run * 5 + state * 3 + k * 2) % 7 - 3) / 4; }

static void start(float *w) {
  for (int k = 0; k < COUNT; k++) w[k] = 0.5f - 0.25f * (float)k;
}

static double clip_factor(const method *m, double g[STATES][COUNT], int state) {
  double squares = 0;
  for (int i = 0; i < STATES; i++)
    for (int k = 0; k < COUNT && m->set[i] == m->set[state]; k++) squares += g[i][k] * g[i][k];
  const double norm = sqrt(squares), most = m->max_norm[state];
  return most > 0 && norm > most ? most / (norm + 1e-6) : 1;
}

typedef struct moments {
  double w[STATES][COUNT], m[STATES][COUNT], v[STATES][COUNT];
} moments;

static void update_one(const method *m, moments *s, int i, int k, double g, int step) {
  const double warm = step < m->warm_up[i] ? (double)(step + 1) / m->warm_up[i] : 1, rate = m->rate[i] * warm;
  double *w = &s->w[i][k];
  if (!m->by_adam) {
    *w -= rate * (g + m->decay[i] * *w);
    return;
  }
  s->m[i][k] = 0.9 * s->m[i][k] + (1 - 0.9) * g;
  s->v[i][k] = 0.999 * s->v[i][k] + (1 - 0.999) * g * g;
  const double mean = s->m[i][k] / (1 - pow(0.9, step + 1)), square = s->v[i][k] / (1 - pow(0.999, step + 1));
  *w = *w * (1 - rate * m->decay[i]) - rate * mean / (sqrt(square) + 1e-8);
}

static void run_reference(const method *m, float out[STATES][COUNT]) {
  moments s = {0};
  double sum[STATES][COUNT] = {0};
  int step = 0;
  for (int i = 0; i < STATES; i++) start(out[i]);
  for (int i = 0; i < STATES; i++)
    for (int k = 0; k < COUNT; k++) s.w[i][k] = (double)out[i][k];
  for (int run = 0; run < RUNS; run++) {
    for (int i = 0; i < STATES; i++)
      for (int k = 0; k < COUNT; k++) sum[i][k] += (double)gradient_at(run, i, k) / m->accumulate;
    if ((run + 1) % m->accumulate != 0) continue;
    for (int i = 0; i < STATES; i++)
      for (int k = 0; k < COUNT; k++) update_one(m, &s, i, k, sum[i][k] * clip_factor(m, sum, i), step);
    memset(sum, 0, sizeof sum);
    step++;
  }
  for (int i = 0; i < STATES; i++)
    for (int k = 0; k < COUNT; k++) out[i][k] = (float)s.w[i][k];
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static void train(rondo_compiled *compiled, float out[STATES][COUNT]) {
  float x[COUNT];
  start(x);
  for (int i = 0; i < STATES; i++) assert_ok(rondo_compiled_write(compiled, names[i], x, sizeof x));
  for (int run = 0; run < RUNS; run++) {
    for (int i = 0; i < STATES; i++) {
      for (int k = 0; k < COUNT; k++) x[k] = gradient_at(run, i, k);
      assert_ok(rondo_compiled_write(compiled, inputs[i], x, sizeof x));
    }
    assert_ok(rondo_compiled_run(compiled));
  }
  for (int i = 0; i < STATES; i++) assert_ok(rondo_compiled_read(compiled, names[i], out[i], sizeof out[i]));
}

/* The program is trained recorded, eagerly, and with an update for each state: with the same bits, as by the reference.
 */
static void assert_trained(test_fixture *t, const network *n, const method *m) {
  const rondo_compile_options forms[] = {{RONDO_COMPILE_OPTIONS_INIT},
                                         {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER},
                                         {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER}};
  float wanted[STATES][COUNT], first[STATES][COUNT], got[STATES][COUNT];
  run_reference(m, wanted);
  for (int f = 0; f < 3; f++) {
    rondo_compiled *compiled = test_compile_kept(n->program, t->device, &forms[f]);
    train(compiled, got);
    if (f == 0) memcpy(first, got, sizeof got);
    assert_memory_equal(got, first, sizeof got);
    assert_ok(rondo_compiled_destroy(compiled));
  }
  for (int i = 0; i < STATES; i++) assert_near(first[i], wanted[i], COUNT, 4e-6f);
}

static void add_optimizer(const network *n, bool by_adam, const rondo_adam_options *given) {
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT,
                                 .weight_decay = given->weight_decay,
                                 .learning_rate = given->learning_rate,
                                 .gradients = given->gradients,
                                 .schedule = given->schedule,
                                 .states = given->states,
                                 .state_count = given->state_count,
                                 .decay_dimensions = given->decay_dimensions,
                                 .groups = given->groups,
                                 .group_count = given->group_count};
  assert_ok(by_adam ? rondo_program_adam(n->program, n->loss, given) : rondo_program_sgd(n->program, n->loss, &sgd));
}

TEST(test_pr1_biases_have_no_decay_in_one_line) {
  for (int by_adam = 0; by_adam < 2; by_adam++) {
    const network n = make_network();
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .weight_decay = 0.25f,
                                     .decay_dimensions = 2};
    const method m = {
        .rate = {0.125, 0.125, 0.125}, .decay = {0.25, 0.25, 0}, .accumulate = 1, .by_adam = by_adam == 1};
    add_optimizer(&n, by_adam, &adam);
    assert_trained(t, &n, &m);
  }
}

TEST(test_pr1_groups_have_rates_and_decays) {
  for (int by_adam = 0; by_adam < 2; by_adam++) {
    for (int accumulate = 1; accumulate <= 2; accumulate++) {
      const network n = make_network();
      const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 0.25f, .warm_up = 3, .output = "v.rate"};
      const rondo_parameter_group groups[] = {
          {.states = &n.state[V], .state_count = 1, .schedule = &schedule, .weight_decay = 0.5f},
          {.states = &n.state[B], .state_count = 1, .learning_rate = n.slow, .no_decay = true}};
      const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = (uint32_t)accumulate};
      const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .weight_decay = 0.125f,
                                       .gradients = &gradients, .groups = groups,        .group_count = 2};
      const method m = {.rate = {0.125, 0.25, 0.0625},
                        .decay = {0.125, 0.5, 0},
                        .warm_up = {0, 3, 0},
                        .accumulate = accumulate,
                        .by_adam = by_adam == 1};
      add_optimizer(&n, by_adam, &adam);
      assert_trained(t, &n, &m);
    }
  }
}

/* The others are clipped together, or not at all; the loss may be scaled. */
TEST(test_pr1_groups_are_clipped_by_their_own_norm) {
  for (int form = 0; form < 8; form++) {
    const bool scales = form % 2 == 1, clips_rest = form / 2 % 2 == 1, accumulates = form / 4 == 1;
    const network n = make_network();
    const rondo_parameter_group groups[] = {{.states = &n.state[V], .state_count = 1, .max_norm = 0.25f}};
    const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = clips_rest ? 0.5f : 0,
                                              .scale_loss = scales,        .initial_scale = 256,
                                              .norm_output = "norm",       .accumulate = accumulates ? 3 : 1};
    const rondo_adam_options sgd = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .gradients = &gradients,
                                    .groups = groups, .group_count = 1};
    const method m = {.rate = {0.125, 0.125, 0.125},
                      .max_norm = {clips_rest ? 0.5 : 0, 0.25, clips_rest ? 0.5 : 0},
                      .set = {0, 1, 0},
                      .accumulate = accumulates ? 3 : 1};
    add_optimizer(&n, false, &sgd);
    assert_trained(t, &n, &m);
  }
}

/* All states in groups, of which one is clipped: there is no other norm. */
TEST(test_pr1_a_list_and_groups_are_trained) {
  const network n = make_network();
  const rondo_parameter_group all = {.states = n.state, .state_count = STATES, .max_norm = 0.75f};
  const rondo_adam_options sgd = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .groups = &all, .group_count = 1};
  const method m = {.rate = {0.125, 0.125, 0.125}, .max_norm = {0.75, 0.75, 0.75}, .accumulate = 1};
  add_optimizer(&n, false, &sgd);
  assert_trained(t, &n, &m);
  const network other = make_network();
  const rondo_value listed[] = {other.state[B]};
  const rondo_parameter_group group = {.states = &other.state[W], .state_count = 1, .learning_rate = other.slow};
  const rondo_adam_options some = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = other.rate,
                                   .states = listed,        .state_count = 1,
                                   .groups = &group,        .group_count = 1};
  const method alone = {.rate = {0.0625, 0, 0.125}, .accumulate = 1};
  add_optimizer(&other, false, &some);
  assert_trained(t, &other, &alone);
}

/* A gradient that is not finite in one group skips the updates of all. */
TEST(test_pr1_an_overflow_skips_all_groups) {
  const network n = make_network();
  const rondo_parameter_group groups[] = {{.states = &n.state[V], .state_count = 1, .max_norm = 0.25f}};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .groups = groups,
                                   .group_count = 1};
  add_optimizer(&n, true, &adam);
  rondo_compiled *compiled = test_compile(n.program, t->device, NULL);
  const float x[COUNT] = {1, 2, INFINITY, 3}, zeros[COUNT] = {0};
  float got[COUNT];
  assert_ok(rondo_compiled_write(compiled, "x", zeros, sizeof zeros));
  assert_ok(rondo_compiled_write(compiled, "z", x, sizeof x));
  assert_ok(rondo_compiled_write(compiled, "y", (const float[]){1, 1, 1, 1}, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  for (int i = 0; i < STATES; i++) {
    assert_ok(rondo_compiled_read(compiled, names[i], got, sizeof got));
    assert_memory_equal(got, zeros, sizeof got);
  }
}

TEST(test_pr1_groups_are_explained) {
  const network n = make_network();
  const rondo_parameter_group groups[] = {{.states = &n.state[B], .state_count = 1, .no_decay = true}};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .groups = groups,
                                   .group_count = 1};
  char *told = NULL;
  add_optimizer(&n, true, &adam);
  rondo_compiled *compiled = test_compile(n.program, t->device, NULL);
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &told));
  assert_non_null(strstr(told, "adam: 2 states, 'w', 'v'\n"));
  assert_non_null(strstr(told, "adam, group 0: 1 state, 'b'\n"));
  rondo_text_free(told);
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_JSON, &told));
  assert_non_null(strstr(told, "{\"optimizer\":\"adam\",\"states\":[\"b\"],\"group\":0}"));
  rondo_text_free(told);
}

TEST(test_pr1_wrong_groups_are_refused) {
  network n = make_network();
  const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 1};
  const rondo_value w[] = {n.state[W]}, twice[] = {n.state[B], n.state[B]}, input[] = {n.loss};
  const struct {
    rondo_parameter_group group;
    rondo_reason reason;
    const char *message;
  } wrong[] = {
      {{.states = w, .state_count = 0}, RONDO_REASON_BAD_OPTIONS, "group 0 has no states"},
      {{.state_count = 1}, RONDO_REASON_NULL_ARGUMENT, "states of a group"},
      {{.states = w, .state_count = 1, .weight_decay = 0.5f, .no_decay = true},
       RONDO_REASON_BAD_OPTIONS,
       "both a weight_decay and no_decay"},
      {{.states = w, .state_count = 1, .weight_decay = -1}, RONDO_REASON_OUT_OF_RANGE, "weight_decay is -1"},
      {{.states = w, .state_count = 1, .max_norm = NAN}, RONDO_REASON_OUT_OF_RANGE, "max_norm of group 0 is nan"},
      {{.states = w, .state_count = 1, .learning_rate = n.rate, .schedule = &schedule},
       RONDO_REASON_BAD_OPTIONS,
       "group 0"},
      {{.states = w, .state_count = 1, .learning_rate = n.state[W]}, RONDO_REASON_SHAPE, "group 0"},
      {{.states = twice, .state_count = 2},
       RONDO_REASON_DUPLICATE_NAME,
       "entry 1 of group 0 is 'b' [4], which is also states entry 0 of group 0"},
      {{.states = input, .state_count = 1}, RONDO_REASON_TYPE, "states entry 0 of group 0 is result of add"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = n.rate, .groups = &wrong[i].group,
                                     .group_count = 1};
    assert_invalid(rondo_program_adam(n.program, n.loss, &adam), wrong[i].reason);
    assert_message("rondo_program_adam");
    assert_message(wrong[i].message);
  }
  const rondo_parameter_group group = {.states = w, .state_count = 1};
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = n.rate, .states = w,
                           .state_count = 1,       .groups = &group,        .group_count = 1};
  assert_invalid(rondo_program_sgd(n.program, n.loss, &sgd), RONDO_REASON_DUPLICATE_NAME);
  assert_message("states entry 0 of group 0 is 'w' [4, 1], which is also entry 0");
  sgd.groups = NULL;
  assert_invalid(rondo_program_sgd(n.program, n.loss, &sgd), RONDO_REASON_NULL_ARGUMENT);
  sgd.group_count = 0;
  assert_ok(rondo_program_sgd(n.program, n.loss, &sgd));
  assert_error(rondo_program_sgd(n.program, n.loss, &sgd), RONDO_INVALID_STATE, RONDO_REASON_NONE);
}
