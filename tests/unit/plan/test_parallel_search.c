/* SPDX-License-Identifier: MIT
 * The parallel search: optimal peaks, compared with all orders of placement on small problems; rectangles cut into
 * pieces, whose optimum is the bound; the same result for any number of threads; never a worse one with more steps;
 * targets and deadlines; and failing allocators (groundwork of GM-11).
 */
#include "plan/search/parallel_search.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "plan/search/search_sections.h"
#include "support/rondo_test.h"
#include "support/test_effort.h"

#define MAX_ITEMS 400

typedef struct problem {
  rondo_box items[MAX_ITEMS];
  size_t count;
  uint64_t offsets[MAX_ITEMS];
  uint64_t peak;
} problem;

static bool lives_overlap(const rondo_box *a, const rondo_box *b) { return a->lower < b->upper && b->lower < a->upper; }

static uint64_t bound_of(const problem *p) {
  uint64_t most = 0;
  for (size_t i = 0; i < p->count; i++) {
    uint64_t live = 0;
    for (size_t j = 0; j < p->count; j++) {
      if (p->items[j].lower <= p->items[i].lower && p->items[i].lower < p->items[j].upper) live += p->items[j].bytes;
    }
    if (live > most) most = live;
  }
  return most;
}

/* Nothing shares anything. */
static void stack_up(problem *p) {
  p->peak = 0;
  for (size_t i = 0; i < p->count; i++) {
    p->offsets[i] = p->peak;
    p->peak += p->items[i].bytes;
  }
}

/* The definition of a packing, word for word. */
static void assert_packing(const problem *p) {
  uint64_t peak = 0;
  for (size_t i = 0; i < p->count; i++) {
    const uint64_t end = p->offsets[i] + p->items[i].bytes;
    if (end > peak) peak = end;
    for (size_t j = 0; j < i; j++) {
      if (!lives_overlap(&p->items[i], &p->items[j])) continue;
      assert_true(p->items[i].bytes == 0 || p->items[j].bytes == 0 || end <= p->offsets[j] ||
                  p->offsets[j] + p->items[j].bytes <= p->offsets[i]);
    }
  }
  assert_int_equal(peak, p->peak);
}

/* Begins, runs and ends a search; what it leaves alone is as it was. */
static rondo_status search(const rondo_allocator *allocator, problem *p, uint64_t bound, uint64_t seed,
                           uint32_t threads, rondo_search_budget *budget, bool *out_optimal) {
  rondo_search *made = NULL;
  *out_optimal = p->peak <= bound;
  RONDO_TRY(rondo_search_begin(allocator, p->items, p->count, bound, seed, &made));
  if (made == NULL) return RONDO_OK;
  const rondo_status status = rondo_search_run(made, threads, budget, 0, p->offsets, &p->peak, out_optimal);
  rondo_search_end(made);
  return status;
}

static bool improve(problem *p, uint32_t threads, rondo_search_budget *budget) {
  const rondo_allocator allocator = rondo_allocator_default();
  const uint64_t before = p->peak;
  bool optimal = false;
  assert_ok(search(&allocator, p, bound_of(p), 7, threads, budget, &optimal));
  assert_packing(p);
  assert_true(p->peak <= before);
  if (budget->steps != 0) assert_true(budget->used <= budget->steps);
  return optimal;
}

/* Problems --------------------------------------------------------------------------------------------------------- */

static void make_random(problem *p, size_t count, uint32_t steps, uint32_t bytes, uint64_t *seed) {
  p->count = count;
  for (size_t i = 0; i < count; i++) {
    const uint32_t lower = test_random_below(seed, steps);
    const uint32_t upper = lower + 1 + test_random_below(seed, steps - lower);
    p->items[i] = (rondo_box){1 + test_random_below(seed, bytes), lower, upper};
  }
  stack_up(p);
}

typedef struct piece {
  uint32_t lower, upper;
  uint64_t bytes;
} piece;

