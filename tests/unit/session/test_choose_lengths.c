/* SPDX-License-Identifier: MIT
 * Lengths of a model (PR-5): the choice costs as little as the best of all choices; fewer lengths where that hardly
 * costs more; many distinct lengths.
 */
#include <math.h>

#include "session/sizing/choose_lengths.h"
#include "support/rondo_test.h"
#include "support/test_allocator.h"

enum { MOST = 8 };

/* The cost of all demands with these lengths, ascending; the last is large enough for all. */
static double cost_of(const rondo_length_demand *demands, size_t count, const size_t *lengths) {
  double cost = 0;
  for (size_t i = 0; i < count; i++) {
    size_t at = 0;
    while (lengths[at] < demands[i].length) at++;
    cost += demands[i].rows * (double)lengths[at];
  }
  return cost;
}

/* The least cost of at most `most` of the demands' lengths, which are distinct and ascending. */
static double best_of(const rondo_length_demand *demands, size_t count, uint32_t most) {
  double best = INFINITY;
  for (size_t set = 0; set < (size_t)1 << (count - 1); set++) {
    size_t lengths[MOST], chosen = 0;
    for (size_t i = 0; i < count; i++)
      if (i + 1 == count || (set >> i & 1) != 0) lengths[chosen++] = demands[i].length;
    if (chosen <= most) best = fmin(best, cost_of(demands, count, lengths));
  }
  return best;
}

UNIT_TEST(test_pr5_the_cost_is_nearly_the_least) {
  uint64_t random = 1;
  const rondo_allocator allocator = rondo_allocator_default();
  for (size_t round = 0; round < 500; round++) {
    rondo_length_demand demands[MOST], given[MOST];
    size_t chosen[RONDO_SESSION_MAX_LENGTHS], chosen_count = 0;
    const size_t count = 1 + test_random_below(&random, MOST);
    const uint32_t most = 1 + test_random_below(&random, MOST);
    for (size_t i = 0; i < count; i++)
      demands[i] = (rondo_length_demand){(i == 0 ? 0 : demands[i - 1].length) + 1 + test_random_below(&random, 40),
                                         1 + test_random_below(&random, 20)};
    for (size_t i = 0; i < count; i++) given[i] = demands[count - 1 - i];
    assert_ok(rondo_lengths_choose(&allocator, given, count, most, chosen, &chosen_count));
    assert_in_range(chosen_count, 1, most);
    assert_int_equal(chosen[chosen_count - 1], demands[count - 1].length);
    const double least = best_of(demands, count, most), cost = cost_of(demands, count, chosen);
    assert_true(cost >= least && cost <= 1.05 * least);
    if (chosen_count > 1) assert_true(best_of(demands, count, (uint32_t)chosen_count - 1) > 1.05 * least);
  }
}

UNIT_TEST(test_pr5_equal_lengths_are_one_and_many_are_thinned) {
  enum { COUNT = 5000 };
  static rondo_length_demand demands[COUNT];
  const rondo_allocator allocator = rondo_allocator_default();
  size_t chosen[RONDO_SESSION_MAX_LENGTHS], count = 0;
  for (size_t i = 0; i < 10; i++) demands[i] = (rondo_length_demand){7, 1};
  assert_ok(rondo_lengths_choose(&allocator, demands, 10, 8, chosen, &count));
  assert_int_equal(count, 1);
  assert_int_equal(chosen[0], 7);
  for (size_t i = 0; i < COUNT; i++) demands[i] = (rondo_length_demand){1 + i, 1};
  assert_ok(rondo_lengths_choose(&allocator, demands, COUNT, RONDO_SESSION_MAX_LENGTHS, chosen, &count));
  assert_int_equal(chosen[count - 1], COUNT);
  for (size_t i = 1; i < count; i++) assert_true(chosen[i] > chosen[i - 1]);
}
