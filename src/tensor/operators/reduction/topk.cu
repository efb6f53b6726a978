/* SPDX-License-Identifier: MIT
 * The CUDA kernel of topk.c: a block computes a column. Digit by digit, it counts how many elements begin with which
 * digit and so finds the key of the k-th best (Alabi et al., "Fast k-selection algorithms for graphics processing
 * units", 2012). It then collects the elements that are better, and the first of those that equal it, in their order,
 * and sorts them by counting how many are better than each.
 */
#include "tensor/operators/common/count_before.cuh"
#include "tensor/operators/common/element.cuh"

struct topk_shape {
  size_t outer, size, inner, k, smallest;
};

#if defined(ELEMENT_IS_F32) || defined(ELEMENT_IS_F16) || defined(ELEMENT_IS_BF16)
#define KEY_BITS 32
#else
#define KEY_BITS 64
#endif
#define DIGITS 256

/* Larger for better elements; NaN is larger than all numbers, -0 equals 0. */
__device__ inline u64 key_of(float x, bool smallest) {
  const unsigned bits = __float_as_uint(x == 0 ? 0.0f : x);
  const unsigned ordered = x != x ? 0xffffffffu : (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return smallest ? (u64)(unsigned)~ordered : (u64)ordered;
}

__device__ inline u64 key_of(i64 x, bool smallest) {
  const u64 ordered = (u64)x ^ 0x8000000000000000ull;
  return smallest ? ~ordered : ordered;
}

struct topk_column {
  const element *x;
  size_t size, inner;
  bool smallest;

  __device__ u64 key(size_t i) const { return key_of(to_number(x[i * inner]), smallest); }
};

/* The key of the k-th best element. *ties gets how many elements with this key are among the k best. All threads of the
 * block must call it. */
__device__ inline u64 find_threshold(const topk_column &c, size_t k, size_t *ties) {
  __shared__ unsigned counts[DIGITS];
  __shared__ u64 found;
  __shared__ size_t rest;
  u64 prefix = 0;
  size_t left = k;
  for (int shift = KEY_BITS - 8; shift >= 0; shift -= 8) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = threadIdx.x; i < c.size; i += BLOCK_THREADS) {
      const u64 key = c.key(i);
      if (shift == KEY_BITS - 8 || key >> (shift + 8) == prefix) atomicAdd(&counts[key >> shift & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned digit = DIGITS - 1;
      size_t here = left;
      while (counts[digit] < here) here -= counts[digit--];
      found = prefix << 8 | digit;
      rest = here;
    }
    __syncthreads();
    prefix = found;
    left = rest;
  }
  *ties = left;
  return prefix;
}

/* The indices of the k best elements, in their order. */
__device__ inline void collect(const topk_column &c, size_t k, int *indices) {
  size_t ties, taken = 0, equal = 0;
  const u64 threshold = find_threshold(c, k, &ties);
  for (size_t first = 0; first < c.size; first += BLOCK_THREADS) {
    const size_t i = first + threadIdx.x;
    const u64 key = i < c.size ? c.key(i) : 0;
    unsigned total;
    const bool is_equal = i < c.size && key == threshold;
    const size_t equal_before = equal + count_before(is_equal, &total);
    equal += total;
    const bool is_taken = (i < c.size && key > threshold) || (is_equal && equal_before < ties);
    const size_t place = taken + count_before(is_taken, &total);
    taken += total;
    if (is_taken) indices[place] = (int)i;
  }
}

extern "C" __global__ void topk_NUMBER(topk_shape shape, const element *__restrict__ x, element *__restrict__ values,
                                       int *__restrict__ indices, int *__restrict__ workspace) {
  for (size_t column = blockIdx.x; column < shape.outer * shape.inner; column += gridDim.x) {
    const size_t outer = column / shape.inner, inside = column % shape.inner;
    const topk_column c = {x + outer * shape.size * shape.inner + inside, shape.size, shape.inner, shape.smallest != 0};
    int *mine = workspace + column * shape.k;
    __syncthreads(); /* the previous column is done */
    collect(c, shape.k, mine);
    __syncthreads();
    for (size_t i = threadIdx.x; i < shape.k; i += BLOCK_THREADS) {
      const u64 key = c.key((size_t)mine[i]);
      size_t better = 0;
      for (size_t other = 0; other < shape.k; other++) {
        const u64 other_key = c.key((size_t)mine[other]);
        better += other_key > key || (other_key == key && other < i);
      }
      const size_t to = (outer * shape.k + better) * shape.inner + inside;
      indices[to] = mine[i];
      if (values != 0) values[to] = c.x[(size_t)mine[i] * shape.inner];
    }
  }
}
