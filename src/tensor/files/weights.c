/* SPDX-License-Identifier: MIT
 * Sets of named tensors in memory.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "tensor/files/weight_elements.h"

#define DATA_ALIGNMENT 64

/* Sets ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_weights_create(const rondo_allocator *allocator, rondo_weights **out_weights) {
  RONDO_TRY(rondo_require("rondo_weights_create", "out_weights", out_weights));
  *out_weights = NULL;
  rondo_allocator resolved;
  RONDO_TRY(rondo_allocator_resolve(allocator, &resolved));
  rondo_weights *weights = NULL;
  RONDO_TRY(rondo_allocate_items(&resolved, 1, sizeof *weights, &weights));
  weights->allocator = resolved;
  *out_weights = weights;
  return RONDO_OK;
}

void rondo_weights_free_data(const rondo_weights *weights, rondo_weights_entry *entry) {
  if (entry->owns_data) rondo_release(&weights->allocator, entry->data, rondo_shape_bytes(&entry->shape), 1);
  entry->data = NULL;
  entry->owns_data = false;
}

static void free_entry(const rondo_weights *weights, rondo_weights_entry *entry) {
  rondo_release_text(&weights->allocator, entry->name);
  rondo_weights_free_data(weights, entry);
}

void rondo_weights_destroy(rondo_weights *weights) {
  if (weights == NULL) return;
  const rondo_allocator allocator = weights->allocator;
  for (size_t i = 0; i < weights->entries.count; i++) free_entry(weights, &weights->entries.items[i]);
  for (size_t i = 0; i < weights->metadata.count; i++) {
    rondo_release_text(&allocator, weights->metadata.items[i].key);
    rondo_release_text(&allocator, weights->metadata.items[i].value);
  }
  for (size_t i = 0; i < weights->skipped.count; i++) {
    rondo_release_text(&allocator, weights->skipped.items[i].name);
    rondo_release_text(&allocator, weights->skipped.items[i].why);
  }
  rondo_array_free(&allocator, &weights->entries);
  rondo_array_free(&allocator, &weights->metadata);
  rondo_array_free(&allocator, &weights->skipped);
  for (size_t i = 0; i < weights->mappings.count; i++) rondo_file_unmap(&weights->mappings.items[i]);
  rondo_array_free(&allocator, &weights->mappings);
  rondo_array_free(&allocator, &weights->lent);
  rondo_release(&allocator, weights, 1, sizeof *weights);
}

void rondo_weights_drop(const rondo_weights *weights, const void *at, size_t bytes) {
  for (size_t i = 0; i < weights->mappings.count; i++) rondo_file_mapping_drop(&weights->mappings.items[i], at, bytes);
  for (size_t i = 0; i < weights->lent.count; i++) rondo_file_mapping_drop(&weights->lent.items[i], at, bytes);
}

void rondo_weights_drop_all(const rondo_weights *weights) {
  for (size_t i = 0; i < weights->mappings.count; i++)
    rondo_weights_drop(weights, weights->mappings.items[i].bytes, weights->mappings.items[i].count);
  for (size_t i = 0; i < weights->lent.count; i++)
    rondo_weights_drop(weights, weights->lent.items[i].bytes, weights->lent.items[i].count);
}

rondo_status rondo_weights_lend(rondo_weights *weights, const rondo_file_mapping *mapping) {
  return rondo_array_push(&weights->allocator, &weights->lent, mapping);
}

static bool holds(const rondo_file_mapping *mapping, const unsigned char *data, size_t bytes) {
  const uintptr_t begin = (uintptr_t)mapping->bytes, at = (uintptr_t)data;
  return mapping->bytes != NULL && at >= begin && at - begin <= mapping->count &&
         bytes <= mapping->count - (at - begin);
}

bool rondo_weights_is_in_file(const rondo_weights *weights, const rondo_weights_entry *entry) {
  if (entry->is_transposed || entry->is_repeated || entry->data == NULL) return false;
  for (size_t i = 0; i < weights->lent.count; i++)
    if (holds(&weights->lent.items[i], entry->data, rondo_shape_bytes(&entry->shape))) return true;
  return false;
}

/* Types ------------------------------------------------------------------------------------------------------------ */

static const struct {
  rondo_type type;
  const char *name;
} type_names[] = {{RONDO_F32, "F32"},         {RONDO_F16, "F16"},        {RONDO_BF16, "BF16"}, {RONDO_I32, "I32"},
                  {RONDO_I64, "I64"},         {RONDO_I8, "I8"},          {RONDO_U8, "U8"},     {RONDO_BOOL, "BOOL"},
                  {RONDO_F8_E4M3, "F8_E4M3"}, {RONDO_F8_E5M2, "F8_E5M2"}};

