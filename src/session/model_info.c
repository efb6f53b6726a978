/* SPDX-License-Identifier: MIT
 * Queries and settings of a model: inputs and outputs, states, graphs, times, counters, and how a number of rows is
 * dispatched. Queries hold the lock; writing a state claims all workers.
 */
#include <math.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "session/model_instance.h"
#include "session/model_lengths.h"
#include "session/placement/upstream_parts.h"
#include "session/serve/cache_slots.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/sizing/model_times.h"

/* Values ----------------------------------------------------------------------------------------------------------- */

static rondo_status write_value(const char *call, const rondo_session_value *values, size_t count, size_t index,
                                rondo_model_value *out) {
  if (index >= count) return rondo_session_fail_range(call, "value", index, count);
  const rondo_model_value value = {.type = values[index].type,
                                   .name = values[index].name,
                                   .row_bytes = values[index].row_bytes,
                                   .position_bytes = values[index].position_bytes};
  return rondo_versioned_write("rondo_model_value", &value, out, sizeof value);
}

static rondo_status get_value(const char *call, rondo_session *session, const char *model, bool of_inputs, size_t index,
                              rondo_model_value *out) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "out_value", out));
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  const rondo_status status = of_inputs ? write_value(call, m->inputs.items, m->given_inputs, index, out)
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

rondo_status rondo_session_get_length(rondo_session *session, const char *model, size_t index,
                                      rondo_model_length *out_length) {
  static const char call[] = "rondo_session_get_length";
  rondo_session_model *m;
  size_t at = 0;
  RONDO_TRY(rondo_require(call, "out_length", out_length));
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  const rondo_session_model *end = rondo_model_lengths_end(m->network);
  for (m = m->network; m != end && at < index; m = m->next) at++;
  const bool is_there = m != end && m->length > 0;
  const rondo_model_length length = {.length = is_there ? m->length : 0, .name = is_there ? m->name : NULL};
  const rondo_status status = is_there ? rondo_versioned_write("rondo_model_length", &length, out_length, sizeof length)
                                       : rondo_session_fail_range(call, "length", index, at);
  pthread_mutex_unlock(&session->lock);
  return status;
}

static bool is_input(const rondo_session_model *model, const char *name) {
  for (size_t i = 0; i < model->inputs.count; i++)
    if (strcmp(model->inputs.items[i].name, name) == 0) return true;
  return false;
}

static rondo_status check_state(const char *call, const rondo_session_model *m, const char *name) {
  if (m->body != NULL)
    return rondo_fail(
        RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
        "%s: model '%s' is a function, which owns its states: write them in the memory that its body uses", call,
        m->name);
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
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  m = m->head;
  m->in_use++; /* so the model cannot be removed */
  m->writes++;
  pthread_mutex_unlock(&session->lock);
  rondo_status status = check_state(call, m, name);
  if (status == RONDO_OK) {
    rondo_session_claim_all(session);
    status = rondo_model_instance_write_state(&m->instances[0], name, data, bytes);
    rondo_session_release_all(session);
  }
  pthread_mutex_lock(&session->lock);
  m->writes--;
  m->in_use--;
  pthread_cond_broadcast(&session->change);
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_session_get_graph(rondo_session *session, const char *model, size_t index,
                                     rondo_model_graph *out_graph) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require("rondo_session_get_graph", "out_graph", out_graph));
  RONDO_TRY(rondo_session_enter("rondo_session_get_graph", session, model, &m));
  rondo_status status = RONDO_OK;
  if (index >= m->graphs.count) {
    status = rondo_session_fail_range("rondo_session_get_graph", "graph", index, m->graphs.count);
  } else {
    rondo_model_graph graph = m->graphs.items[index].info;
    graph.samples = m->graphs.items[index].tracked.samples;
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

static rondo_status check_times(const rondo_session_model *m, const double *recorded, const double *eager, size_t count,
                                double overlap) {
  static const char call[] = "rondo_session_set_times";
  const double least = 1.0 / m->session->options.streams;
  if (count != m->graphs.count || count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: model '%s' has %zu graphs, and %zu times were given: give one for each graph", call, m->name,
                      m->graphs.count, count);
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(check_time(m, i, "recorded", recorded[i]));
    if (eager != NULL) RONDO_TRY(check_time(m, i, "eager", eager[i]));
  }
  if (overlap == 0 || (overlap >= least * (1 - 1e-9) && overlap <= 1)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: the overlap of model '%s' is %g: give %g to 1, or 0 for the measured one", call, m->name,
                    overlap, least);
}

static rondo_status set_times(rondo_session_model *m, const double *recorded, const double *eager, size_t count,
                              double overlap) {
  RONDO_TRY(check_times(m, recorded, eager, count, overlap));
  rondo_model_set_times(m, recorded, eager, true);
  pthread_mutex_lock(&m->session->lock);
  for (size_t i = 0; i < count && overlap != 0; i++)
    m->graphs.items[i].overlap = m->graphs.items[i].eager_overlap = overlap;
  pthread_mutex_unlock(&m->session->lock);
  m->eager_extra_us = 0;
  return rondo_model_make_tables(m);
}

