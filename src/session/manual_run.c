/* SPDX-License-Identifier: MIT
 * Running graphs by hand, on streams that were taken out of serving; writing states; and what is known of models.
 */
#include <math.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "session/model_callback.h"
#include "session/model_instance.h"
#include "session/placement/parts_ahead.h"
#include "session/session.h"
#include "session/sizing/dispatch_tables.h"
#include "session/staging_memory.h"

/* Finds the model and keeps the lock; without it on failure. */
static rondo_status enter(const char *call, rondo_session *session, const char *name, rondo_session_model **out) {
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "model", name));
  pthread_mutex_lock(&session->lock);
  const rondo_status status = rondo_session_find(session, call, name, out);
  if (status != RONDO_OK) pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_status fail_range(const char *call, const char *what, size_t index, size_t count) {
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: there is no %s %zu of %zu", call, what, index,
                    count);
}

/* Values ---------------------------------------------------------------------------------------------------------- */

static rondo_status write_value(const char *call, const rondo_session_value *values, size_t count, size_t index,
                                rondo_model_value *out) {
  if (index >= count) return fail_range(call, "value", index, count);
  const rondo_model_value value = {
      .type = values[index].type, .name = values[index].name, .row_bytes = values[index].row_bytes};
  return rondo_versioned_write("rondo_model_value", &value, out, sizeof value);
}

static rondo_status get_value(const char *call, rondo_session *session, const char *model, bool of_inputs, size_t index,
                              rondo_model_value *out) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "out_value", out));
  RONDO_TRY(enter(call, session, model, &m));
  const rondo_status status = of_inputs ? write_value(call, m->inputs.items, m->inputs.count, index, out)
                                        : write_value(call, m->outputs.items, m->outputs.count, index, out);
  pthread_mutex_unlock(&session->lock);
  return status;
}

rondo_status rondo_session_get_input(rondo_session *session, const char *model, size_t index,
                                     rondo_model_value *out_value) {
  return get_value("rondo_session_get_input", session, model, true, index, out_value);
}

rondo_status rondo_session_get_output(rondo_session *session, const char *model, size_t index,
                                      rondo_model_value *out_value) {
  return get_value("rondo_session_get_output", session, model, false, index, out_value);
}

static rondo_status write_state(rondo_model_instance *place, const char *name, const void *data, size_t bytes) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = rondo_model_instance_write_state(place, name, data, bytes);
  rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  return status;
}

static bool is_input(const rondo_session_model *model, const char *name) {
  for (size_t i = 0; i < model->inputs.count; i++)
    if (strcmp(model->inputs.items[i].name, name) == 0) return true;
  return false;
}

static rondo_status check_state(const char *call, const rondo_session_model *m, const char *name) {
  if (m->body != NULL)
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                      "%s: model '%s' is a function, whose states are its own: write them where its body finds them",
                      call, m->name);
  if (!is_input(m, name)) return RONDO_OK;
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                    "%s: '%s' is an input of model '%s', not a state: give inputs with each request", call, name,
                    m->name);
}

rondo_status rondo_session_write(rondo_session *session, const char *model, const char *name, const void *data,
                                 size_t bytes) {
  static const char call[] = "rondo_session_write";
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(rondo_require(call, "data", data));
  RONDO_TRY(enter(call, session, model, &m));
  m->taken++; /* it stays */
  m->writes++;
  pthread_mutex_unlock(&session->lock);
  rondo_status status = check_state(call, m, name);
  if (status == RONDO_OK) {
    rondo_session_claim_all(session);
    status = write_state(&m->places[0], name, data, bytes);
    rondo_session_release_all(session);
  }
  pthread_mutex_lock(&session->lock);
  m->writes--;
  m->taken--;
  pthread_cond_broadcast(&session->change);
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_session_get_graph(rondo_session *session, const char *model, size_t index,
                                     rondo_model_graph *out_graph) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require("rondo_session_get_graph", "out_graph", out_graph));
  RONDO_TRY(enter("rondo_session_get_graph", session, model, &m));
  rondo_status status = RONDO_OK;
  if (index >= m->graphs.count) {
    status = fail_range("rondo_session_get_graph", "graph", index, m->graphs.count);
  } else {
    const rondo_session_graph *g = &m->graphs.items[index];
    const rondo_model_graph graph = {.nodes = g->nodes,
                                     .rows = g->rows,
                                     .run_us = g->run_us,
                                     .unrecorded_us = g->unrecorded_us,
                                     .exec_bytes = g->exec_bytes,
                                     .arena_bytes = g->arena_bytes,
                                     .launches = g->launches,
                                     .rows_run = g->rows_run,
                                     .capture_us = g->capture_us,
                                     .has_branches = g->has_branches,
                                     .current_us = g->current_us,
                                     .current_unrecorded_us = g->current_unrecorded_us,
                                     .readings = g->kept.readings,
                                     .trials = g->trials};
    status = rondo_versioned_write("rondo_model_graph", &graph, out_graph, sizeof graph);
  }
  pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_status check_time(const rondo_session_model *m, size_t graph, const char *what, double us) {
  if (isfinite(us) && us > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "rondo_session_set_times: the %s time of graph %zu of model '%s' is %g us: give a time above 0",
                    what, graph, m->name, us);
}

