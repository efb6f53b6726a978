/* SPDX-License-Identifier: MIT
 * Parameters of nodes: every check (B2, B3, B4), the defaults for zeros, labels, comparing.
 */
#include "unit/graph/graph_tests.h"

#include "graph/node_name.h"
#include "graph/node_params.h"

static rondo_status check(const rondo_node_params *params) {
  return rondo_node_params_check("here", TEST_DEVICE, params);
}

GRAPH_TEST(test_kind_names) {
  static const char *const names[] = {
      "kernel",           "host",          "copy",  "fill", "empty",   "child",
      "event_record",     "event_wait",    "alloc", "free", "foreign", "memory_operations",
      "semaphore_signal", "semaphore_wait"};
  for (int kind = RONDO_NODE_KERNEL; kind <= RONDO_NODE_LAST; kind++)
    assert_string_equal(rondo_node_kind_name((rondo_node_kind)kind), names[kind - 1]);
  assert_string_equal(rondo_node_kind_name((rondo_node_kind)0), "unknown");
  assert_string_equal(rondo_node_kind_name((rondo_node_kind)(RONDO_NODE_LAST + 1)), "unknown");
  assert_string_equal(rondo_node_kind_name((rondo_node_kind)-1), "unknown");
}

GRAPH_TEST(test_labels) {
  char buffer[RONDO_LABEL_BYTES], name[300];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_string_equal(rondo_node_label(buffer, &(rondo_node_params){.kind = RONDO_NODE_COPY}, 3), "copy (node 3)");
  assert_string_equal(rondo_node_label(buffer, &(rondo_node_params){.kind = RONDO_NODE_HOST, .name = "log"}, 7),
                      "host function 'log' (node 7)");
  rondo_node_label(buffer, &(rondo_node_params){.kind = RONDO_NODE_EVENT_RECORD, .name = name}, UINT32_MAX);
  assert_non_null(strstr(buffer, "(node 4294967295)"));
}

