/* SPDX-License-Identifier: MIT
 * Launches recorded calls. A warm call costs one address for each moving input and one launch. Nothing here allocates
 * or locks, with one exception: if a call ends a path, its inputs may be outputs of that path that the launch would
 * overwrite. These are saved first. That happens in loops that pass the outputs of a step to the next step.
 */
#include "tree/replay.h"

#include <assert.h>

#include "base/log.h"
#include "memory/memory_errors.h"
#include "tree/eager_call.h"
#include "tree/path/owned_buffer.h"
#include "tree/record/function_body.h"
#include "tree/record/shared_execs.h"

/* Copy nodes accept any memory. Memory of the tree or of the device is known without a driver call. */
bool rondo_input_can_be_copied(const rondo_tree *tree, const char *address, size_t bytes) {
  if (!tree->has_copy_kernel) return true;
  return rondo_memory_is_plain(tree->memory, address, bytes) || rondo_arena_owns(tree->arena, address) ||
         tree->device->ops->has_address(tree->device, address);
}

/* Whether the input overlaps a slot of the call. */
static bool is_in_slots(const rondo_recorded_call *call, const rondo_resolved_input *input) {
  for (size_t i = 0; i < call->bound_count; i++) {
    const rondo_bound_input *bound = &call->bound[i];
    if (input->address < bound->slot + bound->bytes && bound->slot < input->address + input->bytes) return true;
  }
  return false;
}

/* Whether copying inputs into slots may overwrite this one before it is copied. */
static bool is_endangered(const rondo_recorded_call *call, const rondo_bound_input *bound,
                          const rondo_resolved_input *input) {
  return input->is_of_ending && input->address != bound->slot && is_in_slots(call, input);
}

static rondo_status copy_in(rondo_tree *tree, rondo_stream *stream, const rondo_bound_input *bound,
                            const void *source) {
  assert(bound->slot != NULL);
  tree->info.copied_inputs++;
  tree->info.copied_bytes += bound->bytes;
  return source == bound->slot ? RONDO_OK : rondo_stream_copy(stream, bound->slot, source, bound->bytes);
}

/* Whether an output of the ended path must be copied before the launch, because the launch may overwrite it. It is not
 * written back: nobody can read it any more, and its memory may belong to another output by then. */
static bool is_copied_before(const rondo_recorded_call *call, const rondo_bound_input *bound,
                             const rondo_resolved_input *input) {
  return input->is_of_ending && (bound->is_mutated || is_in_slots(call, input));
}

static inline bool is_patched_now(const rondo_bound_input *bound, const rondo_resolved_input *input) {
  return bound->method == RONDO_BOUND_PATCHED && !input->is_of_ending &&
         rondo_patch_fits(bound->recorded, input->address);
}

/* Sets the address that the launch uses: the address of the input, or of its slot. In the latter case, copies the input
 * into the slot, from its saved copy if there is one. */
static rondo_status bind_input(rondo_tree *tree, rondo_stream *stream, const rondo_recorded_call *call,
                               const rondo_bound_input *bound, const rondo_resolved_input *input, const void *saved,
                               const void **out_address) {
  *out_address = input->address;
  if (is_patched_now(bound, input)) {
    tree->info.patched_inputs++;
    return RONDO_OK;
  }
  if (bound->method == RONDO_BOUND_COPIED && !is_copied_before(call, bound, input) &&
      rondo_input_can_be_copied(tree, input->address, input->bytes)) {
    tree->info.copied_inputs++;
    tree->info.copied_bytes += bound->bytes;
    return RONDO_OK;
  }
  *out_address = bound->slot;
  return copy_in(tree, stream, bound, saved != NULL ? saved : input->address);
}

/* `saved`: by bound input, its saved copy or NULL. NULL: no input was saved. */
static rondo_status bind_inputs(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                                const rondo_resolved_input *inputs, void *const *saved) {
  for (size_t i = 0; i < call->bound_count; i++) {
    const rondo_bound_input *bound = &call->bound[i];
    RONDO_TRY(bind_input(tree, stream, call, bound, &inputs[bound->input], saved == NULL ? NULL : saved[i],
                         &call->addresses[i]));
  }
  return RONDO_OK;
}

/* Saves inputs that copies into slots would overwrite. */
static rondo_status save_inputs(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                                const rondo_resolved_input *inputs, void **saved) {
  for (size_t i = 0; i < call->bound_count; i++) {
    const rondo_bound_input *bound = &call->bound[i];
    const rondo_resolved_input *input = &inputs[bound->input];
    if (!is_endangered(call, bound, input)) continue;
    RONDO_TRY(rondo_owned_allocate(tree, stream, bound->bytes, "an input between two steps", &saved[i]));
    RONDO_TRY(rondo_stream_copy(stream, saved[i], input->address, bound->bytes));
    tree->info.clones++;
    tree->info.cloned_bytes += bound->bytes;
  }
  return RONDO_OK;
}

static void drop_saved(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream, void *const *saved) {
  for (size_t i = 0; i < call->bound_count; i++) rondo_owned_free_address(tree, stream, saved[i]);
}

