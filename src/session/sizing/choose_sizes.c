/* SPDX-License-Identifier: MIT
 * Chooses batch sizes for a history of requests, which run alone or together. Records and measures a few sizes,
 * interpolates the costs of the others, and records the best ones on all streams. Measures the graphs when all of them
 * are recorded. The model is changing; workers are claimed for each recording and measurement.
 */
#include <assert.h>
#include <stdlib.h>

#include "session/model_capture.h"
#include "session/model_instance.h"
#include "session/model_lengths.h"
#include "session/serve/cache_slots.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "session/session_model.h"
#include "session/sizing/choose_sizes.h"
#include "session/sizing/measure_graphs.h"
#include "session/sizing/model_times.h"
#include "session/sizing/workload.h"

enum { EVEN_PROBES = 12, MAX_CANDIDATES = 512, MAX_CANDIDATES_WITH_BUDGET = 48 };
#define COST_TOLERANCE 1.002 /* relative to the lowest cost, because times are not known more precisely */
#define DOUBLING_GAIN 0.9    /* when the rows double, the cost of a row must fall to this share or below */
#define MAX_RUN_US 20000     /* a graph that takes longer fills the device, so larger ones are not tried */
enum { DEFAULT_TIMES = 4, MAX_DOUBLINGS = 16 };

/* Measuring all graphs --------------------------------------------------------------------------------------------- */

static rondo_status measure_graphs(rondo_session_model *model) {
  double run_us[RONDO_SESSION_MAX_SIZES], eager_us[RONDO_SESSION_MAX_SIZES];
  RONDO_TRY(rondo_model_instance_measure(&model->instances[0], run_us, eager_us));
  rondo_model_set_times(model, run_us, eager_us, false);
  return rondo_model_measure_overlaps(model);
}

/* Extra time of eager runs ----------------------------------------------------------------------------------------- */

static int by_requests(const void *a, const void *b) {
  const uint64_t x = ((const rondo_size_demand *)a)->requests, y = ((const rondo_size_demand *)b)->requests;
  return (x < y) - (x > y);
}

/* Finds the share of requests for which a stream has no cached program if it caches the most frequent numbers of rows.
 * It is 1 without a history. */
static rondo_status find_miss_share(rondo_session_model *model, double *out_share) {
  const rondo_allocator *allocator = &model->session->allocator;
  const size_t capacity = model->history.count;
  rondo_size_demand *workload = NULL;
  *out_share = 1;
  if (capacity == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *workload, &workload));
  for (size_t i = 0; i < capacity; i++)
    workload[i] = (rondo_size_demand){.rows = model->history.items[i], .requests = 1};
  const size_t count = rondo_workload_merge(workload, capacity);
  uint64_t kept = 0;
  qsort(workload, count, sizeof *workload, by_requests);
  for (size_t i = 0; i < count && i < model->session->options.max_eager_programs; i++) kept += workload[i].requests;
  *out_share = 1 - (double)kept / (double)capacity;
  rondo_release(allocator, workload, capacity, sizeof *workload);
  return RONDO_OK;
}

/* A number of rows without a cached program is compiled first, which takes about as long as recording it. */
static rondo_status find_eager_extra(rondo_session_model *model) {
  double misses, capture_us = 0;
  RONDO_TRY(find_miss_share(model, &misses));
  for (size_t i = 0; i < model->graphs.count; i++) capture_us += model->graphs.items[i].info.capture_us;
  model->eager_extra_us = misses * capture_us / (double)model->graphs.count;
  return RONDO_OK;
}

rondo_status rondo_model_measure(rondo_session_model *model) {
  if (model->graphs.count == 0) return RONDO_OK;
  rondo_session_claim_all(model->session);
  const rondo_status status = measure_graphs(model);
  rondo_session_release_all(model->session);
  RONDO_TRY(status);
  RONDO_TRY(find_eager_extra(model));
  return rondo_model_make_tables(model);
}

static rondo_status measure_on_first_worker(rondo_session_model *model, double *out_us) {
  rondo_session_claim(model->session, 0);
  const rondo_status status = rondo_model_instance_measure(&model->instances[0], out_us, NULL);
  rondo_session_release(model->session, 0);
  return status;
}

/* Sizes beyond the largest request --------------------------------------------------------------------------------- */

/* Measures the graph that was recorded last: its share of the time of all workers. */
static rondo_status measure_last(rondo_session_model *model, double *out_us) {
  const size_t last = model->graphs.count - 1;
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    RONDO_TRY(rondo_model_instance_write_zeros(&model->instances[i], last));
  return rondo_model_measure_share(model, last, out_us);
}

