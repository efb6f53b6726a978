/* SPDX-License-Identifier: MIT
 * Compiles, records, runs and waits for upstream parts, and copies their results. Each part has its own stream and
 * arena. Threads: the claimant of the worker.
 */
#include "session/placement/upstream_parts.h"

#include <assert.h>
#include <string.h>

#include "session/model_instance.h"
#include "session/staging_memory.h"
#include "tensor/compile/program_record.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

/* Parts ------------------------------------------------------------------------------------------------------------ */

rondo_upstream_part *rondo_upstream_find(const rondo_upstream *upstream, const rondo_device *device) {
  for (size_t i = 0; upstream != NULL && i < upstream->parts.count; i++)
    if (upstream->parts.items[i].device == device) return &upstream->parts.items[i];
  return NULL;
}

static rondo_compiled *compiled_on(const rondo_model_instance *instance, const rondo_device *device) {
  const rondo_upstream_part *part = rondo_upstream_find(instance->anchor.upstream, device);
  return part == NULL ? NULL : part->compiled;
}

rondo_compile_options rondo_upstream_compile_options(const rondo_model_instance *instance, uint32_t device_index) {
  const rondo_device *device = instance->model->devices->items[device_index];
  const bool is_anchor = instance->anchor.compiled == NULL;
  return (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                 .share = compiled_on(is_anchor ? &instance->model->instances[0] : instance, device),
                                 .share_states_only = is_anchor};
}

static rondo_status compile_part(const rondo_model_instance *instance, const rondo_division_part *from,
                                 rondo_upstream *upstream) {
  const rondo_compile_options options = rondo_upstream_compile_options(instance, from->place);
  rondo_upstream_part *part = &upstream->parts.items[upstream->parts.count++];
  *part = (rondo_upstream_part){.device = instance->model->devices->items[from->place]};
  RONDO_TRY(rondo_compile(from->program, part->device, &options, &part->compiled));
  RONDO_TRY(rondo_instance_program_find_addresses(upstream->model, part->compiled, &part->addresses));
  for (size_t i = 0; i < upstream->model->inputs.count; i++)
    if (part->addresses[i] != NULL) upstream->inputs |= UINT64_C(1) << i;
  return RONDO_OK;
}

static size_t bytes_of(const rondo_division *division, const rondo_crossing *crossing) {
  return rondo_shape_bytes(rondo_program_shape(division->program, crossing->value));
}

size_t rondo_upstream_transfer_bytes(const rondo_division *division) {
  size_t bytes = 0;
  for (size_t i = 0; i < division->crossings.count; i++)
    bytes += rondo_staging_align(bytes_of(division, &division->crossings.items[i]));
  return bytes;
}

static rondo_status list_transfers(rondo_upstream *upstream, const rondo_division *division, const rondo_compiled *to) {
  const size_t count = division->crossings.count;
  RONDO_TRY(rondo_array_reserve(&upstream->model->session->allocator, &upstream->transfers, count));
  for (size_t i = 0; i < count; i++) {
    const rondo_crossing *crossing = &division->crossings.items[i];
    const rondo_compiled *from = upstream->parts.items[crossing->from].compiled;
    const rondo_named_value *source = rondo_values_look_up(from, crossing->name, "o");
    const rondo_named_value *destination = rondo_values_look_up(to, crossing->name, "i");
    assert(source != NULL && destination != NULL);
    const rondo_transfer transfer = {.part = crossing->from,
                                     .source = source->address,
                                     .destination = destination->address,
                                     .offset = upstream->bytes,
                                     .bytes = bytes_of(division, crossing)};
    upstream->transfers.items[upstream->transfers.count++] = transfer;
    upstream->bytes += rondo_staging_align(transfer.bytes);
  }
  return RONDO_OK;
}

static rondo_status fill(const rondo_model_instance *instance, const rondo_division *division,
                         const rondo_compiled *compiled, rondo_upstream *upstream) {
  const size_t count = division->parts.count - 1;
  assert(count > 0);
  RONDO_TRY(rondo_array_reserve(&upstream->model->session->allocator, &upstream->parts, count));
  for (size_t i = 0; i < count; i++) RONDO_TRY(compile_part(instance, &division->parts.items[i], upstream));
  return list_transfers(upstream, division, compiled);
}

rondo_status rondo_upstream_compile(const rondo_model_instance *instance, size_t rows, const rondo_division *division,
                                    const rondo_compiled *compiled, rondo_upstream **out) {
  rondo_upstream *upstream = NULL;
  *out = NULL;
  if (division->parts.count == 1) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&instance->model->session->allocator, 1, sizeof *upstream, &upstream));
  upstream->model = instance->model;
  upstream->rows = rows;
  rondo_status status = fill(instance, division, compiled, upstream);
  if (status == RONDO_OK) {
    *out = upstream;
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_upstream_destroy(upstream, &status);
  return rondo_error_raise(&error);
}

