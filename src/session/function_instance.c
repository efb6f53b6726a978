/* SPDX-License-Identifier: MIT
 * The instance of a function: a tree, with one function for each graph and one for eager runs, and device memory for
 * inputs. Each call is a step of the tree. So the recording of each size is a root, and the arena is as large as the
 * largest size needs. Threads: the claimant of the worker.
 */
#include <assert.h>
#include <string.h>

#include "session/function_instance.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "session/staging_memory.h"
#include "tree/tree_internal.h"

/* Inputs and outputs ----------------------------------------------------------------------------------------------- */

static void write_input(const rondo_session_value *value, void *address, size_t rows, rondo_input *out) {
  *out = (rondo_input){.address = address,
                       .bytes = value->row_bytes * rows,
                       .type = (uint32_t)value->type,
                       .rank = value->rank + 1,
                       .shape = {rows}};
  memcpy(out->shape + 1, value->shape, value->rank * sizeof *value->shape);
}

static void list_inputs(const rondo_session_model *model, const rondo_stage *stage, size_t rows, rondo_input *out) {
  for (size_t i = 0; i < model->inputs.count; i++)
    write_input(&model->inputs.items[i], rondo_stage_device_input(model, stage, i), rows, &out[i]);
}

/* Checks that the body has returned the output that the model declares. */
static rondo_status check_output(const rondo_session_model *model, const rondo_session_value *value,
                                 const rondo_buffer *buffer, size_t rows) {
  rondo_buffer_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_buffer_get_info(buffer, &info));
  if (info.bytes == value->row_bytes * rows) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "output '%s' of function '%s' has %zu bytes for %zu rows, but the model declares %zu bytes per row",
                    value->name, model->name, info.bytes, rows, value->row_bytes);
}

static rondo_status copy_outputs(const rondo_model_instance *instance, const rondo_stage *stage, size_t rows,
                                 rondo_buffer *const *buffers) {
  const rondo_session_model *model = instance->model;
  for (size_t i = 0; i < model->outputs.count; i++) {
    const rondo_session_value *value = &model->outputs.items[i];
    RONDO_TRY(check_output(model, value, buffers[i], rows));
    RONDO_TRY(rondo_buffer_copy(buffers[i], instance->stream, 0, rondo_stage_output(model, stage, i),
                                value->row_bytes * rows));
  }
  return RONDO_OK;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

static rondo_status make_function(const rondo_model_instance *instance, rondo_record_policy record,
                                  rondo_function **out) {
  const rondo_session_model *model = instance->model;
  uint32_t kinds[RONDO_SESSION_MAX_VALUES];
  for (size_t i = 0; i < model->inputs.count; i++) kinds[i] = RONDO_INPUT_STATIC;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = model->name,
                                          .body = model->body,
                                          .user = model->user,
                                          .inputs = kinds,
                                          .input_count = model->inputs.count,
                                          .record = record};
  return rondo_function_create(instance->tree, &options, out);
}

/* Replaces the function for eager runs after too many shapes, because it keeps data for each shape. */
static rondo_status renew_eager_function(rondo_model_instance *instance) {
  rondo_function_info info = {.struct_size = sizeof info};
  rondo_function *fresh = NULL, *old = instance->eager_function;
  RONDO_TRY(rondo_function_get_info(old, &info));
  if (info.shapes <= instance->model->session->options.max_eager_programs) return RONDO_OK;
  RONDO_TRY(make_function(instance, RONDO_RECORD_NEVER, &fresh));
  instance->eager_function = fresh;
  return rondo_function_destroy(old);
}

/* While the body runs, calls of the session are refused. */
static rondo_status call_function(const rondo_model_instance *instance, rondo_function *function,
                                  const rondo_input *inputs, rondo_buffer **outputs) {
  const rondo_session_model *model = instance->model;
  rondo_session_callback callback;
  rondo_session_callback_enter(&callback, model->session);
  const rondo_status status =
      rondo_function_call(function, instance->stream, inputs, model->inputs.count, outputs, model->outputs.count);
  rondo_session_callback_leave(&callback);
  return status;
}

static rondo_status prepare_function(const rondo_model_instance *instance, rondo_function *function,
                                     const rondo_input *inputs) {
  rondo_session_callback callback;
  rondo_session_callback_enter(&callback, instance->model->session);
  const rondo_status status = rondo_function_prepare(function, instance->stream, inputs, instance->model->inputs.count);
  rondo_session_callback_leave(&callback);
  return status;
}

rondo_status rondo_function_instance_call(rondo_model_instance *instance, rondo_function *function,
                                          const rondo_stage *stage, size_t rows) {
  const rondo_session_model *model = instance->model;
  if (function == NULL) RONDO_TRY(renew_eager_function(instance));
  rondo_input inputs[RONDO_SESSION_MAX_VALUES];
  rondo_buffer *outputs[RONDO_SESSION_MAX_VALUES] = {NULL};
  list_inputs(model, stage, rows, inputs);
  RONDO_TRY(rondo_tree_mark_step(instance->tree));
  RONDO_TRY(call_function(instance, function == NULL ? instance->eager_function : function, inputs, outputs));
  const rondo_status status = copy_outputs(instance, stage, rows, outputs);
  for (size_t i = 0; i < model->outputs.count; i++) rondo_buffer_release(outputs[i]);
  return status;
}

