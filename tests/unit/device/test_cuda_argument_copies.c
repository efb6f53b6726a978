/* SPDX-License-Identifier: MIT
 * How many copies of a kernel's arguments the library makes, from the capture to the driver. The blocks of the device's
 * allocator are searched for the bytes of an argument, so all copies are found. The driver's copies are in its own
 * memory and do not count.
 */
#include <string.h>

#include "fake_cuda/fake_fixture.h"
#include "support/foreign_library.h"

typedef struct search {
  const char *wanted;
  size_t size, found;
} search;

static void count_in(const void *block, size_t bytes, void *user) {
  search *self = user;
  for (size_t at = 0; at + self->size <= bytes; at += sizeof(uint32_t))
    self->found += memcmp((const char *)block + at, self->wanted, self->size) == 0;
}

/* In the device's memory on the host. */
static size_t count_copies(const test_fixture *t, const void *wanted, size_t size) {
  search self = {.wanted = wanted, .size = size};
  test_allocator_walk(&t->allocator, count_in, &self);
  return self.found;
}

enum { MOST_COPIES = 2 };

typedef struct big_argument {
  uint64_t words[8];
} big_argument;

static const big_argument first = {{0x1122334455667788, 2, 3, 4, 5, 6, 7, 0x8877665544332211}};
static const big_argument second = {{0x1020304050607080, 7, 6, 5, 4, 3, 2, 0x0807060504030201}};

static size_t copies_of(const test_fixture *t, const big_argument *argument) {
  return count_copies(t, argument, sizeof *argument);
}

static rondo_kernel *kernel; /* (big_argument, writes): does nothing */

static int set_up(void **state) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "takes_much", .cpu = test_kernel_nothing,
                                        .cuda_source = "extern \"C\" __global__ void takes_much() {}\n",
                                        .params = {RONDO_SCALAR(big_argument), RONDO_WRITES}};
  const int code = fake_setup(state);
  if (code == 0) assert_ok(rondo_kernel_create(((const test_fixture *)*state)->device, &options, &kernel));
  return code;
}

static int tear_down(void **state) {
  rondo_kernel_destroy(kernel);
  return fake_teardown(state);
}

#define COPIES_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up, tear_down)

/* An allocation, so that the graph can be relocated; a kernel that is given it and the argument. */
static rondo_graph *capture(test_fixture *t, const big_argument *argument) {
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  void *memory = test_allocate_async(t->stream, 4096);
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(argument, &memory)));
  assert_ok(rondo_free_async(t->stream, memory));
  return test_capture_end(t->stream);
}

/* Launches it once. */
static rondo_exec *instantiate(test_fixture *t, rondo_graph *graph, bool relocate) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  rondo_exec *exec = test_instantiate_with(graph, &options);
  test_launch(t, exec);
  return exec;
}

COPIES_TEST(a_graph_and_its_exec_share_one) {
  rondo_graph *graph = capture(t, &first);
  assert_int_equal(copies_of(t, &first), 1);
  rondo_exec *exec = instantiate(t, graph, false);
  assert_int_equal(copies_of(t, &first), 1);
  test_graph_destroy(graph);
  rondo_exec_destroy(exec);
  assert_int_equal(copies_of(t, &first), 0);
}

COPIES_TEST(a_relocated_exec_has_one) {
  (void)instantiate(t, capture(t, &first), true);
  assert_int_equal(copies_of(t, &first), MOST_COPIES);
}

/* Updates replace copies. They add none. */
COPIES_TEST(updates_add_none) {
  for (int relocate = 0; relocate < 2; relocate++) {
    rondo_graph *graph = capture(t, &first), *other = capture(t, &second);
    rondo_exec *exec = instantiate(t, graph, relocate);
    test_graph_destroy(graph);
    assert_ok(rondo_exec_update(exec, other, NULL));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_int_equal(copies_of(t, &first), 0);
    assert_int_equal(copies_of(t, &second), 1 + (size_t)relocate);
    test_graph_destroy(other);
    rondo_exec_destroy(exec);
  }
}

/* Library kernels: the arguments are gathered once, in memory that the next kernel uses again. */
COPIES_TEST(kernels_of_libraries_have_no_more) {
  static int (*const launches[])(foreign_library *, void *, uint32_t, uint32_t, uint32_t *) = {
      foreign_affine, foreign_affine_by_buffer};
  const uint32_t scalars[] = {0xfac70000, 0x7e590001}; /* in this order in memory */
  foreign_library *library = foreign_open();
  assert_non_null(library);
  for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
    uint32_t *word = test_words(t, 16);
    assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(launches[i](library, rondo_stream_native(t->stream), scalars[0], scalars[1], word), 0);
    rondo_graph *graph = test_capture_end(t->stream);
    rondo_exec *exec = instantiate(t, graph, false);
    const size_t copies = count_copies(t, scalars, sizeof scalars);
    assert_true(copies >= 1 && copies <= MOST_COPIES);
    test_graph_destroy(graph);
    rondo_exec_destroy(exec);
  }
  foreign_close(library);
}
