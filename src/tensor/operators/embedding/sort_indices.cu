/* SPDX-License-Identifier: MIT
 * The CUDA kernels of sort_indices.c. A block sorts a tile of keys in shared memory, by a network of comparisons
 * (Batcher 1968) that is no larger than the tile's keys need. A key's place among all is the number of smaller keys:
 * its place in its tile, and what a binary search finds in each of the others. No two keys are equal.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/sparse_rows.cuh"
#include "tensor/operators/embedding/embedding_bags.cuh"

#define TILE 2048

struct sort_shape {
  size_t count, rows, tile;
  u64 is_wide;
};

/* `end`: the number of indices that are used, or NULL for all. */
__device__ inline u64 key_of(const sort_shape &shape, const void *indices, const int *end, size_t i) {
  const long long index = index_at(indices, (unsigned)shape.is_wide, i);
  const bool is_right = (end == 0 || (long long)i < *end) && is_index(index, shape.rows);
  return (u64)(is_right ? (size_t)index : shape.rows) << 32 | (u64)i;
}

/* One step: exchanges keys at this distance that are in the wrong order. */
__device__ inline void exchange(u64 *keys, unsigned padded, unsigned size, unsigned distance) {
  for (unsigned i = threadIdx.x; i < padded / 2; i += BLOCK_THREADS) {
    const unsigned low = 2 * i - (i & (distance - 1)), high = low + distance;
    const u64 a = keys[low], b = keys[high];
    if ((a > b) == ((low & size) == 0)) keys[low] = b, keys[high] = a;
  }
}

/* The fourth argument is for CPUs. */
extern "C" __global__ void sort_tiles(sort_shape shape, const void *__restrict__ indices, u64 *__restrict__ tiles,
                                      u64 *, const float *control, const int *end) {
  __shared__ u64 keys[TILE];
  if (!control_applies(control)) return;
  for (size_t first = (size_t)blockIdx.x * TILE; first < shape.count; first += (size_t)gridDim.x * TILE) {
    const unsigned count = shape.count - first < TILE ? (unsigned)(shape.count - first) : TILE;
    unsigned padded = 1; /* to a power of two */
    while (padded < count) padded *= 2;
    __syncthreads(); /* the tile before has been stored */
    for (unsigned i = threadIdx.x; i < padded; i += BLOCK_THREADS)
      keys[i] = i < count ? key_of(shape, indices, end, first + i) : ~(u64)0;
    for (unsigned size = 2; size <= padded; size *= 2) {
      for (unsigned distance = size / 2; distance > 0; distance /= 2) {
        __syncthreads();
        exchange(keys, padded, size, distance);
      }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += BLOCK_THREADS) tiles[first + i] = keys[i];
  }
}

/* How many keys from `low` to before `high`, which are sorted, are less. */
__device__ inline size_t count_less(const u64 *keys, size_t low, size_t high, u64 key) {
  const size_t begin = low;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low - begin;
}

extern "C" __global__ void sort_merge(sort_shape shape, const u64 *__restrict__ tiles, u64 *__restrict__ keys,
                                      const float *control) {
  if (!control_applies(control)) return;
  for (size_t i = first_element(); i < shape.count; i += element_stride()) {
    const u64 key = tiles[i];
    size_t place = i % TILE;
    for (size_t first = 0; first < shape.count; first += TILE) {
      const size_t last = shape.count - first < TILE ? shape.count : first + TILE;
      if (i < first || i >= last) place += count_less(tiles, first, last, key);
    }
    keys[place] = key;
  }
}

/* Slots whose gradients are read before the first is added, so that several reads are in flight. */
#define BATCH 8

/* The gradient of column k of the row that begins at a slot. Keys are sorted: after the first of another row, there is
 * none of this row. */
__device__ inline float row_sum(const gather_shape &shape, const long long *keys, const float *dy, const int *offsets,
                                const float *weights, size_t slot, size_t k) {
  const long long row = keys[slot] >> 32;
  float sum = 0;
  bool goes_on = true;
  for (size_t j = slot; goes_on; j += BATCH) {
    float factors[BATCH], values[BATCH];
    bool is_there[BATCH];
#pragma unroll
    for (unsigned n = 0; n < BATCH; n++) {
      const long long key = j + n < shape.count ? keys[j + n] : -1;
      is_there[n] = key >> 32 == row;
      const size_t i = is_there[n] ? (size_t)(key & 0xffffffffll) : 0, bag = bag_of(shape, offsets, i);
      factors[n] = is_there[n] ? bag_factor(shape, offsets, bag) * (weights != 0 ? weights[i] : 1.0f) : 0.0f;
      values[n] = is_there[n] ? dy[bag * shape.columns + k] : 0.0f;
    }
#pragma unroll
    for (unsigned n = 0; n < BATCH; n++)
      if (is_there[n]) sum = fmaf(factors[n], values[n], sum);
    goes_on = is_there[BATCH - 1];
  }
  return sum;
}

/* The shapes of each of the joined operations. */
struct joined_shapes {
  gather_shape of[FEWER_JOINED];
};

#define PARAMETERS(i) \
  , const long long *keys##i, const float *dy##i, const int *offsets##i, const float *weights##i, float *values##i
#define PICK(i)                                                                                 \
  case i:                                                                                       \
    keys = keys##i, dy = dy##i, offsets = offsets##i, weights = weights##i, values = values##i; \
    break;

extern "C" __global__ void embedding_rows(joined_table table, const float *control,
                                          joined_shapes shapes EACH_OF_FEWER_JOINED(PARAMETERS)) {
  const joined_block own = block_of(table);
  const gather_shape shape = shapes.of[own.operation];
  const long long *keys = 0;
  const float *dy = 0, *weights = 0;
  const int *offsets = 0;
  float *values = 0;
  if (!control_applies(control)) return;
  switch (own.operation) { EACH_OF_FEWER_JOINED(PICK) }
  const row_team team = team_of(shape.columns, own.block, own.blocks);
  for (size_t slot = team.first; slot < shape.count; slot += team.stride) {
    const bool is_first = slot_row(keys, shape.rows, slot) < shape.rows;
    float *to = values + slot * shape.columns;
    for (size_t k = team.lane; k < shape.columns; k += team.lanes)
      to[k] = is_first ? row_sum(shape, keys, dy, offsets, weights, slot, k) : 0.0f;
  }
}