rondo_status rondo_session_set_times(rondo_session *session, const char *model, const double *recorded,
                                     const double *eager, size_t count, double overlap) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require("rondo_session_set_times", "recorded", recorded));
  RONDO_TRY(rondo_session_change_begin(session, "rondo_session_set_times", model, &m));
  const rondo_status status = set_times(m, recorded, eager, count, overlap);
  rondo_session_change_end(m);
  return status;
}

/* Counters --------------------------------------------------------------------------------------------------------- */

/* The lengths of a model share the arenas of a stream; the one that compiled last has counted all. */
static uint64_t arena_bytes_on(const rondo_session_model *m, uint32_t worker) {
  const rondo_session_model *end = rondo_model_group_end(m->head);
  uint64_t most = 0;
  for (const rondo_session_model *at = m->head; at != end; at = at->next)
    if (at->instances[worker].arena_bytes > most) most = at->instances[worker].arena_bytes;
  return most;
}

/* Adds up the states of all anchors without counting shared ones twice, the arenas, and the execs. The head has the
 * states. */
static void count_bytes(const rondo_session_model *m, rondo_model_info *info) {
  for (uint32_t i = 0; i < m->session->options.streams; i++) {
    rondo_compiled_info compiled = {.struct_size = sizeof compiled};
    if (m->body == NULL && rondo_compiled_get_info(m->head->instances[i].anchor.compiled, &compiled) == RONDO_OK)
      info->state_bytes += compiled.state_bytes - compiled.shared_bytes;
    info->upstream_state_bytes += rondo_upstream_state_bytes(m->instances[i].anchor.upstream);
    info->arena_bytes += arena_bytes_on(m, i);
    info->upstream_arena_bytes += m->instances[i].upstream_arena_bytes;
  }
  info->state_bytes += info->upstream_state_bytes;
  for (size_t i = 0; i < m->graphs.count; i++)
    info->exec_bytes += m->graphs.items[i].info.exec_bytes * m->session->options.streams;
}

static void count_sequences(const rondo_cache_slots *slots, rondo_model_info *info) {
  info->slots = slots->count;
  info->slot_bytes = slots->slot_bytes;
  info->sequences = slots->open;
  info->evicted_sequences = slots->evicted;
  info->no_slot = slots->refused;
}

rondo_status rondo_session_get_model_info(rondo_session *session, const char *model, rondo_model_info *out_info) {
  rondo_session_model *m;
  RONDO_TRY(rondo_require("rondo_session_get_model_info", "out_info", out_info));
  RONDO_TRY(rondo_session_enter("rondo_session_get_model_info", session, model, &m));
  rondo_model_info info = m->info;
  info.graphs = (uint32_t)m->graphs.count;
  info.inputs = (uint32_t)m->given_inputs;
  info.outputs = (uint32_t)m->outputs.count;
  info.overlap = m->idle.any == NULL ? 1 : m->graphs.items[m->idle.any->largest].overlap;
  count_bytes(m, &info);
  if (m->head->slots != NULL) count_sequences(m->head->slots, &info);
  const rondo_status status = rondo_versioned_write("rondo_model_info", &info, out_info, sizeof info);
  pthread_mutex_unlock(&session->lock);
  return status;
}

static void describe(const rondo_session_model *m, size_t rows, rondo_run_mode *out_mode, uint32_t *parts,
                     uint32_t *out_parts, double *out_us) {
  *out_mode = RONDO_RUN_EAGER;
  *out_parts = 0;
  *out_us = 0;
  const rondo_dispatch_tables *tables = &m->idle;
  if (tables->any == NULL) return;
  rondo_dispatch d = rondo_dispatch_table_find(tables->any, rows);
  if (d.repeats > 0) d = rondo_dispatch_table_find(tables->recorded, rows);
  *out_us = (double)d.repeats * tables->any->largest_us;
  for (size_t i = 0; i < d.repeats && *out_parts < RONDO_SESSION_MAX_PARTS; i++)
    parts[(*out_parts)++] = tables->any->largest;
  for (size_t i = 0; d.entry != NULL && i < d.entry->count && *out_parts < RONDO_SESSION_MAX_PARTS; i++)
    parts[(*out_parts)++] = d.entry->graphs[i];
  if (d.entry != NULL) *out_us += (double)d.entry->us;
  *out_mode = d.repeats > 0 ? RONDO_RUN_SPLIT : (rondo_run_mode)d.entry->mode;
}

rondo_status rondo_session_get_dispatch(rondo_session *session, const char *model, size_t rows,
                                        rondo_run_mode *out_mode, uint32_t *parts, uint32_t *out_parts,
                                        double *out_us) {
  static const char call[] = "rondo_session_get_dispatch";
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "out_mode", out_mode));
  RONDO_TRY(rondo_require(call, "parts", parts));
  RONDO_TRY(rondo_require(call, "out_parts", out_parts));
  RONDO_TRY(rondo_require(call, "out_us", out_us));
  if (rows == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a request of 0 rows: give at least 1", call);
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  describe(m, rows, out_mode, parts, out_parts, out_us);
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}