/* Records a graph, and measures the cost of one of its rows. */
static rondo_status measure_row(rondo_session_model *model, size_t rows, double *out_us) {
  RONDO_TRY(rondo_session_record(model, rows));
  rondo_session_claim_all(model->session);
  const rondo_status status = measure_last(model, out_us);
  rondo_session_release_all(model->session);
  *out_us /= (double)rows;
  return status;
}

/* Records graphs of 2, 4, ... times the rows of the largest request, as long as they make a row cheaper. OUT_OF_MEMORY
 * only ends the series. */
static rondo_status record_doublings(rondo_session_model *model, size_t largest, size_t max_rows, size_t *out_count) {
  double before = 0, us = 0;
  RONDO_TRY(measure_row(model, largest, &before));
  for (size_t half = largest; half <= max_rows / 2 && *out_count < MAX_DOUBLINGS; half *= 2) {
    const rondo_status status = measure_row(model, 2 * half, &us);
    if (status == RONDO_OUT_OF_MEMORY) return RONDO_OK;
    RONDO_TRY(status);
    if (us > before * DOUBLING_GAIN) return RONDO_OK;
    (*out_count)++;
    before = us;
  }
  return RONDO_OK;
}

/* Measures all graphs but the first. */
static rondo_status measure_doublings(rondo_session_model *model, size_t count, rondo_session_graph *out) {
  double run_us[RONDO_SESSION_MAX_SIZES];
  if (count == 0) return RONDO_OK;
  RONDO_TRY(measure_on_first_worker(model, run_us));
  for (size_t i = 0; i < count; i++) {
    out[i] = model->graphs.items[i + 1];
    out[i].info.run_us = run_us[i + 1];
  }
  return RONDO_OK;
}

static rondo_status probe_doublings(rondo_session_model *model, size_t largest, size_t max_rows,
                                    rondo_session_graph *out, size_t *out_count) {
  RONDO_TRY(record_doublings(model, largest, max_rows, out_count));
  return measure_doublings(model, *out_count, out);
}

/* The maximum rows of a graph. With a budget, sizes beyond the history need max_batch_rows. */
static size_t max_rows_of(const rondo_session_model *model, size_t largest) {
  if (model->max_batch_rows > 0) return model->max_batch_rows;
  const bool has_budget = model->budget_bytes > 0 || model->budget_startup_us > 0;
  return has_budget || largest > SIZE_MAX / DEFAULT_TIMES ? 0 : largest * DEFAULT_TIMES;
}

static rondo_status find_doublings(rondo_session_model *model, const rondo_session_graph *largest,
                                   rondo_session_graph *out, size_t *out_count) {
  const size_t max_rows = max_rows_of(model, largest->info.rows);
  *out_count = 0;
  if (largest->info.rows > max_rows / 2 || largest->info.run_us > MAX_RUN_US || model->session->options.max_batch == 1)
    return RONDO_OK;
  const rondo_status status = probe_doublings(model, largest->info.rows, max_rows, out, out_count);
  rondo_session_drop_graphs_from(model, 0);
  return status;
}

/* Choosing sizes --------------------------------------------------------------------------------------------------- */

typedef struct choice {
  rondo_session_model *model;
  rondo_session_graph probes[EVEN_PROBES + MAX_DOUBLINGS]; /* ascending */
  size_t probe_count;
  double row_us; /* cost of a row of padding */
  rondo_workload workload;
  rondo_size_candidate *candidates;
  size_t candidate_count;
  size_t chosen[RONDO_SESSION_MAX_SIZES];
  uint32_t chosen_count;
} choice;

/* Records sizes in even steps between the smallest and the largest request, the largest first. */
static rondo_status record_probes(choice *c) {
  const size_t *history = c->model->history.items;
  const size_t least = history[0], span = history[c->model->history.count - 1] - least;
  c->probe_count = span + 1 < EVEN_PROBES ? span + 1 : EVEN_PROBES;
  for (size_t i = c->probe_count; i-- > 0;) {
    const size_t rows = c->probe_count == 1 ? least : least + span * i / (c->probe_count - 1);
    RONDO_TRY(rondo_session_record_on(c->model, 0, rows, &c->probes[i]));
  }
  return RONDO_OK;
}

static rondo_status probe(choice *c) {
  double run_us[RONDO_SESSION_MAX_SIZES];
  RONDO_TRY(record_probes(c));
  RONDO_TRY(measure_on_first_worker(c->model, run_us));
  for (size_t i = 0; i < c->probe_count; i++) c->probes[i].info.run_us = run_us[c->probe_count - 1 - i];
  return RONDO_OK;
}

/* Adds sizes beyond the largest request, for requests that run together. They were measured separately, so their times
 * are raised to that of the next smaller size if they are below it. */
