/* SPDX-License-Identifier: MIT
 * Several threads on one device, each with a separate stream, create, change, launch and destroy execs in random order,
 * usually while these are in flight, with graph memory and stream-ordered memory in between. Each thread knows the
 * value that its word must have.
 */
#include "support/rondo_test.h"

enum { THREADS = 4, STEPS = 2000, EXECS = 4 };

typedef struct churn {
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *stream;
  struct {
    rondo_exec *exec;
    rondo_node node;
    uint32_t term;
    bool enabled;
  } slots[EXECS];
  uint32_t *word; /* on the device */
  uint32_t expected, read;
  uint64_t random;
  uint32_t wrong;
  rondo_status status;
} churn;

/* A graph of one step, word = word * 3 + term, with or without scratch memory around it. */
static rondo_status make_graph(churn *self, uint32_t term, rondo_graph **out, rondo_node *out_node) {
  const uint32_t three = 3;
  const bool with_memory = test_random_below(&self->random, 2) == 0;
  void *scratch = NULL;
  rondo_node before = {0}, after = {0};
  rondo_status status = rondo_graph_create(self->device, NULL, out);
  if (status != RONDO_OK) return status;
  if (with_memory) {
    status =
        rondo_graph_add_alloc(*out, NULL, 0, 1000 + test_random_below(&self->random, 100000), NULL, &scratch, &before);
  }
  if (status == RONDO_OK) {
    status = rondo_graph_add_kernel(*out, &before, with_memory, self->kernel, (rondo_grid){1, 0, 0},
                                    RONDO_ARGS(&three, &term, &self->word), out_node);
  }
  if (status == RONDO_OK && with_memory) status = rondo_graph_add_free(*out, out_node, 1, scratch, &after);
  return status;
}

static rondo_status replace_exec(churn *self, uint32_t at) {
  rondo_graph *graph = NULL;
  rondo_exec_destroy(self->slots[at].exec);
  self->slots[at].exec = NULL;
  self->slots[at].term = (uint32_t)test_random(&self->random);
  self->slots[at].enabled = true;
  rondo_status status = make_graph(self, self->slots[at].term, &graph, &self->slots[at].node);
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, &self->slots[at].exec);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status == RONDO_OK ? destroyed : status;
}

static rondo_status launch(churn *self, uint32_t at) {
  const rondo_status status = rondo_exec_launch(self->slots[at].exec, self->stream);
  if (status == RONDO_OK && self->slots[at].enabled) self->expected = self->expected * 3 + self->slots[at].term;
  return status;
}

static rondo_status change(churn *self, uint32_t at) {
  const uint32_t three = 3, term = (uint32_t)test_random(&self->random);
  const void *args[] = {&three, &term, &self->word};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = self->kernel, .grid = {1, 0, 0}, .args = args, .arg_count = 3}};
  self->slots[at].term = term;
  return rondo_exec_set_params(self->slots[at].exec, self->slots[at].node, &params);
}

static rondo_status toggle(churn *self, uint32_t at) {
  self->slots[at].enabled = !self->slots[at].enabled;
  return rondo_exec_set_enabled(self->slots[at].exec, self->slots[at].node, self->slots[at].enabled);
}

/* Memory of the stream, used between launches. */
static rondo_status borrow_memory(churn *self) {
  void *scratch = NULL;
  const size_t bytes = (size_t)4096 << test_random_below(&self->random, 4);
  rondo_status status = rondo_malloc_async(self->stream, bytes, NULL, &scratch);
  if (status == RONDO_OK) status = rondo_copy_async(self->stream, scratch, self->word, sizeof *self->word);
  if (status == RONDO_OK) status = rondo_copy_async(self->stream, self->word, scratch, sizeof *self->word);
  const rondo_status freed = scratch == NULL ? RONDO_OK : rondo_free_async(self->stream, scratch);
  return status == RONDO_OK ? freed : status;
}

static rondo_status check(churn *self) {
  rondo_status status = rondo_copy_async(self->stream, &self->read, self->word, sizeof self->read);
  if (status == RONDO_OK) status = rondo_stream_synchronize(self->stream);
  if (status == RONDO_OK && self->read != self->expected) self->wrong++;
  return status;
}

static rondo_status take_step(churn *self) {
  const uint32_t at = test_random_below(&self->random, EXECS), what = test_random_below(&self->random, 20);
  if (self->slots[at].exec == NULL || what == 0) return replace_exec(self, at);
  if (what < 4) return change(self, at);
  if (what == 4) return toggle(self, at);
  if (what == 5) return check(self);
  if (what == 6) return borrow_memory(self);
  return launch(self, at);
}

static void run_churn(void *user) {
  churn *self = user;
  for (int i = 0; i < STEPS && self->status == RONDO_OK; i++) self->status = take_step(self);
  for (int i = 0; i < EXECS; i++) rondo_exec_destroy(self->slots[i].exec);
  if (self->status == RONDO_OK) self->status = check(self);
}

static void churn_on_threads(uint32_t workers, uint64_t seed) {
  rondo_device *device = NULL;
  rondo_kernel *kernel = NULL;
  void *words = NULL;
  churn churns[THREADS];
  test_thread threads[THREADS];
  assert_ok(rondo_device_open("cpu", &(rondo_device_options){.workers = workers}, &device));
  assert_ok(rondo_kernel_create(device, test_kernel_options(TEST_KERNEL_AFFINE), &kernel));
  assert_ok(rondo_malloc(device, THREADS * 256, NULL, &words));
  for (uint32_t i = 0; i < THREADS; i++) {
    uint32_t *word = (uint32_t *)words + 64 * i;
    churns[i] = (churn){.device = device, .kernel = kernel, .word = word, .random = seed + i};
    threads[i] = (test_thread){.function = run_churn, .user = &churns[i]};
    assert_ok(rondo_stream_create(device, NULL, &churns[i].stream));
    const rondo_fill zero = {.dst = word, .element_bytes = 4, .width = 1};
    assert_ok(rondo_fill_async(churns[i].stream, &zero));
  }
  test_on_threads(threads, THREADS);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(churns[i].status, RONDO_OK);
    assert_int_equal(churns[i].wrong, 0);
    test_stream_destroy(churns[i].stream);
  }
  assert_ok(rondo_free(device, words));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(device));
}

UNIT_TEST(test_gx10_churn_with_one_worker) {
  for (uint64_t seed = 0; seed < 4; seed++) churn_on_threads(1, 100 * seed);
}

UNIT_TEST(test_gx10_churn_with_three_workers) {
  for (uint64_t seed = 10; seed < 14; seed++) churn_on_threads(3, 100 * seed);
}

/* Devices are opened and closed while others work. */
static void open_and_close(void *user) {
  rondo_status *status = user;
  for (int i = 0; i < 60 && *status == RONDO_OK; i++) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    *status = rondo_device_open(i % 2 == 0 ? "cpu" : "cpu:3", NULL, &device);
    if (*status == RONDO_OK) *status = rondo_stream_create(device, NULL, &stream);
    const rondo_status destroyed = rondo_stream_destroy(stream);
    const rondo_status closed = rondo_device_close(device);
    if (*status == RONDO_OK) *status = destroyed == RONDO_OK ? closed : destroyed;
  }
}

UNIT_TEST(test_devices_come_and_go_on_threads) {
  rondo_status statuses[THREADS] = {RONDO_OK};
  test_thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) threads[i] = (test_thread){.function = open_and_close, .user = &statuses[i]};
  test_on_threads(threads, THREADS);
  for (int i = 0; i < THREADS; i++) assert_int_equal(statuses[i], RONDO_OK);
}
