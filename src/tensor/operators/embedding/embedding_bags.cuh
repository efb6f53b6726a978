/* SPDX-License-Identifier: MIT
 * Bags of indices, as in embedding_bags.h.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct gather_shape {
  size_t rows, columns, count, bags, bag_size, end;
  unsigned wide_indices, is_mean;
};

__device__ inline size_t row_at(const gather_shape &shape, const void *indices, size_t i) {
  const long long index = index_at(indices, shape.wide_indices, i);
  return is_index(index, shape.rows) ? (size_t)index : 0;
}

__device__ inline size_t clamp_offset(int offset, size_t count) {
  return offset < 0 ? 0 : (size_t)offset < count ? (size_t)offset : count;
}

struct bag_span {
  size_t first, last;
};

/* How many indices are in bags. */
__device__ inline size_t indices_in_bags(const gather_shape &shape, const int *offsets) {
  return shape.end == 0 ? shape.count : clamp_offset(offsets[shape.end], shape.count);
}

/* The indices of a bag. */
__device__ inline bag_span span_of(const gather_shape &shape, const int *offsets, size_t bag) {
  if (offsets == 0) return {bag * shape.bag_size, (bag + 1) * shape.bag_size};
  const size_t first = clamp_offset(offsets[bag], shape.count);
  const bool is_last = bag + 1 == shape.bags;
  const size_t last = is_last ? indices_in_bags(shape, offsets) : clamp_offset(offsets[bag + 1], shape.count);
  return {first, last < first ? first : last};
}

/* The last bag that begins at index i or before, by binary search: the one that has the index, if any has. */
__device__ inline size_t bag_of(const gather_shape &shape, const int *offsets, size_t i) {
  if (offsets == 0) return shape.bag_size == 1 ? i : i / shape.bag_size;
  size_t low = 0, high = shape.bags;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (clamp_offset(offsets[middle], shape.count) <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The factor of all rows of a bag, apart from their weights. */
__device__ inline float bag_factor(const gather_shape &shape, const int *offsets, size_t bag) {
  if (shape.is_mean == 0) return 1.0f;
  const bag_span span = span_of(shape, offsets, bag);
  return span.last > span.first ? 1.0f / (float)(span.last - span.first) : 0.0f;
}
