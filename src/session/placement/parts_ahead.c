/* SPDX-License-Identifier: MIT
 * Parts that run ahead: compiled beside the part of the session's device, recorded or run kernel by kernel, waited for,
 * and what they hand over.
 */
#include "session/placement/parts_ahead.h"

#include <string.h>

#include "session/model_instance.h"
#include "session/staging_memory.h"
#include "tensor/compile/program_record.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

#define HANDOVER_ALIGNMENT 256

/* Parts ------------------------------------------------------------------------------------------------------------ */

rondo_ahead_part *rondo_ahead_find(const rondo_ahead *ahead, const rondo_device *device) {
  for (size_t i = 0; ahead != NULL && i < ahead->parts.count; i++)
    if (ahead->parts.items[i].device == device) return &ahead->parts.items[i];
  return NULL;
}

static rondo_compiled *compiled_on(const rondo_model_instance *place, const rondo_device *device) {
  const rondo_ahead_part *part = rondo_ahead_find(place->anchor.ahead, device);
  return part == NULL ? NULL : part->compiled;
}

rondo_compile_options rondo_ahead_options(const rondo_model_instance *place, uint32_t of_place) {
  const rondo_device *device = place->model->devices->items[of_place];
  const bool is_anchor = place->anchor.compiled == NULL;
  return (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                 .share = compiled_on(is_anchor ? &place->model->places[0] : place, device),
                                 .share_states_only = is_anchor};
}

static rondo_status compile_part(const rondo_model_instance *place, const rondo_division_part *from,
                                 rondo_ahead *ahead) {
  const rondo_compile_options options = rondo_ahead_options(place, from->place);
  rondo_ahead_part *part = &ahead->parts.items[ahead->parts.count++];
  *part = (rondo_ahead_part){.device = place->model->devices->items[from->place]};
  RONDO_TRY(rondo_compile(from->program, part->device, &options, &part->compiled));
  RONDO_TRY(rondo_placed_find(ahead->model, part->compiled, &part->addresses));
  for (size_t i = 0; i < ahead->model->inputs.count; i++)
    if (part->addresses[i] != NULL) ahead->inputs |= UINT64_C(1) << i;
  return RONDO_OK;
}

static void *address_of(const rondo_compiled *compiled, char kind, const char *name) {
  for (size_t i = 0; i < rondo_compiled_count_values(compiled); i++) {
    const rondo_compiled_value value = rondo_compiled_value_at(compiled, i);
    if (value.kind == kind && strcmp(value.name, name) == 0) return value.address;
  }
  return NULL;
}

static size_t bytes_of(const rondo_division *division, const rondo_crossing *crossing) {
  return rondo_shape_bytes(rondo_program_shape(division->program, crossing->value));
}

static size_t aligned(size_t bytes) {
  return (bytes + HANDOVER_ALIGNMENT - 1) / HANDOVER_ALIGNMENT * HANDOVER_ALIGNMENT;
}

size_t rondo_ahead_bytes(const rondo_division *division) {
  size_t bytes = 0;
  for (size_t i = 0; i < division->crossings.count; i++)
    bytes += aligned(bytes_of(division, &division->crossings.items[i]));
  return bytes;
}

static rondo_status list_handovers(rondo_ahead *ahead, const rondo_division *division, const rondo_compiled *to) {
  const size_t count = division->crossings.count;
  RONDO_TRY(rondo_array_reserve(&ahead->model->session->allocator, &ahead->handovers, count));
  for (size_t i = 0; i < count; i++) {
    const rondo_crossing *crossing = &division->crossings.items[i];
    const rondo_handover handover = {
        .part = crossing->from,
        .source = address_of(ahead->parts.items[crossing->from].compiled, 'o', crossing->name),
        .destination = address_of(to, 'i', crossing->name),
        .offset = ahead->bytes,
        .bytes = bytes_of(division, crossing)};
    ahead->handovers.items[ahead->handovers.count++] = handover;
    ahead->bytes += aligned(handover.bytes);
  }
  return RONDO_OK;
}

static rondo_status fill(const rondo_model_instance *place, const rondo_division *division,
                         const rondo_compiled *compiled, rondo_ahead *ahead) {
  const size_t count = division->parts.count - 1;
  RONDO_TRY(rondo_array_reserve(&ahead->model->session->allocator, &ahead->parts, count));
  for (size_t i = 0; i < count; i++) RONDO_TRY(compile_part(place, &division->parts.items[i], ahead));
  return list_handovers(ahead, division, compiled);
}

rondo_status rondo_ahead_compile(const rondo_model_instance *place, size_t rows, const rondo_division *division,
                                 const rondo_compiled *compiled, rondo_ahead **out) {
  rondo_ahead *ahead = NULL;
  *out = NULL;
  if (division->parts.count == 1) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&place->model->session->allocator, 1, sizeof *ahead, &ahead));
  ahead->model = place->model;
  ahead->rows = rows;
  rondo_status status = fill(place, division, compiled, ahead);
  if (status == RONDO_OK) {
    *out = ahead;
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_ahead_destroy(ahead, &status);
  return rondo_error_raise(&error);
}

