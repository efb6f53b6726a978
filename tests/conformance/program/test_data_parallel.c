/* SPDX-License-Identifier: MIT
 * Data-parallel training (MM-4): 2 and 4 ranks in one process, a thread each, against one rank with the whole batch;
 * and tables whose rows are divided between the ranks (MM-3).
 *
 * The model is an embedding, two matrix products with biases and a cross-entropy, so its gradients have several sizes
 * and runs check indices. With buckets of 512 bytes, the table has one of its own, as it is larger. Its rows cannot be
 * divided evenly, and words come more than once.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "support/test_ranks.h"

enum { MOST_RANKS = 4, BATCH = 16, WORDS = 23, WIDTH = 8, HIDDEN = 12, CLASSES = 5, STEPS = 10 };
enum { TABLE = WORDS * WIDTH, FIRST = WIDTH * HIDDEN, SECOND = HIDDEN * CLASSES };
enum { WEIGHTS = TABLE + FIRST + HIDDEN + SECOND + CLASSES };

static const rondo_value none;

typedef enum method { SGD, MOMENTUM, ADAM, ADAGRAD } method;

typedef struct setting {
  uint32_t ranks; /* 0: one, without rondo_program_data_parallel */
  method by;
  bool shards, eager, executor; /* the last with eager runs */
  uint64_t bucket_bytes;        /* 0: all in one */
  rondo_branch_policy branches;
  rondo_gradient_options gradients;
  bool sparse;
  bool averages;         /* a state is assigned a moving average of the second matrix */
  bool bags, shard_rows; /* of the table, which is read by embedding_bag */
  bool padded;           /* the bags have offsets, of which the last is before the last indices */
  float capacity_factor;
  bool has_mean; /* an output of the mean loss */
  bool groups;   /* the bias and the second matrix have options of their own */
} setting;

typedef struct rank {
  const setting *s;
  uint32_t number;
  test_allocator allocator;
  rondo_device *device;
  rondo_communicator *communicator;
  rondo_executor *executor;
  rondo_program *program;
  rondo_compiled *compiled;
  rondo_compiled_info info;
  rondo_weights *checkpoint;
  int first_step, steps;
  float losses[STEPS], means[STEPS], weights[WEIGHTS], average[SECOND];
  rondo_status (*work)(struct rank *rank);
  rondo_status status;
  char message[1024];
} rank;

/* All ranks of a test, as static memory: they are large. */
static rank team[MOST_RANKS];

static uint32_t count_of(const setting *s) { return s->ranks == 0 ? 1 : s->ranks; }

/* The model -------------------------------------------------------------------------------------------------------- */

static const struct part {
  const char *name;
  size_t dims[2], rank, count;
} parts[] = {{"table", {WORDS, WIDTH}, 2, TABLE},
             {"first", {WIDTH, HIDDEN}, 2, FIRST},
             {"first bias", {HIDDEN}, 1, HIDDEN},
             {"second", {HIDDEN, CLASSES}, 2, SECOND},
             {"second bias", {CLASSES}, 1, CLASSES}};
enum { PARTS = sizeof parts / sizeof parts[0] };

/* A bag has two tokens. */
static rondo_status add_bags(rondo_program *program, const setting *s, rondo_value table, rondo_value tokens,
                             rondo_value *out_bags) {
  const size_t count = BATCH / count_of(s), padding = 3;
  rondo_embedding_bag_options options = {RONDO_EMBEDDING_BAG_OPTIONS_INIT, .include_last_offset = true};
  rondo_value parts_of_tokens[2];
  if (!s->padded) return rondo_op_embedding_bag(program, table, tokens, none, none, RONDO_COMBINE_MEAN, out_bags);
  TRY(rondo_op_reshape(program, tokens, &count, 1, &parts_of_tokens[0]));
  TRY(rondo_op_full(program, RONDO_I32, &padding, 1, -1, &parts_of_tokens[1]));
  TRY(rondo_op_concat(program, parts_of_tokens, 2, 0, &tokens));
  TRY(rondo_op_arange(program, RONDO_I32, count / 2 + 1, 0, 2, &options.offsets));
  return rondo_op_embedding_bag_with(program, table, tokens, &options, out_bags);
}

static rondo_status add_model(rondo_program *program, const setting *s, rondo_value *states, rondo_value *loss) {
  const size_t batch = BATCH / count_of(s), bags[] = {batch / 2, 2}, rows = s->bags ? bags[0] : batch;
  rondo_value tokens, labels, x;
  for (size_t i = 0; i < PARTS; i++) {
    const rondo_state_options options = {RONDO_STATE_OPTIONS_INIT, .shard_rows = s->shard_rows && i == 0,
                                         .sparse = s->sparse && i == 0,
                                         .capacity_factor = i == 0 ? s->capacity_factor : 0};
    TRY(rondo_program_state_with(program, parts[i].name, RONDO_F32, parts[i].dims, parts[i].rank, &options,
                                 &states[i]));
  }
  TRY(rondo_program_input(program, "tokens", RONDO_I32, s->bags ? bags : &batch, s->bags ? 2 : 1, &tokens));
  TRY(rondo_program_input(program, "labels", RONDO_I32, &rows, 1, &labels));
  TRY(s->bags ? add_bags(program, s, states[0], tokens, &x) : rondo_op_embedding(program, states[0], tokens, &x));
  TRY(rondo_op_matmul(program, x, states[1], states[2], &x));
  TRY(rondo_op_tanh(program, x, &x));
  TRY(rondo_op_matmul(program, x, states[3], states[4], &x));
  TRY(rondo_op_cross_entropy(program, x, labels, loss));
  return rondo_program_output(program, "loss", *loss);
}

/* The options of the two groups. */
static void make_groups(const rondo_value *states, rondo_parameter_group *groups) {
  static const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 0.01f, .warm_up = 3};
  groups[0] = (rondo_parameter_group){.states = &states[2], .state_count = 1, .no_decay = true, .schedule = &schedule};
  groups[1] = (rondo_parameter_group){.states = &states[3], .state_count = 1, .max_norm = 0.02f};
}

static rondo_status add_optimizer(rondo_program *program, rondo_value loss, const rondo_value *states,
                                  const setting *s) {
  rondo_value rate, momentum = none;
  rondo_parameter_group groups[2];
  make_groups(states, groups);
  TRY(rondo_program_cell(program, "rate", s->by == ADAM ? 0.02f : 0.2f, &rate));
  if (s->by == MOMENTUM) TRY(rondo_program_cell(program, "momentum", 0.5f, &momentum));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT,    .learning_rate = rate, .weight_decay = 0.01f,
                                   .gradients = &s->gradients, .groups = groups,      .group_count = s->groups ? 2 : 0};
  const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT,
                                         .learning_rate = rate,
                                         .rate_decay = 0.125f,
                                         .initial_sum = 0.25f,
                                         .gradients = &s->gradients,
                                         .groups = groups,
                                         .group_count = s->groups ? 2 : 0};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = momentum,
                                 .gradients = &s->gradients};
  if (s->by == ADAGRAD) return rondo_program_adagrad(program, loss, &adagrad);
  return s->by == ADAM ? rondo_program_adam(program, loss, &adam) : rondo_program_sgd(program, loss, &sgd);
}

static rondo_status add_average(rondo_program *program, rondo_value second) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_value average, kept, part;
  TRY(rondo_program_state_with(program, "average", RONDO_F32, parts[3].dims, parts[3].rank, &frozen, &average));
  TRY(rondo_op_scale(program, average, 0.75f, &kept));
  TRY(rondo_op_scale(program, second, 0.25f, &part));
  TRY(rondo_op_add(program, kept, part, &kept));
  return rondo_program_assign(program, average, kept);
}

