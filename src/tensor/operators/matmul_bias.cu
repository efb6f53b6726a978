/* SPDX-License-Identifier: MIT
 * The CUDA form of the product with a bias in matmul.c.
 */
#include "tensor/operators/gemm.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    matmul_bias(matmul_shape shape, const float *__restrict__ a, const float *__restrict__ b,
                const float *__restrict__ bias, float *__restrict__ c) {
  multiply(shape, a, b, bias, c);
}
