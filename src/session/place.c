/* SPDX-License-Identifier: MIT
 * A model on a lane: programs that share states, arena and stream, graphs recorded of them, staging memory. Used by who
 * has claimed the lane, or while the model is made or destroyed.
 */
#include <stdio.h>
#include <string.h>

#include "session/session_internal.h"
#include "tensor/program_internal.h"

/* What arenas take now. */
static void count_arenas(rondo_place *place) {
  rondo_session *session = place->model->session;
  uint64_t largest;
  const uint64_t bytes =
      place->tree != NULL ? rondo_function_place_arena(place) : rondo_compiled_arenas(place->anchor, &largest);
  pthread_mutex_lock(&session->lock);
  place->arena_bytes = bytes;
  pthread_mutex_unlock(&session->lock);
}

/* Staging --------------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes) {
  return (bytes + RONDO_STAGING_ALIGNMENT - 1) / RONDO_STAGING_ALIGNMENT * RONDO_STAGING_ALIGNMENT;
}

/* Of the value at `index`, outputs behind inputs; behind the last: of all. Row bytes and rows were checked when a
 * program of so many rows was made. */
static size_t stage_offset(const rondo_session_model *model, size_t rows, size_t index) {
  const size_t inputs = model->inputs.count;
  size_t bytes = 0;
  for (size_t i = 0; i < index; i++)
    bytes +=
        aligned((i < inputs ? model->inputs.items[i].row_bytes : model->outputs.items[i - inputs].row_bytes) * rows);
  return bytes;
}

unsigned char *rondo_stage_input(const rondo_session_model *model, unsigned char *memory, size_t rows, size_t index) {
  return memory + stage_offset(model, rows, index);
}

unsigned char *rondo_stage_output(const rondo_session_model *model, unsigned char *memory, size_t rows, size_t index) {
  return memory + stage_offset(model, rows, model->inputs.count + index);
}

static size_t stage_bytes(const rondo_session_model *model, size_t rows) {
  return stage_offset(model, rows, model->inputs.count + model->outputs.count);
}

static void count_staging(rondo_place *place, size_t more, size_t less) {
  rondo_session *session = place->model->session;
  pthread_mutex_lock(&session->lock);
  place->model->info.staging_bytes += more;
  place->model->info.staging_bytes -= less;
  pthread_mutex_unlock(&session->lock);
}

static size_t slot_bytes(const rondo_session_model *model, size_t rows) {
  return model->body == NULL ? 0 : stage_offset(model, rows, model->inputs.count);
}

static void drop_stage(rondo_place *place, rondo_stage *stage, rondo_status *kept) {
  rondo_device *device = place->model->session->device;
  if (stage->memory == NULL) return;
  count_staging(place, 0, stage_bytes(place->model, stage->rows) + slot_bytes(place->model, stage->rows));
  rondo_keep_first(kept, rondo_host_free(device, stage->memory));
  if (stage->slots != NULL) rondo_keep_first(kept, rondo_free(device, stage->slots));
  *stage = (rondo_stage){.memory = NULL};
}

static rondo_status make_stage(rondo_place *place, size_t rows, rondo_stage *out) {
  rondo_device *device = place->model->session->device;
  void *memory = NULL, *slots = NULL;
  const size_t bytes = stage_bytes(place->model, rows), more = slot_bytes(place->model, rows);
  RONDO_TRY(rondo_host_malloc(device, bytes, &memory));
  memset(memory, 0, bytes);
  *out = (rondo_stage){.memory = memory, .rows = rows};
  count_staging(place, bytes + more, 0);
  const rondo_status status = more == 0 ? RONDO_OK : rondo_malloc(device, more, place->model->name, &slots);
  out->slots = slots;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  drop_stage(place, out, &ignored);
  return rondo_error_raise(&error);
}

/* One that has room, else a new one: the largest graph's serves all. */
static rondo_status find_stage(rondo_place *place, size_t rows, rondo_stage *out) {
  rondo_allocator *allocator = &place->model->session->allocator;
  for (size_t i = 0; i < place->stages.count; i++) {
    *out = place->stages.items[i];
    if (out->rows >= rows) return RONDO_OK;
  }
  RONDO_TRY(rondo_array_reserve(allocator, &place->stages, place->stages.count + 1));
  RONDO_TRY(make_stage(place, rows, out));
  place->stages.items[place->stages.count++] = *out;
  return RONDO_OK;
}

rondo_status rondo_place_reserve_plain(rondo_place *place, size_t rows) {
  if (place->plain.rows >= rows) return RONDO_OK;
  rondo_stage larger;
  RONDO_TRY(make_stage(place, rows, &larger));
  rondo_status status = RONDO_OK;
  drop_stage(place, &place->plain, &status);
  place->plain = larger;
  return status;
}

