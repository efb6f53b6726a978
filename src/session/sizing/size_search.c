/* SPDX-License-Identifier: MIT
 * The best sizes, by dynamic programming over the candidates in ascending order of rows.
 *
 * A label is a choice of sizes up to one candidate. It has the cost of the demands up to that candidate, the bytes, the
 * start-up time, and the label that it extends. Among the labels with the same number of sizes and the same largest
 * candidate, only those that no other dominates are kept; without budgets that is one.
 *
 * In a best choice, larger sizes take longer: a size that is larger but not slower would make a smaller one useless. So
 * labels are extended only by slower candidates, and the smallest chosen size that is large enough runs a demand.
 */
#include <assert.h>
#include <math.h>

#include "base/array.h"
#include "base/error.h"
#include "session/sizing/size_search.h"

#define MAX_LABELS ((size_t)1 << 22)
#define NO_LABEL UINT32_MAX

typedef struct label {
  double cost, startup;
  uint64_t bytes, shared;
  uint32_t candidate, parent;
  uint32_t sizes;
} label;

typedef RONDO_ARRAY(label) labels;

/* The labels with one number of sizes and one largest candidate. */
typedef struct span {
  uint32_t first, count;
} span;

typedef struct search {
  const rondo_sizes_input *in;
  rondo_allocator allocator;
  labels kept;
  labels fresh;      /* of the span that is being made */
  span *spans;       /* max_sizes x candidates */
  double *intervals; /* for the current candidate: see fill_intervals */
  double beyond;     /* cost of the demands above the current candidate if it is the largest size */
  label best;        /* its cost includes the demands above its largest candidate */
} search;

/* Costs ------------------------------------------------------------------------------------------------------------ */

static double times(uint64_t count, double us) { return (double)count * us; }

static double cost_with_room(const rondo_size_demand *demand, double run_us) {
  return demand->eager_us > 0 && demand->eager_us < run_us ? demand->eager_us : run_us;
}

double rondo_sizes_cost_us(const rondo_size_demand *demand, const rondo_size_candidate *largest) {
  assert(demand->rows > 0 && largest->rows > 0);
  const size_t runs = (demand->rows - 1) / largest->rows + 1;
  return cost_with_room(demand, (double)runs * largest->run_us);
}

/* intervals[i] is the cost of running, by candidate `at`, the demands above candidate i - 1 (i = 0: all) and up to
 * `at`. */
static void fill_intervals(search *s, uint32_t at) {
  const rondo_sizes_input *in = s->in;
  size_t demand = in->up_to[at];
  double cost = 0;
  for (uint32_t i = at + 1; i-- > 0;) {
    const size_t begin = i == 0 ? 0 : in->up_to[i - 1];
    while (demand > begin) {
      const rondo_size_demand *d = &in->demands[--demand];
      cost += times(d->requests, cost_with_room(d, in->candidates[at].run_us));
    }
    s->intervals[i] = cost;
  }
}

static void fill_beyond(search *s, uint32_t largest) {
  const rondo_sizes_input *in = s->in;
  s->beyond = 0;
  for (size_t i = in->up_to[largest]; i < in->demand_count; i++)
    s->beyond += times(in->demands[i].requests, rondo_sizes_cost_us(&in->demands[i], &in->candidates[largest]));
}

/* Labels ----------------------------------------------------------------------------------------------------------- */

static bool fits(const search *s, const label *l) {
  const rondo_sizes_input *in = s->in;
  const bool bytes =
      in->budget_bytes == 0 || (l->bytes <= in->budget_bytes && l->shared <= in->budget_bytes - l->bytes);
  return bytes && (in->budget_startup_us <= 0 || l->startup <= in->budget_startup_us);
}

/* Whether `a` is at least as good as `b` by every criterion. */
static bool dominates(const search *s, const label *a, const label *b) {
  if (a->cost > b->cost) return false;
  if (s->in->budget_bytes > 0 && (a->bytes > b->bytes || a->shared > b->shared)) return false;
  return s->in->budget_startup_us <= 0 || a->startup <= b->startup;
}

static rondo_status add_fresh(search *s, const label *l) {
  if (!fits(s, l)) return RONDO_OK;
  size_t kept = 0;
  for (size_t i = 0; i < s->fresh.count; i++) {
    if (dominates(s, &s->fresh.items[i], l)) return RONDO_OK;
  }
  for (size_t i = 0; i < s->fresh.count; i++) {
    if (!dominates(s, l, &s->fresh.items[i])) s->fresh.items[kept++] = s->fresh.items[i];
  }
  s->fresh.count = kept;
  return rondo_array_push(&s->allocator, &s->fresh, l);
}

/* The label `from` with candidate `at` added; the demands between the two cost `cost`. */
static label grow(const search *s, const label *from, uint32_t parent, uint32_t at, double cost) {
  const rondo_size_candidate *c = &s->in->candidates[at];
  return (label){.cost = (from == NULL ? 0 : from->cost) + cost,
                 .startup = (from == NULL ? 0 : from->startup) + c->startup_us,
                 .bytes = (from == NULL ? 0 : from->bytes) + c->bytes,
                 .shared = from == NULL || from->shared < c->shared_bytes ? c->shared_bytes : from->shared,
                 .candidate = at,
                 .parent = parent,
                 .sizes = (from == NULL ? 0 : from->sizes) + 1};
}