/* Five pieces around a middle one, which no straight cut makes; the piece itself becomes the middle. */
static void cut_wheel(piece *pieces, size_t *count, size_t at, uint64_t *seed) {
  piece *middle = &pieces[at];
  const uint32_t a = middle->lower + 1 + test_random_below(seed, (middle->upper - middle->lower - 1) / 2);
  const uint32_t b = a + 1 + test_random_below(seed, middle->upper - a - 1);
  const uint64_t low = 1 + test_random_below(seed, (uint32_t)middle->bytes / 3);
  const uint64_t high = 1 + test_random_below(seed, (uint32_t)middle->bytes / 3);
  pieces[(*count)++] = (piece){middle->lower, b, low};
  pieces[(*count)++] = (piece){b, middle->upper, middle->bytes - high};
  pieces[(*count)++] = (piece){a, middle->upper, high};
  pieces[(*count)++] = (piece){middle->lower, a, middle->bytes - low};
  *middle = (piece){a, b, middle->bytes - low - high};
}

static void cut_straight(piece *pieces, size_t *count, size_t at, uint64_t *seed) {
  piece *first = &pieces[at];
  piece second = *first;
  if (test_random_below(seed, 4) > 0 && first->bytes > 1) {
    first->bytes = 1 + test_random_below(seed, (uint32_t)first->bytes - 1);
    second.bytes -= first->bytes;
  } else if (first->upper - first->lower > 1) {
    first->upper = first->lower + 1 + test_random_below(seed, first->upper - first->lower - 1);
    second.lower = first->upper;
  } else {
    return;
  }
  pieces[(*count)++] = second;
}

/* Cuts a rectangle into about `count` pieces; their optimum is its height, which is also the bound. Every `shorten`-th
 * piece (0: none) is cut off early where that leaves one step as it is. */
static void make_pieces(problem *p, size_t count, uint32_t shorten, uint64_t *seed) {
  static piece pieces[MAX_ITEMS];
  const uint32_t kept = 100;
  size_t made = 1;
  pieces[0] = (piece){0, 256, 4096};
  while (made < count) {
    size_t at = test_random_below(seed, (uint32_t)made);
    const size_t other = test_random_below(seed, (uint32_t)made);
    if (pieces[other].bytes * (pieces[other].upper - pieces[other].lower) >
        pieces[at].bytes * (pieces[at].upper - pieces[at].lower)) {
      at = other;
    }
    const bool is_large = pieces[at].upper - pieces[at].lower >= 4 && pieces[at].bytes >= 6;
    if (is_large && made + 4 <= count && test_random_below(seed, 4) == 0) {
      cut_wheel(pieces, &made, at, seed);
    } else {
      cut_straight(pieces, &made, at, seed);
    }
  }
  p->count = made;
  for (size_t i = 0; i < made; i++) {
    p->items[i] = (rondo_box){pieces[i].bytes, pieces[i].lower, pieces[i].upper};
    const uint32_t middle = (pieces[i].lower + pieces[i].upper + 1) / 2;
    if (shorten != 0 && i % shorten == 0 && (kept < pieces[i].lower || kept < middle)) p->items[i].upper = middle;
    if (p->items[i].upper <= p->items[i].lower) p->items[i].upper = pieces[i].upper;
  }
  stack_up(p);
}

