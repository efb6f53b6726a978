/* SPDX-License-Identifier: MIT
 * How many copies of a kernel's arguments the library holds, from the capture to the driver. The device gets an
 * allocator whose blocks can be searched for the bytes of an argument, so that each copy is seen, whoever made it. The
 * driver's own copies are in memory of its own and do not count.
 */
#include <pthread.h>
#include <rondo/rondo.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake_fixture.h"
#include "support/foreign_library.h"

/* Memory that can be searched -------------------------------------------------------------------------------------- */

typedef struct block {
  _Alignas(16) struct block *next;
  size_t bytes;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;

static void *allocate(void *self, size_t bytes, size_t alignment) {
  (void)self;
  assert_true(alignment <= 16);
  block *made = malloc(sizeof *made + bytes);
  if (made == NULL) return NULL;
  pthread_mutex_lock(&lock);
  *made = (block){.next = blocks, .bytes = bytes};
  blocks = made;
  pthread_mutex_unlock(&lock);
  memset(made + 1, 0, bytes);
  return made + 1;
}

static void release(void *self, void *memory, size_t bytes) {
  (void)self;
  (void)bytes;
  pthread_mutex_lock(&lock);
  block **place = &blocks;
  while ((void *)(*place + 1) != memory) place = &(*place)->next;
  block *gone = *place;
  *place = gone->next;
  pthread_mutex_unlock(&lock);
  free(gone);
}

static size_t count_in(const char *memory, size_t bytes, const void *wanted, size_t size) {
  size_t found = 0;
  for (size_t at = 0; at + size <= bytes; at += sizeof(uint32_t)) found += memcmp(memory + at, wanted, size) == 0;
  return found;
}

static size_t count_copies(const void *wanted, size_t size) {
  size_t found = 0;
  pthread_mutex_lock(&lock);
  for (const block *at = blocks; at != NULL; at = at->next)
    found += count_in((const char *)(at + 1), at->bytes, wanted, size);
  pthread_mutex_unlock(&lock);
  return found;
}

/* Work ------------------------------------------------------------------------------------------------------------- */

enum { MOST_COPIES = 3 };

typedef struct big_argument {
  uint64_t words[8];
} big_argument;

static const big_argument first = {{0x1122334455667788, 2, 3, 4, 5, 6, 7, 0x8877665544332211}};
static const big_argument second = {{0x1020304050607080, 7, 6, 5, 4, 3, 2, 0x0807060504030201}};

static size_t copies_of(const big_argument *argument) { return count_copies(argument, sizeof *argument); }

typedef struct scene {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
} scene;

static scene s;

static void do_nothing(rondo_blocks range, void *const *args) {
  (void)range;
  (void)args;
}

static int set_up(void **state) {
  const rondo_allocator allocator = {.allocate = allocate, .release = release};
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "takes_much", .cpu = do_nothing,
                                        .cuda_source = "extern \"C\" __global__ void takes_much() {}\n",
                                        .params = {RONDO_SCALAR(big_argument), RONDO_WRITES}};
  *state = &s;
  fake = fake_cuda_get();
  assert_non_null(fake);
  fake->reset();
  assert_ok(rondo_device_open("cuda:0", &(rondo_device_options){.allocator = &allocator}, &s.device));
  assert_ok(rondo_stream_create(s.device, NULL, &s.stream));
  assert_ok(rondo_kernel_create(s.device, &options, &s.kernel));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rondo_kernel_destroy(s.kernel);
  assert_ok(rondo_stream_destroy(s.stream));
  assert_ok(rondo_device_close(s.device));
  assert_null(blocks);
  return fake_check();
}

/* An allocation, so that the graph can be relocated; a kernel that is given it and the argument. */
static rondo_graph *capture(const big_argument *argument) {
  rondo_graph *graph = NULL;
  void *memory = NULL;
  assert_ok(rondo_capture_begin(s.stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_malloc_async(s.stream, 4096, NULL, &memory));
  assert_ok(rondo_launch(s.stream, s.kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(argument, &memory)));
  assert_ok(rondo_free_async(s.stream, memory));
  assert_ok(rondo_capture_end(s.stream, &graph));
  return graph;
}

static rondo_exec *instantiate(rondo_graph *graph, bool relocate) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  rondo_exec *exec = NULL;
  assert_ok(rondo_instantiate(graph, &options, &exec));
  assert_ok(rondo_exec_launch(exec, s.stream));
  assert_ok(rondo_stream_synchronize(s.stream));
  return exec;
}

static void a_graph_has_one_and_its_exec_another(void **state) {
  (void)state;
  rondo_graph *graph = capture(&first);
  assert_int_equal(copies_of(&first), 1);
  rondo_exec *exec = instantiate(graph, false);
  assert_int_equal(copies_of(&first), 2);
  assert_ok(rondo_graph_destroy(graph));
  rondo_exec_destroy(exec);
  assert_int_equal(copies_of(&first), 0);
}

static void a_relocated_exec_has_two(void **state) {
  (void)state;
  rondo_graph *graph = capture(&first);
  rondo_exec *exec = instantiate(graph, true);
  assert_int_equal(copies_of(&first), MOST_COPIES);
  assert_ok(rondo_graph_destroy(graph));
  rondo_exec_destroy(exec);
}

/* Updates replace copies. They add none. */
static void updates_add_none(void **state) {
  (void)state;
  for (int relocate = 0; relocate < 2; relocate++) {
    rondo_graph *graph = capture(&first), *other = capture(&second);
    rondo_exec *exec = instantiate(graph, relocate);
    assert_ok(rondo_graph_destroy(graph));
    assert_ok(rondo_exec_update(exec, other, NULL));
    assert_ok(rondo_exec_launch(exec, s.stream));
    assert_int_equal(copies_of(&first), 0);
    assert_int_equal(copies_of(&second), 2 + (size_t)relocate);
    assert_ok(rondo_graph_destroy(other));
    rondo_exec_destroy(exec);
  }
}

/* Library kernels: the arguments are gathered once, in memory that the next kernel uses again. */
static void kernels_of_libraries_have_no_more(void **state) {
  static int (*const launches[])(foreign_library *, void *, uint32_t, uint32_t, uint32_t *) = {
      foreign_affine, foreign_affine_by_buffer};
  const uint32_t scalars[] = {0xfac70000, 0x7e590001}; /* as they lie side by side */
  foreign_library *library = foreign_open();
  (void)state;
  assert_non_null(library);
  for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
    rondo_graph *graph = NULL;
    void *word = NULL;
    assert_ok(rondo_malloc(s.device, 64, NULL, &word));
    assert_ok(rondo_capture_begin(s.stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(launches[i](library, rondo_stream_native(s.stream), scalars[0], scalars[1], word), 0);
    assert_ok(rondo_capture_end(s.stream, &graph));
    rondo_exec *exec = instantiate(graph, false);
    const size_t copies = count_copies(scalars, sizeof scalars);
    assert_true(copies >= 2 && copies <= MOST_COPIES);
    assert_ok(rondo_graph_destroy(graph));
    rondo_exec_destroy(exec);
    assert_ok(rondo_free(s.device, word));
  }
  foreign_close(library);
}

#define copies_case(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      copies_case(a_graph_has_one_and_its_exec_another),
      copies_case(a_relocated_exec_has_two),
      copies_case(updates_add_none),
      copies_case(kernels_of_libraries_have_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
