/* SPDX-License-Identifier: MIT
 * Measures graphs. Each round runs every graph of an instance once, recorded and eagerly, so that a disturbance affects
 * all of them. graph_times.h evaluates the samples. A second measurement compares a graph on all streams at once with
 * the same graph on one stream. The caller has claimed the workers.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "session/model_instance.h"
#include "session/session_internal.h"
#include "session/sizing/graph_times.h"
#include "session/sizing/measure_graphs.h"
#include "session/sizing/measured_states.h"

enum { MAX_ROUNDS = 9, MIN_ROUNDS = 3, MAX_UNSETTLED_ROUNDS = 40, WARM_RUNS = 9 };
#define ENOUGH_NS UINT64_C(400000000)            /* for all rounds */
#define ENOUGH_UNSETTLED_NS UINT64_C(1200000000) /* while the two lowest samples of some graph differ */
#define WARM_ENOUGH_NS UINT64_C(40000000)        /* for the warm-up of one graph */

/* By index of the graph. */
typedef struct samples {
  rondo_least_samples recorded[RONDO_SESSION_MAX_SIZES], eager[RONDO_SESSION_MAX_SIZES];
} samples;

/* Samples ---------------------------------------------------------------------------------------------------------- */

static rondo_status time_run(rondo_model_instance *instance, const rondo_instance_graph *g, bool is_recorded,
                             double *out_us) {
  RONDO_TRY(rondo_model_instance_synchronize(instance));
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(rondo_model_instance_run_upstream(instance, g, is_recorded));
  RONDO_TRY(rondo_model_instance_launch(instance, g, is_recorded));
  RONDO_TRY(rondo_model_instance_synchronize(instance));
  *out_us = (double)(rondo_clock_ns() - begin) / 1e3;
  return RONDO_OK;
}

static rondo_status read_run(rondo_model_instance *instance, const rondo_instance_graph *g, bool is_recorded,
                             rondo_least_samples *inout) {
  double us;
  RONDO_TRY(time_run(instance, g, is_recorded, &us));
  rondo_least_samples_add(inout, us);
  return RONDO_OK;
}

static rondo_status take_round(rondo_model_instance *instance, bool with_eager, samples *r) {
  for (size_t i = 0; i < instance->graphs.count; i++) {
    RONDO_TRY(rondo_model_instance_write_zeros(instance, i));
    RONDO_TRY(read_run(instance, &instance->graphs.items[i], true, &r->recorded[i]));
    if (with_eager) RONDO_TRY(read_run(instance, &instance->graphs.items[i], false, &r->eager[i]));
  }
  return RONDO_OK;
}

/* During the first runs, a device may still choose how it runs a graph. Eager runs need one warm-up. */
static rondo_status warm_up(rondo_model_instance *instance, bool with_eager) {
  for (size_t i = 0; i < instance->graphs.count; i++) {
    const uint64_t begin = rondo_clock_ns();
    double us;
    RONDO_TRY(rondo_model_instance_write_zeros(instance, i));
    for (int run = 0; run < WARM_RUNS && rondo_clock_ns() - begin < WARM_ENOUGH_NS; run++)
      RONDO_TRY(time_run(instance, &instance->graphs.items[i], true, &us));
    if (with_eager) RONDO_TRY(time_run(instance, &instance->graphs.items[i], false, &us));
  }
  return RONDO_OK;
}

static bool are_settled(const rondo_model_instance *instance, bool with_eager, const samples *r) {
  for (size_t i = 0; i < instance->graphs.count; i++)
    if (!rondo_least_samples_agree(&r->recorded[i]) || (with_eager && !rondo_least_samples_agree(&r->eager[i])))
      return false;
  return true;
}

/* On a busy machine the lowest sample comes late, so more rounds are made until samples agree. */
static bool wants_round_of_samples(size_t rounds, uint64_t elapsed_ns, bool is_settled) {
  if (rounds < MIN_ROUNDS) return true;
  if (rounds < MAX_ROUNDS && elapsed_ns < ENOUGH_NS) return true;
  return !is_settled && rounds < MAX_UNSETTLED_ROUNDS && elapsed_ns < ENOUGH_UNSETTLED_NS;
}

