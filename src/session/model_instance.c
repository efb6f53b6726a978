/* SPDX-License-Identifier: MIT
 * The instance of a model on one stream: compiled programs, which share states, an arena and the stream; the graphs
 * recorded of them; and staging memory. Threads: the claimant of the worker, or the thread that adds or removes the
 * model.
 */
#include <assert.h>
#include <string.h>

#include "session/function_instance.h"
#include "session/model_instance.h"
#include "session/placement/upstream_parts.h"
#include "session/serve/cache_slots.h"
#include "session/session_model.h"
#include "session/staging_memory.h"
#include "tensor/compile/compile.h"
#include "tensor/compile/program_record.h"
#include "tensor/files/weights_program.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

/* Updates the sizes of the arenas, under the lock. */
static void count_arenas(rondo_model_instance *instance) {
  rondo_session *session = instance->model->session;
  uint64_t largest;
  const uint64_t upstream = rondo_upstream_arena_bytes(instance->anchor.upstream);
  const uint64_t bytes = instance->tree != NULL ? rondo_function_instance_arena(instance)
                                                : rondo_compiled_arenas(instance->anchor.compiled, &largest) + upstream;
  pthread_mutex_lock(&session->lock);
  instance->arena_bytes = bytes;
  instance->upstream_arena_bytes = upstream;
  pthread_mutex_unlock(&session->lock);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

/* The anchors of a head share states. Other programs share the states, the stream and the arena of their instance's
 * anchor, or anchors of other lengths those of the head's anchor on the same worker. */
rondo_compile_options rondo_model_instance_compile_options(const rondo_model_instance *instance) {
  const rondo_stream_worker *worker = &instance->model->session->workers[instance->worker];
  const rondo_model_instance *of_head = &instance->model->head->instances[instance->worker];
  const bool is_anchor = instance->anchor.compiled == NULL, is_first = is_anchor && instance == of_head;
  const rondo_model_instance *shared = is_first ? &instance->model->instances[0] : is_anchor ? of_head : instance;
  return (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT,
                                 .record = RONDO_RECORD_NEVER,
                                 .share = shared->anchor.compiled,
                                 .share_states_only = is_first,
                                 .executor = is_anchor ? NULL : worker->executor,
                                 .stream = is_first ? worker->lent : NULL};
}

static void *address_of(const rondo_compiled *compiled, const char *name, const char *kind) {
  const rondo_named_value *value = rondo_values_look_up(compiled, name, kind);
  return value == NULL ? NULL : value->address;
}

rondo_status rondo_instance_program_find_addresses(const rondo_session_model *model, const rondo_compiled *compiled,
                                                   void ***out) {
  const size_t inputs = model->inputs.count;
  RONDO_TRY(rondo_allocate_items(&model->session->allocator, inputs + model->outputs.count, sizeof **out, out));
  for (size_t i = 0; i < inputs; i++) (*out)[i] = address_of(compiled, model->inputs.items[i].name, "i");
  for (size_t i = 0; i < model->outputs.count; i++)
    (*out)[inputs + i] = address_of(compiled, model->outputs.items[i].name, "o");
  return RONDO_OK;
}

void rondo_instance_program_free_addresses(const rondo_session_model *model, void **addresses) {
  rondo_release(&model->session->allocator, addresses, model->inputs.count + model->outputs.count, sizeof *addresses);
}

static rondo_status compile_part(const rondo_model_instance *instance, rondo_program *program,
                                 rondo_instance_program *out) {
  const rondo_compile_options options = rondo_model_instance_compile_options(instance);
  RONDO_TRY(rondo_compile(program, instance->model->session->device, &options, &out->compiled));
  return rondo_instance_program_find_addresses(instance->model, out->compiled, &out->addresses);
}

static rondo_status compile_divided(const rondo_model_instance *instance, const rondo_program *program, size_t rows,
                                    rondo_instance_program *out) {
  rondo_division division;
  rondo_status status = rondo_model_divide(instance, program, rows, &division);
  if (status == RONDO_OK) status = compile_part(instance, division.parts.items[division.parts.count - 1].program, out);
  if (status == RONDO_OK) status = rondo_upstream_compile(instance, rows, &division, out->compiled, &out->upstream);
  rondo_division_free(&division);
  return status;
}

static void drop_instance_program(const rondo_model_instance *instance, rondo_instance_program *placed,
                                  rondo_status *kept) {
  rondo_status_keep_first(kept, rondo_compiled_destroy(placed->compiled));
  rondo_upstream_destroy(placed->upstream, kept);
  rondo_instance_program_free_addresses(instance->model, placed->addresses);
  *placed = (rondo_instance_program){.compiled = NULL};
}

static rondo_status compile(const rondo_model_instance *instance, size_t rows, size_t length,
                            rondo_instance_program *out) {
  rondo_program *program = NULL;
  *out = (rondo_instance_program){.compiled = NULL};
  rondo_session_model *model = instance->model;
  RONDO_TRY(rondo_model_make_program(model, rows, length, &program));
  rondo_status status = RONDO_OK;
  if (instance->anchor.compiled == NULL && model->head == model) status = rondo_model_add_source_states(model, program);
  if (status == RONDO_OK)
    status =
        model->devices == NULL ? compile_part(instance, program, out) : compile_divided(instance, program, rows, out);
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_program_destroy(program);
  if (status == RONDO_OK) return RONDO_OK;
  drop_instance_program(instance, out, &status);
  return rondo_error_raise(&error);
}

/* Applies the weights and waits, because other instances use the states on other streams. Caches begin as zeros. The
 * set is the caller's, who may apply it again, so nothing is freed. */
static rondo_status apply(const rondo_model_instance *instance, const rondo_weights *weights) {
  const rondo_cache_slots *slots = instance->model->slots;
  rondo_kept_values kept = {.maps = true};
  if (slots != NULL) {
    kept.except = (const char *const *)slots->caches.items;
    kept.except_count = slots->caches.count;
  }
  RONDO_TRY(rondo_weights_check_kept(weights, instance->anchor.compiled, &kept));
  RONDO_TRY(rondo_weights_apply_kept(weights, instance->anchor.compiled, &kept));
  RONDO_TRY(rondo_compiled_synchronize(instance->anchor.compiled));
  return rondo_upstream_apply_weights(instance->anchor.upstream, weights);
}

rondo_status rondo_model_instance_open(rondo_model_instance *instance, rondo_session_model *model, uint32_t worker,
                                       const rondo_weights *weights) {
  const rondo_session *session = model->session;
  rondo_instance_program anchor;
  assert(worker < session->options.streams);
  instance->model = model;
  instance->worker = worker;
  RONDO_TRY(rondo_allocate_items(&session->allocator, session->options.max_eager_programs, sizeof *instance->programs,
                                 &instance->programs));
  RONDO_TRY(rondo_array_reserve(&model->session->allocator, &instance->graphs, RONDO_SESSION_MAX_SIZES));
  if (model->body != NULL) return rondo_function_instance_open(instance);
  RONDO_TRY(compile(instance, 1, model->length, &anchor));
  instance->anchor = anchor;
  instance->stream = rondo_compiled_stream(anchor.compiled);
  count_arenas(instance);
  return weights == NULL || worker > 0 ? RONDO_OK : apply(instance, weights);
}

static void drop_program(const rondo_model_instance *instance, rondo_cached_program *program, rondo_status *kept) {
  drop_instance_program(instance, &program->program, kept);
  *program = (rondo_cached_program){.rows = 0};
}

/* An unused entry, or the least recently used program. */
static rondo_cached_program *choose_victim(rondo_model_instance *instance) {
  rondo_cached_program *victim = &instance->programs[0];
  for (uint32_t i = 1; i < instance->model->session->options.max_eager_programs; i++)
    if (instance->programs[i].last_use < victim->last_use) victim = &instance->programs[i];
  return victim;
}

static void count_program(rondo_model_instance *instance, const rondo_instance_program *program, bool has_victim,
                          rondo_status *kept) {
  rondo_session *session = instance->model->session;
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_status_keep_first(kept, rondo_compiled_get_info(program->compiled, &info));
  pthread_mutex_lock(&session->lock);
  instance->model->info.eager_programs++;
  instance->model->info.executor_programs += info.sequential_reason == RONDO_SEQUENTIAL_NONE;
  instance->model->info.evicted += has_victim;
  pthread_mutex_unlock(&session->lock);
}

rondo_status rondo_model_instance_find_program(rondo_model_instance *instance, size_t rows, size_t length,
                                               rondo_instance_program *out) {
  for (uint32_t i = 0; i < instance->model->session->options.max_eager_programs; i++) {
    rondo_cached_program *program = &instance->programs[i];
    if (program->rows != rows || program->length != length) continue;
    program->last_use = ++instance->uses;
    *out = program->program;
    return RONDO_OK;
  }
  rondo_instance_program compiled;
  RONDO_TRY(compile(instance, rows, length, &compiled));
  rondo_status status = RONDO_OK;
  rondo_cached_program *victim = choose_victim(instance);
  count_program(instance, &compiled, victim->rows != 0, &status);
  drop_program(instance, victim, &status);
  *victim = (rondo_cached_program){.rows = rows, .length = length, .program = compiled, .last_use = ++instance->uses};
  *out = compiled;
  count_arenas(instance);
  return status;
}

rondo_status rondo_model_instance_write_state(rondo_model_instance *instance, const char *name, const void *data,
                                              size_t bytes) {
  rondo_compiled *compiled = instance->anchor.compiled;
  bool is_upstream;
  RONDO_TRY(rondo_upstream_write_state(instance->anchor.upstream, name, data, bytes, &is_upstream));
  if (is_upstream && rondo_values_look_up(compiled, name, "scio") == NULL) return RONDO_OK;
  RONDO_TRY(rondo_compiled_write(compiled, name, data, bytes));
  return rondo_compiled_synchronize(compiled);
}

/* Recording -------------------------------------------------------------------------------------------------------- */

/* Copies the inputs, runs the work and copies the outputs. The work keeps its branches. */
static rondo_status enqueue_all(const rondo_model_instance *instance, const rondo_instance_graph *g) {
  const rondo_session_model *model = instance->model;
  const rondo_instance_program *p = &g->program;
  rondo_stream *stream = rondo_compiled_stream(p->compiled);
  RONDO_TRY(rondo_stage_copy_inputs(model, &g->stage, g->rows, p->addresses, stream));
  if (p->upstream != NULL) RONDO_TRY(rondo_upstream_copy_results(p->upstream, stream, g->transfer));
  RONDO_TRY(rondo_compiled_record_into(p->compiled));
  return rondo_stage_copy_outputs(model, &g->stage, g->rows, g->length, p->addresses, stream);
}

static rondo_status record_work(const rondo_model_instance *instance, rondo_instance_graph *g) {
  rondo_stream *stream = rondo_compiled_stream(g->program.compiled);
  RONDO_TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status = enqueue_all(instance, g);
  RONDO_THEN(status, rondo_capture_end(stream, &g->graph));
  return status;
}

/* The host memory that a graph may use. Memory that upstream parts read or transfer is complete before the launch, so
 * it counts as constant. */
typedef struct graph_ranges {
  rondo_host_range inputs[RONDO_SESSION_MAX_VALUES], outputs[RONDO_SESSION_MAX_VALUES];
  rondo_host_range constants[RONDO_SESSION_MAX_VALUES + 1];
  size_t input_count, constant_count;
  size_t input_of[RONDO_SESSION_MAX_VALUES]; /* by index in `inputs`: the index in the model */
} graph_ranges;

static void list_ranges(const rondo_session_model *model, const rondo_instance_graph *g, graph_ranges *out) {
  const rondo_upstream *upstream = g->program.upstream;
  for (size_t i = 0; i < model->inputs.count; i++) {
    const bool is_upstream = rondo_upstream_reads(upstream, i);
    if (!is_upstream) out->input_of[out->input_count] = i;
    *(is_upstream ? &out->constants[out->constant_count++] : &out->inputs[out->input_count++]) =
        rondo_stage_range(model, &g->stage, i, g->rows);
  }
  if (upstream != NULL && upstream->bytes > 0)
    out->constants[out->constant_count++] = (rondo_host_range){g->transfer, upstream->bytes, "transferred results"};
  for (size_t i = 0; i < model->outputs.count; i++)
    out->outputs[i] = rondo_stage_range(model, &g->stage, model->inputs.count + i, g->rows);
}

/* By default, the rows of an input are copied to the staging memory. Upstream parts read them from there, and so does
 * the graph if it reads such an input. */
static void list_stage_copies(const rondo_session_model *model, rondo_instance_graph *g) {
  for (size_t i = 0; i < model->inputs.count; i++) {
    unsigned char *stage = rondo_stage_input(model, &g->stage, i);
    const size_t width = model->inputs.items[i].row_bytes * g->rows;
    g->copies[i] =
        (rondo_input_copy){.input = i, .copy = {.dst = stage, .src = stage, .width = width, .height = 1, .depth = 1}};
  }
}

/* Removes the copies of inputs from the graph, and keeps them as the input map. */
static rondo_status audit(const rondo_session_model *model, rondo_instance_graph *g) {
  graph_ranges ranges = {.input_count = 0};
  list_ranges(model, g, &ranges);
  const rondo_audit_options options = {RONDO_AUDIT_OPTIONS_INIT,
                                       .inputs = ranges.inputs,
                                       .input_count = ranges.input_count,
                                       .constants = ranges.constants,
                                       .constant_count = ranges.constant_count,
                                       .outputs = ranges.outputs,
                                       .output_count = model->outputs.count};
  rondo_input_copy copies[RONDO_SESSION_MAX_VALUES];
  size_t count = RONDO_SESSION_MAX_VALUES;
  RONDO_TRY(rondo_graph_audit_copies(g->graph, &options, copies, &count, NULL));
  list_stage_copies(model, g);
  for (size_t i = 0; i < count && i < RONDO_SESSION_MAX_VALUES; i++) {
    assert(copies[i].input < ranges.input_count);
    const size_t input = ranges.input_of[copies[i].input];
    g->copies[input] = copies[i];
    g->copies[input].input = input;
  }
  return RONDO_OK;
}

static rondo_status make_exec(rondo_model_instance *instance, rondo_instance_graph *g) {
  const rondo_capture_mode before = rondo_set_capture_mode(RONDO_CAPTURE_THREAD_LOCAL);
  const rondo_status status = record_work(instance, g);
  (void)rondo_set_capture_mode(before);
  RONDO_TRY(status);
  RONDO_TRY(audit(instance->model, g));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = instance->stream};
  return rondo_instantiate(g->graph, &options, &g->exec);
}

