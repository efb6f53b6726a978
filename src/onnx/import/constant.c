/* SPDX-License-Identifier: MIT
 * Constants and the states that they become.
 */
#include "onnx/import/constant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "onnx/import/build_result.h"
#include "tensor/files/weights_internal.h"

#define DEFAULT_MOST_BYTES (UINT64_C(1) << 30)
#define NAME_BYTES 32

/* Shapes ----------------------------------------------------------------------------------------------------------- */

size_t rondo_onnx_shape_count(const rondo_onnx_shape *shape) {
  size_t count = 1;
  for (size_t i = 0; i < shape->rank; i++)
    if (!rondo_checked_multiply(count, shape->dims[i], &count)) return SIZE_MAX;
  return count;
}

const char *rondo_onnx_shape_text(char buffer[RONDO_ONNX_SHAPE_TEXT], const rondo_onnx_shape *shape) {
  int at = snprintf(buffer, RONDO_ONNX_SHAPE_TEXT, "%s [", rondo_onnx_type_name((int32_t)shape->type));
  for (size_t i = 0; i < shape->rank && at < RONDO_ONNX_SHAPE_TEXT - 24; i++)
    at += snprintf(buffer + at, RONDO_ONNX_SHAPE_TEXT - (size_t)at, "%s%zu", i > 0 ? ", " : "", shape->dims[i]);
  (void)snprintf(buffer + at, RONDO_ONNX_SHAPE_TEXT - (size_t)at, "]");
  return buffer;
}

size_t rondo_onnx_type_bytes(rondo_onnx_type type) { return rondo_onnx_type_bits((int32_t)type) / 8; }

rondo_status rondo_onnx_program_type(const rondo_onnx_importer *importer, rondo_onnx_type type, rondo_type *out) {
  if (type == RONDO_ONNX_DOUBLE && !importer->options->refuse_double) {
    *out = RONDO_F32;
    return RONDO_OK;
  }
  if (rondo_onnx_find_type((int32_t)type, out) && *out != RONDO_F64) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "programs have no values of the type '%s'",
                    rondo_onnx_type_name((int32_t)type));
}

rondo_status rondo_onnx_tensor_shape(const rondo_onnx_tensor *tensor, rondo_onnx_shape *out) {
  *out = (rondo_onnx_shape){.type = tensor->type, .rank = tensor->rank};
  if (tensor->rank > RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE, "the tensor '%s' has %zu dimensions, and %d are supported",
                      tensor->name, tensor->rank, RONDO_ONNX_MOST_DIMENSIONS);
  for (size_t i = 0; i < tensor->rank; i++) out->dims[i] = (size_t)tensor->dims[i];
  return RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_constant_of(rondo_onnx_importer *importer, const rondo_onnx_tensor *tensor,
                                    rondo_onnx_constant **out) {
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  RONDO_TRY(rondo_onnx_tensor_shape(tensor, &(*out)->shape));
  (*out)->count = tensor->count;
  (*out)->bytes = tensor->bytes;
  (*out)->elements = tensor->elements;
  (*out)->strings = tensor->strings;
  return RONDO_OK;
}

static rondo_status take_bytes(rondo_onnx_importer *importer, size_t bytes, void *out) {
  const uint64_t most = importer->options->most_folded_bytes;
  const uint64_t limit = most != 0 ? most : DEFAULT_MOST_BYTES;
  if (bytes > limit - importer->kept_bytes)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "constants that are computed at import take more than %s: raise most_folded_bytes",
                      RONDO_SIZE(limit));
  importer->kept_bytes += bytes;
  return rondo_scratch_take(importer->kept, bytes, 1, out);
}

