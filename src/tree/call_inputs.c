/* SPDX-License-Identifier: MIT
 * The inputs of a call, resolved once: the address of each, and how the work uses it. Allocates nothing.
 */
#include <assert.h>

#include "tree/call_inputs.h"
#include "tree/tree_internal.h"

/* Resolving -------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_input(const char *call, const rondo_function *function, size_t index, rondo_reason reason,
                                 const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: input %zu of '%s' %s", call, index, function->origin->name,
                    what);
}

static rondo_status resolve_buffer(const char *call, const rondo_function *function, size_t index,
                                   const rondo_input *given, rondo_resolved_input *out) {
  const rondo_buffer *buffer = given->buffer;
  if (!rondo_buffer_is_current(buffer)) return rondo_buffer_refuse_stale(call, buffer);
  if (__builtin_expect(buffer->commons != function->tree->commons, 0))
    RONDO_TRY(rondo_require_device(call, "an input's buffer", function->tree->device, buffer->commons->tree->device));
  char *const memory = rondo_buffer_memory(buffer);
  const size_t offset = given->address == NULL ? 0 : (size_t)((char *)given->address - memory);
  if (offset > buffer->extent.bytes || given->bytes > buffer->extent.bytes - offset)
    return refuse_input(call, function, index, RONDO_REASON_OUT_OF_RANGE, "is not inside its buffer");
  out->buffer = given->buffer;
  out->offset = offset;
  out->address = memory == NULL ? NULL : memory + offset;
  out->bytes = given->bytes == 0 ? buffer->extent.bytes - offset : given->bytes;
  if (given->type == 0) {
    out->type = buffer->extent.type;
    out->rank = buffer->extent.rank;
    out->shape = buffer->extent.shape;
  }
  const rondo_buffer *base = buffer->base != NULL ? buffer->base : buffer;
  if (base->kind == RONDO_BUFFER_ARENA && base->commons == function->tree->commons) out->role = RONDO_ROLE_MANAGED;
  out->is_sole =
      given->give && (out->role == RONDO_ROLE_MANAGED || rondo_buffer_is_of_warm_up(buffer, function->tree->commons)) &&
      buffer->base == NULL && offset == 0 && atomic_load_explicit(&buffer->references, memory_order_relaxed) == 1;
  return RONDO_OK;
}

static rondo_status resolve_memory(const char *call, const rondo_function *function, size_t index,
                                   const rondo_input *given, rondo_resolved_input *out) {
  out->type = given->type;
  out->rank = given->rank;
  out->shape = given->shape;
  if (given->rank > RONDO_TREE_MAX_RANK)
    return refuse_input(call, function, index, RONDO_REASON_SHAPE, "has more dimensions than RONDO_TREE_MAX_RANK");
  if (given->buffer != NULL) return resolve_buffer(call, function, index, given, out);
  if (given->bytes > 0 && given->address == NULL)
    return refuse_input(call, function, index, RONDO_REASON_NULL_ARGUMENT, "has bytes and neither buffer nor address");
  out->address = given->address;
  out->bytes = given->bytes;
  return RONDO_OK;
}

/* The role of an input whose declared kind is MOVING or STATIC. An output of the path later becomes MANAGED. */
static inline rondo_input_role role_of_memory(uint32_t kind) {
  static_assert((int)RONDO_ROLE_MOVING == RONDO_INPUT_MOVING && (int)RONDO_ROLE_STATIC == RONDO_INPUT_STATIC,
                "kinds of memory are roles");
  return (rondo_input_role)(kind & 0xff);
}

/* Whether no other input is the same buffer. */
static bool is_one_input(const rondo_input *given, size_t count, size_t index) {
  for (size_t i = 0; i < count; i++)
    if (i != index && given[i].buffer == given[index].buffer) return false;
  return true;
}

static rondo_status resolve_input(const char *call, const rondo_function *function, size_t index,
                                  const rondo_input *given, rondo_resolved_input *out) {
  const size_t count = function->options.input_count;
  const uint32_t kind = function->options.inputs[index];
  const rondo_input *own = &given[index];
  *out = (rondo_resolved_input){.is_mutated = (kind & RONDO_INPUT_MUTATED) != 0};
  switch (kind & 0xff) {
    case RONDO_INPUT_SCALAR:
      out->role = RONDO_ROLE_SCALAR;
      out->bytes = own->scalar;
      return RONDO_OK;
    case RONDO_INPUT_OPAQUE:
      out->role = RONDO_ROLE_OPAQUE;
      out->address = own->address;
      return RONDO_OK;
    default:
      out->role = role_of_memory(kind);
      RONDO_TRY(resolve_memory(call, function, index, own, out));
      out->is_sole = out->is_sole && is_one_input(given, count, index);
      return RONDO_OK;
  }
}

