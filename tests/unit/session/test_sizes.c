/* SPDX-License-Identifier: MIT
 * The choice of batch sizes (SE-7), compared with all possible choices on small random problems; the figures of a
 * choice; and the errors.
 */
#include <float.h>
#include <math.h>
#include <rondo/sizes.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { MAX_CANDIDATES = 9, MOST_DEMANDS = 12 };

typedef struct small_problem {
  rondo_sizes_problem problem;
  rondo_size_candidate candidates[MAX_CANDIDATES];
  rondo_size_demand demands[MOST_DEMANDS];
} small_problem;

/* The cost of one request of the demand, by definition. Infinite if it cannot run. */
static double cost_of_demand(const rondo_sizes_problem *p, unsigned choice, const rondo_size_demand *demand) {
  double cost = demand->eager_us > 0 ? demand->eager_us : INFINITY;
  const rondo_size_candidate *largest = NULL;
  bool has_spare_rows = false;
  for (size_t i = 0; i < p->candidate_count; i++) {
    const rondo_size_candidate *c = &p->candidates[i];
    if (!(choice >> i & 1)) continue;
    if (largest == NULL || c->rows > largest->rows) largest = c;
    if (c->rows < demand->rows) continue;
    cost = fmin(cost, c->run_us);
    has_spare_rows = true;
  }
  if (!has_spare_rows && largest != NULL)
    cost = fmin(cost, (double)((demand->rows + largest->rows - 1) / largest->rows) * largest->run_us);
  return cost;
}

static double cost_of(const rondo_sizes_problem *p, unsigned choice) {
  double cost = 0;
  for (size_t i = 0; i < p->demand_count; i++)
    if (p->demands[i].requests > 0) cost += (double)p->demands[i].requests * cost_of_demand(p, choice, &p->demands[i]);
  return cost;
}

static bool is_allowed(const rondo_sizes_problem *p, unsigned choice) {
  uint64_t bytes = 0, shared = 0;
  double startup = 0;
  uint32_t sizes = 0;
  for (size_t i = 0; i < p->candidate_count; i++) {
    if (!(choice >> i & 1)) continue;
    sizes++;
    bytes += p->candidates[i].bytes;
    startup += p->candidates[i].startup_us;
    if (p->candidates[i].shared_bytes > shared) shared = p->candidates[i].shared_bytes;
  }
  return sizes <= p->max_sizes && (p->budget_bytes == 0 || bytes + shared <= p->budget_bytes) &&
         (p->budget_startup_us <= 0 || startup <= p->budget_startup_us);
}

static double least_cost(const rondo_sizes_problem *p) {
  double least = INFINITY;
  for (unsigned choice = 0; choice < 1u << p->candidate_count; choice++)
    if (is_allowed(p, choice)) least = fmin(least, cost_of(p, choice));
  return least;
}

/* Times mostly rise with the rows, but not always; shared bytes too. */
static void draw_problem(uint64_t *random, small_problem *out) {
  const bool has_eager = test_random_below(random, 2) == 0;
  memset(out, 0, sizeof *out);
  out->problem =
      (rondo_sizes_problem){RONDO_SIZES_PROBLEM_INIT,
                            .max_sizes = 1 + test_random_below(random, 5),
                            .candidates = out->candidates,
                            .candidate_count = 1 + test_random_below(random, MAX_CANDIDATES),
                            .demands = out->demands,
                            .demand_count = 1 + test_random_below(random, MOST_DEMANDS),
                            .budget_bytes = test_random_below(random, 2) * (1 + test_random_below(random, 300)),
                            .budget_startup_us = test_random_below(random, 2) * (1 + test_random_below(random, 200))};
  for (size_t i = 0; i < out->problem.candidate_count; i++) {
    const size_t rows = 1 + 7 * (MAX_CANDIDATES - i) + test_random_below(random, 6); /* descending */
    out->candidates[i] = (rondo_size_candidate){.rows = rows,
                                                .run_us = 10 + (double)rows + test_random_below(random, 20),
                                                .bytes = test_random_below(random, 100),
                                                .shared_bytes = 2 * rows + test_random_below(random, 20),
                                                .startup_us = test_random_below(random, 100)};
  }
  for (size_t i = 0; i < out->problem.demand_count; i++) {
    const size_t rows = 1 + test_random_below(random, 90);
    out->demands[i] = (rondo_size_demand){
        .rows = rows, .requests = test_random_below(random, 50), .eager_us = has_eager ? 25 + 1.5 * (double)rows : 0};
  }
}

static unsigned as_bits(const size_t *chosen, uint32_t count) {
  unsigned bits = 0;
  for (uint32_t i = 0; i < count; i++) bits |= 1u << chosen[i];
  return bits;
}

