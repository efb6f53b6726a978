/* SPDX-License-Identifier: MIT
 * Patch sets through internal functions: launches whose caller is responsible for the addresses, what clones of the
 * exec know about addresses, how many findings are kept, and numbers of sites around the capacity of one item of a
 * queue.
 */
#include "device/cpu/cpu.h"
#include "exec/launch/exec_relocate.h"
#include "exec/patch/patch_internal.h"
#include "support/rondo_test.h"

enum { WORDS = 64, BYTES = WORDS * sizeof(uint32_t) };

static void copy_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(uint32_t *const *)args[1] = **(const uint32_t *const *)args[0];
}

static rondo_kernel *make_copy_kernel(test_fixture *t) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "copy", .cpu = copy_cpu,
                                        .params = {RONDO_READS, RONDO_WRITES}};
  rondo_kernel *kernel = test_kernel_make(t, &options);
  return kernel;
}

/* out[i] = in[i % WORDS] for each of `count` nodes. */
static rondo_exec *make_exec(test_fixture *t, rondo_kernel *copy, const uint32_t *in, uint32_t *out, uint32_t count,
                             bool relocate) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *scratch;
  if (relocate) assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, NULL, &scratch, &node));
  const rondo_node alloc = node;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t *from = in + i % WORDS;
    uint32_t *to = out + i;
    assert_ok(rondo_graph_add_kernel(graph, &alloc, alloc.id != 0, copy, (rondo_grid){1, 1, 1}, RONDO_ARGS(&from, &to),
                                     &node));
  }
  if (relocate) assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  return test_instantiate_with(graph, &options);
}

static void fill_words(uint32_t *words, uint32_t first) {
  for (uint32_t i = 0; i < WORDS; i++) words[i] = first + i; /* memory of a CPU device is host memory */
}

static rondo_patch_set *make_set(rondo_exec *exec, const uint32_t *in) {
  const rondo_patch_input input = {.address = in, .bytes = BYTES};
  const rondo_patch_options none = {RONDO_PATCH_OPTIONS_INIT};
  rondo_patch_set *set;
  assert_ok(rondo_patch_create("test", exec, &input, 1, NULL, &none, &set));
  return set;
}

static void launch_and_expect(test_fixture *t, rondo_patch_set *set, const uint32_t *in, const uint32_t *out,
                              uint32_t count) {
  const void *const addresses[] = {in};
  assert_ok(rondo_patch_launch(set, t->stream, addresses));
  assert_ok(rondo_stream_synchronize(t->stream));
  for (uint32_t i = 0; i < count; i++) assert_int_equal(out[i], in[i % WORDS]);
}

TEST(test_numbers_of_sites_around_an_item) {
  enum { ITEM = CPU_MOST_STORES };
  static const uint32_t counts[] = {1, ITEM - 1, ITEM, ITEM + 1, 2 * ITEM, 2 * ITEM + 1, 20 * ITEM + 7};
  rondo_kernel *copy = make_copy_kernel(t);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    uint32_t *in[2] = {test_words(t, WORDS), test_words(t, WORDS)}, *out = test_words(t, counts[i]);
    fill_words(in[0], 1000);
    fill_words(in[1], 2000);
    rondo_patch_set *set = make_set(make_exec(t, copy, in[0], out, counts[i], false), in[0]);
    assert_int_equal(set->site_count, counts[i]);
    for (int round = 0; round < 6; round++) launch_and_expect(t, set, in[round % 2], out, counts[i]);
    rondo_patch_set_destroy(set);
  }
}

/* The input address of a node. */
static const uint32_t *address_in(const rondo_node_params *params) {
  const uint32_t *address;
  memcpy(&address, params->as.kernel.args[0], sizeof address);
  return address;
}

static uint32_t first_kernel(const rondo_exec *exec) {
  uint32_t place = 0;
  while (rondo_exec_params(exec, place)->kind != RONDO_NODE_KERNEL) place++;
  return place;
}

static void settle_both(test_fixture *t, bool relocate) {
  uint32_t *in[2] = {test_words(t, WORDS), test_words(t, WORDS)}, *out = test_words(t, 1);
  rondo_kernel *copy = make_copy_kernel(t);
  rondo_exec *exec = make_exec(t, copy, in[0], out, 1, relocate);
  assert_true((exec->placed != NULL) == relocate);
  rondo_patch_set *set = make_set(exec, in[0]);
  const uint32_t place = first_kernel(exec);
  fill_words(in[1], 7);
  launch_and_expect(t, set, in[1], out, 1);
  assert_ptr_equal(address_in(rondo_exec_params(exec, place)), in[0]); /* the clone is not settled yet */
  rondo_patch_settle(exec);
  assert_ptr_equal(address_in(rondo_exec_params(exec, place)), in[1]);
  assert_ptr_equal(address_in(rondo_exec_given_params(exec, place)), in[1]);
  rondo_patch_set_destroy(set);
  assert_null(exec->patched);
  assert_null(exec->patch_sets);
  rondo_kernel_destroy(copy);
}

