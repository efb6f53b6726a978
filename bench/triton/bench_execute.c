/* SPDX-License-Identifier: MIT
 * bench_execute BACKEND FOLDER: what the backend of Triton Inference Server adds to rondo_session_run. BACKEND is
 * libtriton_rondo.so; FOLDER is the model `ranker` of tests/triton/small_models.py.
 *
 * The server is that of the tests, in memory (tests/fake_triton), so neither HTTP nor a scheduler is measured. Turns of
 * rondo_session_run, of the call that brings a request, and of this call until the request is released follow each
 * other. Prints the medians of all calls, and the processor time of the process for each.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <rondo/rondo.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_triton/fake_triton.h"

enum { FEATURES = 4, IDS = 2, SCORES = 3, TURNS = 40, CALLS = 100, WAYS = 2 };

static float x[FEATURES];
static int64_t ids[IDS];

static void check(rondo_status status) {
  if (status == RONDO_OK) return;
  (void)fprintf(stderr, "bench_execute: %s\n", rondo_last_error()->message);
  exit(1);
}

static void check_server(triton_error *error) {
  if (error == NULL) return;
  (void)fprintf(stderr, "bench_execute: %s\n", TRITONSERVER_ErrorMessage(error));
  exit(1);
}

static double us_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The backend ------------------------------------------------------------------------------------------------------ */

#define MEMBER(result, member, symbol, arguments) result(*member) arguments;
typedef struct backend_calls {
  TRITON_ENTRY_POINTS(MEMBER)
} backend_calls;

static void *find(void *library, const char *symbol) {
  void *found = library == NULL ? NULL : dlsym(library, symbol);
  if (found != NULL) return found;
  (void)fprintf(stderr, "bench_execute: %s\n", dlerror());
  exit(1);
}

static backend_calls load_backend(const char *path) {
  backend_calls calls;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol;
#define FIND(result, member, name, arguments) \
  symbol = find(library, #name);              \
  memcpy(&calls.member, &symbol, sizeof symbol);
  TRITON_ENTRY_POINTS(FIND)
  return calls;
}

static triton_backend backend = {.config = "{}"};
static triton_model model = {.backend = &backend, .name = "ranker", .version = 1, .completes = true};
static triton_instance instance = {.model = &model, .kind = TRITON_INSTANCE_CPU};

static void start(const backend_calls *calls, const char *folder) {
  fake_triton_reset();
  model.repository = folder;
  (void)strcpy(model.config, "{\"parameters\":{\"history\":{\"string_value\":\"1\"}}}");
  check_server(calls->initialize(&backend));
  check_server(calls->model_initialize(&model));
  check_server(calls->instance_initialize(&instance));
}

static void stop(const backend_calls *calls) {
  check_server(calls->instance_finalize(&instance));
  check_server(calls->model_finalize(&model));
  check_server(calls->finalize(&backend));
}

static void make_request(triton_request *request) {
  *request = (triton_request){.input_count = 2, .output_count = 2, .outputs = {"scores", "twice"}};
  request->inputs[0] = (triton_input){.name = "x",
                                      .type = TRITON_TYPE_FP32,
                                      .shape = {1, FEATURES},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = sizeof x,
                                      .data = x};
  request->inputs[1] = (triton_input){.name = "ids",
                                      .type = TRITON_TYPE_INT64,
                                      .shape = {1, IDS},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = sizeof ids,
                                      .data = ids};
}

/* Returns the time of the call alone. The waiting thread leaves its processor to others. */
static double execute(const backend_calls *calls) {
  static triton_request request;
  triton_request *list = &request;
  make_request(&request);
  const double begin = us_of(CLOCK_MONOTONIC);
  check_server(calls->instance_execute(&instance, &list, 1));
  const double call_us = us_of(CLOCK_MONOTONIC) - begin;
  while (atomic_load(&request.released) == 0) (void)sched_yield();
  if (!request.has_error) return call_us;
  (void)fprintf(stderr, "bench_execute: %s\n", request.message);
  exit(1);
}

/* The session ------------------------------------------------------------------------------------------------------ */

typedef struct session_model {
  rondo_device *device;
  rondo_session *session;
  rondo_onnx_model *onnx;
  rondo_onnx_builder *builder;
} session_model;

static void open_session(const char *folder, session_model *out) {
  static const size_t history[] = {1};
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/1/model.onnx", folder);
  check(rondo_onnx_load(path, NULL, &out->onnx));
  check(rondo_onnx_builder_create(out->onnx, NULL, &out->builder));
  check(rondo_device_open("cpu", NULL, &out->device));
  check(rondo_session_create(out->device, NULL, &out->session));
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = rondo_onnx_builder_build,
                                       .user = out->builder,     .weights = rondo_onnx_builder_weights(out->builder),
                                       .history = history,       .history_count = 1};
  check(rondo_session_add_model(out->session, "ranker", &options));
  check(rondo_session_capture(out->session, "ranker"));
}

static void close_session(session_model *self) {
  check(rondo_session_destroy(self->session));
  check(rondo_device_close(self->device));
  rondo_onnx_builder_destroy(self->builder);
  rondo_onnx_destroy(self->onnx);
}

static void run(const session_model *self) {
  float scores[SCORES];
  int64_t twice[IDS];
  const void *const inputs[] = {x, ids};
  void *const outputs[] = {scores, twice};
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = 1, .inputs = inputs, .outputs = outputs};
  check(rondo_session_run(self->session, "ranker", &request, NULL));
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

static double times[WAYS][TURNS * CALLS], calls_alone[TURNS * CALLS], processor[WAYS][TURNS];

static int by_value(const void *a, const void *b) {
  const double *first = a, *second = b;
  return (*first > *second) - (*first < *second);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, by_value);
  return values[count / 2];
}

static void take_turn(size_t turn, size_t way, const backend_calls *calls, const session_model *session) {
  const double before = us_of(CLOCK_PROCESS_CPUTIME_ID);
  for (size_t i = turn * CALLS; i < (turn + 1) * CALLS; i++) {
    const double begin = us_of(CLOCK_MONOTONIC);
    if (way == 0)
      run(session);
    else
      calls_alone[i] = execute(calls);
    times[way][i] = us_of(CLOCK_MONOTONIC) - begin;
  }
  processor[way][turn] = (us_of(CLOCK_PROCESS_CPUTIME_ID) - before) / CALLS;
}

int main(int count, char **arguments) {
  session_model session = {.device = NULL};
  if (count != 3) {
    (void)fprintf(stderr, "usage: bench_execute BACKEND FOLDER\n");
    return 2;
  }
  const backend_calls calls = load_backend(arguments[1]);
  start(&calls, arguments[2]);
  open_session(arguments[2], &session);
  for (size_t turn = 0; turn < TURNS; turn++)
    for (size_t i = 0; i < WAYS; i++) take_turn(turn, (turn + i) % WAYS, &calls, &session);
  const double run_us = median(times[0], TURNS * CALLS), answer_us = median(times[1], TURNS * CALLS);
  printf(
      "rondo_session_run %.1f us; the call that brings a request %.1f us, until it is released %.1f us, added %.1f us; "
      "processor time %.1f and %.1f us\n",
      run_us, median(calls_alone, TURNS * CALLS), answer_us, answer_us - run_us, median(processor[0], TURNS),
      median(processor[1], TURNS));
  close_session(&session);
  stop(&calls);
  return 0;
}
