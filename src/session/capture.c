/* SPDX-License-Identifier: MIT
 * Capturing: the capture mode, graphs recorded on every lane, and the choice of sizes from a history. The model is
 * changing all the while, so that no request of it runs; each lane is claimed while it records.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "exec/front.h"
#include "session/session_internal.h"

static void keep_first(rondo_status *kept, rondo_status status) {
  if (*kept == RONDO_OK) *kept = status;
}

/* Recording a size ------------------------------------------------------------------------------------------------ */

/* With what it costs, found out on the first lane. */
static rondo_status record_on_first(rondo_session_model *model, size_t rows, rondo_session_graph *out) {
  rondo_place *place = &model->places[0];
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(rondo_place_capture(place, rows));
  const double capture_us = (double)(rondo_clock_ns() - begin) / 1e3;
  RONDO_TRY(rondo_place_describe(place, place->graphs.count - 1, out));
  RONDO_TRY(rondo_place_measure(place, place->graphs.count - 1, &out->run_us, &out->unrecorded_us));
  out->capture_us = capture_us;
  return RONDO_OK;
}

static rondo_status record_on(rondo_session_model *model, uint32_t lane, size_t rows, rondo_session_graph *out) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED; /* captures of others are left alone */
  rondo_session_claim(model->session, lane);
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) {
    status = lane == 0 ? record_on_first(model, rows, out) : rondo_place_capture(&model->places[lane], rows);
    keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  }
  rondo_session_release(model->session, lane);
  return status;
}

/* Back to `count` graphs on each lane; the error of before stays. */
static void take_back(rondo_session_model *model, size_t count) {
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  for (uint32_t i = 0; i < model->session->options.streams; i++) {
    rondo_session_claim(model->session, i);
    while (model->places[i].graphs.count > count) rondo_place_drop_last(&model->places[i], &ignored);
    rondo_session_release(model->session, i);
  }
  rondo_error_restore(&error);
}

static rondo_status check_new(const rondo_session_model *model, size_t rows) {
  if (model->graphs.count == RONDO_SESSION_MAX_SIZES)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "model '%s' has %d graphs already", model->name,
                      RONDO_SESSION_MAX_SIZES);
  for (size_t i = 0; i < model->graphs.count; i++)
    if (model->graphs.items[i].rows == rows)
      return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED, "graph %zu of model '%s' is of %zu rows", i,
                        model->name, rows);
  return RONDO_OK;
}

static rondo_status record(rondo_session_model *model, size_t rows) {
  rondo_session_graph graph = {.rows = rows};
  RONDO_TRY(rondo_array_reserve(&model->session->allocator, &model->graphs, model->graphs.count + 1));
  for (uint32_t i = 0; i < model->session->options.streams; i++) RONDO_TRY(record_on(model, i, rows, &graph));
  model->graphs.items[model->graphs.count++] = graph;
  const rondo_status status = rondo_model_make_tables(model);
  if (status != RONDO_OK) model->graphs.count--;
  return status;
}

rondo_status rondo_session_record(rondo_session_model *model, size_t rows) {
  RONDO_TRY(check_new(model, rows));
  const size_t before = model->graphs.count;
  const rondo_status status = record(model, rows);
  if (status != RONDO_OK) take_back(model, before);
  return status;
}

/* Capture mode ---------------------------------------------------------------------------------------------------- */

rondo_status rondo_session_capture_begin(rondo_session *session, const char *model) {
  rondo_session_model *found;
  RONDO_TRY(rondo_front("rondo_session_capture_begin", "the session", session));
  pthread_mutex_lock(&session->lock);
  const bool is_capturing = session->capturing != NULL;
  pthread_mutex_unlock(&session->lock);
  if (is_capturing)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                      "rondo_session_capture_begin: the session is in capture mode: end that first");
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_capture_begin", model, &found));
  pthread_mutex_lock(&session->lock);
  const bool is_first = session->capturing == NULL;
  if (is_first) session->capturing = found;
  pthread_mutex_unlock(&session->lock);
  if (is_first) return RONDO_OK;
  rondo_session_change_end(found);
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                    "rondo_session_capture_begin: another thread has begun capture mode");
}

/* How long graphs take on all lanes at once, against one after the other. */
static rondo_status launch_everywhere(rondo_session_model *model, size_t graph) {
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < model->session->options.streams; i++) {
    const rondo_place_graph *g = &model->places[i].graphs.items[graph];
    keep_first(&status, rondo_exec_launch(g->exec, rondo_compiled_stream(g->compiled)));
  }
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    keep_first(&status, rondo_compiled_synchronize(model->places[i].graphs.items[graph].compiled));
  return status;
}