static rondo_status make_program(rank *r) {
  rondo_value loss, states[PARTS];
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .name = "model", .allocator = &r->allocator.table};
  TRY(rondo_program_create(&named, &r->program));
  const rondo_data_parallel_options options = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = r->s->shards,
                                               .bucket_bytes = r->s->bucket_bytes,
                                               .loss_output = r->s->has_mean ? "mean loss" : NULL};
  if (r->s->ranks > 0) TRY(rondo_program_data_parallel(r->program, r->communicator, &options));
  TRY(add_model(r->program, r->s, states, &loss));
  if (r->s->averages) TRY(add_average(r->program, states[3]));
  return add_optimizer(r->program, loss, states, r->s);
}

static rondo_status compile(rank *r) {
  if (r->s->executor) TRY(rondo_executor_create(r->device, NULL, &r->executor));
  const rondo_compile_options options = {
      RONDO_COMPILE_OPTIONS_INIT, .record = r->s->eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS,
      .branches = r->s->branches, .executor = r->executor, .executor_policy = RONDO_EXECUTOR_ALWAYS};
  TRY(make_program(r));
  TRY(rondo_compile(r->program, r->device, &options, &r->compiled));
  r->info.struct_size = sizeof r->info;
  return rondo_compiled_get_info(r->compiled, &r->info);
}

/* Training --------------------------------------------------------------------------------------------------------- */

/* A number between -0.5 and 0.5. */
static float number_of(size_t i) { return (float)(i * 7919 % 1009) / 1009 - 0.5f; }

static rondo_status write_weights(rank *r) {
  float numbers[TABLE];
  size_t at = 0;
  for (size_t i = 0; i < PARTS; at += parts[i++].count) {
    const bool is_sharded = r->s->shard_rows && i == 0;
    const size_t rows = is_sharded ? (WORDS + r->s->ranks - 1) / r->s->ranks : 0;
    const size_t count = is_sharded ? rows * WIDTH : parts[i].count;
    if (r->number > 0 && !is_sharded) continue;
    for (size_t k = 0; k < count; k++) numbers[k] = number_of(at + r->number * rows * WIDTH + k);
    TRY(rondo_compiled_write(r->compiled, parts[i].name, numbers, count * sizeof *numbers));
  }
  return RONDO_OK;
}

/* From all ranks. */
static rondo_status gather_weights(rank *r, rondo_weights *weights) {
  float *to = r->weights;
  TRY(rondo_weights_gather(weights, r->compiled, NULL, NULL));
  for (size_t i = 0; i < PARTS; to += parts[i++].count) {
    rondo_weight found;
    TRY(rondo_weights_find(weights, parts[i].name, &found));
    if (found.shape[0] != parts[i].dims[0]) return RONDO_INVALID_DATA;
    memcpy(to, found.data, parts[i].count * sizeof *to);
  }
  return RONDO_OK;
}

static rondo_status read_weights(rank *r) {
  float *to = r->weights;
  if (r->s->shard_rows) {
    rondo_weights *weights;
    TRY(rondo_weights_create(&r->allocator.table, &weights));
    const rondo_status status = gather_weights(r, weights);
    rondo_weights_destroy(weights);
    return status;
  }
  for (size_t i = 0; i < PARTS; to += parts[i++].count)
    TRY(rondo_compiled_read(r->compiled, parts[i].name, to, parts[i].count * sizeof *to));
  return RONDO_OK;
}

static rondo_status write_batch(rank *r, int step) {
  const uint32_t batch = BATCH / count_of(r->s), rows = r->s->bags ? batch / 2 : batch;
  int32_t tokens[BATCH], labels[BATCH];
  for (uint32_t i = 0; i < batch; i++) {
    const int token = (int)(r->number * batch + i) + step * BATCH, row = (int)(r->number * rows + i) + step * BATCH;
    tokens[i] = token * token * 5 % WORDS;
    labels[i] = row * row % CLASSES;
  }
  TRY(rondo_compiled_write(r->compiled, "tokens", tokens, batch * sizeof *tokens));
  return rondo_compiled_write(r->compiled, "labels", labels, rows * sizeof *labels);
}

static rondo_status run_steps(rank *r) {
  for (int i = r->first_step; i < r->first_step + r->steps; i++) {
    TRY(write_batch(r, i));
    TRY(rondo_compiled_run(r->compiled));
    TRY(rondo_compiled_read(r->compiled, "loss", &r->losses[i], sizeof r->losses[i]));
    if (r->s->has_mean) TRY(rondo_compiled_read(r->compiled, "mean loss", &r->means[i], sizeof r->means[i]));
  }
  if (r->s->averages) TRY(rondo_compiled_read(r->compiled, "average", r->average, sizeof r->average));
  return read_weights(r);
}

/* Only rank 0 has the starting values before the broadcast, except of divided rows. */
static rondo_status train(rank *r) {
  TRY(compile(r));
  TRY(write_weights(r));
  if (r->s->ranks > 0) TRY(rondo_compiled_broadcast(r->compiled, 0));
  return run_steps(r);
}

/* The team --------------------------------------------------------------------------------------------------------- */

static void close_team(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    rondo_weights_destroy(team[i].checkpoint);
    assert_ok(rondo_compiled_destroy(team[i].compiled));
    rondo_program_destroy(team[i].program);
    assert_ok(rondo_executor_destroy(team[i].executor));
    assert_ok(rondo_communicator_destroy(team[i].communicator));
    assert_ok(rondo_device_close(team[i].device));
    assert_true(test_allocator_is_clean(&team[i].allocator));
  }
}

/* So many ranks, or fewer where there are not so many GPUs, that divide the batch too. */
static uint32_t up_to(uint32_t ranks) {
  while (ranks > 1 && test_rank_count(ranks) < ranks) ranks /= 2;
  return ranks;
}

/* Skips the test if there are fewer GPUs than ranks, or no NCCL. */
static void open_team(const setting *s) {
  rondo_device *devices[MOST_RANKS];
  rondo_communicator *communicators[MOST_RANKS];
  const uint32_t count = count_of(s);
  memset(team, 0, sizeof team);
  if (test_rank_count(count) < count) skip();
  for (uint32_t i = 0; i < count; i++) {
    char name[32];
    team[i] = (rank){.s = s, .number = i, .steps = STEPS};
    test_allocator_init(&team[i].allocator);
    const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                          .allocator = &team[i].allocator.table};
    test_rank_device(i, name, sizeof name);
    assert_ok(rondo_device_open(name, &options, &team[i].device));
    devices[i] = team[i].device;
  }
  const rondo_status status = rondo_communicator_create_all(devices, count, NULL, communicators);
  for (uint32_t i = 0; i < count; i++) team[i].communicator = communicators[i];
  if (test_ranks_are_missing(status)) {
    close_team(count);
    skip();
  }
  assert_ok(status);
}

static void work_on_thread(void *user) {
  rank *r = user;
  r->status = r->work(r);
  if (r->status != RONDO_OK) (void)snprintf(r->message, sizeof r->message, "%s", rondo_last_error()->message);
}

static void try_all(uint32_t count, rondo_status (*work)(rank *r)) {
  test_thread threads[MOST_RANKS];
  for (uint32_t i = 0; i < count; i++) {
    team[i].work = work;
    threads[i] = (test_thread){work_on_thread, &team[i]};
  }
  test_on_threads(threads, count);
}

static void do_all(uint32_t count, rondo_status (*work)(rank *r)) {
  try_all(count, work);
  for (uint32_t i = 0; i < count; i++)
    if (team[i].status != RONDO_OK) fail_msg("rank %u: %s", i, team[i].message);
}

