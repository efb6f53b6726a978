/* SPDX-License-Identifier: MIT
 * What the operators' CUDA kernels share: how a grid of any size walks over its elements, and how a wrong index is
 * told. A kernel's block has BLOCK_THREADS threads.
 *
 * Every element is computed by one thread in a fixed order, or by a team of threads that joins its parts in a fixed
 * order, and only whole numbers are changed atomically: the same bits in every run, recorded or not. Results depend on
 * the shape alone.
 */
#define BLOCK_THREADS 256
#define WARP 32
#define WARPS (BLOCK_THREADS / WARP)
#define ALL_LANES 0xffffffffu

typedef unsigned long long u64;

/* for (size_t i = first_element(); i < count; i += element_stride()) */
__device__ inline size_t first_element() { return (size_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; }
__device__ inline size_t element_stride() { return (size_t)gridDim.x * BLOCK_THREADS; }

/* Indices are I32, or I64 where `is_wide` is not 0. */
__device__ inline long long index_at(const void *indices, unsigned is_wide, size_t i) {
  return is_wide != 0 ? ((const long long *)indices)[i] : ((const int *)indices)[i];
}

__device__ inline bool is_index(long long index, size_t bound) { return index >= 0 && (u64)index < bound; }

/* As rondo_check_index in kernel_support.h: the cell keeps the wrong index of the lowest position. */
__device__ inline bool check_index(u64 *cell, size_t position, long long index, size_t bound) {
  if (is_index(index, bound)) return true;
  const int told = index < -0x7fffffffll - 1 ? -0x7fffffff - 1 : index > 0x7fffffffll ? 0x7fffffff : (int)index;
  const u64 place = position < 0xfffffffeu ? position + 1 : 0xffffffffu;
  const u64 mine = place << 32 | (unsigned)told;
  u64 held = *(volatile u64 *)cell;
  while (held == 0 || mine < held) {
    const u64 found = atomicCAS(cell, held, mine);
    if (found == held) break;
    held = found;
  }
  return false;
}
