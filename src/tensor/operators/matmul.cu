/* SPDX-License-Identifier: MIT
 * The CUDA form of matmul.c.
 */
#include "tensor/operators/gemm.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    matmul_TYPE(matmul_problem problem, const element *__restrict__ a, const element *__restrict__ b,
                const element *__restrict__ bias, element *__restrict__ y, element *__restrict__ unactivated) {
  const matmul_memory memory = {a, b, bias, y, unactivated};
  multiply(problem, memory);
}
