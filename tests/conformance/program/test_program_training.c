/* SPDX-License-Identifier: MIT
 * A whole training step as one graph (FW-4): a small language model trained with Adam or SGD. The same bits recorded
 * and not (FW-9), and for any number of workers; the right numbers, compared with the model in double precision and
 * with the CPU; and the learning rate changed without touching the graph (FW-5).
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"

enum { BATCH = 8, CONTEXT = 4, SYMBOLS = 19, WIDTH = 6, HIDDEN = 24, JOINED = CONTEXT * WIDTH };

/* The model -------------------------------------------------------------------------------------------------------- */

typedef enum optimizer { ADAM, SGD, MOMENTUM } optimizer;

typedef struct model {
  rondo_compiled *compiled;
  uint64_t seed; /* of the next batch */
} model;

/* States with their shapes, in the order in which they are declared. */
static const struct {
  const char *name;
  size_t rank, shape[2];
} parameters[] = {{"table", 2, {SYMBOLS, WIDTH}},
                  {"w1", 2, {JOINED, HIDDEN}},
                  {"b1", 1, {HIDDEN}},
                  {"w2", 2, {HIDDEN, SYMBOLS}},
                  {"b2", 1, {SYMBOLS}}};
enum { TABLE, W1, B1, W2, B2, PARAMETERS };

static size_t parameter_count(int index) {
  return parameters[index].shape[0] * (parameters[index].rank == 2 ? parameters[index].shape[1] : 1);
}

static rondo_value build_loss(rondo_program *program) {
  const size_t tokens_shape[] = {BATCH, CONTEXT};
  const size_t labels_shape[] = {BATCH};
  const size_t joined_shape[] = {BATCH, JOINED};
  rondo_value tokens, labels, p[PARAMETERS], x;
  assert_ok(rondo_program_input(program, "tokens", RONDO_I32, tokens_shape, 2, &tokens));
  assert_ok(rondo_program_input(program, "labels", RONDO_I32, labels_shape, 1, &labels));
  for (int i = 0; i < PARAMETERS; i++) {
    assert_ok(
        rondo_program_state(program, parameters[i].name, RONDO_F32, parameters[i].shape, parameters[i].rank, &p[i]));
  }
  assert_ok(rondo_op_embedding(program, p[TABLE], tokens, &x));
  assert_ok(rondo_op_reshape(program, x, joined_shape, 2, &x));
  assert_ok(rondo_op_matmul(program, x, p[W1], p[B1], &x));
  assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_op_matmul(program, x, p[W2], p[B2], &x));
  assert_ok(rondo_op_cross_entropy(program, x, labels, &x));
  assert_ok(rondo_program_output(program, "loss", x));
  return x;
}

static void add_optimizer(rondo_program *program, rondo_value loss, optimizer kind) {
  rondo_value rate, momentum;
  const float rates[] = {[ADAM] = 0.01f, [SGD] = 0.3f, [MOMENTUM] = 0.05f};
  assert_ok(rondo_program_cell(program, "rate", rates[kind], &rate));
  if (kind == ADAM) {
    const rondo_adam_options options = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
    assert_ok(rondo_program_adam(program, loss, &options));
    return;
  }
  rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  if (kind == MOMENTUM) {
    assert_ok(rondo_program_cell(program, "momentum", 0.9f, &momentum));
    options.momentum = momentum;
  }
  assert_ok(rondo_program_sgd(program, loss, &options));
}

static float random_unit(uint64_t *seed) { return (float)test_random_below(seed, 2001) / 1000.0f - 1.0f; }

static void fill_parameter(int index, float *values) {
  uint64_t seed = 100 + (uint64_t)index;
  for (size_t i = 0; i < parameter_count(index); i++) values[i] = 0.3f * random_unit(&seed);
}

static model make_model(rondo_device *device, optimizer kind, bool eager) {
  model made = {.seed = 5};
  float values[JOINED * HIDDEN];
  rondo_program *program = NULL;
  const rondo_program_options program_options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "model"};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  assert_ok(rondo_program_create(&program_options, &program));
  add_optimizer(program, build_loss(program), kind);
  assert_ok(rondo_compile(program, device, &options, &made.compiled));
  rondo_program_destroy(program);
  for (int i = 0; i < PARAMETERS; i++) {
    fill_parameter(i, values);
    assert_ok(rondo_compiled_write(made.compiled, parameters[i].name, values, parameter_count(i) * sizeof *values));
  }
  return made;
}

