/* SPDX-License-Identifier: MIT
 * Trials: a graph that decisions pass over is never run, so that nothing would correct a time of it that was measured
 * beside load. Now and then it runs a batch for which several graphs, or an eager run, are said to be cheaper.
 * The batch must be alone: else there is no sample, and others would wait. The first trials of a graph take no longer
 * than measuring it did. Later ones take 1 % of the time that the model's batches run: each must be paid for before the
 * next, by what it took or is then known to take, as what it was thought to take may be what is wrong. Under the
 * session's lock.
 */
#include <math.h>

#include "session/session.h"
#include "session/session_internal.h"
#include "session/sizing/time_trial.h"

#define TRIALS_SHARE 0.01
enum { FIRST_TRIALS = 3 };

void rondo_trial_account(const rondo_batch *batch, uint64_t run_ns) {
  const double us = (double)run_ns / 1e3;
  rondo_session_model *model = batch->model;
  if (batch->reason == RONDO_WAY_TRIAL)
    model->trial_debt_us = fmin(us, model->graphs.items[batch->entry.graphs[0]].kept.us);
  else
    model->trial_debt_us = fmax(0, model->trial_debt_us - TRIALS_SHARE * us);
}

static bool has_alternative(const rondo_batch *batch) {
  if (batch->repeats > 0 || batch->model->has_given_times) return false;
  return batch->entry.way == RONDO_WAY_SPLIT || batch->entry.way == RONDO_WAY_UNRECORDED;
}

/* The smallest with room for so many rows: none of the larger ones is faster. NULL: there is none. */
static rondo_session_graph *find_graph(const rondo_session_model *model, size_t rows) {
  rondo_session_graph *found = NULL;
  for (size_t i = 0; i < model->graphs.count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    if (g->rows >= rows && (found == NULL || g->rows < found->rows)) found = g;
  }
  return found;
}

static bool may_try(const rondo_session_model *model, const rondo_session_graph *g) {
  return g->trials < FIRST_TRIALS || model->trial_debt_us <= 0;
}

/* The debt is that until it is known, or for good if the batch fails. */
static void begin_trial(rondo_batch *batch, rondo_session_graph *g) {
  rondo_session_model *model = batch->model;
  const uint8_t index = (uint8_t)(g - model->graphs.items);
  batch->entry =
      (rondo_dispatch_entry){.us = (float)g->current_us, .way = RONDO_WAY_RECORDED, .count = 1, .graphs = {index}};
  batch->is_eager = false;
  batch->parts = 1;
  batch->reason = RONDO_WAY_TRIAL;
  model->trial_debt_us = g->kept.us;
  model->info.trials++;
  g->trials++;
}

void rondo_batch_begin_trial(const rondo_stream_worker *worker, rondo_batch *batch) {
  if (!has_alternative(batch) || worker->session->waiting > 0 || !rondo_stream_worker_is_alone(worker)) return;
  rondo_session_graph *g = find_graph(batch->model, batch->rows);
  if (g != NULL && may_try(batch->model, g)) begin_trial(batch, g);
}
