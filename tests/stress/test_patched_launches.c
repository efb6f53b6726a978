/* SPDX-License-Identifier: MIT
 * Launches with moved inputs, one after another on two streams without waiting, while several workers run the nodes of
 * each: every launch reads and writes at its own addresses (U1). After each wait for the streams, the contents are
 * compared with a plain loop; ThreadSanitizer would show a data race.
 */
#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { NODES = 24, WORDS = 64, INPUTS = 3, OUTPUTS = 16, LAUNCHES = 20000, ROUND = OUTPUTS };

typedef struct rig {
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_kernel *combine;
  uint32_t *inputs[INPUTS], *outputs[OUTPUTS];
  rondo_exec *exec;
  rondo_patch_set *set;
  uint64_t random;
} rig;

static uint32_t *make_words(const rig *r) {
  uint32_t *words = NULL;
  assert_ok(rondo_malloc(r->device, WORDS * sizeof *words, NULL, (void **)&words));
  return words;
}

/* Node i: out[i] = a[i] * 31 + b[i + 1], all in parallel. */
static void make_exec(rig *r) {
  rondo_graph *graph = NULL;
  rondo_node node;
  assert_ok(rondo_graph_create(r->device, NULL, &graph));
  for (uint32_t i = 0; i < NODES; i++) {
    const uint32_t *a = r->inputs[0] + i, *b = r->inputs[1] + i + 1;
    uint32_t *out = r->outputs[0] + i;
    assert_ok(
        rondo_graph_add_kernel(graph, NULL, 0, r->combine, (rondo_grid){1, 1, 1}, RONDO_ARGS(&a, &b, &out), &node));
  }
  r->exec = test_exec_of(graph);
  const rondo_patch_input inputs[] = {{.address = r->inputs[0], .bytes = WORDS * 4},
                                      {.address = r->inputs[1], .bytes = WORDS * 4},
                                      {.address = r->outputs[0], .bytes = WORDS * 4}};
  assert_ok(rondo_patch_set_create(r->exec, inputs, 3, NULL, &r->set));
}

static void set_up(rig *r) {
  *r = (rig){.random = 17};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 3};
  assert_ok(rondo_device_open("cpu", &options, &r->device));
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_create(r->device, NULL, &r->streams[i]));
  assert_ok(rondo_kernel_create(r->device, test_kernel_options(TEST_KERNEL_COMBINE), &r->combine));
  for (uint32_t i = 0; i < INPUTS; i++) {
    r->inputs[i] = make_words(r);
    for (uint32_t k = 0; k < WORDS; k++) r->inputs[i][k] = 1000 * i + k; /* host memory of the test */
  }
  for (uint32_t i = 0; i < OUTPUTS; i++) r->outputs[i] = make_words(r);
  make_exec(r);
}

static void tear_down(const rig *r) {
  rondo_patch_set_destroy(r->set);
  rondo_exec_destroy(r->exec);
  for (int i = 0; i < INPUTS; i++) assert_ok(rondo_free(r->device, r->inputs[i]));
  for (int i = 0; i < OUTPUTS; i++) assert_ok(rondo_free(r->device, r->outputs[i]));
  rondo_kernel_destroy(r->combine);
  for (int i = 0; i < 2; i++) test_stream_destroy(r->streams[i]);
  assert_ok(rondo_device_close(r->device));
}

/* One launch for each output, then all are compared. */
static void run_round(rig *r) {
  uint32_t a[OUTPUTS], b[OUTPUTS];
  for (uint32_t i = 0; i < ROUND; i++) {
    a[i] = test_random_below(&r->random, INPUTS);
    b[i] = test_random_below(&r->random, INPUTS);
    const void *const addresses[] = {r->inputs[a[i]], r->inputs[b[i]], r->outputs[i]};
    assert_ok(rondo_patch_set_launch(r->set, r->streams[test_random_below(&r->random, 8) == 0], addresses));
  }
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_synchronize(r->streams[i]));
  for (uint32_t i = 0; i < OUTPUTS; i++)
    for (uint32_t k = 0; k < NODES; k++)
      assert_int_equal(r->outputs[i][k], (1000 * a[i] + k) * 31 + 1000 * b[i] + k + 1);
}

UNIT_TEST(test_u1_tr6_launches_with_several_workers) {
  rig r;
  set_up(&r);
  for (uint32_t i = 0; i < test_effort(LAUNCHES) / ROUND; i++) run_round(&r);
  tear_down(&r);
}
