/* SPDX-License-Identifier: MIT
 * Addresses of alloc nodes: the best fit among the memory that is free before the node, and no other memory (GM-2,
 * GM-11), and which nodes may be removed afterwards. Random graphs are compared with reachability found by brute force.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fake_driver.h"
#include "memory/graph_memory/address_space.h"
#include "memory/memory_check.h"
#include "support/rondo_test.h"

#define KIB ((size_t)1024)

static rondo_graph *make_graph(rondo_device *device) {
  rondo_graph *graph = NULL;
  assert_ok(rondo_graph_create(device, NULL, &graph));
  return graph;
}

static rondo_node add_alloc(rondo_graph *graph, const rondo_node *before, size_t count, size_t bytes, char **out) {
  rondo_node node = {0};
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, before, count, bytes, NULL, &address, &node));
  *out = address;
  return node;
}

static rondo_node add_free(rondo_graph *graph, rondo_node before, void *address) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_free(graph, &before, 1, address, &node));
  return node;
}

/* The smallest gap that fits is taken, and adjacent gaps are one. */
UNIT_TEST(test_gm11_best_fit) {
  static const size_t sizes[] = {8, 1, 3, 1, 2, 1, 4, 4, 1};
  rondo_device *device = fake_open(NULL);
  rondo_graph *graph = make_graph(device);
  char *addresses[9], *address;
  rondo_node last = {0};
  for (int i = 0; i < 9; i++) last = add_alloc(graph, &last, i > 0, sizes[i] * KIB, &addresses[i]);
  for (int i = 0; i < 8; i += 2) last = add_free(graph, last, addresses[i]);
  last = add_free(graph, last, addresses[7]);
  rondo_node node = add_alloc(graph, &last, 1, 2 * KIB, &address);
  assert_ptr_equal(address, addresses[4]);
  node = add_alloc(graph, &node, 1, 3 * KIB - 100, &address);
  assert_ptr_equal(address, addresses[2]);
  node = add_alloc(graph, &node, 1, 8 * KIB, &address);
  assert_true(address == addresses[0] || address == addresses[6]);
  node = add_alloc(graph, &node, 1, 8 * KIB, &address);
  assert_true(address == addresses[0] || address == addresses[6]);
  add_alloc(graph, &node, 1, 1 * KIB, &address);
  assert_true(address >= addresses[8] + KIB);
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(fake_close(device), 0);
}