/* What a training gave: the mean losses, and the weights, which are the same on all ranks. */
typedef struct result {
  float losses[STEPS], weights[WEIGHTS];
  rondo_compiled_info info; /* of rank 0 */
} result;

static result collect(const setting *s) {
  result all = {.info = team[0].info};
  const uint32_t count = count_of(s);
  for (int i = 0; i < STEPS; i++) {
    double sum = 0;
    for (uint32_t r = 0; r < count; r++) sum += (double)team[r].losses[i];
    all.losses[i] = (float)(sum / count);
  }
  for (uint32_t r = 1; r < count; r++) assert_memory_equal(team[r].weights, team[0].weights, sizeof team[0].weights);
  memcpy(all.weights, team[0].weights, sizeof all.weights);
  return all;
}

static result train_all(const setting *s) {
  open_team(s);
  do_all(count_of(s), train);
  const result all = collect(s);
  close_team(count_of(s));
  return all;
}

static void assert_alike(const result *a, const result *b) {
  assert_near(a->losses, b->losses, STEPS, 1e-5f);
  assert_near(a->weights, b->weights, WEIGHTS, 1e-4f);
}

static void assert_same(const result *a, const result *b) {
  assert_memory_equal(a->losses, b->losses, sizeof a->losses);
  assert_memory_equal(a->weights, b->weights, sizeof a->weights);
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

TEST(test_mm4_ranks_train_as_one_does) {
  for (method by = SGD; by <= ADAM; by++) {
    const setting alone = {.by = by};
    const result expected = train_all(&alone);
    assert_true(expected.losses[STEPS - 1] < expected.losses[0]);
    for (uint32_t ranks = 1; ranks <= up_to(MOST_RANKS); ranks *= 2) {
      for (int form = 0; form < 4; form++) {
        const setting s = {.ranks = ranks, .by = by, .shards = form % 2 != 0, .bucket_bytes = form < 2 ? 0 : 512};
        const result one = train_all(&s);
        assert_alike(&one, &expected);
        assert_int_equal(one.info.ranks, ranks);
        assert_int_equal(one.info.buckets, form < 2 ? 1 : 3);
      }
    }
  }
  (void)t;
}

/* Bits ------------------------------------------------------------------------------------------------------------- */

static void assert_every_form_has_the_same_bits(const setting *first) {
  const result expected = train_all(first), again = train_all(first);
  assert_same(&again, &expected);
  for (int form = 1; form < 6; form++) {
    setting s = *first;
    s.shards = form % 2 != 0;
    s.eager = form / 2 != 0;
    s.executor = form / 2 == 2;
    const result one = train_all(&s);
    assert_same(&one, &expected);
  }
}

/* Sharded and not; recorded, eager and with an executor; again. */
TEST(test_mm4_every_form_has_the_same_bits) {
  const rondo_gradient_options controls[] = {
      {RONDO_GRADIENT_OPTIONS_INIT},
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.05f, .norm_output = "norm"},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .max_norm = 0.05f, .scale_loss = true},
  };
  for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
    const uint32_t ranks = up_to(2 + 2 * (uint32_t)(i % 2));
    const setting s = {.ranks = ranks, .by = ADAM, .bucket_bytes = 256, .gradients = controls[i]};
    assert_every_form_has_the_same_bits(&s);
  }
  assert_every_form_has_the_same_bits(&(setting){.ranks = up_to(4), .by = MOMENTUM, .gradients = controls[1]});
  (void)t;
}

TEST(test_mm4_controlled_gradients_agree_with_one_rank) {
  const rondo_gradient_options controls[] = {{RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.05f},
                                             {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3, .scale_loss = true}};
  for (int i = 0; i < 2; i++) {
    for (int shards = 0; shards < 2; shards++) {
      const setting alone = {.by = ADAM, .gradients = controls[i]};
      const setting s = {.ranks = up_to(4), .by = ADAM, .shards = shards != 0, .gradients = controls[i]};
      const result expected = train_all(&alone), one = train_all(&s);
      assert_alike(&one, &expected);
    }
  }
  (void)t;
}

TEST(test_pr1_groups_train_on_ranks_as_on_one) {
  const rondo_gradient_options controls[] = {{RONDO_GRADIENT_OPTIONS_INIT},
                                             {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.05f, .accumulate = 3}};
  for (int form = 0; form < 8; form++) {
    const method by = form % 2 == 0 ? ADAM : ADAGRAD;
    const setting alone = {.by = by, .gradients = controls[form / 4], .groups = true};
    const setting s = {
        .ranks = up_to(4), .by = by, .shards = form / 2 % 2 == 1, .gradients = controls[form / 4], .groups = true};
    const result expected = train_all(&alone), one = train_all(&s);
    assert_alike(&one, &expected);
  }
  (void)t;
}

/* The average is computed from states, so it is the same on all ranks. */
TEST(test_pr3_ranks_assign_the_same) {
  float expected[SECOND];
  for (uint32_t ranks = 0; ranks <= up_to(4); ranks += up_to(4)) {
    const setting s = {.ranks = ranks, .by = ADAM, .shards = true, .averages = true};
    open_team(&s);
    do_all(count_of(&s), train);
    if (ranks == 0) memcpy(expected, team[0].average, sizeof expected);
    assert_near(team[0].average, expected, SECOND, 1e-4f);
    for (uint32_t r = 1; r < count_of(&s); r++)
      assert_memory_equal(team[r].average, team[0].average, sizeof team[0].average);
    close_team(count_of(&s));
  }
  (void)t;
}

/* Of a table whose rows are divided, each rank updates those of its rows that any rank read. Where it is whole on each
 * rank, gradients are whole. */
TEST(test_pr7_ranks_update_rows) {
  const rondo_gradient_options clipped = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.05f};
  for (int form = 0; form < 8; form++) {
    const method by = form % 2 == 0 ? SGD : ADAGRAD;
    setting alone = {.by = by, .bags = form / 2 % 2 == 1, .sparse = true, .gradients = clipped};
    const result expected = train_all(&alone);
    alone.ranks = up_to(4);
    alone.padded = alone.bags;
    alone.shards = alone.shard_rows = form / 4 == 1;
    const result one = train_all(&alone);
    assert_alike(&one, &expected);
  }
  (void)t;
}

/* Ranks accumulate the rows of a divided table as one rank does the rows of its table, and with the bits of accumulated
 * whole gradients. */
TEST(test_pr7_ranks_accumulate_rows) {
  const rondo_gradient_options controls[] = {
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .max_norm = 0.05f, .scale_loss = true}};
  for (int form = 0; form < 4; form++) {
    const method by = form % 2 == 0 ? SGD : ADAGRAD;
    const setting alone = {.by = by, .bags = form % 2 == 1, .sparse = true, .gradients = controls[form / 2]};
    const result expected = train_all(&alone);
    for (uint32_t ranks = 1; ranks <= up_to(MOST_RANKS); ranks *= 2) {
      setting s = alone;
      s.ranks = ranks;
      s.shards = s.shard_rows = true;
      s.capacity_factor = form % 2 == 1 ? 3 : 0;
      const result sparse = train_all(&s);
      assert_alike(&sparse, &expected);
      s.sparse = false;
      const result whole = train_all(&s);
      if (form / 2 == 0) assert_same(&sparse, &whole); /* the norm adds squares in another order */
    }
  }
  (void)t;
}

TEST(test_pr7_accumulated_rows_have_the_same_bits_in_every_form) {
  const setting s = {.ranks = up_to(4),
                     .by = ADAGRAD,
                     .sparse = true,
                     .shard_rows = true,
                     .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3}};
  assert_every_form_has_the_same_bits(&s);
  (void)t;
}

