/* SPDX-License-Identifier: MIT
 * Using a compiled program: running it, writing and reading its named values, and what is known of it.
 */
#include "tensor/compiled.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/versioned.h"
#include "exec/capture_watch.h"
#include "tensor/arena_use.h"
#include "tensor/shape.h"

/* Running --------------------------------------------------------------------------------------------------------- */

/* What is recorded is verified, so the bytes are said. */
static rondo_status play_kernel(rondo_compiled *compiled, const rondo_step *step) {
  if (!compiled->resources.capturing)
    return rondo_launch(compiled->stream, step->kernel, step->grid, step->args, step->arg_count);
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .arg_bytes = step->arg_bytes};
  return rondo_launch_with(compiled->stream, step->kernel, step->grid, step->args, step->arg_count, &options);
}

rondo_status rondo_compiled_play(rondo_compiled *compiled, const rondo_step *step) {
  const rondo_status status = step->kernel != NULL ? play_kernel(compiled, step)
                                                   : step->call(&compiled->resources, compiled->stream, step->memory);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  return rondo_fail_context(status, "%s (operator %u of program '%s')", step->operator_name, step->operation,
                            compiled->name);
}

rondo_status rondo_compiled_run_unrecorded(rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_compiled_run_unrecorded", "compiled", compiled));
  RONDO_TRY(rondo_capture_refuse_stray(compiled->stream, "rondo_compiled_run_unrecorded"));
  if (!rondo_arena_is_whole(compiled)) RONDO_TRY(rondo_arena_take(compiled, "rondo_compiled_run_unrecorded"));
  for (size_t i = 0; i < compiled->steps.count; i++) {
    RONDO_TRY(rondo_compiled_play(compiled, &compiled->steps.items[i]));
  }
  return RONDO_OK;
}

rondo_status rondo_compiled_run(rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_compiled_run", "compiled", compiled));
  if (compiled->exec == NULL) return rondo_compiled_run_unrecorded(compiled);
  if (__builtin_expect(!rondo_arena_is_whole(compiled), 0)) RONDO_TRY(rondo_arena_take(compiled, "rondo_compiled_run"));
  return rondo_exec_launch(compiled->exec, compiled->stream);
}

/* Waits, and looks for wrong indices. */
static rondo_status wait_and_judge(rondo_compiled *compiled) {
  RONDO_TRY(rondo_index_checks_queue(&compiled->checks, compiled->stream));
  RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  const rondo_status status = rondo_index_checks_judge(&compiled->checks, compiled->stream);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "program '%s'", compiled->name);
}

rondo_status rondo_compiled_synchronize(rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_compiled_synchronize", "compiled", compiled));
  return wait_and_judge(compiled);
}

/* Named values ---------------------------------------------------------------------------------------------------- */

static rondo_status fail_unknown(const rondo_compiled *compiled, const char *call, const char *name,
                                 const char *kinds) {
  char list[512] = "";
  size_t used = 0;
  for (size_t i = 0; i < compiled->values.count && used + 8 < sizeof list; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if (strchr(kinds, value->kind) == NULL) continue;
    const size_t bytes = strlen(value->name);
    if (used + bytes + 3 > sizeof list - 8) {
      memcpy(list + used, ", ...", sizeof ", ...");
      break;
    }
    if (used > 0) memcpy(list + used, ", ", 3), used += 2;
    memcpy(list + used, value->name, bytes + 1);
    used += bytes;
  }
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                    "%s: program '%s' has no such value '%s'; there are: %s", call, compiled->name, name,
                    used == 0 ? "none" : list);
}

/* The value of this name among those of the given kinds, whose size must be `bytes`. */
static rondo_status find_value(const rondo_compiled *compiled, const char *call, const char *name, const char *kinds,
                               size_t bytes, rondo_named_value **out) {
  for (size_t i = 0; i < compiled->values.count; i++) {
    rondo_named_value *value = &compiled->values.items[i];
    if (strcmp(value->name, name) != 0 || strchr(kinds, value->kind) == NULL) continue;
    *out = value;
    const size_t wanted = rondo_shape_bytes(&value->shape);
    if (bytes == wanted) return RONDO_OK;
    char shape[RONDO_SHAPE_TEXT];
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: '%s' %s has %zu bytes, not %zu", call, name,
                      rondo_shape_text(shape, &value->shape), wanted, bytes);
  }
  return fail_unknown(compiled, call, name, kinds);
}

static rondo_status find_capture(const rondo_compiled *compiled, bool *out_captures) {
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  *out_captures = info.state != RONDO_CAPTURE_NONE;
  return RONDO_OK;
}

rondo_status rondo_compiled_refuse_capturing(const rondo_compiled *compiled, const char *call) {
  bool captures;
  RONDO_TRY(find_capture(compiled, &captures));
  if (!captures) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: program '%s' while its stream captures: end the capture first", call, compiled->name);
}