rondo_status rondo_onnx_constant_make(rondo_onnx_importer *importer, const rondo_onnx_shape *shape,
                                      rondo_onnx_constant **out, void **out_elements) {
  void *elements;
  const size_t count = rondo_onnx_shape_count(shape);
  size_t bytes;
  *out_elements = NULL;
  if (!rondo_checked_multiply(count, rondo_onnx_type_bytes(shape->type), &bytes)) bytes = SIZE_MAX;
  RONDO_TRY(take_bytes(importer, bytes, &elements));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_constant){.shape = *shape, .count = count, .bytes = bytes, .elements = elements};
  *out_elements = elements;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_reshaped(rondo_onnx_importer *importer, const rondo_onnx_constant *constant,
                                          const rondo_onnx_shape *shape, rondo_onnx_constant **out) {
  assert(constant->folding == NULL && rondo_onnx_shape_count(shape) == constant->count);
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_constant){.shape = *shape,
                                .count = constant->count,
                                .bytes = constant->bytes,
                                .elements = constant->elements,
                                .strings = constant->strings,
                                .narrowed = constant->narrowed,
                                .given = constant->given};
  (*out)->shape.type = constant->shape.type;
  return RONDO_OK;
}

/* Sparse tensors --------------------------------------------------------------------------------------------------- */

/* The place of value `row`: an index of the flattened tensor, or one index for each dimension. */
static rondo_status find_place(const rondo_onnx_shape *shape, const rondo_onnx_tensor *indices, size_t row,
                               size_t *out) {
  const size_t columns = indices->rank == 2 ? (size_t)indices->dims[1] : 1;
  const bool is_flat = indices->rank == 1;
  *out = 0;
  for (size_t i = 0; i < columns; i++) {
    int64_t index;
    const size_t size = is_flat ? rondo_onnx_shape_count(shape) : shape->dims[i];
    memcpy(&index, (const unsigned char *)indices->elements + (row * columns + i) * sizeof index, sizeof index);
    if (index < 0 || (uint64_t)index >= size)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE, "a sparse tensor has the index %lld of %zu",
                        (long long)index, size);
    *out = *out * size + (size_t)index;
  }
  return RONDO_OK;
}

static rondo_status scatter(const rondo_onnx_tensor *values, const rondo_onnx_tensor *indices,
                            const rondo_onnx_shape *shape, unsigned char *elements) {
  const size_t bytes_each = rondo_onnx_type_bytes(shape->type);
  if (indices->rank == 2 && (size_t)indices->dims[1] != shape->rank)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_SHAPE, "a sparse tensor of %zu dimensions has %lld indices each",
                      shape->rank, (long long)indices->dims[1]);
  for (size_t row = 0; row < values->count; row++) {
    size_t place;
    RONDO_TRY(find_place(shape, indices, row, &place));
    memcpy(elements + place * bytes_each, (const unsigned char *)values->elements + row * bytes_each, bytes_each);
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_of_sparse(rondo_onnx_importer *importer, const RondoOnnx__SparseTensor *sparse,
                                           rondo_onnx_constant **out) {
  rondo_onnx_tensor values, indices;
  rondo_onnx_shape shape;
  void *elements;
  RONDO_TRY(rondo_onnx_read_tensor(&importer->source, sparse->values, &values));
  RONDO_TRY(rondo_onnx_read_tensor(&importer->source, sparse->indices, &indices));
  rondo_onnx_tensor dense = {.name = values.name, .type = values.type, .rank = sparse->n_dims, .dims = sparse->dims};
  RONDO_TRY(rondo_onnx_tensor_shape(&dense, &shape));
  for (size_t i = 0; i < sparse->n_dims; i++)
    if (sparse->dims[i] < 0)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_SHAPE, "a sparse tensor has a negative size");
  RONDO_TRY(rondo_onnx_constant_make(importer, &shape, out, &elements));
  return scatter(&values, &indices, &shape, elements);
}

/* Elements --------------------------------------------------------------------------------------------------------- */

static rondo_status narrow(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  float *narrowed;
  RONDO_TRY(take_bytes(importer, constant->count * sizeof *narrowed, &narrowed));
  for (size_t i = 0; i < constant->count; i++) {
    double number;
    memcpy(&number, (const unsigned char *)constant->elements + i * sizeof number, sizeof number);
    narrowed[i] = (float)number;
  }
  constant->narrowed = narrowed;
  return RONDO_OK;
}

