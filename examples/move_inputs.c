/* SPDX-License-Identifier: MIT
 * Launches one recording with its input at a different address each time, without copying the input. A patch set knows
 * which nodes read the input. A second recording of the same work, with the input at another address, reveals a value
 * that is frozen into the first.
 *
 *   move_inputs [DEVICE]
 *
 * Prints: scaled by 2: 20 40 60, read by 1 node; frozen: kernel 'scale' (node 0), argument 2
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { INPUTS = 3 };

static void scale_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(int **)args[1] = **(const int *const *)args[0] * *(const int *)args[2];
}

static const char scale_cuda[] =
    "extern \"C\" __global__ void scale(const int *in, int *out, int by) { if (threadIdx.x == 0) *out = *in * by; }";

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *scale;
  void *inputs[INPUTS], *out;
} program;

static rondo_status set_up(program *p, const char *device) {
  const rondo_kernel_options scale = {RONDO_KERNEL_OPTIONS_INIT, .name = "scale", .cpu = scale_cpu,
                                      .cuda_source = scale_cuda,
                                      .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(int)}};
  TRY(rondo_device_open(device, NULL, &p->device));
  TRY(rondo_stream_create(p->device, NULL, &p->stream));
  TRY(rondo_kernel_create(p->device, &scale, &p->scale));
  TRY(rondo_malloc(p->device, sizeof(int), "out", &p->out));
  for (int i = 0; i < INPUTS; i++) {
    const int value = 10 * (i + 1);
    TRY(rondo_malloc(p->device, sizeof value, "input", &p->inputs[i]));
    TRY(rondo_copy_async(p->stream, p->inputs[i], &value, sizeof value));
    TRY(rondo_stream_synchronize(p->stream));
  }
  return RONDO_OK;
}

/* out = in * by */
static rondo_status record(const program *p, void *const *in, int by, rondo_graph **out_graph) {
  TRY(rondo_capture_begin(p->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(p->stream, p->scale, (rondo_grid){.x = 1}, RONDO_ARGS(in, &p->out, &by)));
  return rondo_capture_end(p->stream, out_graph);
}

/* The exec was recorded with the first input. The declarations of the kernels tell which nodes read it. */
static rondo_status launch_with_each(const program *p, rondo_exec *exec) {
  const rondo_patch_input input = {.name = "in", .address = p->inputs[0], .bytes = sizeof(int)};
  rondo_patch_input_info info = {.struct_size = sizeof info};
  rondo_patch_set *set;
  int results[INPUTS];
  TRY(rondo_patch_set_create(exec, &input, 1, NULL, &set));
  for (int i = 0; i < INPUTS; i++) {
    const void *const addresses[] = {p->inputs[i]};
    TRY(rondo_patch_set_launch(set, p->stream, addresses));
    TRY(rondo_copy_async(p->stream, &results[i], p->out, sizeof results[i]));
    TRY(rondo_stream_synchronize(p->stream));
  }
  TRY(rondo_patch_set_get_input(set, 0, &info));
  printf("scaled by 2: %d %d %d, read by %u node; ", results[0], results[1], results[2], (unsigned)info.nodes);
  rondo_patch_set_destroy(set);
  return RONDO_OK;
}

/* Eager work would now scale by another factor. Launches of the first recording do not. */
static rondo_status find_frozen(const program *p, rondo_exec *exec, bool *out_is_found) {
  rondo_graph *second;
  rondo_patch_set *set;
  rondo_patch_finding finding = {.struct_size = sizeof finding};
  TRY(record(p, &p->inputs[1], 3, &second));
  const rondo_patch_input input = {.name = "in",
                                   .bytes = sizeof(int),
                                   .moved = p->inputs[1],
                                   .address = p->inputs[INPUTS - 1]}; /* as in the last launch */
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = second};
  TRY(rondo_patch_set_create(exec, &input, 1, &options, &set));
  TRY(rondo_patch_set_get_finding(set, 0, &finding));
  printf("frozen: %.*s\n", (int)(strstr(finding.message, " at byte") - finding.message), finding.message);
  *out_is_found = finding.kind == RONDO_PATCH_FROZEN;
  rondo_patch_set_destroy(set);
  return rondo_graph_destroy(second);
}

static rondo_status tear_down(const program *p) {
  for (int i = 0; i < INPUTS; i++) TRY(rondo_free(p->device, p->inputs[i]));
  TRY(rondo_free(p->device, p->out));
  rondo_kernel_destroy(p->scale);
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(const char *device, bool *out_is_right) {
  program p;
  rondo_graph *first;
  rondo_exec *exec;
  TRY(set_up(&p, device));
  TRY(record(&p, &p.inputs[0], 2, &first));
  TRY(rondo_instantiate(first, NULL, &exec));
  TRY(launch_with_each(&p, exec));
  TRY(find_frozen(&p, exec, out_is_right));
  rondo_exec_destroy(exec);
  TRY(rondo_graph_destroy(first));
  return tear_down(&p);
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
