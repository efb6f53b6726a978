/* SPDX-License-Identifier: MIT
 * How many rows are worth a graph for requests that run together. A device that one request does not fill does more
 * rows in the same time when a graph has more of them: twice, four times, ... the largest request is recorded on all
 * workers and measured while all of them run, as long as that makes a row cheaper. What was recorded for that is gone
 * afterwards.
 */
#include "session/session_internal.h"

#include "session/model_capture.h"
#include "session/model_instance.h"
#include "session/session.h"
#include "session/sizing/batch_sizes.h"
#include "session/sizing/choose_sizes.h"
#include "session/sizing/measure_graphs.h"

#define DOUBLING_GAIN 0.9 /* of what a row cost in half as many */
#define MAX_RUN_US 20000  /* what takes so long fills the device */
enum { DEFAULT_TIMES = 4 };

/* Of all workers' time, by the graph that was recorded last. */
static rondo_status measure_last(rondo_session_model *model, double *out_us) {
  const size_t last = model->graphs.count - 1;
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    RONDO_TRY(rondo_model_instance_write_zeros(&model->instances[i], last));
  return rondo_model_measure_share(model, last, out_us);
}

/* By a graph that stays for the time being. */
static rondo_status measure_row(rondo_session_model *model, size_t rows, double *out_us) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED; /* captures of others are left alone */
  RONDO_TRY(rondo_session_record(model, rows));
  rondo_session_claim_all(model->session);
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) {
    status = measure_last(model, out_us);
    rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  }
  rondo_session_release_all(model->session);
  *out_us /= (double)rows;
  return status;
}

/* No memory for a larger size is no failure: then there is none. */
static rondo_status record_doublings(rondo_session_model *model, size_t most, size_t most_rows, size_t *out_count) {
  double before = 0, us = 0;
  RONDO_TRY(measure_row(model, most, &before));
  for (size_t half = most; half <= most_rows / 2 && *out_count < RONDO_MOST_DOUBLINGS; half *= 2) {
    const rondo_status status = measure_row(model, 2 * half, &us);
    if (status == RONDO_OUT_OF_MEMORY) return RONDO_OK;
    RONDO_TRY(status);
    if (us > before * DOUBLING_GAIN) return RONDO_OK;
    (*out_count)++;
    before = us;
  }
  return RONDO_OK;
}

/* The graphs behind the first one. */
static rondo_status measure_doublings(rondo_session_model *model, size_t count, rondo_session_graph *out) {
  double run_us[RONDO_SESSION_MAX_SIZES];
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_model_measure_alone(model, run_us));
  for (size_t i = 0; i < count; i++) {
    out[i] = model->graphs.items[i + 1];
    out[i].run_us = run_us[i + 1];
  }
  return RONDO_OK;
}

static rondo_status find(rondo_session_model *model, size_t most, size_t most_rows, rondo_session_graph *out,
                         size_t *out_count) {
  RONDO_TRY(record_doublings(model, most, most_rows, out_count));
  return measure_doublings(model, *out_count, out);
}

/* Budgets were given for what there is to choose among: nothing is added to that which was not asked for. */
static size_t most_rows_of(const rondo_session_model *model, size_t most) {
  if (model->max_batch_rows > 0) return model->max_batch_rows;
  const bool has_budget = model->budget_bytes > 0 || model->budget_startup_us > 0;
  return has_budget || most > SIZE_MAX / DEFAULT_TIMES ? 0 : most * DEFAULT_TIMES;
}

rondo_status rondo_model_find_doublings(rondo_session_model *model, const rondo_session_graph *largest,
                                        rondo_session_graph *out, size_t *out_count) {
  const size_t most_rows = most_rows_of(model, largest->rows);
  *out_count = 0;
  if (largest->rows > most_rows / 2 || largest->run_us > MAX_RUN_US || model->session->options.max_batch == 1)
    return RONDO_OK;
  const rondo_status status = find(model, largest->rows, most_rows, out, out_count);
  rondo_session_drop_graphs_from(model, 0);
  return status;
}