/* The lowest peak of first fit in any order, some of which gives the optimum; `best` if none is lower. */
static uint64_t best_of_all_orders(const problem *p, uint32_t placed, uint64_t *offsets, uint64_t peak, uint64_t best) {
  if (peak >= best) return best;
  if (placed == (1U << p->count) - 1) return peak;
  for (uint32_t i = 0; i < p->count; i++) {
    if (placed & (1U << i)) continue;
    uint64_t offset = 0;
    for (uint32_t j = 0; j < p->count; j++) {
      if (!(placed & (1U << j)) || !lives_overlap(&p->items[i], &p->items[j])) continue;
      if (offsets[j] + p->items[j].bytes > offset) offset = offsets[j] + p->items[j].bytes;
    }
    offsets[i] = offset;
    const uint64_t end = offset + p->items[i].bytes;
    best = best_of_all_orders(p, placed | 1U << i, offsets, end > peak ? end : peak, best);
  }
  return best;
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

static void assert_is_solved(problem *p) {
  uint64_t offsets[MAX_ITEMS];
  rondo_search_budget budget = {0};
  assert_true(improve(p, 1, &budget));
  assert_int_equal(p->peak, best_of_all_orders(p, 0, offsets, 0, UINT64_MAX));
}

UNIT_TEST(test_small_problems_are_solved) {
  uint64_t seed = 1;
  for (uint32_t round = 0; round < test_effort(400); round++) {
    problem p;
    make_random(&p, 2 + round % 7, 4 + round % 5, 2 + round % 11, &seed);
    assert_is_solved(&p);
  }
}

/* The search ends because it has proved that there is nothing better. */
UNIT_TEST(test_an_optimum_above_the_bound_is_proved) {
  const problem exact = {.items = {{4, 2, 5}, {2, 3, 7}, {4, 6, 8}, {4, 7, 8}, {2, 5, 7}, {4, 0, 3}, {2, 4, 6}},
                         .count = 7};
  uint64_t seed = 2;
  const uint32_t cases = test_effort(100);
  uint32_t above_bound = 0;
  for (uint32_t i = 0; i < cases; i++) {
    problem p = exact;
    for (size_t k = 0; k < p.count; k++) p.items[k].bytes = p.items[k].bytes * 16 + test_random_below(&seed, 4);
    stack_up(&p);
    assert_is_solved(&p);
    if (p.peak > bound_of(&p)) above_bound++;
  }
  assert_true(above_bound > cases / 2);
}

UNIT_TEST(test_cut_rectangles_are_packed_again) {
  uint64_t seed = 2;
  for (int round = 0; round < 30; round++) {
    problem p;
    make_pieces(&p, 20 + 2 * (size_t)round, round % 3 == 0 ? 0 : 5, &seed);
    assert_int_equal(bound_of(&p), 4096);
    rondo_search_budget budget = {.steps = 3000000};
    assert_true(improve(&p, 2, &budget));
    assert_int_equal(p.peak, 4096);
  }
}

/* The result and the steps are the same for any number of threads. */
UNIT_TEST(test_steps_do_not_depend_on_threads) {
  uint64_t seed = 3;
  for (int round = 0; round < 6; round++) {
    problem first;
    make_pieces(&first, 90, 4, &seed);
    problem others[2] = {first, first};
    rondo_search_budget budget = {.steps = 4000 + 9000 * (uint64_t)round};
    const bool optimal = improve(&first, 1, &budget);
    for (uint32_t k = 0; k < 2; k++) {
      rondo_search_budget same = {.steps = budget.steps};
      assert_int_equal(improve(&others[k], 2 + 2 * k, &same), optimal);
      assert_int_equal(others[k].peak, first.peak);
      assert_memory_equal(others[k].offsets, first.offsets, first.count * sizeof *first.offsets);
      assert_int_equal(same.used, budget.used);
    }
  }
}

UNIT_TEST(test_more_steps_are_never_worse) {
  uint64_t seed = 4;
  for (int round = 0; round < 4; round++) {
    problem given;
    make_pieces(&given, 120, 3, &seed);
    uint64_t before = given.peak;
    for (uint64_t steps = 100; steps < 40000; steps += 100 + steps / 3) {
      problem p = given;
      rondo_search_budget budget = {.steps = steps};
      (void)improve(&p, 1, &budget);
      assert_true(p.peak <= before);
      before = p.peak;
    }
    assert_true(before < given.peak / 2);
  }
}

UNIT_TEST(test_a_target_is_enough) {
  uint64_t seed = 5;
  problem p;
  make_pieces(&p, 60, 3, &seed);
  rondo_search_budget budget = {.steps = 2000000, .target = 4096 + 400};
  (void)improve(&p, 2, &budget);
  assert_true(p.peak <= budget.target);
  const uint64_t used = budget.used;
  (void)improve(&p, 2, &budget);
  assert_int_equal(budget.used, used);
}

UNIT_TEST(test_a_search_without_time_or_steps_changes_nothing) {
  uint64_t seed = 6;
  problem p;
  make_pieces(&p, 60, 3, &seed);
  const problem before = p;
  rondo_search_budget late = {.deadline_ns = 1};
  assert_false(improve(&p, 2, &late));
  rondo_search_budget spent = {.steps = 10, .used = 10};
  assert_false(improve(&p, 2, &spent));
  assert_memory_equal(p.offsets, before.offsets, sizeof p.offsets);
}

UNIT_TEST(test_a_search_without_steps_ends_at_its_deadline) {
  uint64_t seed = 7;
  problem p;
  make_random(&p, 300, 200, 1000003, &seed);
  rondo_search_budget budget = {.deadline_ns = rondo_clock_ns() + UINT64_C(20000000)};
  const bool optimal = improve(&p, 2, &budget);
  assert_true(optimal || rondo_clock_is_past(budget.deadline_ns));
}

UNIT_TEST(test_nothing_to_search) {
  problem p = {.count = 0};
  rondo_search_budget budget = {.steps = 1000};
  assert_true(improve(&p, 2, &budget));
  p = (problem){.items = {{0, 0, 9}, {5, 2, 3}, {0, 2, 3}}, .count = 3};
  p.offsets[1] = 17;
  p.peak = 22;
  assert_true(improve(&p, 2, &budget));
  assert_int_equal(p.peak, 5);
  p = (problem){.items = {{5, 0, 9}, {5, 2, UINT32_MAX}, {7, 9, 10}}, .count = 3};
  stack_up(&p);
  assert_true(improve(&p, 2, &budget));
  assert_int_equal(p.peak, 12);
}

UNIT_TEST(test_what_is_too_large_is_left_as_it_is) {
  problem p = {.items = {{UINT64_C(1) << 61, 0, 1}, {UINT64_C(1) << 61, 1, 2}, {1, 2, 3}}, .count = 3};
  stack_up(&p);
  const problem before = p;
  rondo_search_budget budget = {.steps = 1000};
  assert_false(improve(&p, 2, &budget));
  assert_memory_equal(p.offsets, before.offsets, sizeof p.offsets);

  const size_t many = RONDO_SEARCH_MAX_ITEMS + 1;
  rondo_box *items = calloc(many, sizeof *items);
  assert_non_null(items);
  for (uint32_t i = 0; i < many; i++) items[i] = (rondo_box){1, i, i + 2};
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_search *search = NULL;
  assert_ok(rondo_search_begin(&allocator, items, many, 2, 0, &search));
  assert_null(search);
  free(items);
}

UNIT_TEST(test_every_failing_allocation_is_survived) {
  uint64_t seed = 8;
  problem given;
  make_pieces(&given, 50, 4, &seed);
  size_t calls = SIZE_MAX;
  for (size_t fail = 1; fail <= calls; fail++) {
    problem p = given;
    test_allocator allocator;
    test_allocator_init(&allocator);
    allocator.fail_at = fail;
    rondo_search_budget budget = {.steps = 6000};
    bool optimal = false;
    const rondo_status status = search(&allocator.table, &p, 1, 0, 1, &budget, &optimal);
    assert_packing(&p);
    assert_true(p.peak <= given.peak);
    assert_int_equal(allocator.live, 0);
    assert_int_equal(allocator.faults, 0);
    if (status == RONDO_OK) calls = allocator.calls;
    if (fail <= calls) assert_error(status, RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED);
  }
  assert_true(calls < SIZE_MAX);
}