/* Programs -------------------------------------------------------------------------------------------------------- */

/* With states, stream and arena of the place's anchor; the anchors have states in common. */
static rondo_compile_options options_of(const rondo_place *place) {
  const bool is_anchor = place->anchor == NULL;
  return (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                 .share = is_anchor ? place->model->places[0].anchor : place->anchor,
                                 .share_states_only = is_anchor,
                                 .executor = is_anchor ? NULL : place->model->session->lanes[place->lane].executor};
}

static rondo_status compile(rondo_place *place, size_t rows, rondo_compiled **out) {
  rondo_program *program = NULL;
  RONDO_TRY(rondo_model_make_program(place->model, rows, &program));
  const rondo_compile_options options = options_of(place);
  const rondo_status status = rondo_compile(program, place->model->session->device, &options, out);
  rondo_program_destroy(program);
  return status;
}

rondo_status rondo_place_open(rondo_place *place, rondo_session_model *model, uint32_t lane,
                              const rondo_weights *weights) {
  const rondo_session *session = model->session;
  place->model = model;
  place->lane = lane;
  RONDO_TRY(rondo_allocate_items(&session->allocator, session->options.max_unrecorded, sizeof *place->programs,
                                 &place->programs));
  if (model->body != NULL) return rondo_function_place_open(place);
  RONDO_TRY(compile(place, 1, &place->anchor));
  place->stream = rondo_compiled_stream(place->anchor);
  count_arenas(place);
  if (weights == NULL || lane > 0) return RONDO_OK;
  RONDO_TRY(rondo_weights_apply(weights, place->anchor, NULL));
  return rondo_compiled_synchronize(place->anchor); /* the other lanes have streams of their own */
}

static void drop_program(rondo_place_program *program, rondo_status *kept) {
  rondo_keep_first(kept, rondo_compiled_destroy(program->compiled));
  *program = (rondo_place_program){.rows = 0};
}

/* The least recently used one goes, or one that is none. */
static rondo_place_program *choose_victim(rondo_place *place) {
  rondo_place_program *victim = &place->programs[0];
  for (uint32_t i = 1; i < place->model->session->options.max_unrecorded; i++)
    if (place->programs[i].last_use < victim->last_use) victim = &place->programs[i];
  return victim;
}

rondo_status rondo_place_program_for(rondo_place *place, size_t rows, rondo_compiled **out) {
  for (uint32_t i = 0; i < place->model->session->options.max_unrecorded; i++) {
    rondo_place_program *program = &place->programs[i];
    if (program->rows != rows) continue;
    program->last_use = ++place->uses;
    *out = program->compiled;
    return RONDO_OK;
  }
  rondo_compiled *compiled = NULL;
  rondo_compiled_info info = {.struct_size = sizeof info};
  RONDO_TRY(compile(place, rows, &compiled));
  rondo_status status = rondo_compiled_get_info(compiled, &info);
  rondo_place_program *victim = choose_victim(place);
  rondo_session *session = place->model->session;
  pthread_mutex_lock(&session->lock);
  place->model->info.unrecorded_programs++;
  place->model->info.executor_programs += info.unexecuted == RONDO_UNEXECUTED_NONE;
  place->model->info.evicted += victim->compiled != NULL;
  pthread_mutex_unlock(&session->lock);
  drop_program(victim, &status);
  *victim = (rondo_place_program){.rows = rows, .compiled = compiled, .last_use = ++place->uses};
  *out = compiled;
  count_arenas(place);
  return status;
}

/* Recording ------------------------------------------------------------------------------------------------------- */

static rondo_compiled_value value_of(const rondo_compiled *compiled, char kind, size_t index) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++)
    if (value.kind == kind && index-- == 0) break;
  return value;
}

void *rondo_place_input_address(const rondo_compiled *compiled, size_t input) {
  return value_of(compiled, 'i', input).address;
}

void *rondo_place_output_address(const rondo_compiled *compiled, size_t output) {
  return value_of(compiled, 'o', output).address;
}

/* Inputs, the work and outputs, all on the one stream; branches of the work are kept. */
static rondo_status queue_all(const rondo_place *place, const rondo_place_graph *g) {
  const rondo_session_model *model = place->model;
  rondo_stream *stream = rondo_compiled_stream(g->compiled);
  for (size_t i = 0; i < model->inputs.count; i++) {
    const rondo_compiled_value value = value_of(g->compiled, 'i', i);
    const void *source = rondo_stage_input(model, g->stage, g->stage_rows, i);
    RONDO_TRY(rondo_copy_async(stream, value.address, source, value.bytes));
  }
  RONDO_TRY(rondo_compiled_record_into(g->compiled));
  for (size_t i = 0; i < model->outputs.count; i++) {
    const rondo_compiled_value value = value_of(g->compiled, 'o', i);
    void *destination = rondo_stage_output(model, g->stage, g->stage_rows, i);
    RONDO_TRY(rondo_copy_async(stream, destination, value.address, value.bytes));
  }
  return RONDO_OK;
}

