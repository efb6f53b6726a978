/* SPDX-License-Identifier: MIT
 * Running a part of a batch on a place: rows of requests to the device, a launch, rows of results back. Does not
 * allocate once warm and takes no lock but for times (utilisation.c). Inputs are copied from where the requests have
 * them on a CPU device, and where that is host memory of the device's; other memory the driver would copy by a detour
 * and wait, so that its rows are put together in staging memory first. All of it, padding too, is one list of copies,
 * which a GPU does by one kernel in front of the work (exec/stream/copy_batch.h). Where parts run ahead, what they read
 * is put there always, for them to copy; they run while the other inputs are copied, and the launch comes behind what
 * they hand over.
 */
#include <string.h>

#include "base/clock.h"
#include "session/function_instance.h"
#include "session/model_instance.h"
#include "session/placement/parts_ahead.h"
#include "session/serve/batch_part.h"
#include "session/serve/utilisation.h"
#include "session/staging_memory.h"
#include "tensor/run/arena_use.h"

/* The rows of a request that are in the part: from `row` of the request on, to `at` in the part. */
typedef struct piece {
  const rondo_slot *request;
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

/* Where the rows of an input go: to `address`, which has room for `rows`, if need be by way of `stage`. */
typedef struct input_place {
  unsigned char *address;
  unsigned char *stage;
  size_t rows, row_bytes;
} input_place;

static bool is_direct(const rondo_part *part, size_t input) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);)
    if ((p.request->direct >> input & 1) == 0) return false;
  return true;
}

/* Of all inputs of so many rows. */
static size_t bytes_of(const rondo_session_model *model, size_t rows) {
  size_t bytes = 0;
  for (size_t i = 0; i < model->inputs.count; i++) bytes += model->inputs.items[i].row_bytes * rows;
  return bytes;
}

static rondo_status copy_direct(const input_place *to, rondo_copy_list *list, const rondo_part *part, size_t input) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);)
    RONDO_TRY(rondo_copy_list_add(list, to->address + p.at * to->row_bytes, source_of(&p, input, to->row_bytes),
                                  p.rows * to->row_bytes));
  return RONDO_OK;
}

/* Padding is zeros: an index that is in every table, and the same result whatever ran before. */
static rondo_status fill_padding(const input_place *to, rondo_copy_list *list, const rondo_part *part) {
  return part->rows == to->rows ? RONDO_OK
                                : rondo_copy_list_add_zeros(list, to->address + part->rows * to->row_bytes,
                                                            (to->rows - part->rows) * to->row_bytes);
}

/* With padding. */
static void put_together(const input_place *to, const rondo_part *part, size_t input) {
  gather(part, input, to->row_bytes, to->stage);
  memset(to->stage + part->rows * to->row_bytes, 0, (to->rows - part->rows) * to->row_bytes);
}

static rondo_status copy_staged(const input_place *to, rondo_copy_list *list) {
  return rondo_copy_list_add(list, to->address, to->stage, to->rows * to->row_bytes);
}

static rondo_status feed_staged(const input_place *to, rondo_copy_list *list, const rondo_part *part, size_t input) {
  put_together(to, part, input);
  return copy_staged(to, list);
}

/* Rows of inputs that parts ahead read. */
static void feed_ahead(const rondo_ahead *ahead, const rondo_stage *stage, const rondo_part *part) {
  for (size_t i = 0; i < ahead->model->inputs.count; i++) {
    const input_place to = {.stage = rondo_stage_input(ahead->model, stage->memory, stage->rows, i),
                            .rows = ahead->rows,
                            .row_bytes = ahead->model->inputs.items[i].row_bytes};
    if (rondo_ahead_reads(ahead, i)) put_together(&to, part, i);
  }
}

/* Running --------------------------------------------------------------------------------------------------------- */

/* What was queued is waited for in any case: it reads what belongs to requests. */
static rondo_status wait_for(const rondo_model_instance *place, const rondo_placed *program, rondo_status queued) {
  rondo_saved_error error;
  if (queued != RONDO_OK) rondo_error_save(&error);
  const rondo_status waited = program == NULL || program->compiled == NULL
                                  ? rondo_stream_synchronize(place->stream)
                                  : rondo_compiled_synchronize(program->compiled);
  return queued == RONDO_OK ? waited : rondo_error_raise(&error);
}

