/* SPDX-License-Identifier: MIT
 * Buffers that own memory of the tree's pool. One list has the buffers that belong to a step: the outputs of eager
 * calls. Another list has the buffers that belong to no step: clones, and buffers of rondo_buffer_create.
 */
#include "tree/path/owned_buffer.h"

#include <assert.h>

#include "base/log.h"
#include "tree/call.h"
#include "tree/path/path.h"
#include "tree/tree.h"

static rondo_buffer **list_of(rondo_tree *tree, const rondo_buffer *buffer) {
  return buffer->generation == RONDO_NO_GENERATION ? &tree->kept_buffers : &tree->step_buffers;
}

static void link_in(rondo_tree *tree, rondo_buffer *buffer) {
  rondo_buffer **list = list_of(tree, buffer);
  buffer->before = NULL;
  buffer->after = *list;
  if (*list != NULL) (*list)->before = buffer;
  *list = buffer;
}

static void link_out(rondo_tree *tree, rondo_buffer *buffer) {
  if (buffer->before == NULL)
    *list_of(tree, buffer) = buffer->after;
  else
    buffer->before->after = buffer->after;
  if (buffer->after != NULL) buffer->after->before = buffer->before;
  buffer->before = buffer->after = NULL;
}

rondo_status rondo_owned_adopt(rondo_tree *tree, void *address, const rondo_buffer_layout *extent, rondo_origin *origin,
                               uint64_t generation, rondo_buffer **out) {
  uint64_t allocations = 0;
  RONDO_TRY(rondo_buffer_acquire(tree->commons, origin, &allocations, out));
  rondo_buffer *buffer = *out;
  buffer->kind = RONDO_BUFFER_OWNED;
  buffer->generation = generation;
  buffer->step = tree->step;
  buffer->address = address;
  buffer->extent = *extent;
  tree->info.eager_bytes += extent->bytes;
  link_in(tree, buffer);
  return RONDO_OK;
}

rondo_status rondo_owned_allocate(const rondo_tree *tree, rondo_stream *stream, size_t bytes, const char *name,
                                  void **out) {
  *out = NULL;
  if (bytes == 0) return RONDO_OK;
  if (stream == NULL) return rondo_malloc(tree->device, bytes, name, out);
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = name, .pool = tree->pool};
  return rondo_malloc_async(stream, bytes, &options, out);
}

/* False: the free must be retried, because host memory was exhausted or the stream refused it. On a lost device no work
 * can use the memory, so it is freed at once. */
static bool free_address(const rondo_tree *tree, rondo_stream *stream, void *address) {
  if (address == NULL) return true;
  rondo_status status = stream == NULL ? rondo_free(tree->device, address) : rondo_free_async(stream, address);
  if (stream != NULL && status == RONDO_DEVICE_LOST) status = rondo_free(tree->device, address);
  if (status != RONDO_OK) rondo_log(RONDO_LOG_ERROR, "tree", "freeing a buffer: %s", rondo_last_error()->message);
  return status == RONDO_OK;
}

/* Keeps the address for a later free. If the list cannot grow, waits for the stream and frees the memory now. */
static void keep_address(rondo_tree *tree, rondo_stream *stream, void *address) {
  if (rondo_array_push(&tree->allocator, &tree->unfreed_addresses, &address) == RONDO_OK) return;
  if (stream != NULL && rondo_stream_await(stream, "rondo_function_call") == RONDO_OK &&
      rondo_memory_free(tree->memory, "rondo_function_call", NULL, address) == RONDO_OK)
    return;
  rondo_log(RONDO_LOG_ERROR, "tree", "freeing memory of a tree (%s): %s",
            tree->options.name[0] == '\0' ? "no name" : tree->options.name, rondo_last_error()->message);
}

void rondo_owned_free_address(rondo_tree *tree, rondo_stream *stream, void *address) {
  rondo_saved_error error;
  rondo_error_save(&error);
  const bool is_captured = stream != NULL && rondo_stream_find_capture(stream) != NULL;
  if (!free_address(tree, stream, address) && !is_captured) keep_address(tree, stream, address);
  rondo_error_restore(&error);
}

static void forget_memory(rondo_tree *tree, rondo_buffer *buffer) {
  assert(tree->info.eager_bytes >= buffer->extent.bytes);
  tree->info.eager_bytes -= buffer->extent.bytes;
  buffer->address = NULL;
  buffer->kind = RONDO_BUFFER_BORROWED;
}

/* A buffer that cannot be freed now stays in its list. The next call sweeps the list again. */
void rondo_owned_expire(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer) {
  if (!free_address(tree, stream, buffer->address)) return;
  link_out(tree, buffer);
  forget_memory(tree, buffer);
}

static void free_or_keep(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer) {
  if (!free_address(tree, stream, buffer->address)) {
    buffer->next = tree->unfreed;
    tree->unfreed = buffer;
    return;
  }
  forget_memory(tree, buffer);
  rondo_buffer_put_back(buffer);
}

void rondo_owned_free(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer) {
  link_out(tree, buffer);
  if (stream != NULL || buffer->address == NULL) {
    free_or_keep(tree, stream, buffer);
    return;
  }
  buffer->next = tree->unfreed;
  tree->unfreed = buffer;
}

static void free_addresses_late(rondo_tree *tree, rondo_stream *stream) {
  size_t kept = 0;
  for (size_t i = 0; i < tree->unfreed_addresses.count; i++) {
    void *address = tree->unfreed_addresses.items[i];
    if (!free_address(tree, stream, address)) tree->unfreed_addresses.items[kept++] = address;
  }
  tree->unfreed_addresses.count = kept;
}