static rondo_status grow_span(search *s, span from, uint32_t at) {
  for (uint32_t i = from.first; i < from.first + from.count; i++) {
    const label *l = &s->kept.items[i];
    const label grown = grow(s, l, i, at, s->intervals[l->candidate + 1]);
    RONDO_TRY(add_fresh(s, &grown));
  }
  return RONDO_OK;
}

static void note_best(search *s, const label *l) {
  label whole = *l;
  whole.cost += s->beyond;
  if (whole.cost < s->best.cost || (whole.cost <= s->best.cost && whole.sizes < s->best.sizes)) s->best = whole;
}

static rondo_status keep_fresh(search *s, span *out) {
  assert(s->kept.count <= UINT32_MAX);
  *out = (span){.first = (uint32_t)s->kept.count, .count = (uint32_t)s->fresh.count};
  if (s->kept.count + s->fresh.count > MAX_LABELS)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_sizes_choose: the budgets leave more than %zu choices to compare: give fewer candidates "
                      "(%zu) or sizes (%zu)",
                      MAX_LABELS, s->in->candidate_count, s->in->max_sizes);
  for (size_t i = 0; i < s->fresh.count; i++) {
    RONDO_TRY(rondo_array_push(&s->allocator, &s->kept, &s->fresh.items[i]));
    note_best(s, &s->fresh.items[i]);
  }
  s->fresh.count = 0;
  return RONDO_OK;
}

/* Makes all labels whose largest candidate is `at`, with one size, two sizes, and so on. */
static rondo_status visit(search *s, uint32_t at) {
  const rondo_sizes_input *in = s->in;
  const size_t n = in->candidate_count;
  assert(at < n && s->fresh.count == 0);
  fill_intervals(s, at);
  fill_beyond(s, at);
  for (size_t sizes = 0; sizes < in->max_sizes && sizes <= at; sizes++) {
    if (sizes == 0) {
      const label alone = grow(s, NULL, NO_LABEL, at, s->intervals[0]);
      RONDO_TRY(add_fresh(s, &alone));
    }
    for (uint32_t i = 0; sizes > 0 && i < at; i++) {
      if (in->candidates[i].run_us >= in->candidates[at].run_us) continue;
      RONDO_TRY(grow_span(s, s->spans[(sizes - 1) * n + i], at));
    }
    RONDO_TRY(keep_fresh(s, &s->spans[sizes * n + at]));
  }
  return RONDO_OK;
}

/* Entry point ------------------------------------------------------------------------------------------------------ */

/* The cost of choosing nothing; infinite if a demand cannot run eagerly. */
static double cost_of_none(const rondo_sizes_input *in) {
  double cost = 0;
  for (size_t i = 0; i < in->demand_count; i++) {
    const rondo_size_demand *d = &in->demands[i];
    if (d->requests > 0) cost += d->eager_us > 0 ? times(d->requests, d->eager_us) : INFINITY;
  }
  return cost;
}

static size_t write_choice(const search *s, size_t *chosen) {
  size_t count = 0;
  for (const label *l = &s->best;; l = &s->kept.items[l->parent]) {
    if (l->candidate != NO_LABEL) chosen[count++] = l->candidate;
    if (l->candidate == NO_LABEL || l->parent == NO_LABEL) break;
  }
  for (size_t i = 0; i < count / 2; i++) {
    const size_t kept = chosen[i];
    chosen[i] = chosen[count - 1 - i];
    chosen[count - 1 - i] = kept;
  }
  return count;
}

static rondo_status run(search *s, size_t *chosen, size_t *out_count) {
  const size_t n = s->in->candidate_count;
  RONDO_TRY(rondo_allocate_items(&s->allocator, s->in->max_sizes * n, sizeof *s->spans, &s->spans));
  RONDO_TRY(rondo_allocate_items(&s->allocator, n + 1, sizeof *s->intervals, &s->intervals));
  for (uint32_t at = 0; at < n; at++) RONDO_TRY(visit(s, at));
  if (isinf(s->best.cost))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_sizes_choose: none of %zu candidates fits the budgets, and a demand has no time for eager "
                      "runs: raise the budgets, or give smaller candidates",
                      n);
  *out_count = write_choice(s, chosen);
  return RONDO_OK;
}

rondo_status rondo_sizes_search(const rondo_sizes_input *in, size_t *chosen, size_t *out_count) {
  search s = {.in = in, .allocator = rondo_allocator_default()};
  s.best = (label){.cost = cost_of_none(in), .candidate = NO_LABEL, .parent = NO_LABEL};
  const rondo_status status = run(&s, chosen, out_count);
  rondo_array_free(&s.allocator, &s.kept);
  rondo_array_free(&s.allocator, &s.fresh);
  rondo_release(&s.allocator, s.spans, in->max_sizes * in->candidate_count, sizeof *s.spans);
  rondo_release(&s.allocator, s.intervals, in->candidate_count + 1, sizeof *s.intervals);
  return status;
}
