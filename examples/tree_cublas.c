/* SPDX-License-Identifier: MIT
 * A function whose body calls cuBLAS. Work that the library enqueues on the native stream is recorded like any other
 * work. Its kernels do not declare their parameters, so the function requests that the uses of its input's address be
 * found (rondo_function_options.find_inputs). The input can then be patched as for any kernel. Skipped without a GPU or
 * cuBLAS.
 *
 *   tree_cublas [DEVICE]
 *
 * Prints: 6 products with cuBLAS: 4 replayed, all right
 */
#include <dlfcn.h>
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

enum { SIDE = 64, BYTES = SIDE * SIDE * sizeof(float), PLACES = 3, CALLS = 6, WORKSPACE = 32 << 20, SKIPPED = 77 };

typedef struct cublas {
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, void *stream);
  int (*set_workspace)(void *handle, void *workspace, size_t bytes);
  int (*sgemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha, const float *a,
               int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
} cublas;

typedef struct program {
  rondo_device *device;
  rondo_stream *stream;
  cublas library;
  void *handle;
  rondo_tree *tree;
  rondo_function *multiply;
  void *x[PLACES], *twice, *workspace; /* `twice`: two on the diagonal */
} program;

static bool find(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool load(cublas *out) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  void *library = NULL;
  if (getenv("RONDO_CUDA_LIBRARY") != NULL) return false; /* cuBLAS uses the machine's own driver */
  for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library != NULL && find(library, "cublasCreate_v2", &out->create) &&
         find(library, "cublasDestroy_v2", &out->destroy) && find(library, "cublasSetStream_v2", &out->set_stream) &&
         find(library, "cublasSetWorkspace_v2", &out->set_workspace) && find(library, "cublasSgemm_v2", &out->sgemm);
}

/* y = 2 x. The program provides the workspace, so cuBLAS allocates none in the recording. */
static rondo_status multiply(rondo_call *call, void *user) {
  const program *p = user;
  const float one = 1, zero = 0;
  const float *x = rondo_call_input(call, 0);
  void *y;
  TRY(rondo_call_output(call, 0, BYTES, NULL, &y));
  if (p->library.set_stream(p->handle, rondo_stream_native(rondo_call_stream(call))) != 0 ||
      p->library.set_workspace(p->handle, p->workspace, WORKSPACE) != 0 ||
      p->library.sgemm(p->handle, 0, 0, SIDE, SIDE, SIDE, &one, x, SIDE, p->twice, SIDE, &zero, y, SIDE) != 0)
    return RONDO_INVALID_STATE;
  return RONDO_OK;
}

static rondo_status make_matrix(const program *p, float all, float diagonal, void **out) {
  static float host[SIDE * SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) host[i] = i % (SIDE + 1) == 0 ? diagonal : all;
  TRY(rondo_malloc(p->device, BYTES, "matrix", out));
  TRY(rondo_copy_async(p->stream, *out, host, BYTES));
  return rondo_stream_synchronize(p->stream);
}

static rondo_status set_up(program *p) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "multiply", .body = multiply,   .user = p,
      .inputs = &moving,           .input_count = 1,   .find_inputs = true};
  for (int i = 0; i < PLACES; i++) TRY(make_matrix(p, (float)i, (float)i + 1, &p->x[i]));
  TRY(make_matrix(p, 0, 2, &p->twice));
  TRY(rondo_malloc(p->device, WORKSPACE, "workspace", &p->workspace));
  TRY(rondo_tree_create(p->device, NULL, &p->tree));
  return rondo_function_create(p->tree, &options, &p->multiply);
}

/* The input is at a different address at each call. */
static rondo_status multiply_and_check(const program *p, int place, bool *inout_right) {
  static float y[SIDE * SIDE];
  rondo_buffer *out;
  const rondo_input x = {.address = p->x[place], .bytes = BYTES};
  TRY(rondo_function_call(p->multiply, p->stream, &x, 1, &out, 1));
  TRY(rondo_buffer_copy(out, p->stream, 0, y, BYTES));
  rondo_buffer_release(out);
  TRY(rondo_stream_synchronize(p->stream));
  for (int i = 0; i < SIDE * SIDE; i++) {
    const float expected = 2 * ((float)place + (i % (SIDE + 1) == 0 ? 1 : 0));
    if (y[i] != expected) *inout_right = false;
  }
  return RONDO_OK;
}

static rondo_status tear_down(const program *p) {
  TRY(rondo_tree_destroy(p->tree));
  for (int i = 0; i < PLACES; i++) TRY(rondo_free(p->device, p->x[i]));
  TRY(rondo_free(p->device, p->twice));
  TRY(rondo_free(p->device, p->workspace));
  TRY(rondo_stream_destroy(p->stream));
  return rondo_device_close(p->device);
}

static rondo_status run(program *p) {
  rondo_tree_info info = {.struct_size = sizeof info};
  bool is_right = true;
  TRY(set_up(p));
  for (int i = 0; i < CALLS; i++) TRY(multiply_and_check(p, i % PLACES, &is_right));
  TRY(rondo_tree_get_info(p->tree, &info));
  printf("%d products with cuBLAS: %llu replayed, %s\n", CALLS, (unsigned long long)info.replayed,
         is_right ? "all right" : "wrong results");
  (void)p->library.destroy(p->handle);
  return tear_down(p);
}

/* Whether there is a device for cuBLAS. The default is the first GPU. */
static bool open_device(program *p, const char *name) {
  return strncmp(name, "cuda", 4) == 0 && load(&p->library) && rondo_device_open(name, NULL, &p->device) == RONDO_OK &&
         rondo_stream_create(p->device, NULL, &p->stream) == RONDO_OK && p->library.create(&p->handle) == 0;
}

int main(int argc, char **argv) {
  program p = {.device = NULL};
  if (!open_device(&p, argc > 1 ? argv[1] : "cuda:0")) return SKIPPED;
  if (run(&p) == RONDO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
