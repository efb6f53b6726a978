/* SPDX-License-Identifier: MIT
 * Checksums of sets, computed by rondo_hash_bytes. Each of its steps is a bijection of the state for a given word, and
 * of the word for a given state. So every change within one word is detected.
 */
#include "tensor/files/checksum.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define DIGITS 16 /* of one checksum */
#define PART_BYTES ((size_t)1 << 20)

bool rondo_checksum_is_key(const char *key) {
  return strcmp(key, RONDO_CHECKSUM_KEY) == 0 || strcmp(key, RONDO_CHECKSUM_FORM_KEY) == 0;
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

static uint64_t sum_of_pair(uint64_t sum, const char *key, const char *value) {
  return rondo_hash_text(rondo_hash_text(sum, key), value);
}

/* `form` is the value of the key for the form, or NULL. */
static uint64_t sum_of_description(const rondo_weights *set, const char *form) {
  uint64_t sum = rondo_hash_u64(RONDO_HASH_START, set->entries.count);
  for (size_t i = 0; i < set->entries.count; i++) {
    const rondo_weights_entry *entry = &set->entries.items[i];
    sum = rondo_hash_text(sum, entry->name);
    sum = rondo_hash_text(sum, rondo_safetensors_type_name(entry->shape.type));
    sum = rondo_hash_u64(sum, entry->shape.rank);
    for (uint32_t d = 0; d < entry->shape.rank; d++) sum = rondo_hash_u64(sum, entry->shape.dims[d]);
  }
  for (size_t i = 0; i < set->metadata.count; i++) {
    const rondo_weights_pair *pair = &set->metadata.items[i];
    if (!rondo_checksum_is_key(pair->key)) sum = sum_of_pair(sum, pair->key, pair->value);
  }
  return form == NULL ? sum : sum_of_pair(sum, RONDO_CHECKSUM_FORM_KEY, form);
}

/* Works in parts, and releases the pages of a mapped file after each part. */
static uint64_t sum_of_data(const rondo_weights *set, const rondo_weights_entry *entry) {
  assert(entry->data != NULL);
  const unsigned char *data = entry->data;
  const size_t bytes = rondo_shape_bytes(&entry->shape);
  uint64_t sum = RONDO_HASH_START;
  for (size_t offset = 0; offset < bytes; offset += PART_BYTES) {
    const size_t part = bytes - offset < PART_BYTES ? bytes - offset : PART_BYTES;
    sum = rondo_hash_part(sum, data + offset, part);
    rondo_weights_drop(set, data + offset, part);
  }
  return rondo_hash_u64(sum, bytes);
}

/* Index 0 is the description; the tensors follow. */
static uint64_t sum_at(const rondo_weights *set, const char *form, size_t index) {
  if (index == 0) return sum_of_description(set, form);
  return sum_of_data(set, &set->entries.items[index - 1]);
}

static void write_sum(char out[DIGITS + 1], uint64_t sum) { (void)snprintf(out, DIGITS + 1, "%016" PRIx64, sum); }

rondo_status rondo_checksum_make(const rondo_weights *set, char **out) {
  rondo_text text;
  rondo_text_init(&text, &set->allocator);
  for (size_t i = 0; i <= set->entries.count; i++) {
    char digits[DIGITS + 1];
    write_sum(digits, sum_at(set, RONDO_CHECKSUM_FORM, i));
    rondo_text_add_bytes(&text, digits, DIGITS);
  }
  const rondo_status status = rondo_text_take(&text, out);
  rondo_text_deinit(&text);
  return status;
}

/* Checking --------------------------------------------------------------------------------------------------------- */

static rondo_status fail_checksum(const rondo_weights *set, size_t index) {
  const rondo_status status = RONDO_INVALID_DATA;
  if (index == 0) {
    return rondo_fail(status, RONDO_REASON_CHECKSUM,
                      "it was damaged: its names, shapes or metadata do not have their checksum");
  }
  return rondo_fail(status, RONDO_REASON_CHECKSUM, "it was damaged: tensor '%s' does not have its checksum",
                    set->entries.items[index - 1].name);
}

static rondo_status check_sums(const rondo_weights *set, const char *form, const char *kept) {
  const size_t count = set->entries.count + 1, length = strlen(kept);
  if (length != count * DIGITS) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "the metadata '" RONDO_CHECKSUM_KEY "' have %zu digits, not %d for each of %zu checksums", length,
                      DIGITS, count);
  }
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && set->entries.items[i - 1].data == NULL) continue;
    char digits[DIGITS + 1];
    write_sum(digits, sum_at(set, form, i));
    if (memcmp(digits, kept + i * DIGITS, DIGITS) != 0) return fail_checksum(set, i);
  }
  return RONDO_OK;
}

rondo_status rondo_checksum_check(const rondo_weights *set) {
  const char *form = rondo_weights_get_metadata(set, RONDO_CHECKSUM_FORM_KEY);
  const char *kept = rondo_weights_get_metadata(set, RONDO_CHECKSUM_KEY);
  if (form == NULL && kept == NULL) return RONDO_OK;
  if (form != NULL && strcmp(form, RONDO_CHECKSUM_FORM) != 0) {
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "its weights are of version '%s'; this library reads version " RONDO_CHECKSUM_FORM, form);
  }
  if (kept != NULL) return check_sums(set, form, kept);
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM,
                    "it was damaged: its metadata have no '" RONDO_CHECKSUM_KEY "'");
}
