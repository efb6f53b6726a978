/* SPDX-License-Identifier: MIT
 * How many bytes graph memory holds, exactly: graphs launched on one stream hold what the largest needs, parallel
 * streams hold as much each, unfreed allocations have separate memory, and trimming keeps live memory (M11, M14, M15 in
 * requirements GM-12, GM-15, GM-16). The cases are those that NVIDIA's sample graphMemoryFootprint prints.
 */
#include "support/rondo_test.h"

enum { WORDS = 1024, MIB = 1 << 20, SIZE = 4 * MIB, GRAPHS = 8 };

/* An exec of a graph that allocates, writes `value` to the first words, and reads them into `out`. */
typedef struct part {
  rondo_exec *exec;
  uint32_t *words;
} part;

typedef struct part_options {
  size_t bytes;
  uint32_t value;
  uint32_t *out;
  test_gate *gate; /* between writing and reading; NULL: none */
  bool kept;       /* not freed in the graph */
  bool auto_free;
} part_options;

static part make_part(test_fixture *t, const part_options *options) {
  part self = {.exec = NULL};
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, options->bytes, "part", &address, &node));
  self.words = address;
  const rondo_fill fill = {.dst = address, .value = options->value, .element_bytes = 4, .width = WORDS};
  const rondo_copy copy = {.dst = options->out, .src = address, .width = 4 * WORDS};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  if (options->gate != NULL) assert_ok(rondo_graph_add_host(graph, &node, 1, test_gate_pass, options->gate, &node));
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  if (!options->kept) assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  const rondo_instantiate_options how = {RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = options->auto_free};
  assert_ok(rondo_instantiate(graph, &how, &self.exec));
  test_graph_destroy(graph);
  return self;
}

static part make_scratch(test_fixture *t, size_t bytes, uint32_t value, uint32_t *out) {
  return make_part(t, &(part_options){.bytes = bytes, .value = value, .out = out});
}

static part make_kept(test_fixture *t, size_t bytes, uint32_t value, uint32_t *out) {
  return make_part(t, &(part_options){.bytes = bytes, .value = value, .out = out, .kept = true});
}

static void launch(test_fixture *t, const part *of) { assert_ok(rondo_exec_launch(of->exec, t->stream)); }

static void assert_all(test_fixture *t, const uint32_t *words, uint32_t value) {
  uint32_t expected[WORDS];
  for (int i = 0; i < WORDS; i++) expected[i] = value;
  assert_words(t, words, expected, WORDS);
}

/* The memory of a graph with one allocation that it frees: a guard precedes it. */
static size_t shared(const test_fixture *t, size_t bytes) {
  return test_is_guarded(t) ? bytes + test_device_info(t->device).page_bytes : bytes;
}

/* Bytes taken from the system for graphs and bytes mapped, now; both never were more. */
#define assert_holds(t, bytes) assert_holds_at((t), (bytes), __FILE__, __LINE__)
static void assert_holds_at(test_fixture *t, uint64_t bytes, const char *file, int line) {
  assert_ok(rondo_device_synchronize(t->device));
  const rondo_memory_statistics now = test_memory_statistics(t);
  _assert_int_equal(now.graph_reserved, bytes, file, line);
  _assert_int_equal(now.graph_used, bytes, file, line);
}

static void assert_never_more(test_fixture *t, uint64_t bytes) {
  const rondo_memory_statistics now = test_memory_statistics(t);
  assert_int_equal(now.graph_reserved_high, bytes);
  assert_int_equal(now.graph_used_high, bytes);
}

static void trim_to(test_fixture *t, uint64_t bytes) {
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_holds(t, bytes);
}

/* One stream ------------------------------------------------------------------------------------------------------ */

