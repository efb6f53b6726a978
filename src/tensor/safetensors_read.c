/* SPDX-License-Identifier: MIT
 * Reading safetensors. The header is checked whole before any tensor is read: names once each, known types, shapes
 * whose bytes fit, and ranges that cover the data from the first byte to the last without overlap or gap, as the format
 * asks (huggingface/safetensors, README, "Format" and "Notes": header up to 100 MB, no duplicate keys, no holes). Then
 * the checksums are compared, where the file has some.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_parse.h"
#include "tensor/byte_source.h"
#include "tensor/checksum.h"

#define LENGTH_BYTES 8
#define MOST_HEADER_BYTES 100000000u

/* A tensor of the header; the name is the JSON's. Offsets count from behind the header. */
typedef struct listed {
  const char *name;
  rondo_shape shape;
  uint64_t begin, end;
} listed;

typedef struct reader {
  const rondo_byte_source *source;
  rondo_weights *weights;
  char *header;
  size_t header_bytes;
  rondo_json_document document;
  listed *tensors;
  size_t room, count;
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
  unsigned char bytes[LENGTH_BYTES];
  const uint64_t size = r->source->count;
  if (size < LENGTH_BYTES) return fail_truncated(size, LENGTH_BYTES, "the header's length");
  RONDO_TRY(rondo_byte_source_read(r->source, 0, bytes, sizeof bytes));
  uint64_t length = 0;
  for (size_t i = LENGTH_BYTES; i > 0; i--) length = length << 8 | bytes[i - 1];
  if (length < 2 || length > MOST_HEADER_BYTES) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "a header of %llu bytes; it has 2 to %u: this is no safetensors file", (unsigned long long)length,
                      MOST_HEADER_BYTES);
  }
  if (length > size - LENGTH_BYTES) return fail_truncated(size, LENGTH_BYTES + length, "the header");
  r->header_bytes = (size_t)length;
  return RONDO_OK;
}

static rondo_status parse_header(reader *r) {
  RONDO_TRY(read_length(r));
  RONDO_TRY(rondo_allocate_items(&r->weights->allocator, r->header_bytes, 1, &r->header));
  RONDO_TRY(rondo_byte_source_read(r->source, LENGTH_BYTES, r->header, r->header_bytes));
  if (r->header[0] != '{') {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "the header does not begin with '{'");
  }
  const rondo_status status = rondo_json_parse(&r->weights->allocator, r->header, r->header_bytes, &r->document);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "header");
}

/* Tensors --------------------------------------------------------------------------------------------------------- */

static rondo_status read_type(const char *name, const rondo_json_value *tensor, rondo_type *out) {
  const char *type = rondo_json_text_of(rondo_json_get(tensor, "dtype"));
  if (type == NULL) return fail_malformed(name, "it has no dtype");
  if (rondo_safetensors_find_type(type, out)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "tensor '%s' is %.16s; Rondo reads F32, F16, BF16, I32, I64",
                    name, type);
}

static bool is_size(const rondo_json_value *value) {
  return rondo_json_is(value, RONDO_JSON_INTEGER) && value->as.integer >= 0;
}

static rondo_status read_shape(const char *name, const rondo_json_value *tensor, rondo_shape *out) {
  rondo_type type;
  RONDO_TRY(read_type(name, tensor, &type));
  const rondo_json_value *dims = rondo_json_get(tensor, "shape");
  if (!rondo_json_is(dims, RONDO_JSON_ARRAY)) return fail_malformed(name, "it has no shape");
  size_t sizes[RONDO_MAX_DIMENSIONS] = {0};
  const size_t rank = dims->count;
  const rondo_json_value *dim = rondo_json_first(dims);
  for (size_t i = 0; i < rank; i++, dim = rondo_json_next(dim)) {
    if (!is_size(dim)) {
      return fail_malformed(name, "its shape has an entry that is no size");
    }
    if (i >= RONDO_MAX_DIMENSIONS || dim->as.integer == 0) {
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE,
                        "tensor '%s' has %zu dimensions or one of size 0; Rondo reads up to %d, each at least 1", name,
                        rank, RONDO_MAX_DIMENSIONS);
    }
    sizes[i] = (size_t)dim->as.integer;
  }
  if (rondo_shape_make(name, type, sizes, rank, out) == RONDO_OK) return RONDO_OK;
  return fail_malformed(name, "its shape has more bytes than any file");
}

static rondo_status read_offsets(const char *name, const rondo_json_value *tensor, listed *out) {
  const rondo_json_value *offsets = rondo_json_get(tensor, "data_offsets");
  const bool is_pair = rondo_json_is(offsets, RONDO_JSON_ARRAY) && offsets->count == 2;
  const rondo_json_value *begin = is_pair ? rondo_json_item(offsets, 0) : NULL;
  const rondo_json_value *end = is_pair ? rondo_json_item(offsets, 1) : NULL;
  if (!is_size(begin) || !is_size(end) || end->as.integer < begin->as.integer) {
    return fail_malformed(name, "its data_offsets are not two numbers, the first not above the second");
  }
  out->begin = (uint64_t)begin->as.integer;
  out->end = (uint64_t)end->as.integer;
  if (out->end - out->begin == rondo_shape_bytes(&out->shape)) return RONDO_OK;
  char shape[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "tensor '%s': %s has %zu bytes, its data_offsets say %llu", name,
                    rondo_shape_text(shape, &out->shape), rondo_shape_bytes(&out->shape),
                    (unsigned long long)(out->end - out->begin));
}

