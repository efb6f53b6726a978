/* SPDX-License-Identifier: MIT
 * Finds and maps files of external data.
 */
#include "onnx/format/external_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PATH_BYTES 4096 /* the kernel's limit, with the NUL */

void rondo_onnx_external_files_free(rondo_onnx_external_files *files) {
  for (size_t i = 0; i < files->files.count; i++) rondo_file_unmap(&files->files.items[i].mapping);
  rondo_array_free(&files->allocator, &files->files);
}

static rondo_status fail_outside(const char *location) {
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "its external data are in '%s', which is outside of the model's folder", location);
}

/* Entries -------------------------------------------------------------------------------------------------------- */

typedef struct entries {
  const char *location;
  size_t offset, length;
  bool has_length;
} entries;

static rondo_status read_number(const char *key, const char *text, size_t *out) {
  char *end;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > SIZE_MAX)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "its external data have the %s '%s', which is not a number", key, text);
  *out = (size_t)value;
  return RONDO_OK;
}

static rondo_status read_entry(const RondoOnnx__Pair *pair, entries *out) {
  const char *const key = rondo_onnx_text(pair->key), *const value = rondo_onnx_text(pair->value);
  if (strcmp(key, "location") == 0) out->location = value;
  if (strcmp(key, "offset") == 0) return read_number(key, value, &out->offset);
  if (strcmp(key, "length") != 0) return RONDO_OK;
  out->has_length = true;
  return read_number(key, value, &out->length);
}

/* The format forbids "..". */
static rondo_status check_location(const char *location) {
  if (location == NULL || location[0] == '\0')
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "its external data have no location");
  if (location[0] == '/') return fail_outside(location);
  for (const char *part = location; part != NULL; part = strchr(part, '/')) {
    part += *part == '/';
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return fail_outside(location);
  }
  return RONDO_OK;
}

/* Files ---------------------------------------------------------------------------------------------------------- */

static rondo_status map_file(const rondo_onnx_external_files *files, const char *location, rondo_file_mapping *out) {
  char path[PATH_BYTES];
  if (files->folder == NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "its elements are in the file '%s': load the model from its file, or give its folder", location);
  const int length =
      snprintf(path, sizeof path, "%s%s%s", files->folder, files->folder[0] != '\0' ? "/" : "", location);
  if (length < 0 || (size_t)length >= sizeof path)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "the path of its external data has more than %d bytes", PATH_BYTES - 1);
  return rondo_file_map(path, out);
}

static rondo_status find_file(rondo_onnx_external_files *files, const char *location, const rondo_file_mapping **out) {
  for (size_t i = 0; i < files->files.count; i++) {
    *out = &files->files.items[i].mapping;
    if (strcmp(files->files.items[i].location, location) == 0) return RONDO_OK;
  }
  rondo_onnx_external_file file = {.location = location};
  RONDO_TRY(rondo_array_reserve(&files->allocator, &files->files, files->files.count + 1));
  RONDO_TRY(map_file(files, location, &file.mapping));
  RONDO_TRY(rondo_array_push(&files->allocator, &files->files, &file));
  *out = &files->files.items[files->files.count - 1].mapping;
  return RONDO_OK;
}

rondo_status rondo_onnx_find_external(rondo_onnx_external_files *files, RondoOnnx__Pair *const *pairs, size_t count,
                                      const void **out_elements, size_t *out_bytes) {
  entries found = {0};
  const rondo_file_mapping *mapping;
  *out_elements = NULL;
  for (size_t i = 0; i < count; i++) RONDO_TRY(read_entry(pairs[i], &found));
  RONDO_TRY(check_location(found.location));
  RONDO_TRY(find_file(files, found.location, &mapping));
  if (found.offset > mapping->count || (found.has_length && found.length > mapping->count - found.offset))
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED,
                      "its elements are %zu bytes from byte %zu on of the file '%s', which has %zu bytes", found.length,
                      found.offset, found.location, mapping->count);
  *out_bytes = found.has_length ? found.length : mapping->count - found.offset;
  if (*out_bytes > 0) *out_elements = mapping->bytes + found.offset;
  return RONDO_OK;
}
