/* SPDX-License-Identifier: MIT
 * The first plan prefers items that are large and long-lived. Meanwhile a second thread, if there is one, finds the
 * bound. If the budget is time, that thread then starts a descent from nothing, and the first thread one from the first
 * plan. If the budget is in steps, or on the fast path, a single thread descends after the bound is known, so that the
 * plan does not depend on anything else.
 */
#include "plan/partial_order/order_search.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "plan/interval/earlier_plan.h"
#include "plan/interval/placement_rules.h"
#include "plan/partial_order/order_descent.h"
#include "plan/partial_order/order_place.h"

#define BOUND_WORK_FAST 256 /* visits of each node and edge */
#define BOUND_WORK 8192
#define MAX_BOUND_WORK (UINT64_C(1) << 26) /* if the budget is in steps */
#define FAST_STEPS 4                       /* steps of the repair on the fast path: items divided by this */
#define MAX_DESCENTS 8

typedef struct searcher {
  rondo_order_search *search;
  rondo_scratch scratch;
  rondo_order_best best;
  rondo_order_index index;
  rondo_closure *closure;
  size_t bytes_found; /* by the closure */
  rondo_order_descent descents[MAX_DESCENTS];
  uint32_t count;                     /* of descents made */
  rondo_thread threads[MAX_DESCENTS]; /* thread 1 finds the bound first */
  bool runs[MAX_DESCENTS];
} searcher;

/* The first plan --------------------------------------------------------------------------------------------------- */

/* Ranks by bytes times the number of nodes that the lifetime may overlap, then by bytes, in descending order. */
static rondo_status rank(rondo_scratch *scratch, const rondo_order_search *search, uint32_t *ranks) {
  const rondo_lifetimes *lifetimes = search->lifetimes;
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_scratch_take(scratch, lifetimes->count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < lifetimes->count; i++) {
    const uint32_t item = lifetimes->items[i];
    const uint64_t bytes = rondo_logarithm(lifetimes->problem->items[item].bytes);
    const uint64_t area = bytes + rondo_logarithm(rondo_lifetimes_span(lifetimes, &lifetimes->pieces[item]));
    entries[i] = (rondo_sort_entry){~(area << 32 | bytes), item};
  }
  if (lifetimes->count > 1) rondo_sort_entries(entries, entries + lifetimes->count, lifetimes->count);
  for (uint32_t i = 0; i < lifetimes->count; i++) ranks[entries[i].value] = i;
  return RONDO_OK;
}

static rondo_status place_with(rondo_scratch *scratch, const rondo_order_search *search, const rondo_order_index *index,
                               rondo_order_best *best) {
  const size_t count = search->lifetimes->problem->count;
  rondo_order_placer placer;
  uint32_t *ranks = NULL;
  size_t *offsets = NULL;
  size_t peak = 0;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *ranks, &ranks));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *offsets, &offsets));
  RONDO_TRY(rondo_order_placer_make(scratch, index, &placer));
  RONDO_TRY(rank(scratch, search, ranks));
  RONDO_TRY(rondo_order_placer_run(&placer, ranks, offsets, &peak));
  rondo_order_best_offer(best, offsets, peak, "order: area");
  return RONDO_OK;
}

static rondo_status place_first(const rondo_order_search *search, const rondo_order_index *index,
                                rondo_order_best *best) {
  rondo_scratch scratch = {.allocator = search->allocator};
  const rondo_status status = place_with(&scratch, search, index, best);
  rondo_scratch_free(&scratch);
  return status;
}

/* In the order of an earlier plan's offsets. */
static rondo_status stack_with(rondo_scratch *scratch, const rondo_order_search *search, const rondo_order_index *index,
                               rondo_order_best *best) {
  const size_t count = search->lifetimes->problem->count;
  rondo_order_placer placer;
  uint32_t *ranks = NULL;
  size_t *offsets = NULL, peak;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *ranks, &ranks));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *offsets, &offsets));
  RONDO_TRY(rondo_order_placer_make(scratch, index, &placer));
  RONDO_TRY(rondo_earlier_ranks(scratch, search->options->start, count, ranks));
  RONDO_TRY(rondo_order_placer_stack(scratch, &placer, ranks, offsets, &peak));
  rondo_order_best_offer(best, offsets, peak, "earlier plan");
  return RONDO_OK;
}

static rondo_status try_earlier(const rondo_order_search *search, const rondo_order_index *index,
                                rondo_order_best *best) {
  rondo_scratch scratch = {.allocator = search->allocator};
  if (search->options->start == NULL || search->lifetimes->problem->obstacle_count > 0) return RONDO_OK;
  const rondo_status status = stack_with(&scratch, search, index, best);
  rondo_scratch_free(&scratch);
  return status;
}

/* The bound -------------------------------------------------------------------------------------------------------- */

static bool is_timed(const rondo_order_search *search) { return search->deadline_ns != UINT64_MAX; }

static void find_bound(searcher *s, uint64_t deadline_ns) {
  const rondo_order_search *search = s->search;
  const rondo_plan_order *order = search->lifetimes->problem->order;
  const uint64_t size = (uint64_t)order->node_count + order->successor_start[order->node_count];
  uint64_t work = size * (search->options->fast_only ? BOUND_WORK_FAST : BOUND_WORK);
  bool exact = false;
  if (!is_timed(search) && work > MAX_BOUND_WORK) work = MAX_BOUND_WORK;
  s->bytes_found = rondo_closure_run(s->closure, search->bound->taken, work, deadline_ns, &exact);
}

