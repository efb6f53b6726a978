/* SPDX-License-Identifier: MIT
 * The CUDA kernel of categorical_draw in categorical.c: a thread draws the index of a row.
 */
#include "exec/random.cuh"
#include "tensor/operators/common/kernel_support.cuh"

struct draw_shape {
  size_t rows, columns;
  float top_p;
  unsigned reserved;
};

/* The first of `count` ascending sums that is at least the bound, or above it. */
__device__ inline size_t find_sum(const float *sums, size_t count, float bound, bool above) {
  size_t low = 0;
  while (low < count) {
    const size_t middle = low + (count - low) / 2;
    if (above ? sums[middle] <= bound : sums[middle] < bound)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

extern "C" __global__ void categorical_draw(draw_shape shape, const float *__restrict__ sums,
                                            const u64 *__restrict__ seeds, const int *__restrict__ counters,
                                            int *__restrict__ to) {
  for (size_t row = first_element(); row < shape.rows; row += element_stride()) {
    const float *const of_row = sums + row * shape.columns;
    const size_t end = shape.columns - 1;
    const size_t last = find_sum(of_row, end, shape.top_p * of_row[end], false);
    const float uniform = (float)(rondo_philox(seeds[row], (unsigned)counters[row], 0).x[0] >> 8) * (1.0f / 16777216);
    to[row] = (int)find_sum(of_row, last, uniform * of_row[last], true);
  }
}
