/* SPDX-License-Identifier: MIT
 * Running out of memory: a CPU device uses no more than its limit or the machine's memory. The failing call reports how
 * much was requested, how much is held and by whom. Everything else continues, and freed memory can be allocated again.
 */
#define _GNU_SOURCE
#include "support/rondo_test.h"
#include "support/test_effort.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MIB = 1 << 20, LIMIT = 16 * MIB };

/* A fixture with a device of its own, which has the limit. */
static int set_up(void **state) {
  return test_setup_with(state, (rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .memory_limit_bytes = LIMIT});
}

static void *take(test_fixture *t, rondo_pool *pool, size_t bytes, const char *name) {
  void *address = NULL;
  assert_ok(rondo_malloc_async(t->stream, bytes, &(rondo_malloc_options){.name = name, .pool = pool}, &address));
  return address;
}

static void refuse_at_once(test_fixture *t, size_t bytes) {
  void *address = t;
  assert_fails(rondo_malloc(t->device, bytes, "too much", &address), RONDO_OUT_OF_MEMORY);
  assert_null(address);
}

/* alloc -> fill of the first `words` words -> free, or without the free. */
static rondo_exec *make_filling(test_fixture *t, size_t bytes, size_t words, const char *name, bool keeps,
                                void **out_address) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, bytes, name, out_address, &node));
  const rondo_fill fill = {.dst = *out_address, .value = 5, .element_bytes = 4, .width = words};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  if (!keeps) assert_ok(rondo_graph_add_free(graph, &node, 1, *out_address, &node));
  return test_exec_of(graph);
}

static rondo_exec *make_exec(test_fixture *t, size_t bytes, const char *name, bool keeps, void **out_address) {
  return make_filling(t, bytes, bytes / 4, name, keeps, out_address);
}

/* Touches one page only, so that it is fast. */
static rondo_exec *make_large(test_fixture *t, size_t bytes, const char *name, bool keeps, void **out_address) {
  return make_filling(t, bytes, 1, name, keeps, out_address);
}

#define LIMIT_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up, test_teardown)

LIMIT_TEST(test_the_failure_says_who_holds_the_memory) {
  if (!test_device_is("cpu")) skip();
  rondo_pool *pool = NULL;
  void *kept = NULL;
  char held[64];
  assert_int_equal(test_device_info(t->device).memory_bytes, LIMIT);
  assert_ok(rondo_pool_create(t->device, &(rondo_pool_options){.name = "activations"}, &pool));
  void *weights = test_allocate(t, 4 * MIB, "weights"), *hidden = take(t, pool, 6 * MIB, "hidden");
  void *logits = take(t, NULL, MIB, "logits");
  rondo_exec *exec = make_exec(t, 3 * MIB, "cache", true, &kept);
  assert_ok(rondo_exec_launch(exec, t->stream));
  refuse_at_once(t, 2 * MIB);
  static const char *const parts[] = {
      "rondo_malloc",      "2097152 bytes",    "16777216 bytes",           "4.0 MiB by",
      "'activations'",     "6.0 MiB",          "'default' (1.0 MiB used)", "by graphs",
      "1 unfreed",         "'hidden' 6.0 MiB", "'weights' 4.0 MiB",        "'cache' 3.0 MiB",
      "memory_limit_bytes"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_message(parts[i]);
  snprintf(held, sizeof held, "holds %d of", (4 + 6 + 2 + 3) * MIB);
  assert_message(held);
  void *address = t;
  assert_fails(rondo_malloc_async(t->stream, 2 * MIB + 1, &(rondo_malloc_options){.pool = pool}, &address),
               RONDO_OUT_OF_MEMORY);
  assert_null(address);
  assert_message("rondo_malloc_async");
  assert_ok(rondo_free_async(t->stream, hidden));
  assert_ok(rondo_stream_synchronize(t->stream));
  void *more = test_allocate(t, 6 * MIB, "more"); /* freed memory can be allocated, in another mode too */
  assert_int_equal(test_word(t, kept), 5);
  assert_ok(rondo_free(t->device, more));
  assert_ok(rondo_free(t->device, weights));
  assert_ok(rondo_free(t->device, logits));
  assert_ok(rondo_free(t->device, kept));
  assert_ok(rondo_pool_destroy(pool));
}

/* Memory that pools only cache is freed before a call fails. */
LIMIT_TEST(test_idle_memory_is_given_back_first) {
  if (!test_device_is("cpu")) skip();
  const rondo_pool_options options = {.name = "keeps all", .release_threshold = UINT64_MAX};
  rondo_pool *pool = NULL;
  assert_ok(rondo_pool_create(t->device, &options, &pool));
  assert_ok(rondo_free_async(t->stream, take(t, pool, 12 * MIB, "first")));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_pool_statistics now = test_pool_statistics(pool);
  assert_int_equal(now.reserved, 12 * MIB);
  void *address = test_allocate(t, 12 * MIB, "second");
  now = test_pool_statistics(pool);
  assert_int_equal(now.reserved, 0);
  assert_ok(rondo_free(t->device, address));
  assert_ok(rondo_free_async(t->stream, take(t, pool, 12 * MIB, "third")));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_exec *exec = make_exec(t, 10 * MIB, "scratch", false, &address); /* for graphs too */
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_pool_destroy(pool));
}

