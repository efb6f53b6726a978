/* SPDX-License-Identifier: MIT
 * Gradient accumulation. The weight and its gradient are buffers of the tree with fixed addresses that belong to no
 * step, so recordings update them in place. Each step accumulates the gradients of four small batches and then updates
 * the weight. Every batch is at another address, which is patched into the recording. The model is y = w x with w = 3.
 *
 *   tree_accumulation [DEVICE]
 *
 * Prints: 40 steps of 4 batches: w = 3.00, 2 recordings, 196 of 200 calls replayed
 */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { BATCH = 16, BATCHES = 4, BYTES = BATCH * sizeof(float), STEPS = 40 };

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *gradient, *update;
  rondo_tree *tree;
  rondo_function *backward, *optimizer;
  rondo_buffer *weight, *sum; /* a float each */
  void *batches[BATCHES];
} program;

/* One block, so that the order of the sum is fixed. */
static void gradient_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float **)args[0], *w = *(const float **)args[1];
  float *sum = *(float **)args[2];
  (void)blocks;
  for (int i = 0; i < BATCH; i++) *sum += 2 * (*w * x[i] - 3 * x[i]) * x[i] / (BATCH * BATCHES);
}
static const char gradient_cuda[] =
    "extern \"C\" __global__ void gradient(const float *x, const float *w, float *sum) {\n"
    "  for (int i = 0; i < 16; i++) *sum += 2 * (*w * x[i] - 3 * x[i]) * x[i] / 64;\n"
    "}\n";

static void update_cpu(rondo_blocks blocks, void *const *args) {
  float *w = *(float **)args[0], *sum = *(float **)args[1];
  (void)blocks;
  *w -= 0.5f * *sum;
  *sum = 0;
}
static const char update_cuda[] =
    "extern \"C\" __global__ void update(float *w, float *sum) { *w -= 0.5f * *sum; *sum = 0; }\n";

/* Inputs: a batch, the weight, the sum of gradients. */
static rondo_status backward(rondo_call *call, void *user) {
  const program *p = user;
  void *x = rondo_call_input(call, 0), *w = rondo_call_input(call, 1), *sum = rondo_call_input(call, 2);
  return rondo_launch(rondo_call_stream(call), p->gradient, (rondo_grid){1, 0, 0}, RONDO_ARGS(&x, &w, &sum));
}

/* Inputs: the weight, the sum of gradients. */
static rondo_status optimizer(rondo_call *call, void *user) {
  const program *p = user;
  void *w = rondo_call_input(call, 0), *sum = rondo_call_input(call, 1);
  return rondo_launch(rondo_call_stream(call), p->update, (rondo_grid){1, 0, 0}, RONDO_ARGS(&w, &sum));
}

static rondo_status step(const program *p) {
  TRY(rondo_tree_mark_step(p->tree));
  for (int i = 0; i < BATCHES; i++) {
    const rondo_input inputs[] = {
        {.address = p->batches[i], .bytes = BYTES}, {.buffer = p->weight}, {.buffer = p->sum}};
    TRY(rondo_function_call(p->backward, p->stream, inputs, 3, NULL, 0));
  }
  const rondo_input inputs[] = {{.buffer = p->weight}, {.buffer = p->sum}};
  return rondo_function_call(p->optimizer, p->stream, inputs, 2, NULL, 0);
}

/* No outputs of these functions are kept, so each call begins a path. */
static rondo_status make_functions(program *p) {
  static const uint32_t of_backward[] = {RONDO_INPUT_MOVING, RONDO_INPUT_STATIC,
                                         RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED};
  static const uint32_t of_optimizer[] = {RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED,
                                          RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED};
  const rondo_function_options first = {RONDO_FUNCTION_OPTIONS_INIT, .name = "backward", .body = backward, .user = p,
                                        .inputs = of_backward,       .input_count = 3};
  const rondo_function_options second = {RONDO_FUNCTION_OPTIONS_INIT, .name = "optimizer", .body = optimizer, .user = p,
                                         .inputs = of_optimizer,      .input_count = 2};
  TRY(rondo_function_create(p->tree, &first, &p->backward));
  return rondo_function_create(p->tree, &second, &p->optimizer);
}

static rondo_status make_zero(const program *p, rondo_buffer **out) {
  void *address;
  TRY(rondo_buffer_create(p->tree, sizeof(float), NULL, out));
  TRY(rondo_buffer_address(*out, &address));
  return rondo_fill_async(p->stream, &(rondo_fill){.dst = address, .element_bytes = sizeof(float), .width = 1});
}

static rondo_status make_batch(const program *p, int batch, void **out) {
  float host[BATCH];
  for (int i = 0; i < BATCH; i++) host[i] = (float)((batch * BATCH + i) % 7 - 3) / 3;
  TRY(rondo_malloc(p->device, BYTES, "batch", out));
  TRY(rondo_copy_async(p->stream, *out, host, BYTES));
  return rondo_stream_synchronize(p->stream);
}

static rondo_status set_up(program *p, const char *name) {
  const rondo_kernel_options gradient = {
      RONDO_KERNEL_OPTIONS_INIT,    .name = "gradient", .cpu = gradient_cpu,
      .cuda_source = gradient_cuda, .block_threads = 1, .params = {RONDO_READS, RONDO_READS, RONDO_UPDATES}};
  const rondo_kernel_options update = {RONDO_KERNEL_OPTIONS_INIT, .name = "update",
                                       .cpu = update_cpu,         .cuda_source = update_cuda,
                                       .block_threads = 1,        .params = {RONDO_UPDATES, RONDO_UPDATES}};
  TRY(rondo_device_open(name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &gradient, &p->gradient));
  TRY(rondo_kernel_create(p->device, &update, &p->update));
  TRY(rondo_tree_create(p->device, NULL, &p->tree));
  TRY(make_functions(p));
  TRY(make_zero(p, &p->weight));
  TRY(make_zero(p, &p->sum));
  for (int i = 0; i < BATCHES; i++) TRY(make_batch(p, i, &p->batches[i]));
  return RONDO_OK;
}

static rondo_status tear_down(const program *p) {
  rondo_buffer_release(p->weight);
  rondo_buffer_release(p->sum);
  TRY(rondo_tree_destroy(p->tree));
  for (int i = 0; i < BATCHES; i++) TRY(rondo_free(p->device, p->batches[i]));
  rondo_kernel_destroy(p->gradient);
  rondo_kernel_destroy(p->update);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p, const char *name) {
  rondo_tree_info info = {.struct_size = sizeof info};
  float weight;
  TRY(set_up(p, name));
  for (int i = 0; i < STEPS; i++) TRY(step(p));
  TRY(rondo_buffer_copy(p->weight, p->stream, 0, &weight, sizeof weight));
  TRY(rondo_stream_synchronize(p->stream));
  TRY(rondo_tree_get_info(p->tree, &info));
  printf("%d steps of %d batches: w = %.2f, %u recordings, %llu of %llu calls replayed\n", STEPS, BATCHES,
         (double)weight, info.recordings, (unsigned long long)info.replayed, (unsigned long long)info.calls);
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  if (run(&p, argc > 1 ? argv[1] : "cpu") == RONDO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
