/* SPDX-License-Identifier: MIT
 * Using a compiled program: running it, what is known of it, and its end.
 */
#include "tensor/run/compiled.h"

#include <assert.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "device/device.h"
#include "exec/capture/stray_work.h"
#include "tensor/program/shape.h"
#include "tensor/run/arena_use.h"

const rondo_device_use rondo_compiled_use = {.rank = 1, .name = "compiled program"};

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Recorded kernels are verified, so their capture declares the bytes that each argument may access. */
static rondo_status enqueue_kernel(const rondo_compiled *compiled, const rondo_step *step, rondo_stream *stream) {
  if (!compiled->resources.capturing)
    return rondo_launch(stream, step->kernel, step->grid, step->args, step->arg_count);
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .arg_bytes = step->arg_bytes};
  return rondo_launch_with(stream, step->kernel, step->grid, step->args, step->arg_count, &options);
}

rondo_status rondo_compiled_enqueue_step(rondo_compiled *compiled, const rondo_step *step, rondo_stream *stream) {
  const rondo_ranks *ranks = &compiled->ranks;
  assert((step->kernel != NULL) != (step->call != NULL));
  if (ranks->is_short && step->operation >= ranks->first_last && step->operation < ranks->end_last) return RONDO_OK;
  const rondo_status status = step->kernel != NULL ? enqueue_kernel(compiled, step, stream)
                                                   : step->call(&compiled->resources, stream, step->memory);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  return rondo_fail_context(status, "%s (operator %u of %s)", step->operator_name, step->number, compiled->label);
}

rondo_status rondo_compiled_enqueue(rondo_compiled *compiled) {
  RONDO_TRY(rondo_feeds_enqueue_inputs(compiled));
  for (size_t i = 0; i < compiled->steps.count; i++)
    RONDO_TRY(rondo_compiled_enqueue_step(compiled, &compiled->steps.items[i], compiled->stream));
  return rondo_feeds_enqueue_outputs(compiled);
}

static rondo_status run_eager(rondo_compiled *compiled) {
  if (!rondo_arena_is_whole(compiled)) RONDO_TRY(rondo_arena_take(compiled, "rondo_compiled_run_eager"));
  if (compiled->feeds.inputs.count > 0) RONDO_TRY(rondo_feeds_before_run(compiled, "rondo_compiled_run_eager"));
  return rondo_executed_enqueue(compiled);
}

static rondo_status run_recorded(rondo_compiled *compiled) {
  if (__builtin_expect(!rondo_arena_is_whole(compiled), 0)) RONDO_TRY(rondo_arena_take(compiled, "rondo_compiled_run"));
  if (compiled->feeds.inputs.count > 0) RONDO_TRY(rondo_feeds_before_run(compiled, "rondo_compiled_run"));
  return rondo_exec_launch(compiled->ranks.is_short ? compiled->short_exec : compiled->exec, compiled->stream);
}

static rondo_status run_in_round(rondo_compiled *compiled, rondo_status (*run)(rondo_compiled *compiled)) {
  RONDO_TRY(rondo_ranks_begin_run(compiled));
  const rondo_status status = run(compiled);
  rondo_ranks_end_run(compiled, status == RONDO_OK);
  return status;
}

rondo_status rondo_compiled_run_eager(rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_compiled_run_eager", "compiled", compiled));
  RONDO_TRY(rondo_capture_watch_refuse(compiled->stream, "rondo_compiled_run_eager"));
  return compiled->ranks.round > 1 ? run_in_round(compiled, run_eager) : run_eager(compiled);
}

rondo_status rondo_compiled_run(rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_compiled_run", "compiled", compiled));
  if (compiled->exec == NULL) return rondo_compiled_run_eager(compiled);
  return __builtin_expect(compiled->ranks.round > 1, 0) ? run_in_round(compiled, run_recorded) : run_recorded(compiled);
}

/* Clears the traces of a failure that was reported. Without this, a run that stopped halfway, before an update ended
 * it, would have the number of the next run. */
static rondo_status clear_gate(rondo_compiled *compiled) {
  if (compiled->gate == NULL) return RONDO_OK;
  const rondo_fill zeros = {
      .dst = compiled->gate, .element_bytes = sizeof(uint32_t), .width = compiled->gate_bytes / sizeof(uint32_t)};
  RONDO_TRY(rondo_fill_async(compiled->stream, &zeros));
  return rondo_stream_synchronize(compiled->stream);
}

rondo_status rondo_compiled_judge(rondo_compiled *compiled) {
  rondo_saved_error error;
  RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  RONDO_TRY(rondo_executor_settle(compiled->executed.plan));
  const rondo_status status = rondo_index_checks_judge(&compiled->checks);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  const rondo_status failed = rondo_fail_context(status, "%s", compiled->label);
  rondo_error_save(&error);
  const rondo_status cleared = clear_gate(compiled);
  return failed == RONDO_OK ? cleared : rondo_error_raise(&error);
}

rondo_status rondo_compiled_synchronize(rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_compiled_synchronize", "compiled", compiled));
  RONDO_TRY(rondo_compiled_judge(compiled));
  return compiled->feeds.stream == NULL ? RONDO_OK : rondo_stream_synchronize(compiled->feeds.stream);
}

rondo_status rondo_compiled_fail_memory(const rondo_compiled *compiled, rondo_status status, const char *what,
                                        size_t bytes) {
  char text[RONDO_SIZE_TEXT];
  if (status == RONDO_OK) return RONDO_OK;
  return rondo_fail_context(status, "%s of %s (%s)", what, compiled->label, rondo_size_text(text, bytes));
}

/* The invariant ---------------------------------------------------------------------------------------------------- */

