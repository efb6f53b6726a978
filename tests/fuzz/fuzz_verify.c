/* SPDX-License-Identifier: MIT
 * The verifier (GM-5, GM-18). The input is a small graph with alloc and free nodes, kernels, fills and copies, and with
 * allocations from outside. Brute force computes its transitive closure and every byte that each node accesses. There
 * is an error exactly when one is found, with clocks and with masks; what a finding says of two nodes is true; and
 * adding the suggested edges terminates. Every other graph is built with care: its nodes use live memory and have the
 * necessary dependencies, with a few exceptions. One allocation fails, and nothing is left.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fuzz/fuzz_target.h"
#include "graph/graph.h"
#include "graph/topological_order.h"
#include "graph/verify/verifier.h"
#include "support/test_allocator.h"

enum {
  NODES = 32,
  LIVES = 6,
  PARAMETERS = 4, /* reads, updates, writes, and words that are not declared */
  USES = NODES * (PARAMETERS - 1),
  SUGGESTED = 64,
  PARTS = 6,
  NEVER = NODES, /* the alloc of outside memory, the free of memory that is not freed */

  /* Bytes from BASE on. */
  GRAPH_END = 192,  /* addresses that alloc nodes may use */
  OUTER = 256,      /* memory of another graph, which free nodes may name */
  OUTER_END = 320,  /* the device's own memory begins there */
  DEVICE_END = 384, /* unknown memory begins there */
  MEMORY = 448,
  BASE = 0x10000,

  STEPS = 4 /* edges are added one at a time, then all suggested ones at once */
};

/* Bytes of MEMORY. */
typedef struct byte_set {
  uint64_t words[MEMORY / 64];
} byte_set;

static char identity;

/* The access of a node to memory, from its first byte to past its last. */
typedef struct use {
  uint32_t node;
  size_t begin, end; /* one byte when the extent is unknown */
  bool is_exact, writes;
  byte_set touched; /* when exact */
} use;

typedef struct life {
  size_t begin, end;
  uint32_t alloc, freed; /* nodes; NEVER */
  bool is_over;          /* as far as the graph is built */
} life;

typedef struct fuzz_run {
  const uint8_t *data;
  size_t left;
  test_allocator allocator;
  rondo_graph *graph;
  rondo_kernel *kernel;
  uint32_t count; /* nodes, numbered in a topological order */
  bool is_careful;
  byte_set touched[NODES], changed[NODES]; /* the bytes that each node reads or writes; writes */
  uint32_t after[NODES];                   /* a bit for each node that comes after it; closed */
  life lives[LIVES + 1];                   /* the first from outside */
  size_t life_count;
  uint32_t frees[NODES];
  size_t freed_at[NODES], free_count;
  use uses[USES];
  size_t use_count;
  rondo_flat_node flat[NODES];
  uint32_t starts[NODES + 1], successors[NODES * NODES];
  bool knows_all;
  rondo_node suggested[SUGGESTED][2]; /* edges, of the last findings */
  size_t suggested_count;
} fuzz_run;

static uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

static size_t take_below(fuzz_run *run, size_t bound) { return take(run) * bound / 256; }

static void *address_of(size_t byte) { return (void *)(uintptr_t)(BASE + byte); }

/* Making ---------------------------------------------------------------------------------------------------------- */

static void add_bytes(byte_set *to, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) to->words[i / 64] |= UINT64_C(1) << i % 64;
}

static bool have_common(const byte_set *a, const byte_set *b) {
  uint64_t common = 0;
  for (size_t i = 0; i < MEMORY / 64; i++) common |= a->words[i] & b->words[i];
  return common != 0;
}

static bool is_before(const fuzz_run *run, uint32_t a, uint32_t b) { return (run->after[a] >> b & 1) != 0; }

static void close_over(fuzz_run *run, uint32_t from, uint32_t to) {
  for (uint32_t a = 0; a < run->count; a++)
    if (a == from || is_before(run, a, from)) run->after[a] |= run->after[to] | UINT32_C(1) << to;
}