/* What is copied now would be copied at each replay, from memory that then holds something else. */
static rondo_status refuse_while_capturing(const rondo_compiled *compiled, const char *call, const char *name) {
  bool captures;
  RONDO_TRY(find_capture(compiled, &captures));
  if (!captures) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: '%s' of program '%s' while its stream captures: '%s' stays at its address, so write it before "
                    "the capture or a replay, and read it behind a replay",
                    call, name, compiled->name, name);
}

rondo_status rondo_compiled_write(rondo_compiled *compiled, const char *name, const void *data, size_t bytes) {
  static const char call[] = "rondo_compiled_write";
  rondo_named_value *value = NULL;
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(rondo_require(call, "data", data));
  RONDO_TRY(find_value(compiled, call, name, "sci", bytes, &value));
  RONDO_TRY(refuse_while_capturing(compiled, call, name));
  if (value->in_arena) rondo_arena_claim(compiled);
  RONDO_TRY(rondo_staging_write(&compiled->staging, compiled->stream, value->address, data, bytes));
  if (value->is_lost) rondo_arena_note_written(compiled, value);
  return RONDO_OK;
}

rondo_status rondo_compiled_read(rondo_compiled *compiled, const char *name, void *data, size_t bytes) {
  static const char call[] = "rondo_compiled_read";
  rondo_named_value *value = NULL;
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(rondo_require(call, "data", data));
  RONDO_TRY(find_value(compiled, call, name, "sco", bytes, &value));
  RONDO_TRY(refuse_while_capturing(compiled, call, name));
  RONDO_TRY(rondo_arena_require(compiled, value, call));
  RONDO_TRY(rondo_copy_async(compiled->stream, data, value->address, bytes));
  return wait_and_judge(compiled);
}

/* What is known --------------------------------------------------------------------------------------------------- */

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

rondo_status rondo_compiled_get_value(const rondo_compiled *compiled, size_t index, rondo_compiled_value *out_value) {
  RONDO_TRY(rondo_require("rondo_compiled_get_value", "compiled", compiled));
  RONDO_TRY(rondo_require("rondo_compiled_get_value", "out_value", out_value));
  if (index >= compiled->values.count) {
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "program '%s' has %zu named values, so none at %zu",
                      compiled->name, compiled->values.count, index);
  }
  const rondo_named_value *value = &compiled->values.items[index];
  rondo_compiled_value out = {.kind = value->kind,
                              .type = value->shape.type,
                              .name = value->name,
                              .rank = value->shape.rank,
                              .bytes = rondo_shape_bytes(&value->shape),
                              .address = value->address};
  memcpy(out.shape, value->shape.dims, sizeof out.shape);
  return rondo_versioned_write("rondo_compiled_value", &out, out_value, sizeof out);
}

/* The end --------------------------------------------------------------------------------------------------------- */

static void keep_first(rondo_status *kept, rondo_status status) {
  if (*kept == RONDO_OK) *kept = status;
}

static void free_host(rondo_compiled *compiled) {
  const rondo_allocator allocator = compiled->allocator;
  for (size_t i = 0; i < compiled->steps.count; i++) {
    rondo_release(&allocator, compiled->steps.items[i].memory, compiled->steps.items[i].memory_bytes, 1);
  }
  for (size_t i = 0; i < compiled->values.count; i++) rondo_release_text(&allocator, compiled->values.items[i].name);
  rondo_array_free(&allocator, &compiled->steps);
  rondo_array_free(&allocator, &compiled->values);
  rondo_held_free(compiled);
  rondo_index_checks_deinit(&compiled->checks);
  rondo_release_text(&allocator, compiled->name);
  rondo_release(&allocator, compiled, 1, sizeof *compiled);
}

/* Work that was never waited for has its say once more: a wrong index, or what the stream has kept. Where looking for
 * it failed, the stream may still run. */
static rondo_status finish_work(rondo_compiled *compiled) {
  if (compiled->stream == NULL) return RONDO_OK;
  rondo_saved_error error;
  const rondo_status status = wait_and_judge(compiled);
  rondo_error_save(&error);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_status_ignore(rondo_stream_synchronize(compiled->stream), "the first failure is the one to tell");
  return rondo_error_raise(&error);
}

static rondo_status settle(rondo_compiled *compiled) {
  rondo_status status = finish_work(compiled);
  rondo_exec_destroy(compiled->exec);
  keep_first(&status, rondo_graph_destroy(compiled->graph));
  keep_first(&status, rondo_staging_deinit(&compiled->staging));
  keep_first(&status, rondo_sharing_leave_arena(compiled->sharing, compiled->arena, compiled));
  keep_first(&status, rondo_free(compiled->device, compiled->own));
  keep_first(&status, rondo_free(compiled->device, compiled->states));
  rondo_resources_deinit(&compiled->resources);
  keep_first(&status, rondo_sharing_release(compiled->sharing));
  return status;
}

rondo_status rondo_compiled_destroy(rondo_compiled *compiled) {
  if (compiled == NULL) return RONDO_OK;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED; /* freeing must not disturb a capture of somebody else's */
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  keep_first(&status, settle(compiled));
  keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  free_host(compiled);
  return status;
}