TEST(test_gm12_m11_eight_graphs_on_one_stream_hold_one) {
  const size_t held = shared(t, SIZE);
  uint32_t *out = test_words(t, WORDS);
  part parts[GRAPHS];
  for (uint32_t i = 0; i < GRAPHS; i++) parts[i] = make_scratch(t, SIZE, i + 1, out);
  assert_holds(t, 0);
  for (uint32_t i = 0; i < 2 * GRAPHS; i++) {
    launch(t, &parts[i % GRAPHS]);
    assert_all(t, out, i % GRAPHS + 1);
    assert_holds(t, held);
  }
  assert_int_equal(test_memory_statistics(t).heap_growth, 1);
  assert_never_more(t, held);
  for (int i = 0; i < GRAPHS; i++) rondo_exec_destroy(parts[i].exec);
  assert_int_equal(test_memory_statistics(t).graph_reserved, held); /* nothing is freed without a request */
  trim_to(t, 0);
}

/* The largest counts, in any order of launches: sizes that fit no other's chunk, smaller and larger ones. */
TEST(test_gm12_m11_the_largest_counts_in_any_order) {
  static const size_t sizes[] = {8 * MIB, 3 * MIB + 4096, 5 * MIB};
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  uint32_t *out = test_words(t, WORDS);
  part parts[3];
  for (uint32_t i = 0; i < 3; i++) parts[i] = make_scratch(t, sizes[i], i + 1, out);
  for (uint32_t i = 0; i < 3; i++) assert_true(test_exec_info(parts[i].exec).graph_bytes >= sizes[i]);
  for (int order = 0; order < 6; order++) {
    size_t largest = 0;
    for (int i = 0; i < 3; i++) {
      const int at = orders[order][i];
      if (sizes[at] > largest) largest = sizes[at];
      launch(t, &parts[at]);
      assert_all(t, out, (uint32_t)at + 1);
      assert_int_equal(test_memory_statistics(t).graph_reserved, shared(t, test_whole_pages(t, largest)));
    }
    const uint64_t remaps = test_memory_statistics(t).remaps;
    for (int i = 0; i < 3; i++) launch(t, &parts[orders[order][i]]);
    assert_int_equal(test_memory_statistics(t).remaps, remaps);
    trim_to(t, 0);
  }
  assert_never_more(t, shared(t, 8 * MIB));
  for (int i = 0; i < 3; i++) rondo_exec_destroy(parts[i].exec);
}

/* Several streams ------------------------------------------------------------------------------------------------- */

/* All eight wait between writing and reading: none may have another's bytes. */
TEST_WORKERS(test_gm12_m11_eight_streams_at_once_hold_eight_times) {
  test_skip_if_serial();
  const size_t held = shared(t, SIZE);
  rondo_stream *streams[GRAPHS];
  test_gate gates[GRAPHS];
  part parts[GRAPHS];
  uint32_t *out = test_words(t, GRAPHS * WORDS);
  for (uint32_t i = 0; i < GRAPHS; i++) {
    test_gate_init(&gates[i]);
    streams[i] = test_stream(t, "one of eight");
    parts[i] = make_part(t, &(part_options){.bytes = SIZE, .value = i + 1, .out = out + i * WORDS, .gate = &gates[i]});
    assert_ok(rondo_exec_launch(parts[i].exec, streams[i]));
    assert_int_equal(test_memory_statistics(t).graph_reserved, (i + 1) * held);
  }
  for (int i = 0; i < GRAPHS; i++) test_gate_open(&gates[i]);
  assert_holds(t, GRAPHS * held);
  for (uint32_t i = 0; i < GRAPHS; i++) assert_all(t, out + i * WORDS, i + 1);
  assert_never_more(t, GRAPHS * held);
  trim_to(t, 0);
  for (int i = 0; i < GRAPHS; i++) {
    rondo_exec_destroy(parts[i].exec);
    test_stream_destroy(streams[i]);
    test_gate_destroy(&gates[i]);
  }
}