/* JSON is UTF-8 and has each key once. Sorted when all are there: a header has room for millions. */
static rondo_status read_metadata(reader *r, const rondo_json_value *metadata) {
  if (!rondo_json_is(metadata, RONDO_JSON_OBJECT)) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, RONDO_METADATA_KEY " is no object");
  }
  const rondo_json_value *key = rondo_json_first(metadata);
  for (size_t i = 0; i < metadata->count; i++, key = rondo_json_next(rondo_json_next(key))) {
    const char *value = rondo_json_text_of(rondo_json_next(key));
    if (value == NULL) {
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, RONDO_METADATA_KEY ": '%s' is no text",
                        key->as.string);
    }
    RONDO_TRY(rondo_weights_append_metadata(r->weights, key->as.string, value));
  }
  rondo_weights_sort_metadata(r->weights);
  return RONDO_OK;
}

static rondo_status list_tensors(reader *r) {
  const rondo_json_value *root = rondo_json_root(&r->document);
  const rondo_json_value *key = rondo_json_first(root);
  r->room = root->count;
  RONDO_TRY(rondo_allocate_items(&r->weights->allocator, r->room, sizeof *r->tensors, &r->tensors));
  for (size_t i = 0; i < root->count; i++, key = rondo_json_next(rondo_json_next(key))) {
    const char *name = key->as.string;
    const rondo_json_value *tensor = rondo_json_next(key);
    if (strcmp(name, RONDO_METADATA_KEY) == 0) {
      RONDO_TRY(read_metadata(r, tensor));
      continue;
    }
    listed *next = &r->tensors[r->count++];
    next->name = name;
    if (!rondo_json_is(tensor, RONDO_JSON_OBJECT)) return fail_malformed(name, "it is no object");
    RONDO_TRY(read_shape(name, tensor, &next->shape));
    RONDO_TRY(read_offsets(name, tensor, next));
  }
  return RONDO_OK;
}

/* Data ------------------------------------------------------------------------------------------------------------ */

static int compare_listed(const void *a, const void *b) {
  const listed *x = a;
  const listed *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* The tensors cover the data from its first byte to its last, each byte once. */
static rondo_status check_cover(reader *r) {
  const uint64_t bytes = r->source->count - LENGTH_BYTES - r->header_bytes;
  uint64_t covered = 0;
  if (r->count > 1) qsort(r->tensors, r->count, sizeof *r->tensors, compare_listed);
  for (size_t i = 0; i < r->count; i++) {
    const listed *tensor = &r->tensors[i];
    if (tensor->begin != covered) {
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                        "tensor '%s' begins at %llu, %s, which ends at %llu", tensor->name,
                        (unsigned long long)tensor->begin,
                        tensor->begin < covered ? "inside the one before" : "with a gap behind what is before",
                        (unsigned long long)covered);
    }
    covered = tensor->end;
  }
  if (covered > bytes) return fail_truncated(bytes, covered, "the tensors' data");
  if (covered == bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "%llu bytes behind the last tensor",
                    (unsigned long long)(bytes - covered));
}

static rondo_status read_tensors(reader *r) {
  for (size_t i = 0; i < r->count; i++) {
    const listed *tensor = &r->tensors[i];
    void *data = NULL;
    RONDO_TRY(rondo_weights_append(r->weights, tensor->name, &tensor->shape, &data));
    RONDO_TRY(rondo_byte_source_read(r->source, LENGTH_BYTES + r->header_bytes + tensor->begin, data,
                                     (size_t)(tensor->end - tensor->begin)));
  }
  rondo_weights_sort(r->weights);
  return RONDO_OK;
}

static rondo_status read_all(reader *r) {
  RONDO_TRY(parse_header(r));
  RONDO_TRY(list_tensors(r));
  RONDO_TRY(check_cover(r));
  return read_tensors(r);
}

static rondo_status read_source(const rondo_byte_source *source, rondo_weights *weights) {
  reader r = {.source = source, .weights = weights};
  const rondo_status status = read_all(&r);
  rondo_release(&weights->allocator, r.header, r.header_bytes, 1);
  rondo_release(&weights->allocator, r.tensors, r.room, sizeof *r.tensors);
  rondo_json_document_free(&r.document);
  return status;
}

/* Front ----------------------------------------------------------------------------------------------------------- */

static rondo_status load_source(const rondo_byte_source *source, const rondo_allocator *allocator,
                                rondo_weights **out_weights) {
  rondo_weights *weights = NULL;
  RONDO_TRY(rondo_weights_create(allocator, &weights));
  rondo_status status = read_source(source, weights);
  if (status == RONDO_OK) status = rondo_checksum_check(weights);
  if (status != RONDO_OK) {
    rondo_weights_destroy(weights);
    return status;
  }
  *out_weights = weights;
  return RONDO_OK;
}

rondo_status rondo_weights_parse(const void *bytes, size_t count, const rondo_allocator *allocator,
                                 rondo_weights **out_weights) {
  RONDO_TRY(rondo_require("rondo_weights_parse", "out_weights", out_weights));
  *out_weights = NULL;
  if (count > 0) RONDO_TRY(rondo_require("rondo_weights_parse", "bytes", bytes));
  const rondo_byte_source source = {.bytes = bytes == NULL ? (const unsigned char *)"" : bytes, .count = count};
  const rondo_status status = load_source(&source, allocator, out_weights);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "safetensors");
}

rondo_status rondo_weights_load(const char *path, const rondo_allocator *allocator, rondo_weights **out_weights) {
  RONDO_TRY(rondo_require("rondo_weights_load", "out_weights", out_weights));
  *out_weights = NULL;
  RONDO_TRY(rondo_require("rondo_weights_load", "path", path));
  rondo_byte_source source;
  RONDO_TRY(rondo_byte_source_open(path, &source));
  const rondo_status status = load_source(&source, allocator, out_weights);
  rondo_byte_source_close(&source);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s", path);
}