void rondo_owned_free_late(rondo_tree *tree, rondo_stream *stream) {
  rondo_buffer *buffer = tree->unfreed;
  tree->unfreed = NULL;
  while (buffer != NULL) {
    rondo_buffer *next = buffer->next;
    free_or_keep(tree, stream, buffer);
    buffer = next;
  }
  free_addresses_late(tree, stream);
}

void rondo_owned_keep(rondo_tree *tree, rondo_buffer *buffer) {
  assert(buffer->kind == RONDO_BUFFER_OWNED);
  link_out(tree, buffer);
  buffer->generation = RONDO_NO_GENERATION;
  link_in(tree, buffer);
}

/* Clones the whole capacity, because a part may be beyond the rows of the output. */
rondo_status rondo_owned_clone(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer) {
  assert(buffer->kind == RONDO_BUFFER_ARENA && buffer->capacity >= buffer->extent.bytes);
  void *address;
  RONDO_TRY(rondo_owned_allocate(tree, stream, buffer->capacity, buffer->origin->name, &address));
  const rondo_status status = rondo_copy_async(stream, address, buffer->address, buffer->capacity);
  if (status != RONDO_OK) {
    rondo_owned_free_address(tree, stream, address);
    return status;
  }
  rondo_path_release(tree, stream, buffer);
  buffer->kind = RONDO_BUFFER_OWNED;
  buffer->generation = RONDO_NO_GENERATION;
  buffer->address = address;
  buffer->is_recorded = false;
  tree->info.eager_bytes += buffer->extent.bytes;
  tree->info.clones++;
  tree->info.cloned_bytes += buffer->capacity;
  link_in(tree, buffer);
  return RONDO_OK;
}

/* The tree is destroyed, so no free is retried. */
static void drop(rondo_tree *tree, rondo_buffer *buffer) {
  (void)free_address(tree, NULL, buffer->address);
  forget_memory(tree, buffer);
}

void rondo_owned_free_all(rondo_tree *tree) {
  while (tree->unfreed != NULL) {
    rondo_buffer *buffer = tree->unfreed;
    tree->unfreed = buffer->next;
    drop(tree, buffer);
    rondo_buffer_put_back(buffer);
  }
  free_addresses_late(tree, NULL);
  rondo_array_free(&tree->allocator, &tree->unfreed_addresses);
  rondo_buffer **const lists[] = {&tree->step_buffers, &tree->kept_buffers};
  for (size_t i = 0; i < 2; i++)
    while (*lists[i] != NULL) {
      rondo_buffer *buffer = *lists[i];
      link_out(tree, buffer);
      drop(tree, buffer);
    }
}

/* Public calls ----------------------------------------------------------------------------------------------------- */

static rondo_status make(rondo_tree *tree, rondo_stream *stream, const rondo_buffer_layout *extent,
                         rondo_origin *origin, const char *name, rondo_buffer **out) {
  void *address;
  RONDO_TRY(rondo_owned_allocate(tree, stream, extent->bytes, name, &address));
  const rondo_status status = rondo_owned_adopt(tree, address, extent, origin, RONDO_NO_GENERATION, out);
  if (status != RONDO_OK) rondo_owned_free_address(tree, stream, address);
  return status;
}

rondo_status rondo_buffer_create(rondo_tree *tree, size_t bytes, const rondo_output_options *options,
                                 rondo_buffer **out_buffer) {
  const char *const call = "rondo_buffer_create";
  RONDO_TRY(rondo_check_call(call, "out_buffer", out_buffer));
  *out_buffer = NULL;
  RONDO_TRY(rondo_check_call(call, "the tree", tree));
  RONDO_TRY(rondo_device_require_own(call, tree->device));
  if (bytes == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: bytes is 0: give at least 1", call);
  rondo_buffer_layout extent;
  const char *name;
  RONDO_TRY(rondo_layout_read(call, bytes, options, &extent, &name));
  RONDO_TRY(rondo_tree_enter(tree, call));
  const rondo_status status = make(tree, NULL, &extent, NULL, name, out_buffer);
  rondo_tree_leave(tree);
  return status;
}

rondo_status rondo_buffer_clone(const rondo_buffer *buffer, rondo_stream *stream, rondo_buffer **out_buffer) {
  const char *const call = "rondo_buffer_clone";
  RONDO_TRY(rondo_check_call(call, "out_buffer", out_buffer));
  *out_buffer = NULL;
  RONDO_TRY(rondo_check_call(call, "the buffer", buffer));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  if (!rondo_buffer_is_current(buffer)) return rondo_buffer_refuse_stale(call, buffer);
  rondo_tree *tree = buffer->commons->tree;
  RONDO_TRY(rondo_require_device(call, "the stream", tree->device, stream->device));
  RONDO_TRY(rondo_call_refuse_capture(call, stream));
  RONDO_TRY(rondo_tree_enter(tree, call));
  rondo_status status = make(tree, stream, &buffer->extent, buffer->origin, "a clone", out_buffer);
  if (status == RONDO_OK && buffer->extent.bytes > 0) {
    (*out_buffer)->output = buffer->output;
    status = rondo_copy_async(stream, (*out_buffer)->address, rondo_buffer_memory(buffer), buffer->extent.bytes);
    if (status != RONDO_OK) {
      rondo_buffer_release(*out_buffer);
      *out_buffer = NULL;
    }
  }
  rondo_tree_leave(tree);
  return status;
}
