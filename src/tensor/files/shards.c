/* SPDX-License-Identifier: MIT
 * Gathering and dividing the states that each rank has a part of. All ranks gather the same states in the same order.
 */
#include "tensor/files/shards.h"

#include <string.h>

#include "tensor/files/weight_elements.h"
#include "tensor/run/named_values.h"

bool rondo_shards_have(const rondo_compiled *compiled, const char *name) {
  for (size_t i = 0; i < compiled->ranks.shards.count; i++)
    if (strcmp(compiled->ranks.shards.items[i].name, name) == 0) return true;
  return false;
}

/* Gathering -------------------------------------------------------------------------------------------------------- */

/* Appends the states that are in the gathered flat state. */
static rondo_status append_all(rondo_weights *into, const rondo_compiled *compiled, size_t value,
                               const unsigned char *all, const rondo_kept_values *kept) {
  for (size_t i = 0; i < compiled->ranks.shards.count; i++) {
    const rondo_rank_shard *shard = &compiled->ranks.shards.items[i];
    void *data;
    if (shard->value != value || !rondo_chosen(kept, shard->name)) continue;
    RONDO_TRY(rondo_weights_append(into, shard->name, &shard->shape, &data));
    memcpy(data, all + shard->offset * rondo_type_bytes(shard->shape.type), rondo_shape_bytes(&shard->shape));
  }
  return RONDO_OK;
}

static rondo_status gather_flat(rondo_weights *into, rondo_compiled *compiled, size_t value,
                                const rondo_kept_values *kept) {
  const size_t bytes = rondo_shape_bytes(&compiled->values.items[value].shape) * compiled->ranks.count;
  unsigned char *all;
  RONDO_TRY(rondo_allocate_items(&into->allocator, bytes, sizeof *all, &all));
  rondo_status status = rondo_ranks_gather(compiled, value, all);
  if (status == RONDO_OK) status = append_all(into, compiled, value, all, kept);
  rondo_release(&into->allocator, all, bytes, sizeof *all);
  return status;
}

rondo_status rondo_shards_gather(rondo_weights *into, rondo_compiled *compiled, const rondo_kept_values *kept) {
  for (size_t i = 0; i < compiled->values.count; i++)
    if (compiled->values.items[i].is_sharded && !(compiled->values.items[i].of_round && kept->between_rounds))
      RONDO_TRY(gather_flat(into, compiled, i, kept));
  return RONDO_OK;
}

/* Applying --------------------------------------------------------------------------------------------------------- */

/* A part of a flat state, from byte `first` on. */
typedef struct part {
  rondo_compiled *compiled;
  rondo_named_value *flat;
  size_t first;
} part;

static rondo_status write_piece(void *user, size_t offset, const void *data, size_t bytes) {
  const part *to = user;
  return rondo_values_write_part(to->compiled, to->flat, to->first + offset, data, bytes);
}

static rondo_status write_part(const rondo_weights *weights, const rondo_rank_shard *shard, rondo_compiled *compiled) {
  rondo_named_value *flat = &compiled->values.items[shard->value];
  const size_t piece = rondo_shape_elements(&flat->shape), begin = piece * compiled->ranks.rank;
  const size_t shard_end = shard->offset + rondo_shape_elements(&shard->shape);
  const size_t first = shard->offset > begin ? shard->offset : begin;
  const size_t end = shard_end < begin + piece ? shard_end : begin + piece;
  if (first >= end) return RONDO_OK;
  part to = {compiled, flat, (first - begin) * rondo_type_bytes(flat->shape.type)};
  return rondo_weights_read_elements(weights, rondo_weights_look_up(weights, shard->name), flat->shape.type,
                                     first - shard->offset, end - first, write_piece, &to);
}

rondo_status rondo_shards_apply(const rondo_weights *weights, rondo_compiled *compiled, const rondo_kept_values *kept) {
  for (size_t i = 0; i < compiled->ranks.shards.count; i++) {
    const rondo_rank_shard *shard = &compiled->ranks.shards.items[i];
    const rondo_named_value *flat = &compiled->values.items[shard->value];
    if (!rondo_chosen(kept, shard->name) || rondo_weights_leave_out(weights, flat, shard->name)) continue;
    RONDO_TRY(write_part(weights, shard, compiled));
  }
  return RONDO_OK;
}