static void touch(fuzz_run *run, size_t begin, size_t end, bool changes) {
  add_bytes(&run->touched[run->count], begin, end);
  if (changes) add_bytes(&run->changed[run->count], begin, end);
}

static bool must_follow(const fuzz_run *run, uint32_t later, uint32_t earlier) {
  return have_common(&run->changed[later], &run->touched[earlier]) ||
         have_common(&run->touched[later], &run->changed[earlier]);
}

/* All nodes that it must follow, except a few. */
static void choose_needed(fuzz_run *run, uint32_t at, bool out[NODES]) {
  for (uint32_t i = 0; i < at; i++) out[i] = must_follow(run, at, i) && take(run) < 253;
}

/* Up to three of the last eight nodes. */
static void choose_near(fuzz_run *run, uint32_t at, bool out[NODES]) {
  const uint8_t shape = take(run);
  for (size_t i = 0; i < shape % 4u && at > 0; i++) {
    const uint32_t back = i == 0 && shape < 128 ? 1 : 1 + take(run) % 8u;
    out[back > at ? 0 : at - back] = true;
  }
}

static void add(fuzz_run *run, const rondo_node_params *params) {
  rondo_node dependencies[NODES] = {{0}}, node;
  bool chosen[NODES] = {false};
  size_t count = 0;
  const uint32_t at = run->count++;
  if (run->is_careful)
    choose_needed(run, at, chosen);
  else
    choose_near(run, at, chosen);
  for (uint32_t i = 0; i < at; i++)
    if (chosen[i]) dependencies[count++] = rondo_graph_id(run->graph, i);
  REQUIRE(rondo_graph_insert(run->graph, dependencies, count, params, &node) == RONDO_OK);
  for (uint32_t i = 0; i < at; i++)
    if (chosen[i]) close_over(run, i, at);
}

static bool is_taken(const fuzz_run *run, size_t begin, size_t end) {
  for (size_t i = 0; i < run->life_count; i++)
    if (!run->lives[i].is_over && begin < run->lives[i].end && run->lives[i].begin < end) return true;
  return false;
}

static void add_alloc(fuzz_run *run) {
  const size_t begin = take(run) % 3u * 64, wanted = begin + (1 + take(run) % 2u) * 64;
  const size_t end = wanted < GRAPH_END ? wanted : GRAPH_END;
  if (run->life_count > LIVES || (run->is_careful && is_taken(run, begin, end))) return;
  run->lives[run->life_count++] = (life){.begin = begin, .end = end, .alloc = run->count, .freed = NEVER};
  touch(run, begin, end, true);
  add(run, &(rondo_node_params){.kind = RONDO_NODE_ALLOC,
                                .as.alloc = {.bytes = end - begin, .address = address_of(begin), .name = "memory"}});
}

/* A live one; NULL when the chosen one is not. */
static life *choose_life(fuzz_run *run) {
  life *at = &run->lives[take(run) % run->life_count];
  return at->is_over ? NULL : at;
}

static void add_free(fuzz_run *run) {
  static const size_t places[] = {0, 64, 128, OUTER, OUTER, 0, 64, 8, OUTER + 8, OUTER_END, DEVICE_END};
  const uint8_t choice = take(run);
  size_t begin = places[choice < 240 ? choice % 6u : choice % 11u];
  if (run->is_careful) {
    life *at = choose_life(run);
    if (at == NULL) return;
    at->is_over = true;
    begin = at->begin;
    touch(run, begin, at->end, true);
  }
  run->freed_at[run->free_count] = begin;
  run->frees[run->free_count++] = run->count;
  add(run, &(rondo_node_params){.kind = RONDO_NODE_FREE, .as.free_address = address_of(begin)});
}

static use *note_use(fuzz_run *run, size_t begin, size_t end, bool writes) {
  use *at = &run->uses[run->use_count++];
  *at = (use){.node = run->count, .begin = begin, .end = end, .writes = writes};
  return at;
}

static void note_range(fuzz_run *run, size_t begin, size_t count, bool writes) {
  use *at = note_use(run, begin, count == 0 ? begin + 1 : begin + count, writes);
  at->is_exact = count > 0;
  add_bytes(&at->touched, begin, begin + count);
  touch(run, begin, at->end, writes);
}

