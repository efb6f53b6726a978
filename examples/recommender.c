/* SPDX-License-Identifier: MIT
 * Trains a recommender (after DLRM: Naumov et al. 2019). Embedding bags and the output of a bottom MLP are multiplied
 * with each other, and a top MLP predicts clicks from the products. The training step is recorded as one graph.
 * Inference is a second program with the same weights. The last function serves it: as a shared object, this file is a
 * model for Triton Inference Server (<rondo/triton.h>), with the weights that FILE has got.
 *
 *   recommender [DEVICE [FILE]]
 *
 * Prints: 9 of 10 new clicks predicted; 250 recorded steps have the losses of eager steps, bit for bit
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>
#include <rondo/triton.h>

#define TRY(call)                            \
  do {                                       \
    const rondo_status status_ = (call);     \
    if (status_ != RONDO_OK) return status_; \
  } while (0)

enum { BATCH = 128, DENSE = 13, TABLES = 8, ROWS = 50, WIDTH = 16, BAG = 2, PAIRS = (TABLES + 1) * TABLES / 2 };
enum { STEPS = 250, NEW_BATCHES = 16, NEW_CLICKS = NEW_BATCHES * BATCH };

/* The sizes of a recommender. Layers end with 0; the last of the bottom ones is `width`, the last of the top ones 1. */
typedef struct recommender_sizes {
  size_t batch, dense, tables, rows, width, bag, bottom[4], top[4];
} recommender_sizes;

static const recommender_sizes sizes = {BATCH, DENSE, TABLES, ROWS, WIDTH, BAG, {64, WIDTH}, {64, 1}};

/* Layers x · w + b with relu between them, and also after the last one if `ends_with_relu`. */
static rondo_status add_layers(rondo_program *program, const char *name, const size_t *widths, bool ends_with_relu,
                               rondo_value *x) {
  rondo_type type;
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  for (size_t i = 0; widths[i] != 0; i++) {
    char weight_name[32], bias_name[32];
    rondo_value weight;
    rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT};
    (void)snprintf(weight_name, sizeof weight_name, "%s.%zu.weight", name, i);
    (void)snprintf(bias_name, sizeof bias_name, "%s.%zu.bias", name, i);
    TRY(rondo_value_shape(program, *x, &type, shape, &rank));
    TRY(rondo_program_state(program, weight_name, RONDO_F32, (size_t[]){shape[1], widths[i]}, 2, &weight));
    TRY(rondo_program_state(program, bias_name, RONDO_F32, &widths[i], 1, &options.bias));
    if (widths[i + 1] != 0 || ends_with_relu) options.activation = RONDO_ACTIVATION_RELU;
    TRY(rondo_op_matmul_with(program, *x, weight, &options, x));
  }
  return RONDO_OK;
}

/* One state holds all tables, so that one kernel looks up all bags: [batch, tables, width]. */
static rondo_status add_bags(rondo_program *program, const recommender_sizes *s, rondo_value *out_bags) {
  const rondo_value none = {0};
  rondo_value tables, rows;
  TRY(rondo_program_state(program, "tables", RONDO_F32, (size_t[]){s->tables * s->rows, s->width}, 2, &tables));
  TRY(rondo_program_input(program, "rows", RONDO_I32, (size_t[]){s->batch, s->tables, s->bag}, 3, &rows));
  return rondo_op_embedding_bag(program, tables, rows, none, none, RONDO_COMBINE_SUM, out_bags);
}

/* x, followed by the products of all pairs of x [batch, width] and the bags. The state "pairs" lists the pairs. */
static rondo_status add_interaction(rondo_program *program, const recommender_sizes *s, rondo_value bags,
                                    rondo_value *x) {
  const size_t parts = s->tables + 1, count = parts * (parts - 1) / 2;
  rondo_value all, pairs, row;
  TRY(rondo_program_state(program, "pairs", RONDO_I32, &count, 1, &pairs));
  TRY(rondo_op_reshape(program, *x, (size_t[]){s->batch, 1, s->width}, 3, &row));
  TRY(rondo_op_concat(program, (rondo_value[]){row, bags}, 2, 1, &all));
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  TRY(rondo_op_matmul_with(program, all, all, &transposed, &all));
  TRY(rondo_op_reshape(program, all, (size_t[]){s->batch, parts * parts}, 2, &all));
  TRY(rondo_op_index_select(program, all, pairs, 1, &all));
  return rondo_op_concat(program, (rondo_value[]){*x, all}, 2, 1, x);
}

