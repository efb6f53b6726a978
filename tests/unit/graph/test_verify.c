/* SPDX-License-Identifier: MIT
 * GM-5, GM-18: the verifier against brute force, which knows the transitive closure of each random graph and every byte
 * that each node touches. The verifier finds an error exactly if there is one, with clocks and with masks. Then failing
 * allocations, allocations from outside, and the limit on findings.
 */
#include "graph/verify/verifier.h"

#include <stdio.h>

#include "graph/graph.h"
#include "support/test_effort.h"
#include "unit/graph/graph_tests.h"

enum { MOST = 48, MOST_ACCESSES = 4 * MOST, MEMORY = 256 };

/* The graph of a test: the input of the verifier, and what brute force knows. */
typedef struct trial {
  graph_fixture *fixture;
  rondo_graph *graph;
  rondo_kernel *kernel; /* (reads, reads, writes) */
  uint32_t count;       /* nodes, numbered in a topological order */
  bool is_tree;         /* nodes have one dependency: forks without joins */
  const bool *wanted;   /* the next node's dependencies; NULL: at random */
  bool before[MOST][MOST];
  rondo_flat_node nodes[MOST];
  uint32_t starts[MOST + 1], successors[MOST * MOST];
} trial;

static uintptr_t address_of(size_t byte) { return 0x10000 + byte; }

/* One access of exact extent, by a row of a fill or copy or a kernel's argument. */
typedef struct access {
  uint32_t node;
  bool writes;
  bool bytes[MEMORY];
} access;

/* Making ---------------------------------------------------------------------------------------------------------- */

static void begin_trial(trial *self, graph_fixture *fixture) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "work",
                                        .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}};
  memset(self, 0, sizeof *self);
  self->fixture = fixture;
  assert_ok(rondo_graph_make(TEST_DEVICE, &fixture->allocator.table, "trial", &self->graph));
  assert_ok(rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, &options, &self->kernel));
}

static void end_trial(trial *self) {
  rondo_graph_free(self->graph);
  rondo_kernel_release(self->kernel);
}

static bool depends(const trial *self, uint32_t at, uint32_t on, uint64_t *random, uint32_t density) {
  if (self->wanted != NULL) return self->wanted[on];
  if (self->is_tree) return on == (at < 4 ? 0 : at / 4 * 3);
  return test_random_below(random, 8) < density && (at - on <= 4 || test_random_below(random, 4) == 0);
}

/* Dependencies at random among the earlier nodes; `density` of 8. */
static rondo_node add(trial *self, const rondo_node_params *params, uint64_t *random, uint32_t density) {
  rondo_node dependencies[MOST];
  const uint32_t at = self->count++;
  size_t count = 0;
  for (uint32_t i = 0; i < at; i++) {
    if (!depends(self, at, i, random, density)) continue;
    dependencies[count++] = rondo_graph_id(self->graph, i);
    self->before[i][at] = true;
    for (uint32_t k = 0; k < i; k++) self->before[k][at] |= self->before[k][i];
  }
  return add_node(self->graph, params, dependencies, count);
}

static void flatten(trial *self) {
  uint32_t filled = 0;
  for (uint32_t i = 0; i < self->count; i++) {
    const rondo_graph_node *node = rondo_graph_at(self->graph, i);
    self->nodes[i] = (rondo_flat_node){.params = &node->params, .graph = self->graph, .slot = i};
    self->starts[i] = filled;
    for (size_t k = 0; k < node->dependents.count; k++) self->successors[filled++] = node->dependents.items[k];
  }
  self->starts[self->count] = filled;
}

static rondo_verify_input input_of(const trial *self, uint32_t widest) {
  return (rondo_verify_input){.allocator = &self->fixture->allocator.table,
                              .nodes = self->nodes,
                              .edges = {self->count, self->starts, self->successors},
                              .max_findings = 100000,
                              .widest = widest};
}

static rondo_findings *verify(trial *self, uint32_t widest) {
  const rondo_verify_input input = input_of(self, widest);
  rondo_findings *findings;
  assert_ok(rondo_verify(&input, &findings));
  return findings;
}