static void next_batch(uint64_t *seed, int32_t tokens[BATCH * CONTEXT], int32_t labels[BATCH]) {
  for (int i = 0; i < BATCH * CONTEXT; i++) tokens[i] = (int32_t)test_random_below(seed, SYMBOLS);
  for (int i = 0; i < BATCH; i++) labels[i] = (tokens[i * CONTEXT + CONTEXT - 1] + 1) % SYMBOLS;
}

static void write_batch(model *m) {
  int32_t tokens[BATCH * CONTEXT], labels[BATCH];
  next_batch(&m->seed, tokens, labels);
  assert_ok(rondo_compiled_write(m->compiled, "tokens", tokens, sizeof tokens));
  assert_ok(rondo_compiled_write(m->compiled, "labels", labels, sizeof labels));
}

static float read_loss(model *m) {
  float loss = NAN;
  assert_ok(rondo_compiled_read(m->compiled, "loss", &loss, sizeof loss));
  return loss;
}

/* The bits of everything the training keeps. */
typedef struct trace {
  float losses[50];
  float states[3 * (700 * 250 + 50 * 200 + 200) + 1]; /* the largest program's here, with its moments and step */
  size_t count;
} trace;

static void read_states(rondo_compiled *compiled, trace *out) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  out->count = 0;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 's') continue;
    assert_true((out->count * sizeof(float)) + value.bytes <= sizeof out->states);
    assert_ok(rondo_compiled_read(compiled, value.name, out->states + out->count, value.bytes));
    out->count += value.bytes / sizeof(float);
  }
}

typedef enum manner { RECORDED, EAGER, IN_TURNS } manner;

static void train(rondo_device *device, optimizer kind, manner how, trace *out) {
  model m = make_model(device, kind, how == EAGER);
  memset(out, 0, sizeof *out);
  for (size_t step = 0; step < 50; step++) {
    write_batch(&m);
    assert_ok(how == IN_TURNS && step % 2 == 1 ? rondo_compiled_run_eager(m.compiled) : rondo_compiled_run(m.compiled));
    out->losses[step] = read_loss(&m);
  }
  read_states(m.compiled, out);
  assert_ok(rondo_compiled_destroy(m.compiled));
}

static void assert_same_trace(const trace *a, const trace *b) {
  assert_int_equal(a->count, b->count);
  assert_memory_equal(a->losses, b->losses, sizeof a->losses);
  assert_memory_equal(a->states, b->states, a->count * sizeof *a->states);
}

/* Same bits -------------------------------------------------------------------------------------------------------- */

static trace expected, got;

/* Of ten. */
static float mean(const float *losses) {
  float sum = 0;
  for (size_t i = 0; i < 10; i++) sum += losses[i];
  return sum / 10;
}

TEST(test_fw4_fw9_recorded_training_has_the_same_bits) {
  for (optimizer kind = ADAM; kind <= MOMENTUM; kind++) {
    train(t->device, kind, EAGER, &expected);
    train(t->device, kind, RECORDED, &got);
    assert_same_trace(&expected, &got);
    train(t->device, kind, IN_TURNS, &got);
    assert_same_trace(&expected, &got);
    assert_true(mean(expected.losses + 40) < 0.95f * mean(expected.losses));
  }
}

TEST(test_fw4_the_number_of_workers_does_not_matter) {
  train(t->device, ADAM, EAGER, &expected);
  for (uint32_t workers = 1; workers <= 3; workers++) {
    const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
    rondo_device *device = NULL;
    assert_ok(rondo_device_open(test_device_name(), &options, &device));
    train(device, ADAM, RECORDED, &got);
    assert_same_trace(&expected, &got);
    assert_ok(rondo_device_close(device));
  }
}