LIMIT_TEST(test_launches_and_uploads_that_find_no_memory) {
  if (!test_device_is("cpu")) skip();
  void *scratch = NULL, *small = NULL;
  rondo_exec *exec = make_exec(t, 12 * MIB, "scratch", false, &scratch);
  rondo_exec *modest = make_exec(t, 2 * MIB, "modest", false, &small);
  void *weights = test_allocate(t, 8 * MIB, "weights");
  for (int i = 0; i < 3; i++) {
    assert_fails(rondo_exec_launch(exec, t->stream), RONDO_OUT_OF_MEMORY);
    assert_message("rondo_exec_launch of ");
    assert_message("memory for graphs");
    assert_message("'weights' 8.0 MiB");
    assert_fails(rondo_exec_upload(exec, t->stream), RONDO_OUT_OF_MEMORY);
    assert_message("rondo_exec_upload of ");
    assert_ok(rondo_exec_launch(modest, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
  }
  assert_ok(rondo_free(t->device, weights));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_exec_launch(modest, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free(t->device, test_allocate(t, 8 * MIB, "what the graphs had")));
  assert_ok(rondo_free(t->device, test_allocate(t, 16 * MIB, "all")));
}

static size_t three_quarters(test_fixture *t) {
  return (size_t)(test_device_info(t->device).memory_bytes / 4 * 3 / MIB * MIB);
}

/* GM-15: unused memory that graphs hold is freed for the next launch, on the same stream and on another, whether it was
 * left allocated and freed outside, or freed in the graph. */
LIMIT_TEST(test_gm15_launches_take_idle_graph_memory) {
  const size_t bytes = three_quarters(t);
  rondo_stream *side = test_stream(t, "side");
  for (int i = 0; i < 16; i++) {
    const bool keeps_first = i % 2 == 0, keeps_second = i / 2 % 2 == 0, frees_ordered = i / 4 % 2 == 0;
    rondo_stream *stream = i / 8 == 0 ? t->stream : side;
    void *first = NULL, *second = NULL;
    rondo_exec *before = make_large(t, bytes, "first", keeps_first, &first);
    rondo_exec *after = make_large(t, bytes, "second", keeps_second, &second);
    for (int k = 0; k < 2; k++) {
      assert_ok(rondo_exec_launch(before, t->stream));
      if (!frees_ordered || stream != t->stream) assert_ok(rondo_stream_synchronize(t->stream));
      if (keeps_first) assert_ok(frees_ordered ? rondo_free_async(t->stream, first) : rondo_free(t->device, first));
      if (stream != t->stream) assert_ok(rondo_stream_synchronize(t->stream));
      assert_ok(rondo_exec_launch(after, stream));
      assert_ok(rondo_stream_synchronize(stream));
      if (keeps_second) assert_int_equal(test_word(t, second), 5);
      if (keeps_second && k == 0) { /* live memory is never taken */
        assert_fails(rondo_exec_launch(before, t->stream), RONDO_OUT_OF_MEMORY);
        assert_int_equal(test_word(t, second), 5);
      }
      if (keeps_second) assert_ok(rondo_free(t->device, second));
    }
    rondo_exec_destroy(before);
    rondo_exec_destroy(after);
  }
}

/* And for allocations of the other kinds. */
LIMIT_TEST(test_gm15_allocations_take_idle_graph_memory) {
  const size_t bytes = three_quarters(t);
  for (int i = 0; i < 4; i++) {
    void *kept = NULL, *address = NULL;
    rondo_exec *exec = make_large(t, bytes, "graph's", i % 2 == 0, &kept);
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    if (i % 2 == 0) assert_ok(rondo_free(t->device, kept));
    if (i / 2 == 0) assert_ok(rondo_malloc(t->device, bytes, "another", &address));
    if (i / 2 == 1) assert_ok(rondo_malloc_async(t->stream, bytes, NULL, &address));
    assert_fails(rondo_exec_launch(exec, t->stream), RONDO_OUT_OF_MEMORY);
    assert_ok(rondo_free(t->device, address));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    if (i % 2 == 0) assert_ok(rondo_free(t->device, kept));
    rondo_exec_destroy(exec);
  }
}

/* GM-14, GM-15: memory that was mapped in advance for a launch is idle until the launch, and is freed as a last resort.
 */
LIMIT_TEST(test_gm15_uploaded_graph_memory_is_taken) {
  const size_t bytes = three_quarters(t);
  rondo_stream *side = test_stream(t, "side");
  for (int i = 0; i < 4; i++) {
    void *scratch = NULL, *kept = NULL, *address = NULL;
    rondo_exec *uploaded = make_large(t, bytes, "uploaded", false, &scratch);
    rondo_exec *other = make_large(t, bytes, "other", true, &kept);
    assert_ok(rondo_exec_upload(uploaded, t->stream));
    if (i < 2) assert_ok(rondo_exec_launch(other, i == 0 ? t->stream : side));
    if (i == 2) assert_ok(rondo_malloc(t->device, bytes, "another", &address));
    if (i == 3) assert_ok(rondo_malloc_async(side, bytes, NULL, &address));
    assert_fails(rondo_exec_launch(uploaded, t->stream), RONDO_OUT_OF_MEMORY);
    assert_ok(rondo_device_synchronize(t->device));
    assert_ok(rondo_free(t->device, i < 2 ? kept : address));
    assert_ok(rondo_exec_launch(uploaded, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    rondo_exec_destroy(uploaded);
    rondo_exec_destroy(other);
  }
}

/* Memory of the host is the program's, and each device has a limit of its own. */
LIMIT_TEST(test_what_the_limit_is_not_about) {
  if (!test_device_is("cpu")) skip();
  rondo_device *other = NULL;
  void *host = NULL, *address = NULL, *all = test_allocate(t, 16 * MIB, "all");
  assert_ok(rondo_host_malloc(t->device, 2 * LIMIT, &host));
  assert_ok(rondo_device_open(test_device_name(), NULL, &other));
  assert_ok(rondo_malloc(other, 2 * LIMIT, NULL, &address));
  refuse_at_once(t, 1);
  assert_ok(rondo_free(other, address));
  assert_ok(rondo_device_close(other));
  assert_ok(rondo_host_free(t->device, host));
  assert_ok(rondo_free(t->device, all));
}

/* Host memory of a CPU device has pages when they are touched, so that a large buffer of which little is used costs
 * little. A device of its own: the fixture's allocator writes to what it gives. */
TEST(test_host_memory_has_pages_when_touched) {
  if (!test_device_is("cpu")) skip();
  enum { PAGES = 65536 };
  static unsigned char resident[PAGES];
  char *host = NULL;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  rondo_device *device = test_device(test_device_name(), NULL);
  assert_ok(rondo_host_malloc(device, PAGES * page, (void **)&host));
  host[PAGES / 2 * page] = 1;
  char *first = (char *)(((uintptr_t)host + page - 1) / page * page);
  assert_int_equal(mincore(first, (PAGES - 1) * page, resident), 0);
  size_t there = 0;
  for (size_t i = 0; i + 1 < PAGES; i++) there += resident[i] & 1;
  assert_in_range(there, 1, PAGES / 16); /* the system's large pages may take some at once */
  assert_ok(rondo_host_free(device, host));
}

/* GM-2: the addresses of a process hold many graphs with memory nodes, and what they allocate stays apart. */

/* An allocation, and its free, that nothing else in the graph is ordered with. */
static char *add_pair(rondo_graph *graph) {
  rondo_node node;
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, MIB, "one of many", &address, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  return address;
}

TEST(test_gm2_a_hundred_thousand_graphs) {
  enum { GRAPHS = 100000, FEW = 10000 };
  static rondo_graph *graphs[GRAPHS];
  const size_t count = test_effort(test_device_is("cpu") && !test_is_guarded(t) ? GRAPHS : FEW);
  char *before = NULL;
  rondo_device_info info = test_device_info(t->device);
  for (size_t i = 0; i < count; i++) {
    assert_ok(rondo_graph_create(t->device, NULL, &graphs[i]));
    char *address = add_pair(graphs[i]);
    assert_true(before == NULL || address + MIB <= before || before + MIB <= address);
    before = address;
  }
  for (size_t i = 0; i < count; i += count / 4) { /* the later ones fit more than their first allocation */
    for (size_t k = 0; k < 8; k++) (void)add_pair(graphs[i]);
    test_run_once(t, graphs[i]);
    rondo_node node = {0};
    void *address = NULL;
    assert_ok(rondo_graph_add_alloc(graphs[i], NULL, 0, info.memory_bytes / 4, "large", &address, &node));
    assert_ok(rondo_graph_add_free(graphs[i], &node, 1, address, &node));
  }
  for (size_t i = 0; i < count; i++) test_graph_destroy(graphs[i]);
}

/* Without a limit, the machine's memory is the limit, although pages are only backed when they are accessed. */
TEST(test_more_than_the_machine_has) {
  void *address = NULL;
  rondo_device_info info = test_device_info(t->device);
  assert_fails(rondo_malloc(t->device, info.memory_bytes + 1, "vast", &address), RONDO_OUT_OF_MEMORY);
  assert_message("rondo_malloc");
  assert_fails(rondo_malloc_async(t->stream, info.memory_bytes + 1, NULL, &address), RONDO_OUT_OF_MEMORY);
  void *half = test_allocate(t, info.memory_bytes / 2, "half");
  assert_fails(rondo_malloc(t->device, info.memory_bytes / 2 + info.page_bytes, NULL, &address), RONDO_OUT_OF_MEMORY);
  assert_message("'half'");
  assert_ok(rondo_free(t->device, half));
  if (!test_device_is("cpu")) return;
  rondo_device *device = NULL; /* and no limit exceeds it */
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .memory_limit_bytes = UINT64_MAX};
  const uint64_t there = info.memory_bytes;
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  info = test_device_info(device);
  assert_int_equal(info.memory_bytes, there);
  assert_ok(rondo_device_close(device));
}

/* Allocates up to `most`; fewer when a checking device, which keeps a file for each mapping, has no more of them. */
static size_t take_many(test_fixture *t, void **out, size_t most) {
  for (size_t i = 0; i < most; i++) {
    const rondo_status status = rondo_malloc(t->device, MIB, "one of many", &out[i]);
    if (status == RONDO_LIMIT_EXCEEDED && test_is_guarded(t)) {
      assert_message("open files");
      return i;
    }
    assert_ok(status);
  }
  return most;
}

/* Many allocations, immediate and left alive by a graph, do not take a file of the process each. */
TEST(test_memory_does_not_take_files) {
  if (!test_device_is("cpu")) skip();
  enum { MANY = 200, FILES = 64 };
  struct rlimit limit, before;
  void *taken[MANY], *kept[MANY];
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  for (int i = 0; i < MANY && !test_is_guarded(t); i++)
    assert_ok(rondo_graph_add_alloc(graph, &node, i > 0, MIB, "kept", &kept[i], &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  limit = before;
  limit.rlim_cur = FILES;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const size_t count = take_many(t, taken, MANY);
  const rondo_status launched = rondo_exec_launch(exec, t->stream);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_ok(launched);
  assert_ok(rondo_stream_synchronize(t->stream));
  for (size_t i = 0; i < count; i++) assert_ok(rondo_free(t->device, taken[i]));
  for (int i = 0; i < MANY && !test_is_guarded(t); i++) assert_ok(rondo_free(t->device, kept[i]));
}

/* GM-15: idle memory mapped for graphs is also freed where the system limits mappings or files. */

/* Mappings of which only the number matters. */
typedef struct eaten {
  char *begin;
  size_t bytes;
} eaten;

static size_t count_mappings(void) {
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  for (int c; (c = getc(maps)) != EOF;) count += c == '\n';
  assert_int_equal(fclose(maps), 0);
  return count;
}

/* Making more than that takes too long. */
enum { MOST_EATEN = 1000000 };

/* All but `left` of those that the process may have. */
static eaten eat_mappings(size_t left) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = test_most_mappings();
  const size_t there = count_mappings(), pairs = most > there + left ? (most - there - left) / 2 : 0;
  const eaten all = {mmap(NULL, (2 * pairs + 1) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     (2 * pairs + 1) * page};
  assert_true(all.begin != MAP_FAILED);
  for (size_t i = 0; i < pairs; i++) assert_int_equal(mprotect(all.begin + (2 * i + 1) * page, page, PROT_READ), 0);
  return all;
}

enum { LAUNCHED = 300 };

/* Launches many graphs, one after another, without destroying any; then allocates. */
static void launch_many(test_fixture *t, rondo_stream *side, rondo_exec **execs) {
  void *address = NULL;
  for (int i = 0; i < LAUNCHED; i++) {
    execs[i] = make_large(t, MIB, "one of many", false, &address);
    assert_ok(rondo_exec_launch(execs[i], i / 50 % 2 == 0 ? t->stream : side));
    assert_ok(rondo_device_synchronize(t->device));
  }
  for (int i = 0; i < LAUNCHED; i++) assert_ok(rondo_exec_launch(execs[i], i / 2 % 2 == 0 ? t->stream : side));
  assert_ok(rondo_device_synchronize(t->device));
  assert_ok(rondo_malloc(t->device, MIB, "after them", &address));
  assert_ok(rondo_free(t->device, address));
  assert_ok(rondo_free_async(t->stream, take(t, NULL, MIB, "after them")));
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_gm15_many_launched_graphs_and_few_mappings) {
  if (!test_device_is("cpu") || test_is_guarded(t)) skip();                 /* guards need mappings of their own */
  if (TEST_EFFORT_DIVISOR > 1 || test_most_mappings() > MOST_EATEN) skip(); /* a sanitizer maps memory too */
  rondo_exec *execs[LAUNCHED];
  rondo_stream *side = test_stream(t, "side");
  const eaten all = eat_mappings(LAUNCHED);
  launch_many(t, side, execs);
  assert_int_equal(munmap(all.begin, all.bytes), 0);
  for (int i = 0; i < LAUNCHED; i++) rondo_exec_destroy(execs[i]);
}

TEST(test_gm15_many_launched_graphs_and_few_files) {
  if (!test_device_is("cpu")) skip();
  rondo_exec *execs[LAUNCHED];
  rondo_stream *side = test_stream(t, "side");
  struct rlimit limit, before;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  limit = before;
  limit.rlim_cur = 64;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  launch_many(t, side, execs);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (int i = 0; i < LAUNCHED; i++) rondo_exec_destroy(execs[i]);
}
