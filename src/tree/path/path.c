/* SPDX-License-Identifier: MIT
 * The path: its live outputs, its next call and its end, and the buffers that users release.
 *
 * Invariant: bit b is set exactly while holders[b] is a buffer of the current generation that is not settled. All bits
 * from path_bits on are clear.
 */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "memory/arena/arena_guard.h"
#include "tree/path/owned_buffer.h"
#include "tree/path/path.h"
#include "tree/path/path_warm_up.h"

/* Bits ------------------------------------------------------------------------------------------------------------- */

static size_t bit_words(const rondo_tree *tree) { return tree->bit_capacity / 64; }

rondo_status rondo_path_reserve(rondo_tree *tree, size_t bits) {
  if (bits <= tree->bit_capacity) return RONDO_OK;
  const size_t capacity = rondo_bit_words(bits) * 64 * 2;
  const rondo_allocator *allocator = &tree->allocator;
  uint64_t *live;
  rondo_buffer **holders;
  RONDO_TRY(rondo_allocate_items(allocator, capacity / 64, sizeof *live, &live));
  const rondo_status status = rondo_allocate_items(allocator, capacity, sizeof(rondo_buffer *), &holders);
  if (status != RONDO_OK) {
    rondo_release(allocator, live, capacity / 64, sizeof *live);
    return status;
  }
  if (tree->bit_capacity > 0) {
    memcpy(live, tree->live, bit_words(tree) * sizeof *live);
    memcpy(holders, tree->holders, tree->bit_capacity * sizeof(rondo_buffer *));
  }
  rondo_release(allocator, tree->live, bit_words(tree), sizeof *tree->live);
  rondo_release(allocator, tree->holders, tree->bit_capacity, sizeof(rondo_buffer *));
  tree->live = live;
  tree->holders = holders;
  tree->bit_capacity = capacity;
  return RONDO_OK;
}

rondo_status rondo_path_list_dead(const rondo_tree *tree, uint32_t bits, uint64_t **out) {
  const size_t words = rondo_bit_words(bits);
  RONDO_TRY(rondo_allocate_items(&tree->allocator, words, sizeof **out, out));
  for (size_t i = 0; i < words; i++) (*out)[i] = i < bit_words(tree) ? ~tree->live[i] : ~UINT64_C(0);
  if (bits % 64 != 0) (*out)[words - 1] &= (UINT64_C(1) << bits % 64) - 1;
  return RONDO_OK;
}

static bool is_any_live(const rondo_tree *tree) {
  for (size_t i = 0; i < rondo_bit_words(tree->path_bits); i++)
    if (tree->live[i] != 0) return true;
  return false;
}

bool rondo_path_is_dead(const rondo_tree *tree) { return tree->step_buffers == NULL && !is_any_live(tree); }

void rondo_path_advance(rondo_tree *tree, rondo_recorded_call *call) {
  assert(call->parent == tree->current);
  assert((size_t)call->first_bit + call->bit_count <= tree->bit_capacity);
  if (tree->current == NULL)
    tree->guess = call;
  else
    tree->current->guess = call;
  call->used = ++tree->tick;
  tree->current = call;
  tree->path_bits = (size_t)call->first_bit + call->bit_count;
}

/* Settling --------------------------------------------------------------------------------------------------------- */

/* The queue on which lifetimes end after the tree's work: that of the stream, or without a stream that of the last
 * call, which is ordered after all work. NULL: the stream of the last call is gone, and its work has finished. */
static rondo_queue *queue_after(const rondo_tree *tree, const rondo_stream *stream) {
  if (stream == NULL) stream = rondo_tree_last_stream(tree);
  return stream == NULL ? NULL : stream->queue;
}

void rondo_path_release(rondo_tree *tree, rondo_stream *stream, const rondo_buffer *buffer) {
  if (buffer->generation != tree->commons->generation) return;
  assert(buffer->bit < tree->path_bits && tree->holders[buffer->bit] == buffer);
  tree->live[buffer->bit / 64] &= ~(UINT64_C(1) << buffer->bit % 64);
  tree->holders[buffer->bit] = NULL;
  rondo_arena_end_life(tree->arena, queue_after(tree, stream), buffer->address);
}

/* Settles a buffer without references. A part releases its base. */
static void settle(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer) {
  assert(buffer->commons == tree->commons);
  rondo_buffer *base = buffer->base;
  if (buffer->kind == RONDO_BUFFER_ARENA) rondo_path_release(tree, stream, buffer);
  if (buffer->kind == RONDO_BUFFER_OWNED)
    rondo_owned_free(tree, stream, buffer);
  else
    rondo_buffer_put_back(buffer);
  if (base != NULL) rondo_buffer_release(base);
}

void rondo_path_settle(rondo_tree *tree, rondo_stream *stream) {
  if (stream != NULL && rondo_owned_has_late(tree)) rondo_owned_free_late(tree, stream);
  while (atomic_load_explicit(&tree->commons->released, memory_order_relaxed) != NULL) {
    rondo_buffer *buffer = atomic_exchange_explicit(&tree->commons->released, NULL, memory_order_acquire);
    while (buffer != NULL) {
      rondo_buffer *next = buffer->next;
      settle(tree, stream, buffer);
      buffer = next;
    }
  }
}