static rondo_status take_rounds(rondo_model_instance *instance, bool with_eager, samples *r) {
  RONDO_TRY(warm_up(instance, with_eager));
  const uint64_t begin = rondo_clock_ns();
  for (size_t i = 0; wants_round_of_samples(i, rondo_clock_ns() - begin, are_settled(instance, with_eager, r)); i++)
    RONDO_TRY(take_round(instance, with_eager, r));
  return RONDO_OK;
}

static rondo_status take_all(rondo_model_instance *instance, bool with_eager, samples *r) {
  rondo_measured_states states;
  RONDO_TRY(rondo_measured_states_keep(instance, &states));
  rondo_status status = take_rounds(instance, with_eager, r);
  RONDO_THEN(status, rondo_measured_states_put_back(instance, &states));
  return status;
}

static void write_times(const rondo_model_instance *instance, const rondo_least_samples *least, size_t *rows,
                        double *out_us) {
  for (size_t i = 0; i < instance->graphs.count; i++) {
    rows[i] = instance->graphs.items[i].rows;
    out_us[i] = least[i].us;
  }
  rondo_times_make_ascending(rows, out_us, instance->graphs.count);
}

rondo_status rondo_model_instance_measure(rondo_model_instance *instance, double *out_run, double *out_eager) {
  size_t rows[RONDO_SESSION_MAX_SIZES];
  samples r = {.recorded = {{0}}};
  RONDO_TRY(take_all(instance, out_eager != NULL, &r));
  write_times(instance, r.recorded, rows, out_run);
  if (out_eager != NULL)
    write_times(instance, r.eager, rows, out_eager);
  else
    rondo_times_limit_row_cost(rows, out_run, instance->graphs.count);
  return RONDO_OK;
}

/* All workers at once ---------------------------------------------------------------------------------------------- */

enum { OVERLAP_ROUNDS = 6, MAX_OVERLAPS = 4 };
#define ENOUGH_OVERLAP_NS UINT64_C(100000000) /* for the rounds of one graph */

static bool wants_round(size_t done, uint64_t begin_ns) {
  return done == 0 || (done < OVERLAP_ROUNDS && rondo_clock_ns() - begin_ns < ENOUGH_OVERLAP_NS);
}

/* Runs the graph on the first `workers` streams at once. Keeps the lowest time. */
static rondo_status time_instances(rondo_session_model *model, size_t graph, uint32_t workers, bool is_recorded,
                                   double *inout_us) {
  rondo_status started[RONDO_SESSION_MAX_STREAMS], status = RONDO_OK;
  const uint64_t begin = rondo_clock_ns();
  for (uint32_t i = 0; i < workers; i++)
    started[i] = rondo_model_instance_start_upstream(&model->instances[i], &model->instances[i].graphs.items[graph],
                                                     is_recorded);
  for (uint32_t i = 0; i < workers; i++) {
    rondo_model_instance *instance = &model->instances[i];
    rondo_status_keep_first(&status,
                            rondo_model_instance_wait_for_upstream(&instance->graphs.items[graph], started[i]));
    rondo_status_keep_first(&status,
                            rondo_model_instance_launch(instance, &instance->graphs.items[graph], is_recorded));
  }
  /* A thread that waits for a CPU device helps it. It waits for the last stream first, which the device has not begun,
   * as a thread that waits for a request does. */
  for (uint32_t i = workers; i-- > 0;)
    rondo_status_keep_first(&status, rondo_model_instance_synchronize(&model->instances[i]));
  *inout_us = fmin(*inout_us, (double)(rondo_clock_ns() - begin) / 1e3);
  return status;
}

static rondo_status time_all(rondo_session_model *model, size_t graph, double *out_us) {
  const uint32_t workers = model->session->options.streams;
  const uint64_t begin = rondo_clock_ns();
  double all_us = INFINITY;
  for (size_t round = 0; wants_round(round, begin); round++)
    RONDO_TRY(time_instances(model, graph, workers, true, &all_us));
  *out_us = all_us / workers;
  return RONDO_OK;
}

