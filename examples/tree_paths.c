/* SPDX-License-Identifier: MIT
 * A program with a branch on the host: part 1, then 2 or 3 depending on the result of part 1, then 4. Each part is an
 * ordinary C function. Its first call is a warm-up, its second is recorded and later ones are replayed. The recordings
 * form a tree with two branches, which share one arena.
 *
 *   tree_paths [DEVICE]
 *
 * Prints: 8 steps: 5 recordings, 14 of 24 calls replayed
 */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { COUNT = 1024, BLOCK = 128, BYTES = COUNT * sizeof(float), STEPS = 8 };

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *cube, *scale;
  rondo_generator *generator;
  rondo_tree *tree;
  rondo_function *graphs[4];
  void *x;
} program;

static void cube_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float **)args[0];
  float *y = *(float **)args[1];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) y[i] = x[i] * x[i] * x[i];
}
static const char cube_cuda[] =
    "extern \"C\" __global__ void cube(const float *x, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] = x[i] * x[i] * x[i];\n"
    "}\n";

static void scale_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float **)args[0], *by = *(const float **)args[1];
  float *y = *(float **)args[2];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) y[i] = x[i] * by[i];
}
static const char scale_cuda[] =
    "extern \"C\" __global__ void scale(const float *x, const float *by, float *y) {\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  y[i] = x[i] * by[i];\n"
    "}\n";

/* The four parts. Each is the same code whether it runs or is recorded. */

/* y = x * x * x */
static rondo_status graph_1(rondo_call *call, void *user) {
  const program *p = user;
  void *x = rondo_call_input(call, 0), *y;
  TRY(rondo_call_output(call, 0, BYTES, NULL, &y));
  return rondo_launch(rondo_call_stream(call), p->cube, (rondo_grid){COUNT / BLOCK, 0, 0}, RONDO_ARGS(&x, &y));
}

/* z = y * y */
static rondo_status graph_2(rondo_call *call, void *user) {
  const program *p = user;
  void *y = rondo_call_input(call, 0), *z;
  TRY(rondo_call_output(call, 0, BYTES, NULL, &z));
  return rondo_launch(rondo_call_stream(call), p->scale, (rondo_grid){COUNT / BLOCK, 0, 0}, RONDO_ARGS(&y, &y, &z));
}

/* z = (y * y) * y, with scratch memory of this part */
static rondo_status graph_3(rondo_call *call, void *user) {
  const program *p = user;
  const rondo_grid grid = {COUNT / BLOCK, 0, 0};
  rondo_stream *stream = rondo_call_stream(call);
  void *y = rondo_call_input(call, 0), *square, *z;
  TRY(rondo_malloc_async(stream, BYTES, NULL, &square));
  TRY(rondo_call_output(call, 0, BYTES, NULL, &z));
  TRY(rondo_launch(stream, p->scale, grid, RONDO_ARGS(&y, &y, &square)));
  TRY(rondo_launch(stream, p->scale, grid, RONDO_ARGS(&square, &y, &z)));
  return rondo_free_async(stream, square);
}

/* z * random numbers: a replay draws what an eager run would */
static rondo_status graph_4(rondo_call *call, void *user) {
  const program *p = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *z = rondo_call_input(call, 0), *random, *out;
  TRY(rondo_malloc_async(stream, BYTES, NULL, &random));
  TRY(rondo_random_uniform(p->generator, stream, random, COUNT, 0.5f, 1));
  TRY(rondo_call_output(call, 0, BYTES, NULL, &out));
  TRY(rondo_launch(stream, p->scale, (rondo_grid){COUNT / BLOCK, 0, 0}, RONDO_ARGS(&z, &random, &out)));
  return rondo_free_async(stream, random);
}

static rondo_status call(const program *p, size_t graph, rondo_buffer *in, rondo_buffer **out) {
  rondo_input input = {.buffer = in, .give = in != NULL}; /* not needed after this call */
  if (in == NULL) input = (rondo_input){.address = p->x, .bytes = BYTES};
  return rondo_function_call(p->graphs[graph], p->stream, &input, 1, out, 1);
}

