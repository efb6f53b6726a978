/* SPDX-License-Identifier: MIT
 * Sizes chosen for a history of requests: some are recorded on the first lane and measured, the costs of others lie on
 * lines between them, the best are recorded on all lanes; and what is measured when all graphs stand. The model is
 * changing all the while.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "exec/front.h"
#include "session/session_internal.h"

enum { MOST_PROBES = 12, MOST_CANDIDATES = 512, MOST_WITH_BUDGET = 48 };

/* What all graphs cost --------------------------------------------------------------------------------------------- */

static rondo_status measure_graphs(rondo_session_model *model) {
  double run_us[RONDO_SESSION_MAX_SIZES], unrecorded_us[RONDO_SESSION_MAX_SIZES];
  RONDO_TRY(rondo_place_measure(&model->places[0], run_us, unrecorded_us));
  rondo_model_put_times(model, run_us, unrecorded_us);
  return RONDO_OK;
}

static rondo_status measure_lanes(rondo_session_model *model) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = measure_graphs(model);
  if (status == RONDO_OK) status = rondo_model_measure_overlaps(model);
  rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  return status;
}

/* Requests that come ----------------------------------------------------------------------------------------------- */

static int by_rows(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

/* Distinct rows of the history, ascending, in room for all of it. */
static size_t count_demands(rondo_session_model *model, rondo_size_demand *demands) {
  size_t *history = model->history.items, count = 0;
  qsort(history, model->history.count, sizeof *history, by_rows);
  for (size_t i = 0; i < model->history.count; i++) {
    if (count == 0 || demands[count - 1].rows != history[i]) demands[count++] = (rondo_size_demand){.rows = history[i]};
    demands[count - 1].requests++;
  }
  return count;
}

static int by_requests(const void *a, const void *b) {
  const uint64_t x = ((const rondo_size_demand *)a)->requests, y = ((const rondo_size_demand *)b)->requests;
  return (x < y) - (x > y);
}

/* The share of requests for whose rows a stream has no program, if it keeps those that come most often; without a
 * history, all. */
static rondo_status find_misses(rondo_session_model *model, double *out_share) {
  const rondo_allocator *allocator = &model->session->allocator;
  const size_t room = model->history.count;
  rondo_size_demand *demands = NULL;
  *out_share = 1;
  if (room == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *demands, &demands));
  const size_t count = count_demands(model, demands);
  uint64_t kept = 0;
  qsort(demands, count, sizeof *demands, by_requests);
  for (size_t i = 0; i < count && i < model->session->options.max_unrecorded; i++) kept += demands[i].requests;
  *out_share = 1 - (double)kept / (double)room;
  rondo_release(allocator, demands, room, sizeof *demands);
  return RONDO_OK;
}

/* A number of rows that no program is kept for is compiled first, which takes about as long as recording it. */
static rondo_status price_unrecorded(rondo_session_model *model) {
  double misses, capture_us = 0;
  RONDO_TRY(find_misses(model, &misses));
  for (size_t i = 0; i < model->graphs.count; i++) capture_us += model->graphs.items[i].capture_us;
  model->unrecorded_extra_us = misses * capture_us / (double)model->graphs.count;
  return RONDO_OK;
}

rondo_status rondo_model_measure(rondo_session_model *model) {
  if (model->graphs.count == 0) return RONDO_OK;
  rondo_session_claim_all(model->session);
  const rondo_status status = measure_lanes(model);
  rondo_session_release_all(model->session);
  RONDO_TRY(status);
  RONDO_TRY(price_unrecorded(model));
  return rondo_model_make_tables(model);
}

/* Choosing sizes --------------------------------------------------------------------------------------------------- */

typedef struct choice {
  rondo_session_model *model;
  rondo_session_graph probes[MOST_PROBES]; /* ascending */
  size_t probe_count;
  rondo_size_demand *demands; /* distinct rows of the history, ascending */
  size_t demand_count, demand_room;
  rondo_size_candidate *candidates;
  size_t candidate_count;
  size_t chosen[RONDO_SESSION_MAX_SIZES];
  uint32_t chosen_count;
  size_t batch_sizes[RONDO_SESSION_MAX_SIZES]; /* beyond the largest request, ascending */
  size_t batch_size_count;
} choice;

/* From the smallest to the largest request, in even steps; the largest is recorded first. */
static rondo_status record_probes(choice *c) {
  const size_t least = c->demands[0].rows, most = c->demands[c->demand_count - 1].rows;
  const size_t span = most - least;
  c->probe_count = span + 1 < MOST_PROBES ? span + 1 : MOST_PROBES;
  for (size_t i = c->probe_count; i-- > 0;) {
    const size_t rows = c->probe_count == 1 ? most : least + span * i / (c->probe_count - 1);
    RONDO_TRY(rondo_session_record_on(c->model, 0, rows, &c->probes[i]));
  }
  return RONDO_OK;
}

/* The place has the probes in the order in which they were recorded. */
static rondo_status measure_probes(choice *c) {
  double run_us[RONDO_SESSION_MAX_SIZES];
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  rondo_session_claim(c->model->session, 0);
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) {
    status = rondo_place_measure(&c->model->places[0], run_us, NULL);
    rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  }
  rondo_session_release(c->model->session, 0);
  for (size_t i = 0; i < c->probe_count && status == RONDO_OK; i++)
    c->probes[i].run_us = run_us[c->probe_count - 1 - i];
  return status;
}

