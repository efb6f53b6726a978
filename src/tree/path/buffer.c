/* SPDX-License-Identifier: MIT
 * Buffers as handles: creating, retaining and releasing them. path.c and owned_buffer.c manage their memory.
 */
#include "tree/path/buffer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"

/* The value of `released` once the tree accepts no more buffers. */
static rondo_buffer sealed;

rondo_status rondo_commons_create(const rondo_allocator *allocator, rondo_tree_commons **out) {
  void *state;
  RONDO_TRY(rondo_allocate(allocator, 1, sizeof **out, &state));
  rondo_tree_commons *commons = state;
  commons->allocator = *allocator;
  commons->generation = RONDO_NO_GENERATION + 1;
  *out = commons;
  return RONDO_OK;
}

rondo_buffer *rondo_commons_seal(rondo_tree_commons *commons) {
  atomic_store_explicit(&commons->references, commons->buffers_out + 1, memory_order_relaxed);
  atomic_store_explicit(&commons->is_gone, true, memory_order_relaxed);
  return atomic_exchange_explicit(&commons->released, &sealed, memory_order_acq_rel);
}

static void free_origin(rondo_tree_commons *commons, rondo_origin *origin) {
  rondo_release_text(&commons->allocator, origin->name);
  rondo_release(&commons->allocator, origin, 1, sizeof *origin);
}

void rondo_commons_release(rondo_tree_commons *commons) {
  if (atomic_fetch_sub_explicit(&commons->references, 1, memory_order_acq_rel) != 1) return;
  while (commons->origins != NULL) {
    rondo_origin *origin = commons->origins;
    commons->origins = origin->next;
    free_origin(commons, origin);
  }
  while (commons->spare != NULL) {
    rondo_buffer *buffer = commons->spare;
    commons->spare = buffer->next;
    rondo_release(&commons->allocator, buffer, 1, sizeof *buffer);
  }
  const rondo_allocator allocator = commons->allocator;
  rondo_release(&allocator, commons, 1, sizeof *commons);
}

rondo_status rondo_origin_create(rondo_tree_commons *commons, const char *name, rondo_origin **out) {
  void *state;
  RONDO_TRY(rondo_allocate(&commons->allocator, 1, sizeof **out, &state));
  rondo_origin *origin = state;
  const rondo_status status = rondo_allocate_text(&commons->allocator, name, &origin->name);
  if (status != RONDO_OK) {
    rondo_release(&commons->allocator, origin, 1, sizeof *origin);
    return status;
  }
  origin->next = commons->origins;
  commons->origins = origin;
  *out = origin;
  return RONDO_OK;
}

static void drop_origin(rondo_tree_commons *commons, rondo_origin *origin) {
  assert(origin->is_retired && origin->buffers == 0);
  rondo_origin **place = &commons->origins;
  while (*place != origin) place = &(*place)->next;
  *place = origin->next;
  free_origin(commons, origin);
}

void rondo_origin_retire(rondo_tree_commons *commons, rondo_origin *origin) {
  assert(!origin->is_retired);
  origin->is_retired = true;
  if (origin->buffers == 0) drop_origin(commons, origin);
}

rondo_status rondo_buffer_acquire(rondo_tree_commons *commons, rondo_origin *origin, uint64_t *inout_allocations,
                                  rondo_buffer **out) {
  rondo_buffer *buffer = commons->spare;
  if (buffer != NULL) {
    commons->spare = buffer->next;
    buffer->next = NULL;
  } else {
    void *state;
    RONDO_TRY(rondo_allocate(&commons->allocator, 1, sizeof *buffer, &state));
    buffer = state;
    buffer->commons = commons;
    (*inout_allocations)++;
  }
  atomic_init(&buffer->references, 1);
  commons->buffers_out++;
  buffer->origin = origin;
  if (origin != NULL) origin->buffers++;
  *out = buffer;
  return RONDO_OK;
}

void rondo_buffer_put_back(rondo_buffer *buffer) {
  assert(atomic_load_explicit(&buffer->references, memory_order_relaxed) == 0);
  assert(buffer->commons->buffers_out > 0);
  rondo_tree_commons *commons = buffer->commons;
  rondo_origin *origin = buffer->origin;
  assert(origin == NULL || origin->buffers > 0);
  if (origin != NULL && --origin->buffers == 0 && origin->is_retired) drop_origin(commons, origin);
  memset(buffer, 0, sizeof *buffer);
  buffer->commons = commons;
  buffer->next = commons->spare;
  commons->spare = buffer;
  commons->buffers_out--;
}

/* Retaining -------------------------------------------------------------------------------------------------------- */

void rondo_buffer_retain(rondo_buffer *buffer) {
  if (buffer != NULL) atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}

/* Frees a buffer whose tree, and memory, are gone. */
static void free_orphan(rondo_buffer *buffer) {
  rondo_tree_commons *commons = buffer->commons;
  rondo_buffer *base = buffer->base;
  rondo_release(&commons->allocator, buffer, 1, sizeof *buffer);
  rondo_buffer_release(base);
  rondo_commons_release(commons);
}