#ifndef NDEBUG
static void check_step(const rondo_step *step) {
  assert((step->kernel != NULL) != (step->call != NULL) && step->operator_name != NULL);
  assert(step->arg_count == 0 || (step->args != NULL && step->arg_bytes != NULL));
}

static void check_packed(const rondo_compiled *compiled, const rondo_named_value *value) {
  if (value->packed == NULL) return;
  assert(value->kind == 's' && value->address == NULL && value->packed->address != NULL && compiled->packer != NULL);
  assert(rondo_type_bytes(value->shape.type) == value->packed->bytes);
  assert(rondo_packed_state_elements(value->packed) == rondo_shape_elements(&value->shape));
}

void rondo_compiled_check(const rondo_compiled *compiled) {
  assert(compiled->sharing != NULL && compiled->stream == compiled->sharing->stream);
  assert(compiled->exec == NULL || compiled->info.eager_reason == RONDO_EAGER_NONE);
  assert(compiled->arena == NULL || compiled->arena->users > 0);
  assert((compiled->gate != NULL) == (compiled->gate_bytes > 0));
  assert(compiled->checks.items.count <= compiled->checks.capacity);
  assert((compiled->order == NULL) == (compiled->before.start == NULL));
  for (size_t i = 0; i < compiled->steps.count; i++) check_step(&compiled->steps.items[i]);
  for (size_t i = 0; i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    assert(value->name != NULL && !(value->is_lost && !value->in_arena));
    assert((value->input == NULL && value->output == NULL) || !value->in_arena);
    check_packed(compiled, value);
  }
}
#endif

/* What is known ---------------------------------------------------------------------------------------------------- */

rondo_stream *rondo_compiled_stream(const rondo_compiled *compiled) {
  return compiled == NULL ? NULL : compiled->stream;
}

rondo_graph *rondo_compiled_graph(const rondo_compiled *compiled) { return compiled == NULL ? NULL : compiled->graph; }

rondo_exec *rondo_compiled_exec(const rondo_compiled *compiled) { return compiled == NULL ? NULL : compiled->exec; }

rondo_status rondo_compiled_get_info(const rondo_compiled *compiled, rondo_compiled_info *out_info) {
  RONDO_TRY(rondo_require("rondo_compiled_get_info", "compiled", compiled));
  RONDO_TRY(rondo_require("rondo_compiled_get_info", "out_info", out_info));
  return rondo_versioned_write("rondo_compiled_info", &compiled->info, out_info, sizeof compiled->info);
}

/* The end ---------------------------------------------------------------------------------------------------------- */

static void free_host(rondo_compiled *compiled) {
  const rondo_allocator allocator = compiled->allocator;
  rondo_device *device = compiled->device;
  for (size_t i = 0; i < compiled->steps.count; i++) {
    rondo_release(&allocator, compiled->steps.items[i].memory, compiled->steps.items[i].memory_bytes, 1);
  }
  for (size_t i = 0; i < compiled->values.count; i++) rondo_release_text(&allocator, compiled->values.items[i].name);
  rondo_array_free(&allocator, &compiled->steps);
  rondo_release(&allocator, compiled->order, compiled->before.count, sizeof *compiled->order);
  rondo_edges_free(&allocator, &compiled->before);
  rondo_array_free(&allocator, &compiled->values);
  rondo_held_free(compiled);
  rondo_ranks_free(compiled);
  rondo_release_text(&allocator, compiled->name);
  rondo_release_text(&allocator, compiled->label);
  rondo_release_text(&allocator, compiled->pattern_names);
  rondo_release(&allocator, compiled, 1, sizeof *compiled);
  rondo_device_end_use(device, &rondo_compiled_use);
}

/* Reports failures of work that the caller has not waited for: a wrong index, or an error that the stream keeps. If
 * waiting failed, the stream may still run. */
static rondo_status finish_work(rondo_compiled *compiled) {
  if (compiled->stream == NULL) return RONDO_OK;
  rondo_saved_error error;
  const rondo_status status = rondo_compiled_judge(compiled);
  rondo_error_save(&error);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_status_ignore(rondo_stream_synchronize(compiled->stream), "the first failure is returned");
  return rondo_error_raise(&error);
}

static rondo_status settle(rondo_compiled *compiled) {
  rondo_status status = finish_work(compiled);
  rondo_exec_destroy(compiled->exec);
  rondo_exec_destroy(compiled->short_exec);
  rondo_executed_deinit(compiled);
  rondo_status_keep_first(&status, rondo_graph_destroy(compiled->graph));
  rondo_status_keep_first(&status, rondo_graph_destroy(compiled->short_graph));
  rondo_status_keep_first(&status, rondo_feeds_deinit(compiled));
  rondo_status_keep_first(&status, rondo_bounce_deinit(&compiled->bounce));
  rondo_status_keep_first(&status, rondo_index_checks_deinit(&compiled->checks));
  rondo_status_keep_first(&status, rondo_sharing_leave_arena(compiled->sharing, compiled->arena, compiled));
  rondo_status_keep_first(&status, rondo_free(compiled->device, compiled->own));
  rondo_status_keep_first(&status, rondo_free(compiled->device, compiled->states));
  rondo_status_keep_first(&status, rondo_resources_deinit(&compiled->resources));
  rondo_status_keep_first(&status, rondo_sharing_release(compiled->sharing));
  return status;
}

rondo_status rondo_compiled_destroy(rondo_compiled *compiled) {
  if (compiled == NULL || compiled->device->is_inherited) return RONDO_OK;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED; /* freeing must not disturb captures of other threads */
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  rondo_status_keep_first(&status, settle(compiled));
  rondo_status_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  free_host(compiled);
  return status;
}