#define TYPE_COUNT (sizeof type_names / sizeof type_names[0])

const char *rondo_safetensors_type_name(rondo_type type) {
  size_t row = 0;
  while (row + 1 < TYPE_COUNT && type_names[row].type != type) row++;
  return type_names[row].name;
}

bool rondo_safetensors_find_type(const char *name, rondo_type *out_type) {
  for (size_t row = 0; row < TYPE_COUNT; row++) {
    if (strcmp(type_names[row].name, name) != 0) continue;
    *out_type = type_names[row].type;
    return true;
  }
  return false;
}

/* Sorted arrays ---------------------------------------------------------------------------------------------------- */

/* Entries, pairs and skipped tensors begin with the text that they are sorted by. */
static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void sort(void *items, size_t count, size_t item_bytes) {
  if (count > 1) qsort(items, count, item_bytes, compare_texts);
}

/* The number of items that sort before the text. */
#define position_of(array, text) position_among((array)->items, (array)->count, sizeof *(array)->items, (text))
static size_t position_among(const void *items, size_t count, size_t item_bytes, const char *text) {
  size_t low = 0, high = count;
  RONDO_BINARY_SEARCH(low, high, middle, compare_texts((const unsigned char *)items + middle * item_bytes, &text) < 0)
  return low;
}

/* Moves the last item to index `at`, and the items from `at` on one position up. */
#define move_last(array, at) move_last_of((array)->items, (array)->count, sizeof *(array)->items, (at))
static void move_last_of(void *items, size_t count, size_t item_bytes, size_t at) {
  unsigned char last[sizeof(rondo_weights_entry)], *to = (unsigned char *)items + at * item_bytes;
  assert(item_bytes <= sizeof last && at < count);
  memcpy(last, (unsigned char *)items + (count - 1) * item_bytes, item_bytes);
  memmove(to + item_bytes, to, (count - 1 - at) * item_bytes);
  memcpy(to, last, item_bytes);
}

/* Entries --------------------------------------------------------------------------------------------------------- */

/* Names are written into JSON, which would not preserve text that is not UTF-8 (Unicode 15, table 3-7). */
static bool is_utf8(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != 0) {
    const unsigned char lead = *at++;
    const unsigned char first = *at;
    if (lead < 0x80) continue;
    if (lead < 0xc2 || lead > 0xf4) return false;
    if ((lead == 0xe0 && first < 0xa0) || (lead == 0xed && first > 0x9f) || (lead == 0xf0 && first < 0x90) ||
        (lead == 0xf4 && first > 0x8f)) {
      return false;
    }
    for (int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3; more > 0; more--) {
      if ((*at++ & 0xc0) != 0x80) return false;
    }
  }
  return true;
}

static rondo_status check_name(const char *name) {
  if (is_utf8(name) && strcmp(name, RONDO_METADATA_KEY) != 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MALFORMED,
                    "'%s' cannot be a tensor's name: it must be UTF-8 and not " RONDO_METADATA_KEY, name);
}

/* Takes ownership of the entry's data. */
static rondo_status append_entry(rondo_weights *weights, const char *name, rondo_weights_entry *entry) {
  assert(entry->name == NULL && rondo_shape_bytes(&entry->shape) > 0);
  rondo_status status = check_name(name);
  if (status == RONDO_OK) status = rondo_allocate_text(&weights->allocator, name, &entry->name);
  if (status == RONDO_OK) status = rondo_array_push(&weights->allocator, &weights->entries, entry);
  if (status != RONDO_OK) free_entry(weights, entry);
  return status;
}

rondo_status rondo_weights_append(rondo_weights *weights, const char *name, const rondo_shape *shape, void **out_data) {
  rondo_weights_entry entry = {.shape = *shape, .owns_data = true};
  RONDO_TRY(rondo_allocate_aligned(&weights->allocator, rondo_shape_bytes(shape), 1, DATA_ALIGNMENT, &entry.data));
  *out_data = entry.data;
  return append_entry(weights, name, &entry);
}

rondo_status rondo_weights_append_view(rondo_weights *weights, const char *name, const rondo_shape *shape, void *data) {
  return append_entry(weights, name, &(rondo_weights_entry){.shape = *shape, .data = data});
}

rondo_status rondo_weights_append_owned(rondo_weights *weights, const char *name, const rondo_shape *shape,
                                        void *data) {
  return append_entry(weights, name, &(rondo_weights_entry){.shape = *shape, .data = data, .owns_data = true});
}

rondo_status rondo_weights_append_repeated(rondo_weights *weights, const char *name, const rondo_shape *shape,
                                           void *element) {
  return append_entry(weights, name, &(rondo_weights_entry){.shape = *shape, .data = element, .is_repeated = true});
}