static void write_wide(rondo_compiled *compiled, size_t rows, size_t symbols) {
  static float values[700 * 200];
  static int32_t tokens[300];
  rondo_compiled_value value = {.struct_size = sizeof value};
  uint64_t seed = 9;
  for (size_t i = 0; i < rows; i++) tokens[i] = (int32_t)test_random_below(&seed, (uint32_t)symbols);
  for (size_t i = 0; i < 700 * 200; i++) values[i] = random_unit(&seed);
  assert_ok(rondo_compiled_write(compiled, "tokens", tokens, rows * sizeof *tokens));
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    const bool own = value.kind == 's' && strchr(value.name, '.') == NULL;
    if (own) assert_ok(rondo_compiled_write(compiled, value.name, values, value.bytes));
  }
}

/* A model so wide that every kernel has several blocks, which any worker may take. */
static void train_wide(uint32_t workers, bool eager, trace *out) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  const rondo_compile_options compile_options = {RONDO_COMPILE_OPTIONS_INIT,
                                                 .record = eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  const size_t rows = 300, symbols = 700, width = 50, hidden = 200;
  rondo_device *device = NULL;
  rondo_program *program = test_new_program();
  rondo_value tokens, table, w, b, v, x;
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  assert_ok(rondo_program_input(program, "tokens", RONDO_I32, &rows, 1, &tokens));
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (const size_t[]){symbols, width}, 2, &table));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){width, hidden}, 2, &w));
  assert_ok(rondo_program_state(program, "b", RONDO_F32, &hidden, 1, &b));
  assert_ok(rondo_program_state(program, "v", RONDO_F32, (const size_t[]){hidden, symbols}, 2, &v));
  assert_ok(rondo_op_embedding(program, table, tokens, &x));
  assert_ok(rondo_op_matmul(program, x, w, b, &x));
  assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_op_matmul(program, x, v, (rondo_value){0}, &x));
  assert_ok(rondo_op_softmax(program, x, &x));
  assert_ok(rondo_op_cross_entropy(program, x, tokens, &x));
  assert_ok(rondo_program_output(program, "loss", x));
  add_optimizer(program, x, ADAM);
  rondo_compiled *compiled = test_compile(program, device, &compile_options);
  write_wide(compiled, rows, symbols);
  for (size_t step = 0; step < test_effort(3); step++) {
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "loss", &out->losses[step], sizeof(float)));
  }
  read_states(compiled, out);
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
}

TEST(test_fw4_the_number_of_workers_does_not_matter_to_many_blocks) {
  memset(&expected, 0, sizeof expected);
  train_wide(1, true, &expected);
  for (uint32_t workers = 1; workers <= 3; workers++) {
    memset(&got, 0, sizeof got);
    train_wide(workers, workers == 3, &got);
    assert_same_trace(&expected, &got);
  }
}

/* The whole step is one graph with one launch; both modes use one arena. */
TEST(test_fw4_fw9_one_graph_one_arena) {
  const uint32_t before = test_memory_statistics(t).live_allocations;
  model m = make_model(t->device, ADAM, false);
  rondo_compiled_info info = test_compiled_info(m.compiled);
  rondo_exec_info exec_info = test_exec_info(rondo_compiled_exec(m.compiled));
  assert_int_equal(exec_info.node_count, info.kernels);
  assert_int_equal(exec_info.graph_bytes, 0);
  assert_true(info.kernels >= 15 && info.kernels <= 25);
  const uint32_t live = test_memory_statistics(t).live_allocations;
  assert_int_equal(live - before, 3); /* states, constants, arena */
  write_batch(&m);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_compiled_run(m.compiled));
    assert_ok(rondo_compiled_run_eager(m.compiled));
  }
  assert_ok(rondo_compiled_synchronize(m.compiled));
  exec_info = test_exec_info(rondo_compiled_exec(m.compiled));
  assert_int_equal(exec_info.launches, 3);
  assert_int_equal(test_memory_statistics(t).live_allocations, live);
  assert_ok(rondo_compiled_destroy(m.compiled));
  assert_int_equal(test_memory_statistics(t).live_allocations, before);
}