static rondo_lane *lane_of(const rondo_model_instance *place) { return &place->model->session->lanes[place->lane]; }

static input_place input_place_of(const rondo_model_instance *place, const rondo_instance_graph *g, size_t input) {
  const rondo_session_model *model = place->model;
  return (input_place){.address = g->copies[input].copy.dst,
                       .stage = rondo_stage_input(model, g->stage, g->stage_rows, input),
                       .rows = g->rows,
                       .row_bytes = model->inputs.items[input].row_bytes};
}

/* Of inputs that nothing ahead reads; a graph copies the others itself. Padding of all of them comes before the copies:
 * between one and the other, where each is by itself, a GPU changes engines and waits. */
static rondo_status feed_recorded(const rondo_model_instance *place, const rondo_instance_graph *g,
                                  const rondo_part *part) {
  const size_t inputs = place->model->inputs.count;
  rondo_copy_list *list = &lane_of(place)->copies;
  uint64_t direct = 0;
  rondo_copy_list_begin(list, place->stream, bytes_of(place->model, g->rows));
  for (size_t i = 0; i < inputs; i++) {
    if (rondo_ahead_reads(g->program.ahead, i) || !is_direct(part, i)) continue;
    const input_place to = input_place_of(place, g, i);
    direct |= UINT64_C(1) << i;
    RONDO_TRY(fill_padding(&to, list, part));
  }
  for (size_t i = 0; i < inputs; i++) {
    if (rondo_ahead_reads(g->program.ahead, i)) continue;
    const input_place to = input_place_of(place, g, i);
    RONDO_TRY((direct >> i & 1) != 0 ? copy_direct(&to, list, part, i) : feed_staged(&to, list, part, i));
  }
  return rondo_copy_list_end(list);
}

/* The parts ahead run while the other inputs are copied. */
static rondo_status feed_behind(const rondo_model_instance *place, const rondo_instance_graph *g,
                                const rondo_part *part) {
  const rondo_ahead *ahead = g->program.ahead;
  feed_ahead(ahead, &(rondo_stage){.memory = g->stage, .rows = g->stage_rows}, part);
  rondo_status status = rondo_ahead_replay(ahead);
  if (status == RONDO_OK) status = feed_recorded(place, g, part);
  return rondo_ahead_take(ahead, status);
}

static rondo_status queue_recorded(rondo_model_instance *place, const rondo_instance_graph *g, const rondo_part *part) {
  rondo_lane *lane = lane_of(place);
  const uint64_t begin_ns = rondo_usage_read_clock(lane->session);
  RONDO_TRY(g->program.ahead == NULL ? feed_recorded(place, g, part) : feed_behind(place, g, part));
  RONDO_TRY(rondo_usage_begin(lane, place->stream));
  RONDO_TRY(rondo_model_instance_launch(place, g, true));
  RONDO_TRY(rondo_usage_end(lane, place->stream));
  lane->queueing_ns = rondo_usage_read_clock(lane->session) - begin_ns;
  rondo_usage_take(lane);
  return RONDO_OK;
}

static void scatter_outputs(const rondo_session_model *model, const rondo_stage *stage, const rondo_part *part) {
  for (size_t i = 0; i < model->outputs.count; i++)
    scatter(part, i, model->outputs.items[i].row_bytes, rondo_stage_output(model, stage->memory, stage->rows, i));
}

static rondo_status run_recorded(rondo_model_instance *place, const rondo_part *part) {
  const rondo_session_model *model = place->model;
  const rondo_instance_graph *g = &place->graphs.items[part->graph];
  rondo_lane *lane = lane_of(place);
  lane->part_begin_ns = rondo_clock_ns();
  RONDO_TRY(wait_for(place, &g->program, queue_recorded(place, g, part)));
  lane->part_end_ns = rondo_clock_ns();
  rondo_usage_keep(lane);
  scatter_outputs(model, &(rondo_stage){.memory = g->stage, .rows = g->stage_rows}, part);
  return RONDO_OK;
}