/* The logits of clicks [batch], from "dense" [batch, dense] and "rows" [batch, tables, bag]. */
static rondo_status add_recommender(rondo_program *program, const recommender_sizes *s, rondo_value *out_logits) {
  rondo_value x, bags;
  TRY(rondo_program_input(program, "dense", RONDO_F32, (size_t[]){s->batch, s->dense}, 2, &x));
  TRY(add_layers(program, "bottom", s->bottom, true, &x));
  TRY(add_bags(program, s, &bags));
  TRY(add_interaction(program, s, bags, &x));
  TRY(add_layers(program, "top", s->top, false, &x));
  return rondo_op_reshape(program, x, &s->batch, 1, out_logits);
}

/* The whole training step, or inference alone. */
static rondo_status compile_program(bool trains, rondo_device *device, rondo_compiled **out) {
  rondo_program *program;
  rondo_value logits, clicks, loss, rate;
  TRY(rondo_program_create(NULL, &program));
  TRY(add_recommender(program, &sizes, &logits));
  TRY(rondo_program_output(program, "logits", logits));
  if (trains) {
    TRY(rondo_program_input(program, "clicks", RONDO_F32, &sizes.batch, 1, &clicks));
    TRY(rondo_op_bce_with_logits(program, logits, clicks, RONDO_COMBINE_MEAN, &loss));
    TRY(rondo_program_output(program, "loss", loss));
    TRY(rondo_program_cell(program, "rate", 0.003f, &rate));
    TRY(rondo_program_adam(program, loss, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate}));
  }
  TRY(rondo_compile(program, device, NULL, out));
  rondo_program_destroy(program);
  return RONDO_OK;
}

typedef struct click_batch {
  float dense[BATCH][DENSE], clicks[BATCH];
  int32_t rows[BATCH][TABLES][BAG];
} click_batch;

static float draw(uint64_t series, uint64_t index) { /* -1 .. 1 */
  return (float)rondo_philox(2021, series, index).x[0] * 0x1p-31f - 1;
}

/* Each row of a table has a taste. There is a click if the tastes of pairs of tables agree. */
static void draw_batch(uint64_t number, click_batch *batch) {
  for (uint64_t i = 0; i < BATCH; i++) {
    float tastes[TABLES] = {0}, appeal = 0;
    uint64_t drawn = i * 64;
    for (int t = 0; t < TABLES; t++) {
      for (int k = 0; k < BAG; k++) {
        batch->rows[i][t][k] = t * ROWS + (int32_t)((draw(number, drawn++) + 1) / 2 * (ROWS - 1) + 0.5f);
        tastes[t] += draw(1000000, (uint64_t)batch->rows[i][t][k]);
      }
    }
    for (int k = 0; k < DENSE; k++) appeal += (batch->dense[i][k] = draw(number, drawn++)) / 2;
    for (int t = 0; t < TABLES; t += 2) appeal += tastes[t] * tastes[t + 1];
    batch->clicks[i] = appeal > 0;
  }
}

/* Initial weights. `network` names them: it has no optimizer states. */
static rondo_status write_first_weights(const rondo_compiled *network, rondo_compiled *training) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  int32_t pairs[PAIRS];
  for (int i = 1, pair = 0; i <= TABLES; i++) {
    for (int k = 0; k < i; k++) pairs[pair++] = i * (TABLES + 1) + k;
  }
  for (size_t i = 0; rondo_compiled_get_value(network, i, &value) == RONDO_OK && value.kind == 's'; i++) {
    float first[TABLES * ROWS * WIDTH] = {0};
    const float bound = sqrtf(3.0f / (float)(value.shape[0] < 64 ? value.shape[0] : 64));
    for (size_t k = 0; value.rank == 2 && k < value.bytes / sizeof(float); k++) first[k] = bound * draw(2000000 + i, k);
    const bool is_pairs = strcmp(value.name, "pairs") == 0;
    TRY(rondo_compiled_write(training, value.name, is_pairs ? (void *)pairs : first, value.bytes));
  }
  return RONDO_OK;
}

