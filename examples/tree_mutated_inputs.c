/* SPDX-License-Identifier: MIT
 * Functions that write to their inputs, after an example in the documentation of PyTorch's CUDAGraph Trees. A function
 * may write what a recorded function before it returned. It may write memory of the caller that is at another address
 * each time only if that is declared. Otherwise the call runs eagerly and reports the reason.
 *
 *   tree_mutated_inputs [DEVICE]
 *
 * Prints: foo and mut: 2 recordings; mut alone: MUTATED_INPUT; declared: replayed, x = 9
 */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { COUNT = 4, BYTES = COUNT * sizeof(float), STEPS = 3 };

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *add, *add_in_place;
  rondo_tree *tree;
  rondo_function *foo, *mut, *declared;
  void *x;
} program;

static void add_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float **)args[0];
  float *y = *(float **)args[1];
  for (size_t i = blocks.first; i < blocks.last; i++) y[i] = x[i] + 1;
}
static const char add_cuda[] =
    "extern \"C\" __global__ void add(const float *x, float *y) { y[blockIdx.x] = x[blockIdx.x] + 1; }\n";

static void add_in_place_cpu(rondo_blocks blocks, void *const *args) {
  float *x = *(float **)args[0];
  for (size_t i = blocks.first; i < blocks.last; i++) x[i] += 2;
}
static const char add_in_place_cuda[] = "extern \"C\" __global__ void add_in_place(float *x) { x[blockIdx.x] += 2; }\n";

/* return x + 1 */
static rondo_status foo(rondo_call *call, void *user) {
  const program *p = user;
  void *x = rondo_call_input(call, 0), *y;
  TRY(rondo_call_output(call, 0, BYTES, NULL, &y));
  return rondo_launch(rondo_call_stream(call), p->add, (rondo_grid){COUNT, 0, 0}, RONDO_ARGS(&x, &y));
}

/* return x.add_(2) */
static rondo_status mut(rondo_call *call, void *user) {
  const program *p = user;
  void *x = rondo_call_input(call, 0);
  TRY(rondo_launch(rondo_call_stream(call), p->add_in_place, (rondo_grid){COUNT, 0, 0}, RONDO_ARGS(&x)));
  return rondo_call_output_of_input(call, 0, 0, 0, BYTES, NULL);
}

static rondo_status write_x(const program *p, float value) {
  const float host[COUNT] = {value, value, value, value};
  TRY(rondo_copy_async(p->stream, p->x, host, sizeof host));
  return rondo_stream_synchronize(p->stream);
}

static rondo_status read_float(const program *p, const void *from, float *out) {
  TRY(rondo_copy_async(p->stream, out, from, sizeof *out));
  return rondo_stream_synchronize(p->stream);
}

static rondo_status call_on_x(const program *p, rondo_function *function, rondo_buffer **out) {
  const rondo_input x = {.address = p->x, .bytes = BYTES};
  return rondo_function_call(function, p->stream, &x, 1, out, 1);
}

/* mut receives the output of foo: both are recorded. */
static rondo_status run_both(const program *p) {
  for (int step = 0; step < STEPS; step++) {
    rondo_buffer *tmp, *out;
    TRY(write_x(p, (float)step));
    TRY(rondo_tree_mark_step(p->tree));
    TRY(call_on_x(p, p->foo, &tmp));
    TRY(rondo_function_call(p->mut, p->stream, &(rondo_input){.buffer = tmp}, 1, &out, 1));
    rondo_buffer_release(tmp); /* `out` is a part of it and holds it */
    rondo_buffer_release(out);
  }
  return RONDO_OK;
}

/* The same function on memory of the caller, which is written in place. */
static rondo_status run_alone(const program *p, rondo_function *function, rondo_call_info *last, float *x) {
  TRY(write_x(p, 3));
  for (int step = 0; step < STEPS; step++) {
    rondo_buffer *out;
    TRY(rondo_tree_mark_step(p->tree));
    TRY(call_on_x(p, function, &out));
    rondo_buffer_release(out);
  }
  TRY(rondo_tree_get_last_call(p->tree, last));
  return read_float(p, p->x, x);
}

static rondo_status add_function(program *p, const char *name, rondo_function_body body, uint32_t input,
                                 rondo_function **out) {
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = name, .body = body, .user = p, .inputs = &input, .input_count = 1};
  return rondo_function_create(p->tree, &options, out);
}

static rondo_status set_up(program *p, const char *name) {
  const rondo_kernel_options add = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "add",      .cpu = add_cpu,
      .cuda_source = add_cuda,   .block_threads = 1, .params = {RONDO_READS, RONDO_WRITES}};
  const rondo_kernel_options add_in_place = {RONDO_KERNEL_OPTIONS_INIT, .name = "add_in_place",
                                             .cpu = add_in_place_cpu,   .cuda_source = add_in_place_cuda,
                                             .block_threads = 1,        .params = {RONDO_UPDATES}};
  TRY(rondo_device_open(name, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &add, &p->add));
  TRY(rondo_kernel_create(p->device, &add_in_place, &p->add_in_place));
  TRY(rondo_malloc(p->device, BYTES, "x", &p->x));
  TRY(rondo_tree_create(p->device, NULL, &p->tree));
  TRY(add_function(p, "foo", foo, RONDO_INPUT_MOVING, &p->foo));
  TRY(add_function(p, "mut", mut, RONDO_INPUT_MOVING, &p->mut));
  return add_function(p, "mut, declared", mut, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, &p->declared);
}

static rondo_status tear_down(const program *p) {
  TRY(rondo_tree_destroy(p->tree));
  TRY(rondo_free(p->device, p->x));
  rondo_kernel_destroy(p->add);
  rondo_kernel_destroy(p->add_in_place);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p, const char *name) {
  rondo_tree_info info = {.struct_size = sizeof info};
  rondo_call_info alone = {.struct_size = sizeof alone}, declared = {.struct_size = sizeof declared};
  float x, y;
  TRY(set_up(p, name));
  TRY(run_both(p));
  TRY(rondo_tree_get_info(p->tree, &info));
  TRY(run_alone(p, p->mut, &alone, &x));
  const rondo_skip skip = alone.skip;
  TRY(run_alone(p, p->declared, &declared, &y));
  printf("foo and mut: %u recordings; mut alone: %s; declared: %s, x = %g\n", info.recordings, rondo_skip_name(skip),
         declared.outcome == RONDO_CALL_REPLAYED ? "replayed" : "not replayed", (double)(x == y ? y : -1));
  return tear_down(p);
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  if (run(&p, argc > 1 ? argv[1] : "cpu") == RONDO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