/* Finds the bound on this thread, in at most half of the time left. */
static void find_bound_here(searcher *s) {
  const uint64_t now = rondo_clock_ns();
  const uint64_t deadline = s->search->deadline_ns;
  if (is_timed(s->search) && now >= deadline) return;
  find_bound(s, is_timed(s->search) ? now + (deadline - now) / 2 : deadline);
  rondo_order_best_raise_bound(&s->best, s->bytes_found);
}

/* Threads ---------------------------------------------------------------------------------------------------------- */

static void *work_second(void *argument) {
  searcher *s = argument;
  find_bound(s, s->search->deadline_ns);
  if (!is_timed(s->search)) return NULL;
  rondo_order_best_raise_bound(&s->best, s->bytes_found);
  rondo_order_descent_run(&s->descents[1]);
  return NULL;
}

static void *work(void *argument) {
  rondo_order_descent_run(argument);
  return NULL;
}

/* A thread that cannot be started is left out. */
static void start_threads(searcher *s) {
  if (s->search->options->threads < 2) return;
  s->runs[1] = rondo_thread_start(&s->threads[1], "rondo-plan", work_second, s) == RONDO_OK;
  for (uint32_t i = 2; i < s->count; i++) {
    s->runs[i] = rondo_thread_start(&s->threads[i], "rondo-plan", work, &s->descents[i]) == RONDO_OK;
  }
}

static void join_threads(searcher *s) {
  for (uint32_t i = 1; i < MAX_DESCENTS; i++) {
    if (s->runs[i]) rondo_thread_join(s->threads[i]);
    s->runs[i] = false;
  }
}

static uint64_t max_steps(const rondo_order_search *search) {
  const rondo_plan_options *options = search->options;
  if (options->fast_only) return search->lifetimes->count / FAST_STEPS;
  return options->budget_steps > 0 ? options->budget_steps : UINT64_MAX;
}

static rondo_status make_descents(searcher *s) {
  const rondo_order_search *search = s->search;
  const uint32_t threads = search->options->threads < MAX_DESCENTS ? search->options->threads : MAX_DESCENTS;
  const uint32_t count = is_timed(search) ? threads : 1;
  for (; s->count < count; s->count++) {
    rondo_order_descent *descent = &s->descents[s->count];
    RONDO_TRY(rondo_order_descent_make(&s->scratch, &s->index, s->count, descent));
    descent->best = &s->best;
    descent->deadline_ns = search->deadline_ns;
    descent->max_steps = max_steps(search);
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static bool is_over(searcher *s) {
  return atomic_load(&s->best.is_over) || (is_timed(s->search) && rondo_clock_ns() >= s->search->deadline_ns);
}

/* An earlier plan may be near enough to the bound, so without a second thread the bound is then found first. */
static bool finds_bound_first(const searcher *s) { return s->best.peak != SIZE_MAX && s->search->options->threads < 2; }

static rondo_status search_all(searcher *s) {
  const rondo_lifetimes *lifetimes = s->search->lifetimes;
  RONDO_TRY(rondo_order_index_make(&s->scratch, lifetimes, &s->index));
  RONDO_TRY(try_earlier(s->search, &s->index, &s->best));
  if (atomic_load(&s->best.is_over)) return RONDO_OK;
  RONDO_TRY(rondo_closure_make(&s->scratch, lifetimes->problem, lifetimes->branches, &s->closure));
  const bool bound_first = finds_bound_first(s);
  if (bound_first) find_bound_here(s);
  if (bound_first && is_over(s)) return RONDO_OK; /* otherwise there is no plan yet */
  RONDO_TRY(make_descents(s));
  start_threads(s);
  RONDO_TRY(place_first(s->search, &s->index, &s->best));
  if (is_over(s)) return RONDO_OK;
  if (!s->runs[1]) {
    if (!bound_first) find_bound_here(s);
  } else if (!is_timed(s->search)) {
    join_threads(s);
    rondo_order_best_raise_bound(&s->best, s->bytes_found);
  }
  rondo_order_descent_run(&s->descents[0]);
  return RONDO_OK;
}

static void finish(searcher *s) {
  rondo_order_search *search = s->search;
  atomic_store(&s->best.is_over, true);
  if (s->closure != NULL) rondo_closure_stop(s->closure);
  join_threads(s);
  search->info->peak = s->best.peak;
  search->info->method = s->best.method;
  search->bound->bytes = s->best.bound;
  for (uint32_t i = 0; i < s->count; i++) search->info->steps += rondo_order_descent_steps(&s->descents[i]);
  rondo_scratch_free(&s->scratch);
}

rondo_status rondo_order_search_run(rondo_order_search *search) {
  const rondo_lifetimes *lifetimes = search->lifetimes;
  searcher s = {.search = search,
                .scratch.allocator = search->allocator,
                .best = {.lock = PTHREAD_MUTEX_INITIALIZER,
                         .options = search->options,
                         .offsets = search->offsets,
                         .count = lifetimes->problem->count,
                         .peak = SIZE_MAX,
                         .bound = search->bound->bytes}};
  const rondo_status status = search_all(&s);
  finish(&s);
  return status;
}