/* GM-5: of each pointer the verifier knows how far it may be followed. */
TEST(test_gm5_recorded_kernels_say_what_they_access) {
  enum { MOST_NODES = 64 };
  rondo_node nodes[MOST_NODES];
  size_t count = MOST_NODES, parameter_count, pointers = 0;
  model m = make_model(t->device, ADAM, false);
  const rondo_graph *graph = rondo_compiled_graph(m.compiled);
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_true(count <= MOST_NODES);
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    assert_ok(rondo_graph_get_params(graph, nodes[i], &params));
    assert_int_equal(params.kind, RONDO_NODE_KERNEL);
    const rondo_parameter *declared = rondo_kernel_parameters(params.as.kernel.kernel, &parameter_count);
    for (size_t k = 0; k < parameter_count; k++) {
      const void *address = NULL;
      if (declared[k].access == RONDO_ACCESS_SCALAR) continue;
      memcpy(&address, params.as.kernel.args[k], sizeof address);
      if (address == NULL) continue;
      assert_non_null(params.as.kernel.arg_bytes);
      assert_true(params.as.kernel.arg_bytes[k] > 0);
      pointers++;
    }
  }
  assert_true(pointers > count);
  rondo_findings *findings = NULL;
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 0);
  rondo_findings_destroy(findings);
  assert_ok(rondo_compiled_destroy(m.compiled));
}

/* Runs need no waits: each run sees the values written before it. */
TEST(test_fw1_runs_may_be_enqueued_in_advance) {
  train(t->device, ADAM, EAGER, &expected);
  model m = make_model(t->device, ADAM, false);
  for (size_t step = 0; step < 50; step++) {
    write_batch(&m);
    assert_ok(rondo_compiled_run(m.compiled));
  }
  read_states(m.compiled, &got);
  assert_int_equal(got.count, expected.count);
  assert_memory_equal(got.states, expected.states, got.count * sizeof *got.states);
  assert_true(read_loss(&m) == expected.losses[49]);
  assert_ok(rondo_compiled_destroy(m.compiled));
}

/* Devices round differently, so the bits differ, but not by much: here after ten steps, each on what the last one left.
 */
TEST(test_fw4_devices_agree_over_ten_steps) {
  rondo_device *cpu = test_device("cpu", NULL);
  for (optimizer kind = ADAM; kind <= MOMENTUM; kind++) {
    model here = make_model(t->device, kind, false), there = make_model(cpu, kind, false);
    for (int step = 0; step < 10; step++) {
      write_batch(&here);
      write_batch(&there);
      assert_ok(rondo_compiled_run(here.compiled));
      assert_ok(rondo_compiled_run(there.compiled));
      const float loss = read_loss(&here), wanted = read_loss(&there);
      assert_true(fabsf(loss - wanted) <= 1e-4f * wanted);
    }
    read_states(here.compiled, &got);
    read_states(there.compiled, &expected);
    assert_near(got.states, expected.states, got.count, 1e-4f);
    assert_ok(rondo_compiled_destroy(here.compiled));
    assert_ok(rondo_compiled_destroy(there.compiled));
  }
}

/* Right numbers ---------------------------------------------------------------------------------------------------- */

/* The model in double precision, by the book. */
typedef struct reference {
  double p[PARAMETERS][JOINED * HIDDEN], g[PARAMETERS][JOINED * HIDDEN];
  double m[PARAMETERS][JOINED * HIDDEN], v[PARAMETERS][JOINED * HIDDEN];
  double x[BATCH][JOINED], h[BATCH][HIDDEN], q[BATCH][SYMBOLS]; /* q: softmax */
  int step;
} reference;

static double forward(reference *r, const int32_t *tokens, const int32_t *labels) {
  double loss = 0;
  for (int b = 0; b < BATCH; b++) {
    double sum = 0;
    for (int i = 0; i < JOINED; i++) {
      r->x[b][i] = r->p[TABLE][tokens[b * CONTEXT + i / WIDTH] * WIDTH + i % WIDTH];
    }
    for (int j = 0; j < HIDDEN; j++) {
      r->h[b][j] = r->p[B1][j];
      for (int i = 0; i < JOINED; i++) r->h[b][j] += r->x[b][i] * r->p[W1][i * HIDDEN + j];
      r->h[b][j] = tanh(r->h[b][j]);
    }
    for (int k = 0; k < SYMBOLS; k++) {
      double logit = r->p[B2][k];
      for (int j = 0; j < HIDDEN; j++) logit += r->h[b][j] * r->p[W2][j * SYMBOLS + k];
      sum += r->q[b][k] = exp(logit);
    }
    for (int k = 0; k < SYMBOLS; k++) r->q[b][k] /= sum;
    loss -= log(r->q[b][labels[b]]) / BATCH;
  }
  return loss;
}