rondo_status rondo_weights_rename(rondo_weights *weights, rondo_weights_entry *entry, const char *name) {
  char *copy = NULL;
  RONDO_TRY(check_name(name));
  RONDO_TRY(rondo_allocate_text(&weights->allocator, name, &copy));
  rondo_release_text(&weights->allocator, entry->name);
  entry->name = copy;
  return RONDO_OK;
}

void rondo_weights_remove_unwanted(rondo_weights *weights) {
  size_t kept = 0;
  for (size_t i = 0; i < weights->entries.count; i++) {
    rondo_weights_entry *entry = &weights->entries.items[i];
    if (entry->data == NULL)
      free_entry(weights, entry);
    else
      weights->entries.items[kept++] = *entry;
  }
  weights->entries.count = kept;
}

void rondo_weights_sort(rondo_weights *weights) {
  sort(weights->entries.items, weights->entries.count, sizeof *weights->entries.items);
  sort(weights->metadata.items, weights->metadata.count, sizeof *weights->metadata.items);
  sort(weights->skipped.items, weights->skipped.count, sizeof *weights->skipped.items);
}

static bool entry_is_at(const rondo_weights *weights, size_t at, const char *name) {
  return at < weights->entries.count && strcmp(weights->entries.items[at].name, name) == 0;
}

rondo_weights_entry *rondo_weights_look_up(const rondo_weights *weights, const char *name) {
  const size_t at = position_of(&weights->entries, name);
  assert(at <= weights->entries.count);
  return entry_is_at(weights, at, name) ? &weights->entries.items[at] : NULL;
}

void rondo_weights_keep_common(rondo_weights *weights, const rondo_weights *other) {
  for (size_t i = 0; i < weights->entries.count; i++) {
    rondo_weights_entry *entry = &weights->entries.items[i];
    if (rondo_weights_look_up(other, entry->name) != NULL) continue;
    rondo_weights_free_data(weights, entry);
    entry->data = NULL;
  }
  rondo_weights_remove_unwanted(weights);
}

rondo_status rondo_weights_skip(rondo_weights *weights, const char *name, rondo_reason reason, const char *why) {
  rondo_weights_skipped skipped = {.reason = reason};
  rondo_status status = rondo_allocate_text(&weights->allocator, name, &skipped.name);
  if (status == RONDO_OK) status = rondo_allocate_text(&weights->allocator, why, &skipped.why);
  if (status == RONDO_OK) status = rondo_array_push(&weights->allocator, &weights->skipped, &skipped);
  if (status != RONDO_OK) {
    rondo_release_text(&weights->allocator, skipped.name);
    rondo_release_text(&weights->allocator, skipped.why);
  }
  return status;
}

rondo_status rondo_weights_check_skipped(const rondo_weights *weights, const char *name) {
  const size_t at = position_of(&weights->skipped, name);
  if (at >= weights->skipped.count || strcmp(weights->skipped.items[at].name, name) != 0) return RONDO_OK;
  const rondo_weights_skipped *skipped = &weights->skipped.items[at];
  return rondo_fail(RONDO_UNSUPPORTED, skipped->reason, "%s", skipped->why);
}

static rondo_status fail_duplicate(const char *name) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME, "the weights have a tensor '%s' already",
                    name);
}

#define reserve_all(to, from, array) \
  rondo_array_reserve(&(to)->allocator, &(to)->array, (to)->array.count + (from)->array.count)
#define move_all(to, from, array)                                                                                     \
  do {                                                                                                                \
    for (size_t i = 0; i < (from)->array.count; i++) (to)->array.items[(to)->array.count++] = (from)->array.items[i]; \
    (from)->array.count = 0;                                                                                          \
  } while (0)

rondo_status rondo_weights_move(rondo_weights *to, rondo_weights *from) {
  for (size_t i = 0; i < from->entries.count; i++) {
    const char *name = from->entries.items[i].name;
    if (rondo_weights_look_up(to, name) != NULL) return fail_duplicate(name);
  }
  RONDO_TRY(reserve_all(to, from, entries));
  RONDO_TRY(reserve_all(to, from, mappings));
  RONDO_TRY(reserve_all(to, from, skipped));
  move_all(to, from, entries);
  move_all(to, from, mappings);
  move_all(to, from, skipped);
  rondo_weights_sort(to);
  return RONDO_OK;
}

