/* SPDX-License-Identifier: MIT
 * Operations that compute the same, found in a hash table.
 */
#include "tensor/program/equal_operations.h"

#include "base/hash.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

static bool same_input(const rondo_program *program, const uint32_t *owners, uint32_t a, uint32_t b) {
  if (a == RONDO_NO_VALUE || b == RONDO_NO_VALUE) return a == b;
  return owners[a] == owners[b] && rondo_shape_same(rondo_program_shape(program, a), rondo_program_shape(program, b));
}

/* Whether the results of `first` include all that `second` computes. */
static bool stands_for(const rondo_program *program, const uint32_t *owners, const rondo_repeats *repeats,
                       const rondo_operation *first, const rondo_operation *second) {
  if (repeats->keeps_places && first->place != second->place) return false;
  if (first->row != second->row || !rondo_attributes_same(&first->attributes, &second->attributes)) return false;
  for (uint32_t r = 0; r < first->row->result_count; r++) {
    if (rondo_value_is_made(program, second->results[r]) && !rondo_value_is_made(program, first->results[r]))
      return false;
  }
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    if (!same_input(program, owners, first->inputs[k], second->inputs[k])) return false;
  }
  return true;
}

static uint64_t hash_operation(const uint32_t *owners, const rondo_operation *operation) {
  uint64_t hash = rondo_hash_text(RONDO_HASH_START, operation->row->name);
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t input = operation->inputs[k];
    hash = rondo_hash_u64(hash, input == RONDO_NO_VALUE ? RONDO_NO_VALUE : owners[input]);
  }
  return rondo_hash_bytes(hash, operation->attributes.sizes, sizeof operation->attributes.sizes);
}

rondo_status rondo_repeats_make(const rondo_program *program, rondo_repeats *out) {
  *out = (rondo_repeats){.count = 16};
  while (out->count <= 2 * program->operations.count) out->count *= 2;
  return rondo_allocate_items(&program->allocator, out->count, sizeof *out->slots, &out->slots);
}

void rondo_repeats_free(const rondo_program *program, rondo_repeats *repeats) {
  rondo_release(&program->allocator, repeats->slots, repeats->count, sizeof *repeats->slots);
}

bool rondo_operator_may_repeat(const rondo_operator *row) {
  return !rondo_operator_is_update(row) && !row->is_in_place;
}

uint32_t rondo_repeats_find(const rondo_program *program, const uint32_t *owners, rondo_repeats *repeats,
                            uint32_t number) {
  const rondo_operation *operation = &program->operations.items[number];
  size_t slot = (size_t)hash_operation(owners, operation) & (repeats->count - 1);
  for (; repeats->slots[slot] != 0; slot = (slot + 1) & (repeats->count - 1)) {
    const uint32_t other = repeats->slots[slot] - 1;
    if (stands_for(program, owners, repeats, &program->operations.items[other], operation)) return other;
  }
  repeats->slots[slot] = number + 1;
  return number;
}
