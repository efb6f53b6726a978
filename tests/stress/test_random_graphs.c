/* SPDX-License-Identifier: MIT
 * Thousands of random graphs, on devices with several numbers of workers: at every launch, each node runs once, after
 * all its dependencies, with its whole grid.
 *
 * Each node that computes has a slot of words. The words of a kernel or host function are a mixture of the launch's
 * number (which the first node counts up), the node, and all words of its dependencies; a copy takes the words of one
 * dependency. A node that runs too early, twice, or partly leaves other words than the same work in a plain loop. Slots
 * are written without atomics, so that a missing order is also a data race for ThreadSanitizer. Some nodes take longer
 * than others, so that the order in which nodes become ready varies. Each exec is launched so often that a device with
 * several methods of running it tries them all.
 */
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"

enum {
  MOST_NODES = 64,
  MOST_WORDS = 48,
  MOST_INPUTS = 8,
  MOST_CHILD_NODES = 3,
  MOST_SLOTS = MOST_NODES * MOST_CHILD_NODES
};

typedef struct slot {
  uint32_t count;
  uint32_t words[MOST_WORDS];
} slot;

/* How the words of a slot are computed. */
typedef struct recipe {
  rondo_node_kind kind; /* KERNEL, HOST, COPY or FILL */
  uint32_t index;
  uint32_t input_count, inputs[MOST_INPUTS]; /* slots read; a copy reads the first */
  uint32_t delay;                            /* iterations of a busy loop */
  slot *slots;                               /* of all recipes */
} recipe;

typedef struct world {
  uint32_t count; /* recipes */
  recipe recipes[MOST_SLOTS];
  slot slots[MOST_SLOTS], expected[MOST_SLOTS];
} world;

/* A node of the outer graph: its slots, and the slots that represent it for nodes that depend on it. */
typedef struct planned {
  rondo_node node;
  uint32_t output_count, outputs[MOST_INPUTS];
} planned;

/* What runs -------------------------------------------------------------------------------------------------------- */

static uint32_t mix(uint32_t value, uint32_t more) {
  value = (value ^ more) * 0x9e3779b1u;
  return value ^ (value >> 15);
}

static void run_words(const recipe *self, slot *slots, size_t first, size_t last) {
  uint32_t base = mix(slots[0].words[0], self->index);
  for (uint32_t i = 0; i < self->input_count; i++) {
    const slot *input = &slots[self->inputs[i]];
    for (uint32_t k = 0; k < input->count; k++) base = mix(base, input->words[k]);
  }
  for (size_t b = first; b < last; b++) slots[self->index].words[b] = mix(base, (uint32_t)b);
}

static void take_time(const recipe *self) {
  for (uint32_t i = 0; i < self->delay; i++) __asm__ volatile("" ::: "memory");
}

static void mix_cpu(rondo_blocks blocks, void *const *args) {
  const recipe *self = *(const recipe *const *)args[0];
  take_time(self);
  run_words(self, self->slots, blocks.first, blocks.last);
}

static rondo_status mix_on_host(void *user) {
  const recipe *self = user;
  take_time(self);
  run_words(self, self->slots, 0, self->slots[self->index].count);
  return RONDO_OK;
}

/* The first node: counts the launches. */
static rondo_status count_launch(void *user) {
  ((world *)user)->slots[0].words[0]++;
  return RONDO_OK;
}

/* The same work in a plain loop. */
static void expect_launch(world *w) {
  w->expected[0].words[0]++;
  for (uint32_t i = 1; i < w->count; i++) {
    const recipe *self = &w->recipes[i];
    slot *mine = &w->expected[i];
    if (self->kind == RONDO_NODE_COPY) {
      memcpy(mine->words, w->expected[self->inputs[0]].words, mine->count * sizeof(uint32_t));
    } else if (self->kind == RONDO_NODE_FILL) {
      for (uint32_t k = 0; k < mine->count; k++) mine->words[k] = i;
    } else {
      run_words(self, w->expected, 0, mine->count);
    }
  }
}

/* Making ---------------------------------------------------------------------------------------------------------- */

typedef struct maker {
  rondo_device *device;
  rondo_kernel *kernel;
  world *world;
  uint64_t random;
} maker;

