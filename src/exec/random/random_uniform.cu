/* SPDX-License-Identifier: MIT
 * The CUDA form of random_uniform.c. Rounded step by step as there, never fused.
 */
#include "exec/random.cuh"

extern "C" __global__ void rondo_uniform(float *dst, const unsigned long long *cells, unsigned long long seed,
                                         unsigned long long offset, size_t count, float low, float high) {
  const rondo_random random = rondo_random_begin(cells, seed, offset);
  const float range = high - low;
  const size_t groups = count / 4 + (count % 4 != 0), stride = (size_t)gridDim.x * blockDim.x;
  for (size_t group = (size_t)blockIdx.x * blockDim.x + threadIdx.x; group < groups; group += stride) {
    const rondo_random4 drawn = rondo_philox(random.seed, group, random.offset);
    for (int word = 0; word < 4 && 4 * group + word < count; word++) {
      const float u = (float)(drawn.x[word] >> 8) * 0x1p-24f;
      const float value = __fadd_rn(__fmul_rn(u, range), low);
      dst[4 * group + word] = value < high ? value : low;
    }
  }
}