/* Recording -------------------------------------------------------------------------------------------------------- */

/* Stale memory could contain an index out of range. */
rondo_status rondo_function_instance_write_zeros(const rondo_model_instance *instance, const rondo_instance_graph *g) {
  const rondo_session_model *model = instance->model;
  for (size_t i = 0; i < model->inputs.count; i++) {
    const rondo_fill zeros = {.dst = rondo_stage_device_input(model, &g->stage, i),
                              .element_bytes = 1,
                              .width = model->inputs.items[i].row_bytes * g->rows};
    RONDO_TRY(rondo_fill_async(instance->stream, &zeros));
  }
  return RONDO_OK;
}

static rondo_status audit(const rondo_session_model *model, const rondo_recorded_call *recorded) {
  const rondo_audit_options options = {RONDO_AUDIT_OPTIONS_INIT, .keep_inputs = true,
                                       .constants = model->constants.items, .constant_count = model->constants.count};
  for (size_t i = 0; i < recorded->segment_count; i++) {
    size_t count = 0;
    RONDO_TRY(rondo_graph_audit_copies(recorded->segments[i].exec->graph, &options, NULL, &count, NULL));
  }
  return RONDO_OK;
}

/* Fills the input map as if the graph copied the inputs of the body. */
static void list_copies(const rondo_session_model *model, rondo_instance_graph *g) {
  for (size_t i = 0; i < model->inputs.count; i++)
    g->copies[i] = (rondo_input_copy){.input = i,
                                      .copy = {.dst = rondo_stage_device_input(model, &g->stage, i),
                                               .src = rondo_stage_input(model, &g->stage, i),
                                               .width = model->inputs.items[i].row_bytes * g->rows,
                                               .height = 1,
                                               .depth = 1}};
}

/* The call after preparing checks that calls are replayed, and that outputs are as declared. */
rondo_status rondo_function_instance_record(rondo_model_instance *instance, rondo_instance_graph *g) {
  const rondo_stage *stage = &g->stage;
  const rondo_session_model *model = instance->model;
  rondo_input inputs[RONDO_SESSION_MAX_VALUES];
  rondo_call_info last = {.struct_size = sizeof last};
  RONDO_TRY(make_function(instance, RONDO_RECORD_ALWAYS, &g->function));
  list_inputs(model, stage, g->rows, inputs);
  RONDO_TRY(rondo_function_instance_write_zeros(instance, g));
  RONDO_TRY(rondo_tree_mark_step(instance->tree));
  RONDO_TRY(prepare_function(instance, g->function, inputs));
  g->recorded = instance->tree->last;
  assert(g->recorded != NULL);
  RONDO_TRY(audit(model, g->recorded));
  RONDO_TRY(rondo_function_instance_call(instance, g->function, stage, g->rows));
  RONDO_TRY(rondo_stream_synchronize(instance->stream));
  RONDO_TRY(rondo_tree_get_last_call(instance->tree, &last));
  if (last.outcome != RONDO_CALL_REPLAYED)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED, "function '%s' was recorded, but not replayed: %s",
                      model->name, last.message);
  list_copies(model, g);
  return RONDO_OK;
}

rondo_status rondo_function_instance_describe(const rondo_instance_graph *g, rondo_session_graph *out) {
  *out = (rondo_session_graph){.info.rows = g->rows, .info.arena_bytes = g->recorded->arena_end};
  for (size_t i = 0; i < g->recorded->segment_count; i++) {
    rondo_exec_info info = {.struct_size = sizeof info};
    RONDO_TRY(rondo_exec_get_info(g->recorded->segments[i].exec, &info));
    out->info.nodes += info.node_count;
    out->info.exec_bytes += info.host_bytes + info.device_bytes;
  }
  return RONDO_OK;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

rondo_status rondo_function_instance_open(rondo_model_instance *instance) {
  rondo_device *device = instance->model->session->device;
  const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT, .name = instance->model->name, .no_host_steps = true};
  instance->stream = instance->model->session->workers[instance->worker].lent;
  if (instance->stream == NULL) RONDO_TRY(rondo_stream_create(device, NULL, &instance->stream));
  RONDO_TRY(rondo_tree_create(device, &options, &instance->tree));
  return make_function(instance, RONDO_RECORD_NEVER, &instance->eager_function);
}

void rondo_function_instance_close(rondo_model_instance *instance, rondo_status *kept) {
  rondo_status_keep_first(kept, rondo_tree_destroy(instance->tree));
  const bool is_lent = instance->model->session->workers[instance->worker].lent != NULL;
  if (!is_lent) rondo_status_keep_first(kept, rondo_stream_destroy(instance->stream));
}

uint64_t rondo_function_instance_arena(const rondo_model_instance *instance) {
  rondo_tree_info info = {.struct_size = sizeof info};
  return rondo_tree_get_info(instance->tree, &info) == RONDO_OK ? info.arena_used : 0;
}