static rondo_status check_times(const rondo_session_model *m, const double *recorded, const double *unrecorded,
                                size_t count, double overlap) {
  static const char call[] = "rondo_session_set_times";
  const double least = 1.0 / m->session->options.streams;
  if (count != m->graphs.count || count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: model '%s' has %zu graphs, and %zu times were given: give one for each graph", call, m->name,
                      m->graphs.count, count);
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(check_time(m, i, "recorded", recorded[i]));
    if (unrecorded != NULL) RONDO_TRY(check_time(m, i, "unrecorded", unrecorded[i]));
  }
  if (overlap == 0 || (overlap >= least * (1 - 1e-9) && overlap <= 1)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: the overlap of model '%s' is %g: give %g to 1, or 0 for the measured one", call, m->name,
                    overlap, least);
}

static rondo_status set_times(rondo_session_model *m, const double *recorded, const double *unrecorded, size_t count,
                              double overlap) {
  RONDO_TRY(check_times(m, recorded, unrecorded, count, overlap));
  rondo_model_put_times(m, recorded, unrecorded, true);
  pthread_mutex_lock(&m->session->lock);
  for (size_t i = 0; i < count && overlap != 0; i++)
    m->graphs.items[i].overlap = m->graphs.items[i].unrecorded_overlap = overlap;
  pthread_mutex_unlock(&m->session->lock);
  m->unrecorded_extra_us = 0;
  return rondo_model_make_tables(m);
}

rondo_status rondo_session_set_times(rondo_session *session, const char *model, const double *recorded,
                                     const double *unrecorded, size_t count, double overlap) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require("rondo_session_set_times", "recorded", recorded));
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_set_times", model, &m));
  const rondo_status status = set_times(m, recorded, unrecorded, count, overlap);
  rondo_session_change_end(m);
  return status;
}

/* Streams by hand -------------------------------------------------------------------------------------------------- */

static rondo_status take_stream(const char *call, rondo_session *session, rondo_session_model *m, size_t number) {
  if (number >= session->options.streams) return fail_range(call, "stream", number, session->options.streams);
  if (session->capturing != NULL)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
        "%s: the session is in capture mode for model '%s', which records on every stream: end that first "
        "(rondo_session_capture_end)",
        call, session->capturing->name);
  if (m->idle.any == NULL || m->is_changing)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED, "%s: model '%s' %s", call, m->name,
                      m->is_changing ? "is being captured or changed: try again after that"
                                     : "has no graphs: capture it first (rondo_session_capture)");
  rondo_lane *lane = &session->lanes[number];
  if (lane->hold != RONDO_NOT_HELD)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "%s: stream %zu is taken already: give it back first (rondo_session_give_stream)", call, number);
  lane->hold = RONDO_BEING_TAKEN;
  pthread_cond_broadcast(&session->change); /* who waits for all lanes lets requests run again */
  rondo_lane_claim(lane);
  lane->hold = RONDO_TAKEN;
  return RONDO_OK;
}

rondo_status rondo_session_take_stream(rondo_session *session, const char *model, size_t number,
                                       rondo_stream **out_stream) {
  static const char call[] = "rondo_session_take_stream";
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "out_stream", out_stream));
  *out_stream = NULL;
  RONDO_TRY(enter(call, session, model, &m));
  const rondo_status status = take_stream(call, session, m, number);
  if (status == RONDO_OK) *out_stream = m->places[number].stream;
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* Models may be added meanwhile, in front, and none goes while a stream is taken. */
static rondo_status settle_lane(rondo_session *session, size_t number) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&session->lock);
  rondo_session_model *first = session->models;
  pthread_mutex_unlock(&session->lock);
  for (rondo_session_model *m = first; m != NULL; m = m->next)
    rondo_keep_first(&status, rondo_model_instance_synchronize(&m->places[number]));
  return status;
}

