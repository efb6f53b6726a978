/* SPDX-License-Identifier: MIT
 * What a model will take, said before it is captured: each worker's arenas and staging memory by the plans that
 * capturing will make, and execs by one that is recorded for it.
 */
#include <string.h>

#include "base/versioned_struct.h"
#include "session/model_capture.h"
#include "session/model_instance.h"
#include "session/session.h"
#include "session/session_internal.h"

static const char call[] = "rondo_session_plan";

static rondo_status fail_count(size_t count) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: %zu sizes: give 1 to %d", call, count,
                    RONDO_SESSION_MAX_SIZES);
}

static rondo_status fail_size(const size_t *rows, size_t index) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: rows[%zu] is %zu: %s", call, index, rows[index],
                    rows[index] == 0 ? "give sizes above 0" : "give each size once");
}

/* Descending, as they are recorded. */
static rondo_status sort_sizes(const size_t *rows, size_t count, size_t *sorted) {
  if (count == 0 || count > RONDO_SESSION_MAX_SIZES) return fail_count(count);
  for (size_t i = 0; i < count; i++) {
    size_t at = i;
    for (; at > 0 && sorted[at - 1] < rows[i]; at--) sorted[at] = sorted[at - 1];
    if (rows[i] == 0 || (at > 0 && sorted[at - 1] == rows[i])) return fail_size(rows, i);
    sorted[at] = rows[i];
  }
  return RONDO_OK;
}

/* One exec is made and destroyed. */
static rondo_status measure_exec(rondo_session_model *model, size_t rows, uint64_t *out_bytes) {
  rondo_session_graph graph;
  RONDO_TRY(rondo_session_record_on(model, 0, rows, &graph));
  *out_bytes = graph.exec_bytes;
  rondo_session_drop_graphs_from(model, model->graphs.count);
  return RONDO_OK;
}

static rondo_status plan_instances(rondo_session_model *model, const size_t *rows, size_t count,
                                   rondo_model_bytes *out) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < model->session->options.streams && status == RONDO_OK; i++)
    status = rondo_model_instance_plan(&model->instances[i], rows, count, out);
  rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  return status;
}

static rondo_status plan(rondo_session_model *model, const size_t *rows, size_t count, rondo_model_bytes *out) {
  size_t sorted[RONDO_SESSION_MAX_SIZES];
  if (model->body != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "%s: model '%s' is a function: what it takes is known when it has run: capture it, and call "
                      "rondo_session_get_model_info",
                      call, model->name);
  if (model->graphs.count > 0)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                      "%s: model '%s' has %zu graphs: rondo_session_get_model_info says what they take", call,
                      model->name, model->graphs.count);
  RONDO_TRY(sort_sizes(rows, count, sorted));
  rondo_session_claim_all(model->session);
  const rondo_status status = plan_instances(model, sorted, count, out);
  rondo_session_release_all(model->session);
  RONDO_TRY(status);
  RONDO_TRY(measure_exec(model, sorted[count - 1], &out->exec_bytes));
  out->exec_bytes *= count * model->session->options.streams;
  return RONDO_OK;
}

rondo_status rondo_session_plan(rondo_session *session, const char *model, const size_t *rows, size_t count,
                                rondo_model_bytes *out_bytes) {
  rondo_session_model *found;
  rondo_model_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_require(call, "rows", rows));
  RONDO_TRY(rondo_require(call, "out_bytes", out_bytes));
  RONDO_TRY(rondo_versioned_check("rondo_model_bytes", out_bytes, sizeof *out_bytes));
  RONDO_TRY(rondo_session_change_begin(session, call, model, &found));
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  const rondo_status status = plan(found, rows, count, &bytes);
  rondo_session_change_end(found);
  RONDO_TRY(status);
  RONDO_TRY(rondo_session_get_model_info(session, model, &info));
  bytes.state_bytes = info.state_bytes;
  return rondo_versioned_write("rondo_model_bytes", &bytes, out_bytes, sizeof bytes);
}