static void backward(reference *r, const int32_t *tokens, const int32_t *labels) {
  memset(r->g, 0, sizeof r->g);
  for (int b = 0; b < BATCH; b++) {
    double dh[HIDDEN] = {0};
    double dx[JOINED] = {0};
    for (int k = 0; k < SYMBOLS; k++) {
      const double dlogit = (r->q[b][k] - (k == labels[b])) / BATCH;
      r->g[B2][k] += dlogit;
      for (int j = 0; j < HIDDEN; j++) {
        r->g[W2][j * SYMBOLS + k] += r->h[b][j] * dlogit;
        dh[j] += r->p[W2][j * SYMBOLS + k] * dlogit;
      }
    }
    for (int j = 0; j < HIDDEN; j++) {
      const double d = dh[j] * (1 - r->h[b][j] * r->h[b][j]);
      r->g[B1][j] += d;
      for (int i = 0; i < JOINED; i++) {
        r->g[W1][i * HIDDEN + j] += r->x[b][i] * d;
        dx[i] += r->p[W1][i * HIDDEN + j] * d;
      }
    }
    for (int i = 0; i < JOINED; i++) r->g[TABLE][tokens[b * CONTEXT + i / WIDTH] * WIDTH + i % WIDTH] += dx[i];
  }
}

static void update(reference *r, optimizer kind, double rate) {
  r->step++;
  for (int t = 0; t < PARAMETERS; t++) {
    for (size_t i = 0; i < parameter_count(t); i++) {
      const double g = r->g[t][i];
      if (kind == ADAM) {
        r->m[t][i] = 0.9 * r->m[t][i] + 0.1 * g;
        r->v[t][i] = 0.999 * r->v[t][i] + 0.001 * g * g;
        const double m = r->m[t][i] / (1 - pow(0.9, r->step));
        const double v = r->v[t][i] / (1 - pow(0.999, r->step));
        r->p[t][i] -= rate * m / (sqrt(v) + 1e-8);
      } else {
        r->m[t][i] = (kind == MOMENTUM ? 0.9 : 0.0) * r->m[t][i] + g;
        r->p[t][i] -= rate * r->m[t][i];
      }
    }
  }
}

static void start_reference(reference *r) {
  float values[JOINED * HIDDEN];
  memset(r, 0, sizeof *r);
  for (int t = 0; t < PARAMETERS; t++) {
    fill_parameter(t, values);
    for (size_t i = 0; i < parameter_count(t); i++) r->p[t][i] = (double)values[i];
  }
}

static void assert_parameters(rondo_compiled *compiled, const reference *r) {
  float values[JOINED * HIDDEN], wanted[JOINED * HIDDEN];
  for (int t = 0; t < PARAMETERS; t++) {
    const size_t count = parameter_count(t);
    assert_ok(rondo_compiled_read(compiled, parameters[t].name, values, count * sizeof *values));
    for (size_t i = 0; i < count; i++) wanted[i] = (float)r->p[t][i];
    assert_near(values, wanted, count, 1e-4f);
  }
}

static reference ref;

/* Also with a rate that changes between steps. */
TEST(test_fw4_fw5_three_steps_agree_with_double_precision) {
  const float rates[] = {0.01f, 0.003f, 0.02f};
  for (optimizer kind = ADAM; kind <= MOMENTUM; kind++) {
    model m = make_model(t->device, kind, false);
    start_reference(&ref);
    for (size_t step = 0; step < 3; step++) {
      int32_t tokens[BATCH * CONTEXT], labels[BATCH];
      uint64_t seed = m.seed;
      next_batch(&seed, tokens, labels);
      write_batch(&m);
      assert_ok(rondo_compiled_write(m.compiled, "rate", &rates[step], sizeof rates[step]));
      assert_ok(rondo_compiled_run(m.compiled));
      const float wanted = (float)forward(&ref, tokens, labels);
      const float loss = read_loss(&m);
      backward(&ref, tokens, labels);
      update(&ref, kind, (double)rates[step]);
      assert_near(&loss, &wanted, 1, 1e-4f);
      assert_parameters(m.compiled, &ref);
    }
    assert_ok(rondo_compiled_destroy(m.compiled));
  }
}