static rondo_status probe(choice *c) {
  RONDO_TRY(record_probes(c));
  return measure_probes(c);
}

static double between(double a, double b, double part) { return a + (b - a) * part; }

/* On the line between the probes around. */
static rondo_size_candidate estimate(const choice *c, size_t rows) {
  size_t i = 0;
  while (i + 1 < c->probe_count && c->probes[i + 1].rows < rows) i++;
  const rondo_session_graph *a = &c->probes[i], *b = i + 1 < c->probe_count ? &c->probes[i + 1] : a;
  const double part = a == b ? 0 : (double)(rows - a->rows) / (double)(b->rows - a->rows);
  return (rondo_size_candidate){.rows = rows,
                                .run_us = between(a->run_us, b->run_us, part) + 1e-6 * (double)rows,
                                .bytes = (uint64_t)between((double)a->exec_bytes, (double)b->exec_bytes, part),
                                .shared_bytes = (uint64_t)between((double)a->arena_bytes, (double)b->arena_bytes, part),
                                .startup_us = between(a->capture_us, b->capture_us, part)};
}

/* The best sizes are rows that came; of many, some at even distances, the largest among them. */
static void list_candidates(choice *c) {
  const bool has_budget = c->model->budget_bytes > 0 || c->model->budget_startup_us > 0;
  const size_t most = has_budget ? MOST_WITH_BUDGET : MOST_CANDIDATES;
  const size_t count = c->demand_count < most ? c->demand_count : most;
  for (size_t i = 1; i <= count; i++)
    c->candidates[c->candidate_count++] = estimate(c, c->demands[i * c->demand_count / count - 1].rows);
}

static rondo_status choose(choice *c) {
  const rondo_session_model *model = c->model;
  const rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT,
                                       .max_sizes = model->max_sizes,
                                       .candidates = c->candidates,
                                       .candidate_count = c->candidate_count,
                                       .demands = c->demands,
                                       .demand_count = c->demand_count,
                                       .budget_bytes = model->budget_bytes,
                                       .budget_startup_us = (double)model->budget_startup_us};
  rondo_sizes_choice result = {.struct_size = sizeof result};
  RONDO_TRY(rondo_sizes_choose(&problem, c->chosen, &result));
  c->chosen_count = result.count;
  return RONDO_OK;
}

static rondo_status choose_and_record(choice *c) {
  rondo_session_model *model = c->model;
  c->demand_count = count_demands(model, c->demands);
  const rondo_status probed = probe(c);
  rondo_session_take_back(model, 0);
  RONDO_TRY(probed);
  RONDO_TRY(rondo_model_find_batch_sizes(model, &c->probes[c->probe_count - 1],
                                         RONDO_SESSION_MAX_SIZES - model->max_sizes, c->batch_sizes,
                                         &c->batch_size_count));
  list_candidates(c);
  RONDO_TRY(choose(c));
  for (size_t i = c->batch_size_count; i-- > 0;) RONDO_TRY(rondo_session_record(model, c->batch_sizes[i]));
  for (uint32_t i = c->chosen_count; i-- > 0;) RONDO_TRY(rondo_session_record(model, c->candidates[c->chosen[i]].rows));
  return rondo_model_measure(model);
}

static rondo_status capture(rondo_session_model *model) {
  const rondo_allocator *allocator = &model->session->allocator;
  choice c = {.model = model, .demand_room = model->history.count};
  if (model->graphs.count > 0)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                      "rondo_session_capture: model '%s' has %zu graphs: destroy them first", model->name,
                      model->graphs.count);
  if (model->history.count == 0)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
        "rondo_session_capture: model '%s' has no history to choose sizes for: give one with the model, or "
        "record sizes in capture mode",
        model->name);
  rondo_status status = rondo_allocate_items(allocator, c.demand_room, sizeof *c.demands, &c.demands);
  if (status == RONDO_OK)
    status = rondo_allocate_items(allocator, MOST_CANDIDATES, sizeof *c.candidates, &c.candidates);
  if (status == RONDO_OK) status = choose_and_record(&c);
  rondo_release(allocator, c.demands, c.demand_room, sizeof *c.demands);
  rondo_release(allocator, c.candidates, MOST_CANDIDATES, sizeof *c.candidates);
  return status;
}

static void drop_all(rondo_session_model *model, rondo_status *kept) {
  rondo_session_claim_all(model->session);
  rondo_model_drop_graphs(model, kept);
  rondo_session_release_all(model->session);
}

rondo_status rondo_session_capture(rondo_session *session, const char *model) {
  rondo_session_model *found;
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_capture", model, &found));
  const size_t before = found->graphs.count;
  const rondo_status status = capture(found);
  if (status != RONDO_OK && before == 0) {
    rondo_saved_error error;
    rondo_error_save(&error);
    rondo_status ignored = RONDO_OK;
    drop_all(found, &ignored);
    rondo_error_restore(&error);
  }
  rondo_session_change_end(found);
  return status;
}

rondo_status rondo_session_destroy_graphs(rondo_session *session, const char *model) {
  rondo_session_model *found;
  rondo_status status = RONDO_OK;
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_destroy_graphs", model, &found));
  drop_all(found, &status);
  rondo_session_change_end(found);
  return status;
}