GRAPH_TEST(test_unknown_kinds) {
  assert_invalid(check(NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(check(&(rondo_node_params){0}), RONDO_REASON_NODE_KIND);
  assert_invalid(check(&(rondo_node_params){.kind = (rondo_node_kind)(RONDO_NODE_LAST + 1)}), RONDO_REASON_NODE_KIND);
  assert_message("is not a kind of node");
  assert_ok(check(&(rondo_node_params){.kind = RONDO_NODE_EMPTY}));
}

GRAPH_TEST(test_kernel_nodes) { /* B3 */
  rondo_node_params params = kernel_params(fixture);
  assert_ok(check(&params));
  params.as.kernel.arg_count = 2;
  assert_invalid(check(&params), RONDO_REASON_ARGUMENT_COUNT);
  assert_message("here: kernel 'saxpy' has 3 parameters, but 2 arguments were passed");
  params.as.kernel.arg_count = 4;
  assert_invalid(check(&params), RONDO_REASON_ARGUMENT_COUNT);
  params = kernel_params(fixture);
  params.as.kernel.args = NULL;
  assert_invalid(check(&params), RONDO_REASON_NULL_ARGUMENT);
  params = kernel_params(fixture);
  fixture->args[1] = NULL;
  assert_invalid(check(&params), RONDO_REASON_NULL_ARGUMENT);
  assert_message("argument 1");
  fixture->args[1] = &fixture->x;
  params.as.kernel.grid.x = 0;
  assert_invalid(check(&params), RONDO_REASON_BAD_SIZE);
  assert_message("here: kernel 'saxpy'");
  params = kernel_params(fixture);
  params.as.kernel.kernel = NULL;
  assert_invalid(check(&params), RONDO_REASON_NULL_ARGUMENT);
}

GRAPH_TEST(test_other_devices) {
  rondo_node_params params = kernel_params(fixture);
  assert_invalid(rondo_node_params_check("here", OTHER_DEVICE, &params), RONDO_REASON_OTHER_DEVICE);
  assert_message("saxpy");
  assert_invalid(rondo_node_params_check("here", NULL, &params), RONDO_REASON_OTHER_DEVICE);
  rondo_kernel *data_only = make_kernel(fixture, NULL, "data");
  params.as.kernel.kernel = data_only;
  assert_invalid(check(&params), RONDO_REASON_OTHER_DEVICE);
  assert_ok(rondo_node_params_check("here", NULL, &params));
  rondo_kernel_release(data_only);
  const rondo_node_params child = {.kind = RONDO_NODE_CHILD, .as.child = fixture->graph};
  assert_ok(check(&child));
  assert_invalid(rondo_node_params_check("here", OTHER_DEVICE, &child), RONDO_REASON_OTHER_DEVICE);
  assert_message("child graph 'test'");
}

GRAPH_TEST(test_missing_identities) {
  static const rondo_node_kind kinds[] = {RONDO_NODE_HOST, RONDO_NODE_CHILD, RONDO_NODE_EVENT_RECORD,
                                          RONDO_NODE_EVENT_WAIT, RONDO_NODE_FREE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    assert_invalid(check(&(rondo_node_params){.kind = kinds[i]}), RONDO_REASON_NULL_ARGUMENT);
}

static rondo_status check_copy(const graph_fixture *fixture, rondo_copy copy) {
  copy.dst = copy.dst == NULL ? (void *)(uintptr_t)(fixture->memory + 2048) : copy.dst;
  copy.src = copy.src == NULL ? fixture->memory : copy.src;
  return check(&(rondo_node_params){.kind = RONDO_NODE_COPY, .as.copy = copy});
}

GRAPH_TEST(test_copy_sizes) { /* B4 */
  const size_t most = PTRDIFF_MAX;
  const rondo_copy good[] = {
      {.width = 1},
      {.width = 16, .height = 4},
      {.width = 16, .height = 4, .depth = 3, .src_pitch = 16, .src_slice_pitch = 64},
      {.width = 16, .height = 2, .dst_pitch = 16, .src_pitch = 17},
      {.width = 16, .dst_pitch = 3, .src_pitch = SIZE_MAX},               /* one row: no effect */
      {.width = 16, .height = 2, .src_slice_pitch = 5},                   /* one slice: no effect */
      {.width = 16, .depth = 2, .src_slice_pitch = 16, .src_pitch = 999}, /* one row for each slice */
      {.width = 16, .height = 2, .depth = 2, .src_pitch = 20, .src_slice_pitch = 36},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_ok(check_copy(fixture, good[i]));
  const rondo_copy bad[] = {
      {.width = 0},
      {.width = 16, .height = 2, .dst_pitch = 15},
      {.width = 16, .height = 2, .src_pitch = 15},
      {.width = 16, .height = 2, .depth = 2, .src_pitch = 20, .src_slice_pitch = 35},
      {.width = most + 1},
      {.width = SIZE_MAX},
      {.width = 16, .height = SIZE_MAX},
      {.width = 16, .height = most / 16 + 1},
      {.width = 16, .height = 2, .depth = SIZE_MAX},
      {.width = 16, .height = 2, .src_pitch = SIZE_MAX},
      {.width = 16, .height = 2, .src_pitch = most},
      {.width = 16, .depth = 2, .dst_slice_pitch = SIZE_MAX},
      {.width = 16, .height = 3, .depth = 2, .src_pitch = most / 2},
      {.width = most - 4096, .src = (const void *)(uintptr_t)(UINTPTR_MAX - 8192)},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_invalid(check_copy(fixture, bad[i]), RONDO_REASON_BAD_SIZE);
}

GRAPH_TEST(test_copy_addresses) {
  rondo_node_params params = copy_params(fixture);
  assert_ok(check(&params));
  params.as.copy.dst = NULL;
  assert_invalid(check(&params), RONDO_REASON_NULL_ARGUMENT);
  assert_message("destination");
  params = copy_params(fixture);
  params.as.copy.src = NULL;
  assert_invalid(check(&params), RONDO_REASON_NULL_ARGUMENT);
  assert_message("source");
  char *memory = fixture->memory;
  assert_invalid(check_copy(fixture, (rondo_copy){.dst = memory + 15, .src = memory, .width = 16}),
                 RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(check_copy(fixture, (rondo_copy){.dst = memory, .src = memory + 15, .width = 16}),
                 RONDO_REASON_OUT_OF_RANGE);
  assert_ok(check_copy(fixture, (rondo_copy){.dst = memory + 16, .src = memory, .width = 16}));
  /* Columns of one matrix: the boxes interlock but share no byte. */
  assert_ok(check_copy(
      fixture,
      (rondo_copy){.dst = memory + 16, .src = memory, .width = 16, .height = 4, .dst_pitch = 32, .src_pitch = 32}));
}

static rondo_status check_fill(const graph_fixture *fixture, rondo_fill fill) {
  fill.dst = (void *)(uintptr_t)fixture->memory;
  return check(&(rondo_node_params){.kind = RONDO_NODE_FILL, .as.fill = fill});
}

GRAPH_TEST(test_fills) { /* B4 */
  static const uint32_t sizes[] = {0, 3, 5, 8, UINT32_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_invalid(check_fill(fixture, (rondo_fill){.element_bytes = sizes[i], .width = 4}), RONDO_REASON_BAD_SIZE);
  const rondo_fill bad[] = {
      {.element_bytes = 4, .width = 0},
      {.element_bytes = 4, .width = SIZE_MAX},
      {.element_bytes = 4, .width = SIZE_MAX / 4 + 2},
      {.element_bytes = 1, .width = SIZE_MAX},
      {.element_bytes = 4, .width = 4, .height = 2, .pitch = 12},
      {.element_bytes = 4, .width = 4, .height = 2, .pitch = 18},
      {.element_bytes = 2, .width = 4, .height = SIZE_MAX},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_invalid(check_fill(fixture, bad[i]), RONDO_REASON_BAD_SIZE);
  assert_ok(check_fill(fixture, (rondo_fill){.element_bytes = 4, .width = 4, .height = 2, .pitch = 20}));
  assert_ok(check_fill(fixture, (rondo_fill){.element_bytes = 4, .width = 4, .pitch = 3}));
  rondo_node_params params = fill_params(fixture);
  params.as.fill.dst = NULL;
  assert_invalid(check(&params), RONDO_REASON_NULL_ARGUMENT);
  params.as.fill.dst = fixture->memory + 1;
  assert_invalid(check(&params), RONDO_REASON_BAD_SIZE);
}

GRAPH_TEST(test_allocs) {
  const rondo_node_params none = alloc_params(NULL, 0, NULL), huge = alloc_params(NULL, SIZE_MAX, NULL);
  const rondo_node_params good = alloc_params(NULL, 1, NULL);
  assert_invalid(check(&none), RONDO_REASON_BAD_SIZE);
  assert_invalid(check(&huge), RONDO_REASON_BAD_SIZE);
  assert_ok(check(&good));
}

GRAPH_TEST(test_defaults) {
  rondo_node_params params = kernel_params(fixture);
  rondo_node_params_resolve(&params);
  assert_int_equal(params.as.kernel.grid.y, 1);
  assert_int_equal(params.as.kernel.grid.z, 1);
  params = copy_params(fixture);
  params.as.copy.depth = 2;
  rondo_node_params_resolve(&params);
  assert_int_equal(params.as.copy.depth, 2);
  assert_int_equal(params.as.copy.dst_pitch, 32);
  assert_int_equal(params.as.copy.src_pitch, 16);
  assert_int_equal(params.as.copy.dst_slice_pitch, 128);
  assert_int_equal(params.as.copy.src_slice_pitch, 64);
  const rondo_node_params once = params;
  rondo_node_params_resolve(&params);
  assert_memory_equal(&params.as.copy, &once.as.copy, sizeof(rondo_copy));
  params.as.copy = (rondo_copy){.width = 8, .dst_pitch = 3, .src_slice_pitch = 77};
  rondo_node_params_resolve(&params);
  assert_int_equal(params.as.copy.height, 1);
  assert_int_equal(params.as.copy.dst_pitch, 8);
  assert_int_equal(params.as.copy.src_slice_pitch, 8);
  params = fill_params(fixture);
  rondo_node_params_resolve(&params);
  assert_int_equal(params.as.fill.value, 0x2345);
  assert_int_equal(params.as.fill.pitch, 16);
  params.as.fill = (rondo_fill){.value = 0xffffffff, .element_bytes = 4, .width = 2};
  rondo_node_params_resolve(&params);
  assert_int_equal(params.as.fill.value, 0xffffffff);
}

static rondo_node_params resolved(rondo_node_params params) {
  rondo_node_params_resolve(&params);
  return params;
}

GRAPH_TEST(test_comparing_kernels) {
  const rondo_node_params a = resolved(kernel_params(fixture));
  rondo_node_params b = a;
  assert_int_equal(rondo_node_params_compare(&a, &b, false), 0);
  b.as.kernel.grid.x++;
  assert_int_equal(rondo_node_params_compare(&a, &b, true), RONDO_DIFFERENCE_KERNEL);
  b = a;
  const float other_a = 3;
  const float *other_x = fixture->x + 1;
  const void *args[] = {&fixture->a, &other_x, &fixture->y};
  b.as.kernel.args = args;
  assert_int_equal(rondo_node_params_compare(&a, &b, false), RONDO_DIFFERENCE_PARAMS);
  assert_int_equal(rondo_node_params_compare(&a, &b, true), 0);
  args[0] = &other_a;
  assert_int_equal(rondo_node_params_compare(&a, &b, true), RONDO_DIFFERENCE_PARAMS);
  b = a;
  rondo_kernel *twin = make_kernel(fixture, TEST_DEVICE, "saxpy"), *other = make_kernel(fixture, TEST_DEVICE, "other");
  b.as.kernel.kernel = twin;
  assert_int_equal(rondo_node_params_compare(&a, &b, false), RONDO_DIFFERENCE_KERNEL);
  assert_int_equal(rondo_node_params_compare(&a, &b, true), 0);
  b.as.kernel.kernel = other;
  assert_int_equal(rondo_node_params_compare(&a, &b, true), RONDO_DIFFERENCE_KERNEL);
  rondo_kernel_release(twin);
  rondo_kernel_release(other);
}

/* Each case is a node of one kind and two changes of it: of an address, and of something else. */
GRAPH_TEST(test_comparing_other_kinds) {
  rondo_node_params a[7], moved[7], changed[7];
  a[0] = (rondo_node_params){.kind = RONDO_NODE_HOST, .as.host = {test_host_nothing, fixture}};
  a[1] = copy_params(fixture);
  a[2] = fill_params(fixture);
  a[3] = (rondo_node_params){.kind = RONDO_NODE_EVENT_WAIT, .as.event = TEST_EVENT};
  a[4] = alloc_params(fixture->memory, 64, "a");
  a[5] = (rondo_node_params){.kind = RONDO_NODE_FREE, .as.free_address = fixture->memory};
  a[6] = copy_params(fixture);
  for (size_t i = 0; i < 7; i++) moved[i] = changed[i] = a[i] = resolved(a[i]);
  moved[0].as.host.user = NULL;
  changed[0].as.host.function = NULL;
  moved[1].as.copy.dst = fixture->memory;
  changed[1].as.copy.src_pitch++;
  moved[2].as.fill.dst = NULL;
  changed[2].as.fill.value++;
  moved[3].as.event = OTHER_EVENT;
  changed[3].kind = RONDO_NODE_EVENT_RECORD;
  moved[4].as.alloc.address = NULL;
  changed[4].as.alloc.name = "b";
  moved[5].as.free_address = NULL;
  changed[5].name = "named";
  moved[6].as.copy.src = NULL;
  changed[6].as.copy.width++;
  for (size_t i = 0; i < 7; i++) {
    assert_int_equal(rondo_node_params_compare(&a[i], &a[i], false), 0);
    assert_int_equal(rondo_node_params_compare(&a[i], &moved[i], true), 0);
    assert_int_equal(rondo_node_params_compare(&a[i], &moved[i], false), RONDO_DIFFERENCE_PARAMS);
    assert_int_equal(rondo_node_params_compare(&a[i], &changed[i], true),
                     i == 3 ? RONDO_DIFFERENCE_KIND : RONDO_DIFFERENCE_PARAMS);
  }
}