void rondo_buffer_push(rondo_buffer *buffer) {
  rondo_tree_commons *commons = buffer->commons;
  rondo_buffer *first = atomic_load_explicit(&commons->released, memory_order_acquire);
  do {
    if (first == &sealed) { /* the acquire sees the references that were counted before */
      free_orphan(buffer);
      return;
    }
    buffer->next = first;
  } while (!atomic_compare_exchange_weak_explicit(&commons->released, &first, buffer, memory_order_release,
                                                  memory_order_acquire));
}

void rondo_buffer_release(rondo_buffer *buffer) {
  if (buffer != NULL && atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1)
    rondo_buffer_push(buffer);
}

rondo_status rondo_layout_read(const char *call, size_t bytes, const rondo_output_options *options,
                               rondo_buffer_layout *out, const char **out_name) {
  rondo_output_options known;
  RONDO_TRY(rondo_versioned_read("rondo_output_options", options, &known, sizeof known));
  if (known.rank > RONDO_TREE_MAX_RANK)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: the shape has %" PRIu32 " dimensions, and the maximum is %d", call, known.rank,
                      RONDO_TREE_MAX_RANK);
  const bool has_rows = known.flags == RONDO_OUTPUT_ROWS;
  if ((known.flags != 0 && !has_rows) ||
      (has_rows && (known.rank == 0 || known.shape[0] == 0 || bytes % known.shape[0] != 0)))
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
        "%s: flags are %#" PRIx32
        ": RONDO_OUTPUT_ROWS needs a shape whose first dimension is the number of rows, and divides the bytes",
        call, known.flags);
  *out = (rondo_buffer_layout){.bytes = bytes, .type = known.type, .rank = known.rank, .has_rows = has_rows};
  memcpy(out->shape, known.shape, known.rank * sizeof out->shape[0]);
  *out_name = known.name == NULL ? "" : known.name;
  return RONDO_OK;
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_buffer_refuse_stale(const char *call, const rondo_buffer *buffer) {
  if (rondo_buffer_is_gone(buffer))
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_TREE_GONE,
        "%s: the buffer's tree was destroyed, and the memory of the buffer with it: copy the buffer before that", call);
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_STALE_BUFFER,
                    "%s: output %" PRIu32 " of '%s' belongs to step %" PRIu64
                    ", which has ended: its memory may be overwritten. Clone it in its step (rondo_buffer_clone), "
                    "create the tree with RONDO_OUTPUTS_CLONE, or make both calls in one step (rondo_tree_step_begin)",
                    call, buffer->output, buffer->origin == NULL ? "" : buffer->origin->name, buffer->step);
}

rondo_status rondo_buffer_address(const rondo_buffer *buffer, void **out_address) {
  const char *const call = "rondo_buffer_address";
  RONDO_TRY(rondo_require(call, "out_address", out_address));
  *out_address = NULL;
  RONDO_TRY(rondo_check_call(call, "the buffer", buffer));
  if (!rondo_buffer_is_current(buffer)) return rondo_buffer_refuse_stale(call, buffer);
  *out_address = rondo_buffer_memory(buffer);
  return RONDO_OK;
}

rondo_status rondo_buffer_copy(const rondo_buffer *buffer, rondo_stream *stream, size_t offset, void *dst,
                               size_t bytes) {
  const char *const call = "rondo_buffer_copy";
  RONDO_TRY(rondo_check_call(call, "the buffer", buffer));
  if (!rondo_buffer_is_current(buffer)) return rondo_buffer_refuse_stale(call, buffer);
  if (offset > buffer->extent.bytes || bytes > buffer->extent.bytes - offset)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: %zu bytes from %zu on of a buffer of %zu bytes", call, bytes, offset, buffer->extent.bytes);
  return bytes == 0 ? RONDO_OK : rondo_copy_async(stream, dst, rondo_buffer_memory(buffer) + offset, bytes);
}

rondo_status rondo_buffer_get_info(const rondo_buffer *buffer, rondo_buffer_info *out_info) {
  const char *const call = "rondo_buffer_get_info";
  RONDO_TRY(rondo_check_call(call, "the buffer", buffer));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  const rondo_buffer *memory = buffer->base != NULL ? buffer->base : buffer;
  rondo_buffer_info info = {.is_valid = rondo_buffer_is_current(buffer),
                            .is_recorded = memory->is_recorded,
                            .output = buffer->output,
                            .function = buffer->origin == NULL ? "" : buffer->origin->name,
                            .step = memory->generation == RONDO_NO_GENERATION ? 0 : buffer->step,
                            .bytes = buffer->extent.bytes,
                            .type = buffer->extent.type,
                            .rank = buffer->extent.rank};
  memcpy(info.shape, buffer->extent.shape, sizeof info.shape);
  return rondo_versioned_write("rondo_buffer_info", &info, out_info, sizeof info);
}