static rondo_finding finding_at(const rondo_findings *findings, size_t index) {
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_findings_get(findings, index, &finding));
  return finding;
}

static void add_kernel(trial *self, uint64_t *random, uint32_t density, const size_t begins[3], const size_t bytes[3]) {
  const void *pointers[3], *args[3];
  for (int i = 0; i < 3; i++) {
    pointers[i] = (const void *)(begins[i] == SIZE_MAX ? 0 : address_of(begins[i]));
    args[i] = &pointers[i];
  }
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = self->kernel, .grid = {.x = 1}, .args = args, .arg_count = 3, .arg_bytes = bytes}};
  add(self, &params, random, density);
}

/* Races ----------------------------------------------------------------------------------------------------------- */

typedef struct race_trial {
  trial base;
  access accesses[MOST_ACCESSES];
  size_t access_count;
} race_trial;

static access *note_access(race_trial *self, bool writes) {
  access *at = &self->accesses[self->access_count++];
  *at = (access){.node = self->base.count, .writes = writes};
  return at;
}

static void add_random_kernel(race_trial *self, uint64_t *random, uint32_t density, uint32_t tiles) {
  size_t begins[3], bytes[3];
  for (int i = 0; i < 3; i++) {
    begins[i] = SIZE_MAX;
    bytes[i] = 0;
    if (test_random_below(random, 2) == 0) continue;
    uint32_t first = test_random_below(random, tiles);
    const uint32_t length = 1 + test_random_below(random, tiles - first);
    const bool whole = self->base.is_tree && i < 2;
    if (whole) first = 0;
    begins[i] = first * MEMORY / tiles;
    bytes[i] = (whole ? tiles : test_random_below(random, 3) == 0 ? length : 1) * MEMORY / tiles;
    memset(note_access(self, i == 2)->bytes + begins[i], true, bytes[i]);
  }
  add_kernel(&self->base, random, density, begins, bytes);
}

static void add_random_fill(race_trial *self, uint64_t *random, uint32_t density) {
  const size_t width = 1 + test_random_below(random, 8), height = 1 + test_random_below(random, 6), pitch = 16;
  const size_t begin = test_random_below(random, (uint32_t)(MEMORY - pitch * height));
  access *at = note_access(self, true);
  for (size_t row = 0; row < height; row++) memset(at->bytes + begin + row * pitch, true, width);
  add(&self->base,
      &(rondo_node_params){
          .kind = RONDO_NODE_FILL,
          .as.fill =
              {.dst = (void *)address_of(begin), .element_bytes = 1, .width = width, .height = height, .pitch = pitch}},
      random, density);
}

static void make_race_trial(race_trial *self, graph_fixture *fixture, uint64_t *random) {
  const uint32_t density = 1 + test_random_below(random, 7), tiles = 1u << test_random_below(random, 7);
  const bool boxes = test_random_below(random, 3) == 0;
  const uint32_t nodes = 2 + test_random_below(random, MOST - 2);
  begin_trial(&self->base, fixture);
  self->base.is_tree = test_random_below(random, 3) == 0;
  self->access_count = 0;
  for (uint32_t i = 0; i < nodes; i++) {
    if (boxes && test_random_below(random, 2) == 0)
      add_random_fill(self, random, density);
    else
      add_random_kernel(self, random, density, tiles);
  }
  flatten(&self->base);
}

static bool clash_at(const race_trial *self, const access *a, const access *b, size_t byte) {
  return a->bytes[byte] && b->bytes[byte] && (a->writes || b->writes) && a->node < b->node &&
         !self->base.before[a->node][b->node];
}

/* By node pairs: the two have unordered accesses of a byte. */
static void find_races(const race_trial *self, size_t byte, bool out[MOST][MOST]) {
  for (size_t i = 0; i < self->access_count; i++)
    for (size_t k = 0; k < self->access_count; k++)
      if (clash_at(self, &self->accesses[i], &self->accesses[k], byte))
        out[self->accesses[i].node][self->accesses[k].node] = true;
}