void rondo_upstream_destroy(rondo_upstream *upstream, rondo_status *kept) {
  if (upstream == NULL) return;
  const rondo_allocator allocator = upstream->model->session->allocator;
  for (size_t i = 0; i < upstream->parts.count; i++) {
    rondo_upstream_part *part = &upstream->parts.items[i];
    rondo_exec_destroy(part->exec);
    rondo_status_keep_first(kept, rondo_graph_destroy(part->graph));
    rondo_status_keep_first(kept, rondo_compiled_destroy(part->compiled));
    rondo_instance_program_free_addresses(upstream->model, part->addresses);
  }
  rondo_array_free(&allocator, &upstream->parts);
  rondo_array_free(&allocator, &upstream->transfers);
  rondo_release(&allocator, upstream, 1, sizeof *upstream);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static rondo_status copy_results(const rondo_upstream *upstream, uint32_t number, const rondo_stage *stage,
                                 unsigned char *transfer) {
  const rondo_upstream_part *part = &upstream->parts.items[number];
  rondo_stream *stream = rondo_compiled_stream(part->compiled);
  for (size_t i = 0; i < upstream->transfers.count; i++) {
    const rondo_transfer *t = &upstream->transfers.items[i];
    if (t->part == number) RONDO_TRY(rondo_copy_async(stream, transfer + t->offset, t->source, t->bytes));
  }
  return rondo_stage_copy_outputs(upstream->model, stage, upstream->rows, 0, part->addresses, stream);
}

/* Copies the inputs, runs the work and copies the results, on the stream of the part. */
static rondo_status enqueue_part(const rondo_upstream *upstream, uint32_t number, const rondo_stage *stage,
                                 unsigned char *transfer, rondo_status (*work)(rondo_compiled *compiled)) {
  const rondo_upstream_part *part = &upstream->parts.items[number];
  RONDO_TRY(rondo_stage_copy_inputs(upstream->model, stage, upstream->rows, part->addresses,
                                    rondo_compiled_stream(part->compiled)));
  RONDO_TRY(work(part->compiled));
  return copy_results(upstream, number, stage, transfer);
}

rondo_status rondo_upstream_run_eager(const rondo_upstream *upstream, const rondo_stage *stage,
                                      unsigned char *transfer) {
  for (uint32_t i = 0; i < upstream->parts.count; i++) {
    rondo_compiled_claim_inputs(upstream->parts.items[i].compiled);
    RONDO_TRY(enqueue_part(upstream, i, stage, transfer, rondo_compiled_run_eager));
  }
  return RONDO_OK;
}

rondo_status rondo_upstream_replay(const rondo_upstream *upstream) {
  for (size_t i = 0; i < upstream->parts.count; i++) {
    const rondo_upstream_part *part = &upstream->parts.items[i];
    RONDO_TRY(rondo_exec_launch(part->exec, rondo_compiled_stream(part->compiled)));
  }
  return RONDO_OK;
}

/* Waits for all parts also after a failure, because they use memory of the instance. */
rondo_status rondo_upstream_wait(const rondo_upstream *upstream, rondo_status enqueued) {
  for (size_t i = 0; i < upstream->parts.count; i++)
    RONDO_THEN(enqueued, rondo_compiled_synchronize(upstream->parts.items[i].compiled));
  return enqueued;
}

rondo_status rondo_upstream_copy_results(const rondo_upstream *upstream, rondo_stream *stream,
                                         const unsigned char *transfer) {
  for (size_t i = 0; i < upstream->transfers.count; i++) {
    const rondo_transfer *t = &upstream->transfers.items[i];
    RONDO_TRY(rondo_copy_async(stream, t->destination, transfer + t->offset, t->bytes));
  }
  return RONDO_OK;
}

/* Recording -------------------------------------------------------------------------------------------------------- */

static rondo_status record_work(const rondo_upstream *upstream, uint32_t number, const rondo_stage *stage,
                                unsigned char *transfer) {
  rondo_upstream_part *part = &upstream->parts.items[number];
  rondo_stream *stream = rondo_compiled_stream(part->compiled);
  RONDO_TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status = enqueue_part(upstream, number, stage, transfer, rondo_compiled_record_into);
  RONDO_THEN(status, rondo_capture_end(stream, &part->graph));
  return status;
}

/* Copies of inputs stay in the graph, because their sources never move. */
static rondo_status audit(const rondo_upstream *upstream, const rondo_upstream_part *part, const rondo_stage *stage,
                          const unsigned char *transfer) {
  const rondo_session_model *model = upstream->model;
  rondo_host_range inputs[RONDO_SESSION_MAX_VALUES], outputs[RONDO_SESSION_MAX_VALUES + 1];
  rondo_audit_options options = {RONDO_AUDIT_OPTIONS_INIT, .keep_inputs = true, .inputs = inputs, .outputs = outputs};
  size_t count = 0;
  for (size_t i = 0; i < model->inputs.count; i++)
    inputs[options.input_count++] = rondo_stage_range(model, stage, i, upstream->rows);
  for (size_t i = 0; i < model->outputs.count; i++)
    outputs[options.output_count++] = rondo_stage_range(model, stage, model->inputs.count + i, upstream->rows);
  if (upstream->bytes > 0)
    outputs[options.output_count++] = (rondo_host_range){transfer, upstream->bytes, "transferred results"};
  return rondo_graph_audit_copies(part->graph, &options, NULL, &count, NULL);
}

static rondo_status record_part(const rondo_upstream *upstream, uint32_t number, const rondo_stage *stage,
                                unsigned char *transfer) {
  rondo_upstream_part *part = &upstream->parts.items[number];
  const rondo_capture_mode before = rondo_set_capture_mode(RONDO_CAPTURE_THREAD_LOCAL);
  const rondo_status status = record_work(upstream, number, stage, transfer);
  (void)rondo_set_capture_mode(before);
  RONDO_TRY(status);
  RONDO_TRY(audit(upstream, part, stage, transfer));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT,
                                             .upload_stream = rondo_compiled_stream(part->compiled)};
  return rondo_instantiate(part->graph, &options, &part->exec);
}