static rondo_status probe_beyond(choice *c) {
  size_t count = 0;
  RONDO_TRY(find_doublings(c->model, &c->probes[c->probe_count - 1], c->probes + c->probe_count, &count));
  for (; count > 0; count--, c->probe_count++) {
    const double least_us = c->probes[c->probe_count - 1].info.run_us;
    if (c->probes[c->probe_count].info.run_us < least_us) c->probes[c->probe_count].info.run_us = least_us;
  }
  return RONDO_OK;
}

static int by_rows(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static rondo_status probe_all(choice *c) {
  rondo_session_model *model = c->model;
  qsort(model->history.items, model->history.count, sizeof *model->history.items, by_rows);
  const rondo_status probed = probe(c);
  rondo_session_drop_graphs_from(model, 0);
  RONDO_TRY(probed);
  c->row_us = c->probes[c->probe_count - 1].info.run_us / (double)c->probes[c->probe_count - 1].info.rows;
  return probe_beyond(c);
}

static rondo_status make_workload(choice *c) {
  const rondo_session_model *model = c->model;
  const rondo_workload_input input = {.history = model->history.items,
                                      .count = model->history.count,
                                      .max_requests = model->session->options.max_batch,
                                      .max_rows = c->probes[c->probe_count - 1].info.rows};
  return rondo_workload_make(&model->session->allocator, &input, &c->workload);
}

static double between(double a, double b, double part) { return a + (b - a) * part; }

/* Interpolates between the two nearest probes. Adds for each row, including padding, its cost in a graph for the
 * largest request. On an idle device rows may seem to be free, but they are not when others wait for the device; and
 * where times hardly rise, their differences are mostly noise. */
static rondo_size_candidate estimate(const choice *c, size_t rows) {
  size_t i = 0;
  assert(c->probe_count > 0);
  while (i + 1 < c->probe_count && c->probes[i + 1].info.rows < rows) i++;
  const rondo_session_graph *a = &c->probes[i], *b = i + 1 < c->probe_count ? &c->probes[i + 1] : a;
  const double part = a == b ? 0 : (double)(rows - a->info.rows) / (double)(b->info.rows - a->info.rows);
  return (rondo_size_candidate){
      .rows = rows,
      .run_us = between(a->info.run_us, b->info.run_us, part) + c->row_us * (double)rows,
      .bytes = (uint64_t)between((double)a->info.exec_bytes, (double)b->info.exec_bytes, part),
      .shared_bytes = (uint64_t)between((double)a->info.arena_bytes, (double)b->info.arena_bytes, part),
      .startup_us = between(a->info.capture_us, b->info.capture_us, part)};
}

/* The best sizes are numbers of rows that occur. If there are many, takes some at even distances and always the last.
 */
static void list_candidates(choice *c, size_t first, size_t end, size_t max_count) {
  assert(first <= end && end <= c->workload.count);
  const size_t span = end - first, count = span < max_count ? span : max_count;
  for (size_t i = 1; i <= count; i++)
    c->candidates[c->candidate_count++] = estimate(c, c->workload.items[first + i * span / count - 1].rows);
}

/* Half of the candidates are for single requests, and half for several requests together. */
static void list_all_candidates(choice *c) {
  const bool has_budget = c->model->budget_bytes > 0 || c->model->budget_startup_us > 0;
  const size_t max_count = has_budget ? MAX_CANDIDATES_WITH_BUDGET : MAX_CANDIDATES;
  const bool is_alone = c->workload.alone == c->workload.count;
  list_candidates(c, 0, c->workload.alone, is_alone ? max_count : max_count / 2);
  list_candidates(c, c->workload.alone, c->workload.count, max_count / 2);
}

static rondo_status choose_up_to(choice *c, uint32_t sizes, double *out_us) {
  const rondo_session_model *model = c->model;
  const rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT,
                                       .max_sizes = sizes,
                                       .candidates = c->candidates,
                                       .candidate_count = c->candidate_count,
                                       .demands = c->workload.items,
                                       .demand_count = c->workload.count,
                                       .budget_bytes = model->budget_bytes,
                                       .budget_startup_us = (double)model->budget_startup_us};
  rondo_sizes_choice result = {.struct_size = sizeof result};
  RONDO_TRY(rondo_sizes_choose(&problem, c->chosen, &result));
  c->chosen_count = result.count;
  *out_us = result.mean_us;
  return RONDO_OK;
}

/* Chooses the smallest number of sizes that cost nearly the minimum, because each size takes memory and time to record.
 * The cost does not rise with the number of sizes, so a binary search finds it. */