TEST(test_clones_learn_of_addresses_late) {
  settle_both(t, false);
  settle_both(t, true);
}

/* The caller is responsible for them: neither alignment nor allocation is checked. */
TEST(test_addresses_are_not_checked) {
  static uint32_t elsewhere[WORDS + 1];
  uint32_t *in = test_words(t, WORDS), *out = test_words(t, WORDS);
  rondo_kernel *copy = make_copy_kernel(t);
  rondo_patch_set *set = make_set(make_exec(t, copy, in, out, WORDS, false), in);
  fill_words(elsewhere + 1, 77);
  assert_false(rondo_patch_fits(elsewhere, elsewhere + 1));
  assert_true(rondo_patch_fits(in, in) && rondo_patch_fits((const char *)in + 512, in));
  launch_and_expect(t, set, elsewhere + 1, out, WORDS);
  rondo_patch_set_destroy(set);
}

static rondo_status refuse(void *user) {
  (void)user;
  return RONDO_INVALID_DATA;
}

/* GX-9: on a synchronous device a launch returns the failure of its work, and the exec has the new addresses. */
DEVICE_TEST(test_launches_that_fail_when_they_run) {
  test_fixture t = {.device = NULL};
  uint32_t in[2][WORDS], out[1] = {0};
  rondo_node node;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .synchronous = true};
  assert_ok(rondo_device_open("cpu", &options, &t.device));
  assert_ok(rondo_stream_create(t.device, NULL, &t.stream));
  rondo_kernel *copy = make_copy_kernel(&t);
  rondo_graph *graph = test_graph(&t);
  const uint32_t *from = in[0];
  uint32_t *to = out;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, copy, (rondo_grid){1, 1, 1}, RONDO_ARGS(&from, &to), &node));
  assert_ok(rondo_graph_add_host(graph, &node, 1, refuse, NULL, &node));
  rondo_exec *exec = test_instantiate(graph);
  rondo_patch_set *set = make_set(exec, in[0]);
  for (uint32_t i = 0; i < 4; i++) {
    const void *const addresses[] = {in[i % 2]};
    fill_words(in[i % 2], 100 * i);
    assert_fails(rondo_patch_launch(set, t.stream, addresses), RONDO_EXECUTION_FAILED);
    assert_int_equal(out[0], 100 * i);
    out[0] = 1;
    assert_fails(rondo_exec_launch(exec, t.stream), RONDO_EXECUTION_FAILED);
    assert_int_equal(out[0], 100 * i);
  }
  rondo_patch_set_destroy(set);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_kernel_destroy(copy);
  test_stream_destroy(t.stream);
  assert_ok(rondo_device_close(t.device));
}

/* All findings are counted, and the first ones kept. */
TEST(test_findings_have_a_bound) {
  enum { NODES = RONDO_PATCH_MOST_FINDINGS + 44 };
  uint32_t *in = test_words(t, WORDS), *out = test_words(t, 8);
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  for (uint32_t i = 0; i < NODES; i++) {
    const uint8_t a = 0;
    const uint64_t wide = (uint64_t)(uintptr_t)in;
    const uint16_t c = 0;
    const double d = 0;
    const test_triple triple = {{0, 0, 0}};
    const uint32_t last = i;
    assert_ok(rondo_graph_add_kernel(graph, i == 0 ? NULL : &node, i > 0, test_kernel(t, TEST_KERNEL_MIXED),
                                     (rondo_grid){1, 1, 1}, RONDO_ARGS(&a, &wide, &c, &d, &triple, &last, &out),
                                     &node));
  }
  rondo_exec *exec = test_instantiate(graph);
  rondo_patch_set *set = make_set(exec, in);
  rondo_patch_info info = {.struct_size = sizeof info};
  assert_ok(rondo_patch_set_get_info(set, &info));
  assert_true(info.found == NODES && info.findings == RONDO_PATCH_MOST_FINDINGS);
  rondo_patch_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_patch_set_get_finding(set, RONDO_PATCH_MOST_FINDINGS - 1, &finding));
  assert_int_equal(rondo_node_number(finding.node), RONDO_PATCH_MOST_FINDINGS - 1);
  assert_false(set->slots[0].is_patchable);
  rondo_patch_set_destroy(set);
}