static rondo_status align(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  unsigned char *copy;
  const size_t bytes_each = rondo_onnx_type_bytes(constant->shape.type);
  if (bytes_each < 2 || constant->bytes == 0 || (uintptr_t)constant->elements % bytes_each == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(importer->kept, constant->bytes, 1, &copy));
  memcpy(copy, constant->elements, constant->bytes);
  constant->elements = copy;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_align(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  assert(constant->folding == NULL);
  return align(importer, constant);
}

rondo_status rondo_onnx_constant_elements(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                          const void **out) {
  assert(constant->folding == NULL);
  if (constant->shape.type == RONDO_ONNX_DOUBLE && constant->narrowed == NULL) RONDO_TRY(narrow(importer, constant));
  *out = constant->narrowed != NULL ? constant->narrowed : constant->elements;
  return RONDO_OK;
}

/* States ----------------------------------------------------------------------------------------------------------- */

static bool has_equal_content(const rondo_onnx_constant *a, const rondo_onnx_constant *b) {
  if (a->shape.type != b->shape.type || a->shape.rank != b->shape.rank || a->bytes != b->bytes) return false;
  if (memcmp(a->shape.dims, b->shape.dims, sizeof a->shape.dims) != 0) return false;
  return a->elements == b->elements || memcmp(a->elements, b->elements, a->bytes) == 0;
}

static rondo_onnx_constant *find_equal(const rondo_onnx_importer *importer, const rondo_onnx_constant *constant) {
  for (size_t i = 0; i < importer->states.count; i++)
    if (has_equal_content(importer->states.items[i], constant)) return importer->states.items[i];
  return NULL;
}

/* Named by its content, so that programs of several sizes share it. */
static rondo_status name_by_content(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  char *name;
  uint64_t hash = rondo_hash_u64(RONDO_HASH_START, (uint64_t)constant->shape.type);
  for (size_t i = 0; i < constant->shape.rank; i++) hash = rondo_hash_u64(hash, constant->shape.dims[i]);
  hash = rondo_hash_bytes(hash, constant->elements, constant->bytes);
  RONDO_TRY(rondo_scratch_take(importer->kept, NAME_BYTES, 1, &name));
  (void)snprintf(name, NAME_BYTES, "constant.%016" PRIx64, hash);
  constant->name = name;
  return RONDO_OK;
}

static rondo_status add_state(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  static const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_type type;
  RONDO_TRY(rondo_onnx_program_type(importer, constant->shape.type, &type));
  RONDO_TRY(rondo_array_reserve(&importer->allocator, &importer->states, importer->states.count + 1));
  if (constant->name == NULL) RONDO_TRY(name_by_content(importer, constant));
  RONDO_TRY(rondo_program_state_with(importer->program, constant->name, type, constant->shape.dims,
                                     constant->shape.rank, &frozen, &constant->state));
  RONDO_TRY(rondo_array_push(&importer->allocator, &importer->states, &constant));
  importer->build->info.states++;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_state(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_value *out) {
  assert(constant->folding == NULL && constant->count > 0);
  if (constant->state.id == 0) {
    const rondo_onnx_constant *equal = find_equal(importer, constant);
    if (equal != NULL)
      constant->state = equal->state;
    else
      RONDO_TRY(add_state(importer, constant));
  }
  *out = constant->state;
  return RONDO_OK;
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

/* Elements that are not aligned to their size are copied: the set promises that they are. */
static rondo_status collect(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_weights *weights) {
  rondo_type type;
  rondo_shape shape;
  const void *elements;
  void *data;
  RONDO_TRY(rondo_onnx_program_type(importer, constant->shape.type, &type));
  RONDO_TRY(rondo_shape_make(constant->name, type, constant->shape.dims, constant->shape.rank, &shape));
  RONDO_TRY(align(importer, constant));
  RONDO_TRY(rondo_onnx_constant_elements(importer, constant, &elements));
  importer->build->info.state_bytes += rondo_shape_bytes(&shape);
  memcpy(&data, &elements, sizeof data); /* the set does not write to views */
  return rondo_weights_append_view(weights, constant->name, &shape, data);
}

rondo_status rondo_onnx_collect_weights(rondo_onnx_importer *importer, rondo_weights *weights) {
  for (size_t i = 0; i < importer->states.count; i++) RONDO_TRY(collect(importer, importer->states.items[i], weights));
  rondo_weights_sort(weights);
  return RONDO_OK;
}
