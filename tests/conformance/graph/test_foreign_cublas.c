/* SPDX-License-Identifier: MIT
 * A real library on the native handle of a capturing stream: cuBLAS, where it and a GPU are available (GX-8). With a
 * workspace, its captured work is like any other; without one, it may leave memory of the driver in the graph.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"

enum { SIDE = 96, BYTES = SIDE * SIDE * 4, WORKSPACE_BYTES = 32 << 20 };

typedef void *cublas_handle;
typedef struct cublas {
  int (*create)(cublas_handle *handle);
  int (*destroy)(cublas_handle handle);
  int (*set_stream)(cublas_handle handle, void *stream);
  int (*set_workspace)(cublas_handle handle, void *workspace, size_t bytes);
  int (*sgemm)(cublas_handle handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,
               const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
} cublas;

typedef struct scene {
  test_fixture *t;
  cublas library;
  cublas_handle handle;
  float *a, *b, *c, *d; /* on the device */
  float expected[SIDE * SIDE], a_host[SIDE * SIDE], b_host[SIDE * SIDE];
} scene;

static void *open_cublas(void) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

static bool find(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool load(cublas *out) {
  void *library = getenv("RONDO_CUDA_LIBRARY") == NULL ? open_cublas() : NULL; /* it needs the real driver */
  return library != NULL && find(library, "cublasCreate_v2", &out->create) &&
         find(library, "cublasDestroy_v2", &out->destroy) && find(library, "cublasSetStream_v2", &out->set_stream) &&
         find(library, "cublasSetWorkspace_v2", &out->set_workspace) && find(library, "cublasSgemm_v2", &out->sgemm);
}

static float *make_matrix(const scene *s) {
  void *memory;
  assert_ok(rondo_malloc(s->t->device, BYTES, NULL, &memory));
  return memory;
}

/* Column by column, as cuBLAS has it. */
static void multiply(scene *s) {
  uint64_t random = 1;
  for (size_t i = 0; i < SIDE * SIDE; i++) {
    s->a_host[i] = (float)test_random_below(&random, 9) - 4;
    s->b_host[i] = (float)test_random_below(&random, 9) - 4;
  }
  for (size_t column = 0; column < SIDE; column++) {
    for (size_t row = 0; row < SIDE; row++) {
      float sum = 0;
      for (size_t k = 0; k < SIDE; k++) sum += s->a_host[k * SIDE + row] * s->b_host[column * SIDE + k];
      s->expected[column * SIDE + row] = sum;
    }
  }
}

static int set_up(void **state) {
  static scene s;
  if (test_setup(state) != 0) return -1;
  memset(&s, 0, sizeof s);
  s.t = *state;
  *state = &s;
  if (!test_device_is("cuda") || !load(&s.library)) return 0;
  multiply(&s);
  float **const matrices[] = {&s.a, &s.b, &s.c, &s.d};
  for (size_t i = 0; i < 4; i++) *matrices[i] = make_matrix(&s);
  test_write(s.t, s.a, s.a_host, BYTES);
  test_write(s.t, s.b, s.b_host, BYTES);
  assert_int_equal(s.library.create(&s.handle), 0);
  assert_int_equal(s.library.set_stream(s.handle, rondo_stream_native(s.t->stream)), 0);
  return 0;
}

static int tear_down(void **state) {
  scene *s = *state;
  if (s->handle != NULL) {
    assert_int_equal(s->library.destroy(s->handle), 0);
    float *const matrices[] = {s->a, s->b, s->c, s->d};
    for (size_t i = 0; i < 4; i++) assert_ok(rondo_free(s->t->device, matrices[i]));
  }
  *state = s->t;
  return test_teardown(state);
}

static void enter(const scene *s) {
  if (s->handle == NULL) skip();
}

static void product(const scene *s, float *c) {
  const float one = 1, zero = 0;
  assert_int_equal(s->library.sgemm(s->handle, 0, 0, SIDE, SIDE, SIDE, &one, s->a, SIDE, s->b, SIDE, &zero, c, SIDE),
                   0);
}

/* The sums are whole numbers, which floats hold exactly; TF32 is off by default. */
static void check_and_clear(const scene *s, const float *matrix) {
  static float got[SIDE * SIDE];
  test_read(s->t, got, matrix, BYTES);
  assert_near(got, s->expected, SIDE * SIDE, 1e-6f);
  memset(got, 0, sizeof got);
  test_write(s->t, (void *)(uintptr_t)matrix, got, BYTES);
}

static rondo_graph *capture_product(const scene *s) {
  assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  void *mine = test_allocate_async(s->t->stream, BYTES);
  product(s, mine);
  assert_ok(rondo_copy_async(s->t->stream, s->d, mine, BYTES));
  assert_ok(rondo_free_async(s->t->stream, mine));
  product(s, s->c);
  return test_capture_end(s->t->stream);
}

static void launch_and_check(const scene *s, rondo_exec *exec) {
  assert_ok(rondo_exec_launch(exec, s->t->stream));
  assert_ok(rondo_stream_synchronize(s->t->stream));
  check_and_clear(s, s->c);
  check_and_clear(s, s->d);
}

#define OWN_TEST(name) TEST_DEFINE(name, scene *s, set_up, tear_down)

OWN_TEST(test_gx8_cublas_with_a_workspace) {
  enter(s);
  void *workspace;
  assert_ok(rondo_malloc(s->t->device, WORKSPACE_BYTES, NULL, &workspace));
  assert_int_equal(s->library.set_workspace(s->handle, workspace, WORKSPACE_BYTES), 0);
  product(s, s->c);
  check_and_clear(s, s->c);
  rondo_graph *graph = capture_product(s), *clone;
  assert_ok(rondo_graph_clone(graph, &clone));
  rondo_exec *exec = test_instantiate(graph), *other = test_instantiate(clone);
  assert_int_equal(test_exec_info(exec).foreign_bytes, 0);
  test_graph_destroy(graph);
  test_graph_destroy(clone);
  for (int i = 0; i < 3; i++) {
    launch_and_check(s, exec);
    launch_and_check(s, other);
  }
  rondo_exec_destroy(exec);
  rondo_exec_destroy(other);
  assert_ok(rondo_free(s->t->device, workspace));
}

OWN_TEST(test_gx8_cublas_without_a_workspace) {
  enter(s);
  rondo_graph *graph = capture_product(s);
  rondo_exec *exec = test_instantiate(graph), *second = NULL;
  rondo_exec_info info = test_exec_info(exec);
  print_message("memory of the driver's in the graph: %llu bytes\n", (unsigned long long)info.foreign_bytes);
  for (int i = 0; i < 3; i++) launch_and_check(s, exec);
  if (info.foreign_bytes > 0)
    assert_error(rondo_instantiate(graph, NULL, &second), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
}
