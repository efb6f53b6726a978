/* SPDX-License-Identifier: MIT
 * Reads safetensors files. The whole header is checked before any tensor is read: names are unique, sizes do not
 * overflow, and ranges cover the data from the first byte to the last without overlap or gap, as the format requires
 * (huggingface/safetensors, README, "Format" and "Notes": header up to 100 MB, no duplicate keys, no holes). Then the
 * checksums are compared, if the file has them: of the whole header, and of the requested tensors.
 *
 * A file is mapped, and its entries point into the mapping. Bytes from the caller are copied.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "tensor/files/checksum.h"
#include "tensor/files/safetensors_read.h"
#include "tensor/files/weight_rules.h"

#define LENGTH_BYTES 8
#define MAX_HEADER_BYTES 100000000u

/* A tensor of the header; the document owns the name. Offsets count from the end of the header. `skips` is set for a
 * tensor that Rondo cannot represent. */
typedef struct listed {
  const char *name;
  rondo_shape shape;
  bool skips;
  uint64_t begin, end;
} listed;

typedef struct source {
  const unsigned char *bytes;
  size_t count;
  bool is_mapped;                       /* the bytes are a mapping of the set's; else they are copied */
  const rondo_safetensors_index *index; /* that lists the tensors of `file`; NULL: none */
  const char *file;
} source;

typedef struct reader {
  const rondo_weights_options *options;
  const source *source;
  const unsigned char *bytes; /* of the source */
  size_t count;
  rondo_weights *weights;
  size_t header_bytes;
  rondo_json_document document;
  listed *tensors;
  size_t capacity, listed_count;
} reader;

static rondo_status fail_malformed(const char *tensor, const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "tensor '%s': %s", tensor, what);
}

/* Header ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_truncated(uint64_t have, uint64_t want, const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED, "%llu bytes where %s needs %llu: it was cut off",
                    (unsigned long long)have, what, (unsigned long long)want);
}

static rondo_status read_length(reader *r) {
  if (r->count < LENGTH_BYTES) return fail_truncated(r->count, LENGTH_BYTES, "the header's length");
  uint64_t length = 0;
  for (size_t i = LENGTH_BYTES; i > 0; i--) length = length << 8 | r->bytes[i - 1];
  if (length < 2 || length > MAX_HEADER_BYTES) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "a header of %llu bytes; it has 2 to %u: this is not a safetensors file",
                      (unsigned long long)length, MAX_HEADER_BYTES);
  }
  if (length > r->count - LENGTH_BYTES) return fail_truncated(r->count, LENGTH_BYTES + length, "the header");
  r->header_bytes = (size_t)length;
  return RONDO_OK;
}

static rondo_status parse_header(reader *r) {
  RONDO_TRY(read_length(r));
  const char *header = (const char *)r->bytes + LENGTH_BYTES;
  if (header[0] != '{') {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "the header does not begin with '{'");
  }
  const rondo_status status = rondo_json_parse(&r->weights->allocator, header, r->header_bytes, &r->document);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "header");
}

/* Tensors --------------------------------------------------------------------------------------------------------- */

static bool is_size(const rondo_json_value *value) {
  return rondo_json_is(value, RONDO_JSON_INTEGER) && value->as.integer >= 0;
}

static rondo_status skip(reader *r, listed *tensor, rondo_reason reason, const char *what) {
  char why[RONDO_ERROR_MESSAGE_BYTES];
  (void)snprintf(why, sizeof why, "tensor '%s' %s", tensor->name, what);
  tensor->skips = true;
  return rondo_weights_skip(r->weights, tensor->name, reason, why);
}

