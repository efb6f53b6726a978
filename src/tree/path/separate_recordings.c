/* SPDX-License-Identifier: MIT
 * Recordings without paths: their arenas, and who holds what of them. Invariant: a holder is a buffer whose `recording`
 * is the recorded call, in the place of its bit; a buffer that is in no place is stale or has memory of its own.
 */
#include "tree/path/separate_recordings.h"

#include "memory/arena/arena_guard.h"
#include "memory/graph_memory/address_ranges.h"
#include "tree/path/owned_buffer.h"

/* Of what its work is known to need, were nothing shared, so many times are reserved, and no less than that. */
enum { ADDRESS_TIMES = 4 };
#define LEAST_ADDRESSES ((size_t)1 << 30)

/* What the work allocated, and its slots, side by side; false where it is not known, or is too much. */
static bool find_sum(const rondo_tree *tree, const rondo_recorded_call *made, size_t *out) {
  const rondo_form *form = made->form;
  *out = 0;
  for (size_t i = 0; i < form->noted_count; i++)
    for (size_t k = 0; k < form->noted[i]->lifetimes.count; k++)
      if (!rondo_checked_add(*out, form->noted[i]->lifetimes.items[k].bytes, out)) return false;
  for (size_t i = 0; i < made->function->options.input_count; i++) {
    const rondo_resolved_input *input = &tree->inputs[i];
    if (input->way == RONDO_WAY_MOVING && !rondo_checked_add(*out, input->bytes, out)) return false;
  }
  return form->noted_count > 0 && rondo_checked_multiply(*out, ADDRESS_TIMES, out);
}

/* A whole device's for each would use up all addresses with some hundred recordings. 0: the device's, as where nothing
 * is known, or was tried in vain, or no address is given out twice. */
static size_t find_reserve(const rondo_tree *tree, const rondo_recorded_call *made) {
  size_t bytes;
  if (tree->options.max_bytes != 0) return (size_t)tree->options.max_bytes;
  if (tree->is_watched || made->form->failures > 0 || !find_sum(tree, made, &bytes)) return 0;
  if (bytes >= rondo_graph_addresses_wanted(tree->memory)) return 0;
  return bytes > LEAST_ADDRESSES ? bytes : LEAST_ADDRESSES;
}

rondo_status rondo_separate_arena(rondo_tree *tree, rondo_recorded_call *made, rondo_arena **out) {
  *out = tree->arena;
  if (!tree->options.separate) return RONDO_OK;
  const rondo_arena_options options = {.reserve = find_reserve(tree, made), .name = made->function->origin->name};
  RONDO_TRY(rondo_arena_create(tree->memory, &options, &made->arena));
  *out = made->arena;
  return RONDO_OK;
}

rondo_status rondo_separate_reserve(rondo_tree *tree, rondo_recorded_call *made) {
  if (made->arena == NULL) return RONDO_OK;
  return rondo_allocate_items(&tree->allocator, made->bit_count, sizeof(rondo_buffer *), &made->holders);
}

static bool is_of(const rondo_resolved_input *input, const rondo_buffer *memory) {
  return input->buffer != NULL && (input->buffer == memory || input->buffer->base == memory);
}

/* Whether the buffer, or a part of it, is an input of the call that begins. */
static bool is_input(const rondo_tree *tree, const rondo_function *function, const rondo_buffer *memory) {
  for (size_t i = 0; i < function->options.input_count; i++)
    if (is_of(&tree->inputs[i], memory)) return true;
  return false;
}

static void expire(rondo_recorded_call *call, rondo_queue *queue, rondo_buffer *buffer, bool is_read) {
  call->holders[buffer->bit] = NULL;
  buffer->era = RONDO_STALE_ERA;
  buffer->recording = NULL;
  if (!is_read) rondo_arena_end_life(call->arena, queue, buffer->address);
}

/* Inputs move with their buffer. */
static rondo_status clone(rondo_tree *tree, const rondo_function *function, rondo_stream *stream,
                          rondo_buffer *buffer) {
  const char *from = buffer->address;
  RONDO_TRY(rondo_own_clone(tree, stream, buffer));
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_resolved_input *input = &tree->inputs[i];
    if (is_of(input, buffer)) input->address = buffer->address + (input->address - from);
  }
  return RONDO_OK;
}

/* What the replay reads of its own outputs must be copied before it writes them. */
static void mark_own_inputs(const rondo_tree *tree, const rondo_recorded_call *call) {
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_resolved_input *input = &tree->inputs[i];
    if (input->way == RONDO_WAY_MOVING && rondo_arena_owns(call->arena, input->address)) input->is_of_ending = true;
  }
}

rondo_status rondo_separate_begin(rondo_tree *tree, rondo_recorded_call *call, rondo_stream *stream) {
  for (uint32_t i = 0; i < call->bit_count; i++) {
    rondo_buffer *holder = call->holders[i];
    if (holder == NULL) continue;
    if (tree->options.outputs == RONDO_OUTPUTS_CLONE)
      RONDO_TRY(clone(tree, call->function, stream, holder));
    else
      expire(call, stream->queue, holder, is_input(tree, call->function, holder));
  }
  mark_own_inputs(tree, call);
  return RONDO_OK;
}

void rondo_separate_hold(rondo_tree *tree, rondo_buffer *buffer) {
  rondo_recorded_call *call = tree->replayed_call;
  buffer->recording = call;
  buffer->era = RONDO_NO_ERA;
  call->holders[buffer->bit] = buffer;
}

void rondo_separate_let_go(rondo_recorded_call *call, rondo_queue *queue, const rondo_buffer *buffer) {
  call->holders[buffer->bit] = NULL;
  rondo_arena_end_life(call->arena, queue, buffer->address);
}

bool rondo_separate_is_held(const rondo_recorded_call *call) {
  for (uint32_t i = 0; call->arena != NULL && i < call->bit_count; i++)
    if (call->holders[i] != NULL) return true;
  return false;
}

rondo_status rondo_separate_require_waitable(const rondo_tree *tree, const char *call) {
  rondo_stream *last = tree->last_stream == NULL ? NULL : tree->last_stream->stream;
  if (!tree->options.separate || last == NULL || rondo_stream_find_capture(last) == NULL) return RONDO_OK;
  return rondo_fail(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
      "%s: %s, on which the tree's last call ran, captures now, and its work is waited for before separate "
      "recordings go: end the capture first",
      call, last->label);
}

void rondo_separate_free(rondo_tree *tree, rondo_recorded_call *call) {
  if (call->arena == NULL) return;
  const rondo_stream_tie *tie = tree->last_stream;
  if (tie != NULL && tie->stream != NULL)
    rondo_status_ignore(rondo_stream_await(tie->stream, "rondo_function_call"),
                        "a lost device is told where it is waited for");
  for (uint32_t i = 0; call->holders != NULL && i < call->bit_count; i++)
    if (call->holders[i] != NULL) expire(call, NULL, call->holders[i], false);
  rondo_release(&tree->allocator, call->holders, call->bit_count, sizeof(rondo_buffer *));
  rondo_arena_destroy(call->arena);
}

void rondo_separate_add_info(const rondo_tree *tree, rondo_arena_info *arena, uint32_t *inout_live) {
  for (const rondo_recorded_call *call = tree->first; call != NULL; call = call->next) {
    rondo_arena_info own;
    if (call->arena == NULL) continue;
    rondo_arena_get_info(call->arena, &own);
    arena->backed += own.backed;
    arena->high += own.high;
    for (uint32_t i = 0; i < call->bit_count; i++) *inout_live += call->holders[i] != NULL;
  }
}