/* With a wait between them they never run in parallel, so the second uses the first one's memory. */
TEST(test_gm12_m11_streams_in_turn_share) {
  const size_t held = shared(t, SIZE);
  rondo_stream *streams[GRAPHS];
  part parts[GRAPHS];
  uint32_t *out = test_words(t, WORDS);
  for (uint32_t i = 0; i < GRAPHS; i++) {
    streams[i] = test_stream(t, "in turn");
    parts[i] = make_scratch(t, SIZE, i + 1, out);
    assert_ok(rondo_exec_launch(parts[i].exec, streams[i]));
    assert_ok(rondo_stream_synchronize(streams[i]));
    assert_all(t, out, i + 1);
    assert_holds(t, held);
  }
  assert_never_more(t, held);
  for (int i = 0; i < GRAPHS; i++) {
    rondo_exec_destroy(parts[i].exec);
    test_stream_destroy(streams[i]);
  }
  trim_to(t, 0);
}

/* Unfreed allocations --------------------------------------------------------------------------------------------- */

TEST(test_gm12_m11_unfreed_memory_is_not_shared) {
  uint32_t *out = test_words(t, WORDS);
  part kept = make_kept(t, SIZE, 1, out), scratch[3];
  for (uint32_t i = 0; i < 3; i++) scratch[i] = make_scratch(t, SIZE, 2 + i, out);
  launch(t, &scratch[0]); /* the pages of the heap are in use before */
  assert_holds(t, shared(t, SIZE));
  launch(t, &kept);
  assert_holds(t, SIZE + shared(t, SIZE));
  for (uint32_t i = 0; i < 3; i++) {
    launch(t, &scratch[i]);
    assert_all(t, out, 2 + i);
    assert_holds(t, SIZE + shared(t, SIZE));
  }
  assert_all(t, kept.words, 1);
  trim_to(t, SIZE);
  assert_all(t, kept.words, 1);
  assert_ok(rondo_free_async(t->stream, kept.words));
  assert_int_equal(test_memory_statistics(t).graph_reserved, SIZE); /* nor now */
  trim_to(t, 0);
  assert_never_more(t, SIZE + shared(t, SIZE));
  for (int i = 0; i < 3; i++) rondo_exec_destroy(scratch[i].exec);
  rondo_exec_destroy(kept.exec);
}

TEST(test_gm12_m11_two_unfreed_hold_twice) {
  uint32_t *out = test_words(t, WORDS);
  part kept[2];
  for (uint32_t i = 0; i < 2; i++) {
    kept[i] = make_kept(t, SIZE, i + 1, out);
    launch(t, &kept[i]);
  }
  assert_holds(t, 2 * SIZE);
  for (uint32_t i = 0; i < 2; i++) assert_all(t, kept[i].words, i + 1);
  for (int i = 0; i < 2; i++) rondo_exec_destroy(kept[i].exec); /* their graphs are gone, they stay */
  trim_to(t, 2 * SIZE);
  assert_ok(rondo_free(t->device, kept[0].words));
  trim_to(t, SIZE);
  assert_all(t, kept[1].words, 2);
  assert_ok(rondo_free(t->device, kept[1].words));
  trim_to(t, 0);
}

/* GM-10: what each launch frees before it allocates is not held twice. */
TEST(test_gm10_m11_automatic_freeing_holds_one) {
  uint32_t *out = test_words(t, WORDS);
  const part_options options = {.bytes = SIZE, .value = 7, .out = out, .kept = true, .auto_free = true};
  part kept = make_part(t, &options);
  for (int i = 0; i < 20; i++) {
    launch(t, &kept);
    assert_int_equal(test_memory_statistics(t).graph_reserved, SIZE);
  }
  rondo_exec_destroy(kept.exec);
  assert_all(t, kept.words, 7); /* destroying frees nothing */
  trim_to(t, SIZE);
  assert_ok(rondo_free_async(t->stream, kept.words));
  trim_to(t, 0);
  assert_never_more(t, SIZE);
}

/* Trimming -------------------------------------------------------------------------------------------------------- */

typedef struct trimmer {
  test_fixture *t;
  test_gate *gate;
  rondo_status status;
} trimmer;

