/* SPDX-License-Identifier: MIT
 * Streams laid upon each other: ranges of streams against the relation, peaks of ranges against an array, and plans
 * against every pair (GM-11: what is not ordered behind a free never gets its bytes).
 */
#include "order_tests.h"

#include "plan/order_stack.h"
#include "plan/range_peaks.h"

/* What a stack is laid for. */
typedef struct stack_sample {
  rondo_allocator allocator;
  rondo_branches branches;
  rondo_relation relation;
  rondo_lives lives;
  uint32_t taken[MOST_BRANCHES];
  rondo_order_bound bound;
  rondo_plan_options options;
  rondo_order_search search;
  rondo_order_stack stack;
} stack_sample;

static void make_stack_sample(stack_sample *t, const rondo_plan_problem *problem) {
  *t = (stack_sample){.allocator = rondo_allocator_default()};
  t->bound.taken = t->taken;
  t->options = (rondo_plan_options){RONDO_PLAN_OPTIONS_INIT, .gap = 1, .threads = 1, .budget_steps = UINT64_MAX};
  assert_ok(rondo_branches_make(&t->allocator, problem, &t->branches));
  assert_ok(rondo_relation_make(&t->allocator, problem->order, 0, &t->relation));
  assert_ok(rondo_lives_make(&t->allocator, problem, &t->relation, &t->branches, &t->lives));
  assert_ok(rondo_serial_bound(&t->allocator, problem, &t->branches, &t->bound));
  t->search = (rondo_order_search){.allocator = &t->allocator, .lives = &t->lives, .options = &t->options};
  t->search.deadline_ns = UINT64_MAX;
  t->search.bound = &t->bound;
  t->search.trial = calloc(problem->count, sizeof(size_t));
  t->search.offsets = calloc(problem->count, sizeof(size_t));
  assert_true(t->search.trial != NULL && t->search.offsets != NULL);
  assert_ok(rondo_order_stack_make(&t->search, &t->stack));
}

static void free_stack_sample(stack_sample *t) {
  rondo_order_stack_free(&t->stack);
  rondo_lives_free(&t->allocator, &t->lives);
  rondo_relation_free(&t->allocator, &t->relation);
  rondo_branches_free(&t->allocator, &t->branches);
  free(t->search.trial);
  free(t->search.offsets);
}

static void test_ranges_raised_are_found_again(void **state) {
  (void)state;
  enum { MOST = 70 };
  const rondo_allocator allocator = rondo_allocator_default();
  uint64_t seed = 1;
  for (unsigned round = 0; round < 200; round++) {
    const uint32_t length = 1 + test_random_below(&seed, MOST);
    size_t expected[MOST] = {0};
    rondo_range_peaks peaks;
    assert_ok(rondo_range_peaks_make(&allocator, length, &peaks));
    for (unsigned step = 0; step < 60; step++) {
      const uint32_t begin = test_random_below(&seed, length);
      const uint32_t end = begin + test_random_below(&seed, length - begin + 1);
      const size_t value = test_random_below(&seed, 100);
      size_t most = 0;
      for (uint32_t i = begin; i < end; i++) most = expected[i] > most ? expected[i] : most;
      assert_int_equal(rondo_range_peaks_most(&peaks, begin, end), most);
      for (uint32_t i = begin; i < end; i++) expected[i] = value > expected[i] ? value : expected[i];
      rondo_range_peaks_raise(&peaks, begin, end, value);
    }
    rondo_range_peaks_clear(&peaks);
    assert_int_equal(rondo_range_peaks_most(&peaks, 0, length), 0);
    rondo_range_peaks_free(&allocator, &peaks);
  }
}

/* Whether slot u comes neither before the alloc nor behind the free. */
static bool is_in(const rondo_relation *relation, uint32_t u, const rondo_life *life) {
  const bool before = life->alloc != u && life->alloc != 0 && rondo_relation_precedes(relation, u, life->alloc);
  const bool behind =
      life->free != u && life->free != relation->slot_count - 1 && rondo_relation_precedes(relation, life->free, u);
  return !before && !behind;
}

static void assert_ranges(const stack_sample *t, const rondo_life *life) {
  const rondo_relation *relation = &t->relation;
  for (uint32_t u = 1; u + 1 < relation->slot_count; u++) {
    if (relation->slot_chain[u] == RONDO_RELATION_LOOSE) continue;
    const rondo_streams *streams = &t->stack.streams;
    const uint32_t stream = streams->chain_stream[relation->slot_chain[u]];
    const rondo_range range = rondo_streams_range(streams, stream, life->alloc, life->free);
    const uint32_t at = streams->slot_position[u];
    assert_true(range.end <= rondo_streams_length(streams, stream));
    assert_true((at >= range.begin && at < range.end) == is_in(relation, u, life));
  }
}

