/* SPDX-License-Identifier: MIT
 * How much physical memory planned graphs hold, in exact bytes (GM-11). Profiled or relocated: at most 1.01 times the
 * maximum of live bytes, up to a page. Placed when nodes are created: never less, and never more than without sharing.
 * Steady launches map nothing (GM-13).
 */
#include <inttypes.h>

#include "support/test_graph_memory.h"

/* Counted in steps, so that plans do not depend on how busy the machine is. */
static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 30000, .gap = 1.005};
static const rondo_instantiate_options relocating = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true,
                                                     .plan = &planning};

enum { MOST = 400, WORDS = 64 }; /* allocations of a graph; words that are written and read of each */

/* The steps of a sequential graph, one for each node: allocate block number `step`, or free block number -step - 1. */
typedef struct work {
  size_t bytes[MOST];
  int steps[2 * MOST];
  size_t block_count, step_count;
} work;

static uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

static uint32_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)(*state >> 32);
}

static int allocate(work *self, size_t bytes) {
  const int block = (int)self->block_count++;
  self->bytes[block] = bytes;
  self->steps[self->step_count++] = block;
  return block;
}

static void release(work *self, int block) { self->steps[self->step_count++] = -block - 1; }

/* Three blocks, then one that fits only where two of them were. */
static void make_gap(work *self) {
  const int a = allocate(self, 16384), b = allocate(self, 16384);
  release(self, a);
  const int c = allocate(self, 32768);
  release(self, b);
  release(self, c);
}

/* A model that only runs forward: a layer's output lives until the next but one is there, with scratch in each. */
static void make_inference(work *self) {
  int outputs[40];
  uint64_t state = 11;
  for (int i = 0; i < 40; i++) {
    outputs[i] = allocate(self, 4096 * (1 + next_random(&state) % 60));
    release(self, allocate(self, 4096 * (1 + next_random(&state) % 200)));
    if (i > 1) release(self, outputs[i - 2]);
  }
  release(self, outputs[38]);
  release(self, outputs[39]);
}

/* A training step: outputs of all layers are kept for the backward pass, where gradients replace them. */
static void make_training(work *self) {
  int outputs[30], gradient = -1;
  uint64_t state = 12;
  for (int i = 0; i < 30; i++) {
    outputs[i] = allocate(self, 1024 * (1 + next_random(&state) % 300));
    release(self, allocate(self, 1024 * (1 + next_random(&state) % 500)));
  }
  for (int i = 29; i >= 0; i--) {
    const int scratch = allocate(self, 1024 * (1 + next_random(&state) % 400));
    const int next = allocate(self, self->bytes[outputs[i]]);
    release(self, scratch);
    if (gradient >= 0) release(self, gradient);
    release(self, outputs[i]);
    gradient = next;
  }
  release(self, gradient);
}

/* Blocks of any size, freed in any order. */
static void make_random(work *self) {
  int live[MOST];
  size_t count = 0;
  uint64_t state = 13;
  while (self->block_count < 150 || count > 0) {
    const bool allocates = self->block_count < 150 && (count < 8 || next_random(&state) % 2 == 0);
    if (allocates) {
      live[count++] = allocate(self, 256 + next_random(&state) % 400000);
      continue;
    }
    const size_t at = next_random(&state) % count;
    release(self, live[at]);
    live[at] = live[--count];
  }
}

typedef struct shape {
  const char *name;
  void (*make)(work *self);
} shape;

static const shape shapes[] = {
    {"gap", make_gap}, {"inference", make_inference}, {"training", make_training}, {"random", make_random}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The maximum of live bytes, and the bytes of all blocks, each rounded as an allocation is. */
static uint64_t bound_of(const work *self, uint64_t *out_sum) {
  uint64_t live = 0, most = 0;
  *out_sum = 0;
  for (size_t i = 0; i < self->step_count; i++) {
    const int step = self->steps[i];
    const uint64_t bytes = round_up(self->bytes[step >= 0 ? step : -step - 1], 256);
    live = step >= 0 ? live + bytes : live - bytes;
    if (step >= 0) *out_sum += bytes;
    if (live > most) most = live;
  }
  return most;
}

/* The graph of it: each block is written when it is allocated, and read before it is freed. */
static rondo_graph *record(test_fixture *t, const work *self, rondo_profile *profile, uint32_t *out) {
  static uint32_t *words[MOST];
  rondo_graph *graph = NULL;
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile};
  assert_ok(rondo_graph_create(t->device, &options, &graph));
  rondo_node last = {0};
  for (size_t i = 0; i < self->step_count; i++) {
    const int step = self->steps[i];
    if (step >= 0) {
      const test_allocation made = test_add_alloc(graph, &last, last.id != 0, self->bytes[step], NULL);
      words[step] = made.words;
      last = test_add_set(t, graph, made.node, made.words, WORDS, (uint32_t)step + 1);
    } else {
      const int block = -step - 1;
      last = test_add_read(t, graph, last, words[block], out + block * WORDS, WORDS);
      last = test_add_free(graph, last, words[block]);
    }
  }
  return graph;
}

