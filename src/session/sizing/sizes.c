/* SPDX-License-Identifier: MIT
 * rondo_sizes_choose: checks and sorts the problem, and describes the result for the demands. Pure; thread-safe.
 */
#include <math.h>
#include <stdlib.h>

#include "base/allocation.h"
#include "base/error.h"
#include "base/versioned_struct.h"
#include "session/sizing/size_search.h"

#define MAX_ITEMS ((size_t)1 << 20)

static const char call[] = "rondo_sizes_choose";

/* A candidate and its index in the caller's list. */
typedef struct indexed {
  rondo_size_candidate candidate;
  size_t index;
} indexed;

typedef struct sorted {
  rondo_allocator allocator;
  size_t candidate_count, demand_count;
  indexed *indices;
  rondo_size_candidate *candidates;
  rondo_size_demand *demands;
  size_t *up_to;
} sorted;

/* Checks ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail_item(rondo_reason reason, const char *what, size_t index, const char *wrong) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: %s %zu %s", call, what, index, wrong);
}

static rondo_status check_candidates(const rondo_sizes_problem *p) {
  for (size_t i = 0; i < p->candidate_count; i++) {
    const rondo_size_candidate *c = &p->candidates[i];
    if (c->rows == 0) return fail_item(RONDO_REASON_BAD_SIZE, "candidate", i, "has 0 rows: give at least 1");
    if (!isfinite(c->run_us) || c->run_us <= 0 || !isfinite(c->startup_us) || c->startup_us < 0)
      return fail_item(RONDO_REASON_OUT_OF_RANGE, "candidate", i,
                       "has a time that is not a positive number, or a negative start-up time");
  }
  return RONDO_OK;
}

static rondo_status check_demands(const rondo_sizes_problem *p) {
  for (size_t i = 0; i < p->demand_count; i++) {
    const rondo_size_demand *d = &p->demands[i];
    if (d->rows == 0) return fail_item(RONDO_REASON_BAD_SIZE, "demand", i, "has 0 rows: give at least 1");
    if (!isfinite(d->eager_us) || d->eager_us < 0)
      return fail_item(RONDO_REASON_OUT_OF_RANGE, "demand", i, "has a negative or infinite eager time");
  }
  return RONDO_OK;
}

static rondo_status check(const rondo_sizes_problem *p) {
  RONDO_TRY(rondo_require(call, "candidates", p->candidates));
  RONDO_TRY(rondo_require(call, "demands", p->demands));
  if (p->max_sizes == 0 || p->candidate_count == 0 || p->candidate_count > MAX_ITEMS || p->demand_count > MAX_ITEMS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: %u sizes of %zu candidates for %zu demands: give at least one size and one candidate, and "
                      "at most %zu candidates and demands",
                      call, p->max_sizes, p->candidate_count, p->demand_count, MAX_ITEMS);
  RONDO_TRY(check_candidates(p));
  return check_demands(p);
}

/* Sorting ---------------------------------------------------------------------------------------------------------- */

static int by_candidate(const void *a, const void *b) {
  const size_t x = ((const indexed *)a)->candidate.rows, y = ((const indexed *)b)->candidate.rows;
  return (x > y) - (x < y);
}

static int by_demand(const void *a, const void *b) {
  const size_t x = ((const rondo_size_demand *)a)->rows, y = ((const rondo_size_demand *)b)->rows;
  return (x > y) - (x < y);
}

static rondo_status sort_candidates(const rondo_sizes_problem *p, sorted *s) {
  for (size_t i = 0; i < p->candidate_count; i++) s->indices[i] = (indexed){p->candidates[i], i};
  qsort(s->indices, p->candidate_count, sizeof *s->indices, by_candidate);
  for (size_t i = 0; i < p->candidate_count; i++) {
    s->candidates[i] = s->indices[i].candidate;
    if (i > 0 && s->candidates[i].rows == s->candidates[i - 1].rows)
      return fail_item(RONDO_REASON_DUPLICATE_NAME, "candidate", s->indices[i].index,
                       "has the same rows as another candidate: give each number of rows once");
  }
  return RONDO_OK;
}

static void sort_demands(const rondo_sizes_problem *p, sorted *s) {
  for (size_t i = 0; i < p->demand_count; i++) s->demands[i] = p->demands[i];
  if (p->demand_count > 0) qsort(s->demands, p->demand_count, sizeof *s->demands, by_demand);
  size_t demand = 0;
  for (size_t i = 0; i < p->candidate_count; i++) {
    while (demand < p->demand_count && s->demands[demand].rows <= s->candidates[i].rows) demand++;
    s->up_to[i] = demand;
  }
}

/* Describing a choice ---------------------------------------------------------------------------------------------- */

typedef struct tally {
  rondo_sizes_choice choice;
  double cost, bound;
  double rows, run_rows; /* of requests that recordings run; the same with padding */
} tally;

static double lowest_cost(const rondo_sizes_input *in, const rondo_size_demand *d) {
  double least = INFINITY;
  for (size_t i = 0; i < in->candidate_count; i++) least = fmin(least, rondo_sizes_cost_us(d, &in->candidates[i]));
  return least;
}

