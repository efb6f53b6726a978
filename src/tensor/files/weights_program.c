/* SPDX-License-Identifier: MIT
 * Copies states and cells of compiled programs into sets of weights, and back.
 */
#include "tensor/files/weights_program.h"

#include <stdio.h>
#include <string.h>

#include "tensor/files/shards.h"
#include "tensor/files/weight_elements.h"
#include "tensor/run/named_values.h"

/* The states of a compiled program come first among its values, then the cells. */
static rondo_named_value *value_at(const rondo_compiled *compiled, size_t index, const rondo_kept_values *kept) {
  if (index >= compiled->values.count) return NULL;
  rondo_named_value *value = &compiled->values.items[index];
  return value->kind == 's' || (value->kind == 'c' && kept->cells) ? value : NULL;
}

static bool accepted(const rondo_named_value *value, const rondo_kept_values *kept) {
  if (value->of_round && kept->between_rounds) return false;
  for (size_t i = 0; i < kept->except_count; i++)
    if (strcmp(value->name, kept->except[i]) == 0) return false;
  return !value->is_sharded && rondo_chosen(kept, value->name);
}

/* Gathering -------------------------------------------------------------------------------------------------------- */

static rondo_status read_values(rondo_weights *into, rondo_compiled *compiled, const rondo_kept_values *kept) {
  const rondo_named_value *value = NULL;
  for (size_t i = 0; (value = value_at(compiled, i, kept)) != NULL; i++) {
    if (!accepted(value, kept)) continue;
    void *data = NULL;
    RONDO_TRY(rondo_weights_append(into, value->name, &value->shape, &data));
    RONDO_TRY(value->is_summed ? rondo_ranks_average(compiled, value->name, data)
                               : rondo_compiled_read(compiled, value->name, data, rondo_shape_bytes(&value->shape)));
  }
  return rondo_shards_gather(into, compiled, kept);
}

static rondo_status find_round(rondo_compiled *compiled, bool *out_between_rounds) {
  bool has_any = false;
  int32_t runs = 1;
  for (size_t i = 0; i < compiled->values.count; i++) has_any = has_any || compiled->values.items[i].of_round;
  if (has_any) RONDO_TRY(rondo_compiled_read(compiled, RONDO_ROUND_STATE, &runs, sizeof runs));
  *out_between_rounds = runs == 0;
  return RONDO_OK;
}

rondo_status rondo_weights_gather_kept(rondo_weights *weights, rondo_compiled *compiled,
                                       const rondo_kept_values *kept) {
  rondo_weights *gathered = NULL;
  rondo_kept_values now = *kept;
  RONDO_TRY(find_round(compiled, &now.between_rounds));
  RONDO_TRY(rondo_weights_create(&weights->allocator, &gathered));
  rondo_status status = read_values(gathered, compiled, &now);
  if (status == RONDO_OK) status = rondo_weights_move(weights, gathered);
  rondo_weights_destroy(gathered);
  return status;
}