static rondo_status measure_overlap(rondo_session_model *model) {
  enum { ROUNDS = 3 };
  const uint32_t streams = model->session->options.streams;
  double best = 0;
  for (size_t i = 0; i < ROUNDS; i++) {
    const uint64_t begin = rondo_clock_ns();
    RONDO_TRY(launch_everywhere(model, 0));
    const double us = (double)(rondo_clock_ns() - begin) / 1e3;
    if (i == 0 || us < best) best = us;
  }
  const double overlap = best / (streams * model->graphs.items[0].run_us);
  model->overlap = overlap > 1 ? 1 : overlap < 1.0 / streams ? 1.0 / streams : overlap;
  return RONDO_OK;
}

/* Inputs are whatever stands there, on lanes but the first what captures left; a wrong index would be an error. */
static rondo_status zero_inputs(rondo_session_model *model) {
  for (uint32_t i = 1; i < model->session->options.streams; i++) {
    double run_us, unrecorded_us;
    RONDO_TRY(rondo_place_measure(&model->places[i], 0, &run_us, &unrecorded_us));
  }
  double run_us, unrecorded_us;
  return rondo_place_measure(&model->places[0], 0, &run_us, &unrecorded_us);
}

/* A size takes no longer than a larger one: where it was measured so, that was chance. */
static void smooth(rondo_session_model *model) {
  for (size_t i = 0; i < model->graphs.count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    for (size_t k = 0; k < model->graphs.count; k++) {
      const rondo_session_graph *other = &model->graphs.items[k];
      if (other->rows > g->rows && other->run_us < g->run_us) g->run_us = other->run_us;
      if (other->rows > g->rows && other->unrecorded_us < g->unrecorded_us) g->unrecorded_us = other->unrecorded_us;
    }
  }
}

/* What is known when all graphs stand. */
static rondo_status finish(rondo_session_model *model) {
  if (model->graphs.count == 0) return RONDO_OK;
  smooth(model);
  rondo_status status = RONDO_OK;
  if (model->session->options.streams > 1) {
    rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
    rondo_session_claim_all(model->session);
    status = rondo_capture_exchange_thread_mode(&mode);
    if (status == RONDO_OK) {
      status = zero_inputs(model);
      if (status == RONDO_OK) status = measure_overlap(model);
      keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
    }
    rondo_session_release_all(model->session);
  }
  return status == RONDO_OK ? rondo_model_make_tables(model) : status;
}

static rondo_session_model *leave_mode(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  rondo_session_model *model = session->capturing;
  while (model != NULL && model->taken > 0) pthread_cond_wait(&session->change, &session->lock);
  session->capturing = NULL;
  pthread_mutex_unlock(&session->lock);
  return model;
}

rondo_status rondo_session_capture_end(rondo_session *session) {
  RONDO_TRY(rondo_front("rondo_session_capture_end", "the session", session));
  rondo_session_model *model = leave_mode(session);
  if (model == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING,
                      "rondo_session_capture_end: the session is not in capture mode");
  const rondo_status status = finish(model);
  rondo_session_change_end(model);
  return status;
}

/* Choosing sizes -------------------------------------------------------------------------------------------------- */

enum { MOST_PROBES = 6, MOST_CANDIDATES = 512, MOST_WITH_BUDGET = 48 };

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
} choice;

static int by_rows(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static void count_demands(choice *c) {
  size_t *history = c->model->history.items;
  qsort(history, c->model->history.count, sizeof *history, by_rows);
  for (size_t i = 0; i < c->model->history.count; i++) {
    if (c->demand_count == 0 || c->demands[c->demand_count - 1].rows != history[i])
      c->demands[c->demand_count++] = (rondo_size_demand){.rows = history[i]};
    c->demands[c->demand_count - 1].requests++;
  }
}

/* From the smallest to the largest request, in even steps; the largest is recorded first. */
static rondo_status probe(choice *c) {
  const size_t least = c->demands[0].rows, most = c->demands[c->demand_count - 1].rows;
  const size_t span = most - least;
  c->probe_count = span + 1 < MOST_PROBES ? span + 1 : MOST_PROBES;
  for (size_t i = c->probe_count; i-- > 0;) {
    const size_t rows = c->probe_count == 1 ? most : least + span / (c->probe_count - 1) * i;
    RONDO_TRY(record_on(c->model, 0, i == c->probe_count - 1 ? most : rows, &c->probes[i]));
  }
  for (size_t i = 1; i < c->probe_count; i++) /* what is larger takes no less: the rest is chance */
    if (c->probes[i].run_us < c->probes[i - 1].run_us) c->probes[i].run_us = c->probes[i - 1].run_us;
  return RONDO_OK;
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
  count_demands(c);
  const rondo_status probed = probe(c);
  take_back(c->model, 0);
  RONDO_TRY(probed);
  list_candidates(c);
  RONDO_TRY(choose(c));
  for (uint32_t i = c->chosen_count; i-- > 0;)
    RONDO_TRY(rondo_session_record(c->model, c->candidates[c->chosen[i]].rows));
  return finish(c->model);
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