/* There is no padding. */
static rondo_status feed_plain_input(const input_place *to, rondo_copy_list *list, const rondo_part *part,
                                     size_t input) {
  return is_direct(part, input) ? copy_direct(to, list, part, input) : feed_staged(to, list, part, input);
}

/* A function's inputs have the offsets of the stage. */
static rondo_status feed_plain(const rondo_model_instance *place, const rondo_placed *program, const rondo_part *part) {
  const rondo_session_model *model = place->model;
  const rondo_stage *stage = &place->plain;
  rondo_copy_list *list = &lane_of(place)->copies;
  rondo_copy_list_begin(list, place->stream, bytes_of(model, part->rows));
  for (size_t i = 0; i < model->inputs.count; i++) {
    const bool is_ahead = program != NULL && rondo_ahead_reads(program->ahead, i);
    const input_place to = {.address = program == NULL ? rondo_stage_input(model, stage->device_memory, stage->rows, i)
                                                       : program->addresses[i],
                            .stage = rondo_stage_input(model, stage->memory, stage->rows, i),
                            .rows = part->rows,
                            .row_bytes = model->inputs.items[i].row_bytes};
    if (to.address == NULL) continue;
    RONDO_TRY(is_ahead ? copy_staged(&to, list) : feed_plain_input(&to, list, part, i));
  }
  return rondo_copy_list_end(list);
}

static rondo_status feed_plain_behind(const rondo_model_instance *place, const rondo_placed *program,
                                      const rondo_part *part) {
  const rondo_ahead *ahead = program->ahead;
  feed_ahead(ahead, &place->plain, part);
  rondo_status status = rondo_ahead_run(ahead, &place->plain, place->plain_handover.memory);
  if (status == RONDO_OK) status = feed_plain(place, program, part);
  RONDO_TRY(rondo_ahead_take(ahead, status));
  return rondo_ahead_hand_over(ahead, place->stream, place->plain_handover.memory);
}

static rondo_status run_program(const rondo_model_instance *place, const rondo_placed *program, size_t rows) {
  const rondo_session_model *model = place->model;
  const rondo_stage *stage = &place->plain;
  RONDO_TRY(rondo_compiled_run_unrecorded(program->compiled));
  for (size_t i = 0; i < model->outputs.count; i++) {
    const void *address = program->addresses[model->inputs.count + i];
    if (address != NULL)
      RONDO_TRY(rondo_copy_async(place->stream, rondo_stage_output(model, stage->memory, stage->rows, i), address,
                                 model->outputs.items[i].row_bytes * rows));
  }
  return RONDO_OK;
}

static rondo_status queue_unrecorded(rondo_model_instance *place, const rondo_placed *program, const rondo_part *part) {
  if (program != NULL) rondo_compiled_claim_inputs(program->compiled);
  RONDO_TRY(program == NULL || program->ahead == NULL ? feed_plain(place, program, part)
                                                      : feed_plain_behind(place, program, part));
  RONDO_TRY(rondo_usage_begin(lane_of(place), place->stream));
  RONDO_TRY(program == NULL ? rondo_function_instance_call(place, NULL, &place->plain, part->rows)
                            : run_program(place, program, part->rows));
  RONDO_TRY(rondo_usage_end(lane_of(place), place->stream));
  rondo_usage_take(lane_of(place));
  return RONDO_OK;
}

static rondo_status run_unrecorded(rondo_model_instance *place, const rondo_part *part) {
  const rondo_placed *program = NULL;
  if (place->tree == NULL) RONDO_TRY(rondo_model_instance_program_for(place, part->rows, &program));
  RONDO_TRY(rondo_model_instance_reserve_plain(place, part->rows, program == NULL ? NULL : program->ahead));
  RONDO_TRY(wait_for(place, program, queue_unrecorded(place, program, part)));
  rondo_usage_keep(lane_of(place));
  scatter_outputs(place->model, &place->plain, part);
  return RONDO_OK;
}

/* Captures of other threads are left alone. */
rondo_status rondo_part_run(rondo_model_instance *place, const rondo_part *part) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = part->graph == RONDO_UNRECORDED_PART ? run_unrecorded(place, part) : run_recorded(place, part);
  const rondo_status back = rondo_capture_exchange_thread_mode(&mode);
  return status == RONDO_OK ? back : status;
}
