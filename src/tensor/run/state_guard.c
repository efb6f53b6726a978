/* SPDX-License-Identifier: MIT
 * Copies of shared states that a warm-up changes. Host memory: device memory may be full with what the states are for.
 */
#include "tensor/run/state_guard.h"

#include <assert.h>

#include "base/error.h"
#include "tensor/compile/emitter.h"
#include "tensor/program/shape.h"

static bool is_guarded(const rondo_state_guard *guard, const void *address) {
  for (size_t i = 0; i < guard->items.count; i++)
    if (guard->items.items[i].address == address) return true;
  return false;
}

static rondo_status keep(const rondo_compiled *compiled, void *address, size_t bytes, rondo_state_guard *guard) {
  assert(address != NULL && bytes > 0);
  rondo_guarded_state state = {.address = address, .bytes = bytes};
  if (is_guarded(guard, address)) return RONDO_OK;
  RONDO_TRY(rondo_allocate(&compiled->allocator, bytes, 1, &state.copy));
  const rondo_status status = rondo_array_push(&compiled->allocator, &guard->items, &state);
  if (status != RONDO_OK) {
    rondo_release(&compiled->allocator, state.copy, bytes, 1);
    return status;
  }
  return rondo_copy_async(compiled->stream, state.copy, address, bytes);
}

static rondo_status keep_updated(const rondo_layout *layout, const rondo_operation *operation,
                                 const rondo_compiled *compiled, rondo_state_guard *guard) {
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t value = operation->inputs[k];
    if (!rondo_operation_updates(operation, k) || value == RONDO_NO_VALUE) continue;
    const rondo_location *location = &layout->locations[value];
    if (location->block != RONDO_BLOCK_SHARED) continue;
    const rondo_shared_value *shared = &compiled->sharing->values.items[location->offset];
    const size_t bytes = rondo_shape_bytes(&shared->shape);
    if (shared->packed != NULL)
      RONDO_TRY(keep(compiled, shared->packed->address, rondo_packed_state_bytes(shared->packed), guard));
    RONDO_TRY(keep(compiled, rondo_location_address(location, compiled), bytes, guard));
  }
  return RONDO_OK;
}

static void release(const rondo_compiled *compiled, rondo_state_guard *guard) {
  for (size_t i = 0; i < guard->items.count; i++)
    rondo_release(&compiled->allocator, guard->items.items[i].copy, guard->items.items[i].bytes, 1);
  rondo_array_free(&compiled->allocator, &guard->items);
}

rondo_status rondo_state_guard_begin(const rondo_program *program, const rondo_layout *layout,
                                     const rondo_compiled *compiled, rondo_state_guard *out) {
  *out = (rondo_state_guard){0};
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < program->operations.count && status == RONDO_OK; i++) /* what updates always runs */
    status = keep_updated(layout, &program->operations.items[i], compiled, out);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status waited = rondo_stream_synchronize(compiled->stream);
  if (status == RONDO_OK && waited == RONDO_OK) return RONDO_OK;
  release(compiled, out);
  return status == RONDO_OK ? waited : rondo_error_raise(&error);
}

rondo_status rondo_state_guard_end(const rondo_compiled *compiled, rondo_state_guard *guard) {
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < guard->items.count && status == RONDO_OK; i++) {
    const rondo_guarded_state *state = &guard->items.items[i];
    status = rondo_copy_async(compiled->stream, state->address, state->copy, state->bytes);
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status waited = rondo_stream_synchronize(compiled->stream);
  release(compiled, guard);
  return status == RONDO_OK ? waited : rondo_error_raise(&error);
}