static rondo_status record_work(const rondo_place *place, rondo_place_graph *g) {
  rondo_stream *stream = rondo_compiled_stream(g->compiled);
  RONDO_TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = queue_all(place, g);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status ended = rondo_capture_end(stream, &g->graph);
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

static void list_ranges(const rondo_session_model *model, const rondo_place_graph *g, rondo_host_range *inputs,
                        rondo_host_range *outputs) {
  for (size_t i = 0; i < model->inputs.count; i++) {
    const rondo_session_value *value = &model->inputs.items[i];
    inputs[i] = (rondo_host_range){rondo_stage_input(model, g->stage, g->stage_rows, i), value->row_bytes * g->rows,
                                   value->name};
  }
  for (size_t i = 0; i < model->outputs.count; i++) {
    const rondo_session_value *value = &model->outputs.items[i];
    outputs[i] = (rondo_host_range){rondo_stage_output(model, g->stage, g->stage_rows, i), value->row_bytes * g->rows,
                                    value->name};
  }
}

/* The copies of inputs go, and are kept as the map. */
static rondo_status audit(const rondo_session_model *model, rondo_place_graph *g) {
  rondo_host_range inputs[RONDO_SESSION_MAX_VALUES], outputs[RONDO_SESSION_MAX_VALUES];
  list_ranges(model, g, inputs, outputs);
  const rondo_audit_options options = {RONDO_AUDIT_OPTIONS_INIT, .inputs = inputs, .input_count = model->inputs.count,
                                       .outputs = outputs, .output_count = model->outputs.count};
  rondo_input_copy copies[RONDO_SESSION_MAX_VALUES];
  size_t count = RONDO_SESSION_MAX_VALUES;
  RONDO_TRY(rondo_graph_audit_copies(g->graph, &options, copies, &count, NULL));
  for (size_t i = 0; i < count && i < RONDO_SESSION_MAX_VALUES; i++) g->copies[copies[i].input] = copies[i];
  return RONDO_OK;
}

static rondo_status make_exec(rondo_place *place, rondo_place_graph *g) {
  rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL; /* what must not happen in a capture is refused here */
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = record_work(place, g);
  rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  RONDO_TRY(status);
  RONDO_TRY(audit(place->model, g));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = place->stream};
  return rondo_instantiate(g->graph, &options, &g->exec);
}

static rondo_status make_graph(rondo_place *place, rondo_place_graph *g) {
  rondo_session_model *model = place->model;
  rondo_stage stage;
  RONDO_TRY(rondo_allocate_items(&model->session->allocator, model->inputs.count, sizeof *g->copies, &g->copies));
  if (model->body == NULL) RONDO_TRY(compile(place, g->rows, &g->compiled));
  RONDO_TRY(find_stage(place, g->rows, &stage));
  g->stage = stage.memory;
  g->stage_rows = stage.rows;
  return model->body == NULL ? make_exec(place, g) : rondo_function_place_record(place, &stage, g);
}

static void drop_graph(rondo_place *place, rondo_place_graph *g, rondo_status *kept) {
  rondo_session_model *model = place->model;
  rondo_keep_first(kept, rondo_function_destroy(g->function));
  rondo_exec_destroy(g->exec);
  rondo_keep_first(kept, rondo_graph_destroy(g->graph));
  rondo_keep_first(kept, rondo_compiled_destroy(g->compiled));
  rondo_release(&model->session->allocator, g->copies, model->inputs.count, sizeof *g->copies);
  *g = (rondo_place_graph){.rows = 0};
}

