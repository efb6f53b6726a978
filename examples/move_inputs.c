/* SPDX-License-Identifier: MIT
 * One recording, launched with its input somewhere else each time, without copying the input: a patch set knows which
 * nodes read it. A second recording of the same work, with the input elsewhere, tells what is frozen into the first.
 *
 *   move_inputs [DEVICE]
 *
 * Prints: scaled by 2: 20 40 60, read by 1 node; frozen: kernel 'scale' (node 0), argument 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                                        \
  do {                                                                   \
    if ((call) != RONDO_OK) {                                            \
      fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message); \
      return EXIT_FAILURE;                                               \
    }                                                                    \
  } while (0)

enum { INPUTS = 3 };

static void scale_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(int **)args[1] = **(const int *const *)args[0] * *(const int *)args[2];
}

static const char scale_cuda[] =
    "extern \"C\" __global__ void scale(const int *in, int *out, int by) { if (threadIdx.x == 0) *out = *in * by; }";

/* out = in * by */
static rondo_status record(rondo_stream *stream, rondo_kernel *scale, const int *in, int *out, int by,
                           rondo_graph **out_graph) {
  rondo_status status = rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL);
  if (!status) status = rondo_launch(stream, scale, (rondo_grid){.x = 1}, RONDO_ARGS(&in, &out, &by));
  return status ? status : rondo_capture_end(stream, out_graph);
}

int main(int argc, char **argv) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *scale;
  void *inputs[INPUTS], *out;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  TRY(rondo_stream_create(device, NULL, &stream));
  TRY(rondo_kernel_create(
      device,
      &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "scale", .cpu = scale_cpu, .cuda_source = scale_cuda,
                              .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(int)}},
      &scale));
  TRY(rondo_malloc(device, sizeof(int), "out", &out));
  for (int i = 0; i < INPUTS; i++) {
    const int value = 10 * (i + 1);
    TRY(rondo_malloc(device, sizeof value, "input", &inputs[i]));
    TRY(rondo_copy_async(stream, inputs[i], &value, sizeof value));
    TRY(rondo_stream_synchronize(stream));
  }

  /* Recorded with the input at the first place; which nodes read it is what their kernels declare. */
  rondo_graph *first, *second;
  rondo_exec *exec;
  rondo_patch_set *set;
  rondo_patch_input input = {.name = "in", .address = inputs[0], .bytes = sizeof(int)};
  TRY(record(stream, scale, inputs[0], out, 2, &first));
  TRY(rondo_instantiate(first, NULL, &exec));
  TRY(rondo_patch_set_create(exec, &input, 1, NULL, &set));

  int results[INPUTS];
  for (int i = 0; i < INPUTS; i++) {
    const void *const addresses[] = {inputs[i]};
    TRY(rondo_patch_set_launch(set, stream, addresses));
    TRY(rondo_copy_async(stream, &results[i], out, sizeof results[i]));
    TRY(rondo_stream_synchronize(stream));
  }
  rondo_patch_input_info info = {.struct_size = sizeof info};
  TRY(rondo_patch_set_get_input(set, 0, &info));
  printf("scaled by 2: %d %d %d, read by %u node; ", results[0], results[1], results[2], (unsigned)info.nodes);
  rondo_patch_set_destroy(set);

  /* The work scales by something else the next time: launches of the first recording will not. */
  TRY(record(stream, scale, inputs[1], out, 3, &second));
  input.address = inputs[INPUTS - 1]; /* where the last launch had it */
  input.moved = inputs[1];
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = second};
  TRY(rondo_patch_set_create(exec, &input, 1, &options, &set));
  rondo_patch_finding finding = {.struct_size = sizeof finding};
  TRY(rondo_patch_set_get_finding(set, 0, &finding));
  printf("frozen: %.*s\n", (int)(strstr(finding.message, " at byte") - finding.message), finding.message);

  rondo_patch_set_destroy(set);
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(first));
  TRY(rondo_graph_destroy(second));
  for (int i = 0; i < INPUTS; i++) TRY(rondo_free(device, inputs[i]));
  TRY(rondo_free(device, out));
  rondo_kernel_destroy(scale);
  TRY(rondo_stream_destroy(stream));
  TRY(rondo_device_close(device));
  return finding.kind == RONDO_PATCH_FROZEN ? EXIT_SUCCESS : EXIT_FAILURE;
}
