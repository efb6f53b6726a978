/* SPDX-License-Identifier: MIT
 * Copies of the states that measuring changes (rondo_session_model.changed). A model that changes states runs on one
 * stream, so nothing else uses them meanwhile.
 */
#include "session/sizing/measured_states.h"

#include "session/placement/upstream_parts.h"
#include "tensor/program/shape.h"
#include "tensor/run/named_values.h"

static rondo_status keep(const rondo_allocator *allocator, rondo_compiled *compiled, const char *name,
                         rondo_measured_states *states) {
  const rondo_named_value *value = rondo_values_look_up(compiled, name, "s");
  if (value == NULL) return RONDO_OK;
  rondo_measured_state state = {.compiled = compiled, .name = name, .bytes = rondo_shape_bytes(&value->shape)};
  RONDO_TRY(rondo_allocate(allocator, state.bytes, 1, &state.copy));
  rondo_status status = rondo_compiled_read(compiled, name, state.copy, state.bytes);
  if (status == RONDO_OK) status = rondo_array_push(allocator, &states->items, &state);
  if (status != RONDO_OK) rondo_release(allocator, state.copy, state.bytes, 1);
  return status;
}

static rondo_status keep_all(const rondo_model_instance *instance, rondo_measured_states *states) {
  const rondo_session_model *model = instance->model;
  const rondo_upstream *upstream = instance->anchor.upstream;
  for (size_t i = 0; i < model->changed.count; i++) {
    const char *name = model->changed.items[i];
    RONDO_TRY(keep(&model->session->allocator, instance->anchor.compiled, name, states));
    for (size_t k = 0; upstream != NULL && k < upstream->parts.count; k++)
      RONDO_TRY(keep(&model->session->allocator, upstream->parts.items[k].compiled, name, states));
  }
  return RONDO_OK;
}

static void release(const rondo_model_instance *instance, rondo_measured_states *states) {
  const rondo_allocator *allocator = &instance->model->session->allocator;
  for (size_t i = 0; i < states->items.count; i++)
    rondo_release(allocator, states->items.items[i].copy, states->items.items[i].bytes, 1);
  rondo_array_free(allocator, &states->items);
}

rondo_status rondo_measured_states_keep(const rondo_model_instance *instance, rondo_measured_states *out) {
  *out = (rondo_measured_states){0};
  const rondo_status status = keep_all(instance, out);
  if (status != RONDO_OK) release(instance, out);
  return status;
}

rondo_status rondo_measured_states_put_back(const rondo_model_instance *instance, rondo_measured_states *states) {
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < states->items.count; i++) {
    const rondo_measured_state *state = &states->items.items[i];
    rondo_status_keep_first(&status, rondo_compiled_write(state->compiled, state->name, state->copy, state->bytes));
    rondo_status_keep_first(&status, rondo_compiled_synchronize(state->compiled));
  }
  release(instance, states);
  return status;
}
