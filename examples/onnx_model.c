/* SPDX-License-Identifier: MIT
 * A model of an ONNX file, in a session and in a tree. The session serves it by batch sizes: a builder makes its
 * program for each. The tree runs it with inputs of any shape, at any address: a runner has a program for each shape.
 * The model here is y = relu(x w) with x [rows, 2]; a program would load its file with rondo_onnx_load.
 *
 *   onnx_model [DEVICE]
 *
 * Prints: 12 requests and 12 calls, of which 6 were replayed, have the same results
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { MOST_ROWS = 3, RUNS = 12, FLOATS = MOST_ROWS * 2 };

static const unsigned char file[] =
    "\x08\x08\x3a\x7d\x0a\x14\x0a\x01x\x0a\x01w\x12\x01p\x1a\x01p\x22\x06MatMul\x0a\x0f\x0a\x01p\x12\x01y\x1a\x01y\x22"
    "\x04Relu\x12\x05layer\x2a\x1b\x08\x02\x08\x02\x10\x01\x42\x01w\x4a\x10\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40"
    "\x40\x00\x00\x80\x40\x5a\x17\x0a\x01x\x12\x12\x0a\x10\x08\x01\x12\x0c\x0a\x06\x12\x04rows\x0a\x02\x08\x02\x62\x17"
    "\x0a\x01y\x12\x12\x0a\x10\x08\x01\x12\x0c\x0a\x06\x12\x04rows\x0a\x02\x08\x02\x42\x02\x10\x11";

typedef struct app {
  rondo_device *device;
  rondo_stream *stream;
  rondo_onnx_model *model;
  rondo_onnx_builder *builder;
  rondo_session *session;
  rondo_onnx_runner *runner;
  rondo_tree *tree;
  rondo_function *function;
  void *memory[2];
  float served[RUNS][FLOATS], called[RUNS][FLOATS];
} app;

static size_t rows_of(size_t run) { return run % MOST_ROWS + 1; }

static void fill(float x[FLOATS], size_t run) {
  for (size_t i = 0; i < FLOATS; i++) x[i] = (float)((run + i) % 5) - 2;
}

/* In a session ----------------------------------------------------------------------------------------------------- */

static rondo_status start_session(app *a) {
  static const size_t history[] = {1, 2, 3};
  rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .history = history, .history_count = 3};
  TRY(rondo_onnx_builder_create(a->model, NULL, &a->builder));
  TRY(rondo_onnx_builder_fill_model(a->builder, &options));
  TRY(rondo_session_create(a->device, NULL, &a->session));
  TRY(rondo_session_add_model(a->session, "layer", &options));
  return rondo_session_capture(a->session, "layer");
}

static rondo_status serve(app *a, size_t run) {
  float x[FLOATS];
  const void *inputs[] = {x};
  void *outputs[] = {a->served[run]};
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = rows_of(run), .inputs = inputs, .outputs = outputs};
  fill(x, run);
  return rondo_session_run(a->session, "layer", &request, NULL);
}

/* In a tree -------------------------------------------------------------------------------------------------------- */

static rondo_status start_tree(app *a) {
  TRY(rondo_stream_create(a->device, NULL, &a->stream));
  TRY(rondo_tree_create(a->device, NULL, &a->tree));
  TRY(rondo_onnx_runner_create(a->model, a->stream, NULL, &a->runner));
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "layer", .body = rondo_onnx_run,
                                          .user = a->runner, RONDO_INPUTS(RONDO_INPUT_MOVING)};
  for (size_t i = 0; i < 2; i++) TRY(rondo_malloc(a->device, FLOATS * sizeof(float), NULL, &a->memory[i]));
  return rondo_function_create(a->tree, &options, &a->function);
}

static rondo_status call(app *a, size_t run) {
  float x[FLOATS];
  const size_t rows = rows_of(run), bytes = rows * 2 * sizeof *x;
  const rondo_input input = {.address = a->memory[run % 2], .bytes = bytes, .rank = 2, .shape = {rows, 2}};
  rondo_buffer *y;
  fill(x, run);
  TRY(rondo_copy_async(a->stream, input.address, x, bytes));
  TRY(rondo_function_call(a->function, a->stream, &input, 1, &y, 1));
  rondo_status status = rondo_buffer_copy(y, a->stream, 0, a->called[run], bytes);
  if (status == RONDO_OK) status = rondo_onnx_runner_synchronize(a->runner);
  rondo_buffer_release(y);
  return status;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status run(app *a, const char *device, rondo_function_info *out_info) {
  TRY(rondo_device_open(device, NULL, &a->device));
  TRY(rondo_onnx_parse(file, sizeof file - 1, NULL, &a->model));
  TRY(start_session(a));
  TRY(start_tree(a));
  for (size_t i = 0; i < RUNS; i++) TRY(serve(a, i));
  for (size_t i = 0; i < RUNS; i++) TRY(call(a, i));
  return rondo_function_get_info(a->function, out_info);
}

static rondo_status end(app *a) {
  rondo_status status = rondo_tree_destroy(a->tree);
  const rondo_status runner = rondo_onnx_runner_destroy(a->runner);
  if (status == RONDO_OK) status = runner;
  const rondo_status session = rondo_session_destroy(a->session);
  if (status == RONDO_OK) status = session;
  rondo_onnx_builder_destroy(a->builder);
  rondo_onnx_destroy(a->model);
  for (size_t i = 0; i < 2 && status == RONDO_OK && a->memory[i]; i++) status = rondo_free(a->device, a->memory[i]);
  if (status == RONDO_OK && a->stream) status = rondo_stream_destroy(a->stream);
  const rondo_status closed = rondo_device_close(a->device);
  return status == RONDO_OK ? closed : status;
}

int main(int argc, char **argv) {
  static app a;
  rondo_function_info info = {.struct_size = sizeof info};
  const rondo_status status = run(&a, argc > 1 ? argv[1] : "cpu", &info);
  if (status != RONDO_OK) fprintf(stderr, "onnx_model: %s\n", rondo_last_error()->message);
  const bool is_same = memcmp(a.served, a.called, sizeof a.served) == 0;
  if (end(&a) != RONDO_OK || status != RONDO_OK) return EXIT_FAILURE;
  printf("%d requests and %d calls, of which %d were replayed, have %s results\n", RUNS, RUNS, (int)info.replayed,
         is_same ? "the same" : "other");
  return EXIT_SUCCESS;
}