enum { TILES = 64, TILE = MEMORY / TILES };

static void touch_tiles(race_trial *self, size_t begins[3], size_t bytes[3], int parameter, uint32_t first,
                        uint32_t count) {
  begins[parameter] = (size_t)first * TILE;
  bytes[parameter] = (size_t)count * TILE;
  memset(note_access(self, parameter == 2)->bytes + begins[parameter], true, bytes[parameter]);
}

/* One node of a round of its kind: writes a tile, reads all of them, reads many of them, or reads and writes. */
static void add_to_round(race_trial *self, uint32_t kind, uint64_t *random) {
  size_t begins[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, bytes[3] = {0};
  if (kind == 1 || kind == 3) touch_tiles(self, begins, bytes, 0, 0, TILES);
  if (kind == 2) touch_tiles(self, begins, bytes, 0, 20, 24);
  if (kind == 0 || kind == 3) touch_tiles(self, begins, bytes, 2, test_random_below(random, TILES), 1);
  if (kind == 4) touch_tiles(self, begins, bytes, 2, 0, TILES);
  add_kernel(&self->base, random, 0, begins, bytes);
}

/* Rounds of nodes of one kind between joins. Some edges are missing and some lead elsewhere. */
static void make_round_trial(race_trial *self, graph_fixture *fixture, uint64_t *random) {
  bool wanted[MOST];
  uint32_t join = MOST;
  begin_trial(&self->base, fixture);
  self->base.wanted = wanted;
  self->access_count = 0;
  while (self->base.count + 11 < MOST) {
    const uint32_t first = self->base.count, kind = test_random_below(random, 5),
                   nodes = 1 + test_random_below(random, 9);
    for (uint32_t i = 0; i < nodes; i++) {
      memset(wanted, 0, sizeof wanted);
      if (join < MOST) wanted[join] = test_random_below(random, 20) != 0;
      if (self->base.count > 0 && test_random_below(random, 8) == 0)
        wanted[test_random_below(random, self->base.count)] = true;
      add_to_round(self, kind, random);
    }
    for (uint32_t i = 0; i < MOST; i++) wanted[i] = i >= first && test_random_below(random, 30) != 0;
    join = self->base.count;
    add(&self->base, &(rondo_node_params){.kind = RONDO_NODE_EMPTY}, random, 0);
  }
  self->base.wanted = NULL;
  flatten(&self->base);
}

/* Every race that is found is a race, and for every byte with a race one is found. */
static void compare_races(race_trial *self, uint32_t widest) {
  static bool found[MOST][MOST], all[MOST][MOST];
  rondo_findings *findings = verify(&self->base, widest);
  memset(found, 0, sizeof found);
  memset(all, 0, sizeof all);
  for (size_t i = 0; i < rondo_findings_count(findings); i++) {
    const rondo_finding at = finding_at(findings, i);
    assert_int_equal(at.reason, RONDO_REASON_RACE);
    assert_int_equal(at.severity, RONDO_SEVERITY_ERROR);
    assert_true(at.from.id == at.other.id && at.to.id == at.node.id);
    found[rondo_node_number(at.other)][rondo_node_number(at.node)] = true;
  }
  for (size_t byte = 0; byte < MEMORY; byte++) {
    static bool here[MOST][MOST];
    bool any = false, any_found = false;
    memset(here, 0, sizeof here);
    find_races(self, byte, here);
    for (uint32_t a = 0; a < self->base.count; a++)
      for (uint32_t b = 0; b < self->base.count; b++) {
        all[a][b] |= here[a][b];
        any = any || here[a][b];
        any_found = any_found || (here[a][b] && found[a][b]);
      }
    assert_int_equal(any, any_found);
  }
  for (uint32_t a = 0; a < self->base.count; a++)
    for (uint32_t b = 0; b < self->base.count; b++) assert_true(!found[a][b] || all[a][b]);
  rondo_findings_destroy(findings);
}

GRAPH_TEST(test_races_are_those_of_brute_force) {
  static race_trial self;
  uint64_t random = 3;
  for (uint32_t i = test_effort(300); i > 0; i--) {
    make_race_trial(&self, fixture, &random);
    compare_races(&self, 0);
    compare_races(&self, 1);
    end_trial(&self.base);
  }
}

GRAPH_TEST(test_races_of_wide_reads_are_those_of_brute_force) {
  static race_trial self;
  uint64_t random = 10;
  for (uint32_t i = test_effort(200); i > 0; i--) {
    make_round_trial(&self, fixture, &random);
    compare_races(&self, 0);
    compare_races(&self, 1);
    end_trial(&self.base);
  }
}

/* Adding what each finding suggests ends with a graph without findings. */
GRAPH_TEST(test_suggested_edges_mend_random_graphs) {
  static race_trial self;
  uint64_t random = 4;
  for (uint32_t i = 0; i < test_effort(200); i++) {
    make_race_trial(&self, fixture, &random);
    for (int round = 0;; round++) {
      assert_true(round < 2 * MOST * MOST);
      rondo_findings *findings = verify(&self.base, i & 1);
      const size_t count = rondo_findings_count(findings);
      rondo_finding first = {.message = ""};
      if (count > 0) first = finding_at(findings, 0);
      rondo_findings_destroy(findings);
      if (count == 0) break;
      add_edge(self.base.graph, first.from, first.to);
      flatten(&self.base);
    }
    end_trial(&self.base);
  }
}

/* Lifetimes ------------------------------------------------------------------------------------------------------- */

enum { MOST_LIVES = 6 };

/* An allocation and its free, as the graph was made. All pairings of frees and allocations are tried. */
typedef struct life {
  size_t begin, bytes;
  uint32_t alloc, freed; /* MOST: none */
} life;

typedef struct life_trial {
  trial base;
  life lives[MOST_LIVES];
  size_t life_count;
  uint32_t frees[MOST_LIVES];
  size_t free_begins[MOST_LIVES], free_count;
  uint32_t users[MOST];
  size_t user_begins[MOST], user_bytes[MOST], user_count;
} life_trial;

static void add_life(life_trial *self, uint64_t *random, uint32_t density) {
  static const size_t begins[] = {0, 0, 64, 128}, sizes[] = {64, 128, 64, 64};
  const uint32_t pick = test_random_below(random, 4);
  life *at = &self->lives[self->life_count++];
  *at = (life){.begin = begins[pick], .bytes = sizes[pick], .alloc = self->base.count, .freed = MOST};
  const rondo_node_params params = alloc_params((void *)address_of(at->begin), at->bytes, "memory");
  add(&self->base, &params, random, density);
}

static void add_life_free(life_trial *self, uint64_t *random, uint32_t density) {
  const size_t begin = self->lives[test_random_below(random, (uint32_t)self->life_count)].begin;
  self->free_begins[self->free_count] = begin;
  self->frees[self->free_count++] = self->base.count;
  add(&self->base, &(rondo_node_params){.kind = RONDO_NODE_FREE, .as.free_address = (void *)address_of(begin)}, random,
      density);
}

/* Reads alone: there are no races. */
static void add_user(life_trial *self, uint64_t *random, uint32_t density) {
  const life *of = &self->lives[test_random_below(random, (uint32_t)self->life_count)];
  const size_t offset = test_random_below(random, (uint32_t)of->bytes);
  const size_t bytes =
      test_random_below(random, 8) == 0 ? of->bytes : 1 + test_random_below(random, (uint32_t)(of->bytes - offset));
  self->users[self->user_count] = self->base.count;
  self->user_begins[self->user_count] = of->begin + offset;
  self->user_bytes[self->user_count++] = bytes;
  add_kernel(&self->base, random, density, (const size_t[]){SIZE_MAX, of->begin + offset, SIZE_MAX},
             (const size_t[]){0, bytes, 0});
}

static void make_life_trial(life_trial *self, graph_fixture *fixture, uint64_t *random) {
  const uint32_t density = 2 + test_random_below(random, 7), nodes = 2 + test_random_below(random, 10);
  memset(self, 0, sizeof *self);
  begin_trial(&self->base, fixture);
  add_life(self, random, density);
  for (uint32_t i = 0; i < nodes; i++) {
    const uint32_t kind = test_random_below(random, 8);
    if (kind < 2 && self->life_count < MOST_LIVES)
      add_life(self, random, density);
    else if (kind < 4 && self->free_count < MOST_LIVES)
      add_life_free(self, random, density);
    else
      add_user(self, random, density);
  }
  flatten(&self->base);
}

static bool follows(const life_trial *self, const life *earlier, const life *later) {
  return earlier->freed != MOST && self->base.before[earlier->freed][later->alloc];
}

static bool holds(const life_trial *self, const life *at, size_t user) {
  const uint32_t node = self->users[user];
  const size_t begin = self->user_begins[user], end = begin + self->user_bytes[user];
  return begin >= at->begin && end <= at->begin + at->bytes && self->base.before[at->alloc][node] &&
         (at->freed == MOST || self->base.before[node][at->freed]);
}

static bool lives_are_right(const life_trial *self) {
  for (size_t i = 0; i < self->life_count; i++) {
    const life *a = &self->lives[i];
    if (a->freed != MOST && !self->base.before[a->alloc][a->freed]) return false;
    for (size_t k = 0; k < i; k++) {
      const life *b = &self->lives[k];
      const bool apart = a->begin + a->bytes <= b->begin || b->begin + b->bytes <= a->begin;
      if (!apart && !follows(self, a, b) && !follows(self, b, a)) return false;
    }
  }
  for (size_t user = 0; user < self->user_count; user++) {
    bool held = false;
    for (size_t i = 0; i < self->life_count; i++) held = held || holds(self, &self->lives[i], user);
    if (!held) return false;
  }
  return true;
}

/* Whether the free nodes from `from` on can be paired with allocations without errors. */
static bool can_be_right(life_trial *self, size_t from) {
  if (from == self->free_count || from == MOST_LIVES) return lives_are_right(self);
  for (size_t i = 0; i < self->life_count; i++) {
    life *at = &self->lives[i];
    if (at->begin != self->free_begins[from] || at->freed != MOST) continue;
    at->freed = self->frees[from];
    const bool right = can_be_right(self, from + 1);
    at->freed = MOST;
    if (right) return true;
  }
  return false;
}

GRAPH_TEST(test_lifetimes_are_those_of_brute_force) {
  static life_trial self;
  uint64_t random = 5;
  const uint32_t cases = test_effort(5000);
  size_t right = 0, wrong = 0;
  for (uint32_t i = 0; i < cases; i++) {
    make_life_trial(&self, fixture, &random);
    const bool expected = can_be_right(&self, 0);
    for (uint32_t widest = 0; widest < 2; widest++) {
      rondo_findings *findings = verify(&self.base, widest);
      uint64_t errors;
      rondo_findings_totals(findings, &errors, NULL);
      if ((errors == 0) != expected) {
        for (size_t k = 0; k < rondo_findings_count(findings); k++)
          print_error("  %s\n", finding_at(findings, k).message);
        char *text = NULL;
        assert_ok(rondo_graph_to_json(self.base.graph, true, &text));
        print_error("%s\n", text);
      }
      assert_int_equal(errors == 0, expected);
      rondo_findings_destroy(findings);
    }
    right += expected;
    wrong += !expected;
    end_trial(&self.base);
  }
  assert_true(right > cases * 6 / 100 && wrong > cases * 6 / 100);
}

/* From outside ---------------------------------------------------------------------------------------------------- */

static bool find_outside(void *user, const void *address, rondo_known_range *out) {
  const uintptr_t at = (uintptr_t)address;
  if (at >= address_of(0) && at < address_of(128)) {
    *out = (rondo_known_range){
        .begin = (const char *)address_of(0), .bytes = 128, .name = "outer", .is_graph_memory = true};
    return true;
  }
  if (at < address_of(128) || at >= address_of(192)) return false;
  *out = (rondo_known_range){.begin = (const char *)address_of(128), .bytes = 64, .name = "far"};
  snprintf(out->no_access, sizeof out->no_access, "%s", (const char *)user);
  return true;
}

static void expect_finding(const rondo_findings *findings, size_t index, rondo_severity severity, rondo_reason reason,
                           uint32_t node) {
  const rondo_finding at = finding_at(findings, index);
  print_message("  %s: %s\n", rondo_severity_name(at.severity), at.message);
  assert_int_equal(at.severity, severity);
  assert_string_equal(rondo_reason_name(at.reason), rondo_reason_name(reason));
  assert_int_equal(rondo_node_number(at.node), node);
}

/* A graph that uses memory of another graph: used, freed, used again and freed again; memory of a device that is not
 * accessible; accesses past the end; frees of addresses without an allocation, which are errors only if all allocations
 * are known. */
GRAPH_TEST(test_allocations_from_outside) {
  trial self;
  uint64_t random = 6;
  begin_trial(&self, fixture);
  const size_t none[3] = {0};
  add_kernel(&self, &random, 8, (const size_t[]){0, SIZE_MAX, SIZE_MAX}, (const size_t[]){128, 0, 0});
  add_kernel(&self, &random, 8, (const size_t[]){SIZE_MAX, 100, SIZE_MAX}, (const size_t[]){0, 29, 0});
  add_kernel(&self, &random, 8, (const size_t[]){SIZE_MAX, SIZE_MAX, 130}, none);
  const size_t freed[] = {0, 0, 16, 128, 200};
  for (int i = 0; i < 5; i++)
    add(&self, &(rondo_node_params){.kind = RONDO_NODE_FREE, .as.free_address = (void *)address_of(freed[i])}, &random,
        8);
  add_kernel(&self, &random, 8, (const size_t[]){8, SIZE_MAX, SIZE_MAX}, none);
  for (uint32_t i = 0; i + 1 < self.count; i++) self.before[i][i + 1] = true;
  flatten(&self);
  rondo_verify_input input = input_of(&self, 0);
  char far[] = "gpu";
  input.find = find_outside;
  input.user = far;
  rondo_findings *findings;
  for (int knows_all = 0; knows_all < 2; knows_all++) {
    input.knows_all = knows_all;
    assert_ok(rondo_verify(&input, &findings));
    expect_finding(findings, 0, RONDO_SEVERITY_ERROR, RONDO_REASON_OUT_OF_RANGE, 1);
    expect_finding(findings, 1, RONDO_SEVERITY_ERROR, RONDO_REASON_NO_ACCESS, 2);
    expect_finding(findings, 2, RONDO_SEVERITY_ERROR, RONDO_REASON_DOUBLE_FREE, 4);
    expect_finding(findings, 3, RONDO_SEVERITY_ERROR, RONDO_REASON_INTERIOR_ADDRESS, 5);
    expect_finding(findings, 4, RONDO_SEVERITY_ERROR, RONDO_REASON_FOREIGN_ADDRESS, 6);
    const size_t sure = knows_all ? 5 : 6, foreign = knows_all ? 5 : 6;
    expect_finding(findings, foreign, knows_all ? RONDO_SEVERITY_ERROR : RONDO_SEVERITY_WARNING,
                   RONDO_REASON_FOREIGN_ADDRESS, 7);
    expect_finding(findings, knows_all ? 6 : sure - 1, RONDO_SEVERITY_ERROR, RONDO_REASON_USE_AFTER_FREE, 8);
    assert_int_equal(rondo_findings_count(findings), 7);
    rondo_findings_destroy(findings);
  }
  end_trial(&self);
}

/* A word of a scalar that points into another graph's memory after this graph has freed it. */
GRAPH_TEST(test_words_that_point_into_memory_from_outside) {
  trial self;
  uint64_t random = 9;
  rondo_kernel *opaque;
  rondo_findings *findings;
  char far[] = "";
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "opaque",
                                        .params = {RONDO_PARAMETER(RONDO_ACCESS_SCALAR, 16, 8)}};
  const uint64_t words[2] = {3, (uint64_t)address_of(40)};
  const void *const args[] = {words};
  begin_trial(&self, fixture);
  assert_ok(rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, &options, &opaque));
  for (uint32_t i = 0; i < 2; i++) {
    add(&self,
        &(rondo_node_params){.kind = RONDO_NODE_KERNEL,
                             .as.kernel = {.kernel = opaque, .grid = {.x = 1}, .args = args, .arg_count = 1}},
        &random, 8);
    if (i == 0)
      add(&self, &(rondo_node_params){.kind = RONDO_NODE_FREE, .as.free_address = (void *)address_of(0)}, &random, 8);
  }
  flatten(&self);
  rondo_verify_input input = input_of(&self, 0);
  input.find = find_outside;
  input.user = far;
  assert_ok(rondo_verify(&input, &findings));
  expect_finding(findings, 0, RONDO_SEVERITY_WARNING, RONDO_REASON_USE_AFTER_FREE, 2);
  assert_int_equal(rondo_findings_count(findings), 1);
  rondo_findings_destroy(findings);
  rondo_kernel_release(opaque);
  end_trial(&self);
}

