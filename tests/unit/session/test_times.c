/* SPDX-License-Identifier: MIT
 * What readings of times say: the least two, and when they agree; and that sizes chosen by readings of a busy machine,
 * on which long runs are disturbed most, are as good as those of a quiet one (SE-7).
 */
#include "session/times.h"

#include <math.h>

#include <rondo/sizes.h>

#include "support/rondo_test.h"

static void test_se7_the_least_two_readings(void **state) {
  const double first[] = {30, 10, 20, 12};
  rondo_least least = {0};
  (void)state;
  assert_false(rondo_least_is_settled(&least));
  for (size_t i = 0; i < 4; i++) {
    rondo_least_add(&least, first[i]);
    assert_false(rondo_least_is_settled(&least));
  }
  assert_true(least.us == 10 && least.second_us == 12);
  rondo_least_add(&least, 10.4);
  assert_true(rondo_least_is_settled(&least));
  rondo_least_add(&least, 9);
  assert_true(least.us == 9 && least.second_us == 10);
  assert_false(rondo_least_is_settled(&least)); /* what agreed was not the least */
  assert_int_equal(least.readings, 6);
}

static void test_se7_equal_readings_agree(void **state) {
  rondo_least least = {0};
  (void)state;
  rondo_least_add(&least, 7);
  assert_false(rondo_least_is_settled(&least));
  rondo_least_add(&least, 7);
  assert_true(rondo_least_is_settled(&least));
}

static void test_se7_none_takes_longer_than_one_with_more_rows(void **state) {
  const size_t rows[] = {30, 10, 20};
  double us[] = {25, 40, 50};
  (void)state;
  rondo_times_make_rise(rows, us, 3);
  assert_true(us[0] == 25 && us[1] == 25 && us[2] == 25);
}

static void test_se7_no_row_costs_more_than_one_of_a_smaller_graph(void **state) {
  const size_t rows[] = {80, 10, 20, 40, 160};
  double us[] = {1000, 12, 20, 500, 150};
  (void)state;
  rondo_times_bound(rows, us, 5);
  assert_true(us[1] == 12 && us[2] == 20 && us[4] == 150); /* as they were read */
  assert_true(us[3] == 40 && us[0] == 80);                 /* two and four of 20 rows */
  rondo_times_bound(rows, us, 0);
}

/* Sizes ----------------------------------------------------------------------------------------------------------- */

enum { PROBES = 12, MOST_ROWS = 1200, SIZES = 6, CANDIDATES = 48 };

/* A graph of 100 us and 2 us a row. */
static double true_us(size_t rows) { return 100 + 2 * (double)rows; }

/* On a busy machine what is beyond a slice of time is interrupted, and takes so many times as long. */
static double read_us(size_t rows, double slice_us, double load) {
  const double us = true_us(rows);
  return us <= slice_us ? us : slice_us + (us - slice_us) * load;
}

/* On the line between the probes around. */
static double between(const size_t *rows, const double *us, size_t at) {
  size_t i = 0;
  while (i + 2 < PROBES && rows[i + 1] < at) i++;
  return us[i] + (us[i + 1] - us[i]) * ((double)at - (double)rows[i]) / (double)(rows[i + 1] - rows[i]);
}

/* What requests of each number of rows take in truth, with sizes chosen by such readings. */
static double choose(double slice_us, double load, bool is_bound) {
  size_t rows[PROBES], chosen[SIZES];
  double us[PROBES];
  rondo_size_candidate candidates[CANDIDATES], sizes[SIZES];
  rondo_size_demand demands[MOST_ROWS];
  rondo_sizes_choice choice = {.struct_size = sizeof choice};
  for (size_t i = 0; i < PROBES; i++) {
    rows[i] = 1 + (MOST_ROWS - 1) * i / (PROBES - 1);
    us[i] = read_us(rows[i], slice_us, load);
  }
  rondo_times_make_rise(rows, us, PROBES);
  if (is_bound) rondo_times_bound(rows, us, PROBES);
  for (size_t i = 0; i < CANDIDATES; i++) {
    const size_t at = MOST_ROWS * (i + 1) / CANDIDATES;
    candidates[i] = (rondo_size_candidate){.rows = at, .run_us = between(rows, us, at)};
  }
  for (size_t i = 0; i < MOST_ROWS; i++) demands[i] = (rondo_size_demand){.rows = i + 1, .requests = 1};
  rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT,      .max_sizes = SIZES, .candidates = candidates,
                                 .candidate_count = CANDIDATES, .demands = demands, .demand_count = MOST_ROWS};
  assert_ok(rondo_sizes_choose(&problem, chosen, &choice));
  for (size_t i = 0; i < choice.count; i++) {
    const size_t at = candidates[chosen[i]].rows;
    sizes[i] = (rondo_size_candidate){.rows = at, .run_us = true_us(at)};
  }
  problem.candidates = sizes;
  problem.candidate_count = choice.count;
  assert_ok(rondo_sizes_choose(&problem, chosen, &choice));
  return choice.mean_us;
}

static void test_se7_sizes_of_a_busy_machine_are_as_good_as_those_of_a_quiet_one(void **state) {
  const double loads[] = {1.5, 3, 9, 40}, quiet_us = choose(INFINITY, 1, false);
  (void)state;
  assert_true(choose(INFINITY, 1, true) == quiet_us);
  for (size_t i = 0; i < 4; i++) {
    assert_true(choose(1000, loads[i], true) <= 1.01 * quiet_us);
    assert_true(choose(1000, loads[i], false) > 1.1 * quiet_us); /* what the bound is for */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      test_case(test_se7_the_least_two_readings),
      test_case(test_se7_equal_readings_agree),
      test_case(test_se7_none_takes_longer_than_one_with_more_rows),
      test_case(test_se7_no_row_costs_more_than_one_of_a_smaller_graph),
      test_case(test_se7_sizes_of_a_busy_machine_are_as_good_as_those_of_a_quiet_one),
  };
  return test_main(tests);
}