/* The ten elements are all in the first rank's piece, so the others square none. */
static rondo_status clip_ten(rank *r) {
  const size_t ten = 10;
  float numbers[10];
  rondo_value state, loss, rate;
  TRY(rondo_program_create(NULL, &r->program));
  TRY(rondo_program_data_parallel(
      r->program, r->communicator,
      &(rondo_data_parallel_options){RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = r->s->shards}));
  TRY(rondo_program_state(r->program, "state", RONDO_F32, &ten, 1, &state));
  TRY(rondo_program_cell(r->program, "rate", 0.1f, &rate));
  TRY(rondo_op_mul(r->program, state, state, &loss));
  TRY(rondo_op_sum(r->program, loss, NULL, 0, false, &loss));
  TRY(rondo_program_sgd(
      r->program, loss,
      &(rondo_sgd_options){RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .gradients = &r->s->gradients}));
  TRY(rondo_compile(r->program, r->device, NULL, &r->compiled));
  for (int i = 0; i < 10; i++) numbers[i] = 1;
  TRY(rondo_compiled_write(r->compiled, "state", numbers, sizeof numbers));
  TRY(rondo_compiled_run(r->compiled));
  return rondo_compiled_read(r->compiled, "state", r->weights, sizeof numbers);
}

TEST(test_mm4_a_rank_may_have_nothing_to_square) {
  for (int shards = 0; shards < 2; shards++) {
    const setting s = {.ranks = 4, .shards = shards != 0, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1}};
    float expected[10];
    for (int i = 0; i < 10; i++) expected[i] = 1 - 0.1f / sqrtf(10);
    open_team(&s);
    do_all(4, clip_ten);
    for (int r = 0; r < 4; r++) assert_near(team[r].weights, expected, 10, 1e-5f);
    close_team(4);
  }
  (void)t;
}

/* In each run, also of a round. */
TEST(test_mm4_the_mean_loss_is_an_output) {
  for (int form = 0; form < 4; form++) {
    const setting s = {.ranks = 4,
                       .by = ADAM,
                       .eager = form % 2 != 0,
                       .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = form / 2 == 0 ? 1 : 3},
                       .has_mean = true};
    open_team(&s);
    do_all(4, train);
    const result one = collect(&s);
    assert_near(team[0].means, one.losses, STEPS, 1e-6f);
    for (int r = 1; r < 4; r++) assert_memory_equal(team[r].means, team[0].means, sizeof team[0].means);
    close_team(4);
  }
  (void)t;
}

/* Divided tables --------------------------------------------------------------------------------------------------- */

/* The first loss has the bits of ranks that each have the whole table, because a look-up only copies. */
TEST(test_mm3_ranks_divide_a_table) {
  for (int form = 0; form < 3; form++) {
    const setting alone = {.by = ADAM, .bags = form > 0};
    const result expected = train_all(&alone);
    for (uint32_t ranks = 1; ranks <= up_to(MOST_RANKS); ranks *= 2) {
      setting s = {.ranks = ranks, .by = ADAM, .bags = form > 0, .padded = form == 2, .bucket_bytes = 512};
      const result whole = train_all(&s);
      s.shard_rows = true;
      const result one = train_all(&s);
      assert_alike(&one, &expected);
      assert_memory_equal(one.losses, whole.losses, sizeof one.losses[0]);
      assert_int_equal(one.info.buckets, whole.info.buckets - 1);
      assert_true(ranks == 1 || one.info.optimizer_bytes < whole.info.optimizer_bytes);
    }
  }
  (void)t;
}

TEST(test_mm3_every_form_has_the_same_bits) {
  const rondo_gradient_options controls[] = {
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.05f, .norm_output = "norm"},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .scale_loss = true},
  };
  for (int i = 0; i < 2; i++) {
    const setting s = {
        .ranks = 4, .by = ADAM, .bucket_bytes = 256, .gradients = controls[i], .bags = i != 0, .shard_rows = true};
    const setting alone = {.by = ADAM, .gradients = controls[i], .bags = i != 0};
    const result expected = train_all(&alone), one = train_all(&s);
    assert_alike(&one, &expected);
    assert_every_form_has_the_same_bits(&s);
  }
  (void)t;
}

/* Of four tokens of a rank, one owner may get all. */
TEST(test_mm3_few_slots_give_the_same_bits) {
  setting s = {.ranks = 4, .by = ADAM, .shard_rows = true};
  const result expected = train_all(&s);
  s.capacity_factor = 2.5f; /* of 16 slots, 12 */
  const result one = train_all(&s);
  assert_same(&one, &expected);
  (void)t;
}

/* Rank 2's tokens are all in the first rows. */
static rondo_status send_more_than_fits(rank *r) {
  const int32_t tokens[BATCH] = {3, 1, 3};
  TRY(train(r));
  if (r->number == 2) TRY(rondo_compiled_write(r->compiled, "tokens", tokens, BATCH / r->s->ranks * sizeof *tokens));
  TRY(rondo_compiled_run(r->compiled));
  return rondo_compiled_synchronize(r->compiled);
}

TEST(test_mm3_more_indices_than_slots_fail_on_all_ranks) {
  const setting s = {.ranks = 4, .by = ADAM, .shard_rows = true, .capacity_factor = 2.5f};
  open_team(&s);
  try_all(4, send_more_than_fits);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(team[i].status, RONDO_EXECUTION_FAILED);
    if (strstr(team[i].message, i == 2 ? "indices has 0 at position 3" : "failed on rank 2") == NULL ||
        (i == 2 && strstr(team[i].message, "capacity_factor") == NULL))
      fail_msg("rank %d: %s", i, team[i].message);
  }
  close_team(4);
  (void)t;
}