static void trim(void *user) {
  trimmer *self = user;
  self->status = rondo_graph_memory_trim(self->t->device);
}

static void open_gate(void *user) {
  const trimmer *self = user;
  test_sleep_ms(20); /* usually the other thread is in its call by now; the test is also right if it is not */
  test_gate_open(self->gate);
}

/* GM-15: a launch in flight keeps its memory until it completes; later launches map again. */
TEST_WORKERS(test_gm15_trimming_during_a_launch) {
  test_skip_if_serial();
  uint32_t *out = test_words(t, WORDS);
  test_gate *gate = test_gate_make();
  part held = make_part(t, &(part_options){.bytes = SIZE, .value = 3, .out = out, .gate = gate});
  part later = make_scratch(t, SIZE / 2, 4, out);
  launch(t, &held);
  test_gate_await(gate);
  trimmer self = {.t = t, .gate = gate, .status = RONDO_NOT_READY};
  test_on_threads((const test_thread[]){{.function = trim, .user = &self}, {.function = open_gate, .user = &self}}, 2);
  assert_ok(self.status);
  assert_holds(t, 0);
  assert_all(t, out, 3);
  launch(t, &later);
  assert_all(t, out, 4);
  assert_holds(t, shared(t, SIZE / 2));
  rondo_exec_destroy(held.exec);
  rondo_exec_destroy(later.exec);
}

/* GM-15, M14: graph memory and pools are trimmed apart. */
TEST(test_gm15_m14_pools_are_trimmed_apart) {
  const rondo_pool_options keeps = {RONDO_POOL_OPTIONS_INIT, .name = "keeps", .release_threshold = UINT64_MAX};
  uint32_t *out = test_words(t, WORDS);
  rondo_pool *pool = NULL;
  void *address = NULL;
  assert_ok(rondo_pool_create(t->device, &keeps, &pool));
  assert_ok(rondo_malloc_async(t->stream, SIZE, &(rondo_malloc_options){.pool = pool}, &address));
  assert_ok(rondo_free_async(t->stream, address));
  part scratch = make_scratch(t, SIZE, 5, out);
  launch(t, &scratch);
  assert_holds(t, shared(t, SIZE));
  const uint64_t of_pools = test_memory_statistics(t).pool_reserved;
  assert_true(of_pools >= SIZE);
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(test_memory_statistics(t).pool_reserved, of_pools);
  launch(t, &scratch);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_pool_trim(pool, 0));
  assert_int_equal(test_memory_statistics(t).pool_reserved, 0);
  assert_holds(t, shared(t, SIZE));
  assert_ok(rondo_pool_destroy(pool));
  rondo_exec_destroy(scratch.exec);
}

/* GM-9: a free on another stream, queued but not reached, is waited for by the launch that allocates again. */
TEST_WORKERS(test_gm9_a_queued_free_elsewhere_is_waited_for) {
  test_skip_if_serial();
  rondo_stream *other = test_stream(t, "other");
  uint32_t *out = test_words(t, 2 * WORDS);
  part first = make_kept(t, SIZE, 1, out);
  test_gate *gate = test_gate_make();
  launch(t, &first);
  test_order(t, t->stream, other);
  test_gate_hold(gate, other);
  assert_ok(rondo_copy_async(other, out + WORDS, first.words, 4 * WORDS));
  assert_ok(rondo_free_async(other, first.words));
  launch(t, &first); /* must not begin before the copy has read */
  const rondo_fill fill = {.dst = first.words, .value = 9, .element_bytes = 4, .width = WORDS};
  assert_ok(rondo_fill_async(t->stream, &fill));
  test_gate_open(gate);
  assert_ok(rondo_device_synchronize(t->device));
  assert_all(t, out + WORDS, 1);
  assert_all(t, first.words, 9);
  assert_ok(rondo_free_async(t->stream, first.words));
  rondo_exec_destroy(first.exec);
}