rondo_status rondo_weights_gather(rondo_weights *weights, rondo_compiled *compiled, rondo_weight_filter only,
                                  void *user) {
  RONDO_TRY(rondo_require("rondo_weights_gather", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_gather", "compiled", compiled));
  return rondo_weights_gather_kept(weights, compiled, &(rondo_kept_values){.only = only, .user = user});
}

/* Applying --------------------------------------------------------------------------------------------------------- */

/* The first tensor whose name no state or cell has, or NULL, and how many there are. */
static const char *find_unused(const rondo_weights *weights, const rondo_compiled *compiled, size_t *out_count) {
  const char *first = NULL;
  *out_count = 0;
  for (size_t i = 0; i < weights->entries.count; i++) {
    const char *name = weights->entries.items[i].name;
    if (rondo_values_look_up(compiled, name, "sc") == NULL && (*out_count)++ == 0) first = name;
  }
  return first;
}

bool rondo_weights_leave_out(const rondo_weights *weights, const rondo_named_value *value, const char *name) {
  return value->of_round && rondo_weights_look_up(weights, name) == NULL;
}

/* Also says what helps to find the mistake: how many values and tensors have no counterpart, which shows a rule with a
 * wrong name, and whether the program has states that no file of weights has. */
static rondo_status refuse_missing(const rondo_weights *weights, const rondo_compiled *compiled,
                                   const rondo_kept_values *kept, const rondo_named_value *missing) {
  const rondo_named_value *value = NULL;
  char unused[RONDO_ERROR_MESSAGE_BYTES / 2] = "";
  size_t values = 0, tensors;
  for (size_t i = 0; (value = value_at(compiled, i, kept)) != NULL; i++)
    values += accepted(value, kept) && rondo_weights_look_up(weights, value->name) == NULL;
  const char *first = find_unused(weights, compiled, &tensors);
  if (first != NULL)
    (void)snprintf(unused, sizeof unused, "; tensors without a state: %zu, the first is '%s'", tensors, first);
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME,
                    "the weights have no tensor for the %s '%s', the first of %zu without one%s%s",
                    missing->kind == 'c' ? "cell" : "state", missing->name, values, unused,
                    !kept->cells && kept->only == NULL && compiled->info.optimizer_bytes > 0
                        ? "; the program also has the states of its optimizer, which `only` leaves out"
                        : "");
}

static rondo_status check_value(const rondo_weights *weights, const char *kind, const char *name,
                                const rondo_shape *shape) {
  const rondo_weights_entry *entry = rondo_weights_look_up(weights, name);
  if (entry == NULL) {
    RONDO_TRY(rondo_weights_check_skipped(weights, name));
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME, "the weights have no tensor for the %s '%s'", kind,
                      name);
  }
  const bool same_type = rondo_weights_can_convert(weights, entry->shape.type, shape->type);
  rondo_shape read = entry->shape;
  if (same_type) read.type = shape->type;
  if (rondo_shape_same(&read, shape)) return RONDO_OK;
  char have[RONDO_SHAPE_TEXT];
  char want[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_DATA, same_type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "the weights have '%s' as %s, the program's %s is %s", name, rondo_shape_text(have, &entry->shape),
                    kind, rondo_shape_text(want, shape));
}

rondo_status rondo_weights_check_kept(const rondo_weights *weights, const rondo_compiled *compiled,
                                      const rondo_kept_values *kept) {
  const rondo_named_value *value = NULL;
  for (size_t i = 0; (value = value_at(compiled, i, kept)) != NULL; i++) {
    if (!accepted(value, kept) || rondo_weights_leave_out(weights, value, value->name)) continue;
    if (rondo_weights_look_up(weights, value->name) == NULL) {
      RONDO_TRY(rondo_weights_check_skipped(weights, value->name));
      return refuse_missing(weights, compiled, kept, value);
    }
    RONDO_TRY(check_value(weights, value->kind == 'c' ? "cell" : "state", value->name, &value->shape));
  }
  for (size_t i = 0; i < compiled->ranks.shards.count; i++) {
    const rondo_rank_shard *shard = &compiled->ranks.shards.items[i];
    const rondo_named_value *flat = &compiled->values.items[shard->value];
    if (!rondo_chosen(kept, shard->name) || rondo_weights_leave_out(weights, flat, shard->name)) continue;
    RONDO_TRY(check_value(weights, "state", shard->name, &shard->shape));
  }
  return RONDO_OK;
}

typedef struct written {
  rondo_compiled *compiled;
  rondo_named_value *value;
} written;

static rondo_status write_piece(void *user, size_t offset, const void *data, size_t bytes) {
  const written *to = user;
  return rondo_values_write_part(to->compiled, to->value, offset, data, bytes);
}

