/* SPDX-License-Identifier: MIT
 * Shapes of values.
 */
#include "tensor/program/shape.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"

rondo_status rondo_shape_make(const char *what, rondo_type type, const size_t *dims, size_t rank, rondo_shape *out) {
  if (type == RONDO_F64 || rondo_type_bytes(type) == 0) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "%s: values cannot have type %d (%s): use RONDO_F32, F16, BF16, I32, I64, I8, U8 or BOOL", what,
                      (int)type, rondo_type_name(type));
  }
  if (rank > RONDO_MAX_DIMENSIONS) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: %zu dimensions: use at most %d", what, rank,
                      RONDO_MAX_DIMENSIONS);
  }
  rondo_shape shape = {.type = type, .rank = (uint32_t)rank};
  size_t bytes = rondo_type_bytes(type);
  for (size_t i = 0; i < rank; i++) {
    shape.dims[i] = dims[i];
    if (dims[i] == 0) {
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: dimension %zu of %zu is 0; each is at least 1",
                        what, i, rank);
    }
    if (!rondo_checked_multiply(bytes, dims[i], &bytes) || bytes > PTRDIFF_MAX / 2) {
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                        "%s: dimension %zu is %zu, so its bytes do not fit in %zu bits: make it smaller%s", what, i,
                        dims[i], 8 * sizeof(size_t), dims[i] == SIZE_MAX ? "; -1 stands for no other size" : "");
    }
  }
  *out = shape;
  return RONDO_OK;
}

rondo_shape rondo_shape_scalar(rondo_type type) { return (rondo_shape){.type = type}; }

rondo_shape rondo_shape_vector(rondo_type type, size_t n) {
  return (rondo_shape){.type = type, .rank = 1, .dims = {n}};
}

rondo_shape rondo_shape_matrix(rondo_type type, size_t m, size_t n) {
  return (rondo_shape){.type = type, .rank = 2, .dims = {m, n}};
}

size_t rondo_shape_elements_of(const rondo_shape *shape, size_t first, size_t end) {
  assert(end <= shape->rank && shape->rank <= RONDO_MAX_DIMENSIONS);
  size_t elements = 1;
  for (size_t i = first; i < end; i++) elements *= shape->dims[i];
  return elements;
}

size_t rondo_shape_elements(const rondo_shape *shape) { return rondo_shape_elements_of(shape, 0, shape->rank); }

size_t rondo_shape_bytes(const rondo_shape *shape) {
  return rondo_shape_elements(shape) * rondo_type_bytes(shape->type);
}

size_t rondo_shape_last(const rondo_shape *shape) { return shape->rank == 0 ? 1 : shape->dims[shape->rank - 1]; }

bool rondo_shape_is_float(const rondo_shape *shape) {
  return shape->type == RONDO_F32 || shape->type == RONDO_F16 || shape->type == RONDO_BF16;
}

bool rondo_shape_same(const rondo_shape *a, const rondo_shape *b) {
  return a->type == b->type && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool rondo_shape_same_except(const rondo_shape *a, const rondo_shape *b, size_t dimension) {
  bool is_same = a->rank == b->rank;
  for (uint32_t i = 0; i < a->rank && is_same; i++) is_same = i == dimension || a->dims[i] == b->dims[i];
  return is_same;
}

const char *rondo_shape_text(char buffer[RONDO_SHAPE_TEXT], const rondo_shape *shape) {
  int used = snprintf(buffer, RONDO_SHAPE_TEXT, "[");
  for (uint32_t i = 0; i < shape->rank; i++) {
    used += snprintf(buffer + used, RONDO_SHAPE_TEXT - (size_t)used, i == 0 ? "%zu" : ", %zu", shape->dims[i]);
  }
  const bool is_usual = shape->type == RONDO_F32;
  used += snprintf(buffer + used, RONDO_SHAPE_TEXT - (size_t)used, "]%s%s", is_usual ? "" : " ",
                   is_usual ? "" : rondo_type_name(shape->type));
  assert(used < RONDO_SHAPE_TEXT);
  return buffer;
}

void rondo_broadcast_strides(const rondo_shape *input, const rondo_shape *result, size_t *strides) {
  size_t stride = 1;
  for (uint32_t d = result->rank; d > 0; d--) {
    const uint32_t from_end = result->rank - d;
    const size_t dim = from_end < input->rank ? input->dims[input->rank - 1 - from_end] : 1;
    strides[d - 1] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
}