rondo_status rondo_place_capture(rondo_place *place, size_t rows) {
  rondo_place_graph g = {.rows = rows};
  RONDO_TRY(rondo_array_reserve(&place->model->session->allocator, &place->graphs, place->graphs.count + 1));
  const rondo_status status = make_graph(place, &g);
  if (status == RONDO_OK) {
    place->graphs.items[place->graphs.count++] = g;
    count_arenas(place);
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  drop_graph(place, &g, &ignored);
  return rondo_fail_context(rondo_error_raise(&error), "%zu rows of model '%s'", rows, place->model->name);
}

void rondo_place_drop_last(rondo_place *place, rondo_status *kept) {
  drop_graph(place, &place->graphs.items[--place->graphs.count], kept);
  if (place->graphs.count > 0) return;
  if (place->tree != NULL) rondo_function_place_reset(place, kept);
  count_arenas(place);
  for (size_t i = 0; i < place->stages.count; i++) drop_stage(place, &place->stages.items[i], kept);
  place->stages.count = 0;
}

void rondo_place_close(rondo_place *place, rondo_status *kept) {
  if (place->model == NULL) return;
  const rondo_session *session = place->model->session;
  while (place->graphs.count > 0) rondo_place_drop_last(place, kept);
  for (uint32_t i = 0; place->programs != NULL && i < session->options.max_unrecorded; i++)
    drop_program(&place->programs[i], kept);
  drop_stage(place, &place->plain, kept);
  for (size_t i = 0; i < place->stages.count; i++) drop_stage(place, &place->stages.items[i], kept);
  rondo_release(&session->allocator, place->programs, session->options.max_unrecorded, sizeof *place->programs);
  rondo_keep_first(kept, rondo_compiled_destroy(place->anchor));
  if (place->model->body != NULL) rondo_function_place_close(place, kept);
  rondo_array_free(&session->allocator, &place->graphs);
  rondo_array_free(&session->allocator, &place->stages);
  *place = (rondo_place){.model = NULL};
}

/* Running -----------------------------------------------------------------------------------------------------------
 */

rondo_status rondo_place_launch(rondo_place *place, const rondo_place_graph *g, bool is_recorded) {
  const rondo_stage stage = {.memory = g->stage, .slots = g->slots, .rows = g->stage_rows};
  if (place->tree != NULL) return rondo_function_place_call(place, is_recorded ? g->function : NULL, &stage, g->rows);
  return is_recorded ? rondo_exec_launch(g->exec, place->stream) : rondo_compiled_run_unrecorded(g->compiled);
}

rondo_status rondo_place_synchronize(const rondo_place *place) {
  return place->tree != NULL ? rondo_stream_synchronize(place->stream) : rondo_compiled_synchronize(place->anchor);
}

/* What would be -----------------------------------------------------------------------------------------------------
 */

static rondo_status plan_arena(const rondo_place *place, size_t rows, uint64_t *out_bytes) {
  rondo_program *program = NULL;
  rondo_compiled_info info;
  RONDO_TRY(rondo_model_make_program(place->model, rows, &program));
  const rondo_compile_options options = options_of(place);
  const rondo_status status = rondo_compile_plan(program, place->model->session->device, &options, &info);
  rondo_program_destroy(program);
  *out_bytes = status == RONDO_OK ? info.arena_bytes : 0;
  return status;
}

/* As rondo_sharing_take_arena has it: the largest one there is, if it is large enough. */
rondo_status rondo_place_plan(const rondo_place *place, const size_t *rows, size_t count, rondo_model_bytes *inout) {
  const rondo_session_model *model = place->model;
  uint64_t largest;
  inout->arena_bytes += rondo_compiled_arenas(place->anchor, &largest);
  for (size_t i = 0; i < count; i++) {
    uint64_t bytes;
    RONDO_TRY(plan_arena(place, rows[i], &bytes));
    if (bytes > largest) inout->arena_bytes += largest = bytes;
  }
  inout->staging_bytes +=
      stage_bytes(model, rows[0]) + (place->plain.memory == NULL ? 0 : stage_bytes(model, place->plain.rows));
  return RONDO_OK;
}

/* What is known -----------------------------------------------------------------------------------------------------
 */

static rondo_status write_zeros(const rondo_place *place, const rondo_place_graph *g) {
  const rondo_session_model *model = place->model;
  memset(g->stage, 0, stage_offset(model, g->stage_rows, model->inputs.count));
  for (size_t i = 0; i < model->inputs.count; i++) {
    const rondo_session_value *value = &model->inputs.items[i];
    const void *zeros = rondo_stage_input(model, g->stage, g->stage_rows, i);
    RONDO_TRY(rondo_compiled_write(g->compiled, value->name, zeros, value->row_bytes * g->rows));
  }
  return RONDO_OK;
}

rondo_status rondo_place_write_zeros(rondo_place *place, size_t graph) {
  const rondo_place_graph *g = &place->graphs.items[graph];
  return place->tree != NULL ? rondo_function_place_write_zeros(place, g) : write_zeros(place, g);
}

rondo_status rondo_place_describe(const rondo_place *place, size_t graph, rondo_session_graph *out) {
  const rondo_place_graph *g = &place->graphs.items[graph];
  rondo_exec_info exec = {.struct_size = sizeof exec};
  rondo_compiled_info compiled = {.struct_size = sizeof compiled};
  if (place->tree != NULL) return rondo_function_place_describe(g, out);
  RONDO_TRY(rondo_exec_get_info(g->exec, &exec));
  RONDO_TRY(rondo_compiled_get_info(g->compiled, &compiled));
  *out = (rondo_session_graph){.rows = g->rows,
                               .nodes = exec.node_count,
                               .exec_bytes = exec.host_bytes + exec.device_bytes,
                               .has_branches = compiled.has_branches,
                               .arena_bytes = compiled.arena_bytes};
  return RONDO_OK;
}
