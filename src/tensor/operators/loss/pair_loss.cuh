/* SPDX-License-Identifier: MIT
 * The CUDA kernels of pair_loss.c. `function` has the functions loss(a, b), slope_a(a, b) and slope_b(a, b). A block
 * sums a part: each thread adds every 256th element, then the threads' sums are added pair by pair.
 */
#include "tensor/operators/common/element.cuh"

struct pair_shape {
  size_t count, part, second;
};

template <class function>
__device__ inline void add_parts(const pair_shape &shape, const element *__restrict__ a, const element *__restrict__ b,
                                 double *__restrict__ parts) {
  __shared__ double sums[BLOCK_THREADS];
  for (size_t part = blockIdx.x; part * shape.part < shape.count; part += gridDim.x) {
    const size_t first = part * shape.part;
    const size_t last = shape.count - first > shape.part ? first + shape.part : shape.count;
    float sum = 0;
    for (size_t i = first + threadIdx.x; i < last; i += BLOCK_THREADS)
      sum += function::loss(to_float(a[i]), to_float(b[i]));
    sums[threadIdx.x] = (double)sum;
    add_halves(sums);
    if (threadIdx.x == 0) parts[part] = sums[0];
    __syncthreads(); /* the sums have been read */
  }
}

template <class function>
__device__ inline void take_slopes(const pair_shape &shape, float factor, const element *__restrict__ a,
                                   const element *__restrict__ b, const float *__restrict__ dloss,
                                   element *__restrict__ d) {
  const float scale = *dloss * factor;
  for (size_t i = first_element(); i < shape.count; i += element_stride()) {
    const float x = to_float(a[i]), y = to_float(b[i]);
    d[i] = to_element((shape.second ? function::slope_b(x, y) : function::slope_a(x, y)) * scale);
  }
}