static recipe *new_recipe(maker *m, rondo_node_kind kind, const uint32_t *inputs, uint32_t count) {
  world *w = m->world;
  recipe *self = &w->recipes[w->count];
  *self = (recipe){.kind = kind, .index = w->count, .input_count = count, .slots = w->slots};
  memcpy(self->inputs, inputs, count * sizeof *inputs);
  if (test_random_below(&m->random, 4) == 0) self->delay = test_random_below(&m->random, 3000);
  uint32_t words = kind == RONDO_NODE_COPY ? w->slots[inputs[0]].count : 1 + test_random_below(&m->random, 6);
  if (kind == RONDO_NODE_KERNEL && test_random_below(&m->random, 4) == 0) words = MOST_WORDS;
  w->slots[w->count].count = w->expected[w->count].count = words;
  w->count++;
  return self;
}

/* Adds the node of a recipe to a graph. The caller chooses how to add the edges. */
static rondo_status add_recipe(maker *m, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                               const recipe *self, rondo_node *out) {
  slot *mine = &m->world->slots[self->index];
  const rondo_copy copy = {
      .dst = mine->words, .width = mine->count * sizeof(uint32_t), .src = m->world->slots[self->inputs[0]].words};
  const rondo_fill fill = {.dst = mine->words, .value = self->index, .element_bytes = 4, .width = mine->count};
  switch (self->kind) {
    case RONDO_NODE_HOST:
      return rondo_graph_add_host(graph, dependencies, count, mix_on_host, (void *)(uintptr_t)self, out);
    case RONDO_NODE_COPY:
      return rondo_graph_add_copy(graph, dependencies, count, &copy, out);
    case RONDO_NODE_FILL:
      return rondo_graph_add_fill(graph, dependencies, count, &fill, out);
    default:
      return rondo_graph_add_kernel(graph, dependencies, count, m->kernel, (rondo_grid){mine->count, 0, 0},
                                    RONDO_ARGS(&self), out);
  }
}

static rondo_node_kind random_kind(maker *m) {
  static const rondo_node_kind kinds[] = {RONDO_NODE_KERNEL, RONDO_NODE_KERNEL, RONDO_NODE_KERNEL, RONDO_NODE_KERNEL,
                                          RONDO_NODE_HOST,   RONDO_NODE_COPY,   RONDO_NODE_FILL};
  return kinds[test_random_below(&m->random, sizeof kinds / sizeof kinds[0])];
}

/* A chain of a few nodes as a child graph: the first reads the dependencies of the child, the last represents it. */
static void add_child(maker *m, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                      const uint32_t *inputs, uint32_t input_count, planned *out) {
  rondo_graph *inner = NULL;
  rondo_node last = {0};
  assert_ok(rondo_graph_create(m->device, NULL, &inner));
  const uint32_t length = 1 + test_random_below(&m->random, MOST_CHILD_NODES);
  for (uint32_t i = 0; i < length; i++) {
    const uint32_t before = m->world->count - 1;
    const recipe *self =
        i == 0 ? new_recipe(m, RONDO_NODE_KERNEL, inputs, input_count) : new_recipe(m, random_kind(m), &before, 1);
    assert_ok(add_recipe(m, inner, &last, i > 0, self, &last));
  }
  out->output_count = 1;
  out->outputs[0] = m->world->count - 1;
  assert_ok(rondo_graph_add_child(graph, dependencies, count, inner, &out->node));
  test_graph_destroy(inner);
}

/* The earlier nodes that node `i` depends on, and the slots that it therefore reads. */
typedef struct choice {
  uint32_t count, before[4];
  uint32_t input_count, inputs[MOST_INPUTS];
} choice;

static bool holds(const uint32_t *list, uint32_t count, uint32_t value) {
  for (uint32_t i = 0; i < count; i++) {
    if (list[i] == value) return true;
  }
  return false;
}

static choice choose(maker *m, const planned *nodes, uint32_t i) {
  choice self = {.count = 0};
  const uint32_t wanted = 1 + test_random_below(&m->random, 3);
  for (uint32_t k = 0; k < wanted; k++) {
    /* usually near, so that graphs are deep; sometimes anywhere */
    const uint32_t reach = test_random_below(&m->random, 4) == 0 || i < 8 ? i : 8;
    const uint32_t before = i - 1 - test_random_below(&m->random, reach);
    if (holds(self.before, self.count, before)) continue;
    if (self.input_count + nodes[before].output_count > MOST_INPUTS) continue;
    self.before[self.count++] = before;
    for (uint32_t o = 0; o < nodes[before].output_count; o++) {
      self.inputs[self.input_count++] = nodes[before].outputs[o];
    }
  }
  return self;
}