static rondo_status read_sizes(reader *r, const rondo_json_value *dims, rondo_type type, listed *out) {
  size_t sizes[RONDO_MAX_DIMENSIONS] = {0};
  const rondo_json_value *dim = rondo_json_first(dims);
  bool is_empty = false;
  for (size_t i = 0; i < dims->count; i++, dim = rondo_json_next(dim)) {
    if (!is_size(dim)) return fail_malformed(out->name, "its shape has an entry that is not a size");
    is_empty |= dim->as.integer == 0;
    if (i < RONDO_MAX_DIMENSIONS) sizes[i] = (size_t)dim->as.integer;
  }
  if (out->skips) return RONDO_OK;
  if (is_empty) return skip(r, out, RONDO_REASON_SHAPE, "is empty: a dimension of it is 0");
  if (dims->count > RONDO_MAX_DIMENSIONS) {
    char what[80];
    (void)snprintf(what, sizeof what, "has %u dimensions; Rondo reads up to %d", (unsigned)dims->count,
                   RONDO_MAX_DIMENSIONS);
    return skip(r, out, RONDO_REASON_SHAPE, what);
  }
  if (rondo_shape_make(out->name, type, sizes, dims->count, &out->shape) == RONDO_OK) return RONDO_OK;
  return fail_malformed(out->name, "its shape has more bytes than any file");
}

static rondo_status read_shape(reader *r, const rondo_json_value *tensor, listed *out) {
  const char *type_name = rondo_json_text_of(rondo_json_get(tensor, "dtype"));
  const rondo_json_value *dims = rondo_json_get(tensor, "shape");
  rondo_type type = RONDO_F32;
  if (type_name == NULL) return fail_malformed(out->name, "it has no dtype");
  if (!rondo_json_is(dims, RONDO_JSON_ARRAY)) return fail_malformed(out->name, "it has no shape");
  if (!rondo_safetensors_find_type(type_name, &type)) {
    char what[96];
    (void)snprintf(what, sizeof what, "is %.16s; Rondo reads F32, F16, BF16, I32, I64, I8, U8, BOOL, F8_E4M3, F8_E5M2",
                   type_name);
    RONDO_TRY(skip(r, out, RONDO_REASON_TYPE, what));
  }
  return read_sizes(r, dims, type, out);
}

static rondo_status read_offsets(const rondo_json_value *tensor, listed *out) {
  const rondo_json_value *offsets = rondo_json_get(tensor, "data_offsets");
  const bool is_pair = rondo_json_is(offsets, RONDO_JSON_ARRAY) && offsets->count == 2;
  const rondo_json_value *begin = is_pair ? rondo_json_item(offsets, 0) : NULL;
  const rondo_json_value *end = is_pair ? rondo_json_item(offsets, 1) : NULL;
  if (!is_size(begin) || !is_size(end) || end->as.integer < begin->as.integer) {
    return fail_malformed(out->name, "its data_offsets are not two numbers, the first not above the second");
  }
  out->begin = (uint64_t)begin->as.integer;
  out->end = (uint64_t)end->as.integer;
  if (out->skips || out->end - out->begin == rondo_shape_bytes(&out->shape)) return RONDO_OK;
  char shape[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "tensor '%s': %s has %zu bytes, its data_offsets say %llu", out->name,
                    rondo_shape_text(shape, &out->shape), rondo_shape_bytes(&out->shape),
                    (unsigned long long)(out->end - out->begin));
}

/* The JSON parser has checked that keys are UTF-8 and unique. Keys are sorted once at the end, because there may be
 * millions. */
static rondo_status read_metadata(reader *r, const rondo_json_value *metadata) {
  if (!rondo_json_is(metadata, RONDO_JSON_OBJECT)) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, RONDO_METADATA_KEY " is not an object");
  }
  const rondo_json_value *key = rondo_json_first(metadata);
  for (size_t i = 0; i < metadata->count; i++, key = rondo_json_next(rondo_json_next(key))) {
    const char *value = rondo_json_text_of(rondo_json_next(key));
    if (value == NULL) {
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, RONDO_METADATA_KEY ": '%s' is not a string",
                        key->as.string);
    }
    RONDO_TRY(rondo_weights_append_metadata(r->weights, key->as.string, value));
  }
  return RONDO_OK;
}

static rondo_indexed_tensor *find_indexed(const reader *r, const char *name) {
  const source *from = r->source;
  return from->index == NULL ? NULL : rondo_safetensors_find_indexed(from->index, from->file, name);
}

static rondo_status list_tensor(reader *r, const char *name, const rondo_json_value *tensor) {
  assert(r->listed_count < r->capacity);
  listed *next = &r->tensors[r->listed_count++];
  next->name = name;
  rondo_indexed_tensor *indexed = find_indexed(r, name);
  if (indexed != NULL) indexed->is_found = true;
  if (!rondo_json_is(tensor, RONDO_JSON_OBJECT)) return fail_malformed(name, "it is not an object");
  RONDO_TRY(read_shape(r, tensor, next));
  return read_offsets(tensor, next);
}