/* The usual case: memory with an address. */
static inline bool has_address(const rondo_input *given) {
  return given->buffer == NULL && given->address != NULL && given->rank <= RONDO_TREE_MAX_RANK;
}

static inline bool is_raw(uint32_t kind, const rondo_input *given) {
  return (kind & 0xff) <= RONDO_INPUT_STATIC && has_address(given);
}

const rondo_input *rondo_inputs_find_raw(const rondo_function *function, const rondo_input *given) {
  const size_t count = function->options.input_count;
  if (!function->takes_raw) return NULL;
  for (size_t i = 0; i < count; i++)
    if (__builtin_expect(!has_address(&given[i]), 0)) return NULL;
  return given;
}

rondo_status rondo_inputs_resolve(const char *call, const rondo_function *function, const rondo_input *given,
                                  rondo_resolved_input *out) {
  const size_t count = function->options.input_count;
  const uint32_t *kinds = function->options.inputs;
  for (size_t i = 0; i < count; i++) {
    if (__builtin_expect(!is_raw(kinds[i], &given[i]), 0)) {
      RONDO_TRY(resolve_input(call, function, i, given, &out[i]));
      continue;
    }
    out[i] = (rondo_resolved_input){.role = role_of_memory(kinds[i]),
                                    .is_mutated = (kinds[i] & RONDO_INPUT_MUTATED) != 0,
                                    .type = given[i].type,
                                    .rank = given[i].rank,
                                    .address = given[i].address,
                                    .bytes = given[i].bytes,
                                    .shape = given[i].shape};
  }
  return RONDO_OK;
}

void rondo_inputs_leave_path(const rondo_function *function, rondo_resolved_input *inputs) {
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_resolved_input *input = &inputs[i];
    input->is_sole = false;
    if (input->role != RONDO_ROLE_MANAGED) continue;
    const rondo_buffer *buffer = input->buffer;
    const rondo_buffer *base = buffer->base != NULL ? buffer->base : buffer;
    input->role = RONDO_ROLE_MOVING;
    input->is_of_ending = base->kind == RONDO_BUFFER_ARENA;
    if (!input->is_of_ending) input->address = rondo_buffer_memory(buffer) + input->offset;
  }
}

bool rondo_inputs_overlap(const rondo_resolved_input *a, const rondo_resolved_input *b) {
  return b->role <= RONDO_ROLE_MANAGED && a->bytes > 0 && b->bytes > 0 && a->address < b->address + b->bytes &&
         b->address < a->address + a->bytes;
}

/* Insertion sort, because the order rarely changes between calls. */
static void sort_by_address(const rondo_resolved_input *inputs, uint32_t *order, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const uint32_t input = order[i];
    size_t at = i;
    for (; at > 0 && inputs[order[at - 1]].address > inputs[input].address; at--) order[at] = order[at - 1];
    order[at] = input;
  }
}

/* Visits the inputs by address. An input overlaps an earlier one that ends after the input begins. So the furthest end
 * suffices, for each combination of moving or not and mutated or not. */
bool rondo_inputs_are_written_shared(const rondo_function *function, const rondo_resolved_input *inputs) {
  const size_t count = function->has_written ? function->options.input_count : 0;
  const char *ends[2][2] = {{NULL}};
  sort_by_address(inputs, function->by_address, count);
  for (size_t i = 0; i < count; i++) {
    const rondo_resolved_input *input = &inputs[function->by_address[i]];
    if (input->role > RONDO_ROLE_MANAGED || input->bytes == 0) continue;
    const bool moves = input->role == RONDO_ROLE_MOVING;
    for (int other_moves = !moves; other_moves < 2; other_moves++)
      for (int other_is_mutated = !input->is_mutated; other_is_mutated < 2; other_is_mutated++)
        if (ends[other_moves][other_is_mutated] > input->address) return true;
    const char **end = &ends[moves][input->is_mutated];
    if (*end < input->address + input->bytes) *end = input->address + input->bytes;
  }
  return false;
}