static rondo_status make_graph(rondo_model_instance *instance, rondo_instance_graph *g) {
  rondo_session_model *model = instance->model;
  RONDO_TRY(rondo_allocate_items(&model->session->allocator, model->inputs.count, sizeof *g->copies, &g->copies));
  if (model->body == NULL) RONDO_TRY(compile(instance, g->rows, g->length, &g->program));
  RONDO_TRY(rondo_model_instance_find_stage(instance, g->rows, &g->stage));
  if (model->body != NULL) return rondo_function_instance_record(instance, g);
  if (g->program.upstream != NULL) {
    RONDO_TRY(rondo_model_instance_find_transfer_memory(instance, g->program.upstream->bytes, &g->transfer));
    RONDO_TRY(rondo_upstream_record(g->program.upstream, &g->stage, g->transfer));
  }
  return make_exec(instance, g);
}

static void drop_graph(rondo_model_instance *instance, rondo_instance_graph *g, rondo_status *kept) {
  rondo_session_model *model = instance->model;
  rondo_status_keep_first(kept, rondo_function_destroy(g->function));
  rondo_exec_destroy(g->exec);
  rondo_status_keep_first(kept, rondo_graph_destroy(g->graph));
  drop_instance_program(instance, &g->program, kept);
  rondo_release(&model->session->allocator, g->copies, model->inputs.count, sizeof *g->copies);
  *g = (rondo_instance_graph){.rows = 0};
}

