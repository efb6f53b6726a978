/* SPDX-License-Identifier: MIT
 * Sizes for requests that run together. A device that one request does not fill does more rows in the same time when a
 * graph has more of them: sizes beyond the largest request are recorded on all lanes and measured while all of them
 * run, and are worth having as long as that makes a row cheaper. What was recorded for that is gone afterwards.
 */
#include "session/session_internal.h"

#define WORTH 0.9 /* of what a row cost in half as many */

/* Of all lanes' time, by the graph that was recorded last. */
static rondo_status measure_last(rondo_session_model *model, double *out_us) {
  const size_t last = model->graphs.count - 1;
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    RONDO_TRY(rondo_place_write_zeros(&model->places[i], last));
  return rondo_model_measure_share(model, last, out_us);
}

static rondo_status price_row(rondo_session_model *model, size_t rows, double *out_us) {
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
static rondo_status find(rondo_session_model *model, size_t most, size_t room, size_t *rows, size_t *out_count) {
  double before = 0, us = 0;
  RONDO_TRY(price_row(model, most, &before));
  for (size_t larger = most; larger <= model->max_batch_rows / 2 && *out_count < room;) {
    larger *= 2;
    const rondo_status status = price_row(model, larger, &us);
    if (status == RONDO_OUT_OF_MEMORY) return RONDO_OK;
    RONDO_TRY(status);
    if (us > before * WORTH) return RONDO_OK;
    rows[(*out_count)++] = larger;
    before = us;
  }
  return RONDO_OK;
}

rondo_status rondo_model_find_batch_sizes(rondo_session_model *model, size_t most, size_t room, size_t *rows,
                                          size_t *out_count) {
  *out_count = 0;
  if (most > model->max_batch_rows / 2 || model->session->options.max_batch == 1) return RONDO_OK;
  const rondo_status status = find(model, most, room, rows, out_count);
  rondo_session_take_back(model, 0);
  model->graphs.count = 0;
  return status;
}
