/* SPDX-License-Identifier: MIT
 * What the operators' CUDA kernels share: grid-stride loops, how a kernel reports a wrong index, and when it may update
 * state. A kernel's block has BLOCK_THREADS threads.
 *
 * One thread computes an element in a fixed order, or a team of threads combines its parts in a fixed order; atomics
 * are used for integers only. So results have the same bits in every run, recorded or not. They depend on the shape
 * alone.
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

/* As rondo_index_cell in kernel_support.h. A kernel has the four parameters CHECK and first calls
 * begin_check(TO_CHECK). */
struct index_cell {
  u64 *cell;
  const u64 *run;
  u64 *mark;
};

#define CHECK u64 *cell, const u64 *run, u64 *mark, u64 *begun
#define TO_CHECK cell, run, mark, begun

__device__ inline index_cell begin_check(CHECK) {
  const index_cell to = {cell, run, mark};
  if (begun != 0 && blockIdx.x == 0 && threadIdx.x == 0) *begun = *run;
  return to;
}

/* As rondo_check_index in kernel_support.h: the cell keeps the wrong index at the lowest position. All threads with a
 * wrong index write the same mark. */
__device__ inline bool check_index(const index_cell &to, size_t position, long long index, size_t bound) {
  if (is_index(index, bound)) return true;
  u64 *const cell = to.cell;
  if (to.mark != 0) *to.mark = *to.run + 1;
  const int reported = index < -0x7fffffffll - 1 ? -0x7fffffff - 1 : index > 0x7fffffffll ? 0x7fffffff : (int)index;
  const u64 place = position < 0xfffffffeu ? position + 1 : 0xffffffffu;
  const u64 mine = place << 32 | (unsigned)reported;
  u64 held = *(volatile u64 *)cell;
  while (held == 0 || mine < held) {
    const u64 found = atomicCAS(cell, held, mine);
    if (found == held) break;
    held = found;
  }
  return false;
}

/* As rondo_may_update in kernel_support.h. An update has the three parameters GATE and first calls may_update(TO_GATE).
 */
#define GATE unsigned checks, const u64 *marks, u64 *next_run
#define TO_GATE checks, marks, next_run

__device__ inline bool may_update(GATE) {
  bool has_failed = false;
  for (unsigned i = 1; i <= checks; i++) has_failed |= marks[i] == marks[0] + 1;
  if (next_run != 0 && blockIdx.x == 0 && threadIdx.x == 0) *next_run = marks[0] + 1;
  return !has_failed;
}

/* As rondo_control_factor and rondo_control_applies in kernel_support.h. */
__device__ inline float control_factor(const float *control) { return control == 0 ? 1.0f : control[0]; }
__device__ inline bool control_applies(const float *control) { return control == 0 || control[1] != 0; }

/* The sum over the block's threads, which add `sums` pair by pair in shared memory. Thread 0 has it in sums[0]. */
template <class T>
__device__ inline void add_halves(T *sums) {
  for (unsigned half = BLOCK_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
}
