/* SPDX-License-Identifier: MIT
 * Requests are counted as if each ran alone: how many run together depends on the load, and sizes for that cost little
 * for requests alone. Between two recorded sizes, times are interpolated, and beyond the largest one they grow as
 * between the last two. Below the smallest one, and of one alone, half of the time is taken to be the same for any
 * rows.
 */
#include "triton/sizes/size_regret.h"

#include <assert.h>
#include <stdlib.h>

static int by_rows(const void *a, const void *b) {
  const rondo_triton_size_time *x = a, *y = b;
  return (x->rows > y->rows) - (x->rows < y->rows);
}

static double time_of(const rondo_triton_size_time *sizes, size_t count, size_t rows) {
  const rondo_triton_size_time *first = &sizes[0];
  size_t i = 1;
  if (rows <= first->rows || count == 1) return first->us * (1 + (double)rows / (double)first->rows) / 2;
  while (sizes[i].rows < rows && i + 1 < count) i++;
  const rondo_triton_size_time *a = &sizes[i - 1], *b = &sizes[i];
  const double row_us = (b->us - a->us) / (double)(b->rows - a->rows);
  return a->us + (row_us > 0 ? row_us : 0) * (double)(rows - a->rows);
}

static rondo_status mean_cost(const rondo_size_candidate *candidates, size_t count, const rondo_size_demand *demands,
                              size_t demand_count, uint32_t max_sizes, double *out) {
  size_t chosen[RONDO_TRITON_MOST_DEMANDS];
  rondo_sizes_choice choice = {.struct_size = sizeof choice};
  const rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT, .max_sizes = max_sizes, .candidates = candidates,
                                       .candidate_count = count, .demands = demands,     .demand_count = demand_count};
  assert(max_sizes <= RONDO_TRITON_MOST_DEMANDS);
  RONDO_TRY(rondo_sizes_choose(&problem, chosen, &choice));
  *out = choice.mean_us;
  return RONDO_OK;
}

rondo_status rondo_triton_size_regret(rondo_triton_size_time *sizes, size_t count, const rondo_size_demand *demands,
                                      size_t demand_count, uint32_t max_sizes, double *out) {
  rondo_size_candidate candidates[RONDO_TRITON_MOST_DEMANDS];
  double is_us, best_us;
  *out = 0;
  if (count == 0 || demand_count == 0) return RONDO_OK;
  assert(count <= RONDO_TRITON_MOST_DEMANDS && demand_count <= RONDO_TRITON_MOST_DEMANDS);
  qsort(sizes, count, sizeof *sizes, by_rows);
  const double row_us = sizes[count - 1].us / (double)sizes[count - 1].rows;
  for (size_t i = 0; i < count; i++)
    candidates[i] =
        (rondo_size_candidate){.rows = sizes[i].rows, .run_us = sizes[i].us + row_us * (double)sizes[i].rows};
  RONDO_TRY(mean_cost(candidates, count, demands, demand_count, (uint32_t)count, &is_us));
  for (size_t i = 0; i < demand_count; i++)
    candidates[i] = (rondo_size_candidate){
        .rows = demands[i].rows, .run_us = time_of(sizes, count, demands[i].rows) + row_us * (double)demands[i].rows};
  RONDO_TRY(mean_cost(candidates, demand_count, demands, demand_count, max_sizes, &best_us));
  *out = is_us > best_us ? is_us / best_us - 1 : 0;
  return RONDO_OK;
}
