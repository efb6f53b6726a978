/* SPDX-License-Identifier: MIT
 * Writes safetensors files. The header is padded with spaces so that the data begin at a multiple of 8. Tensors are
 * ordered by the size of their elements, the largest first, then by name. So each tensor is aligned to the size of its
 * elements, and readers can map it. Checksums are metadata; other readers of the format treat them as text.
 */
#include <string.h>

#include "base/files/file_replacement.h"
#include "base/text.h"
#include "tensor/files/checksum.h"
#include "tensor/files/weight_elements.h"

#define LENGTH_BYTES 8
#define LARGEST_ELEMENT 8

/* Header ---------------------------------------------------------------------------------------------------------- */

static void write_pair(const char *key, const char *value, rondo_text *text) {
  rondo_json_key(text, key);
  rondo_json_string(text, value);
}

static void write_metadata(const rondo_weights *weights, const char *checksum, rondo_text *text) {
  rondo_json_key(text, RONDO_METADATA_KEY);
  rondo_json_object_begin(text);
  write_pair(RONDO_CHECKSUM_FORM_KEY, RONDO_CHECKSUM_FORM, text);
  write_pair(RONDO_CHECKSUM_KEY, checksum, text);
  for (size_t i = 0; i < weights->metadata.count; i++) {
    const rondo_weights_pair *pair = &weights->metadata.items[i];
    if (!rondo_checksum_is_key(pair->key)) write_pair(pair->key, pair->value, text);
  }
  rondo_json_object_end(text);
}

static void write_entry(const rondo_weights_entry *entry, uint64_t begin, rondo_text *text) {
  rondo_json_key(text, entry->name);
  rondo_json_object_begin(text);
  rondo_json_key(text, "dtype");
  rondo_json_string(text, rondo_safetensors_type_name(entry->shape.type));
  rondo_json_key(text, "shape");
  rondo_json_array_begin(text);
  for (uint32_t i = 0; i < entry->shape.rank; i++) rondo_json_u64(text, entry->shape.dims[i]);
  rondo_json_array_end(text);
  rondo_json_key(text, "data_offsets");
  rondo_json_array_begin(text);
  rondo_json_u64(text, begin);
  rondo_json_u64(text, begin + rondo_shape_bytes(&entry->shape));
  rondo_json_array_end(text);
  rondo_json_object_end(text);
}

/* The entry after `before` in the file; the first one if `before` is NULL; NULL at the end. */
static const rondo_weights_entry *next_entry(const rondo_weights *weights, const rondo_weights_entry *before) {
  if (weights->entries.count == 0) return NULL;
  const rondo_weights_entry *items = weights->entries.items, *end = items + weights->entries.count;
  size_t element_bytes = before == NULL ? LARGEST_ELEMENT : rondo_type_bytes(before->shape.type);
  const rondo_weights_entry *entry = before == NULL ? items : before + 1;
  for (; element_bytes > 0; element_bytes /= 2, entry = items) {
    for (; entry < end; entry++) {
      if (rondo_type_bytes(entry->shape.type) == element_bytes) return entry;
    }
  }
  return NULL;
}

static void write_header(const rondo_weights *weights, const char *checksum, rondo_text *text) {
  uint64_t begin = 0;
  rondo_json_object_begin(text);
  write_metadata(weights, checksum, text);
  for (const rondo_weights_entry *entry = NULL; (entry = next_entry(weights, entry)) != NULL;) {
    write_entry(entry, begin, text);
    begin += rondo_shape_bytes(&entry->shape);
  }
  rondo_json_object_end(text);
  while (text->failed == RONDO_OK && text->count % 8 != 0) rondo_text_add_bytes(text, " ", 1);
}

/* File ------------------------------------------------------------------------------------------------------------ */

static rondo_status write_file(rondo_file_replacement *file, const rondo_weights *weights, const char *header) {
  const size_t header_bytes = strlen(header);
  unsigned char length[LENGTH_BYTES];
  for (size_t i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)((uint64_t)header_bytes >> (8 * i));
  RONDO_TRY(rondo_file_replacement_write(file, length, sizeof length));
  RONDO_TRY(rondo_file_replacement_write(file, header, header_bytes));
  for (const rondo_weights_entry *entry = NULL; (entry = next_entry(weights, entry)) != NULL;) {
    RONDO_TRY(rondo_file_replacement_write(file, entry->data, rondo_shape_bytes(&entry->shape)));
  }
  return RONDO_OK;
}

static rondo_status replace_file(const rondo_weights *weights, const char *header, const char *path) {
  rondo_file_replacement file;
  RONDO_TRY(rondo_file_replacement_begin(path, &file));
  return rondo_file_replacement_end(&file, write_file(&file, weights, header));
}

static rondo_status make_header(const rondo_weights *weights, char **out) {
  rondo_text text;
  char *checksum = NULL;
  RONDO_TRY(rondo_checksum_make(weights, &checksum));
  rondo_text_init(&text, &weights->allocator);
  write_header(weights, checksum, &text);
  const rondo_status status = rondo_text_take(&text, out);
  rondo_text_deinit(&text);
  rondo_release_text(&weights->allocator, checksum);
  return status;
}

rondo_status rondo_weights_save(const rondo_weights *weights, const char *path) {
  RONDO_TRY(rondo_require("rondo_weights_save", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_save", "path", path));
  char *header = NULL;
  for (size_t i = 0; i < weights->entries.count; i++)
    RONDO_TRY(rondo_weights_make_plain(weights, &weights->entries.items[i]));
  RONDO_TRY(make_header(weights, &header));
  const rondo_status status = replace_file(weights, header, path);
  rondo_release_text(&weights->allocator, header);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s cannot be saved", path);
}