rondo_status rondo_weights_add(rondo_weights *weights, const rondo_weight *weight) {
  static const char call[] = "rondo_weights_add";
  RONDO_TRY(rondo_require(call, "weights", weights));
  RONDO_TRY(rondo_require(call, "weight", weight));
  RONDO_TRY(rondo_require(call, "the name of the weight", weight->name));
  RONDO_TRY(rondo_require(call, "the data of the weight", weight->data));
  const size_t at = position_of(&weights->entries, weight->name);
  if (entry_is_at(weights, at, weight->name)) return fail_duplicate(weight->name);
  rondo_shape shape;
  rondo_status status = rondo_shape_make(call, weight->type, weight->shape, weight->rank, &shape);
  if (status != RONDO_OK) return rondo_fail_context(status, "'%s'", weight->name);
  const size_t bytes = rondo_shape_bytes(&shape);
  if (bytes != weight->bytes) {
    char text[RONDO_SHAPE_TEXT];
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: '%s' %s has %zu bytes, and %zu were given: give all of it", call, weight->name,
                      rondo_shape_text(text, &shape), bytes, weight->bytes);
  }
  void *data = NULL;
  RONDO_TRY(rondo_weights_append(weights, weight->name, &shape, &data));
  memcpy(data, weight->data, bytes);
  move_last(&weights->entries, at);
  return RONDO_OK;
}

static rondo_status describe_entry(const rondo_weights *weights, rondo_weights_entry *entry, rondo_weight *out) {
  RONDO_TRY(rondo_weights_make_plain(weights, entry));
  *out = (rondo_weight){.name = entry->name,
                        .type = entry->shape.type,
                        .rank = entry->shape.rank,
                        .data = entry->data,
                        .bytes = rondo_shape_bytes(&entry->shape)};
  memcpy(out->shape, entry->shape.dims, sizeof out->shape);
  return RONDO_OK;
}

rondo_status rondo_weights_at(const rondo_weights *weights, size_t index, rondo_weight *out_weight) {
  RONDO_TRY(rondo_require("rondo_weights_at", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_at", "out_weight", out_weight));
  if (index >= weights->entries.count) {
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "the weights have %zu tensors, so none at %zu",
                      weights->entries.count, index);
  }
  return describe_entry(weights, &weights->entries.items[index], out_weight);
}

rondo_status rondo_weights_find(const rondo_weights *weights, const char *name, rondo_weight *out_weight) {
  RONDO_TRY(rondo_require("rondo_weights_find", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_find", "name", name));
  RONDO_TRY(rondo_require("rondo_weights_find", "out_weight", out_weight));
  rondo_weights_entry *entry = rondo_weights_look_up(weights, name);
  if (entry == NULL) {
    RONDO_TRY(rondo_weights_check_skipped(weights, name));
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME, "the weights have no tensor '%s' among their %zu",
                      name, weights->entries.count);
  }
  return describe_entry(weights, entry, out_weight);
}

/* Metadata -------------------------------------------------------------------------------------------------------- */

static bool metadata_is_at(const rondo_weights *weights, size_t at, const char *key) {
  return at < weights->metadata.count && strcmp(weights->metadata.items[at].key, key) == 0;
}

rondo_status rondo_weights_append_metadata(rondo_weights *weights, const char *key, const char *value) {
  rondo_weights_pair pair = {0};
  rondo_status status = rondo_allocate_text(&weights->allocator, key, &pair.key);
  if (status == RONDO_OK) status = rondo_allocate_text(&weights->allocator, value, &pair.value);
  if (status == RONDO_OK) status = rondo_array_push(&weights->allocator, &weights->metadata, &pair);
  if (status != RONDO_OK) {
    rondo_release_text(&weights->allocator, pair.key);
    rondo_release_text(&weights->allocator, pair.value);
  }
  return status;
}

static rondo_status insert_metadata(rondo_weights *weights, size_t at, const char *key, const char *value) {
  RONDO_TRY(rondo_weights_append_metadata(weights, key, value));
  move_last(&weights->metadata, at);
  return RONDO_OK;
}

rondo_status rondo_weights_set_metadata(rondo_weights *weights, const char *key, const char *value) {
  RONDO_TRY(rondo_require("rondo_weights_set_metadata", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_set_metadata", "key", key));
  RONDO_TRY(rondo_require("rondo_weights_set_metadata", "value", value));
  if (!is_utf8(key) || !is_utf8(value)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MALFORMED,
                      "rondo_weights_set_metadata: key and value of '%s' must be UTF-8", key);
  }
  const size_t at = position_of(&weights->metadata, key);
  if (!metadata_is_at(weights, at, key)) return insert_metadata(weights, at, key, value);
  char *copy = NULL;
  RONDO_TRY(rondo_allocate_text(&weights->allocator, value, &copy));
  rondo_release_text(&weights->allocator, weights->metadata.items[at].value);
  weights->metadata.items[at].value = copy;
  return RONDO_OK;
}

const char *rondo_weights_get_metadata(const rondo_weights *weights, const char *key) {
  if (weights == NULL || key == NULL) return NULL;
  const size_t at = position_of(&weights->metadata, key);
  return metadata_is_at(weights, at, key) ? weights->metadata.items[at].value : NULL;
}
