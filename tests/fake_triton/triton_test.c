/* SPDX-License-Identifier: MIT
 * A model repository with one model, and a server that loads it.
 */
#define _POSIX_C_SOURCE 200809L
#include "fake_triton/triton_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/rondo_test.h"

/* Allocations ------------------------------------------------------------------------------------------------------ */

enum { LIVE = 1 << 16 };

typedef struct live_block {
  void *block; /* NULL: an empty place */
  size_t bytes;
} live_block;

static atomic_uint_fast64_t allocations, failing_allocation;
_Thread_local void (*in_allocation)(void);
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static live_block live[LIVE]; /* a hash table: a block is at its place, or at the next ones without a gap */
static size_t live_total;

static size_t place_of(const void *block) {
  return (size_t)(((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % LIVE;
}

static void add_live(void *block, size_t bytes) {
  size_t at = place_of(block);
  pthread_mutex_lock(&live_lock);
  while (live[at].block != NULL) at = (at + 1) % LIVE;
  live[at] = (live_block){block, bytes};
  live_total += bytes;
  pthread_mutex_unlock(&live_lock);
}

/* Closes the gap at a place: blocks behind it move up, unless they would come before their own place. */
static void close_gap(size_t at) {
  for (size_t next = (at + 1) % LIVE; live[next].block != NULL; next = (next + 1) % LIVE) {
    if ((next - place_of(live[next].block)) % LIVE < (next - at) % LIVE) continue;
    live[at] = live[next];
    at = next;
  }
  live[at] = (live_block){NULL, 0};
}

/* Blocks that others allocated are not found. */
static void remove_live(const void *block) {
  size_t at = place_of(block);
  pthread_mutex_lock(&live_lock);
  while (live[at].block != NULL && live[at].block != block) at = (at + 1) % LIVE;
  if (live[at].block != NULL) {
    live_total -= live[at].bytes;
    close_gap(at);
  }
  pthread_mutex_unlock(&live_lock);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
  void (*call)(void) = in_allocation;
  in_allocation = NULL;
  if (call != NULL) call();
  if (atomic_fetch_add(&allocations, 1) + 1 == atomic_load(&failing_allocation)) return NULL;
  void *block = __real_malloc(bytes);
  if (block != NULL) add_live(block, bytes);
  return block;
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
  if (block != NULL) remove_live(block);
  __real_free(block);
}

void fail_allocation(uint64_t number) {
  atomic_store(&failing_allocation, number);
  atomic_store(&allocations, 0);
}

bool has_failed_allocation(void) { return atomic_load(&allocations) >= atomic_load(&failing_allocation); }

size_t live_bytes(void) {
  pthread_mutex_lock(&live_lock);
  const size_t bytes = live_total;
  pthread_mutex_unlock(&live_lock);
  return bytes;
}

const char *lacking;

void *__real_dlsym(void *library, const char *symbol);
void *__wrap_dlsym(void *library, const char *symbol);
void *__wrap_dlsym(void *library, const char *symbol) {
  return lacking != NULL && strcmp(symbol, lacking) == 0 ? NULL : __real_dlsym(library, symbol);
}

/* Models and the server -------------------------------------------------------------------------------------------- */

char repository[TRITON_TEST_PATH];

void write_file(const char *name, const void *bytes, size_t count) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/1/%s", repository, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

void remove_file(const char *name) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/1/%s", repository, name);
  (void)unlink(path);
}

void make_repository(void) {
  char folder[80];
  (void)snprintf(repository, sizeof repository, "/tmp/rondo-triton.XXXXXX");
  assert_non_null(mkdtemp(repository));
  (void)snprintf(folder, sizeof folder, "%s/1", repository);
  assert_int_equal(mkdir(folder, 0700), 0);
}

void remove_repository(void) {
  char folder[80];
  remove_file("model.onnx");
  remove_file("model.safetensors");
  remove_file("model.so");
  (void)snprintf(folder, sizeof folder, "%s/1", repository);
  assert_int_equal(rmdir(folder), 0);
  assert_int_equal(rmdir(repository), 0);
}

triton_backend backend;
triton_model model;
triton_instance instances[2];

void start_server(const char *config) {
  fake_triton_reset();
  backend = (triton_backend){.config = "{\"cmdline\":{\"default-max-batch-size\":\"2\"}}"};
  model =
      (triton_model){.backend = &backend, .name = "ranker", .repository = repository, .version = 1, .completes = true};
  (void)snprintf(model.config, sizeof model.config, "%s", config);
  const char *device = getenv("RONDO_TEST_DEVICE");
  const bool is_cuda = device != NULL && strcmp(device, "cuda:0") == 0;
  for (size_t i = 0; i < 2; i++)
    instances[i] = (triton_instance){.model = &model, .kind = is_cuda ? TRITON_INSTANCE_GPU : TRITON_INSTANCE_CPU};
}

void assert_loaded(triton_error *error) {
  if (error != NULL) print_message("%s\n", TRITONSERVER_ErrorMessage(error));
  assert_null(error);
}

void load_model(const char *config) {
  start_server(config);
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
}

void unload(void) {
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[0]));
  assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  assert_loaded(TRITONBACKEND_Finalize(&backend));
  assert_int_equal(fake_triton_alive(), 0);
  remove_repository();
}

void assert_refused(triton_error *error, triton_error_code code, const char *text) {
  assert_non_null(error);
  if (strstr(TRITONSERVER_ErrorMessage(error), text) == NULL)
    fail_msg("'%s' is not in '%s'", text, TRITONSERVER_ErrorMessage(error));
  assert_int_equal(TRITONSERVER_ErrorCode(error), code);
  TRITONSERVER_ErrorDelete(error);
}

/* A model that does not load, for a reason. */
void refuse_model(const char *config, triton_error_code code, const char *text) {
  start_server(config);
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  triton_error *error = TRITONBACKEND_ModelInitialize(&model);
  if (error == NULL) {
    error = TRITONBACKEND_ModelInstanceInitialize(&instances[0]);
    assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  }
  assert_refused(error, code, text);
  assert_loaded(TRITONBACKEND_Finalize(&backend));
  assert_int_equal(fake_triton_alive(), 0);
}

/* Requests --------------------------------------------------------------------------------------------------------- */

void await_release(const triton_request *request) {
  while (atomic_load(&request->released) + atomic_load(&request->release_failed) == 0) test_sleep_ms(1);
}

void execute(triton_request *request) {
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &request, 1));
  await_release(request);
}

void assert_answer_error(const triton_request *request, triton_error_code code, const char *text) {
  assert_int_equal(atomic_load(&request->sent), 1);
  assert_true(request->has_error);
  if (strstr(request->message, text) == NULL) fail_msg("'%s' is not in '%s'", text, request->message);
  assert_int_equal(request->code, code);
}

void add_weight(rondo_weights *weights, const char *name, size_t rows, size_t columns, const float *data) {
  const rondo_weight weight = {.name = name,
                               .type = RONDO_F32,
                               .rank = columns == 0 ? 1 : 2,
                               .shape = {rows, columns},
                               .data = data,
                               .bytes = rows * (columns == 0 ? 1 : columns) * sizeof *data};
  assert_ok(rondo_weights_add(weights, &weight));
}