/* Runs a program on batch `number`: a training step, which returns the loss, or inference, which returns the logits. */
static rondo_status run_batch(rondo_compiled *compiled, bool trains, bool is_recorded, uint64_t number,
                              click_batch *batch, float *result) {
  draw_batch(number, batch);
  TRY(rondo_compiled_write(compiled, "dense", batch->dense, sizeof batch->dense));
  TRY(rondo_compiled_write(compiled, "rows", batch->rows, sizeof batch->rows));
  if (trains) TRY(rondo_compiled_write(compiled, "clicks", batch->clicks, sizeof batch->clicks));
  TRY(is_recorded ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
  return rondo_compiled_read(compiled, trains ? "loss" : "logits", result, (trains ? 1 : BATCH) * sizeof *result);
}

/* Writes the weights of the network, without optimizer states, to a file. */
static rondo_status save(rondo_compiled *network, const char *path) {
  rondo_weights *weights;
  TRY(rondo_weights_create(NULL, &weights));
  rondo_status status = rondo_weights_gather(weights, network, NULL, NULL);
  if (status == RONDO_OK) status = rondo_weights_save(weights, path);
  rondo_weights_destroy(weights);
  return status;
}

static rondo_status run(const char *name, const char *path, bool *out_good) {
  static float losses[2][STEPS], logits[BATCH];
  int right = 0;
  click_batch batch;
  rondo_device *device;
  rondo_compiled *training, *network;
  rondo_weights *first, *trained;
  TRY(rondo_device_open(name, NULL, &device));
  TRY(compile_program(true, device, &training));
  TRY(compile_program(false, device, &network));
  TRY(rondo_weights_create(NULL, &first));
  TRY(rondo_weights_create(NULL, &trained));
  TRY(write_first_weights(network, training));
  TRY(rondo_weights_gather(first, training, NULL, NULL));
  for (uint64_t i = 0; i < STEPS; i++) TRY(run_batch(training, true, true, i, &batch, &losses[0][i]));
  TRY(rondo_weights_gather(trained, training, NULL, NULL));
  TRY(rondo_weights_apply(first, training, NULL, NULL)); /* with the optimizer's states */
  for (uint64_t i = 0; i < STEPS; i++) TRY(run_batch(training, true, false, i, &batch, &losses[1][i]));
  TRY(rondo_weights_apply(trained, network, NULL, NULL));
  if (path != NULL) TRY(save(network, path));
  for (uint64_t number = STEPS; number < STEPS + NEW_BATCHES; number++) {
    TRY(run_batch(network, false, true, number, &batch, logits));
    for (int i = 0; i < BATCH; i++) right += (logits[i] > 0) == (batch.clicks[i] > 0);
  }
  const bool is_same = memcmp(losses[0], losses[1], sizeof losses[0]) == 0, has_learned = right >= 9 * NEW_CLICKS / 10;
  printf("the last loss is %.3f; %d of %d new clicks predicted\n", (double)losses[0][STEPS - 1], right, NEW_CLICKS);
  printf("%s of 10 new clicks predicted; %d recorded steps have the losses of eager steps%s\n",
         has_learned ? "9" : "fewer", STEPS, is_same ? ", bit for bit" : " nearly");
  *out_good = is_same && has_learned;
  rondo_weights_destroy(first);
  rondo_weights_destroy(trained);
  TRY(rondo_compiled_destroy(training));
  TRY(rondo_compiled_destroy(network));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  bool good = false;
  if (run(argc > 1 ? argv[1] : "cpu", argc > 2 ? argv[2] : NULL, &good) != RONDO_OK)
    fprintf(stderr, "%s\n", rondo_last_error()->message);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Serving ---------------------------------------------------------------------------------------------------------- */

static rondo_status build_network(void *user, size_t rows, rondo_program *program) {
  recommender_sizes served = sizes;
  rondo_value logits;
  (void)user;
  served.batch = rows;
  TRY(add_recommender(program, &served, &logits));
  return rondo_program_output(program, "logits", logits);
}

static void release(rondo_triton_description *description) { rondo_weights_destroy(description->user); }

/* Its weights are weights.safetensors in the folder of the model's version. */
rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out) {
  char path[4096];
  rondo_weights *weights;
  (void)snprintf(path, sizeof path, "%s/weights.safetensors", folder);
  TRY(rondo_weights_load(path, NULL, &weights));
  out->model.build = build_network;
  out->model.weights = weights;
  out->release = release;
  out->user = weights;
  return RONDO_OK;
}
