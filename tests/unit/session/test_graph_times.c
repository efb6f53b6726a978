/* SPDX-License-Identifier: MIT
 * What samples of times say: the lowest two, and when they agree; how runs of graphs correct measured times (SE-8); and
 * that sizes chosen from samples of a busy machine, on which long runs are disturbed most, are as good as those from a
 * quiet one (SE-7).
 */
#include "session/sizing/graph_times.h"

#include <math.h>

#include <rondo/sizes.h>

#include "support/rondo_test.h"

TEST(test_se7_the_least_two_readings) {
  const double first[] = {30, 10, 20, 12};
  rondo_least_samples least = {0};
  assert_false(rondo_least_samples_agree(&least));
  for (size_t i = 0; i < 4; i++) {
    rondo_least_samples_add(&least, first[i]);
    assert_false(rondo_least_samples_agree(&least));
  }
  assert_true(least.us == 10 && least.second_us == 12);
  rondo_least_samples_add(&least, 10.4);
  assert_true(rondo_least_samples_agree(&least));
  rondo_least_samples_add(&least, 9);
  assert_true(least.us == 9 && least.second_us == 10);
  assert_false(rondo_least_samples_agree(&least)); /* the samples that agreed were not the lowest */
  assert_int_equal(least.samples, 6);
}

TEST(test_se7_equal_readings_agree) {
  rondo_least_samples least = {0};
  rondo_least_samples_add(&least, 7);
  assert_false(rondo_least_samples_agree(&least));
  rondo_least_samples_add(&least, 7);
  assert_true(rondo_least_samples_agree(&least));
}

TEST(test_se7_none_takes_longer_than_one_with_more_rows) {
  const size_t rows[] = {30, 10, 20};
  double us[] = {25, 40, 50};
  rondo_times_make_ascending(rows, us, 3);
  assert_true(us[0] == 25 && us[1] == 25 && us[2] == 25);
}

TEST(test_se7_no_row_costs_more_than_one_of_a_smaller_graph) {
  const size_t rows[] = {80, 10, 20, 40, 160};
  double us[] = {1000, 12, 20, 500, 150};
  rondo_times_limit_row_cost(rows, us, 5);
  assert_true(us[1] == 12 && us[2] == 20 && us[4] == 150); /* as measured */
  assert_true(us[3] == 40 && us[0] == 80);                 /* two and four of 20 rows */
  rondo_times_limit_row_cost(rows, us, 0);
}

/* Samples of runs -------------------------------------------------------------------------------------------------- */

static void add(rondo_tracked_time *kept, size_t count, double us) {
  for (size_t i = 0; i < count; i++) rondo_tracked_time_add(kept, us);
}

TEST(test_se8_a_smaller_reading_counts_at_once) {
  rondo_tracked_time kept;
  rondo_tracked_time_begin(&kept, 300); /* under load */
  assert_false(rondo_tracked_time_has_changed(&kept));
  rondo_tracked_time_add(&kept, 900);
  assert_true(kept.us == 300 && !rondo_tracked_time_has_changed(&kept));
  rondo_tracked_time_add(&kept, 100);
  assert_true(kept.us == 100 && rondo_tracked_time_has_changed(&kept));
  rondo_tracked_time_add(&kept, 120);
  assert_true(kept.us == 100 && kept.samples == 3 && kept.windows == 0);
}

TEST(test_se8_a_slowdown_counts_after_a_window) {
  rondo_tracked_time kept;
  rondo_tracked_time_begin(&kept, 100);
  add(&kept, RONDO_SAMPLES_IN_WINDOW - 1, 250);
  assert_true(kept.us == 100 && !rondo_tracked_time_has_changed(&kept));
  rondo_tracked_time_add(&kept, 240);
  assert_true(kept.us == 240 && kept.windows == 1 && rondo_tracked_time_has_changed(&kept));
  add(&kept, RONDO_SAMPLES_IN_WINDOW - 1, 400);
  rondo_tracked_time_add(&kept, 230); /* one low sample in a window keeps the time */
  assert_true(kept.us == 230 && kept.windows == 2);
  rondo_tracked_time_add(&kept, 90); /* the window ends */
  assert_true(kept.us == 90);
}

