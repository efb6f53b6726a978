/* SPDX-License-Identifier: MIT
 * Running a part of a batch on a place: rows of requests to the device, a launch, rows of results back. Does not
 * allocate once warm and takes no lock. On a CPU device inputs are copied from where the requests have them; else they
 * are put together in staging memory, which the driver copies without a detour.
 */
#include <string.h>

#include "session/session_internal.h"

/* The rows of a request that are in the part: from `row` of the request on, to `at` in the part. */
typedef struct piece {
  const rondo_ticket *request;
  size_t row, at, rows;
} piece;

/* The next piece from request *index on; false when there is none. */
static bool next_piece(const rondo_part *part, size_t *index, piece *out) {
  const rondo_batch *batch = part->batch;
  for (; *index < batch->count; (*index)++) {
    const size_t begin = batch->first[*index], end = begin + batch->requests[*index]->rows;
    const size_t from = begin > part->first ? begin : part->first;
    const size_t to = end < part->first + part->rows ? end : part->first + part->rows;
    if (from >= to) continue;
    *out =
        (piece){.request = batch->requests[*index], .row = from - begin, .at = from - part->first, .rows = to - from};
    (*index)++;
    return true;
  }
  return false;
}

static const unsigned char *source_of(const piece *p, size_t input, size_t row_bytes) {
  return (const unsigned char *)p->request->inputs[input] + p->row * row_bytes;
}

static void gather(const rondo_part *part, size_t input, size_t row_bytes, unsigned char *to) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);)
    memcpy(to + p.at * row_bytes, source_of(&p, input, row_bytes), p.rows * row_bytes);
}

static void scatter(const rondo_part *part, size_t output, size_t row_bytes, const unsigned char *from) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);) {
    unsigned char *to = p.request->outputs[output];
    if (to != NULL) memcpy(to + p.row * row_bytes, from + p.at * row_bytes, p.rows * row_bytes);
  }
}

/* Feeding --------------------------------------------------------------------------------------------------------- */

/* Padding is zeros: an index that is in every table, and the same result whatever ran before. */
static rondo_status feed_direct(const rondo_place_graph *g, rondo_stream *stream, const rondo_part *part, size_t input,
                                size_t row_bytes) {
  unsigned char *to = g->copies[input].copy.dst;
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);)
    RONDO_TRY(rondo_copy_async(stream, to + p.at * row_bytes, source_of(&p, input, row_bytes), p.rows * row_bytes));
  if (part->rows == g->rows) return RONDO_OK;
  const rondo_fill padding = {
      .dst = to + part->rows * row_bytes, .element_bytes = 1, .width = (g->rows - part->rows) * row_bytes};
  return rondo_fill_async(stream, &padding);
}

static rondo_status feed_staged(const rondo_session_model *model, const rondo_place_graph *g, rondo_stream *stream,
                                const rondo_part *part, size_t input) {
  const size_t row_bytes = model->inputs.items[input].row_bytes;
  unsigned char *stage = rondo_stage_input(model, g->stage, g->stage_rows, input);
  gather(part, input, row_bytes, stage);
  memset(stage + part->rows * row_bytes, 0, (g->rows - part->rows) * row_bytes);
  return rondo_copy_async(stream, g->copies[input].copy.dst, stage, g->rows * row_bytes);
}

static rondo_status feed(const rondo_session_model *model, const rondo_place_graph *g, rondo_stream *stream,
                         const rondo_part *part) {
  for (size_t i = 0; i < model->inputs.count; i++) {
    RONDO_TRY(model->session->is_cuda ? feed_staged(model, g, stream, part, i)
                                      : feed_direct(g, stream, part, i, model->inputs.items[i].row_bytes));
  }
  return RONDO_OK;
}

/* Running --------------------------------------------------------------------------------------------------------- */

static rondo_status queue_recorded(const rondo_place *place, const rondo_place_graph *g, const rondo_part *part) {
  rondo_stream *stream = rondo_compiled_stream(g->compiled);
  RONDO_TRY(feed(place->model, g, stream, part));
  return rondo_exec_launch(g->exec, stream);
}

/* What was queued is waited for in any case: it reads what belongs to requests. */
static rondo_status run_recorded(const rondo_place *place, const rondo_part *part) {
  const rondo_session_model *model = place->model;
  const rondo_place_graph *g = &place->graphs.items[part->graph];
  const rondo_status queued = queue_recorded(place, g, part);
  rondo_saved_error error;
  if (queued != RONDO_OK) rondo_error_save(&error);
  const rondo_status waited = rondo_compiled_synchronize(g->compiled);
  if (queued != RONDO_OK) return rondo_error_raise(&error);
  RONDO_TRY(waited);
  for (size_t i = 0; i < model->outputs.count; i++)
    scatter(part, i, model->outputs.items[i].row_bytes, rondo_stage_output(model, g->stage, g->stage_rows, i));
  return RONDO_OK;
}

static rondo_status write_inputs(rondo_place *place, rondo_compiled *compiled, const rondo_part *part) {
  const rondo_session_model *model = place->model;
  for (size_t i = 0; i < model->inputs.count; i++) {
    const rondo_session_value *value = &model->inputs.items[i];
    unsigned char *stage = rondo_stage_input(model, place->plain.memory, place->plain.rows, i);
    gather(part, i, value->row_bytes, stage);
    RONDO_TRY(rondo_compiled_write(compiled, value->name, stage, value->row_bytes * part->rows));
  }
  return RONDO_OK;
}

static rondo_status run_unrecorded(rondo_place *place, const rondo_part *part) {
  const rondo_session_model *model = place->model;
  rondo_compiled *compiled = NULL;
  RONDO_TRY(rondo_place_program_for(place, part->rows, &compiled));
  RONDO_TRY(rondo_place_reserve_plain(place, part->rows));
  RONDO_TRY(write_inputs(place, compiled, part));
  RONDO_TRY(rondo_compiled_run_unrecorded(compiled));
  for (size_t i = 0; i < model->outputs.count; i++) {
    const rondo_session_value *value = &model->outputs.items[i];
    unsigned char *stage = rondo_stage_output(model, place->plain.memory, place->plain.rows, i);
    RONDO_TRY(rondo_compiled_read(compiled, value->name, stage, value->row_bytes * part->rows));
    scatter(part, i, value->row_bytes, stage);
  }
  return RONDO_OK;
}

/* Captures of other threads are left alone. */
rondo_status rondo_part_run(rondo_place *place, const rondo_part *part) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = part->graph == RONDO_UNRECORDED_PART ? run_unrecorded(place, part) : run_recorded(place, part);
  const rondo_status back = rondo_capture_exchange_thread_mode(&mode);
  return status == RONDO_OK ? back : status;
}