static rondo_status list_tensors(reader *r) {
  const rondo_json_value *root = rondo_json_root(&r->document);
  const rondo_json_value *key = rondo_json_first(root);
  r->capacity = root->count;
  RONDO_TRY(rondo_allocate_items(&r->weights->allocator, r->capacity, sizeof *r->tensors, &r->tensors));
  for (size_t i = 0; i < root->count; i++, key = rondo_json_next(rondo_json_next(key))) {
    const rondo_json_value *value = rondo_json_next(key);
    const bool is_metadata = strcmp(key->as.string, RONDO_METADATA_KEY) == 0;
    RONDO_TRY(is_metadata ? read_metadata(r, value) : list_tensor(r, key->as.string, value));
  }
  return RONDO_OK;
}

/* Data ------------------------------------------------------------------------------------------------------------ */

static int compare_listed(const void *a, const void *b) {
  const listed *x = a;
  const listed *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end)
    return x->end < y->end ? -1 : 1; /* an empty tensor comes before the one that begins at the same offset */
  return strcmp(x->name, y->name);
}

/* Checks that the tensors cover each byte of the data exactly once. */
static rondo_status check_cover(reader *r) {
  const uint64_t bytes = r->count - LENGTH_BYTES - r->header_bytes;
  uint64_t covered = 0;
  if (r->listed_count > 1) qsort(r->tensors, r->listed_count, sizeof *r->tensors, compare_listed);
  for (size_t i = 0; i < r->listed_count; i++) {
    const listed *tensor = &r->tensors[i];
    if (tensor->begin != covered) {
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                        "tensor '%s' begins at %llu, %s, which ends at %llu", tensor->name,
                        (unsigned long long)tensor->begin,
                        tensor->begin < covered ? "inside the one before" : "with a gap after the one before",
                        (unsigned long long)covered);
    }
    covered = tensor->end;
  }
  if (covered > bytes) return fail_truncated(bytes, covered, "the tensors' data");
  if (covered == bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "%llu bytes after the last tensor",
                    (unsigned long long)(bytes - covered));
}

/* An index knows what is requested. */
static rondo_status choose(const reader *r, const char *name, bool *out_is_wanted) {
  const rondo_indexed_tensor *indexed = find_indexed(r, name);
  *out_is_wanted = indexed != NULL && indexed->is_wanted;
  if (r->source->index != NULL) return RONDO_OK;
  return rondo_weight_rules_choose(r->options, &r->weights->allocator, name, out_is_wanted);
}

/* Data of a mapped file are not copied, unless their address is not aligned to the size of their elements. */
static rondo_status read_tensor(reader *r, const listed *tensor) {
  rondo_weights *weights = r->weights;
  const size_t offset = LENGTH_BYTES + r->header_bytes + (size_t)tensor->begin;
  const size_t bytes = rondo_shape_bytes(&tensor->shape);
  assert(!tensor->skips && offset + bytes <= r->count);
  const bool is_aligned = offset % rondo_type_bytes(tensor->shape.type) == 0;
  bool is_wanted;
  RONDO_TRY(choose(r, tensor->name, &is_wanted));
  if (!is_wanted) return rondo_weights_append_view(weights, tensor->name, &tensor->shape, NULL);
  if (r->source->is_mapped && is_aligned)
    return rondo_weights_append_view(weights, tensor->name, &tensor->shape, (void *)(uintptr_t)(r->bytes + offset));
  void *data = NULL;
  RONDO_TRY(rondo_weights_append(weights, tensor->name, &tensor->shape, &data));
  memcpy(data, r->bytes + offset, bytes);
  rondo_weights_drop(weights, r->bytes + offset, bytes);
  return RONDO_OK;
}

static rondo_status read_tensors(reader *r) {
  for (size_t i = 0; i < r->listed_count; i++) {
    if (!r->tensors[i].skips) RONDO_TRY(read_tensor(r, &r->tensors[i]));
  }
  rondo_weights_sort(r->weights);
  RONDO_TRY(rondo_checksum_check(r->weights));
  rondo_weights_remove_unwanted(r->weights);
  return RONDO_OK;
}