/* Of several threads that would give it, one does. */
static bool begin_to_give(rondo_session *session, size_t number) {
  rondo_lane *lane = &session->lanes[number];
  pthread_mutex_lock(&session->lock);
  const bool is_taken = lane->hold == RONDO_TAKEN;
  if (is_taken) lane->hold = RONDO_BEING_GIVEN;
  pthread_mutex_unlock(&session->lock);
  return is_taken;
}

rondo_status rondo_session_give_stream(rondo_session *session, size_t number) {
  static const char call[] = "rondo_session_give_stream";
  RONDO_TRY(rondo_session_front(call, session));
  if (number >= session->options.streams) return fail_range(call, "stream", number, session->options.streams);
  if (!begin_to_give(session, number))
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
        "%s: stream %zu was not taken, or was given back already: take it first (rondo_session_take_stream)", call,
        number);
  const rondo_status status = settle_lane(session, number);
  pthread_mutex_lock(&session->lock);
  session->lanes[number].hold = RONDO_NOT_HELD;
  rondo_lane_release(&session->lanes[number]);
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* The graph of a place, under the lock. */
static rondo_status find_in(const char *call, rondo_session_model *m, size_t index, size_t number,
                            rondo_model_instance **out_place, rondo_instance_graph **out) {
  const uint32_t streams = m->session->options.streams;
  if (index >= m->graphs.count) return fail_range(call, "graph", index, m->graphs.count);
  if (number >= streams) return fail_range(call, "stream", number, streams);
  *out_place = &m->places[number];
  *out = &m->places[number].graphs.items[index];
  return RONDO_OK;
}

/* Without the lock: it stays as long as a stream is taken. */
static rondo_status find_graph(const char *call, rondo_session *session, const char *model, size_t index, size_t number,
                               rondo_model_instance **out_place, rondo_instance_graph **out) {
  rondo_session_model *m;
  RONDO_TRY(enter(call, session, model, &m));
  const rondo_status status = find_in(call, m, index, number, out_place, out);
  pthread_mutex_unlock(&session->lock);
  return status;
}

rondo_status rondo_session_get_input_copy(rondo_session *session, const char *model, size_t index, size_t number,
                                          size_t input, rondo_input_copy *out_copy) {
  static const char call[] = "rondo_session_get_input_copy";
  rondo_session_model *m;
  rondo_model_instance *place = NULL;
  rondo_instance_graph *g = NULL;
  RONDO_TRY(rondo_require(call, "out_copy", out_copy));
  RONDO_TRY(enter(call, session, model, &m));
  rondo_status status = find_in(call, m, index, number, &place, &g);
  if (status == RONDO_OK && input >= m->inputs.count) status = fail_range(call, "input", input, m->inputs.count);
  if (status == RONDO_OK) *out_copy = g->copies[input];
  pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_status require_taken(const char *call, rondo_session *session, size_t number) {
  pthread_mutex_lock(&session->lock);
  const bool is_taken = number < session->options.streams && session->lanes[number].hold == RONDO_TAKEN;
  pthread_mutex_unlock(&session->lock);
  if (is_taken) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
                    "%s: stream %zu was not taken: take it first (rondo_session_take_stream)", call, number);
}

rondo_status rondo_session_launch(rondo_session *session, const char *model, size_t index, size_t number) {
  static const char call[] = "rondo_session_launch";
  rondo_model_instance *place = NULL;
  rondo_instance_graph *g = NULL;
  RONDO_TRY(find_graph(call, session, model, index, number, &place, &g));
  RONDO_TRY(require_taken(call, session, number));
  RONDO_TRY(rondo_model_instance_run_ahead(place, g, true));
  RONDO_TRY(rondo_model_instance_launch(place, g, true));
  place->last_graph = index + 1;
  pthread_mutex_lock(&session->lock);
  place->model->graphs.items[index].launches++;
  place->model->info.launches++;
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

rondo_status rondo_session_get_result(rondo_session *session, const char *model, size_t number, size_t output,
                                      const void **out_data) {
  static const char call[] = "rondo_session_get_result";
  rondo_model_instance *place = NULL;
  rondo_instance_graph *g = NULL;
  RONDO_TRY(rondo_require(call, "out_data", out_data));
  *out_data = NULL;
  RONDO_TRY(find_graph(call, session, model, 0, number, &place, &g));
  if (place->last_graph == 0)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_NO_OUTPUT,
        "%s: nothing of model '%s' was launched on stream %zu: launch it there first (rondo_session_launch)", call,
        model, number);
  if (output >= place->model->outputs.count) return fail_range(call, "output", output, place->model->outputs.count);
  g = &place->graphs.items[place->last_graph - 1];
  *out_data = rondo_stage_output(place->model, g->stage, g->stage_rows, output);
  return RONDO_OK;
}

