/* SPDX-License-Identifier: MIT
 * The seed of a checking device: the device's option takes precedence over RONDO_CHECK_SEED, and that over the default
 * 1. A finding reports the seed, so that it can be reproduced.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/rondo.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "support/rondo_test.h"

static void add_up(rondo_blocks blocks, void *const *args) {
  uint32_t *word = *(uint32_t *const *)args[0];
  if (blocks.first == 0) *word = *word * 3 + *(const uint32_t *)args[1];
}

/* Accesses memory by an undeclared pointer, which the verifier cannot see. */
static const rondo_kernel_options racing = {RONDO_KERNEL_OPTIONS_INIT, .name = "racing", .cpu = add_up,
                                            .params = {RONDO_SCALAR(uint32_t *), RONDO_SCALAR(uint32_t)}};

static void add_two(rondo_device *device, rondo_graph *graph, void *word) {
  rondo_kernel *kernel;
  rondo_node node;
  assert_int_equal(rondo_kernel_create(device, &racing, &kernel), RONDO_OK);
  for (uint32_t i = 1; i <= 2; i++)
    assert_int_equal(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){.x = 1}, RONDO_ARGS(&word, &i), &node),
                     RONDO_OK);
  rondo_kernel_destroy(kernel);
}

/* Two kernels race on a device that is opened with the seed. The message has the text. */
static void assert_race_says(uint64_t seed, const char *text) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .check_seed = seed};
  rondo_device *device;
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_exec *exec;
  void *word;
  if (rondo_device_open("cpu:check", &options, &device) == RONDO_UNAVAILABLE) skip();
  assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_OK);
  assert_int_equal(rondo_malloc(device, sizeof(uint32_t), "word", &word), RONDO_OK);
  assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_OK);
  add_two(device, graph, word);
  assert_int_equal(rondo_instantiate(graph, NULL, &exec), RONDO_OK);
  assert_int_equal(rondo_exec_launch(exec, stream), RONDO_OK);
  assert_int_equal(rondo_stream_synchronize(stream), RONDO_EXECUTION_FAILED);
  assert_non_null(strstr(rondo_last_error()->message, text));
  rondo_exec_destroy(exec);
  assert_int_equal(rondo_graph_destroy(graph), RONDO_OK);
  assert_int_equal(rondo_free(device, word), RONDO_OK);
  assert_int_equal(rondo_stream_destroy(stream), RONDO_OK);
  assert_int_equal(rondo_device_close(device), RONDO_OK);
}

UNIT_TEST(test_the_seed_is_chosen_and_reported) {
  unsetenv("RONDO_CHECK_SEED");
  rondo_options_reload();
  assert_race_says(0, "(RONDO_CHECK_SEED=1,");
  setenv("RONDO_CHECK_SEED", "4711", 1);
  rondo_options_reload();
  assert_race_says(0, "(RONDO_CHECK_SEED=4711,");
  assert_race_says(5, "(RONDO_CHECK_SEED=5,");
}
