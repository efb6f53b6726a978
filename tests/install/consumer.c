/* SPDX-License-Identifier: MIT
 * A program outside the source tree, as a new user writes it. It runs one kernel from a graph and checks the result,
 * which shows that the installed headers and the library fit together.
 */
#include <stdio.h>
#include <string.h>

#include <rondo/rondo.h>

enum { COUNT = 1024, BLOCK = 256 };

static void add_one(rondo_blocks blocks, void *const *args) {
  float *values = *(float *const *)args[0];
  for (size_t i = blocks.first * BLOCK; i < blocks.last * BLOCK; i++) values[i] += 1.0f;
}

static rondo_status record(rondo_stream *stream, rondo_kernel *kernel, float *values, rondo_exec **out_exec) {
  rondo_graph *graph = NULL;
  rondo_status status = rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL);
  if (status != RONDO_OK) return status;
  const rondo_status launched = rondo_launch(stream, kernel, (rondo_grid){.x = COUNT / BLOCK}, RONDO_ARGS(&values));
  status = rondo_capture_end(stream, &graph);
  if (launched != RONDO_OK) status = launched;
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, out_exec);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status != RONDO_OK ? status : destroyed;
}

static rondo_status run(rondo_device *device, rondo_stream *stream, rondo_kernel *kernel, float *values) {
  rondo_exec *exec = NULL;
  void *memory = NULL;
  const size_t bytes = COUNT * sizeof *values;
  rondo_status status = rondo_malloc(device, bytes, "values", &memory);
  if (status == RONDO_OK) status = rondo_copy_async(stream, memory, values, bytes);
  if (status == RONDO_OK) status = record(stream, kernel, memory, &exec);
  for (int step = 0; step < 10 && status == RONDO_OK; step++) status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_copy_async(stream, values, memory, bytes);
  const rondo_status finished = rondo_stream_synchronize(stream);
  if (status == RONDO_OK) status = finished;
  rondo_exec_destroy(exec);
  const rondo_status freed = rondo_free(device, memory);
  return status != RONDO_OK ? status : freed;
}

int main(void) {
  rondo_device *device = NULL;
  rondo_stream *stream = NULL;
  rondo_kernel *kernel = NULL;
  float values[COUNT] = {0};
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "add_one", .cpu = add_one,
                                        .params = {RONDO_UPDATES}};

  rondo_status status = rondo_device_open("cpu", NULL, &device);
  if (status == RONDO_OK) status = rondo_stream_create(device, NULL, &stream);
  if (status == RONDO_OK) status = rondo_kernel_create(device, &options, &kernel);
  if (status == RONDO_OK) status = run(device, stream, kernel, values);
  rondo_kernel_destroy(kernel);
  if (rondo_stream_destroy(stream) != RONDO_OK || (device != NULL && rondo_device_close(device) != RONDO_OK)) return 1;

  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  const int right = status == RONDO_OK && values[0] == 10.0f && values[COUNT - 1] == 10.0f &&
                    strcmp(rondo_version(), RONDO_VERSION_STRING) == 0;
  printf("%s %s\n", rondo_version(), right ? "ok" : "wrong");
  return right ? 0 : 1;
}
