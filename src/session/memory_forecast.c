/* SPDX-License-Identifier: MIT
 * Forecasts the memory of a model before it is captured. Arenas and staging memory are planned as for a capture. The
 * size of an exec is measured: one is recorded and destroyed. The model is changing, and all workers are claimed while
 * plans are made.
 */

#include "base/versioned_struct.h"
#include "session/model_capture.h"
#include "session/model_instance.h"
#include "session/placement/upstream_parts.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "session/session_model.h"
#include "session/staging_memory.h"
#include "tensor/compile/compile.h"
#include "tensor/run/arena_use.h"

static const char call[] = "rondo_session_plan";

/* One instance ----------------------------------------------------------------------------------------------------- */

/* The largest arena on each device so far, and the largest memory for transfers. */
typedef struct planned {
  uint64_t arenas[RONDO_MAX_PLACES], transfer;
} planned;

static rondo_status plan_part(const rondo_model_instance *instance, rondo_program *program, uint32_t device_index,
                              planned *p, rondo_model_bytes *inout) {
  const rondo_session_model *model = instance->model;
  rondo_compiled_info info;
  const rondo_compile_options options = device_index == 0 ? rondo_model_instance_compile_options(instance)
                                                          : rondo_upstream_compile_options(instance, device_index);
  rondo_device *device = device_index == 0 ? model->session->device : model->devices->items[device_index];
  RONDO_TRY(rondo_compile_plan(program, device, &options, &info));
  if (info.arena_bytes > p->arenas[device_index]) inout->arena_bytes += p->arenas[device_index] = info.arena_bytes;
  return RONDO_OK;
}

static rondo_status plan_divided(const rondo_model_instance *instance, const rondo_program *program, size_t rows,
                                 planned *p, rondo_model_bytes *inout) {
  rondo_division division;
  rondo_status status = rondo_model_divide(instance, program, rows, &division);
  const size_t bytes = status == RONDO_OK ? rondo_upstream_transfer_bytes(&division) : 0;
  for (size_t i = 0; i < division.parts.count && status == RONDO_OK; i++)
    status = plan_part(instance, division.parts.items[i].program, division.parts.items[i].place, p, inout);
  if (bytes > p->transfer) inout->staging_bytes += p->transfer = bytes;
  rondo_division_free(&division);
  return status;
}

static rondo_status plan_rows(const rondo_model_instance *instance, size_t rows, planned *p, rondo_model_bytes *inout) {
  rondo_program *program = NULL;
  RONDO_TRY(rondo_model_make_program(instance->model, rows, instance->model->length, &program));
  const rondo_status status = instance->model->devices == NULL ? plan_part(instance, program, 0, p, inout)
                                                               : plan_divided(instance, program, rows, p, inout);
  rondo_program_destroy(program);
  return status;
}

/* Like rondo_sharing_take_arena, uses the largest arena if it is large enough, and otherwise adds one. */
static rondo_status plan_instance(const rondo_model_instance *instance, const size_t *rows, size_t count,
                                  rondo_model_bytes *inout) {
  const rondo_session_model *model = instance->model;
  planned p = {.transfer = 0};
  inout->arena_bytes += rondo_compiled_arenas(instance->anchor.compiled, &p.arenas[0]);
  for (uint32_t i = 1; model->devices != NULL && i < model->devices->places.count; i++) {
    const rondo_upstream_part *part = rondo_upstream_find(instance->anchor.upstream, model->devices->items[i]);
    if (part != NULL && model->devices->places.first[i] == i)
      inout->arena_bytes += rondo_compiled_arenas(part->compiled, &p.arenas[i]);
  }
  for (size_t i = 0; i < count; i++) RONDO_TRY(plan_rows(instance, rows[i], &p, inout));
  inout->staging_bytes +=
      rondo_stage_bytes(model, rows[0]) + instance->eager_transfer.bytes +
      (instance->eager_stage.memory == NULL ? 0 : rondo_stage_bytes(model, instance->eager_stage.rows));
  return RONDO_OK;
}

/* The model -------------------------------------------------------------------------------------------------------- */

static rondo_status fail_count(size_t count) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: %zu sizes: give 1 to %d", call, count,
                    RONDO_SESSION_MAX_SIZES);
}

static rondo_status fail_size(const size_t *rows, size_t index) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: rows[%zu] is %zu: %s", call, index, rows[index],
                    rows[index] == 0 ? "give sizes above 0" : "give each size once");
}

/* Sorts in descending order, in which sizes are recorded. */
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

/* Records one exec and destroys it. */
static rondo_status measure_exec(rondo_session_model *model, size_t rows, uint64_t *out_bytes) {
  rondo_session_graph graph;
  RONDO_TRY(rondo_session_record_on(model, 0, rows, &graph));
  *out_bytes = graph.info.exec_bytes;
  rondo_session_drop_graphs_from(model, model->graphs.count);
  return RONDO_OK;
}

static rondo_status plan_instances(rondo_session_model *model, const size_t *rows, size_t count,
                                   rondo_model_bytes *out) {
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < model->session->options.streams && status == RONDO_OK; i++)
    status = plan_instance(&model->instances[i], rows, count, out);
  return status;
}

static rondo_status plan(rondo_session_model *model, const size_t *rows, size_t count, rondo_model_bytes *out) {
  size_t sorted[RONDO_SESSION_MAX_SIZES];
  if (model->body != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "%s: model '%s' is a function, whose memory is known only after it has run: "
                      "capture it and call rondo_session_get_model_info",
                      call, model->name);
  if (model->graphs.count > 0)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                      "%s: model '%s' has %zu graphs: query their memory (rondo_session_get_model_info)", call,
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