/* Bounds and failures ---------------------------------------------------------------------------------------------- */

/* All findings are counted and some are kept, errors before warnings. */
GRAPH_TEST(test_findings_are_bounded) {
  trial self;
  uint64_t random = 7;
  begin_trial(&self, fixture);
  for (int i = 0; i < 12; i++)
    add_kernel(&self, &random, 0, (const size_t[]){SIZE_MAX, SIZE_MAX, 0}, (const size_t[]){0, 0, i < 6 ? 0 : 16});
  flatten(&self);
  rondo_verify_input input = input_of(&self, 0);
  rondo_findings *findings;
  uint64_t errors, warnings;
  input.find = find_outside;
  char far[] = "gpu";
  input.user = far;
  input.max_findings = 7;
  assert_ok(rondo_verify(&input, &findings));
  rondo_findings_totals(findings, &errors, &warnings);
  assert_int_equal(errors, 5);
  assert_int_equal(warnings, 6);
  assert_int_equal(rondo_findings_count(findings), 7);
  for (size_t i = 0; i < 7; i++)
    assert_int_equal(finding_at(findings, i).severity, i < 5 ? RONDO_SEVERITY_ERROR : RONDO_SEVERITY_WARNING);
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_error(rondo_findings_get(findings, 7, &finding), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_findings_get(NULL, 0, &finding), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_findings_raise(findings), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_message("and 4 more");
  rondo_findings_destroy(findings);
  rondo_findings_destroy(NULL);
  assert_int_equal(rondo_findings_count(NULL), 0);
  end_trial(&self);
}

/* Every allocation fails once: nothing leaks, and the next attempt finds the same. */
GRAPH_TEST(test_failing_allocations) {
  static race_trial self;
  uint64_t random = 8;
  for (uint32_t i = 0; i < test_effort(6); i++) {
    make_race_trial(&self, fixture, &random);
    test_allocator *allocator = &self.base.fixture->allocator;
    const rondo_verify_input input = input_of(&self.base, i & 1);
    const size_t live = allocator->live;
    rondo_findings *findings = NULL;
    size_t failures = 0;
    for (;; failures++) {
      allocator->calls = 0;
      allocator->fail_at = failures + 1;
      const rondo_status status = rondo_verify(&input, &findings);
      allocator->fail_at = 0;
      if (status == RONDO_OK) break;
      assert_int_equal(status, RONDO_OUT_OF_MEMORY);
      assert_null(findings);
      assert_int_equal(allocator->live, live);
    }
    assert_true(failures > 10);
    rondo_findings_destroy(findings);
    compare_races(&self, i & 1);
    end_trial(&self.base);
  }
}