/* Of a whole number below 256. */
static uint16_t bf16_of(size_t number) {
  const float value = (float)number;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* A program without an optimizer, which looks up what each rank has written. */
static rondo_status look_up(rank *r) {
  const size_t dims[] = {WORDS, 2}, count = 3, rows = (WORDS + r->s->ranks - 1) / r->s->ranks;
  const rondo_state_options options = {RONDO_STATE_OPTIONS_INIT, .frozen = true, .shard_rows = true};
  const int64_t indices[] = {WORDS - 1, (int64_t)r->number * 3, WORDS - 1};
  uint16_t part[2 * WORDS], found[6];
  rondo_value table, tokens;
  for (size_t i = 0; i < 2 * rows; i++) part[i] = bf16_of(r->number * 2 * rows + i);
  TRY(rondo_program_create(NULL, &r->program));
  TRY(rondo_program_data_parallel(r->program, r->communicator, NULL));
  TRY(rondo_program_state_with(r->program, "table", RONDO_BF16, dims, 2, &options, &table));
  TRY(rondo_program_input(r->program, "tokens", RONDO_I64, &count, 1, &tokens));
  TRY(rondo_op_embedding(r->program, table, tokens, &table));
  TRY(rondo_program_output(r->program, "rows", table));
  TRY(rondo_compile(r->program, r->device, NULL, &r->compiled));
  TRY(rondo_compiled_write(r->compiled, "table", part, 2 * rows * sizeof *part));
  TRY(rondo_compiled_write(r->compiled, "tokens", indices, sizeof indices));
  TRY(rondo_compiled_run(r->compiled));
  TRY(rondo_compiled_read(r->compiled, "rows", found, sizeof found));
  for (int i = 0; i < 6; i++)
    if (found[i] != bf16_of((size_t)(2 * indices[i / 2] + i % 2))) return RONDO_INVALID_DATA;
  return RONDO_OK;
}

TEST(test_mm3_a_table_is_read_without_an_optimizer) {
  const setting s = {.ranks = 4};
  open_team(&s);
  do_all(4, look_up);
  close_team(4);
  (void)t;
}

/* An optimizer that fails late, because the program has a state of its name, leaves nothing. */
static rondo_status look_up_after_a_failure(rank *r) {
  const size_t dims[] = {8, 2}, count = 3;
  const rondo_state_options divided = {RONDO_STATE_OPTIONS_INIT, .shard_rows = true};
  const rondo_data_parallel_options options = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = r->s->shards};
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &r->allocator.table};
  const int32_t indices[] = {7, 0, 3};
  rondo_value table, tokens, weights, own, rate, loss;
  TRY(rondo_program_create(&named, &r->program));
  TRY(rondo_program_data_parallel(r->program, r->communicator, &options));
  TRY(rondo_program_state_with(r->program, "table", RONDO_F32, dims, 2, &divided, &table));
  TRY(rondo_program_state(r->program, "w", RONDO_F32, dims + 1, 1, &weights));
  TRY(rondo_program_state(r->program, r->s->shards ? "table.m" : "w.m", RONDO_F32, dims + 1, 1, &own));
  TRY(rondo_program_input(r->program, "tokens", RONDO_I32, &count, 1, &tokens));
  TRY(rondo_program_cell(r->program, "rate", 0.1f, &rate));
  TRY(rondo_op_embedding(r->program, table, tokens, &loss));
  TRY(rondo_op_mul(r->program, loss, weights, &loss));
  TRY(rondo_op_sum(r->program, loss, NULL, 0, false, &loss));
  TRY(rondo_program_output(r->program, "loss", loss));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .gradients = &r->s->gradients};
  if (rondo_program_adam(r->program, loss, &adam) == RONDO_OK) return RONDO_INVALID_STATE;
  if (rondo_last_error()->reason != RONDO_REASON_DUPLICATE_NAME) return RONDO_INVALID_DATA;
  TRY(rondo_compile(r->program, r->device, NULL, &r->compiled));
  r->info.struct_size = sizeof r->info;
  TRY(rondo_compiled_get_info(r->compiled, &r->info));
  TRY(rondo_compiled_write(r->compiled, "tokens", indices, sizeof indices));
  for (int i = 0; i < 2; i++) TRY(rondo_compiled_run(r->compiled));
  return rondo_compiled_synchronize(r->compiled);
}

TEST(test_mm3_a_failed_optimizer_leaves_nothing) {
  for (int shards = 0; shards < 2; shards++) {
    const setting s = {.ranks = 2, .shards = shards != 0, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2}};
    open_team(&s);
    do_all(2, look_up_after_a_failure);
    assert_int_equal(team[0].info.buckets, 0);
    assert_int_equal(team[0].info.reduced_bytes, 0);
    close_team(2);
  }
  (void)t;
}

TEST(test_mm3_what_cannot_be_divided_is_refused) {
  const setting s = {.ranks = 1};
  const size_t dims[] = {4, 4};
  rondo_state_options options = {RONDO_STATE_OPTIONS_INIT, .shard_rows = true};
  rondo_value table;
  open_team(&s);
  rondo_program *program = test_new_program();
  assert_error(rondo_program_state_with(program, "table", RONDO_F32, dims, 2, &options, &table), RONDO_INVALID_STATE,
               RONDO_REASON_NONE);
  assert_message("rondo_program_data_parallel");
  assert_ok(rondo_program_data_parallel(program, team[0].communicator, NULL));
  assert_invalid(rondo_program_state_with(program, "table", RONDO_F32, dims, 1, &options, &table), RONDO_REASON_SHAPE);
  assert_invalid(rondo_program_state_with(program, "table", RONDO_I32, dims, 2, &options, &table), RONDO_REASON_TYPE);
  options.capacity_factor = -1;
  assert_invalid(rondo_program_state_with(program, "table", RONDO_F32, dims, 2, &options, &table),
                 RONDO_REASON_OUT_OF_RANGE);
  options.capacity_factor = 0;
  assert_ok(rondo_program_state_with(program, "table", RONDO_F32, dims, 2, &options, &table));
  assert_invalid(rondo_op_matmul(program, table, table, none, &table), RONDO_REASON_SHAPE);
  assert_message("only embedding and embedding_bag");
  close_team(1);
  (void)t;
}

/* Overlap ---------------------------------------------------------------------------------------------------------- */

enum { MOST_NODES = 256 };

static size_t list_nodes(const rondo_graph *graph, rondo_node *nodes) {
  size_t count = MOST_NODES;
  assert_true(test_node_count(graph) <= count);
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  return count;
}

/* The number-th node whose name has this part. */
static rondo_node find_node(const rondo_graph *graph, const char *name, size_t number) {
  rondo_node nodes[MOST_NODES];
  const size_t count = list_nodes(graph, nodes);
  for (size_t i = 0; i < count; i++)
    if (strstr(test_node_params(graph, nodes[i]).name, name) != NULL && number-- == 0) return nodes[i];
  fail_msg("the graph has no such node: %s", name);
  return nodes[0];
}

/* The first collective is the all-reduce of the check of all ranks. Kernels of NCCL have names of its own. */
static rondo_node find_first_bucket(const rondo_graph *graph, bool shards) {
  if (test_device_is("cuda")) return find_node(graph, "nccl", 1);
  return shards ? find_node(graph, "reduce_scatter", 0) : find_node(graph, "all_reduce", 1);
}

static bool comes_before(const rondo_graph *graph, rondo_node first, rondo_node second) {
  rondo_node next[64];
  size_t count = 64;
  assert_ok(rondo_graph_dependents(graph, first, next, &count));
  assert_true(count <= 64);
  for (size_t i = 0; i < count; i++)
    if (next[i].id == second.id || comes_before(graph, next[i], second)) return true;
  return false;
}

/* The bucket of the second matrix is reduced while the gradient of the table is computed, which has no branch of its
 * own otherwise. */
TEST(test_mm4_the_backward_goes_on_while_a_bucket_is_reduced) {
  for (int form = 0; form < 4; form++) {
    const setting s = {.ranks = 2,
                       .by = ADAM,
                       .shards = form % 2 != 0,
                       .bucket_bytes = 256,
                       .branches = form / 2 != 0 ? RONDO_BRANCHES_ALWAYS : RONDO_BRANCHES_AUTO};
    open_team(&s);
    do_all(2, compile);
    const rondo_graph *graph = rondo_compiled_graph(team[0].compiled);
    const rondo_node reduced = find_first_bucket(graph, s.shards);
    const rondo_node later = find_node(graph, "embedding_gradient_f32", 0);
    assert_false(comes_before(graph, reduced, later));
    assert_false(comes_before(graph, later, reduced));
    close_team(2);
  }
  (void)t;
}

/* Collectives of this rank so far. */
static rondo_status count_collectives(const rank *r, uint64_t *out) {
  rondo_communicator_info info = {.struct_size = sizeof info};
  TRY(rondo_compiled_synchronize(r->compiled));
  TRY(rondo_communicator_get_info(r->communicator, &info));
  *out = info.completed;
  return RONDO_OK;
}

/* Two of three runs have the check of all ranks only; the third also the reductions of five buckets. */
static rondo_status reduce_in_rounds(rank *r) {
  TRY(compile(r));
  TRY(write_batch(r, 0));
  for (int i = 0; i < 6; i++) {
    uint64_t before, after;
    TRY(count_collectives(r, &before));
    TRY(rondo_compiled_run(r->compiled));
    TRY(count_collectives(r, &after));
    if (after - before != (i % 3 == 2 ? 6 : 1)) return RONDO_INVALID_STATE;
  }
  return RONDO_OK;
}