/* The host branches on this value. */
static rondo_status first_of(const program *p, const rondo_buffer *buffer, float *out) {
  TRY(rondo_buffer_copy(buffer, p->stream, 0, out, sizeof *out));
  return rondo_stream_synchronize(p->stream);
}

static rondo_status foo(program *p, float *out) {
  rondo_buffer *y, *z, *result;
  float first;
  TRY(call(p, 0, NULL, &y));
  TRY(first_of(p, y, &first));
  TRY(call(p, first > 0 ? 1 : 2, y, &z));
  TRY(call(p, 3, z, &result));
  TRY(first_of(p, result, out));
  rondo_buffer_release(result);
  return RONDO_OK;
}

static rondo_status step(program *p, float value, float *out) {
  float host[COUNT];
  for (size_t i = 0; i < COUNT; i++) host[i] = value;
  TRY(rondo_copy_async(p->stream, p->x, host, sizeof host));
  TRY(rondo_stream_synchronize(p->stream));
  TRY(rondo_tree_step_begin(p->tree)); /* all calls of a step belong to one path */
  TRY(foo(p, out));
  return rondo_tree_step_end(p->tree);
}

static rondo_status add_function(program *p, size_t index, const char *name, rondo_function_body body) {
  static const uint32_t inputs[] = {RONDO_INPUT_MOVING};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = name, .body = body, .user = p, .inputs = inputs, .input_count = 1};
  return rondo_function_create(p->tree, &options, &p->graphs[index]);
}

static rondo_status set_up(program *p, const char *name) {
  const rondo_kernel_options cube = {RONDO_KERNEL_OPTIONS_INIT, .name = "cube",
                                     .cpu = cube_cpu,           .cuda_source = cube_cuda,
                                     .block_threads = BLOCK,    .params = {RONDO_READS, RONDO_WRITES}};
  const rondo_kernel_options scale = {RONDO_KERNEL_OPTIONS_INIT, .name = "scale",
                                      .cpu = scale_cpu,          .cuda_source = scale_cuda,
                                      .block_threads = BLOCK,    .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}};
  TRY(rondo_device_open(name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &cube, &p->cube));
  TRY(rondo_kernel_create(p->device, &scale, &p->scale));
  TRY(rondo_generator_create(p->device, NULL, &p->generator));
  TRY(rondo_malloc(p->device, BYTES, "x", &p->x));
  TRY(rondo_tree_create(p->device, NULL, &p->tree));
  TRY(add_function(p, 0, "graph 1", graph_1));
  TRY(add_function(p, 1, "graph 2", graph_2));
  TRY(add_function(p, 2, "graph 3", graph_3));
  return add_function(p, 3, "graph 4", graph_4);
}

static rondo_status tear_down(program *p) {
  TRY(rondo_tree_destroy(p->tree)); /* with its functions */
  TRY(rondo_free(p->device, p->x));
  rondo_generator_destroy(p->generator);
  rondo_kernel_destroy(p->cube);
  rondo_kernel_destroy(p->scale);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p, const char *name, rondo_tree_info *info) {
  static const float values[STEPS] = {1, 1, 1, -1, -1, -1, 1, -1}; /* part 2 three times, then 3, then both */
  float out;
  TRY(set_up(p, name));
  for (size_t i = 0; i < STEPS; i++) TRY(step(p, values[i], &out));
  TRY(rondo_tree_get_info(p->tree, info));
  printf("%d steps: %u recordings, %llu of %llu calls replayed\n", STEPS, info->recordings,
         (unsigned long long)info->replayed, (unsigned long long)info->calls);
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  rondo_tree_info info = {.struct_size = sizeof info};
  if (run(&p, argc > 1 ? argv[1] : "cpu", &info) != RONDO_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  return info.recordings == 5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