void rondo_ahead_destroy(rondo_ahead *ahead, rondo_status *kept) {
  if (ahead == NULL) return;
  const rondo_allocator allocator = ahead->model->session->allocator;
  for (size_t i = 0; i < ahead->parts.count; i++) {
    rondo_ahead_part *part = &ahead->parts.items[i];
    rondo_exec_destroy(part->exec);
    rondo_keep_first(kept, rondo_graph_destroy(part->graph));
    rondo_keep_first(kept, rondo_compiled_destroy(part->compiled));
    rondo_placed_forget(ahead->model, part->addresses);
  }
  rondo_array_free(&allocator, &ahead->parts);
  rondo_array_free(&allocator, &ahead->handovers);
  rondo_release(&allocator, ahead, 1, sizeof *ahead);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static rondo_status copy_inputs(const rondo_ahead *ahead, const rondo_ahead_part *part, const rondo_stage *stage) {
  const rondo_session_model *model = ahead->model;
  for (size_t i = 0; i < model->inputs.count; i++)
    if (part->addresses[i] != NULL)
      RONDO_TRY(rondo_copy_async(rondo_compiled_stream(part->compiled), part->addresses[i],
                                 rondo_stage_input(model, stage->memory, stage->rows, i),
                                 model->inputs.items[i].row_bytes * ahead->rows));
  return RONDO_OK;
}

static rondo_status copy_results(const rondo_ahead *ahead, uint32_t number, const rondo_stage *stage,
                                 unsigned char *handover) {
  const rondo_session_model *model = ahead->model;
  const rondo_ahead_part *part = &ahead->parts.items[number];
  rondo_stream *stream = rondo_compiled_stream(part->compiled);
  for (size_t i = 0; i < ahead->handovers.count; i++) {
    const rondo_handover *h = &ahead->handovers.items[i];
    if (h->part == number) RONDO_TRY(rondo_copy_async(stream, handover + h->offset, h->source, h->bytes));
  }
  for (size_t i = 0; i < model->outputs.count; i++) {
    const void *address = part->addresses[model->inputs.count + i];
    if (address != NULL)
      RONDO_TRY(rondo_copy_async(stream, rondo_stage_output(model, stage->memory, stage->rows, i), address,
                                 model->outputs.items[i].row_bytes * ahead->rows));
  }
  return RONDO_OK;
}

/* Inputs, the work and its results, all on the one stream. */
static rondo_status queue_part(const rondo_ahead *ahead, uint32_t number, const rondo_stage *stage,
                               unsigned char *handover, rondo_status (*work)(rondo_compiled *compiled)) {
  const rondo_ahead_part *part = &ahead->parts.items[number];
  RONDO_TRY(copy_inputs(ahead, part, stage));
  RONDO_TRY(work(part->compiled));
  return copy_results(ahead, number, stage, handover);
}

rondo_status rondo_ahead_run(const rondo_ahead *ahead, const rondo_stage *stage, unsigned char *handover) {
  for (uint32_t i = 0; i < ahead->parts.count; i++) {
    rondo_compiled_claim_inputs(ahead->parts.items[i].compiled);
    RONDO_TRY(queue_part(ahead, i, stage, handover, rondo_compiled_run_unrecorded));
  }
  return RONDO_OK;
}

rondo_status rondo_ahead_replay(const rondo_ahead *ahead) {
  for (size_t i = 0; i < ahead->parts.count; i++) {
    const rondo_ahead_part *part = &ahead->parts.items[i];
    RONDO_TRY(rondo_exec_launch(part->exec, rondo_compiled_stream(part->compiled)));
  }
  return RONDO_OK;
}

/* All are waited for in any case: they read and write what belongs to the place. */
rondo_status rondo_ahead_take(const rondo_ahead *ahead, rondo_status queued) {
  rondo_saved_error error = {.status = RONDO_OK};
  if (queued != RONDO_OK) rondo_error_save(&error);
  for (size_t i = 0; i < ahead->parts.count; i++) {
    const rondo_status waited = rondo_compiled_synchronize(ahead->parts.items[i].compiled);
    if (waited != RONDO_OK && error.status == RONDO_OK) rondo_error_save(&error);
  }
  return rondo_error_raise(&error);
}

rondo_status rondo_ahead_hand_over(const rondo_ahead *ahead, rondo_stream *stream, const unsigned char *handover) {
  for (size_t i = 0; i < ahead->handovers.count; i++) {
    const rondo_handover *h = &ahead->handovers.items[i];
    RONDO_TRY(rondo_copy_async(stream, h->destination, handover + h->offset, h->bytes));
  }
  return RONDO_OK;
}

/* Recording -------------------------------------------------------------------------------------------------------- */

static rondo_status record_work(const rondo_ahead *ahead, uint32_t number, const rondo_stage *stage,
                                unsigned char *handover) {
  rondo_ahead_part *part = &ahead->parts.items[number];
  rondo_stream *stream = rondo_compiled_stream(part->compiled);
  RONDO_TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = queue_part(ahead, number, stage, handover, rondo_compiled_record_into);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status ended = rondo_capture_end(stream, &part->graph);
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

/* The copies of inputs stay, as these are always in the same place. */
static rondo_status audit(const rondo_ahead *ahead, const rondo_ahead_part *part, const rondo_stage *stage,
                          const unsigned char *handover) {
  const rondo_session_model *model = ahead->model;
  rondo_host_range inputs[RONDO_SESSION_MAX_VALUES], outputs[RONDO_SESSION_MAX_VALUES + 1];
  rondo_audit_options options = {RONDO_AUDIT_OPTIONS_INIT, .keep_inputs = true, .inputs = inputs, .outputs = outputs};
  size_t count = 0;
  for (size_t i = 0; i < model->inputs.count; i++)
    inputs[options.input_count++] =
        (rondo_host_range){rondo_stage_input(model, stage->memory, stage->rows, i),
                           model->inputs.items[i].row_bytes * ahead->rows, model->inputs.items[i].name};
  for (size_t i = 0; i < model->outputs.count; i++)
    outputs[options.output_count++] =
        (rondo_host_range){rondo_stage_output(model, stage->memory, stage->rows, i),
                           model->outputs.items[i].row_bytes * ahead->rows, model->outputs.items[i].name};
  if (ahead->bytes > 0)
    outputs[options.output_count++] = (rondo_host_range){handover, ahead->bytes, "what is handed over"};
  return rondo_graph_audit_copies(part->graph, &options, NULL, &count, NULL);
}

static rondo_status record_part(const rondo_ahead *ahead, uint32_t number, const rondo_stage *stage,
                                unsigned char *handover) {
  rondo_ahead_part *part = &ahead->parts.items[number];
  rondo_capture_mode mode = RONDO_CAPTURE_THREAD_LOCAL; /* what must not happen in a capture is refused here */
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  rondo_status status = record_work(ahead, number, stage, handover);
  rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  RONDO_TRY(status);
  RONDO_TRY(audit(ahead, part, stage, handover));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT,
                                             .upload_stream = rondo_compiled_stream(part->compiled)};
  return rondo_instantiate(part->graph, &options, &part->exec);
}

rondo_status rondo_ahead_record(rondo_ahead *ahead, const rondo_stage *stage, unsigned char *handover) {
  for (uint32_t i = 0; i < ahead->parts.count; i++) RONDO_TRY(record_part(ahead, i, stage, handover));
  return RONDO_OK;
}

/* States ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_ahead_write(const rondo_ahead *ahead, const char *name, const void *data, size_t bytes,
                               bool *out_has) {
  *out_has = false;
  for (size_t i = 0; ahead != NULL && i < ahead->parts.count; i++) {
    rondo_compiled *compiled = ahead->parts.items[i].compiled;
    if (address_of(compiled, 's', name) == NULL && address_of(compiled, 'c', name) == NULL) continue;
    *out_has = true;
    RONDO_TRY(rondo_compiled_write(compiled, name, data, bytes));
    RONDO_TRY(rondo_compiled_synchronize(compiled));
  }
  return RONDO_OK;
}

rondo_status rondo_ahead_apply(const rondo_ahead *ahead, const rondo_weights *weights) {
  for (size_t i = 0; ahead != NULL && i < ahead->parts.count; i++) {
    RONDO_TRY(rondo_weights_apply(weights, ahead->parts.items[i].compiled, NULL));
    RONDO_TRY(rondo_compiled_synchronize(ahead->parts.items[i].compiled));
  }
  return RONDO_OK;
}

/* What is known ---------------------------------------------------------------------------------------------------- */

rondo_status rondo_ahead_describe(const rondo_ahead *ahead, rondo_session_graph *inout) {
  for (size_t i = 0; ahead != NULL && i < ahead->parts.count; i++) {
    rondo_exec_info exec = {.struct_size = sizeof exec};
    rondo_compiled_info compiled = {.struct_size = sizeof compiled};
    RONDO_TRY(rondo_exec_get_info(ahead->parts.items[i].exec, &exec));
    RONDO_TRY(rondo_compiled_get_info(ahead->parts.items[i].compiled, &compiled));
    inout->nodes += exec.node_count;
    inout->exec_bytes += exec.host_bytes + exec.device_bytes;
    inout->arena_bytes += compiled.arena_bytes;
  }
  return RONDO_OK;
}

uint64_t rondo_ahead_arenas(const rondo_ahead *ahead) {
  uint64_t bytes = 0, largest;
  for (size_t i = 0; ahead != NULL && i < ahead->parts.count; i++)
    bytes += rondo_compiled_arenas(ahead->parts.items[i].compiled, &largest);
  return bytes;
}

uint64_t rondo_ahead_states(const rondo_ahead *ahead) {
  uint64_t bytes = 0;
  for (size_t i = 0; ahead != NULL && i < ahead->parts.count; i++) {
    rondo_compiled_info info = {.struct_size = sizeof info};
    if (rondo_compiled_get_info(ahead->parts.items[i].compiled, &info) == RONDO_OK)
      bytes += info.state_bytes - info.shared_bytes;
  }
  return bytes;
}