/* Removing the order on which a reuse depends is refused, naming the two nodes; with another path it is allowed. */
UNIT_TEST(test_removal_keeps_the_order) {
  rondo_device *device = fake_open(NULL);
  rondo_graph *graph = make_graph(device);
  char *first, *second;
  const rondo_node a = add_alloc(graph, NULL, 0, 4 * KIB, &first);
  const rondo_node freed = add_free(graph, a, first);
  rondo_node between = {0};
  assert_ok(rondo_graph_add_empty(graph, &freed, 1, &between));
  const rondo_node b = add_alloc(graph, &between, 1, 4 * KIB, &second);
  assert_ptr_equal(first, second);
  assert_error(rondo_graph_remove_edges(graph, &between, &b, 1), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_message("1 -> 3");
  assert_error(rondo_graph_remove(graph, between), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_error(rondo_graph_remove(graph, freed), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_ok(rondo_graph_add_edges(graph, &freed, &b, 1));
  assert_ok(rondo_graph_remove(graph, between));
  assert_error(rondo_graph_remove_edges(graph, &freed, &b, 1), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_ok(rondo_graph_remove(graph, b));
  assert_ok(rondo_graph_remove(graph, freed));
  assert_ok(rondo_graph_remove(graph, a));
  assert_int_equal(rondo_address_space_of(graph)->allocations.count, 0);
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(fake_close(device), 0);
}

/* A clone shares the addresses of common nodes, and gets other addresses for nodes that it adds. */
UNIT_TEST(test_clones_are_independent_when_nodes_are_added) {
  rondo_device *device = fake_open(NULL);
  rondo_graph *graph = make_graph(device), *clone = NULL;
  char *common, *own, *cloned;
  const rondo_node a = add_alloc(graph, NULL, 0, 4 * KIB, &common);
  rondo_node copy = {0};
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, a, &copy));
  add_alloc(graph, &a, 1, 4 * KIB, &own);
  add_alloc(clone, &copy, 1, 4 * KIB, &cloned);
  assert_true(own != common && cloned != common && own != cloned);
  assert_ok(rondo_graph_destroy(graph));
  char *more;
  add_alloc(clone, &copy, 1, 4 * KIB, &more);
  assert_true(more != own && more != cloned);
  assert_ok(rondo_graph_destroy(clone));
  assert_int_equal(fake_close(device), 0);
}

/* A full space gets more addresses; if there are none, the call fails with a reason, and the graph stays usable. */
UNIT_TEST(test_the_space_ends) {
  rondo_device *device = fake_open(NULL);
  rondo_graph *graph = make_graph(device);
  char *address;
  void *none = &address;
  rondo_node node = add_alloc(graph, NULL, 0, 4 * KIB, &address);
  const size_t reserved = rondo_address_space_of(graph)->first.bytes;
  fake_of(device)->fail_at = fake_of(device)->calls + 1;
  fake_of(device)->fail_rest = true;
  assert_error(rondo_graph_add_alloc(graph, &node, 1, reserved, "large", &none, &node), RONDO_OUT_OF_MEMORY,
               RONDO_REASON_ADDRESS_SPACE);
  assert_message("of addresses for graph memory");
  assert_null(none);
  fake_of(device)->fail_at = 0;
  size_t count = 0;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  add_alloc(graph, NULL, 0, 4 * KIB, &address);
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(fake_close(device), 0);
}

/* A device without graph memory refuses every memory node (GM-1). */
UNIT_TEST(test_gm1_without_graph_memory) {
  rondo_device *device = fake_open(NULL);
  fake_of(device)->no_graph_memory = true;
  rondo_graph *graph = make_graph(device);
  rondo_stream *stream = NULL;
  rondo_node node = {0};
  void *address = NULL;
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_fails(rondo_graph_add_alloc(graph, NULL, 0, 16, NULL, &address, &node), RONDO_UNSUPPORTED);
  assert_message("fake");
  assert_fails(rondo_graph_add_free(graph, NULL, 0, &node, &node), RONDO_UNSUPPORTED);
  assert_fails(rondo_malloc_async(stream, 16, NULL, &address), RONDO_UNSUPPORTED);
  assert_ok(rondo_malloc(device, 16, NULL, &address));
  assert_ok(rondo_free(device, address));
  assert_ok(rondo_stream_destroy(stream));
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(fake_close(device), 0);
}

/* Random graphs ---------------------------------------------------------------------------------------------------- */

enum { NODES = 120 };

typedef struct random_graph {
  rondo_graph *graph;
  rondo_node nodes[NODES];
  bool before[NODES][NODES]; /* before[i][k]: node k comes before node i */
  char *address[NODES];      /* alloc nodes */
  size_t bytes[NODES];
  int freed_by[NODES];       /* -1: not yet */
  test_allocator *allocator; /* the device's, to fail; NULL: none does */
  size_t failures;
  bool is_alloc[NODES];
} random_graph;

static size_t pick_dependencies(random_graph *self, int at, uint64_t *random, rondo_node *out) {
  size_t count = 0;
  for (int i = at > 12 ? at - 12 : 0; i < at; i++) {
    if (test_random_below(random, 5) != 0) continue;
    out[count++] = self->nodes[i];
    self->before[at][i] = true;
    for (int k = 0; k < i; k++) self->before[at][k] = self->before[at][k] || self->before[i][k];
  }
  return count;
}

/* An alloc node before `at` that is not freed; -1 when there is none. */
static int pick_unfreed(const random_graph *self, int at) {
  for (int i = 0; i < at; i++)
    if (self->is_alloc[i] && self->freed_by[i] < 0 && self->before[at][i]) return i;
  return -1;
}

static void check_overlaps(const random_graph *self, int at) {
  for (int i = 0; i < at; i++) {
    if (!self->is_alloc[i]) continue;
    const bool apart = self->address[i] + self->bytes[i] <= self->address[at] ||
                       self->address[at] + self->bytes[at] <= self->address[i];
    assert_true(apart || (self->freed_by[i] >= 0 && self->before[at][self->freed_by[i]]));
  }
}

static int compare_begins(const void *a, const void *b) {
  const char *x = **(char *const *const *)a, *y = **(char *const *const *)b;
  return (x > y) - (x < y);
}

/* The expected address of node `at`: the lowest of the smallest gaps between the allocations that are not freed before
 * it. */
static const char *find_best_fit(random_graph *self, int at) {
  char **busy[NODES], *cursor = rondo_address_space_of(self->graph)->first.base, *best = NULL;
  size_t count = 0, best_gap = SIZE_MAX;
  for (int i = 0; i < at; i++) {
    const bool freed = self->freed_by[i] >= 0 && self->before[at][self->freed_by[i]];
    if (self->is_alloc[i] && !freed) busy[count++] = &self->address[i];
  }
  qsort(busy, count, sizeof *busy, compare_begins);
  for (size_t i = 0; i < count; i++) {
    const size_t gap = *busy[i] > cursor ? (size_t)(*busy[i] - cursor) : 0;
    char *end = *busy[i] + (self->bytes[busy[i] - self->address] + 255) / 256 * 256;
    if (gap >= self->bytes[at] && gap < best_gap) {
      best = cursor;
      best_gap = gap;
    }
    if (end > cursor) cursor = end;
  }
  return best == NULL ? cursor : best;
}

typedef enum action { ALLOCATE, RELEASE, NOTHING } action;

static rondo_status try_node(random_graph *self, int at, action what, const rondo_node *before, size_t count,
                             int unfreed) {
  void *address = NULL;
  rondo_status status = RONDO_OK;
  if (what == ALLOCATE) {
    status = rondo_graph_add_alloc(self->graph, before, count, self->bytes[at], NULL, &address, &self->nodes[at]);
    self->address[at] = address;
  }
  if (what == RELEASE)
    status = rondo_graph_add_free(self->graph, before, count, self->address[unfreed], &self->nodes[at]);
  if (what == NOTHING) status = rondo_graph_add_empty(self->graph, before, count, &self->nodes[at]);
  return status;
}

/* With an allocator, each host allocation of the call fails once. */
static void make_node(random_graph *self, int at, action what, const rondo_node *before, size_t count, int unfreed) {
  test_allocator *allocator = self->allocator;
  rondo_status status = RONDO_OUT_OF_MEMORY;
  for (size_t allowed = 1; status == RONDO_OUT_OF_MEMORY; allowed++) {
    if (allocator != NULL) atomic_store(&allocator->fail_at, atomic_load(&allocator->calls) + allowed);
    status = try_node(self, at, what, before, count, unfreed);
    self->failures += status == RONDO_OUT_OF_MEMORY;
    if (allocator == NULL) break;
  }
  if (allocator != NULL) atomic_store(&allocator->fail_at, 0);
  assert_ok(status);
}

static void add_random_node(random_graph *self, int at, uint64_t *random) {
  rondo_node dependencies[NODES];
  const size_t count = pick_dependencies(self, at, random, dependencies);
  const uint32_t what = test_random_below(random, 5);
  const int unfreed = pick_unfreed(self, at);
  if (what < 2) {
    self->bytes[at] = 1 + test_random_below(random, 20000);
    make_node(self, at, ALLOCATE, dependencies, count, -1);
    self->is_alloc[at] = true;
    check_overlaps(self, at);
    assert_ptr_equal(self->address[at], find_best_fit(self, at));
  } else if (what < 4 && unfreed >= 0) {
    make_node(self, at, RELEASE, dependencies, count, unfreed);
    self->freed_by[unfreed] = at;
  } else {
    make_node(self, at, NOTHING, dependencies, count, -1);
  }
  rondo_address_space_check(rondo_address_space_of(self->graph));
}

/* A node that found no host memory gets the same address later, and nothing is left over. */
UNIT_TEST(test_gm11_placing_goes_on_after_failures) {
  test_allocator allocator;
  test_allocator_init(&allocator);
  rondo_device *device = fake_open(&allocator.table);
  random_graph *self = malloc(sizeof *self);
  for (uint64_t seed = 101; seed <= 106; seed++) {
    uint64_t random = seed;
    memset(self, 0, sizeof *self);
    self->allocator = &allocator;
    self->graph = make_graph(device);
    for (int i = 0; i < NODES; i++) self->freed_by[i] = -1;
    for (int i = 0; i < NODES; i++) add_random_node(self, i, &random);
    assert_true(self->failures > 100);
    assert_ok(rondo_graph_destroy(self->graph));
  }
  free(self);
  assert_int_equal(fake_close(device), 0);
  assert_true(test_allocator_is_clean(&allocator));
}

/* GM-9, GM-11: in any graph, bytes are reused only after the free; and the graph can be instantiated. */
UNIT_TEST(test_gm11_random_graphs) {
  rondo_device *device = fake_open(NULL);
  random_graph *self = malloc(sizeof *self);
  size_t reused = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    uint64_t random = seed;
    memset(self, 0, sizeof *self);
    self->graph = make_graph(device);
    for (int i = 0; i < NODES; i++) self->freed_by[i] = -1;
    for (int i = 0; i < NODES; i++) {
      add_random_node(self, i, &random);
      for (int k = 0; k < i && self->is_alloc[i]; k++) reused += self->address[k] == self->address[i];
    }
    rondo_exec *exec = test_instantiate(self->graph);
    rondo_exec_destroy(exec);
    assert_ok(rondo_graph_destroy(self->graph));
  }
  assert_true(reused > 100);
  free(self);
  assert_int_equal(fake_close(device), 0);
}

/* More branches in alternation than the view has points: each branch reuses its own bytes only. */
UNIT_TEST(test_gm11_many_branches_in_turn) {
  enum { BRANCHES = RONDO_GRAPH_POINTS + 9, ROUNDS = 4 };
  rondo_device *device = fake_open(NULL);
  rondo_graph *graph = make_graph(device);
  rondo_node last[BRANCHES], root = {0};
  char *addresses[BRANCHES] = {NULL};
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &root));
  for (int i = 0; i < ROUNDS * BRANCHES; i++) {
    const int branch = i % BRANCHES;
    char *address;
    const rondo_node node = add_alloc(graph, i < BRANCHES ? &root : &last[branch], 1, 4 * KIB, &address);
    last[branch] = add_free(graph, node, address);
    if (i >= BRANCHES) assert_ptr_equal(address, addresses[branch]);
    for (int k = 0; k < i && k < BRANCHES; k++)
      if (k != branch) assert_ptr_not_equal(address, addresses[k]);
    addresses[branch] = address;
  }
  char *after_all, *after_none;
  add_alloc(graph, last, BRANCHES, BRANCHES * 4 * KIB, &after_all);
  assert_ptr_equal(after_all, addresses[0]);
  add_alloc(graph, NULL, 0, 4 * KIB, &after_none);
  assert_ptr_equal(after_none, after_all + BRANCHES * 4 * KIB);
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(fake_close(device), 0);
}

