/* SPDX-License-Identifier: MIT
 * Trains a convolutional classifier with batch normalization, a residual block (He et al. 2016), a depthwise separable
 * convolution (Howard et al. 2017), pooling and a linear head. It learns to distinguish four textures. The training
 * step is recorded as one graph and normalizes with the statistics of the batch. Inference is a second program with the
 * same weights. It uses the running statistics, so a result does not depend on the other images of the batch.
 *
 *   classifier [DEVICE]
 *
 * Prints: 19 of 20 new images classified correctly; 40 recorded steps have the losses of eager steps, bit for bit
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                            \
  do {                                       \
    const rondo_status status_ = (call);     \
    if (status_ != RONDO_OK) return status_; \
  } while (0)

enum { BATCH = 32, EDGE = 12, CLASSES = 4, STEPS = 40, NEW_BATCHES = 10, NEW_IMAGES = NEW_BATCHES * BATCH };

/* A network under construction, and the output of its last layer, [batch, channels, ..]. */
typedef struct network {
  rondo_program *program;
  bool trains;
  size_t channels;
  rondo_value x;
} network;

static rondo_status add_state(network *n, const char *layer, const char *what, const size_t *shape, size_t rank,
                              rondo_value *out) {
  char name[64];
  (void)snprintf(name, sizeof name, "%s.%s", layer, what);
  return rondo_program_state(n->program, name, RONDO_F32, shape, rank, out);
}

/* A convolution with stride 1 that keeps the image size, batch normalization, the sum with `before` if that is a value,
 * and relu. */
static rondo_status add_convolution(network *n, const char *name, size_t channels, size_t kernel, size_t groups,
                                    rondo_value before) {
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = (uint32_t)groups,
                                .padding = {kernel / 2, kernel / 2}};
  rondo_batch_norm_options norm = {RONDO_BATCH_NORM_OPTIONS_INIT, .momentum = 0.1f, .inference = !n->trains};
  rondo_value weight;
  TRY(add_state(n, name, "weight", (size_t[]){channels, n->channels / groups, kernel, kernel}, 4, &weight));
  TRY(add_state(n, name, "scale", &channels, 1, &norm.scale));
  TRY(add_state(n, name, "shift", &channels, 1, &norm.shift));
  TRY(add_state(n, name, "mean", &channels, 1, &norm.running_mean));
  TRY(add_state(n, name, "variance", &channels, 1, &norm.running_variance));
  TRY(rondo_op_conv(n->program, n->x, weight, &options, &n->x));
  TRY(rondo_op_batch_norm(n->program, n->x, &norm, &n->x));
  if (before.id != 0) TRY(rondo_op_add(n->program, n->x, before, &n->x));
  n->channels = channels;
  return rondo_op_relu(n->program, n->x, &n->x);
}

/* The logits of the classes for "images". */
static rondo_status add_classifier(network *n, rondo_value *out_logits) {
  const rondo_pooling_options halves = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  const rondo_value none = {0};
  rondo_value weight, bias;
  TRY(rondo_program_input(n->program, "images", RONDO_F32, (size_t[]){BATCH, 1, EDGE, EDGE}, 4, &n->x));
  TRY(add_convolution(n, "first", 16, 3, 1, none));
  const rondo_value before = n->x;
  TRY(add_convolution(n, "residual.0", 16, 3, 1, none));
  TRY(add_convolution(n, "residual.1", 16, 3, 1, before));
  TRY(rondo_op_max_pool(n->program, n->x, &halves, &n->x, NULL));
  TRY(add_convolution(n, "depthwise", 16, 3, 16, none));
  TRY(add_convolution(n, "pointwise", 32, 1, 1, none));
  TRY(rondo_op_mean(n->program, n->x, (size_t[]){2, 3}, 2, false, &n->x));
  TRY(add_state(n, "head", "weight", (size_t[]){n->channels, CLASSES}, 2, &weight));
  TRY(add_state(n, "head", "bias", (size_t[]){CLASSES}, 1, &bias));
  return rondo_op_matmul(n->program, n->x, weight, bias, out_logits);
}

/* The whole training step, or inference alone. */
static rondo_status compile_program(bool trains, rondo_device *device, rondo_compiled **out) {
  network n = {.trains = trains, .channels = 1};
  rondo_value logits, labels, loss, rate;
  TRY(rondo_program_create(NULL, &n.program));
  TRY(add_classifier(&n, &logits));
  if (trains) {
    TRY(rondo_program_input(n.program, "labels", RONDO_I32, (size_t[]){BATCH}, 1, &labels));
    TRY(rondo_op_cross_entropy(n.program, logits, labels, &loss));
    TRY(rondo_program_output(n.program, "loss", loss));
    TRY(rondo_program_cell(n.program, "rate", 0.005f, &rate));
    TRY(rondo_program_adam(n.program, loss, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate}));
  } else {
    TRY(rondo_op_argmax(n.program, logits, 1, false, &labels));
    TRY(rondo_program_output(n.program, "labels", labels));
  }
  TRY(rondo_compile(n.program, device, NULL, out));
  rondo_program_destroy(n.program);
  return RONDO_OK;
}

