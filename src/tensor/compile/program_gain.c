/* SPDX-License-Identifier: MIT
 * Deciding whether a compiled program is recorded (FW-8), and measuring what that gains. Measuring runs the program on
 * its memory, which is saved before and restored after it.
 */
#include "tensor/compile/program_gain.h"

#include "base/error.h"
#include "base/log.h"
#include "base/versioned_struct.h"
#include "tensor/program/shape.h"

rondo_status rondo_record_options_keep(rondo_compiled *compiled, const rondo_compile_options *given) {
  const char *const call = "rondo_compile";
  compiled->policy = given->record;
  compiled->branches = given->branches;
  compiled->fusion = given->fusion;
  compiled->allow_tf32 = given->allow_tf32;
  compiled->own_kernels = given->own_kernels;
  compiled->plain_states = given->plain_states;
  compiled->bar = (rondo_gain_bar){.least = given->least_gain, .runs = given->expected_runs};
  RONDO_TRY(rondo_pattern_set_read(given->without_patterns, &compiled->without_patterns));
  RONDO_TRY(rondo_allocate_text(&compiled->allocator, given->without_patterns, &compiled->pattern_names));
  RONDO_TRY(rondo_record_policy_check(call, compiled->policy));
  return rondo_gain_bar_check(call, compiled->bar);
}

static rondo_status enqueue_run(rondo_stream *stream, void *user) {
  (void)stream; /* the program's own */
  return rondo_compiled_enqueue(user);
}

static rondo_status take_gain(const char *call, rondo_compiled *compiled, uint32_t repeats) {
  rondo_gain gain;
  RONDO_TRY(rondo_gain_take(call, compiled->stream, enqueue_run, compiled, compiled->exec, repeats, &gain));
  RONDO_TRY(rondo_device_get_costs(compiled->device, &compiled->costs));
  compiled->gain = gain;
  compiled->has_gain = true;
  return RONDO_OK;
}

/* Deciding --------------------------------------------------------------------------------------------------------- */

/* If nothing can be measured, because a stream captures, the program is recorded, and the refusal is no error. */
static rondo_status estimate(rondo_compiled *compiled, bool *out_pays) {
  rondo_saved_error before;
  rondo_error_save(&before);
  *out_pays = true;
  const rondo_status status = take_gain("rondo_compile", compiled, 0);
  if (status == RONDO_CAPTURE_REFUSED) {
    rondo_log(RONDO_LOG_INFO, "tensor", "%s is recorded without an estimate: %s", compiled->label,
              rondo_last_error()->message);
    rondo_error_restore(&before);
    return RONDO_OK;
  }
  RONDO_TRY(status);
  *out_pays = rondo_gain_pays(&compiled->gain, compiled->bar.least, compiled->bar.runs);
  return RONDO_OK;
}

