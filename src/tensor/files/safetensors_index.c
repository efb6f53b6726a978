/* SPDX-License-Identifier: MIT
 * Reads an index, and the files that it names, in the order of their names. Each file is read into a set of its own,
 * where its checksums are compared, before its tensors are moved to the result.
 */
#include "tensor/files/safetensors_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "tensor/files/safetensors_read.h"
#include "tensor/files/weight_rules.h"

#define LENGTH_BYTES 8
#define RESERVED "rondo." /* keys of the library's own, which are about one file */

/* The length of a header has zeros in its last bytes; JSON has none. */
bool rondo_safetensors_is_index(const unsigned char *bytes, size_t count) {
  return count > 0 && bytes[0] == '{' && (count < LENGTH_BYTES || bytes[LENGTH_BYTES - 1] != 0);
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_malformed(const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "the index %s", what);
}

/* A name with a folder could lead anywhere. */
static bool is_plain_file(const char *file) {
  return strchr(file, '/') == NULL && strcmp(file, ".") != 0 && strcmp(file, "..") != 0;
}

static int compare_tensors(const void *a, const void *b) {
  const rondo_indexed_tensor *x = a, *y = b;
  const int by_file = strcmp(x->file, y->file);
  return by_file != 0 ? by_file : strcmp(x->name, y->name);
}

static rondo_status list_tensor(rondo_safetensors_index *index, const char *name, const char *file) {
  if (file == NULL || file[0] == '\0')
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "the index has no file for tensor '%s'", name);
  if (!is_plain_file(file))
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "the index has tensor '%s' in '%s', which is not the name of a file in its folder", name, file);
  index->tensors[index->count++] = (rondo_indexed_tensor){.name = name, .file = file};
  return RONDO_OK;
}

static rondo_status list_tensors(rondo_safetensors_index *index, const rondo_json_value *map) {
  const rondo_json_value *name = rondo_json_first(map);
  index->capacity = map->count;
  RONDO_TRY(rondo_allocate_items(&index->document.allocator, map->count, sizeof *index->tensors, &index->tensors));
  for (size_t i = 0; i < map->count; i++, name = rondo_json_next(rondo_json_next(name)))
    RONDO_TRY(list_tensor(index, name->as.string, rondo_json_text_of(rondo_json_next(name))));
  if (index->count > 1) qsort(index->tensors, index->count, sizeof *index->tensors, compare_tensors);
  return RONDO_OK;
}

static rondo_status keep_metadata(const rondo_json_value *metadata, rondo_weights *weights) {
  const rondo_json_value *key = rondo_json_first(metadata);
  for (size_t i = 0; i < metadata->count; i++, key = rondo_json_next(rondo_json_next(key))) {
    const rondo_json_value *value = rondo_json_next(key);
    char number[32];
    const char *text = rondo_json_text_of(value);
    if (rondo_json_is(value, RONDO_JSON_INTEGER)) {
      (void)snprintf(number, sizeof number, "%" PRId64, value->as.integer);
      text = number;
    }
    if (text == NULL || strncmp(key->as.string, RESERVED, sizeof RESERVED - 1) == 0) continue;
    RONDO_TRY(rondo_weights_append_metadata(weights, key->as.string, text));
  }
  return RONDO_OK;
}

static rondo_status read_index(rondo_safetensors_index *index, const rondo_file_mapping *mapping,
                               rondo_weights *weights) {
  const rondo_status status =
      rondo_json_parse(&weights->allocator, (const char *)mapping->bytes, mapping->count, &index->document);
  if (status != RONDO_OK) return rondo_fail_context(status, "index");
  const rondo_json_value *root = rondo_json_root(&index->document), *map = rondo_json_get(root, "weight_map");
  const rondo_json_value *metadata = rondo_json_get(root, "metadata");
  if (!rondo_json_is(map, RONDO_JSON_OBJECT))
    return fail_malformed("has no object 'weight_map': this is not an index of safetensors files");
  if (metadata != NULL && !rondo_json_is(metadata, RONDO_JSON_OBJECT))
    return fail_malformed("has metadata of no object");
  if (metadata != NULL) RONDO_TRY(keep_metadata(metadata, weights));
  return list_tensors(index, map);
}

