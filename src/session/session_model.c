/* SPDX-License-Identifier: MIT
 * Makes and frees models, and calls `build` for their programs. Instances are opened on all streams before the model is
 * visible to others. The instances of a length share the memory of those of the head.
 */
#include <assert.h>
#include <string.h>

#include "session/model_instance.h"
#include "session/model_values.h"
#include "session/placement/upstream_parts.h"
#include "session/serve/cache_slots.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/session_model.h"
#include "session/sizing/model_times.h"
#include "tensor/program/program_internal.h"

/* Programs --------------------------------------------------------------------------------------------------------- */

/* One thread at a time; the callback runs without the lock. */
static rondo_status call_build(rondo_session_model *model, bool of_source, const rondo_model_size *size,
                               rondo_program *program) {
  rondo_session *session = model->session;
  rondo_session_callback callback;
  pthread_mutex_lock(&session->lock);
  while (model->is_building) pthread_cond_wait(&session->change, &session->lock);
  model->is_building = true;
  pthread_mutex_unlock(&session->lock);
  const uint64_t before = rondo_error_number();
  rondo_session_callback_enter(&callback, session);
  const rondo_status status = of_source                    ? model->build_source(model->source_user, size, program)
                              : model->build_sized != NULL ? model->build_sized(model->user, size, program)
                                                           : model->build(model->user, size->rows, program);
  rondo_session_callback_leave(&callback);
  pthread_mutex_lock(&session->lock);
  model->is_building = false;
  pthread_cond_broadcast(&session->change);
  pthread_mutex_unlock(&session->lock);
  return rondo_fail_callback(status, before, "build");
}

static rondo_status make_program(rondo_session_model *model, bool of_source, const rondo_model_size *size,
                                 rondo_program **out) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = model->name,
                                         .allocator = &model->session->allocator};
  RONDO_TRY(rondo_program_create(&options, out));
  const rondo_status status = call_build(model, of_source, size, *out);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_destroy(*out);
  *out = NULL;
  return rondo_fail_context(status, "%smodel '%s' for %zu rows", of_source ? "the source of " : "", model->name,
                            size->rows);
}

rondo_status rondo_model_make_sized_program(rondo_session_model *model, const rondo_model_size *size,
                                            rondo_program **out) {
  return make_program(model, false, size, out);
}

rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, size_t length, rondo_program **out) {
  const rondo_cache_slots *slots = model->head->slots;
  const rondo_model_size size = {.rows = rows, .length = length, .slots = slots == NULL ? 0 : slots->count};
  return rondo_model_make_sized_program(model, &size, out);
}

static bool has_value(const rondo_program *program, const char *name) {
  for (size_t i = 0; i < program->values.count; i++)
    if (program->values.items[i].name != NULL && strcmp(program->values.items[i].name, name) == 0) return true;
  return false;
}

static rondo_status add_states(const rondo_program *from, rondo_program *to) {
  for (size_t i = 0; i < from->values.count; i++) {
    const rondo_program_value *value = &from->values.items[i];
    const bool is_state = value->kind == RONDO_VALUE_STATE;
    rondo_value made;
    if ((!is_state && value->kind != RONDO_VALUE_CELL) || has_value(to, value->name)) continue;
    RONDO_TRY(is_state
                  ? rondo_program_state(to, value->name, value->shape.type, value->shape.dims, value->shape.rank, &made)
                  : rondo_program_cell(to, value->name, value->initial, &made));
  }
  return RONDO_OK;
}