static bool is_nested(const rondo_buffer *buffer) {
  return buffer->kind == RONDO_BUFFER_NESTED || (buffer->base != NULL && buffer->base->kind == RONDO_BUFFER_NESTED);
}

/* Captures the free of a NESTED buffer. A part releases its base, which is NESTED too. */
static rondo_status free_nested(rondo_stream *stream, rondo_buffer *buffer) {
  rondo_buffer *base = buffer->base;
  const rondo_status status = buffer->address == NULL ? RONDO_OK : rondo_free_async(stream, buffer->address);
  rondo_buffer_put_back(buffer);
  rondo_buffer_release(base);
  return status;
}

rondo_status rondo_path_settle_nested(rondo_tree *tree, rondo_stream *stream) {
  rondo_status first = RONDO_OK;
  rondo_buffer *others = NULL, *buffer;
  while ((buffer = atomic_exchange_explicit(&tree->commons->released, NULL, memory_order_acquire)) != NULL)
    for (rondo_buffer *next; buffer != NULL; buffer = next) {
      next = buffer->next;
      if (is_nested(buffer)) {
        rondo_status_keep_first(&first, free_nested(stream, buffer));
      } else {
        buffer->next = others;
        others = buffer;
      }
    }
  for (rondo_buffer *next; others != NULL; others = next) {
    next = others->next;
    rondo_buffer_push(others);
  }
  return first;
}

/* Ending ----------------------------------------------------------------------------------------------------------- */

/* Moves retained outputs of the path to owned memory. Outputs that own their memory keep it. */
static rondo_status clone_held(rondo_tree *tree, rondo_stream *stream) {
  for (size_t bit = 0; bit < tree->path_bits; bit++) {
    if (tree->live[bit / 64] == 0) {
      bit |= 63;
      continue;
    }
    if (tree->holders[bit] != NULL) RONDO_TRY(rondo_owned_clone(tree, stream, tree->holders[bit]));
  }
  while (tree->step_buffers != NULL) rondo_owned_keep(tree, tree->step_buffers);
  return RONDO_OK;
}

static bool is_input(const rondo_tree *tree, size_t input_count, const rondo_buffer *memory) {
  for (size_t i = 0; i < input_count; i++) {
    const rondo_buffer *buffer = tree->inputs[i].buffer;
    if (buffer != NULL && (buffer == memory || buffer->base == memory)) return true;
  }
  return false;
}

/* On a device that watches lifetimes, ends those of retained outputs. The lifetime of an input of the new call ends
 * later, when its memory is allocated again. */
static void end_lives(rondo_tree *tree, const rondo_stream *stream, size_t input_count) {
  for (size_t bit = 0; bit < tree->path_bits; bit++) {
    const rondo_buffer *holder = tree->holders[bit];
    if (holder != NULL && !is_input(tree, input_count, holder))
      rondo_arena_end_life(tree->arena, queue_after(tree, stream), holder->address);
  }
}

rondo_status rondo_path_finish(rondo_tree *tree, rondo_stream *stream, size_t input_count) {
  assert(input_count <= tree->input_capacity);
  if (tree->options.outputs == RONDO_OUTPUTS_CLONE && stream != NULL) RONDO_TRY(clone_held(tree, stream));
  if (tree->is_watched) end_lives(tree, stream, input_count);
  if (is_any_live(tree)) {
    memset(tree->live, 0, bit_words(tree) * sizeof *tree->live);
    memset(tree->holders, 0, tree->bit_capacity * sizeof(rondo_buffer *));
  }
  if (__builtin_expect(tree->warming_up != NULL, 0)) rondo_path_warm_up_end(tree);
  tree->commons->generation++;
  tree->current = NULL;
  tree->path_bits = 0;
  tree->is_eager = false;
  return RONDO_OK;
}

void rondo_path_sweep(rondo_tree *tree, rondo_stream *stream) {
  for (rondo_buffer *buffer = tree->step_buffers, *after; buffer != NULL; buffer = after) {
    after = buffer->after;
    if (buffer->generation != tree->commons->generation) rondo_owned_expire(tree, stream, buffer);
  }
}

/* Order ------------------------------------------------------------------------------------------------------------ */

/* Orders the stream after the last one. */
static rondo_status join_streams(rondo_tree *tree, rondo_stream *last, rondo_stream *stream) {
  if (rondo_stream_find_capture(last) != NULL)
    return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                      "rondo_function_call: the tree's last call ran on %s, which now captures, so the work on %s "
                      "cannot be ordered after it: end the capture first",
                      last->label, stream->label);
  if (tree->order == NULL) RONDO_TRY(rondo_event_create(tree->device, NULL, &tree->order));
  RONDO_TRY(rondo_event_record(tree->order, last));
  return rondo_stream_wait_event(stream, tree->order);
}

rondo_status rondo_path_follow(rondo_tree *tree, rondo_stream *stream) {
  rondo_stream_tie *tie = tree->last_stream;
  if (tie != NULL && tie->stream == stream) return RONDO_OK;
  if (tie != NULL && tie->stream != NULL) RONDO_TRY(join_streams(tree, tie->stream, stream));
  RONDO_TRY(rondo_stream_tie_make(stream, &tree->last_stream));
  rondo_stream_tie_release(tie);
  return RONDO_OK;
}