/* The memory that a range may cover: live memory or, without care, anything that is not declared disjoint. */
static bool choose_part(fuzz_run *run, size_t *out_begin, size_t *out_end) {
  static const size_t ends[] = {OUTER, OUTER_END + 8, DEVICE_END + 8, MEMORY};
  const uint8_t choice = take(run);
  if (run->is_careful && choice < 200) {
    const life *at = choose_life(run);
    if (at != NULL) *out_begin = at->begin, *out_end = at->end;
    return at != NULL;
  }
  const uint32_t part = run->is_careful ? 2 + choice % 2u : choice % 4u;
  *out_begin = part == 0 ? 0 : part == 1 ? OUTER : part == 2 ? OUTER_END : DEVICE_END;
  *out_end = run->is_careful && part == 2 ? DEVICE_END : ends[part];
  return true;
}

static bool choose_range(fuzz_run *run, size_t *out_begin, size_t *out_bytes) {
  size_t begin, end;
  if (!choose_part(run, &begin, &end)) return false;
  *out_begin = begin + take_below(run, (end - begin) / 4) * 4;
  const size_t wanted = take(run) % 40u * 4;
  *out_bytes = wanted < end - *out_begin ? wanted : end - *out_begin;
  return true;
}

static void add_kernel(fuzz_run *run) {
  const void *pointers[PARAMETERS - 1], *args[PARAMETERS];
  size_t bytes[PARAMETERS] = {0};
  const uint8_t used = take(run);
  for (size_t i = 0; i < PARAMETERS - 1; i++) {
    size_t begin;
    pointers[i] = NULL;
    args[i] = &pointers[i];
    if ((used >> i & 1) == 0 || !choose_range(run, &begin, &bytes[i])) continue;
    pointers[i] = address_of(begin);
    note_range(run, begin, bytes[i], i > 0);
  }
  const uint64_t words[2] = {used >> 4, (used & 8) == 0 ? 1 : (uint64_t)(uintptr_t)address_of(used * 2u)};
  args[PARAMETERS - 1] = words;
  add(run,
      &(rondo_node_params){
          .kind = RONDO_NODE_KERNEL,
          .as.kernel = {
              .kernel = run->kernel, .grid = {.x = 1}, .args = args, .arg_count = PARAMETERS, .arg_bytes = bytes}});
}

/* Rows within one part of memory; each part has 64 bytes. */
typedef struct rows {
  size_t begin, width, height, pitch;
} rows;

static rows choose_rows(fuzz_run *run, uint32_t part, size_t width, size_t height) {
  static const size_t parts[PARTS] = {OUTER_END, DEVICE_END, 0, 64, 128, OUTER};
  const size_t pitch = width + take(run) % 3u, span = (height - 1) * pitch + width;
  return (rows){
      .begin = parts[part % PARTS] + take_below(run, 65 - span), .width = width, .height = height, .pitch = pitch};
}

static void note_rows(fuzz_run *run, const rows *at, bool writes) {
  use *noted = note_use(run, at->begin, at->begin + (at->height - 1) * at->pitch + at->width, writes);
  noted->is_exact = true;
  for (size_t row = 0; row < at->height; row++) {
    const size_t begin = at->begin + row * at->pitch;
    add_bytes(&noted->touched, begin, begin + at->width);
    touch(run, begin, begin + at->width, writes);
  }
}

static void add_fill(fuzz_run *run) {
  const uint8_t shape = take(run);
  const rows to = choose_rows(run, take(run) % (run->is_careful ? 2u : PARTS), 1 + shape % 8u, 1 + shape / 8 % 6u);
  note_rows(run, &to, true);
  add(run, &(rondo_node_params){.kind = RONDO_NODE_FILL,
                                .as.fill = {.dst = address_of(to.begin),
                                            .element_bytes = 1,
                                            .width = to.width,
                                            .height = to.height,
                                            .pitch = to.pitch}});
}