rondo_status rondo_model_instance_capture(rondo_model_instance *instance, size_t rows) {
  rondo_instance_graph g = {.rows = rows, .length = instance->model->length};
  RONDO_TRY(rondo_array_reserve(&instance->model->session->allocator, &instance->graphs, instance->graphs.count + 1));
  const rondo_status status = make_graph(instance, &g);
  if (status == RONDO_OK) {
    instance->graphs.items[instance->graphs.count++] = g;
    count_arenas(instance);
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  drop_graph(instance, &g, &ignored);
  return rondo_fail_context(rondo_error_raise(&error), "%zu rows of model '%s'", rows, instance->model->name);
}

void rondo_model_instance_drop_last_graph(rondo_model_instance *instance, rondo_status *kept) {
  assert(instance->graphs.count > 0);
  drop_graph(instance, &instance->graphs.items[--instance->graphs.count], kept);
  if (instance->last_graph > instance->graphs.count) instance->last_graph = 0;
  if (instance->graphs.count > 0) return;
  if (instance->tree != NULL) rondo_status_keep_first(kept, rondo_tree_reset(instance->tree));
  count_arenas(instance);
  rondo_model_instance_drop_stages(instance, kept);
}

void rondo_model_instance_close(rondo_model_instance *instance, rondo_status *kept) {
  if (instance->model == NULL) return;
  const rondo_session *session = instance->model->session;
  while (instance->graphs.count > 0) rondo_model_instance_drop_last_graph(instance, kept);
  for (uint32_t i = 0; instance->programs != NULL && i < session->options.max_eager_programs; i++)
    drop_program(instance, &instance->programs[i], kept);
  rondo_model_instance_close_stages(instance, kept);
  rondo_release(&session->allocator, instance->programs, session->options.max_eager_programs,
                sizeof *instance->programs);
  drop_instance_program(instance, &instance->anchor, kept);
  if (instance->model->body != NULL) rondo_function_instance_close(instance, kept);
  rondo_array_free(&session->allocator, &instance->graphs);
  *instance = (rondo_model_instance){.model = NULL};
}

/* Running ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_model_instance_start_upstream(rondo_model_instance *instance, const rondo_instance_graph *g,
                                                 bool is_recorded) {
  const rondo_upstream *upstream = g->program.upstream;
  if (upstream == NULL) return RONDO_OK;
  RONDO_TRY(rondo_model_instance_synchronize(instance));
  return is_recorded ? rondo_upstream_replay(upstream) : rondo_upstream_run_eager(upstream, &g->stage, g->transfer);
}

rondo_status rondo_model_instance_wait_for_upstream(const rondo_instance_graph *g, rondo_status started) {
  return g->program.upstream == NULL ? started : rondo_upstream_wait(g->program.upstream, started);
}

rondo_status rondo_model_instance_run_upstream(rondo_model_instance *instance, const rondo_instance_graph *g,
                                               bool is_recorded) {
  return rondo_model_instance_wait_for_upstream(g, rondo_model_instance_start_upstream(instance, g, is_recorded));
}

static rondo_status run_eager(rondo_model_instance *instance, const rondo_instance_graph *g) {
  if (g->program.upstream != NULL)
    RONDO_TRY(rondo_upstream_copy_results(g->program.upstream, instance->stream, g->transfer));
  return rondo_compiled_run_eager(g->program.compiled);
}

rondo_status rondo_model_instance_launch(rondo_model_instance *instance, const rondo_instance_graph *g,
                                         bool is_recorded) {
  if (instance->tree != NULL)
    return rondo_function_instance_call(instance, is_recorded ? g->function : NULL, &g->stage, g->rows);
  return is_recorded ? rondo_exec_launch(g->exec, instance->stream) : run_eager(instance, g);
}

rondo_status rondo_model_instance_synchronize(const rondo_model_instance *instance) {
  return instance->tree != NULL ? rondo_stream_synchronize(instance->stream)
                                : rondo_compiled_synchronize(instance->anchor.compiled);
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

/* Zeros the inputs of the graph's program, including transferred results, and the staging memory of all inputs. */
static rondo_status write_zeros(const rondo_model_instance *instance, const rondo_instance_graph *g) {
  const rondo_session_model *model = instance->model;
  for (size_t i = 0; i < model->inputs.count; i++)
    memset(rondo_stage_input(model, &g->stage, i), 0, model->inputs.items[i].row_bytes * g->rows);
  rondo_compiled_claim_inputs(g->program.compiled);
  for (size_t i = 0; i < rondo_compiled_count_values(g->program.compiled); i++) {
    const rondo_compiled_value value = rondo_compiled_value_at(g->program.compiled, i);
    const rondo_fill zeros = {.dst = value.address, .element_bytes = 1, .width = value.bytes};
    if (value.kind == 'i') RONDO_TRY(rondo_fill_async(instance->stream, &zeros));
  }
  return RONDO_OK;
}

rondo_status rondo_model_instance_write_zeros(rondo_model_instance *instance, size_t graph) {
  assert(graph < instance->graphs.count);
  const rondo_instance_graph *g = &instance->graphs.items[graph];
  return instance->tree != NULL ? rondo_function_instance_write_zeros(instance, g) : write_zeros(instance, g);
}

rondo_status rondo_model_instance_describe(const rondo_model_instance *instance, size_t graph,
                                           rondo_session_graph *out) {
  const rondo_instance_graph *g = &instance->graphs.items[graph];
  rondo_exec_info exec = {.struct_size = sizeof exec};
  rondo_compiled_info compiled = {.struct_size = sizeof compiled};
  if (instance->tree != NULL) return rondo_function_instance_describe(g, out);
  RONDO_TRY(rondo_exec_get_info(g->exec, &exec));
  RONDO_TRY(rondo_compiled_get_info(g->program.compiled, &compiled));
  *out = (rondo_session_graph){.info.rows = g->rows,
                               .info.nodes = exec.node_count,
                               .info.exec_bytes = exec.host_bytes + exec.device_bytes + compiled.constant_bytes,
                               .info.has_branches = compiled.has_branches,
                               .info.arena_bytes = compiled.arena_bytes};
  return rondo_upstream_describe(g->program.upstream, out);
}