/* Maps the pages of the file that hold the elements of a state, unless they must be copied. */
static rondo_status map_value(const rondo_weights *weights, rondo_device *device, rondo_named_value *value) {
  const rondo_weights_entry *entry = rondo_weights_look_up(weights, value->name);
  value->first_mapped = value->mapped_bytes = 0;
  const size_t bytes = rondo_shape_bytes(&value->shape);
  if (value->kind != 's' || value->packed != NULL || bytes < RONDO_LEAST_MAPPED || entry == NULL ||
      entry->shape.type != value->shape.type || !rondo_weights_is_in_file(weights, entry))
    return RONDO_OK;
  return device->ops->map_file(device, value->address, entry->data, bytes, &value->first_mapped, &value->mapped_bytes);
}

/* Before anything is written: the system may give what is written huge pages, which would be taken back in part. */
static rondo_status map_values(const rondo_weights *weights, rondo_compiled *compiled, const rondo_kept_values *kept) {
  rondo_named_value *value = NULL;
  if (compiled->device->ops->map_file == NULL) return RONDO_OK;
  RONDO_TRY(rondo_compiled_synchronize(compiled));
  for (size_t i = 0; (value = value_at(compiled, i, kept)) != NULL; i++)
    if (accepted(value, kept)) RONDO_TRY(map_value(weights, compiled->device, value));
  return RONDO_OK;
}

/* The bytes before and after those that are mapped. */
static rondo_status write_ends(const written *to, const rondo_weights_entry *entry) {
  const unsigned char *data = entry->data;
  const rondo_named_value *value = to->value;
  const size_t end = value->first_mapped + value->mapped_bytes, bytes = rondo_shape_bytes(&entry->shape);
  if (value->first_mapped > 0)
    RONDO_TRY(rondo_values_write_part(to->compiled, to->value, 0, data, value->first_mapped));
  return end == bytes ? RONDO_OK : rondo_values_write_part(to->compiled, to->value, end, data + end, bytes - end);
}

/* In pieces: the set and the program together never take much more memory than one of them. */
static rondo_status write_value(const rondo_weights *weights, rondo_compiled *compiled, const char *name,
                                const rondo_kept_values *kept) {
  rondo_weights_entry *entry = rondo_weights_look_up(weights, name);
  written to = {.compiled = compiled};
  RONDO_TRY(rondo_values_find(compiled, "rondo_weights_apply", name, "sc", &to.value));
  if (kept->maps && to.value->mapped_bytes > 0)
    RONDO_TRY(write_ends(&to, entry));
  else
    RONDO_TRY(rondo_weights_read_elements(weights, entry, to.value->shape.type, 0, rondo_shape_elements(&entry->shape),
                                          write_piece, &to));
  if (kept->moves) rondo_weights_free_data(weights, entry);
  return RONDO_OK;
}

rondo_status rondo_weights_apply_kept(const rondo_weights *weights, rondo_compiled *compiled,
                                      const rondo_kept_values *kept) {
  const rondo_named_value *value = NULL;
  if (kept->maps) RONDO_TRY(map_values(weights, compiled, kept));
  for (size_t i = 0; (value = value_at(compiled, i, kept)) != NULL; i++) {
    if (accepted(value, kept) && !rondo_weights_leave_out(weights, value, value->name))
      RONDO_TRY(write_value(weights, compiled, value->name, kept));
  }
  RONDO_TRY(rondo_shards_apply(weights, compiled, kept));
  rondo_weights_drop_all(weights);
  return RONDO_OK;
}

rondo_status rondo_weights_apply(const rondo_weights *weights, rondo_compiled *compiled, rondo_weight_filter only,
                                 void *user) {
  const rondo_kept_values kept = {.only = only, .user = user};
  RONDO_TRY(rondo_require("rondo_weights_apply", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_apply", "compiled", compiled));
  RONDO_TRY(rondo_weights_check_kept(weights, compiled, &kept));
  return rondo_weights_apply_kept(weights, compiled, &kept);
}