static rondo_status read_all(reader *r) {
  RONDO_TRY(parse_header(r));
  RONDO_TRY(list_tensors(r));
  RONDO_TRY(check_cover(r));
  return read_tensors(r);
}

static rondo_status read_source(const source *from, const rondo_weights_options *options, rondo_weights *weights) {
  weights->converts_floats = options->convert_floats;
  reader r = {.options = options, .source = from, .bytes = from->bytes, .count = from->count, .weights = weights};
  rondo_status status = read_all(&r);
  rondo_release(&weights->allocator, r.tensors, r.capacity, sizeof *r.tensors);
  rondo_json_document_free(&r.document);
  if (status == RONDO_OK) status = rondo_weight_rules_apply(options, weights);
  return status;
}

rondo_status rondo_safetensors_read_file(rondo_file_mapping *mapping, const rondo_safetensors_index *index,
                                         const char *name, const rondo_weights_options *options,
                                         rondo_weights *weights) {
  const source from = {mapping->bytes, mapping->count, true, index, name};
  const rondo_status status = rondo_array_push(&weights->allocator, &weights->mappings, mapping);
  if (status != RONDO_OK) {
    rondo_file_unmap(mapping);
    return status;
  }
  return read_source(&from, options, weights);
}

/* API ------------------------------------------------------------------------------------------------------------- */

/* Destroys the set if reading failed. */
static rondo_status finish(rondo_status status, const char *what, rondo_weights *weights, rondo_weights **out_weights) {
  if (status == RONDO_OK) {
    *out_weights = weights;
    return RONDO_OK;
  }
  rondo_weights_destroy(weights);
  return rondo_fail_context(status, "%s", what);
}

static rondo_status read_options(const char *call, const rondo_weights_options *options, rondo_weights_options *out) {
  RONDO_TRY(RONDO_VERSIONED_READ(call, options, out));
  return rondo_weight_rules_check(call, out);
}

static rondo_status parse(const void *bytes, size_t count, const rondo_weights_options *options,
                          rondo_weights *weights) {
  const source from = {.bytes = bytes, .count = count};
  if (!rondo_safetensors_is_index(bytes, count)) return read_source(&from, options, weights);
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "these bytes are an index of other files: load it from its file with rondo_weights_load");
}

rondo_status rondo_weights_parse(const void *bytes, size_t count, const rondo_weights_options *options,
                                 rondo_weights **out_weights) {
  static const char call[] = "rondo_weights_parse";
  rondo_weights_options resolved;
  rondo_weights *weights = NULL;
  RONDO_TRY(rondo_require(call, "out_weights", out_weights));
  *out_weights = NULL;
  if (count > 0) RONDO_TRY(rondo_require(call, "bytes", bytes));
  RONDO_TRY(read_options(call, options, &resolved));
  RONDO_TRY(rondo_weights_create(resolved.allocator, &weights));
  return finish(parse(bytes, count, &resolved, weights), "safetensors", weights, out_weights);
}

static rondo_status load(const char *path, rondo_file_mapping *mapping, const rondo_weights_options *options,
                         rondo_weights *weights) {
  if (!rondo_safetensors_is_index(mapping->bytes, mapping->count))
    return rondo_safetensors_read_file(mapping, NULL, NULL, options, weights);
  const rondo_status status = rondo_safetensors_load_index(path, mapping, options, weights);
  rondo_file_unmap(mapping);
  return status;
}

rondo_status rondo_weights_load(const char *path, const rondo_weights_options *options, rondo_weights **out_weights) {
  static const char call[] = "rondo_weights_load";
  rondo_weights_options resolved;
  rondo_weights *weights = NULL;
  rondo_file_mapping mapping;
  RONDO_TRY(rondo_require(call, "out_weights", out_weights));
  *out_weights = NULL;
  RONDO_TRY(rondo_require(call, "path", path));
  RONDO_TRY(read_options(call, options, &resolved));
  RONDO_TRY(rondo_weights_create(resolved.allocator, &weights));
  const rondo_status status = rondo_file_map(path, &mapping);
  if (status == RONDO_OK) return finish(load(path, &mapping, &resolved, weights), path, weights, out_weights);
  rondo_weights_destroy(weights);
  return status;
}