/* Figures --------------------------------------------------------------------------------------------------------- */

/* States are the first anchor's, and what others have beside them; arenas those of each lane. */
static void count_bytes(const rondo_session_model *m, rondo_model_info *info) {
  for (uint32_t i = 0; i < m->session->options.streams; i++) {
    rondo_compiled_info compiled = {.struct_size = sizeof compiled};
    if (m->body == NULL && rondo_compiled_get_info(m->places[i].anchor.compiled, &compiled) == RONDO_OK)
      info->state_bytes += compiled.state_bytes - compiled.shared_bytes;
    info->ahead_state_bytes += rondo_ahead_states(m->places[i].anchor.ahead);
    info->arena_bytes += m->places[i].arena_bytes;
    info->ahead_arena_bytes += m->places[i].ahead_arena_bytes;
  }
  info->state_bytes += info->ahead_state_bytes;
  for (size_t i = 0; i < m->graphs.count; i++)
    info->exec_bytes += m->graphs.items[i].exec_bytes * m->session->options.streams;
}

rondo_status rondo_session_get_model_info(rondo_session *session, const char *model, rondo_model_info *out_info) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require("rondo_session_get_model_info", "out_info", out_info));
  RONDO_TRY(enter("rondo_session_get_model_info", session, model, &m));
  rondo_model_info info = m->info;
  info.graphs = (uint32_t)m->graphs.count;
  info.inputs = (uint32_t)m->inputs.count;
  info.outputs = (uint32_t)m->outputs.count;
  info.overlap = m->idle.any == NULL ? 1 : m->graphs.items[m->idle.any->largest].overlap;
  count_bytes(m, &info);
  const rondo_status status = rondo_versioned_write("rondo_model_info", &info, out_info, sizeof info);
  pthread_mutex_unlock(&session->lock);
  return status;
}

static void describe(const rondo_session_model *m, size_t rows, rondo_way *out_way, uint32_t *parts,
                     uint32_t *out_parts, double *out_us) {
  *out_way = RONDO_WAY_UNRECORDED;
  *out_parts = 0;
  *out_us = 0;
  const rondo_session_tables *tables = &m->idle;
  if (tables->any == NULL) return;
  rondo_decision_made d = rondo_table_decide(tables->any, rows);
  if (d.repeats > 0) d = rondo_table_decide(tables->recorded, rows);
  *out_us = (double)d.repeats * tables->any->largest_us;
  for (size_t i = 0; i < d.repeats && *out_parts < RONDO_SESSION_MAX_PARTS; i++)
    parts[(*out_parts)++] = tables->any->largest;
  for (size_t i = 0; d.entry != NULL && i < d.entry->count && *out_parts < RONDO_SESSION_MAX_PARTS; i++)
    parts[(*out_parts)++] = d.entry->graphs[i];
  if (d.entry != NULL) *out_us += (double)d.entry->us;
  *out_way = d.repeats > 0 ? RONDO_WAY_SPLIT : (rondo_way)d.entry->way;
}

rondo_status rondo_session_decide(rondo_session *session, const char *model, size_t rows, rondo_way *out_way,
                                  uint32_t *parts, uint32_t *out_parts, double *out_us) {
  static const char call[] = "rondo_session_decide";
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "out_way", out_way));
  RONDO_TRY(rondo_require(call, "parts", parts));
  RONDO_TRY(rondo_require(call, "out_parts", out_parts));
  RONDO_TRY(rondo_require(call, "out_us", out_us));
  if (rows == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a request of 0 rows: give at least 1", call);
  RONDO_TRY(enter(call, session, model, &m));
  describe(m, rows, out_way, parts, out_parts, out_us);
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}