/* Between two parts, because copies that overlap themselves fail. */
static void add_copy(fuzz_run *run) {
  const uint8_t shape = take(run), part = run->is_careful ? take(run) % 2u : take(run);
  const rows to = choose_rows(run, part, 1 + shape % 8u, 1 + shape / 8 % 6u);
  const rows from =
      choose_rows(run, run->is_careful ? 1u - part : part + 1 + take(run) % (PARTS - 1u), to.width, to.height);
  note_rows(run, &to, true);
  note_rows(run, &from, false);
  add(run, &(rondo_node_params){.kind = RONDO_NODE_COPY,
                                .as.copy = {.dst = address_of(to.begin),
                                            .src = address_of(from.begin),
                                            .width = to.width,
                                            .height = to.height,
                                            .dst_pitch = to.pitch,
                                            .src_pitch = from.pitch}});
}

static void add_one(fuzz_run *run) {
  switch (take(run) % 8) {
    case 0:
      add_alloc(run);
      return;
    case 1:
      add_free(run);
      return;
    case 2:
      add_fill(run);
      return;
    case 3:
      add_copy(run);
      return;
    case 4:
      add(run, &(rondo_node_params){.kind = RONDO_NODE_EMPTY});
      return;
    default:
      add_kernel(run);
  }
}

static void set_up(fuzz_run *run) {
  const rondo_kernel_options options = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "kernel",
      .params = {RONDO_READS, RONDO_UPDATES, RONDO_WRITES, RONDO_PARAMETER(RONDO_ACCESS_SCALAR, 16, 8)}};
  rondo_device *device = (rondo_device *)(void *)&identity;
  test_allocator_init(&run->allocator);
  REQUIRE(rondo_kernel_make(device, &run->allocator.table, &options, &run->kernel) == RONDO_OK);
  REQUIRE(rondo_graph_make(device, &run->allocator.table, "graph", &run->graph) == RONDO_OK);
  run->lives[run->life_count++] = (life){.begin = OUTER, .end = OUTER_END, .alloc = NEVER, .freed = NEVER};
  const uint8_t mode = take(run);
  run->knows_all = mode % 2 == 1;
  run->is_careful = mode / 2 % 2 == 1;
  while (run->count < NODES && run->left > 0) add_one(run);
}

/* Brute force ------------------------------------------------------------------------------------------------------ */

static bool allocated_before(const fuzz_run *run, const life *at, uint32_t node) {
  return at->alloc == NEVER || is_before(run, at->alloc, node);
}

static bool freed_after(const fuzz_run *run, const life *at, uint32_t node) {
  return at->freed == NEVER || is_before(run, node, at->freed);
}

static bool is_after(const fuzz_run *run, const life *later, const life *earlier) {
  return earlier->freed != NEVER && later->alloc != NEVER && is_before(run, earlier->freed, later->alloc);
}

static bool lives_are_right(const fuzz_run *run) {
  for (size_t i = 0; i < run->life_count; i++) {
    const life *a = &run->lives[i];
    if (a->freed != NEVER && !allocated_before(run, a, a->freed)) return false;
    for (size_t k = 0; k < i; k++) {
      const life *b = &run->lives[k];
      if (a->begin < b->end && b->begin < a->end && !is_after(run, a, b) && !is_after(run, b, a)) return false;
    }
  }
  return true;
}

/* Within the lifetime of an allocation that contains it, or in no allocation. */
static bool use_is_right(const fuzz_run *run, const use *at) {
  bool begins_inside = false, touches = false;
  for (size_t i = 0; i < run->life_count; i++) {
    const life *of = &run->lives[i];
    begins_inside = begins_inside || (at->begin >= of->begin && at->begin < of->end);
    touches = touches || (at->begin < of->end && of->begin < at->end);
    if (at->begin >= of->begin && at->end <= of->end && allocated_before(run, of, at->node) &&
        freed_after(run, of, at->node))
      return true;
  }
  const bool passes_end = at->begin >= OUTER_END && at->begin < DEVICE_END && at->end > DEVICE_END;
  return !begins_inside && !touches && !passes_end;
}

static bool uses_are_right(const fuzz_run *run) {
  for (size_t i = 0; i < run->use_count; i++)
    if (!use_is_right(run, &run->uses[i])) return false;
  return true;
}