static void test_what_may_live_together_is_one_range_of_each_stream(void **state) {
  (void)state;
  uint64_t seed = 2;
  static order_sample s;
  static stack_sample t;
  for (unsigned round = 0; round < 1000; round++) {
    make_order_sample(&s, &seed, 0, MOST_ITEMS);
    make_stack_sample(&t, &s.problem);
    assert_true(t.stack.streams.count > 0);
    for (size_t i = 0; i < s.problem.count; i++) assert_ranges(&t, &t.lives.lives[i]);
    free_stack_sample(&t);
  }
}

/* Every stack is a plan, by itself and by the checker, however streams and alignments are. */
static void test_no_stack_lets_meet_what_may_live_together(void **state) {
  (void)state;
  uint64_t seed = 3;
  static order_sample s;
  static stack_sample t;
  unsigned stacks = 0;
  for (unsigned round = 0; round < 4000; round++) {
    make_order_sample(&s, &seed, round % 2 == 0 ? 0 : ALIGNED, MOST_ITEMS);
    make_stack_sample(&t, &s.problem);
    for (uint64_t turn = 0; turn < 4; turn++) {
      t.search.peak = SIZE_MAX;
      rondo_order_stack_run(&t.stack, turn);
      if (t.search.peak == SIZE_MAX) continue;
      assert_true(is_order_plan(&s, t.search.offsets));
      assert_ok(rondo_plan_check(NULL, &s.problem, t.search.offsets));
      stacks++;
    }
    free_stack_sample(&t);
  }
  assert_in_range(stacks, 4000, 16000);
}

typedef struct streams_sample {
  rondo_plan_item *items;
  uint32_t *successor_start, *successors;
  rondo_plan_order order;
  rondo_plan_problem problem;
} streams_sample;

/* Streams of which one waits for another at every `wait`th node or so, and then may free what that allocated. */
static void make_loose_streams(streams_sample *s, uint32_t nodes, uint32_t width, uint32_t wait, uint64_t seed) {
  s->items = calloc(2 * (size_t)nodes, sizeof *s->items);
  s->successor_start = calloc(nodes + 1, sizeof *s->successor_start);
  s->successors = calloc(2 * (size_t)nodes, sizeof *s->successors);
  assert_true(s->items != NULL && s->successor_start != NULL && s->successors != NULL);
  uint32_t edges = 0;
  size_t count = 0;
  for (uint32_t v = 0; v < nodes; v++) {
    s->successor_start[v] = edges;
    const uint32_t other = v + 1 + test_random_below(&seed, width);
    const uint32_t upper = v + width * (1 + test_random_below(&seed, test_random_below(&seed, 8) == 0 ? 60 : 6));
    const size_t bytes = ((size_t)1 << test_random_below(&seed, 12)) + test_random_below(&seed, 100);
    const size_t alignment = (size_t)1 << test_random_below(&seed, 8);
    if (v + width < nodes) s->successors[edges++] = v + width;
    s->items[count++] = (rondo_plan_item){
        .bytes = bytes, .alignment = alignment, .lower = v, .upper = upper < nodes ? upper : RONDO_PLAN_FOREVER};
    if (other == v + width || other >= nodes || test_random_below(&seed, wait) != 0) continue;
    s->successors[edges++] = other;
    if (wait > 5) s->items[count++] = (rondo_plan_item){.bytes = bytes, .lower = v, .upper = other};
  }
  s->successor_start[nodes] = edges;
  s->order = (rondo_plan_order){nodes, s->successor_start, s->successors};
  s->problem = (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = s->items, .count = count, .order = &s->order};
}

static void free_streams(streams_sample *s) {
  free(s->items);
  free(s->successor_start);
  free(s->successors);
}

static void test_loose_streams_are_stacked_and_repeat(void **state) {
  (void)state;
  static stack_sample t;
  for (uint32_t width = 2; width <= 9; width++) {
    streams_sample s;
    make_loose_streams(&s, 1500, width, 5 + 5 * width, width);
    make_stack_sample(&t, &s.problem);
    assert_non_null(t.stack.room);
    for (uint64_t turn = 0; turn < 4; turn++) {
      t.search.peak = SIZE_MAX;
      rondo_order_stack_run(&t.stack, turn);
      const size_t peak = t.search.peak;
      assert_true(peak >= t.bound.bytes && peak < 2 * t.bound.bytes);
      assert_ok(rondo_plan_check(NULL, &s.problem, t.search.offsets));
      t.search.peak = SIZE_MAX;
      rondo_order_stack_run(&t.stack, turn);
      assert_int_equal(t.search.peak, peak);
    }
    free_stack_sample(&t);
    free_streams(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges_raised_are_found_again),
      cmocka_unit_test(test_what_may_live_together_is_one_range_of_each_stream),
      cmocka_unit_test(test_no_stack_lets_meet_what_may_live_together),
      cmocka_unit_test(test_loose_streams_are_stacked_and_repeat),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