TEST(test_fw4_adam_counts_its_steps_on_the_device) {
  model m = make_model(t->device, ADAM, false);
  int32_t steps = -1;
  assert_ok(rondo_compiled_read(m.compiled, "adam.step", &steps, sizeof steps));
  assert_int_equal(steps, 0);
  for (int i = 0; i < 7; i++) assert_ok(rondo_compiled_run(m.compiled));
  assert_ok(rondo_compiled_read(m.compiled, "adam.step", &steps, sizeof steps));
  assert_int_equal(steps, 7);
  assert_ok(rondo_compiled_destroy(m.compiled));
}

/* A rate of 0 changes nothing, whatever was captured; the exec is not updated. */
TEST(test_fw5_a_cell_changes_runs_without_touching_the_graph) {
  model m = make_model(t->device, SGD, false);
  const float zero = 0, one = 1;
  write_batch(&m);
  assert_ok(rondo_compiled_write(m.compiled, "rate", &zero, sizeof zero));
  read_states(m.compiled, &expected);
  for (int i = 0; i < 3; i++) assert_ok(rondo_compiled_run(m.compiled));
  read_states(m.compiled, &got);
  assert_memory_equal(got.states, expected.states, got.count * sizeof *got.states);
  assert_ok(rondo_compiled_write(m.compiled, "rate", &one, sizeof one));
  assert_ok(rondo_compiled_run(m.compiled));
  read_states(m.compiled, &got);
  assert_memory_not_equal(got.states, expected.states, got.count * sizeof *got.states);
  float rate = 0;
  assert_ok(rondo_compiled_read(m.compiled, "rate", &rate, sizeof rate));
  assert_true(rate == one);
  rondo_exec_info info = test_exec_info(rondo_compiled_exec(m.compiled));
  assert_int_equal(info.updates, 0);
  assert_int_equal(info.launches, 4);
  assert_ok(rondo_compiled_destroy(m.compiled));
}

/* FW-4: of F16 and BF16 values too, with the value's type, where it has several readers, and where it has none. */
TEST(test_values_of_half_types_have_gradients) {
  static const struct {
    rondo_type type;
    uint16_t values[4], wanted[4]; /* 1, 2, 3, 4; 2 h + 1 */
  } forms[] = {{RONDO_F16, {0x3c00, 0x4000, 0x4200, 0x4400}, {0x4200, 0x4500, 0x4700, 0x4880}},
               {RONDO_BF16, {0x3f80, 0x4000, 0x4040, 0x4080}, {0x4040, 0x40a0, 0x40e0, 0x4110}}};
  const size_t shape[] = {4};
  for (size_t i = 0; i < 2; i++) {
    rondo_value asked[2], square, sum, loss, gradients[2];
    uint16_t read[4], zeros[4] = {0};
    rondo_program *program = test_new_program();
    assert_ok(rondo_program_input(program, "h", forms[i].type, shape, 1, &asked[0]));
    assert_ok(rondo_program_input(program, "unread", forms[i].type, shape, 1, &asked[1]));
    assert_ok(rondo_op_mul(program, asked[0], asked[0], &square));
    assert_ok(rondo_op_add(program, square, asked[0], &sum));
    assert_ok(rondo_op_cast(program, sum, RONDO_F32, &loss));
    assert_ok(rondo_op_sum(program, loss, NULL, 0, false, &loss));
    assert_ok(rondo_program_gradients(program, loss, asked, 2, gradients));
    assert_ok(rondo_program_output(program, "gradient", gradients[0]));
    assert_ok(rondo_program_output(program, "none", gradients[1]));
    rondo_compiled *compiled = test_compile(program, t->device, NULL);
    assert_ok(rondo_compiled_write(compiled, "h", forms[i].values, sizeof forms[i].values));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "gradient", read, sizeof read));
    assert_memory_equal(read, forms[i].wanted, sizeof read);
    assert_ok(rondo_compiled_read(compiled, "none", read, sizeof read));
    assert_memory_equal(read, zeros, sizeof read);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}
