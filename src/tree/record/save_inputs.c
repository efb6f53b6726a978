/* SPDX-License-Identifier: MIT
 * Copies the inputs that a run may write, in stream order before the run, and restores them after it.
 */
#include "tree/record/save_inputs.h"

#include "tree/path/owned_buffer.h"

static bool is_to_save(const rondo_resolved_input *input) {
  return input->is_mutated && input->role <= RONDO_ROLE_MANAGED && input->bytes > 0;
}

static rondo_status save_one(rondo_tree *tree, rondo_stream *stream, const rondo_resolved_input *input,
                             rondo_saved *out) {
  rondo_saved_input saved = {.address = input->address, .bytes = input->bytes};
  RONDO_TRY(rondo_owned_allocate(tree, stream, saved.bytes, "an input before a test run", &saved.copy));
  rondo_status status = rondo_copy_async(stream, saved.copy, saved.address, saved.bytes);
  if (status == RONDO_OK) status = rondo_array_push(&tree->allocator, &out->inputs, &saved);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_owned_free_address(tree, stream, saved.copy);
  return status;
}

/* Returns the first failure. All copies are freed. */
static rondo_status end_inputs(rondo_tree *tree, rondo_stream *stream, rondo_saved *saved, bool is_kept) {
  rondo_status first = RONDO_OK;
  for (size_t i = saved->inputs.count; i > 0; i--) {
    const rondo_saved_input *input = &saved->inputs.items[i - 1];
    const rondo_status status =
        is_kept ? RONDO_OK : rondo_copy_async(stream, input->address, input->copy, input->bytes);
    if (first == RONDO_OK) first = status;
    rondo_owned_free_address(tree, stream, input->copy);
  }
  rondo_array_free(&tree->allocator, &saved->inputs);
  return first;
}

rondo_status rondo_save(rondo_tree *tree, rondo_stream *stream, const rondo_function *function,
                        const rondo_resolved_input *inputs, rondo_saved *out) {
  *out = (rondo_saved){0};
  rondo_status status = RONDO_OK;
  for (size_t i = 0; status == RONDO_OK && i < function->options.input_count; i++)
    if (is_to_save(&inputs[i])) status = save_one(tree, stream, &inputs[i], out);
  if (status == RONDO_OK) {
    rondo_random_rollback_begin(&out->draws, &tree->allocator);
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(end_inputs(tree, stream, out, true), "the first failure is reported");
  return rondo_error_raise(&error);
}

rondo_status rondo_save_end(rondo_tree *tree, rondo_stream *stream, rondo_saved *saved, bool is_kept) {
  rondo_random_rollback_end(&saved->draws, !is_kept);
  return end_inputs(tree, stream, saved, is_kept);
}