rondo_status rondo_upstream_record(rondo_upstream *upstream, const rondo_stage *stage, unsigned char *transfer) {
  for (uint32_t i = 0; i < upstream->parts.count; i++) RONDO_TRY(record_part(upstream, i, stage, transfer));
  return RONDO_OK;
}

/* States ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_upstream_write_state(const rondo_upstream *upstream, const char *name, const void *data,
                                        size_t bytes, bool *out_has) {
  *out_has = false;
  for (size_t i = 0; upstream != NULL && i < upstream->parts.count; i++) {
    rondo_compiled *compiled = upstream->parts.items[i].compiled;
    if (rondo_values_look_up(compiled, name, "sc") == NULL) continue;
    *out_has = true;
    RONDO_TRY(rondo_compiled_write(compiled, name, data, bytes));
    RONDO_TRY(rondo_compiled_synchronize(compiled));
  }
  return RONDO_OK;
}

rondo_status rondo_upstream_apply_weights(const rondo_upstream *upstream, const rondo_weights *weights) {
  for (size_t i = 0; upstream != NULL && i < upstream->parts.count; i++) {
    RONDO_TRY(rondo_weights_apply(weights, upstream->parts.items[i].compiled, NULL, NULL));
    RONDO_TRY(rondo_compiled_synchronize(upstream->parts.items[i].compiled));
  }
  return RONDO_OK;
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_upstream_describe(const rondo_upstream *upstream, rondo_session_graph *inout) {
  for (size_t i = 0; upstream != NULL && i < upstream->parts.count; i++) {
    rondo_exec_info exec = {.struct_size = sizeof exec};
    rondo_compiled_info compiled = {.struct_size = sizeof compiled};
    RONDO_TRY(rondo_exec_get_info(upstream->parts.items[i].exec, &exec));
    RONDO_TRY(rondo_compiled_get_info(upstream->parts.items[i].compiled, &compiled));
    inout->info.nodes += exec.node_count;
    inout->info.exec_bytes += exec.host_bytes + exec.device_bytes;
    inout->info.arena_bytes += compiled.arena_bytes;
  }
  return RONDO_OK;
}

uint64_t rondo_upstream_arena_bytes(const rondo_upstream *upstream) {
  uint64_t bytes = 0, largest;
  for (size_t i = 0; upstream != NULL && i < upstream->parts.count; i++)
    bytes += rondo_compiled_arenas(upstream->parts.items[i].compiled, &largest);
  return bytes;
}

uint64_t rondo_upstream_state_bytes(const rondo_upstream *upstream) {
  uint64_t bytes = 0;
  for (size_t i = 0; upstream != NULL && i < upstream->parts.count; i++) {
    rondo_compiled_info info = {.struct_size = sizeof info};
    if (rondo_compiled_get_info(upstream->parts.items[i].compiled, &info) == RONDO_OK)
      bytes += info.state_bytes - info.shared_bytes;
  }
  return bytes;
}