UNIT_TEST(test_se7_no_choice_is_better) {
  uint64_t random = 7;
  uint32_t refused = 0;
  const uint32_t rounds = test_effort(3000);
  for (uint32_t round = 0; round < rounds; round++) {
    small_problem s;
    size_t chosen[8];
    rondo_sizes_choice choice = {.struct_size = sizeof choice};
    draw_problem(&random, &s);
    const double least = least_cost(&s.problem);
    if (isinf(least)) {
      assert_error(rondo_sizes_choose(&s.problem, chosen, &choice), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
      refused++;
      continue;
    }
    assert_ok(rondo_sizes_choose(&s.problem, chosen, &choice));
    const unsigned bits = as_bits(chosen, choice.count);
    assert_true(is_allowed(&s.problem, bits));
    const double requests = choice.requests == 0 ? 1 : (double)choice.requests;
    assert_true(fabs(cost_of(&s.problem, bits) - least) <= 1e-9 * least);
    assert_true(fabs(choice.mean_us * requests - least) <= 1e-9 * least);
    assert_true(choice.bound_us * requests <= least * (1 + 1e-9));
    for (uint32_t i = 1; i < choice.count; i++)
      assert_true(s.candidates[chosen[i - 1]].rows < s.candidates[chosen[i]].rows);
  }
  assert_true(refused > 0 && refused < rounds / 2);
}

UNIT_TEST(test_se7_figures_of_a_choice) {
  const rondo_size_candidate candidates[] = {
      {.rows = 100, .run_us = 10, .bytes = 5, .shared_bytes = 100, .startup_us = 3},
      {.rows = 400, .run_us = 20, .bytes = 6, .shared_bytes = 400, .startup_us = 4}};
  const rondo_size_demand demands[] = {
      {.rows = 50, .requests = 10}, {.rows = 400, .requests = 5}, {.rows = 900, .requests = 1}};
  const rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT, .max_sizes = 4,     .candidates = candidates,
                                       .candidate_count = 2,     .demands = demands, .demand_count = 3};
  size_t chosen[4];
  rondo_sizes_choice choice = {.struct_size = sizeof choice};
  assert_ok(rondo_sizes_choose(&problem, chosen, &choice));
  assert_int_equal(choice.count, 2);
  assert_int_equal(chosen[0], 0);
  assert_int_equal(chosen[1], 1);
  assert_int_equal(choice.bytes, 5 + 6 + 400);
  assert_int_equal(choice.requests, 16);
  assert_int_equal(choice.split, 1);
  assert_int_equal(choice.eager, 0);
  assert_true(fabs(choice.mean_us - (10 * 10 + 5 * 20 + 60) / 16.0) < 1e-9);
  assert_true(fabs(choice.startup_us - 7) < 1e-9);
  assert_true(fabs(choice.padding - (1 - 3400.0 / 4200.0)) < 1e-9);
}

/* Of choices with equal costs, the one with the fewest sizes. Without demands, no size. */
UNIT_TEST(test_se7_no_size_without_use) {
  const rondo_size_candidate candidates[] = {
      {.rows = 1, .run_us = 5}, {.rows = 2, .run_us = 5}, {.rows = 3, .run_us = 6}};
  const rondo_size_demand demand = {.rows = 1, .requests = 9};
  rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT, .max_sizes = 3,     .candidates = candidates,
                                 .candidate_count = 3,     .demands = &demand, .demand_count = 1};
  size_t chosen[3];
  rondo_sizes_choice choice = {.struct_size = sizeof choice};
  assert_ok(rondo_sizes_choose(&problem, chosen, &choice));
  assert_int_equal(choice.count, 1);
  problem.demand_count = 0;
  assert_ok(rondo_sizes_choose(&problem, chosen, &choice));
  assert_int_equal(choice.count, 0);
}

/* A log-normal distribution of 100 to 1200 rows. With 16 sizes, less than a tenth of the rows is padding. */
UNIT_TEST(test_se7_padding_of_a_log_normal) {
  enum { ROWS = 1200, SIZES = 16 };
  static rondo_size_candidate candidates[ROWS];
  static rondo_size_demand demands[ROWS];
  size_t count = 0, chosen[SIZES];
  for (size_t rows = 100; rows <= ROWS; rows++) {
    const double z = (log((double)rows) - log(400)) / 0.5;
    candidates[count] = (rondo_size_candidate){.rows = rows, .run_us = 20 + 0.1 * (double)rows};
    demands[count++] = (rondo_size_demand){.rows = rows, .requests = (uint64_t)(1e6 / (double)rows * exp(-z * z / 2))};
  }
  const rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT, .max_sizes = SIZES, .candidates = candidates,
                                       .candidate_count = count, .demands = demands, .demand_count = count};
  rondo_sizes_choice choice = {.struct_size = sizeof choice};
  assert_ok(rondo_sizes_choose(&problem, chosen, &choice));
  assert_int_equal(choice.count, SIZES);
  assert_true(choice.padding < 0.1);
}

UNIT_TEST(test_se7_wrong_arguments) {
  rondo_size_candidate candidates[] = {{.rows = 1, .run_us = 5}, {.rows = 2, .run_us = 5}};
  rondo_size_demand demand = {.rows = 1, .requests = 9};
  rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT, .max_sizes = 2,     .candidates = candidates,
                                 .candidate_count = 2,     .demands = &demand, .demand_count = 1};
  size_t chosen[2];
  assert_invalid(rondo_sizes_choose(NULL, chosen, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_sizes_choose(&problem, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  candidates[1].rows = 1;
  assert_invalid(rondo_sizes_choose(&problem, chosen, NULL), RONDO_REASON_DUPLICATE_NAME);
  candidates[1].rows = 0;
  assert_invalid(rondo_sizes_choose(&problem, chosen, NULL), RONDO_REASON_BAD_SIZE);
  candidates[1].rows = 2;
  candidates[1].run_us = NAN;
  assert_invalid(rondo_sizes_choose(&problem, chosen, NULL), RONDO_REASON_OUT_OF_RANGE);
  candidates[1].run_us = 5;
  demand.eager_us = -1;
  assert_invalid(rondo_sizes_choose(&problem, chosen, NULL), RONDO_REASON_OUT_OF_RANGE);
  demand.eager_us = 0;
  problem.max_sizes = 0;
  assert_invalid(rondo_sizes_choose(&problem, chosen, NULL), RONDO_REASON_OUT_OF_RANGE);
}