/* Removed edges and nodes leave every reuse ordered, and nothing else is refused. */
typedef struct removal {
  uint32_t from, to, slot; /* RONDO_NO_NODE: none */
} removal;

static const removal nothing = {.from = RONDO_NO_NODE, .to = RONDO_NO_NODE, .slot = RONDO_NO_NODE};

static bool reaches(const rondo_graph *graph, uint32_t from, uint32_t to, const removal *without, bool *seen) {
  if (from == without->slot || to == without->slot) return false;
  if (from == to) return true;
  if (seen[from]) return false;
  seen[from] = true;
  const rondo_slots *after = &rondo_graph_at(graph, from)->dependents;
  for (size_t i = 0; i < after->count; i++) {
    const bool gone = from == without->from && after->items[i] == without->to;
    if (!gone && reaches(graph, after->items[i], to, without, seen)) return true;
  }
  return false;
}

/* Whether node `later` overlaps `earlier`, and both stay. */
static bool shares(const random_graph *self, int earlier, int later, const removal *without) {
  const rondo_graph_node *nodes = self->graph->nodes.items;
  if (!self->is_alloc[later] || !self->is_alloc[earlier] || self->freed_by[earlier] < 0) return false;
  if (!nodes[later].live || !nodes[earlier].live) return false;
  if ((uint32_t)later == without->slot || (uint32_t)earlier == without->slot) return false;
  return self->address[earlier] + self->bytes[earlier] > self->address[later] &&
         self->address[later] + self->bytes[later] > self->address[earlier];
}