/* Launches it until it is warm, then on; returns the physical bytes of it. Others hold none meanwhile. */
static uint64_t measure(test_fixture *t, rondo_exec *exec, const work *self, uint32_t *out) {
  assert_int_equal(test_memory_statistics(t).graph_reserved, 0);
  assert_ok(rondo_exec_launch(exec, t->stream));
  const rondo_memory_statistics warm = test_memory_statistics(t);
  const uint64_t maps = test_statistics(t).maps;
  const int launches = test_is_guarded(t) ? 2 : 10; /* a guarded device runs each in several orders */
  for (int i = 0; i < launches; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  for (size_t block = 0; block < self->block_count; block += 7)
    test_assert_all(t, out + block * WORDS, WORDS, ((uint32_t)block + 1) * 32);
  const rondo_memory_statistics steady = test_memory_statistics(t);
  assert_int_equal(steady.remaps, warm.remaps);
  assert_int_equal(steady.heap_growth, warm.heap_growth);
  assert_int_equal(steady.graph_reserved, warm.graph_reserved);
  assert_int_equal(test_statistics(t).maps, maps);
  assert_int_equal(test_exec_info(exec).graph_bytes, steady.graph_reserved);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_memory_trim(t->device));
  return steady.graph_reserved;
}

static uint64_t page_of(test_fixture *t) {
  rondo_device_info info = test_device_info(t->device);
  return info.page_bytes;
}

/* GM-11: the limits, for each of the graphs in each of the three modes. */
TEST(test_gm11_planned_memory_is_at_the_bound) {
  const uint64_t page = page_of(t);
  uint32_t *out = test_words(t, (size_t)MOST * WORDS);
  for (size_t i = 0; i < SHAPES; i++) {
    static work self;
    self = (work){.block_count = 0};
    shapes[i].make(&self);
    uint64_t sum;
    const uint64_t bound = bound_of(&self, &sum), bar = round_up(bound + bound / 100, page);
    rondo_profile *profile = NULL;
    rondo_graph *online = record(t, &self, NULL, out);
    assert_ok(rondo_profile_create(online, &planning, &profile));
    rondo_graph *profiled = record(t, &self, profile, out);
    rondo_exec *relocated = test_instantiate_with(online, &relocating);
    rondo_exec_info info = test_exec_info(relocated);
    assert_int_equal(info.planned_bound, bound);
    const uint64_t planned = round_up(info.planned_bytes, page);
    const uint64_t held[3] = {measure(t, test_instantiate(online), &self, out),
                              measure(t, test_instantiate(profiled), &self, out), measure(t, relocated, &self, out)};
    if (!test_is_guarded(t)) { /* otherwise no two allocations share a page */
      print_message("%s: bound %" PRIu64 ", online %" PRIu64 ", profiled %" PRIu64 ", relocated %" PRIu64 " bytes\n",
                    shapes[i].name, bound, held[0], held[1], held[2]);
      assert_true(held[0] >= bound && held[0] <= round_up(sum, page));
      assert_true(held[1] <= bar && held[1] <= held[0]);
      assert_true(held[2] <= bar && held[2] <= held[0]);
      assert_int_equal(held[2], planned);
      rondo_profile_info followed = {.struct_size = sizeof followed};
      assert_ok(rondo_profile_get_info(profile, &followed));
      assert_int_equal(followed.placed, self.block_count);
      assert_int_equal(held[1], round_up(followed.peak, page));
    }
    rondo_profile_destroy(profile);
    test_graph_destroy(online);
    test_graph_destroy(profiled);
  }
}

/* GM-11 on a partial order: parallel branches, each of which frees one block for the next, need the sum of what each
 * needs; a join after them needs no more. */
TEST(test_gm11_branches_need_their_sum) {
  enum { BRANCHES = 4, LINKS = 6 };
  const uint64_t page = page_of(t);
  uint32_t *out = test_words(t, BRANCHES * LINKS * WORDS);
  rondo_graph *graphs[2] = {NULL};
  rondo_profile *profile = NULL;
  uint64_t bound = 0;
  for (int round = 0; round < 2; round++) {
    const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .profile = profile};
    assert_ok(rondo_graph_create(t->device, &options, &graphs[round]));
    rondo_node root = {0}, ends[BRANCHES];
    assert_ok(rondo_graph_add_empty(graphs[round], NULL, 0, &root));
    for (uint32_t branch = 0; branch < BRANCHES; branch++) {
      uint64_t most = 0;
      ends[branch] = root;
      for (uint32_t link = 0; link < LINKS; link++) {
        const uint64_t bytes = page * (1 + (branch * 5 + link * 7) % 11);
        const test_allocation made = test_add_alloc(graphs[round], &ends[branch], 1, bytes, NULL);
        rondo_node node = test_add_set(t, graphs[round], made.node, made.words, WORDS, branch + 1);
        node = test_add_read(t, graphs[round], node, made.words, out + (branch * LINKS + link) * WORDS, WORDS);
        ends[branch] = test_add_free(graphs[round], node, made.words);
        if (bytes > most) most = bytes;
      }
      if (round == 0) bound += most;
    }
    const test_allocation last = test_add_alloc(graphs[round], ends, BRANCHES, bound, "last");
    test_add_free(graphs[round], last.node, last.words);
    if (round == 0) assert_ok(rondo_profile_create(graphs[0], &planning, &profile));
  }
  work self = {.block_count = 0};
  rondo_exec *relocated = test_instantiate_with(graphs[0], &relocating);
  const uint64_t held[2] = {measure(t, test_instantiate(graphs[1]), &self, out), measure(t, relocated, &self, out)};
  for (int i = 0; i < 2 && !test_is_guarded(t); i++)
    assert_true(held[i] >= bound && held[i] <= round_up(bound + bound / 100, page));
  for (uint32_t i = 0; i < BRANCHES * LINKS; i++) test_assert_all(t, out + i * WORDS, WORDS, (i / LINKS + 1) * 32);
  rondo_profile_destroy(profile);
  for (int i = 0; i < 2; i++) test_graph_destroy(graphs[i]);
}
