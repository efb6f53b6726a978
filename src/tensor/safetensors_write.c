/* SPDX-License-Identifier: MIT
 * Writing safetensors: the tensors in order of their names, the header padded with spaces so that the data begin at a
 * multiple of 8. The file is written beside its place and renamed into it once it is on the disk, so that at any time
 * the place holds the old file or the new one, whole.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tensor/weights_internal.h"

#define LENGTH_BYTES 8

/* Header ---------------------------------------------------------------------------------------------------------- */

static void write_metadata(const rondo_weights *weights, rondo_text *text) {
  rondo_json_key(text, RONDO_METADATA_KEY);
  rondo_json_object_begin(text);
  for (size_t i = 0; i < weights->metadata.count; i++) {
    rondo_json_key(text, weights->metadata.items[i].key);
    rondo_json_string(text, weights->metadata.items[i].value);
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

static void write_header(const rondo_weights *weights, rondo_text *text) {
  uint64_t begin = 0;
  rondo_json_object_begin(text);
  if (weights->metadata.count > 0) write_metadata(weights, text);
  for (size_t i = 0; i < weights->entries.count; i++) {
    write_entry(&weights->entries.items[i], begin, text);
    begin += rondo_shape_bytes(&weights->entries.items[i].shape);
  }
  rondo_json_object_end(text);
  while (text->failed == RONDO_OK && text->count % 8 != 0) rondo_text_add_bytes(text, " ", 1);
}

/* File ------------------------------------------------------------------------------------------------------------ */

static rondo_status write_bytes(int file, const void *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    const ssize_t wrote = write(file, (const unsigned char *)bytes + done, count - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "%zu bytes cannot be written", count - done);
    done += (size_t)wrote;
  }
  return RONDO_OK;
}

static rondo_status write_file(int file, const rondo_weights *weights, const char *header) {
  const size_t header_bytes = strlen(header);
  unsigned char length[LENGTH_BYTES];
  for (size_t i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)((uint64_t)header_bytes >> (8 * i));
  RONDO_TRY(write_bytes(file, length, sizeof length));
  RONDO_TRY(write_bytes(file, header, header_bytes));
  for (size_t i = 0; i < weights->entries.count; i++) {
    const rondo_weights_entry *entry = &weights->entries.items[i];
    RONDO_TRY(write_bytes(file, entry->data, rondo_shape_bytes(&entry->shape)));
  }
  if (fsync(file) != 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "it cannot be brought to the disk");
  return RONDO_OK;
}

/* A name beside `path` that no other thread or process uses. */
static rondo_status make_temporary_name(const rondo_allocator *allocator, const char *path, char **out) {
  static atomic_uint serial;
  rondo_text text;
  rondo_text_init(&text, allocator);
  rondo_text_add(&text, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
  const rondo_status status = rondo_text_take(&text, out);
  rondo_text_deinit(&text);
  return status;
}

static rondo_status write_and_rename(const rondo_weights *weights, const char *header, const char *temporary,
                                     const char *path) {
  const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be made", temporary);
  rondo_status status = write_file(file, weights, header);
  if (close(file) != 0 && status == RONDO_OK) {
    status = rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be closed", temporary);
  }
  if (status == RONDO_OK && rename(temporary, path) != 0) {
    status = rondo_fail_errno(RONDO_IO_ERROR, errno, "%s cannot be renamed", temporary);
  }
  if (status != RONDO_OK) unlink(temporary);
  return status;
}

static rondo_status make_header(const rondo_weights *weights, char **out) {
  rondo_text text;
  rondo_text_init(&text, &weights->allocator);
  write_header(weights, &text);
  const rondo_status status = rondo_text_take(&text, out);
  rondo_text_deinit(&text);
  return status;
}

rondo_status rondo_weights_save(const rondo_weights *weights, const char *path) {
  RONDO_TRY(rondo_require("rondo_weights_save", "weights", weights));
  RONDO_TRY(rondo_require("rondo_weights_save", "path", path));
  char *header = NULL;
  char *temporary = NULL;
  RONDO_TRY(make_header(weights, &header));
  rondo_status status = make_temporary_name(&weights->allocator, path, &temporary);
  if (status == RONDO_OK) status = write_and_rename(weights, header, temporary, path);
  rondo_release_text(&weights->allocator, header);
  rondo_release_text(&weights->allocator, temporary);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s cannot be saved", path);
}
