/* SPDX-License-Identifier: MIT
 * Bags of indices, as embedding.c and sparse_gradient.c read them: which indices a bag has, and what its rows are
 * multiplied by. An embedding consists of bags with one index each. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_EMBEDDING_EMBEDDING_BAGS_H
#define RONDO_TENSOR_OPERATORS_EMBEDDING_EMBEDDING_BAGS_H

#include "base/binary_search.h"
#include "tensor/operators/common/operator_tools.h"

/* Flags. EACH: there is a result for each bag, not for each index. LAST: the last offset is the end of the last bag,
 * and indices from there on are in no bag. */
enum { RONDO_BAG_MEAN, RONDO_BAG_EACH, RONDO_BAG_LAST };

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_bag_shape {
  size_t rows, columns;  /* of the table */
  size_t count;          /* indices */
  size_t bags, bag_size; /* bag_size 0: bags begin at offsets */
  size_t end;            /* the number of the offset at which the last bag ends; 0: at the last index */
  uint32_t wide_indices, is_mean;
} rondo_bag_shape;

/* `table`: the shape of the table, or of its gradient. An embedding has no offsets. */
static inline rondo_bag_shape rondo_bag_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                                 const rondo_shape *table, uint32_t indices, uint32_t offsets) {
  const rondo_shape *of_indices = rondo_emit_shape(emitter, operation->inputs[indices]);
  const rondo_shape *of_offsets = rondo_emit_shape(emitter, operation->inputs[offsets]);
  rondo_bag_shape shape = {.rows = table->dims[0],
                           .columns = table->dims[1],
                           .count = rondo_shape_elements(of_indices),
                           .wide_indices = of_indices->type == RONDO_I64,
                           .is_mean = operation->attributes.flags[RONDO_BAG_MEAN]};
  if (of_offsets == NULL)
    shape.bag_size = operation->attributes.flags[RONDO_BAG_EACH] ? rondo_shape_last(of_indices) : 1;
  shape.bags = of_offsets == NULL ? shape.count / shape.bag_size : rondo_shape_elements(of_offsets);
  if (operation->attributes.flags[RONDO_BAG_LAST]) shape.end = --shape.bags;
  assert(shape.rows > 0 && shape.columns > 0 && shape.bags > 0);
  return shape;
}

/* Where the last of the offsets is, which is the number of indices in bags; NULL where there are no offsets. */
static inline const int32_t *rondo_emit_last_offset(const rondo_emitter *emitter, uint32_t offsets) {
  if (offsets == RONDO_NO_VALUE) return NULL;
  return (const int32_t *)rondo_emit_address(emitter, offsets) + rondo_emit_shape(emitter, offsets)->dims[0] - 1;
}

static inline size_t rondo_bag_clamp(int32_t offset, size_t count) {
  return rondo_smaller(offset < 0 ? 0 : (size_t)offset, count);
}

/* How many indices are in bags. */
static inline size_t rondo_bag_indices(const rondo_bag_shape *shape, const int32_t *offsets) {
  return shape->end == 0 ? shape->count : rondo_bag_clamp(offsets[shape->end], shape->count);
}

/* The indices of a bag. */
static inline rondo_span rondo_bag_span(const rondo_bag_shape *shape, const int32_t *offsets, size_t bag) {
  if (offsets == NULL) return (rondo_span){bag * shape->bag_size, (bag + 1) * shape->bag_size};
  const size_t first = rondo_bag_clamp(offsets[bag], shape->count);
  const bool is_last = bag + 1 == shape->bags;
  const size_t last = is_last ? rondo_bag_indices(shape, offsets) : rondo_bag_clamp(offsets[bag + 1], shape->count);
  return (rondo_span){first, last < first ? first : last};
}

/* The last bag that begins at index i or before: the one that has the index, if any has. */
static inline size_t rondo_bag_of(const rondo_bag_shape *shape, const int32_t *offsets, size_t i) {
  if (offsets == NULL) return i / shape->bag_size;
  size_t next = 1, end = shape->bags; /* bag 0 begins at 0 */
  RONDO_BINARY_SEARCH(next, end, middle, rondo_bag_clamp(offsets[middle], shape->count) <= i)
  return next - 1;
}

/* The factor of all rows of a bag, apart from their weights. */
static inline float rondo_bag_factor(const rondo_bag_shape *shape, const int32_t *offsets, size_t bag) {
  if (shape->is_mean == 0) return 1.0f;
  const rondo_span span = rondo_bag_span(shape, offsets, bag);
  return span.last > span.first ? 1.0f / (float)(span.last - span.first) : 0;
}

static inline size_t rondo_bag_row(const rondo_bag_shape *shape, const void *indices, size_t i) {
  const int64_t index = rondo_index_at(indices, shape->wide_indices, i);
  return index >= 0 && (uint64_t)index < shape->rows ? (size_t)index : 0;
}

#endif