TEST(test_mm4_only_the_last_run_of_a_round_reduces) {
  if (test_device_is("cuda")) skip(); /* it counts the collectives that are done, which CPUs do */
  for (int eager = 0; eager < 2; eager++) {
    const setting s = {.ranks = 2,
                       .by = ADAM,
                       .eager = eager != 0,
                       .bucket_bytes = 256,
                       .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3}};
    open_team(&s);
    do_all(2, reduce_in_rounds);
    assert_int_equal(team[0].info.buckets, 5);
    close_team(2);
  }
  (void)t;
}

static uint32_t count_kernels(const rondo_graph *graph) {
  rondo_node nodes[MOST_NODES];
  const size_t count = list_nodes(graph, nodes);
  uint32_t kernels = 0;
  for (size_t i = 0; i < count; i++) kernels += test_node_params(graph, nodes[i]).kind == RONDO_NODE_KERNEL;
  return kernels;
}

/* Runs before the last of a round have a recording of their own, whose kernels do not count. */
TEST(test_mm4_kernels_are_those_of_the_last_run_of_a_round) {
  for (uint32_t accumulate = 1; accumulate <= 3; accumulate += 2) {
    const setting s = {.ranks = 2, .by = ADAM, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = accumulate}};
    open_team(&s);
    do_all(2, compile);
    assert_int_equal(team[0].info.kernels, count_kernels(rondo_compiled_graph(team[0].compiled)));
    close_team(2);
  }
  (void)t;
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

TEST(test_mm4_sharded_states_take_a_part_of_the_memory) {
  for (method by = MOMENTUM; by <= ADAM; by++) {
    const setting alone = {.by = by}, s = {.ranks = 4, .by = by, .shards = true};
    const result whole = train_all(&alone), part = train_all(&s);
    assert_true(10 * part.info.optimizer_bytes <= 3 * whole.info.optimizer_bytes);
    print_message("states of the optimizer: %llu bytes, %llu on each of 4 ranks\n",
                  (unsigned long long)whole.info.optimizer_bytes, (unsigned long long)part.info.optimizer_bytes);
    assert_true(part.info.reduced_bytes >= 2 * WEIGHTS * sizeof(float));
    assert_int_equal(whole.info.ranks, 0);
    assert_int_equal(whole.info.reduced_bytes, 0);
  }
  (void)t;
}

/* Checkpoints ------------------------------------------------------------------------------------------------------ */

static rondo_weights *saved;

static rondo_status train_and_gather(rank *r) {
  r->steps = STEPS / 2;
  TRY(train(r));
  TRY(rondo_weights_create(NULL, &r->checkpoint));
  return rondo_checkpoint_gather(r->checkpoint, r->compiled);
}

static rondo_status resume(rank *r) {
  TRY(compile(r));
  TRY(rondo_checkpoint_apply(saved, r->compiled));
  r->first_step = STEPS / 2;
  r->steps = STEPS - STEPS / 2;
  return run_steps(r);
}

static void resume_with_other_ranks(const rondo_gradient_options *gradients, bool shard_rows) {
  const setting alone = {.by = ADAM, .gradients = *gradients};
  const setting four = {
      .ranks = 4, .by = ADAM, .shards = true, .bucket_bytes = 256, .gradients = *gradients, .shard_rows = shard_rows};
  const setting others[] = {alone,
                            {.ranks = 2, .by = ADAM, .shards = true, .gradients = *gradients},
                            {.ranks = 2, .by = ADAM, .gradients = *gradients, .shard_rows = shard_rows},
                            four};
  const result expected = train_all(&alone);
  open_team(&four);
  do_all(4, train_and_gather);
  saved = team[0].checkpoint;
  team[0].checkpoint = NULL;
  close_team(4);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    open_team(&others[i]);
    do_all(count_of(&others[i]), resume);
    const result one = collect(&others[i]);
    assert_near(one.losses + STEPS / 2, expected.losses + STEPS / 2, STEPS / 2, 1e-5f);
    assert_near(one.weights, expected.weights, WEIGHTS, 1e-4f);
    close_team(count_of(&others[i]));
  }
  rondo_weights_destroy(saved);
}

/* Also after the second of three runs whose gradients are accumulated. */
TEST(test_mm4_a_checkpoint_resumes_with_other_ranks) {
  resume_with_other_ranks(&(rondo_gradient_options){RONDO_GRADIENT_OPTIONS_INIT}, false);
  resume_with_other_ranks(&(rondo_gradient_options){RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3}, false);
  (void)t;
}

TEST(test_mm3_a_checkpoint_has_the_whole_table) {
  resume_with_other_ranks(&(rondo_gradient_options){RONDO_GRADIENT_OPTIONS_INIT}, true);
  resume_with_other_ranks(&(rondo_gradient_options){RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3}, true);
  (void)t;
}

static void resume_rows(uint32_t accumulate, uint32_t ranks) {
  const setting alone = {
      .by = ADAGRAD, .sparse = true, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = accumulate}};
  setting four = alone, other = alone;
  four.ranks = 4;
  four.shard_rows = true;
  other.ranks = ranks;
  other.shard_rows = ranks > 0;
  const result expected = train_all(&alone);
  open_team(&four);
  do_all(4, train_and_gather);
  saved = team[0].checkpoint;
  team[0].checkpoint = NULL;
  close_team(4);
  open_team(&other);
  do_all(count_of(&other), resume);
  const result one = collect(&other);
  assert_near(one.losses + STEPS / 2, expected.losses + STEPS / 2, STEPS / 2, 1e-5f);
  assert_near(one.weights, expected.weights, WEIGHTS, 1e-4f);
  close_team(count_of(&other));
  rondo_weights_destroy(saved);
}

/* Between two rounds with any number of ranks; within one, after the second of three runs, with the same number. */
TEST(test_pr7_a_checkpoint_has_accumulated_rows) {
  resume_rows(5, 2);
  resume_rows(5, 0);
  resume_rows(3, 4);
  (void)t;
}

static rondo_status refuse_to_resume(rank *r) {
  TRY(compile(r));
  return rondo_checkpoint_apply(saved, r->compiled);
}

TEST(test_pr7_accumulated_rows_do_not_fit_other_ranks) {
  const setting four = {
      .ranks = 4, .sparse = true, .shard_rows = true, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3}};
  setting two = four;
  two.ranks = 2;
  open_team(&four);
  do_all(4, train_and_gather);
  saved = team[0].checkpoint;
  team[0].checkpoint = NULL;
  close_team(4);
  open_team(&two);
  try_all(2, refuse_to_resume);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(team[i].status, RONDO_INVALID_DATA);
    if (strstr(team[i].message, "'table.accumulated") == NULL) fail_msg("rank %d: %s", i, team[i].message);
  }
  close_team(2);
  rondo_weights_destroy(saved);
  (void)t;
}

/* Compiling again -------------------------------------------------------------------------------------------------- */

static rondo_status train_with_two_programs(rank *r) {
  r->steps = STEPS / 2;
  TRY(train(r));
  rondo_program_destroy(r->program);
  r->program = NULL;
  TRY(make_program(r));
  TRY(rondo_compiled_recompile(r->compiled, r->program, NULL));
  r->first_step = STEPS / 2;
  r->steps = STEPS - STEPS / 2;
  return run_steps(r);
}