static void add_node(maker *m, rondo_graph *graph, planned *nodes, uint32_t i, bool edges_apart) {
  const choice chosen = choose(m, nodes, i);
  rondo_node before[4];
  planned *self = &nodes[i];
  for (uint32_t k = 0; k < chosen.count; k++) before[k] = nodes[chosen.before[k]].node;
  const size_t given = edges_apart ? 0 : chosen.count;
  const uint32_t what = test_random_below(&m->random, 10);
  if (what == 0) {
    assert_ok(rondo_graph_add_empty(graph, before, given, &self->node));
    self->output_count = chosen.input_count;
    memcpy(self->outputs, chosen.inputs, sizeof self->outputs);
  } else if (what == 1) {
    add_child(m, graph, before, given, chosen.inputs, chosen.input_count, self);
  } else {
    const recipe *made = new_recipe(m, random_kind(m), chosen.inputs, chosen.input_count);
    assert_ok(add_recipe(m, graph, before, given, made, &self->node));
    self->output_count = 1;
    self->outputs[0] = made->index;
  }
  for (uint32_t k = chosen.count; edges_apart && k-- > 0;) {
    assert_ok(rondo_graph_add_edges(graph, &before[k], &self->node, 1));
  }
}

static rondo_graph *make_graph(maker *m) {
  planned nodes[MOST_NODES];
  rondo_graph *graph = NULL;
  world *w = m->world;
  memset(w, 0, sizeof *w);
  w->count = 1; /* slot 0 is the first node's */
  w->slots[0].count = w->expected[0].count = 1;
  assert_ok(rondo_graph_create(m->device, NULL, &graph));
  nodes[0] = (planned){.output_count = 1, .outputs = {0}};
  assert_ok(rondo_graph_add_host(graph, NULL, 0, count_launch, w, &nodes[0].node));
  const uint32_t count = 1 + test_random_below(&m->random, MOST_NODES);
  const bool edges_apart = test_random_below(&m->random, 2) == 0;
  for (uint32_t i = 1; i < count; i++) add_node(m, graph, nodes, i, edges_apart);
  return graph;
}

/* Running --------------------------------------------------------------------------------------------------------- */

static void check_world(const world *w, uint64_t seed) {
  for (uint32_t i = 0; i < w->count; i++) {
    if (memcmp(&w->slots[i], &w->expected[i], sizeof w->slots[i]) == 0) continue;
    print_error("graph of seed %llu: the words of slot %u (%s) are wrong\n", (unsigned long long)seed, i,
                rondo_node_kind_name(w->recipes[i].kind));
    fail();
  }
}

/* Launches of one exec, some queued one after another, on alternating streams. */
static void run_graph(maker *m, rondo_stream *const streams[2], uint64_t seed) {
  m->random = seed;
  rondo_graph *graph = make_graph(m);
  rondo_exec *exec = test_exec_of(graph);
  for (int round = 0; round < 4; round++) {
    const uint32_t launches = 2 + test_random_below(&m->random, 6);
    for (uint32_t i = 0; i < launches; i++) {
      assert_ok(rondo_exec_launch(exec, streams[test_random_below(&m->random, 2)]));
      expect_launch(m->world);
    }
    for (int i = 0; i < 2; i++) assert_ok(rondo_stream_synchronize(streams[i]));
    check_world(m->world, seed);
  }
  rondo_exec_destroy(exec);
}

static void run_graphs(uint32_t workers, uint64_t first_seed, uint32_t most) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "mix", .cpu = mix_cpu,
                                       .params = {RONDO_SCALAR(void *)}};
  const uint32_t count = test_effort(most);
  maker m = {.world = malloc(sizeof(world))};
  rondo_stream *streams[2];
  assert_non_null(m.world);
  assert_ok(rondo_device_open("cpu", &options, &m.device));
  assert_ok(rondo_kernel_create(m.device, &kernel, &m.kernel));
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_create(m.device, NULL, &streams[i]));
  for (uint64_t seed = first_seed; seed < first_seed + count; seed++) run_graph(&m, streams, seed);
  for (int i = 0; i < 2; i++) test_stream_destroy(streams[i]);
  rondo_kernel_destroy(m.kernel);
  assert_ok(rondo_device_close(m.device));
  free(m.world);
}

UNIT_TEST(test_gx4_random_graphs_with_one_worker) { run_graphs(1, 1000, 1200); }

UNIT_TEST(test_gx4_random_graphs_with_two_workers) { run_graphs(2, 10000, 1200); }

UNIT_TEST(test_gx4_random_graphs_with_three_workers) { run_graphs(3, 20000, 1200); }

UNIT_TEST(test_gx4_random_graphs_with_eight_workers) { run_graphs(8, 30000, 800); }