rondo_indexed_tensor *rondo_safetensors_find_indexed(const rondo_safetensors_index *index, const char *file,
                                                     const char *name) {
  const rondo_indexed_tensor wanted = {.name = name, .file = file};
  size_t low = 0, high = index->count;
  RONDO_BINARY_SEARCH(low, high, middle, compare_tensors(&index->tensors[middle], &wanted) < 0)
  return low < index->count && compare_tensors(&index->tensors[low], &wanted) == 0 ? &index->tensors[low] : NULL;
}

/* Files ------------------------------------------------------------------------------------------------------------ */

static rondo_status choose_tensors(const rondo_safetensors_index *index, const rondo_weights_options *options) {
  for (size_t i = 0; i < index->count; i++) {
    rondo_indexed_tensor *tensor = &index->tensors[i];
    RONDO_TRY(rondo_weight_rules_choose(options, &index->document.allocator, tensor->name, &tensor->is_wanted));
  }
  return RONDO_OK;
}

/* The tensors of one file: so many from `tensors` on. */
typedef struct file_tensors {
  const rondo_indexed_tensor *tensors;
  size_t count;
} file_tensors;

static file_tensors tensors_of_file(const rondo_safetensors_index *index, size_t first) {
  file_tensors found = {.tensors = &index->tensors[first]};
  while (first + found.count < index->count && strcmp(found.tensors[found.count].file, found.tensors->file) == 0)
    found.count++;
  return found;
}

static bool are_wanted(const file_tensors *of) {
  for (size_t i = 0; i < of->count; i++)
    if (of->tensors[i].is_wanted) return true;
  return false;
}

static rondo_status require_found(const file_tensors *of) {
  for (size_t i = 0; i < of->count; i++) {
    if (of->tensors[i].is_found) continue;
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "it has no tensor '%s', which the index lists for it",
                      of->tensors[i].name);
  }
  return RONDO_OK;
}

static rondo_status map_file(const char *index_path, const char *file, const rondo_allocator *allocator,
                             rondo_file_mapping *out) {
  const char *const slash = strrchr(index_path, '/');
  const size_t folder = slash == NULL ? 0 : (size_t)(slash - index_path) + 1, bytes = folder + strlen(file) + 1;
  char *path;
  RONDO_TRY(rondo_allocate_items(allocator, bytes, 1, &path));
  memcpy(path, index_path, folder);
  memcpy(path + folder, file, bytes - folder);
  const rondo_status status = rondo_file_map(path, out);
  rondo_release(allocator, path, bytes, 1);
  return status;
}

static rondo_status read_file(const rondo_safetensors_index *index, const file_tensors *of, rondo_file_mapping *mapping,
                              const rondo_weights_options *options, rondo_weights *weights) {
  const char *file = of->tensors->file;
  rondo_weights *set = NULL;
  rondo_status status = rondo_weights_create(&weights->allocator, &set);
  if (status != RONDO_OK) {
    rondo_file_unmap(mapping);
    return status;
  }
  status = rondo_safetensors_read_file(mapping, index, file, options, set);
  if (status == RONDO_OK) status = require_found(of);
  if (status == RONDO_OK) status = rondo_weights_move(weights, set);
  rondo_weights_destroy(set);
  return rondo_fail_context(status, "%s", file);
}

static rondo_status load_files(const rondo_safetensors_index *index, const char *path,
                               const rondo_weights_options *options, rondo_weights *weights) {
  file_tensors of;
  RONDO_TRY(choose_tensors(index, options));
  for (size_t first = 0; first < index->count; first += of.count) {
    rondo_file_mapping mapping;
    of = tensors_of_file(index, first);
    if (!are_wanted(&of)) continue;
    RONDO_TRY(map_file(path, of.tensors->file, &weights->allocator, &mapping));
    RONDO_TRY(read_file(index, &of, &mapping, options, weights));
  }
  return RONDO_OK;
}

rondo_status rondo_safetensors_load_index(const char *path, const rondo_file_mapping *mapping,
                                          const rondo_weights_options *options, rondo_weights *weights) {
  rondo_safetensors_index index = {.count = 0};
  rondo_status status = read_index(&index, mapping, weights);
  rondo_weights_sort(weights);
  if (status == RONDO_OK) status = load_files(&index, path, options, weights);
  weights->converts_floats = options->convert_floats;
  rondo_release(&weights->allocator, index.tensors, index.capacity, sizeof *index.tensors);
  rondo_json_document_free(&index.document);
  return status;
}