/* Whether the free nodes from `from` on can be assigned to allocations so that all lifetimes are valid. */
static bool can_be_right(fuzz_run *run, size_t from) {
  if (from == run->free_count) return lives_are_right(run) && uses_are_right(run);
  bool is_allocation = run->freed_at[from] < DEVICE_END && run->freed_at[from] >= OUTER;
  for (size_t i = 0; i < run->life_count; i++) {
    life *at = &run->lives[i];
    is_allocation = is_allocation || (run->freed_at[from] >= at->begin && run->freed_at[from] < at->end);
    if (at->begin != run->freed_at[from] || at->freed != NEVER) continue;
    at->freed = run->frees[from];
    const bool right = can_be_right(run, from + 1);
    at->freed = NEVER;
    if (right) return true;
  }
  return !is_allocation && !run->knows_all && can_be_right(run, from + 1);
}

static bool are_unordered(const fuzz_run *run, uint32_t a, uint32_t b) {
  return a != b && !is_before(run, a, b) && !is_before(run, b, a);
}

static bool clash(const fuzz_run *run, const use *a, const use *b) {
  return are_unordered(run, a->node, b->node) && (a->writes || b->writes) && a->is_exact && b->is_exact &&
         have_common(&a->touched, &b->touched);
}

static bool race_between(const fuzz_run *run, uint32_t a, uint32_t b) {
  for (size_t i = 0; i < run->use_count; i++)
    for (size_t k = 0; k < run->use_count; k++)
      if (run->uses[i].node == a && run->uses[k].node == b && clash(run, &run->uses[i], &run->uses[k])) return true;
  return false;
}

static bool has_race(const fuzz_run *run) {
  for (size_t i = 0; i < run->use_count; i++)
    for (size_t k = 0; k < i; k++)
      if (clash(run, &run->uses[i], &run->uses[k])) return true;
  return false;
}

/* Verifying ------------------------------------------------------------------------------------------------------- */

static bool find_outside(void *user, const void *address, rondo_known_range *out) {
  (void)user;
  const uintptr_t at = (uintptr_t)address;
  if (at < BASE + OUTER || at >= BASE + DEVICE_END) return false;
  if (at < BASE + OUTER_END)
    *out = (rondo_known_range){
        .begin = address_of(OUTER), .bytes = OUTER_END - OUTER, .name = "outer", .is_graph_memory = true};
  else
    *out = (rondo_known_range){.begin = address_of(OUTER_END), .bytes = DEVICE_END - OUTER_END, .name = "device"};
  return true;
}

/* In the order that the edges allow now: suggested edges may lead from a higher number to a lower. */
static void flatten(fuzz_run *run) {
  uint32_t *order, places[NODES], filled = 0;
  REQUIRE(rondo_graph_order(run->graph, &order) == RONDO_OK);
  for (uint32_t i = 0; i < run->count; i++) places[order[i]] = i;
  for (uint32_t i = 0; i < run->count; i++) {
    const rondo_graph_node *node = rondo_graph_at(run->graph, order[i]);
    run->flat[i] = (rondo_flat_node){.params = &node->params, .graph = run->graph, .slot = order[i]};
    run->starts[i] = filled;
    for (size_t k = 0; k < node->dependents.count; k++) run->successors[filled++] = places[node->dependents.items[k]];
  }
  run->starts[run->count] = filled;
  rondo_release(&run->graph->allocator, order, run->count, sizeof *order);
}

static rondo_findings *verify(fuzz_run *run, uint32_t widest) {
  const rondo_verify_input input = {.allocator = &run->allocator.table,
                                    .nodes = run->flat,
                                    .edges = {run->count, run->starts, run->successors},
                                    .find = find_outside,
                                    .knows_all = run->knows_all,
                                    .max_findings = 100000,
                                    .widest = widest};
  rondo_findings *findings = NULL;
  const rondo_status status = rondo_verify(&input, &findings);
  REQUIRE(status == RONDO_OK || (status == RONDO_OUT_OF_MEMORY && run->allocator.fail_at > 0));
  REQUIRE((status == RONDO_OK) == (findings != NULL));
  return findings;
}