rondo_status rondo_model_add_source_states(rondo_session_model *head, rondo_program *program) {
  rondo_program *source = NULL;
  if (head->build_source == NULL) return RONDO_OK;
  const rondo_model_size size = {.rows = 1, .length = head->source_length, .slots = head->slots->count};
  RONDO_TRY(make_program(head, true, &size, &source));
  const rondo_status status = add_states(source, program);
  rondo_program_destroy(source);
  return status;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

void rondo_model_hide_graphs(rondo_session_model *model, size_t count) {
  pthread_mutex_lock(&model->session->lock);
  assert(count <= RONDO_SESSION_MAX_SIZES);
  if (model->graphs.count > count) model->graphs.count = count;
  pthread_mutex_unlock(&model->session->lock);
}

void rondo_model_drop_graphs(rondo_session_model *model, rondo_status *kept) {
  rondo_model_hide_graphs(model, 0);
  rondo_model_drop_tables(model);
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    while (model->instances[i].graphs.count > 0) rondo_model_instance_drop_last_graph(&model->instances[i], kept);
}

/* On streams of the caller's, another model's requests may use the stream of an instance. On streams of their own,
 * nothing else does. */
static void claim_lent(rondo_session *session) {
  if (session->workers[0].lent != NULL) rondo_session_claim_all(session);
}
static void release_lent(rondo_session *session) {
  if (session->workers[0].lent != NULL) rondo_session_release_all(session);
}

static rondo_status close_instances(rondo_session_model *model) {
  rondo_status status = RONDO_OK;
  claim_lent(model->session);
  rondo_model_drop_graphs(model, &status);
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    rondo_model_instance_close(&model->instances[i], &status);
  release_lent(model->session);
  return status;
}

static void free_values(rondo_session_model *model) {
  const rondo_allocator *allocator = &model->session->allocator;
  for (size_t i = 0; i < model->inputs.count; i++) rondo_release_text(allocator, model->inputs.items[i].name);
  for (size_t i = 0; i < model->outputs.count; i++) rondo_release_text(allocator, model->outputs.items[i].name);
  rondo_array_free(allocator, &model->inputs);
  rondo_array_free(allocator, &model->outputs);
  for (size_t i = 0; i < model->changed.count; i++) rondo_release_text(allocator, model->changed.items[i]);
  rondo_array_free(allocator, &model->changed);
}

rondo_status rondo_model_free(rondo_session_model *model) {
  if (model == NULL) return RONDO_OK;
  const rondo_allocator allocator = model->session->allocator;
  const rondo_status status = close_instances(model);
  free_values(model);
  rondo_cache_slots_free(model->session, model->slots);
  rondo_array_free(&allocator, &model->history);
  rondo_array_free(&allocator, &model->constants);
  rondo_array_free(&allocator, &model->graphs);
  rondo_model_devices_free(model);
  rondo_release_text(&allocator, model->whole_name);
  rondo_release_text(&allocator, model->name);
  rondo_release(&allocator, model, 1, sizeof *model);
  return status;
}

static rondo_status open_instances(rondo_session_model *model, const rondo_weights *weights) {
  rondo_status status = RONDO_OK;
  claim_lent(model->session);
  for (uint32_t i = 0; i < model->session->options.streams && status == RONDO_OK; i++)
    status = rondo_model_instance_open(&model->instances[i], model, i, weights);
  release_lent(model->session);
  return status;
}

static rondo_status find_values(rondo_session_model *model, const rondo_model_options *o) {
  if (o->body != NULL) return rondo_function_model_fill(model, o);
  if (o->slots > 0 && model->head == model) RONDO_TRY(rondo_model_make_slots(model, o));
  if (model->network == model && model->head != model) RONDO_TRY(rondo_model_check_source(model));
  return rondo_model_probe(model, &o->row_inputs);
}

static rondo_status copy_names(rondo_session_model *model, const rondo_model_part *part) {
  const rondo_allocator *allocator = &model->session->allocator;
  RONDO_TRY(rondo_allocate_text(allocator, part->name, &model->name));
  return part->whole_name == NULL ? RONDO_OK : rondo_allocate_text(allocator, part->whole_name, &model->whole_name);
}

static rondo_status fill_model(rondo_session_model *model, const rondo_model_part *part, const rondo_model_options *o) {
  rondo_allocator *allocator = &model->session->allocator;
  model->head = part->head == NULL ? model : part->head;
  model->network = part->network == NULL ? model : part->network;
  model->length = part->length;
  model->has_exact_lengths = o->exact_lengths;
  model->build_sized = o->build_sized;
  model->build = o->build;
  model->body = o->body;
  model->user = o->user;
  if (o->source != NULL && model->head == model) {
    model->build_source = o->source->build_sized;
    model->source_user = o->source->user;
    model->source_length = part->source_length;
  }
  model->max_sizes = o->max_sizes == 0 ? 16 : o->max_sizes;
  model->max_batch_rows = o->max_batch_rows;
  model->budget_bytes = o->budget_bytes;
  model->budget_startup_us = o->budget_startup_us;
  /* Their addresses must not change. */
  RONDO_TRY(rondo_array_reserve(allocator, &model->graphs, RONDO_SESSION_MAX_SIZES));
  RONDO_TRY(copy_names(model, part));
  RONDO_TRY(rondo_array_reserve(allocator, &model->history, part->history_count));
  if (part->history_count > 0) memcpy(model->history.items, part->history, part->history_count * sizeof *part->history);
  model->history.count = part->history_count;
  RONDO_TRY(rondo_model_devices_fill(model, o));
  RONDO_TRY(find_values(model, o));
  return open_instances(model, model->head == model ? o->weights : NULL);
}

rondo_status rondo_model_make(rondo_session *session, const rondo_model_part *part, const rondo_model_options *options,
                              rondo_session_model **out) {
  rondo_session_model *model = NULL;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(&session->allocator, 1, sizeof *model, &model));
  model->session = session;
  const rondo_capture_mode before = rondo_set_capture_mode(RONDO_CAPTURE_RELAXED);
  const rondo_status status = fill_model(model, part, options);
  if (status == RONDO_OK) {
    *out = model;
  } else {
    rondo_saved_error error;
    rondo_error_save(&error);
    rondo_status_ignore(rondo_model_free(model), "the first failure is reported");
    rondo_error_restore(&error);
  }
  (void)rondo_set_capture_mode(before);
  return status;
}