/* States stay, also those of a round that has begun. */
TEST(test_mm4_ranks_recompile_together) {
  for (int form = 0; form < 4; form++) {
    const setting s = {.ranks = 2,
                       .by = ADAM,
                       .shards = form % 2 != 0,
                       .bucket_bytes = 256,
                       .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = form / 2 == 0 ? 1 : 3}};
    const result expected = train_all(&s);
    open_team(&s);
    do_all(2, train_with_two_programs);
    const result one = collect(&s);
    assert_same(&one, &expected);
    close_team(2);
  }
  (void)t;
}

/* Failures --------------------------------------------------------------------------------------------------------- */

/* In the third step, rank 1 has a token that the table lacks. */
static rondo_status run_with_a_wrong_token(rank *r) {
  int32_t tokens[BATCH];
  for (int i = 0; i < BATCH; i++) tokens[i] = WORDS;
  r->steps = 2;
  TRY(train(r));
  TRY(write_batch(r, 2));
  if (r->number == 1) TRY(rondo_compiled_write(r->compiled, "tokens", tokens, BATCH / r->s->ranks * sizeof *tokens));
  TRY(rondo_compiled_run(r->compiled));
  return rondo_compiled_synchronize(r->compiled);
}

static rondo_status finish_steps(rank *r) {
  r->first_step = 2;
  r->steps = STEPS - 2;
  return run_steps(r);
}

static void fail_on_all_ranks(bool shard_rows) {
  for (int form = 0; form < 4; form++) {
    const setting s = {.ranks = 4,
                       .by = ADAM,
                       .shards = form % 2 != 0,
                       .eager = form / 2 != 0,
                       .bucket_bytes = 256,
                       .shard_rows = shard_rows};
    const result expected = train_all(&s);
    open_team(&s);
    try_all(4, run_with_a_wrong_token);
    for (int i = 0; i < 4; i++) {
      assert_int_equal(team[i].status, RONDO_EXECUTION_FAILED);
      if (strstr(team[i].message, i == 1 ? "indices has 23 at position 0" : "failed on rank 1") == NULL)
        fail_msg("rank %d: %s", i, team[i].message);
    }
    do_all(4, finish_steps);
    const result one = collect(&s);
    assert_same(&one, &expected);
    close_team(4);
  }
}

TEST(test_mm4_a_wrong_index_fails_on_all_ranks) {
  fail_on_all_ranks(false);
  (void)t;
}

TEST(test_mm3_a_wrong_index_fails_on_all_ranks) {
  fail_on_all_ranks(true);
  (void)t;
}

/* A run that fails is one of its round, and adds nothing. */
static rondo_status fail_in_a_round(rank *r) {
  if (run_with_a_wrong_token(r) == RONDO_OK) return RONDO_INVALID_STATE;
  TRY(write_batch(r, 3));
  for (int i = 0; i < 3; i++) {
    float before[WEIGHTS];
    TRY(read_weights(r));
    memcpy(before, r->weights, sizeof before);
    TRY(rondo_compiled_run(r->compiled));
    TRY(read_weights(r));
    const bool is_updated = memcmp(before, r->weights, sizeof before) != 0;
    if (is_updated != (i == 0)) return RONDO_INVALID_STATE;
  }
  return RONDO_OK;
}

/* Four runs make an update: two good ones, one that fails, and the next. */
TEST(test_mm4_a_wrong_index_is_left_out_of_a_round) {
  for (int form = 0; form < 4; form++) {
    const setting s = {.ranks = 2,
                       .by = ADAM,
                       .shards = form % 2 != 0,
                       .eager = form / 2 != 0,
                       .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 4}};
    open_team(&s);
    do_all(2, fail_in_a_round);
    close_team(2);
  }
  (void)t;
}

/* Runs `count` steps from r->first_step on. In the last one, rank 1 has a wrong token if `fails`. */
static rondo_status run_round(rank *r, int count, bool fails) {
  int32_t tokens[BATCH];
  for (int i = 0; i < BATCH; i++) tokens[i] = WORDS;
  for (int i = 0; i < count; i++) {
    const bool is_wrong = fails && i + 1 == count;
    TRY(write_batch(r, r->first_step++));
    if (is_wrong && r->number == 1)
      TRY(rondo_compiled_write(r->compiled, "tokens", tokens, BATCH / r->s->ranks * sizeof *tokens));
    TRY(rondo_compiled_run(r->compiled));
    const rondo_status status = rondo_compiled_synchronize(r->compiled);
    if ((status == RONDO_EXECUTION_FAILED) != is_wrong) return status == RONDO_OK ? RONDO_INVALID_STATE : status;
  }
  return RONDO_OK;
}

/* Rounds of three runs: the last run of the first `number` of them fails, and that of the next one updates. */
static rondo_status fail_last_runs(rank *r, int number) {
  TRY(compile(r));
  TRY(write_weights(r));
  TRY(rondo_compiled_broadcast(r->compiled, 0));
  for (int i = 0; i <= number; i++) TRY(run_round(r, 3, i < number));
  return read_weights(r);
}
static rondo_status fail_one_round(rank *r) { return fail_last_runs(r, 1); }
static rondo_status fail_many_rounds(rank *r) { return fail_last_runs(r, 5); }

static result fail_rounds(const setting *s, rondo_status (*work)(rank *r)) {
  open_team(s);
  do_all(2, work);
  const result all = collect(s);
  close_team(2);
  return all;
}

/* The sums of a round whose last run failed go on, as whole gradients do. After more such rounds, they begin again. */
TEST(test_pr7_rows_of_a_round_that_failed_go_on) {
  const setting s = {.ranks = 2,
                     .by = SGD,
                     .sparse = true,
                     .shard_rows = true,
                     .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3}};
  setting whole = s;
  whole.sparse = false;
  const result rows = fail_rounds(&s, fail_one_round), expected = fail_rounds(&whole, fail_one_round);
  assert_memory_equal(rows.weights, expected.weights, sizeof rows.weights);
  const result many = fail_rounds(&s, fail_many_rounds);
  for (int i = 0; i < WEIGHTS; i++) assert_true(isfinite(many.weights[i]));
  assert_memory_not_equal(many.weights, rows.weights, sizeof rows.weights);
  (void)t;
}

static rondo_status compile_with(rank *r, const rondo_compile_options *options) {
  return rondo_compile(r->program, r->device, options, &r->compiled);
}

/* The copy before it is enqueued, and while the worker is blocked it runs when somebody waits for it. cpu:check finds
 * that memory was freed earlier. */
TEST(test_mm4_memory_of_a_refused_collective_is_freed_after_its_use) {
  const setting s = {.ranks = 1, .by = ADAM};
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  rondo_stream *blocked;
  test_gate *gate = test_gate_make();
  if (test_device_is("cuda")) skip(); /* where freeing waits for the device */
  open_team(&s);
  rank *r = &team[0];
  assert_ok(rondo_stream_create(r->device, NULL, &blocked));
  assert_ok(make_program(r));
  assert_ok(rondo_communicator_abort(r->communicator));
  test_gate_hold(gate, blocked);
  assert_fails(compile_with(r, NULL), RONDO_INVALID_STATE);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(blocked));
  assert_ok(rondo_device_get_statistics(r->device, &statistics));
  assert_int_equal(statistics.findings, 0);
  assert_ok(rondo_stream_destroy(blocked));
  close_team(1);
  (void)t;
}

/* Rank 1 has another program. */
static const setting *other_setting;

static rondo_status compile_another(rank *r) {
  if (r->number == 1) r->s = other_setting;
  return compile(r);
}

static void refuse_another(rondo_status (*work)(rank *r)) {
  try_all(2, work);
  for (uint32_t k = 0; k < 2; k++) {
    char who[48];
    (void)snprintf(who, sizeof who, "rank %u compiles another", 1 - k);
    assert_int_equal(team[k].status, RONDO_INVALID_ARGUMENT);
    if (strstr(team[k].message, who) == NULL) fail_msg("%s", team[k].message);
    assert_null(team[k].compiled);
  }
}