static rondo_status choose(choice *c) {
  double best_us = 0, us = 0;
  RONDO_TRY(choose_up_to(c, c->model->max_sizes, &best_us));
  uint32_t too_few = 0, enough = c->chosen_count;
  assert(enough <= RONDO_SESSION_MAX_SIZES);
  while (enough - too_few > 1) {
    const uint32_t sizes = too_few + (enough - too_few) / 2;
    RONDO_TRY(choose_up_to(c, sizes, &us));
    if (us <= best_us * COST_TOLERANCE)
      enough = c->chosen_count;
    else
      too_few = sizes;
  }
  return c->chosen_count == enough ? RONDO_OK : choose_up_to(c, enough, &us);
}

static rondo_status choose_and_record(choice *c) {
  RONDO_TRY(probe_all(c));
  RONDO_TRY(make_workload(c));
  list_all_candidates(c);
  RONDO_TRY(choose(c));
  for (uint32_t i = c->chosen_count; i-- > 0;)
    RONDO_TRY(rondo_session_record(c->model, c->candidates[c->chosen[i]].rows));
  return rondo_model_measure(c->model);
}

/* Steps of sequences have one row each, and how many run together depends on the load. So steps, which are the shortest
 * length, get a size for all slots, and for a half of them, a quarter and so on. */
static bool is_for_steps(const rondo_session_model *model) {
  return model->slots != NULL && model->budget_bytes == 0 && model->budget_startup_us == 0;
}

static rondo_status record_steps(rondo_session_model *model) {
  const size_t slots = model->slots->count, most = model->session->options.max_batch;
  size_t rows = slots < most ? slots : most;
  for (uint32_t i = 0; i < model->max_sizes; i++, rows = (rows + 1) / 2) {
    RONDO_TRY(rondo_session_record(model, rows));
    if (rows == 1) break;
  }
  return rondo_model_measure(model);
}

static rondo_status capture(rondo_session_model *model) {
  const rondo_allocator *allocator = &model->session->allocator;
  choice c = {.model = model};
  if (is_for_steps(model)) return record_steps(model);
  if (model->history.count == 0)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
        "rondo_session_capture: model '%s' has no history to choose sizes for: give one with the model, or "
        "record sizes in capture mode",
        model->name);
  RONDO_TRY(rondo_allocate_items(allocator, MAX_CANDIDATES, sizeof *c.candidates, &c.candidates));
  const rondo_status status = choose_and_record(&c);
  rondo_workload_free(&c.workload);
  rondo_release(allocator, c.candidates, MAX_CANDIDATES, sizeof *c.candidates);
  return status;
}

enum { MOST_MODELS = 2 * RONDO_SESSION_MAX_LENGTHS }; /* with those that read sources */

/* The lengths that a call concerns: all of the model, all that read its sources, or the one that it names. */
static size_t list_lengths(rondo_session_model *found, const char *name, rondo_session_model **out) {
  size_t count = 1;
  out[0] = found;
  if (found->length == 0 || !rondo_model_is_whole(found, name)) return 1;
  const rondo_session_model *end = found == found->head ? rondo_model_group_end(found) : rondo_model_lengths_end(found);
  for (rondo_session_model *m = found->next; m != end; m = m->next) out[count++] = m;
  return count;
}

static void drop_all(rondo_session_model *const *models, size_t count, rondo_status *kept) {
  rondo_session_claim_all(models[0]->session);
  for (size_t i = 0; i < count; i++) rondo_model_drop_graphs(models[i], kept);
  rondo_session_release_all(models[0]->session);
}

static rondo_status refuse_captured(const rondo_session_model *model) {
  if (model->graphs.count == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                    "rondo_session_capture: model '%s' has %zu graphs: destroy them first", model->name,
                    model->graphs.count);
}

/* Captures the longest first, because all share an arena. */
static rondo_status capture_all(rondo_session_model *const *models, size_t count) {
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < count; i++) RONDO_TRY(refuse_captured(models[i]));
  for (size_t i = count; i-- > 0 && status == RONDO_OK;) status = capture(models[i]);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  drop_all(models, count, &ignored);
  return rondo_error_raise(&error);
}

rondo_status rondo_session_capture(rondo_session *session, const char *model) {
  rondo_session_model *found, *models[MOST_MODELS];
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_capture", model, &found));
  const rondo_status status = capture_all(models, list_lengths(found, model, models));
  rondo_session_change_end(found);
  return status;
}

rondo_status rondo_session_destroy_graphs(rondo_session *session, const char *model) {
  rondo_session_model *found, *models[MOST_MODELS];
  rondo_status status = RONDO_OK;
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_destroy_graphs", model, &found));
  drop_all(models, list_lengths(found, model, models), &status);
  rondo_session_change_end(found);
  return status;
}
