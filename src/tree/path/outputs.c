/* SPDX-License-Identifier: MIT
 * Makes the buffers of a call's outputs. Allocates nothing while there are spare buffers.
 */
#include <assert.h>
#include <string.h>

#include "tree/eager_call.h"
#include "tree/function.h"
#include "tree/pad_to_bucket.h"
#include "tree/path/owned_buffer.h"

/* The buffer belongs to no generation. */
static rondo_status make_buffer(rondo_tree *tree, rondo_function *function, rondo_buffer_kind kind,
                                const rondo_output *output, char *address, rondo_buffer **out) {
  RONDO_TRY(rondo_buffer_acquire(tree->commons, function->origin, &tree->info.allocations, out));
  rondo_buffer *buffer = *out;
  buffer->kind = kind;
  buffer->address = address;
  buffer->step = tree->step;
  buffer->extent.bytes = output->extent.bytes;
  buffer->extent.type = output->extent.type;
  buffer->extent.rank = output->extent.rank;
  if (output->extent.rank > 0)
    memcpy(buffer->extent.shape, output->extent.shape, output->extent.rank * sizeof output->extent.shape[0]);
  buffer->capacity = output->extent.bytes;
  if (__builtin_expect(output->extent.has_rows, 0)) {
    buffer->extent.has_rows = true;
    rondo_padding_cut(function, &buffer->extent);
  }
  return RONDO_OK;
}

/* Fresh memory of the arena. Sets its bit on the path. */
static rondo_status make_recorded(rondo_tree *tree, rondo_function *function, const rondo_output *output,
                                  rondo_buffer **out) {
  RONDO_TRY(make_buffer(tree, function, RONDO_BUFFER_ARENA, output, output->address, out));
  (*out)->generation = tree->commons->generation;
  (*out)->bit = output->bit;
  (*out)->is_recorded = true;
  assert(output->bit < tree->path_bits && tree->holders[output->bit] == NULL);
  tree->live[output->bit / 64] |= UINT64_C(1) << output->bit % 64;
  tree->holders[output->bit] = *out;
  return RONDO_OK;
}

static rondo_status make_part(rondo_tree *tree, rondo_function *function, const rondo_output *output,
                              rondo_buffer *whole, rondo_buffer **out) {
  RONDO_TRY(make_buffer(tree, function, RONDO_BUFFER_PART, output, NULL, out));
  rondo_buffer *base = whole->base != NULL ? whole->base : whole;
  assert(base->base == NULL);
  rondo_buffer_retain(base);
  (*out)->base = base;
  (*out)->offset = output->offset + (whole->base != NULL ? whole->offset : 0);
  return RONDO_OK;
}

static rondo_status make_of_input(rondo_tree *tree, rondo_function *function, const rondo_output *output,
                                  const rondo_resolved_input *input, rondo_buffer **out) {
  if (input->buffer != NULL) {
    /* The input may itself begin inside its buffer. */
    rondo_output placed = *output;
    placed.offset += (size_t)(input->address - rondo_buffer_memory(input->buffer));
    return make_part(tree, function, &placed, input->buffer, out);
  }
  char *const address = input->address == NULL ? NULL : input->address + output->offset;
  return make_buffer(tree, function, RONDO_BUFFER_BORROWED, output, address, out);
}

static rondo_status make_nested(rondo_tree *tree, rondo_function *function, const rondo_output *output,
                                rondo_buffer **out) {
  RONDO_TRY(make_buffer(tree, function, RONDO_BUFFER_NESTED, output, output->address, out));
  (*out)->generation = tree->commons->nested_generation;
  return RONDO_OK;
}

static rondo_status make_fresh(rondo_tree *tree, rondo_function *function, rondo_output_source source,
                               const rondo_output *output, rondo_buffer **out) {
  switch (source) {
    case RONDO_OUTPUTS_RECORDED:
      return make_recorded(tree, function, output, out);
    case RONDO_OUTPUTS_NESTED:
      return make_nested(tree, function, output, out);
    case RONDO_OUTPUTS_CAPTURED:
      /* Memory of the caller's graph, which frees or keeps it. */
      return make_buffer(tree, function, RONDO_BUFFER_BORROWED, output, output->address, out);
    case RONDO_OUTPUTS_EAGER:
      break;
  }
  rondo_buffer_layout extent = output->extent;
  rondo_padding_cut(function, &extent);
  return rondo_owned_adopt(tree, output->address, &extent, function->origin, tree->commons->generation, out);
}

static rondo_status make_one(rondo_tree *tree, rondo_function *function, rondo_output_source source,
                             const rondo_output *output, const rondo_resolved_input *inputs, rondo_buffer **outputs,
                             rondo_buffer **out) {
  switch (output->kind) {
    case RONDO_OUTPUT_EMPTY:
      return make_buffer(tree, function, RONDO_BUFFER_BORROWED, output, NULL, out);
    case RONDO_OUTPUT_FRESH:
      break;
    case RONDO_OUTPUT_OF_INPUT:
      return make_of_input(tree, function, output, &inputs[output->of], out);
    case RONDO_OUTPUT_OF_OUTPUT:
      return make_part(tree, function, output, outputs[output->of], out);
  }
  return make_fresh(tree, function, source, output, out);
}

/* Makes all buffers. After a failure, releases those that were made; the caller keeps the rest of the fresh memory. */
static rondo_status make_all(rondo_tree *tree, rondo_function *function, rondo_output_source source,
                             const rondo_output *made, size_t made_count, const rondo_resolved_input *inputs,
                             rondo_buffer **outputs, size_t *out_made_buffers) {
  for (size_t i = 0; i < made_count; i++) {
    const rondo_status status = make_one(tree, function, source, &made[i], inputs, outputs, &outputs[i]);
    if (status == RONDO_OK) {
      outputs[i]->output = (uint32_t)i;
      continue;
    }
    *out_made_buffers = i;
    while (i > 0) {
      rondo_buffer_release(outputs[--i]);
      outputs[i] = NULL;
    }
    return status;
  }
  *out_made_buffers = made_count;
  return RONDO_OK;
}

rondo_status rondo_outputs_reserve(rondo_tree *tree, size_t count) {
  rondo_buffer **made_outputs;
  if (count <= tree->made_capacity) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof(rondo_buffer *), &made_outputs));
  rondo_release(&tree->allocator, tree->made_outputs, tree->made_capacity, sizeof(rondo_buffer *));
  tree->made_outputs = made_outputs;
  tree->made_capacity = count;
  return RONDO_OK;
}

rondo_status rondo_outputs_make(rondo_function *function, rondo_output_source source, const rondo_output *made,
                                size_t made_count, const rondo_resolved_input *inputs, rondo_buffer **outputs,
                                size_t count, size_t *out_made_buffers) {
  rondo_tree *tree = function->tree;
  *out_made_buffers = 0;
  if (count == made_count) return make_all(tree, function, source, made, made_count, inputs, outputs, out_made_buffers);
  rondo_buffer **const all = tree->made_outputs;
  const rondo_status status = make_all(tree, function, source, made, made_count, inputs, all, out_made_buffers);
  for (size_t i = 0; status == RONDO_OK && i < made_count; i++) {
    if (i < count)
      outputs[i] = all[i];
    else
      rondo_buffer_release(all[i]);
  }
  return status;
}

rondo_status rondo_outputs_check_count(const rondo_function *function, size_t made, size_t asked) {
  if (asked <= made) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                    "%s: the call requests %zu outputs of '%s', which creates %zu: request at most as many",
                    rondo_function_call_name(function), asked, function->origin->name, made);
}