/* Binds the inputs through their saved copies, which are freed after the copies. */
static rondo_status bind_saved(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                               const rondo_resolved_input *inputs) {
  void **saved;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, call->bound_count, sizeof(void *), &saved));
  tree->info.allocations++;
  rondo_status status = save_inputs(tree, call, stream, inputs, saved);
  if (status == RONDO_OK) status = bind_inputs(tree, call, stream, inputs, saved);
  rondo_saved_error error;
  if (status != RONDO_OK) rondo_error_save(&error);
  drop_saved(tree, call, stream, saved);
  if (status != RONDO_OK) rondo_error_raise(&error);
  rondo_release(&tree->allocator, saved, call->bound_count, sizeof(void *));
  return status;
}

/* Whether setting the address suffices. `last` is the address that was set last. */
static inline bool is_settable(const rondo_tree *tree, const rondo_bound_input *bound, const char *address,
                               const void *last) {
  if (__builtin_expect(bound->method == RONDO_BOUND_PATCHED, 1)) return rondo_patch_fits(bound->recorded, address);
  return bound->method == RONDO_BOUND_COPIED &&
         (address == last || rondo_input_can_be_copied(tree, address, bound->bytes));
}

/* The usual case, in which setting addresses suffices. False: an input needs more. The addresses are in `given`, or in
 * `inputs` if that is NULL. */
static inline __attribute__((always_inline)) bool set_addresses(rondo_tree *tree, const rondo_recorded_call *call,
                                                                const rondo_input *given,
                                                                const rondo_resolved_input *inputs) {
  const size_t count = call->bound_count;
  const rondo_bound_input *bound = call->bound;
  const void **addresses = call->addresses;
  size_t copied = 0, bytes = 0;
  for (size_t i = 0; i < count; i++) {
    const uint32_t at = bound[i].input;
    assert(at < call->function->options.input_count);
    if (given == NULL && inputs[at].is_of_ending) return false;
    const char *address = given != NULL ? given[at].address : inputs[at].address;
    if (!is_settable(tree, &bound[i], address, addresses[i])) return false;
    addresses[i] = address;
    if (__builtin_expect(bound[i].method == RONDO_BOUND_PATCHED, 1)) continue;
    copied++;
    bytes += bound[i].bytes;
  }
  tree->info.patched_inputs += count - copied;
  tree->info.copied_inputs += copied;
  tree->info.copied_bytes += bytes;
  return true;
}

bool rondo_replay_set_addresses(rondo_tree *tree, const rondo_recorded_call *call, const rondo_input *given) {
  return set_addresses(tree, call, given, NULL);
}

static rondo_status bind_all(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                             const rondo_resolved_input *inputs) {
  if (__builtin_expect(set_addresses(tree, call, NULL, inputs), 1)) return RONDO_OK;
  for (size_t i = 0; i < call->bound_count; i++) {
    const rondo_bound_input *bound = &call->bound[i];
    if (__builtin_expect(is_endangered(call, bound, &inputs[bound->input]), 0))
      return bind_saved(tree, call, stream, inputs);
  }
  return bind_inputs(tree, call, stream, inputs, NULL);
}

rondo_status rondo_replay_segment(const rondo_recorded_call *call, const rondo_segment *segment, rondo_stream *stream) {
  assert(segment->tree_exec != NULL && segment->tree_exec->exec == segment->exec);
  if (__builtin_expect(segment->tree_exec->holds != segment->number, 0))
    RONDO_TRY(rondo_tree_exec_switch(call->function->tree, call, segment));
  return segment->patches != NULL ? rondo_patch_launch(segment->patches, stream, call->addresses)
                                  : rondo_exec_launch(segment->exec, stream);
}

static rondo_status write_back(const rondo_recorded_call *call, rondo_stream *stream,
                               const rondo_resolved_input *inputs) {
  for (size_t i = 0; i < call->bound_count; i++) {
    const rondo_bound_input *bound = &call->bound[i];
    const rondo_resolved_input *input = &inputs[bound->input];
    if (bound->is_mutated && !input->is_of_ending && call->addresses[i] == bound->slot && input->address != bound->slot)
      RONDO_TRY(rondo_stream_copy(stream, input->address, bound->slot, bound->bytes));
  }
  return RONDO_OK;
}

static rondo_status take_step(const rondo_recorded_call *call, const rondo_segment *segment, rondo_stream *stream) {
  rondo_stream_hold(stream);
  const rondo_status status = rondo_host_step_run(call->function, segment->step, segment->user);
  rondo_stream_let_go(stream);
  return status;
}

rondo_status rondo_replay_launch(const rondo_recorded_call *call, rondo_stream *stream) {
  for (size_t i = 0; i < call->segment_count; i++) {
    const rondo_segment *segment = &call->segments[i];
    RONDO_TRY(rondo_replay_segment(call, segment, stream));
    if (segment->step == NULL) continue;
    RONDO_TRY(rondo_stream_drain(stream, "a host step"));
    RONDO_TRY(take_step(call, segment, stream));
  }
  return RONDO_OK;
}

rondo_status rondo_replay(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                          const rondo_resolved_input *inputs) {
  RONDO_TRY(bind_all(tree, call, stream, inputs));
  RONDO_TRY(rondo_replay_launch(call, stream));
  return call->function->has_written_moving ? write_back(call, stream, inputs) : RONDO_OK;
}
