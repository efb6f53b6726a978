/* SPDX-License-Identifier: MIT
 * The public functions of planning. They check the problem and the options, set the default time budget, and call the
 * planner for intervals or the one for partial orders. Debug builds check each plan before they return it. A plan is
 * immutable once made.
 */
#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/versioned_struct.h"
#include "plan/partial_order/order_plan.h"
#include "plan/plan_internal.h"

struct rondo_plan {
  rondo_allocator allocator;
  size_t *offsets; /* info.count; NULL when that is 0 */
  rondo_plan_info info;
};

static bool is_interval_problem(const rondo_plan_problem *problem) {
  return problem->order == NULL && problem->branch_count == 0;
}

static rondo_status check_item(const rondo_plan_item *item, size_t index, size_t offset) {
  if (item->alignment > 1 && offset % item->alignment != 0) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MISALIGNED,
                      "item %zu of a plan is at offset %zu, which is not aligned to %zu", index, offset,
                      item->alignment);
  }
  size_t end = 0;
  if (rondo_checked_add(offset, item->bytes, &end)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                    "item %zu of a plan (%zu bytes at %zu) ends past %zu bits", index, item->bytes, offset,
                    8 * sizeof(size_t));
}

static rondo_status check(const rondo_allocator *allocator, const rondo_plan_problem *problem, const size_t *offsets) {
  for (size_t i = 0; i < problem->count; i++) RONDO_TRY(check_item(&problem->items[i], i, offsets[i]));
  return is_interval_problem(problem) ? rondo_interval_check(allocator, problem, offsets)
                                      : rondo_order_check(allocator, problem, offsets);
}

static void init_info(const rondo_plan_problem *problem, rondo_plan_info *info) {
  *info = (rondo_plan_info){.count = problem->count, .alignment = 1, .method = "none"};
  for (size_t i = 0; i < problem->count; i++) {
    info->sum += problem->items[i].bytes;
    if (problem->items[i].alignment > info->alignment) info->alignment = problem->items[i].alignment;
  }
}

static rondo_status check_plan(const rondo_plan_problem *problem, const rondo_plan *plan) {
#ifdef NDEBUG
  (void)problem;
  (void)plan;
  return RONDO_OK;
#else
  const rondo_status status = check(&plan->allocator, problem, plan->offsets);
  assert(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
  assert(plan->info.lower_bound <= plan->info.peak);
  return status;
#endif
}

static rondo_status make_offsets(const rondo_plan_problem *problem, const rondo_plan_options *options,
                                 rondo_plan *plan) {
  init_info(problem, &plan->info);
  if (problem->count == 0) {
    plan->info.optimal = true;
    return RONDO_OK;
  }
  RONDO_TRY(rondo_allocate_items(&plan->allocator, problem->count, sizeof *plan->offsets, &plan->offsets));
  RONDO_TRY(is_interval_problem(problem)
                ? rondo_interval_plan(&plan->allocator, problem, options, plan->offsets, &plan->info)
                : rondo_order_plan(&plan->allocator, problem, options, plan->offsets, &plan->info));
  return check_plan(problem, plan);
}

/* Copies and checks the options, and resolves defaults: a time budget of 5 ms, within which a search ends at 0.5 %
 * above the bound; with fast_only, no budget. */
static rondo_status read_options(const rondo_plan_options *given, rondo_plan_options *out) {
  RONDO_TRY(rondo_versioned_read("rondo_plan_options", given, out, sizeof *out));
  if (out->gap != 0 && !(out->gap >= 1 && isfinite(out->gap))) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_plan_options: gap is %g; set a factor of at least 1, or 0 for the default", out->gap);
  }
  if (out->threads > RONDO_PLAN_MAX_THREADS) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_plan_options: threads is %u: use at most %u", out->threads, RONDO_PLAN_MAX_THREADS);
  }
  const bool by_default = out->budget_ms == 0 && out->budget_steps == 0 && !out->fast_only;
  if (out->gap == 0) out->gap = by_default ? 1.005 : 1;
  if (out->threads == 0) out->threads = 1;
  if (by_default) out->budget_ms = 5;
  if (out->fast_only) out->budget_ms = 0;
  if (out->fast_only) out->budget_steps = 0;
  return RONDO_OK;
}

rondo_status rondo_plan_make(const rondo_plan_problem *given, const rondo_plan_options *given_options,
                             rondo_plan **out_plan) {
  const uint64_t start = rondo_clock_ns();
  if (out_plan == NULL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "rondo_plan_make: out_plan is NULL");
  }
  *out_plan = NULL;
  rondo_plan_problem problem;
  rondo_plan_options options;
  rondo_allocator allocator;
  RONDO_TRY(read_options(given_options, &options));
  RONDO_TRY(rondo_allocator_resolve(options.allocator, &allocator));
  RONDO_TRY(rondo_plan_problem_read(given, &problem));
  rondo_plan *plan = NULL;
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *plan, &plan));
  plan->allocator = allocator;
  const rondo_status status = make_offsets(&problem, &options, plan);
  if (status != RONDO_OK) {
    rondo_plan_destroy(plan);
    return status;
  }
  plan->info.nanoseconds = rondo_clock_ns() - start;
  *out_plan = plan;
  return RONDO_OK;
}

void rondo_plan_destroy(rondo_plan *plan) {
  if (plan == NULL) return;
  const rondo_allocator allocator = plan->allocator;
  rondo_release(&allocator, plan->offsets, plan->info.count, sizeof *plan->offsets);
  rondo_release(&allocator, plan, 1, sizeof *plan);
}

const size_t *rondo_plan_offsets(const rondo_plan *plan) { return plan == NULL ? NULL : plan->offsets; }

rondo_status rondo_plan_get_info(const rondo_plan *plan, rondo_plan_info *out_info) {
  if (plan == NULL || out_info == NULL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "rondo_plan_get_info: %s is NULL",
                      plan == NULL ? "plan" : "out_info");
  }
  return rondo_versioned_write("rondo_plan_info", &plan->info, out_info, sizeof *out_info);
}

rondo_status rondo_plan_check(const rondo_allocator *given, const rondo_plan_problem *given_problem,
                              const size_t *offsets) {
  rondo_plan_problem problem;
  rondo_allocator allocator;
  RONDO_TRY(rondo_allocator_resolve(given, &allocator));
  RONDO_TRY(rondo_plan_problem_read(given_problem, &problem));
  if (problem.count == 0) return RONDO_OK;
  if (offsets == NULL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "rondo_plan_check: offsets is NULL, for %zu items", problem.count);
  }
  return check(&allocator, &problem, offsets);
}