TEST(test_se8_up_to_5_percent_are_no_change) {
  rondo_tracked_time kept;
  rondo_tracked_time_begin(&kept, 100);
  rondo_tracked_time_add(&kept, 96);
  assert_false(rondo_tracked_time_has_changed(&kept));
  rondo_tracked_time_add(&kept, 94);
  assert_true(rondo_tracked_time_has_changed(&kept));
  kept.dispatched_us = 94;
  assert_false(rondo_tracked_time_has_changed(&kept));
  add(&kept, RONDO_SAMPLES_IN_WINDOW - 2, 98); /* the lowest of the window is 94 */
  add(&kept, RONDO_SAMPLES_IN_WINDOW, 98);
  assert_true(kept.us == 98 && !rondo_tracked_time_has_changed(&kept));
  add(&kept, RONDO_SAMPLES_IN_WINDOW, 99);
  assert_true(rondo_tracked_time_has_changed(&kept)); /* small steps add up */
}

TEST(test_se8_times_of_graphs_that_did_not_run) {
  const size_t rows[] = {64, 8, 16, 48, 32};
  rondo_tracked_time kept[5];
  double us[5], eager[] = {400, 50, 100, 300, 200}; /* 6.25 us for each row */
  for (size_t i = 0; i < 5; i++) rondo_tracked_time_begin(&kept[i], (double)rows[i]);
  rondo_tracked_times_find(rows, kept, 5, us, eager);
  for (size_t i = 0; i < 5; i++) assert_true(us[i] == (double)rows[i] && eager[i] == 6.25 * (double)rows[i]);
  add(&kept[0], RONDO_SAMPLES_IN_WINDOW, 128); /* twice as slow */
  add(&kept[2], RONDO_SAMPLES_IN_WINDOW, 8);   /* measured under load, which does not apply to the others */
  rondo_tracked_time_add(&kept[3], 60);        /* faster than the slow neighbour implies */
  rondo_tracked_times_find(rows, kept, 5, us, eager);
  assert_true(us[0] == 128 && us[3] == 60 && us[2] == 8);
  assert_true(us[1] == 8);  /* as measured */
  assert_true(us[4] == 32); /* 16 rows are nearer than 64 */
}

TEST(test_se8_eager_runs_are_as_much_slower) {
  const size_t rows[] = {64, 8, 16};
  rondo_tracked_time kept[3];
  double us[3], eager[] = {400, 50, 100};
  for (size_t i = 0; i < 3; i++) rondo_tracked_time_begin(&kept[i], (double)rows[i]);
  add(&kept[0], RONDO_SAMPLES_IN_WINDOW, 128);
  rondo_tracked_times_find(rows, kept, 3, us, eager);
  assert_true(us[0] == 128 && us[1] == 16 && us[2] == 32);
  assert_true(eager[0] == 800 && eager[1] == 100 && eager[2] == 200);
}

TEST(test_se8_a_graph_is_no_slower_than_a_larger_one_that_was_corrected) {
  const size_t rows[] = {64, 32};
  rondo_tracked_time kept[2];
  double us[2], eager[] = {0, 0};
  for (size_t i = 0; i < 2; i++) rondo_tracked_time_begin(&kept[i], (double)rows[i] * 100);
  rondo_tracked_time_add(&kept[0], 70);
  rondo_tracked_times_find(rows, kept, 2, us, eager);
  assert_true(us[0] == 70 && us[1] == 70 && eager[0] == 0 && eager[1] == 0);
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

enum { PROBES = 12, MOST_ROWS = 1200, SIZES = 6, CANDIDATES = 48 };

/* A graph takes 100 us, and 2 us for each row. */
static double true_us(size_t rows) { return 100 + 2 * (double)rows; }

/* On a busy machine, work beyond a time slice is interrupted, and takes `load` times as long. */
static double read_us(size_t rows, double slice_us, double load) {
  const double us = true_us(rows);
  return us <= slice_us ? us : slice_us + (us - slice_us) * load;
}

/* Interpolates between the two nearest probes. */
static double between(const size_t *rows, const double *us, size_t at) {
  size_t i = 0;
  while (i + 2 < PROBES && rows[i + 1] < at) i++;
  return us[i] + (us[i + 1] - us[i]) * ((double)at - (double)rows[i]) / (double)(rows[i + 1] - rows[i]);
}

/* The true time of one request of each number of rows, with sizes that are chosen by such samples. */
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
  rondo_times_make_ascending(rows, us, PROBES);
  if (is_bound) rondo_times_limit_row_cost(rows, us, PROBES);
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

TEST(test_se7_sizes_of_a_busy_machine_are_as_good_as_those_of_a_quiet_one) {
  const double loads[] = {1.5, 3, 9, 40}, quiet_us = choose(INFINITY, 1, false);
  assert_true(choose(INFINITY, 1, true) == quiet_us);
  for (size_t i = 0; i < 4; i++) {
    assert_true(choose(1000, loads[i], true) <= 1.01 * quiet_us);
    assert_true(choose(1000, loads[i], false) > 1.1 * quiet_us); /* the reason for the limit */
  }
}
