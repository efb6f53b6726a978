/* SPDX-License-Identifier: MIT
 * Dynamic programming over the lengths in ascending order: the least cost of all requests up to a length, if that
 * length is chosen and so many lengths are. It takes O(k n²) time for n lengths, at most MAX_CANDIDATES of them; of
 * more, an even selection can be chosen.
 */
#include "session/sizing/choose_lengths.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define COST_TOLERANCE 1.05
enum { MAX_CANDIDATES = 512 };

typedef struct plan {
  const rondo_length_demand *demands;
  size_t count, stages;
  double *rows;     /* sums of the demands before each */
  double *costs;    /* [stages][count]: of the demands up to each, with stage + 1 chosen lengths */
  size_t *previous; /* likewise: the index of the chosen length before, plus 1; 0: none */
} plan;

static int by_length(const void *a, const void *b) {
  const size_t x = ((const rondo_length_demand *)a)->length, y = ((const rondo_length_demand *)b)->length;
  return (x > y) - (x < y);
}

static size_t merge(rondo_length_demand *demands, size_t count) {
  size_t merged = 0;
  qsort(demands, count, sizeof *demands, by_length);
  for (size_t i = 1; i < count; i++) {
    if (demands[i].length == demands[merged].length)
      demands[merged].rows += demands[i].rows;
    else
      demands[++merged] = demands[i];
  }
  return merged + 1;
}

/* Keeps an even selection. The rows of a length that is left out are added to those of the next one. */
static size_t thin(rondo_length_demand *demands, size_t count) {
  if (count <= MAX_CANDIDATES) return count;
  size_t at = 0;
  for (size_t i = 0; i < MAX_CANDIDATES; i++) {
    const size_t last = (count - 1) * i / (MAX_CANDIDATES - 1);
    double rows = 0;
    for (; at <= last; at++) rows += demands[at].rows;
    demands[i] = (rondo_length_demand){.length = demands[last].length, .rows = rows};
  }
  return MAX_CANDIDATES;
}

/* Demand `at` is chosen after the one before `from`, of index from - 1. */
static double cost_of(const plan *p, size_t stage, size_t from, size_t at) {
  const double before = from == 0 ? 0 : p->costs[(stage - 1) * p->count + from - 1];
  return before + (p->rows[at + 1] - p->rows[from]) * (double)p->demands[at].length;
}

static void fill_stage(const plan *p, size_t stage) {
  for (size_t at = 0; at < p->count; at++) {
    double least = INFINITY;
    const size_t first = stage == 0 ? 0 : 1, last = stage == 0 ? 0 : at;
    for (size_t from = first; from <= last; from++) {
      const double cost = cost_of(p, stage, from, at);
      if (cost >= least) continue;
      least = cost;
      p->previous[stage * p->count + at] = from;
    }
    p->costs[stage * p->count + at] = least;
  }
}

static size_t choose_stage(const plan *p) {
  const double best = p->costs[p->stages * p->count - 1];
  size_t stage = 0;
  while (p->costs[(stage + 1) * p->count - 1] > best * COST_TOLERANCE) stage++;
  return stage;
}

static void trace_back(const plan *p, size_t stage, size_t *out) {
  size_t at = p->count - 1;
  for (size_t i = stage + 1; i-- > 0;) {
    out[i] = p->demands[at].length;
    at = p->previous[i * p->count + at] - 1;
  }
}

static void choose(const plan *p, size_t *out, size_t *out_count) {
  p->rows[0] = 0;
  for (size_t i = 0; i < p->count; i++) p->rows[i + 1] = p->rows[i] + p->demands[i].rows;
  for (size_t stage = 0; stage < p->stages; stage++) fill_stage(p, stage);
  const size_t stage = choose_stage(p);
  trace_back(p, stage, out);
  *out_count = stage + 1;
}

rondo_status rondo_lengths_choose(const rondo_allocator *allocator, rondo_length_demand *demands, size_t count,
                                  uint32_t max_lengths, size_t out[RONDO_SESSION_MAX_LENGTHS], size_t *out_count) {
  assert(count > 0 && max_lengths > 0 && max_lengths <= RONDO_SESSION_MAX_LENGTHS);
  plan p = {.demands = demands, .count = thin(demands, merge(demands, count))};
  p.stages = p.count < max_lengths ? p.count : max_lengths;
  const size_t entries = p.count * p.stages;
  rondo_status status = rondo_allocate_items(allocator, p.count + 1, sizeof *p.rows, &p.rows);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, entries, sizeof *p.costs, &p.costs);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, entries, sizeof *p.previous, &p.previous);
  if (status == RONDO_OK) choose(&p, out, out_count);
  rondo_release(allocator, p.previous, entries, sizeof *p.previous);
  rondo_release(allocator, p.costs, entries, sizeof *p.costs);
  rondo_release(allocator, p.rows, p.count + 1, sizeof *p.rows);
  return status;
}

/* Exact lengths ---------------------------------------------------------------------------------------------------- */

static int by_positions(const void *a, const void *b) {
  const rondo_length_demand *x = a, *y = b;
  const double more = (double)y->length * y->rows - (double)x->length * x->rows;
  return more != 0 ? (more > 0) - (more < 0) : by_length(a, b);
}

static int ascending(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

size_t rondo_lengths_choose_exact(rondo_length_demand *demands, size_t count, uint32_t max_lengths,
                                  size_t out[RONDO_SESSION_MAX_LENGTHS]) {
  assert(count > 0 && max_lengths > 0 && max_lengths <= RONDO_SESSION_MAX_LENGTHS);
  const size_t others = merge(demands, count) - 1;
  const size_t chosen = others < max_lengths - 1 ? others : max_lengths - 1;
  out[chosen] = demands[others].length;
  qsort(demands, others, sizeof *demands, by_positions);
  for (size_t i = 0; i < chosen; i++) out[i] = demands[i].length;
  qsort(out, chosen, sizeof *out, ascending);
  return chosen + 1;
}