static float draw(uint64_t series, uint64_t index) { /* -1 .. 1 */
  return (float)rondo_philox(2016, series, index).x[0] * 0x1p-31f - 1;
}

/* Waves in one of four directions, with a random phase and noise. */
static void draw_batch(uint64_t number, float images[BATCH][EDGE][EDGE], int32_t labels[BATCH]) {
  static const float ways[CLASSES][2] = {{1, 0}, {0, 1}, {0.7f, 0.7f}, {0.7f, -0.7f}};
  for (uint64_t i = 0; i < BATCH; i++) {
    uint64_t drawn = i * 1024;
    const float phase = 3 * draw(number, drawn++), waves = 0.9f + 0.3f * draw(number, drawn++);
    labels[i] = (int32_t)(i % CLASSES);
    for (int y = 0; y < EDGE; y++) {
      for (int x = 0; x < EDGE; x++) {
        const float *way = ways[labels[i]];
        images[i][y][x] = sinf(waves * (way[0] * (float)x + way[1] * (float)y) + phase) + draw(number, drawn++);
      }
    }
  }
}

/* Initial weights. `inference` names them: it has no optimizer states. */
static rondo_status write_first_weights(const rondo_compiled *inference, rondo_compiled *training) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(inference, i, &value) == RONDO_OK && value.kind == 's'; i++) {
    float first[4096];
    const size_t count = value.bytes / sizeof *first,
                 inputs = value.rank == 4 ? count / value.shape[0] : value.shape[0];
    const bool is_one = strstr(value.name, ".scale") != NULL || strstr(value.name, ".variance") != NULL;
    for (size_t k = 0; k < count; k++)
      first[k] = value.rank > 1 ? sqrtf(6.0f / (float)inputs) * draw(1000000 + i, k) : is_one;
    TRY(rondo_compiled_write(training, value.name, first, value.bytes));
  }
  return RONDO_OK;
}

static rondo_status train(rondo_compiled *training, bool is_recorded, float *losses) {
  static float images[BATCH][EDGE][EDGE];
  int32_t labels[BATCH];
  for (uint64_t step = 0; step < STEPS; step++) {
    draw_batch(step, images, labels);
    TRY(rondo_compiled_write(training, "images", images, sizeof images));
    TRY(rondo_compiled_write(training, "labels", labels, sizeof labels));
    TRY(is_recorded ? rondo_compiled_run(training) : rondo_compiled_run_eager(training));
    TRY(rondo_compiled_read(training, "loss", &losses[step], sizeof losses[step]));
  }
  return RONDO_OK;
}

static rondo_status count_right(rondo_compiled *inference, int *out_right) {
  static float images[BATCH][EDGE][EDGE];
  int32_t labels[BATCH], told[BATCH];
  *out_right = 0;
  for (uint64_t number = STEPS; number < STEPS + NEW_BATCHES; number++) {
    draw_batch(number, images, labels);
    TRY(rondo_compiled_write(inference, "images", images, sizeof images));
    TRY(rondo_compiled_run(inference));
    TRY(rondo_compiled_read(inference, "labels", told, sizeof told));
    for (int i = 0; i < BATCH; i++) *out_right += told[i] == labels[i];
  }
  return RONDO_OK;
}

static rondo_status run(const char *name, bool *out_good) {
  static float losses[2][STEPS];
  int right;
  rondo_device *device;
  rondo_compiled *training, *inference;
  rondo_weights *first, *trained;
  TRY(rondo_device_open(name, NULL, &device));
  TRY(compile_program(true, device, &training));
  TRY(compile_program(false, device, &inference));
  TRY(rondo_weights_create(NULL, &first));
  TRY(rondo_weights_create(NULL, &trained));
  TRY(write_first_weights(inference, training));
  TRY(rondo_weights_gather(first, training, NULL, NULL));
  TRY(train(training, true, losses[0]));
  TRY(rondo_weights_gather(trained, training, NULL, NULL));
  TRY(rondo_weights_apply(first, training, NULL, NULL)); /* with the optimizer's states */
  TRY(train(training, false, losses[1]));
  TRY(rondo_weights_apply(trained, inference, NULL, NULL));
  TRY(count_right(inference, &right));
  const bool is_same = memcmp(losses[0], losses[1], sizeof losses[0]) == 0, has_learned = right >= NEW_IMAGES * 19 / 20;
  printf("the last loss is %.3f; %d of %d new images classified correctly\n", (double)losses[0][STEPS - 1], right,
         NEW_IMAGES);
  printf("%s of 20 new images classified correctly; %d recorded steps have the losses of eager steps%s\n",
         has_learned ? "19" : "fewer", STEPS, is_same ? ", bit for bit" : " nearly");
  *out_good = is_same && has_learned;
  rondo_weights_destroy(first);
  rondo_weights_destroy(trained);
  TRY(rondo_compiled_destroy(training));
  TRY(rondo_compiled_destroy(inference));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  bool good = false;
  if (run(argc > 1 ? argv[1] : "cpu", &good) != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