static void count_recorded(tally *t, const rondo_size_demand *d, size_t runs, size_t rows) {
  t->rows += (double)d->requests * (double)d->rows;
  t->run_rows += (double)d->requests * (double)runs * (double)rows;
  if (runs > 1) t->choice.split += d->requests;
}

static void count_demand(tally *t, const rondo_sizes_input *in, const size_t *chosen, size_t count,
                         const rondo_size_demand *d) {
  size_t at = 0;
  while (at < count && in->candidates[chosen[at]].rows < d->rows) at++;
  const rondo_size_candidate *c = count == 0 ? NULL : &in->candidates[chosen[at < count ? at : count - 1]];
  const double run_us = c == NULL ? INFINITY : at < count ? c->run_us : rondo_sizes_cost_us(d, c);
  const size_t runs = c == NULL ? 0 : (d->rows - 1) / c->rows + 1;
  const bool is_eager = d->eager_us > 0 && (c == NULL || d->eager_us < (double)runs * c->run_us);
  t->cost += (double)d->requests * (is_eager ? d->eager_us : run_us);
  t->bound += (double)d->requests * lowest_cost(in, d);
  t->choice.requests += d->requests;
  if (is_eager)
    t->choice.eager += d->requests;
  else
    count_recorded(t, d, runs, c == NULL ? 0 : c->rows);
}

static rondo_sizes_choice describe(const rondo_sizes_input *in, const size_t *chosen, size_t count) {
  tally t = {.choice = {.count = (uint32_t)count}};
  uint64_t shared = 0;
  for (size_t i = 0; i < count; i++) {
    const rondo_size_candidate *c = &in->candidates[chosen[i]];
    t.choice.bytes += c->bytes;
    t.choice.startup_us += c->startup_us;
    if (c->shared_bytes > shared) shared = c->shared_bytes;
  }
  t.choice.bytes += shared;
  for (size_t i = 0; i < in->demand_count; i++)
    if (in->demands[i].requests > 0) count_demand(&t, in, chosen, count, &in->demands[i]);
  const double requests = t.choice.requests == 0 ? 1 : (double)t.choice.requests;
  t.choice.mean_us = t.cost / requests;
  t.choice.bound_us = t.bound / requests;
  t.choice.padding = t.run_rows > 0 ? 1 - t.rows / t.run_rows : 0;
  return t.choice;
}

/* Entry point ------------------------------------------------------------------------------------------------------ */

static rondo_status allocate(sorted *s) {
  RONDO_TRY(rondo_allocate_items(&s->allocator, s->candidate_count, sizeof *s->indices, &s->indices));
  RONDO_TRY(rondo_allocate_items(&s->allocator, s->candidate_count, sizeof *s->candidates, &s->candidates));
  RONDO_TRY(rondo_allocate_items(&s->allocator, s->demand_count, sizeof *s->demands, &s->demands));
  return rondo_allocate_items(&s->allocator, s->candidate_count, sizeof *s->up_to, &s->up_to);
}

static void release(sorted *s) {
  rondo_release(&s->allocator, s->indices, s->candidate_count, sizeof *s->indices);
  rondo_release(&s->allocator, s->candidates, s->candidate_count, sizeof *s->candidates);
  rondo_release(&s->allocator, s->demands, s->demand_count, sizeof *s->demands);
  rondo_release(&s->allocator, s->up_to, s->candidate_count, sizeof *s->up_to);
}

static rondo_status choose(const rondo_sizes_problem *p, sorted *s, size_t *chosen, rondo_sizes_choice *out) {
  RONDO_TRY(allocate(s));
  RONDO_TRY(sort_candidates(p, s));
  sort_demands(p, s);
  const rondo_sizes_input in = {.candidates = s->candidates,
                                .candidate_count = p->candidate_count,
                                .demands = s->demands,
                                .demand_count = p->demand_count,
                                .up_to = s->up_to,
                                .max_sizes = p->max_sizes < p->candidate_count ? p->max_sizes : p->candidate_count,
                                .budget_bytes = p->budget_bytes,
                                .budget_startup_us = p->budget_startup_us};
  size_t count = 0;
  RONDO_TRY(rondo_sizes_search(&in, chosen, &count));
  *out = describe(&in, chosen, count);
  for (size_t i = 0; i < count; i++) chosen[i] = s->indices[chosen[i]].index;
  return RONDO_OK;
}

rondo_status rondo_sizes_choose(const rondo_sizes_problem *problem, size_t *chosen, rondo_sizes_choice *out_choice) {
  rondo_sizes_problem p;
  rondo_sizes_choice choice = {0};
  RONDO_TRY(rondo_require(call, "problem", problem));
  RONDO_TRY(rondo_require(call, "chosen", chosen));
  RONDO_TRY(rondo_versioned_read("rondo_sizes_problem", problem, &p, sizeof p));
  RONDO_TRY(check(&p));
  RONDO_TRY(rondo_versioned_check("rondo_sizes_choice", out_choice, sizeof choice));
  sorted s = {
      .allocator = rondo_allocator_default(), .candidate_count = p.candidate_count, .demand_count = p.demand_count};
  const rondo_status status = choose(&p, &s, chosen, &choice);
  release(&s);
  RONDO_TRY(status);
  return out_choice == NULL ? RONDO_OK
                            : rondo_versioned_write("rondo_sizes_choice", &choice, out_choice, sizeof choice);
}