rondo_status rondo_record_decide(rondo_compiled *compiled, bool *out_is_recorded) {
  *out_is_recorded = compiled->policy != RONDO_RECORD_NEVER;
  if (compiled->policy == RONDO_RECORD_NEVER) compiled->info.eager_reason = RONDO_EAGER_REQUESTED;
  if (compiled->policy != RONDO_RECORD_AUTO) return RONDO_OK;
  RONDO_TRY(estimate(compiled, out_is_recorded));
  if (*out_is_recorded) return RONDO_OK;
  char message[RONDO_GAIN_MESSAGE];
  compiled->info.eager_reason = RONDO_EAGER_NO_GAIN;
  rondo_gain_explain(&compiled->gain, compiled->bar, message, sizeof message);
  rondo_log(RONDO_LOG_INFO, "tensor", "%s is not recorded: %s", compiled->label, message);
  return RONDO_OK;
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

/* The rows of a value, or, with an odd index, the packed elements. */
static void find_state(const rondo_compiled *compiled, size_t index, unsigned char **out_address, size_t *out_bytes) {
  const rondo_named_value *value = &compiled->values.items[index / 2];
  unsigned char *packed = value->packed == NULL ? NULL : value->packed->address;
  *out_address = index % 2 == 0 ? rondo_named_rows(value) : packed;
  if (value->kind == 's' && *out_address != NULL)
    *out_bytes = index % 2 == 0 ? rondo_shape_bytes(&value->shape) : rondo_packed_state_bytes(value->packed);
}

/* The block number `index` of the memory that runs write: states, the cells of index checks, the arena, and the buffers
 * of staged outputs. Returns false past the last. */
static bool find_block(const rondo_compiled *compiled, size_t index, unsigned char **out_address, size_t *out_bytes) {
  const size_t values = 2 * compiled->values.count;
  *out_bytes = 0;
  if (index < values) {
    find_state(compiled, index, out_address, out_bytes);
  } else if (index == values) {
    *out_address = (unsigned char *)compiled->checks.cells;
    *out_bytes = compiled->checks.capacity * sizeof(uint64_t);
  } else if (index == values + 1) {
    *out_address = compiled->arena == NULL ? NULL : compiled->arena->memory;
    *out_bytes = compiled->arena == NULL ? 0 : (size_t)compiled->info.arena_bytes;
  } else if (index - values - 2 < compiled->feeds.outputs.count) {
    *out_address = compiled->feeds.outputs.items[index - values - 2].buffer;
    *out_bytes = compiled->feeds.outputs.items[index - values - 2].bytes;
  }
  return index < values + 2 + compiled->feeds.outputs.count;
}

static size_t count_bytes(const rondo_compiled *compiled) {
  unsigned char *address;
  size_t all = 0, bytes;
  for (size_t i = 0; find_block(compiled, i, &address, &bytes); i++) all += bytes;
  return all;
}

/* Copies all blocks to the copy, or back. */
static rondo_status copy_memory(const rondo_compiled *compiled, unsigned char *copy, bool is_back) {
  unsigned char *address;
  size_t bytes;
  for (size_t i = 0; find_block(compiled, i, &address, &bytes); i++) {
    if (bytes == 0) continue;
    RONDO_TRY(rondo_copy_async(compiled->stream, is_back ? address : copy, is_back ? copy : address, bytes));
    copy += bytes;
  }
  return rondo_stream_synchronize(compiled->stream);
}

static rondo_status measure_with(const char *call, rondo_compiled *compiled, unsigned char *copy, uint32_t repeats) {
  if (compiled->feeds.stream != NULL) RONDO_TRY(rondo_stream_synchronize(compiled->feeds.stream));
  RONDO_TRY(copy_memory(compiled, copy, false));
  const rondo_status status = take_gain(call, compiled, repeats);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status back = copy_memory(compiled, copy, true);
  return status == RONDO_OK ? back : rondo_error_raise(&error);
}

static rondo_status measure(const char *call, rondo_compiled *compiled, uint32_t repeats) {
  const size_t needed = count_bytes(compiled), bytes = needed > 0 ? needed : 1;
  void *copy = NULL;
  const rondo_status had = rondo_malloc(compiled->device, bytes, "a copy of a program's memory", &copy);
  if (had != RONDO_OK) {
    char text[RONDO_SIZE_TEXT];
    return rondo_fail_context(had, "%s: a copy of the memory of %s (%s)", call, compiled->label,
                              rondo_size_text(text, bytes));
  }
  const rondo_status status = measure_with(call, compiled, copy, repeats);
  const rondo_status freed = rondo_free(compiled->device, copy);
  return status == RONDO_OK ? freed : status;
}

/* As compiling does, so that captures of other threads are not disturbed. */
static rondo_status measure_relaxed(const char *call, rondo_compiled *compiled, uint32_t repeats) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  const rondo_status status = measure(call, compiled, repeats);
  const rondo_status back = rondo_capture_exchange_thread_mode(&mode);
  return status == RONDO_OK ? back : status;
}

rondo_status rondo_compiled_measure(rondo_compiled *compiled, uint32_t repeats, rondo_gain *out_gain) {
  const char *const call = "rondo_compiled_measure";
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_versioned_check("rondo_gain", out_gain, sizeof *out_gain));
  if (compiled->ranks.communicator != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "%s: %s is data-parallel, and ranks would run it a different number of times", call,
                      compiled->label);
  RONDO_TRY(rondo_gain_check(call, compiled->stream, repeats));
  if (compiled->feeds.inputs.count > 0) RONDO_TRY(rondo_feeds_before_run(compiled, call));
  RONDO_TRY(measure_relaxed(call, compiled, repeats));
  return out_gain == NULL ? RONDO_OK : rondo_compiled_get_gain(compiled, out_gain);
}

rondo_status rondo_compiled_get_gain(const rondo_compiled *compiled, rondo_gain *out_gain) {
  const char *const call = "rondo_compiled_get_gain";
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "out_gain", out_gain));
  if (compiled->has_gain) return rondo_versioned_write("rondo_gain", &compiled->gain, out_gain, sizeof compiled->gain);
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                    "%s: what recording %s gains was neither predicted nor measured: call "
                    "rondo_compiled_measure, or compile it with RONDO_RECORD_AUTO",
                    call, compiled->label);
}