rondo_status rondo_model_measure_share(rondo_session_model *model, size_t graph, double *out_us) {
  rondo_measured_states states;
  assert(graph < model->instances[0].graphs.count);
  RONDO_TRY(rondo_measured_states_keep(&model->instances[0], &states));
  rondo_status status = time_all(model, graph, out_us);
  RONDO_THEN(status, rondo_measured_states_put_back(&model->instances[0], &states));
  return status;
}

static rondo_status measure_overlap(rondo_session_model *model, size_t graph, bool is_recorded, double *out) {
  const uint32_t workers = model->session->options.streams;
  const uint64_t begin = rondo_clock_ns();
  double one_us = INFINITY, all_us = INFINITY;
  for (size_t round = 0; wants_round(round, begin); round++) {
    RONDO_TRY(time_instances(model, graph, 1, is_recorded, &one_us));
    RONDO_TRY(time_instances(model, graph, workers, is_recorded, &all_us));
  }
  const double overlap = all_us / (workers * one_us);
  *out = overlap > 1 ? 1 : overlap < 1.0 / workers ? 1.0 / workers : overlap;
  return RONDO_OK;
}

/* Zeros the inputs first, because stale data could contain an index out of range. */
static rondo_status measure_graph_overlaps(rondo_session_model *model, size_t graph, rondo_session_graph *g) {
  g->overlap = g->eager_overlap = 1;
  if (model->session->options.streams == 1) return RONDO_OK;
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    RONDO_TRY(rondo_model_instance_write_zeros(&model->instances[i], graph));
  RONDO_TRY(measure_overlap(model, graph, true, &g->overlap));
  return measure_overlap(model, graph, false, &g->eager_overlap);
}

/* Interpolates between two graphs. */
static void estimate_overlaps(const rondo_session_graph *a, const rondo_session_graph *b, rondo_session_graph *inout) {
  const double part = (double)(inout->info.rows - a->info.rows) / (double)(b->info.rows - a->info.rows);
  inout->overlap = a->overlap + (b->overlap - a->overlap) * part;
  inout->eager_overlap = a->eager_overlap + (b->eager_overlap - a->eager_overlap) * part;
}

/* Measures a few graphs, including the smallest and the largest, and interpolates the others. */
static rondo_status find_overlaps(rondo_session_model *model, rondo_session_graph *graphs) {
  size_t rows[RONDO_SESSION_MAX_SIZES] = {0}, order[RONDO_SESSION_MAX_SIZES];
  const size_t count = model->graphs.count, steps = count < MAX_OVERLAPS ? count - 1 : MAX_OVERLAPS - 1;
  for (size_t i = 0; i < count; i++) rows[i] = graphs[i].info.rows;
  rondo_times_sort(rows, count, order);
  RONDO_TRY(measure_graph_overlaps(model, order[0], &graphs[order[0]]));
  for (size_t i = 1, before = 0; i <= steps; i++) {
    const size_t at = i * (count - 1) / steps;
    RONDO_TRY(measure_graph_overlaps(model, order[at], &graphs[order[at]]));
    for (size_t k = before + 1; k < at; k++)
      estimate_overlaps(&graphs[order[before]], &graphs[order[at]], &graphs[order[k]]);
    before = at;
  }
  return RONDO_OK;
}

rondo_status rondo_model_measure_overlaps(rondo_session_model *model) {
  rondo_session_graph graphs[RONDO_SESSION_MAX_SIZES];
  memcpy(graphs, model->graphs.items, model->graphs.count * sizeof *graphs);
  RONDO_TRY(find_overlaps(model, graphs));
  pthread_mutex_lock(&model->session->lock);
  for (size_t i = 0; i < model->graphs.count; i++) {
    model->graphs.items[i].overlap = graphs[i].overlap;
    model->graphs.items[i].eager_overlap = graphs[i].eager_overlap;
  }
  pthread_mutex_unlock(&model->session->lock);
  return RONDO_OK;
}