static bool is_reuse_ordered(const random_graph *self, const removal *without) {
  for (int later = 0; later < NODES; later++)
    for (int earlier = 0; earlier < later; earlier++) {
      bool seen[NODES] = {false};
      if (!shares(self, earlier, later, without)) continue;
      assert_true(self->graph->nodes.items[self->freed_by[earlier]].live);
      if (!reaches(self->graph, (uint32_t)self->freed_by[earlier], (uint32_t)later, without, seen)) return false;
    }
  return true;
}

UNIT_TEST(test_random_removals) {
  rondo_device *device = fake_open(NULL);
  random_graph *self = malloc(sizeof *self);
  size_t refused = 0, removed = 0;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    uint64_t random = seed;
    memset(self, 0, sizeof *self);
    self->graph = make_graph(device);
    for (int i = 0; i < NODES; i++) self->freed_by[i] = -1;
    for (int i = 0; i < NODES; i++) add_random_node(self, i, &random);
    for (int step = 0; step < 100; step++) {
      rondo_node from[1000], to[1000];
      size_t count = 1000;
      assert_ok(rondo_graph_edges(self->graph, from, to, &count));
      if (count == 0) break;
      const size_t at = test_random_below(&random, (uint32_t)count);
      const bool edge = test_random_below(&random, 2) == 0;
      removal asked = {.from = rondo_node_number(from[at]), .to = rondo_node_number(to[at]), .slot = RONDO_NO_NODE};
      if (!edge) asked = (removal){.from = RONDO_NO_NODE, .to = RONDO_NO_NODE, .slot = rondo_node_number(from[at])};
      const bool fine = is_reuse_ordered(self, &asked);
      const rondo_status status = edge ? rondo_graph_remove_edges(self->graph, &from[at], &to[at], 1)
                                       : rondo_graph_remove(self->graph, from[at]);
      assert_int_equal(status == RONDO_OK, fine);
      if (status != RONDO_OK) assert_int_equal(rondo_last_error()->reason, RONDO_REASON_EDGE_IN_USE);
      refused += status != RONDO_OK;
      removed += status == RONDO_OK;
      assert_true(is_reuse_ordered(self, &nothing));
    }
    assert_ok(rondo_graph_destroy(self->graph));
  }
  assert_true(refused > 20 && removed > 100);
  free(self);
  assert_int_equal(fake_close(device), 0);
}