static rondo_finding finding_at(const rondo_findings *findings, size_t index) {
  rondo_finding finding = {.struct_size = sizeof finding};
  REQUIRE(rondo_findings_get(findings, index, &finding) == RONDO_OK);
  return finding;
}

static void require_true(const fuzz_run *run, const rondo_finding *at) {
  const uint32_t node = rondo_node_number(at->node), other = rondo_node_number(at->other);
  REQUIRE(at->message[0] != '\0' && node < run->count);
  if (at->reason == RONDO_REASON_RACE) REQUIRE(are_unordered(run, node, other));
  if (at->reason == RONDO_REASON_RACE && at->severity == RONDO_SEVERITY_ERROR) REQUIRE(race_between(run, node, other));
  if (at->reason == RONDO_REASON_USE_AFTER_FREE) REQUIRE(!is_before(run, node, other));
  if (at->reason == RONDO_REASON_NOT_ALLOCATED) REQUIRE(!is_before(run, other, node));
  if (at->from.id == 0) return;
  REQUIRE(at->from.id == at->before.id && at->to.id == at->after.id);
  REQUIRE(are_unordered(run, rondo_node_number(at->from), rondo_node_number(at->to)));
}

static void note_suggestion(fuzz_run *run, const rondo_finding *at) {
  if (at->from.id == 0 || run->suggested_count == SUGGESTED) return;
  run->suggested[run->suggested_count][0] = at->from;
  run->suggested[run->suggested_count++][1] = at->to;
}

static void compare(fuzz_run *run) {
  const bool right = can_be_right(run, 0) && !has_race(run);
  uint64_t errors[2], warnings[2];
  for (uint32_t widest = 0; widest < 2; widest++) {
    rondo_findings *findings = verify(run, widest);
    rondo_findings_totals(findings, &errors[widest], &warnings[widest]);
    run->suggested_count = 0;
    for (size_t i = 0; i < rondo_findings_count(findings); i++) {
      const rondo_finding at = finding_at(findings, i);
      require_true(run, &at);
      note_suggestion(run, &at);
    }
    REQUIRE((rondo_findings_raise(findings) == RONDO_OK) == (errors[widest] == 0));
    rondo_findings_destroy(findings);
  }
  REQUIRE(errors[0] == errors[1] && warnings[0] == warnings[1]);
  REQUIRE((errors[0] == 0) == right);
}

/* Adds up to `most` of the edges that the findings suggest, if the earlier ones do not order their nodes yet. Returns
 * false when none is suggested. */
static bool mend(fuzz_run *run, size_t most) {
  for (size_t i = 0; i < run->suggested_count && most > 0; i++) {
    const rondo_node from = run->suggested[i][0], to = run->suggested[i][1];
    if (!are_unordered(run, rondo_node_number(from), rondo_node_number(to))) continue;
    REQUIRE(rondo_graph_add_edges(run->graph, &from, &to, 1) == RONDO_OK);
    close_over(run, rondo_node_number(from), rondo_node_number(to));
    most--;
  }
  flatten(run);
  return run->suggested_count > 0;
}

static void fail_somewhere(fuzz_run *run, size_t at) {
  const size_t live = run->allocator.live;
  run->allocator.calls = 0;
  run->allocator.fail_at = at;
  rondo_findings *findings = verify(run, 0);
  run->allocator.fail_at = 0;
  rondo_findings_destroy(findings);
  REQUIRE(run->allocator.live == live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz_run run;
  memset(&run, 0, sizeof run);
  run.data = data;
  run.left = size;
  set_up(&run);
  flatten(&run);
  compare(&run);
  fail_somewhere(&run, 1 + size % 40);
  for (int rounds = 0; mend(&run, rounds < STEPS ? 1 : SUGGESTED); rounds++) {
    REQUIRE(rounds < NODES * NODES / 2);
    compare(&run);
  }
  rondo_graph_free(run.graph);
  rondo_kernel_release(run.kernel);
  REQUIRE(run.allocator.live == 0 && run.allocator.faults == 0);
  return 0;
}