TEST(test_mm4_ranks_of_different_programs_are_refused) {
  const setting s = {.ranks = 2, .by = ADAM};
  const setting others[] = {{.ranks = 2, .by = SGD},
                            {.ranks = 2, .by = ADAM, .shards = true},
                            {.ranks = 2, .by = ADAM, .bucket_bytes = 256},
                            {.ranks = 2, .by = ADAM, .gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1}}};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    other_setting = &others[i];
    open_team(&s);
    refuse_another(compile_another);
    close_team(2);
  }
  (void)t;
}

/* In what rank 1 differs. */
static enum { ROUND, STATES, COMPANIONS, EXECUTOR, LATE_OPERATION, LATE_OUTPUT, DIFFERENCES } difference;

/* What is added after the optimizer. */
static rondo_status add_late(rondo_program *program, rondo_value state, const bool *differs) {
  rondo_value scaled;
  TRY(rondo_op_scale(program, state, differs[LATE_OPERATION] ? 3 : 2, &scaled));
  return rondo_program_output(program, differs[LATE_OUTPUT] ? "other" : "scaled", scaled);
}

/* The gradients of both states are one value, so one state or two have the same operators. */
static rondo_status compile_a_sum(rank *r) {
  const size_t count = 4;
  bool differs[DIFFERENCES] = {false};
  rondo_value states[2], rate, momentum, loss;
  differs[difference] = r->number == 1;
  TRY(rondo_program_create(NULL, &r->program));
  TRY(rondo_program_data_parallel(r->program, r->communicator, NULL));
  TRY(rondo_program_state(r->program, "a", RONDO_F32, &count, 1, &states[0]));
  TRY(rondo_program_state(r->program, "b", RONDO_F32, &count, 1, &states[1]));
  TRY(rondo_program_cell(r->program, "rate", 0.1f, &rate));
  TRY(rondo_program_cell(r->program, "momentum", 0.5f, &momentum));
  TRY(rondo_op_add(r->program, states[0], states[1], &loss));
  TRY(rondo_op_sum(r->program, loss, NULL, 0, false, &loss));
  const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = difference != ROUND ? 1
                                                                                       : differs[ROUND]    ? 3
                                                                                                           : 2};
  const rondo_sgd_options sgd = {
      RONDO_SGD_OPTIONS_INIT,  .learning_rate = rate, .momentum = differs[COMPANIONS] ? momentum : none,
      .gradients = &gradients, .states = states,      .state_count = differs[STATES] ? 2 : 1};
  TRY(rondo_program_sgd(r->program, loss, &sgd));
  TRY(add_late(r->program, states[0], differs));
  if (differs[EXECUTOR]) TRY(rondo_executor_create(r->device, NULL, &r->executor));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                         .executor = r->executor, .executor_policy = RONDO_EXECUTOR_ALWAYS};
  return rondo_compile(r->program, r->device, &options, &r->compiled);
}

TEST(test_mm4_ranks_of_different_options_are_refused) {
  for (difference = ROUND; difference < DIFFERENCES; difference++) {
    open_team(&(setting){.ranks = 2});
    refuse_another(compile_a_sum);
    close_team(2);
  }
  (void)t;
}

/* The parts of the table have the same shape on both ranks. */
static rondo_status compile_a_look_up(rank *r) {
  const size_t dims[] = {r->number == 0 ? 7 : 8, 2}, count = 3;
  const rondo_state_options divided = {RONDO_STATE_OPTIONS_INIT, .frozen = true, .shard_rows = true};
  rondo_value table, tokens;
  TRY(rondo_program_create(NULL, &r->program));
  TRY(rondo_program_data_parallel(r->program, r->communicator, NULL));
  TRY(rondo_program_state_with(r->program, "table", RONDO_F32, dims, 2, &divided, &table));
  TRY(rondo_program_input(r->program, "tokens", RONDO_I32, &count, 1, &tokens));
  TRY(rondo_op_embedding(r->program, table, tokens, &table));
  TRY(rondo_program_output(r->program, "rows", table));
  return rondo_compile(r->program, r->device, NULL, &r->compiled);
}

TEST(test_mm6_ranks_without_an_optimizer_are_compared) {
  open_team(&(setting){.ranks = 2});
  refuse_another(compile_a_look_up);
  close_team(2);
  (void)t;
}

TEST(test_mm4_what_cannot_be_data_parallel_is_refused) {
  const setting s = {.ranks = 1, .by = ADAM};
  const rondo_data_parallel_options small = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .bucket_bytes = 3};
  const rondo_compile_options by_gain = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_AUTO};
  rondo_program *empty = test_new_program();
  char *text;
  rondo_value tokens;
  open_team(&s);
  rank *r = &team[0];
  assert_ok(make_program(r));
  assert_error(rondo_program_data_parallel(NULL, r->communicator, NULL), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_data_parallel(empty, NULL, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_program_data_parallel(empty, r->communicator, &small), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  assert_error(rondo_program_data_parallel(r->program, r->communicator, NULL), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("data-parallel already");
  assert_error(compile_with(r, &by_gain), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("RONDO_RECORD_AUTO");
  assert_error(rondo_compile(r->program, t->device, NULL, &r->compiled), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_OTHER_DEVICE);
  assert_ok(rondo_program_data_parallel(empty, r->communicator, NULL));
  assert_error(rondo_compile(empty, r->device, NULL, &r->compiled), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("no gradients to reduce");
  assert_ok(compile_with(r, NULL));
  assert_ok(rondo_compiled_explain(r->compiled, RONDO_EXPLAIN_TEXT, &text));
  assert_non_null(strstr(text, "1 rank, 1 bucket of gradients"));
  assert_null(strstr(text, "rondo_compiled_measure"));
  rondo_text_free(text);
  assert_error(rondo_compiled_measure(r->compiled, 1, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_error(rondo_compiled_broadcast(r->compiled, 1), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_compiled_destroy(r->compiled));
  r->compiled = NULL;
  assert_ok(rondo_program_input(r->program, "more", RONDO_I32, (size_t[]){4}, 1, &tokens));
  assert_ok(rondo_op_one_hot(r->program, tokens, 3, RONDO_F32, &tokens));
  assert_ok(rondo_program_output(r->program, "hot", tokens));
  assert_error(compile_with(r, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("one_hot");
  close_team(1);
}

/* The program of rank 0, which is data-parallel. */
static void refuse_policies(rank *r) {
  rondo_divided *divided;
  assert_ok(rondo_executor_create(r->device, NULL, &r->executor));
  const rondo_compile_options by_time = {RONDO_COMPILE_OPTIONS_INIT, .executor = r->executor,
                                         .executor_policy = RONDO_EXECUTOR_AUTO};
  assert_error(compile_with(r, &by_time), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("RONDO_EXECUTOR_AUTO");
  assert_null(r->compiled);
  assert_error(rondo_compile_divided(r->program, &r->device, 1, NULL, &divided), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("data-parallel");
}

TEST(test_mm4_times_placement_and_late_calls_are_refused) {
  const setting alone = {.by = ADAM}, s = {.ranks = 1, .by = ADAM};
  open_team(&s);
  rank *r = &team[0];
  r->s = &alone;
  assert_ok(make_program(r));
  assert_error(rondo_program_data_parallel(r->program, r->communicator, NULL), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("has an optimizer already, which does not reduce its gradients");
  rondo_program_destroy(r->program);
  r->program = NULL;
  r->s = &s;
  assert_ok(make_program(r));
  refuse_policies(r);
  close_team(1);
  (void)t;
}
